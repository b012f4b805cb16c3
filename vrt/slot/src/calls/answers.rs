//! Results that libc returns in memory of the process: the `struct tm` of `localtime`, the names of
//! `getpwuid`, the text of `strerror`.
//!
//! That memory is at the same address in every PE and has other contents there, and the next rank
//! that calls the same function overwrites it. A rank therefore gets a copy in its own heap, which
//! moves with it and is valid until the rank calls the function again: more than C guarantees.
//! Copies are the rank's locals and are freed with it. Outside of ranks libc's own results are
//! returned.
//!
//! The time zone's name in a `struct tm` is libc's own memory, which never changes: it is read
//! before the PEs are forked ([`prepare`]), so that it is the same in all of them.
//!
//! Results that are known to be constant or to go with something that pins are not copied: `getenv`
//! (the environment is the PE's), `localeconv`, `nl_langinfo`, `gai_strerror`, `readdir`,
//! `getmntent`.

use std::cell::RefCell;
use std::ffi::c_char;

use crate::heap_word::in_rank;
use crate::held::Kind;
use crate::posix::interpose::process_wide;
use crate::run::locals;
use crate::{register, sys};

/// Reads constant data. Called before the PEs are forked.
pub fn prepare() {
    sys::tzset();
}

/// The number of the results among a rank's locals.
const LOCAL: u32 = u32::MAX;
/// The same for the position of `strtok` in its text.
const TOKENS: u32 = u32::MAX - 1;

/// Function and argument that a result belongs to.
type Question = (&'static str, usize);

type Answers = RefCell<Vec<(Question, Pieces)>>;

/// The memory of one result.
#[derive(Default)]
pub(crate) struct Pieces(Vec<Box<[u64]>>);

impl Pieces {
    /// # Safety
    /// `len` values are readable there.
    unsafe fn copy<T: Copy>(&mut self, from: *const T, len: usize) -> *mut T {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        let mut piece = vec![0u64; (len * size_of::<T>()).div_ceil(8)].into_boxed_slice();
        let to = piece.as_mut_ptr().cast::<T>();
        // SAFETY: `len` values are readable, says the caller; the piece is new, as long, and aligned for them.
        unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
        self.0.push(piece);
        to
    }

    /// # Safety
    /// Null, or a text that ends with a NUL.
    unsafe fn text(&mut self, from: *const c_char) -> *mut c_char {
        if from.is_null() {
            return std::ptr::null_mut();
        }
        // SAFETY: a text that ends with a NUL, says the caller.
        unsafe { self.copy(from, libc::strlen(from) + 1) }
    }

    /// A null-terminated list whose elements `one` copies.
    ///
    /// # Safety
    /// Null, or such a list.
    unsafe fn list(
        &mut self,
        from: *mut *mut c_char,
        one: impl Fn(&mut Pieces, *const c_char) -> *mut c_char,
    ) -> *mut *mut c_char {
        if from.is_null() {
            return from;
        }
        // SAFETY: a list that ends with null, says the caller; the copy is as long.
        unsafe {
            let len = (0..).take_while(|i| !(*from.add(*i)).is_null()).count();
            let to = self.copy(from, len + 1);
            (0..len).for_each(|i| to.add(i).write(one(self, *from.add(i))));
            to
        }
    }

    /// # Safety
    /// Null, or a null-terminated list of texts.
    unsafe fn texts(&mut self, from: *mut *mut c_char) -> *mut *mut c_char {
        // SAFETY: a list of texts, says the caller, each of which ends with a NUL.
        unsafe { self.list(from, |pieces, text| pieces.text(text)) }
    }
}

/// A type that libc returns in memory of the process.
pub(crate) trait Answer: Copy {
    /// Copies it with everything that it refers to.
    ///
    /// # Safety
    /// `from` is a result of libc.
    unsafe fn copy_to(from: *const Self, pieces: &mut Pieces) -> *mut Self;
}

impl Answer for c_char {
    unsafe fn copy_to(from: *const c_char, pieces: &mut Pieces) -> *mut c_char {
        // SAFETY: results of libc of this type are texts that end with a NUL.
        unsafe { pieces.text(from) }
    }
}

impl Answer for libc::tm {
    unsafe fn copy_to(from: *const libc::tm, pieces: &mut Pieces) -> *mut libc::tm {
        // SAFETY: a result of libc, says the caller.
        unsafe { pieces.copy(from, 1) }
    }
}

/// Copies a structure, including the fields that the named functions copy.
macro_rules! answer {
    ($($type:ty { $($field:ident: $how:ident),* })*) => {$(
        impl Answer for $type {
            unsafe fn copy_to(from: *const $type, pieces: &mut Pieces) -> *mut $type {
                // SAFETY: a result of libc, says the caller, whose fields are null or what C says of them.
                unsafe {
                    let to = pieces.copy(from, 1);
                    $((*to).$field = pieces.$how((*from).$field);)*
                    to
                }
            }
        }
    )*};
}

answer! {
    libc::passwd { pw_name: text, pw_passwd: text, pw_gecos: text, pw_dir: text, pw_shell: text }
    libc::group { gr_name: text, gr_passwd: text, gr_mem: texts }
    libc::servent { s_name: text, s_aliases: texts, s_proto: text }
    libc::protoent { p_name: text, p_aliases: texts }
}

impl Answer for libc::hostent {
    unsafe fn copy_to(from: *const libc::hostent, pieces: &mut Pieces) -> *mut libc::hostent {
        // SAFETY: a result of libc, says the caller, whose addresses have `h_length` bytes each.
        unsafe {
            let to = pieces.copy(from, 1);
            let len = usize::try_from((*from).h_length).unwrap_or(0);
            (*to).h_name = pieces.text((*from).h_name);
            (*to).h_aliases = pieces.texts((*from).h_aliases);
            (*to).h_addr_list =
                pieces.list((*from).h_addr_list, |pieces, address| pieces.copy(address, len));
            to
        }
    }
}

/// The call returns a result of libc in memory of the process, or null.
///
/// # Safety
/// It does so.
pub(crate) unsafe fn answers<T: Answer>(
    question: Question,
    call: impl FnOnce() -> *mut T,
) -> *mut T {
    if !in_rank() {
        return call();
    }
    let answer = process_wide(call);
    if answer.is_null() {
        return answer;
    }
    let mut pieces = Pieces::default();
    // SAFETY: a result of libc: what `call` does.
    let copy = unsafe { T::copy_to(answer, &mut pieces) };
    let all = locals::keep(LOCAL, Answers::default);
    let mut all = all.borrow_mut();
    match all.iter_mut().find(|(asked, _)| *asked == question) {
        Some((_, before)) => *before = pieces,
        None => all.push((question, pieces)),
    }
    copy
}

/// The same for a call that is given memory for the result, or null.
///
/// # Safety
/// As for [`answers`].
pub(crate) unsafe fn answers_unless_given(
    buffer: *const c_char,
    name: &'static str,
    call: impl FnOnce() -> *mut c_char,
) -> *mut c_char {
    if !buffer.is_null() {
        return call();
    }
    // SAFETY: `call` is what `answers` wants, says the caller.
    unsafe { answers((name, 0), call) }
}

/// The call returns the next entry of a list in which the process has a position.
///
/// # Safety
/// As for [`answers`].
pub(crate) unsafe fn reads_list<T: Answer>(
    list: usize,
    name: &'static str,
    call: impl FnOnce() -> *mut T,
) -> *mut T {
    // SAFETY: `call` is what `answers` wants, says the caller.
    let next = unsafe { answers((name, 0), call) };
    if next.is_null() {
        register::take(Kind::List, list);
    } else {
        register::hold(Kind::List, list);
    }
    next
}

/// The call rewinds a list, or ends it.
pub(crate) fn ends_list(list: usize, call: impl FnOnce()) {
    register::take(Kind::List, list);
    process_wide(call);
}

/// C `strtok`: each rank has its own position in its text.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn strtok(text: *mut c_char, delimiters: *const c_char) -> *mut c_char {
    type Place = std::cell::Cell<*mut c_char>;
    thread_local! {
        static OUTSIDE: Place = const { Place::new(std::ptr::null_mut()) };
    }
    let next = |place: &Place| {
        let mut at = place.get();
        if text.is_null() && at.is_null() {
            return at;
        }
        // SAFETY: S4; `at` is null or where the last call on this text has stopped.
        let token = unsafe { libc::strtok_r(text, delimiters, &mut at) };
        place.set(at);
        token
    };
    if in_rank() {
        next(&locals::keep(TOKENS, || Place::new(std::ptr::null_mut())))
    } else {
        OUTSIDE.with(next)
    }
}
