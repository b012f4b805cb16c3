//! Error handlers, classes and codes (MPI-4.1 sections 9.3 to 9.5).

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::rc::Rc;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_slot::report;

use crate::call::{Call, On, functions};
use crate::fault::{Fault, Outcome, fault, refuse};
use crate::life;
use crate::numbers;
use crate::process::Process;
use crate::text;

/// A handler made by a program: its function, and the kind of object whose errors it handles.
#[derive(Debug)]
pub(crate) enum Errhandler {
    Comm(MPI_Comm_errhandler_function),
    Win(MPI_Win_errhandler_function),
    Session(MPI_Session_errhandler_function),
    /// For files, which do not exist yet.
    File,
}

/// The handler of an object. It remains usable when its handle has been freed.
#[derive(Clone, Debug)]
pub(crate) struct Handler {
    handle: MPI_Errhandler,
    function: Option<Rc<Errhandler>>,
}

impl Handler {
    /// The initial handler of communicators.
    pub(crate) const FATAL: Handler = Handler { handle: MPI_ERRORS_ARE_FATAL, function: None };

    /// The handler of a handle.
    ///
    /// # Errors
    /// The handle is invalid.
    pub(crate) fn of(process: &Process, handle: MPI_Errhandler) -> Outcome<Handler> {
        match handle {
            MPI_ERRORS_ARE_FATAL | MPI_ERRORS_ABORT | MPI_ERRORS_RETURN => {
                Ok(Handler { handle, function: None })
            }
            MPI_Errhandler(number) => match process.errhandlers.get(number) {
                Some(function) => Ok(Handler { handle, function: Some(function) }),
                None => refuse!(MPI_ERR_ERRHANDLER, "{number:#x} is no error handler"),
            },
        }
    }

    fn is_fatal(&self) -> bool {
        matches!(self.handle, MPI_ERRORS_ARE_FATAL | MPI_ERRORS_ABORT)
    }

    /// A handle, which the program frees when it does not need it any more.
    pub(crate) fn give(&self, process: &Process) -> MPI_Errhandler {
        match &self.function {
            Some(function) => MPI_Errhandler(process.errhandlers.add(Rc::clone(function))),
            None => self.handle,
        }
    }
}

/// Passes an error to the handler of its object; returns the function's return value.
pub(crate) fn raise(call: Call, on: On, fault: Box<Fault>) -> c_int {
    let process = call.process;
    let (handler, on) = match fault.on.map_or(on, On::Comm) {
        On::Comm(comm) => match process.comm(comm) {
            Ok(found) => (found.errhandler.borrow().clone(), on),
            Err(_) => (of_nothing(process), On::Nothing),
        },
        On::Win(win) => match process.windows.get(win.0) {
            Some(found) => (found.errhandler.borrow().clone(), on),
            None => (of_nothing(process), On::Nothing),
        },
        On::Session(session) => match process.sessions.get(session.0) {
            Some(found) => (found.errhandler.borrow().clone(), on),
            None => (of_nothing(process), On::Nothing),
        },
        On::Nothing => (of_nothing(process), on),
    };
    if handler.is_fatal() {
        end_job(call, on, &fault);
    }
    let mut code = fault.code;
    if let Some(function) = handler.function {
        // SAFETY: the program's own handlers, which it gave for this kind of object.
        unsafe {
            match (&*function, on) {
                (Errhandler::Comm(Some(function)), On::Comm(mut comm)) => {
                    function(&raw mut comm, &raw mut code);
                }
                (Errhandler::Comm(Some(function)), On::Nothing) => {
                    let mut comm = MPI_COMM_SELF;
                    function(&raw mut comm, &raw mut code);
                }
                (Errhandler::Win(Some(function)), On::Win(mut win)) => {
                    function(&raw mut win, &raw mut code);
                }
                (Errhandler::Session(Some(function)), On::Session(mut session)) => {
                    function(&raw mut session, &raw mut code);
                }
                _ => {}
            }
        }
    }
    code
}

/// Errors without an object belong to `MPI_COMM_SELF`; programs written before MPI-4 have set a handler only for
/// `MPI_COMM_WORLD`.
fn of_nothing(process: &Process) -> Handler {
    let own = process.itself.errhandler.borrow().clone();
    if own.is_fatal() { process.world.errhandler.borrow().clone() } else { own }
}

#[cold]
fn end_job(call: Call, on: On, fault: &Fault) -> ! {
    let rank = vrt_core::pe::current_rank().unwrap_or_default();
    let name = match on {
        On::Comm(comm) => call.process.comm(comm).map(|comm| comm.name()).unwrap_or_default(),
        On::Win(_) | On::Session(_) | On::Nothing => String::new(),
    };
    let on = if name.is_empty() { name } else { format!(" on {name}") };
    let class = vrt_abi::error_class_name(call.process.codes.class_of(fault.code));
    let class = class.map_or(format!("error {}", fault.code), str::to_owned);
    report::say(format_args!(
        "rank {rank} in {}{on}: {} ({class}); ending the job",
        call.site.call, fault.text
    ));
    life::end_job(exit_status(fault.code))
}

/// The exit status of a job that ends because of an error.
pub(crate) fn exit_status(code: c_int) -> c_int {
    if code & 0xff == 0 { 1 } else { code & 0xff }
}

/// Classes and codes added by a program.
#[derive(Debug, Default)]
pub(crate) struct Codes(RefCell<Vec<Option<Added>>>);

#[derive(Debug)]
struct Added {
    /// Itself, if it is a class.
    class: c_int,
    text: String,
}

impl Codes {
    const FIRST: c_int = MPI_ERR_LASTCODE + 1;

    /// The codes of a class, without the class itself.
    fn of_class(&self, class: c_int) -> usize {
        let all = self.0.borrow();
        let of_class = all.iter().flatten().filter(|added| added.class == class).count();
        of_class.saturating_sub(1)
    }

    fn add(&self, class: impl FnOnce(c_int) -> c_int) -> c_int {
        let mut all = self.0.borrow_mut();
        let code = Codes::FIRST.saturating_add(numbers::int(all.len()));
        all.push(Some(Added { class: class(code), text: String::new() }));
        code
    }

    /// The highest code in use.
    pub(crate) fn last_used(&self) -> c_int {
        MPI_ERR_LASTCODE.saturating_add(numbers::int(self.0.borrow().len()))
    }

    /// Restores the invariant that the highest code is in use: those above it can be assigned
    /// again.
    fn forget_last_removed(&self) {
        let mut all = self.0.borrow_mut();
        let used = all.iter().rposition(Option::is_some);
        all.truncate(used.map_or(0, |last| last.saturating_add(1)));
    }

    fn with<R>(&self, code: c_int, f: impl FnOnce(&mut Option<Added>) -> R) -> Option<R> {
        let index = usize::try_from(code.checked_sub(Codes::FIRST)?).ok()?;
        self.0.borrow_mut().get_mut(index).filter(|added| added.is_some()).map(f)
    }

    /// The class of a code.
    pub(crate) fn class_of(&self, code: c_int) -> c_int {
        let added = self.with(code, |added| added.as_ref().map_or(code, |added| added.class));
        added.unwrap_or(code)
    }

    fn expect(&self, code: c_int) -> Outcome {
        let is_known = vrt_abi::error_class_name(code).is_some();
        if is_known || self.with(code, |_| ()).is_some() {
            return Ok(());
        }
        refuse!(MPI_ERR_ARG, "{code} is no error code or class")
    }

    fn text(&self, code: c_int) -> String {
        match self.with(code, |added| added.as_ref().map(|added| added.text.clone())) {
            Some(text) => text.unwrap_or_default(),
            None => description(code).to_owned(),
        }
    }
}

/// The meaning of one of MPI's classes, as text.
fn description(class: c_int) -> &'static str {
    match class {
        MPI_SUCCESS => "no error",
        MPI_ERR_BUFFER => "wrong buffer",
        MPI_ERR_COUNT => "wrong count",
        MPI_ERR_TYPE => "wrong datatype",
        MPI_ERR_TAG => "wrong tag",
        MPI_ERR_COMM => "wrong communicator",
        MPI_ERR_RANK => "wrong rank",
        MPI_ERR_REQUEST => "wrong request",
        MPI_ERR_ROOT => "wrong root",
        MPI_ERR_GROUP => "wrong group",
        MPI_ERR_OP => "wrong operation",
        MPI_ERR_TOPOLOGY => "wrong topology",
        MPI_ERR_DIMS => "wrong dimensions",
        MPI_ERR_ARG => "wrong argument",
        MPI_ERR_UNKNOWN => "unknown error",
        MPI_ERR_TRUNCATE => "the message is longer than the buffer",
        MPI_ERR_OTHER => "another error",
        MPI_ERR_INTERN => "an error of the library itself",
        MPI_ERR_PENDING => "the request is not done",
        MPI_ERR_IN_STATUS => "the error is in the statuses",
        MPI_ERR_KEYVAL => "wrong key of attributes",
        MPI_ERR_INFO => "wrong info",
        MPI_ERR_INFO_KEY => "a key is too long",
        MPI_ERR_INFO_VALUE => "a value is too long",
        MPI_ERR_INFO_NOKEY => "there is no such key",
        MPI_ERR_NO_MEM => "no memory is left",
        MPI_ERR_WIN => "wrong window",
        MPI_ERR_RMA_RANGE => "a place outside of the window",
        MPI_ERR_RMA_SYNC => "an access outside of its epoch",
        MPI_ERR_UNSUPPORTED_OPERATION => "this is not supported",
        MPI_ERR_VALUE_TOO_LARGE => "a value is too large",
        MPI_ERR_ERRHANDLER => "wrong error handler",
        _ => vrt_abi::error_class_name(class).unwrap_or_default(),
    }
}

functions! {
    MPI_Comm_create_errhandler(function: MPI_Comm_errhandler_function, handler: *mut MPI_Errhandler)
        on Nothing when Always = create_comm;
    MPI_Win_create_errhandler(function: MPI_Win_errhandler_function, handler: *mut MPI_Errhandler)
        on Nothing when Always = create_win;
    MPI_File_create_errhandler(function: MPI_File_errhandler_function, handler: *mut MPI_Errhandler)
        on Nothing when Always = create_file;
    MPI_Session_create_errhandler(
        function: MPI_Session_errhandler_function, handler: *mut MPI_Errhandler,
    ) on Nothing when Always = create_session;
    MPI_Comm_set_errhandler(comm: MPI_Comm, handler: MPI_Errhandler) on Comm(comm) when Always = set_comm;
    MPI_Comm_get_errhandler(comm: MPI_Comm, handler: *mut MPI_Errhandler)
        on Comm(comm) when Always = comm_handler;
    MPI_Comm_call_errhandler(comm: MPI_Comm, code: c_int) on Nothing = call_comm;
    MPI_Win_set_errhandler(win: MPI_Win, handler: MPI_Errhandler) on Win(win) = set_win;
    MPI_Win_get_errhandler(win: MPI_Win, handler: *mut MPI_Errhandler) on Win(win) = win_handler;
    MPI_Win_call_errhandler(win: MPI_Win, code: c_int) on Nothing = call_win;
    MPI_Errhandler_free(handler: *mut MPI_Errhandler) on Nothing when Always = free;
    MPI_Error_class(code: c_int, class: *mut c_int) on Nothing when Always = class;
    MPI_Error_string(code: c_int, string: *mut c_char, len: *mut c_int) on Nothing when Always = string;
    MPI_Add_error_class(class: *mut c_int) on Nothing when Always = add_class;
    MPI_Add_error_code(class: c_int, code: *mut c_int) on Nothing when Always = add_code;
    MPI_Add_error_string(code: c_int, string: *const c_char) on Nothing when Always = add_string;
    MPI_Remove_error_class(class: c_int) on Nothing when Always = remove_class;
    MPI_Remove_error_code(code: c_int) on Nothing when Always = remove_code;
    MPI_Remove_error_string(code: c_int) on Nothing when Always = remove_string;
}

unsafe fn create(call: Call, made: Errhandler, handler: *mut MPI_Errhandler) -> Outcome {
    // SAFETY: the program gives room for a handle.
    unsafe { handler.write(MPI_Errhandler(call.process.errhandlers.add(made))) };
    Ok(())
}

unsafe fn create_comm(
    call: Call,
    function: MPI_Comm_errhandler_function,
    handler: *mut MPI_Errhandler,
) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { create(call, Errhandler::Comm(function), handler) }
}

unsafe fn create_win(
    call: Call,
    function: MPI_Win_errhandler_function,
    handler: *mut MPI_Errhandler,
) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { create(call, Errhandler::Win(function), handler) }
}

unsafe fn create_file(
    call: Call,
    _: MPI_File_errhandler_function,
    handler: *mut MPI_Errhandler,
) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { create(call, Errhandler::File, handler) }
}

unsafe fn create_session(
    call: Call,
    function: MPI_Session_errhandler_function,
    handler: *mut MPI_Errhandler,
) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { create(call, Errhandler::Session(function), handler) }
}

fn set_comm(call: Call, comm: MPI_Comm, handler: MPI_Errhandler) -> Outcome {
    let comm = call.process.comm(comm)?;
    let handler = Handler::of(call.process, handler)?;
    comm.errhandler.replace(handler);
    Ok(())
}

unsafe fn comm_handler(call: Call, comm: MPI_Comm, handler: *mut MPI_Errhandler) -> Outcome {
    let comm = call.process.comm(comm)?;
    let found = comm.errhandler.borrow().give(call.process);
    // SAFETY: the program gives room for a handle.
    unsafe { handler.write(found) };
    Ok(())
}

/// The program calls the handler of an object.
///
/// # Errors
/// None.
pub(crate) fn called(call: Call, on: On, code: c_int) -> Outcome {
    let text = call.process.codes.text(code);
    raise(call, on, fault(code, text));
    Ok(())
}

fn call_comm(call: Call, comm: MPI_Comm, code: c_int) -> Outcome {
    call.process.comm(comm)?;
    called(call, On::Comm(comm), code)
}

fn set_win(call: Call, win: MPI_Win, handler: MPI_Errhandler) -> Outcome {
    let win = crate::window::find(call, win)?;
    win.errhandler.replace(Handler::of(call.process, handler)?);
    Ok(())
}

unsafe fn win_handler(call: Call, win: MPI_Win, handler: *mut MPI_Errhandler) -> Outcome {
    let win = crate::window::find(call, win)?;
    let found = win.errhandler.borrow().give(call.process);
    // SAFETY: the program gives room for a handle.
    unsafe { handler.write(found) };
    Ok(())
}

fn call_win(call: Call, win: MPI_Win, code: c_int) -> Outcome {
    crate::window::find(call, win)?;
    called(call, On::Win(win), code)
}

unsafe fn free(call: Call, handler: *mut MPI_Errhandler) -> Outcome {
    // SAFETY: the program gives a handle of its own.
    let MPI_Errhandler(number) = unsafe { *handler };
    let is_predefined = (MPI_ERRORS_ARE_FATAL.0..=MPI_ERRORS_RETURN.0).contains(&number);
    if !is_predefined && call.process.errhandlers.remove(number).is_none() {
        refuse!(MPI_ERR_ERRHANDLER, "{number:#x} is no error handler, or one that was freed");
    }
    // SAFETY: as above.
    unsafe { *handler = MPI_ERRHANDLER_NULL };
    Ok(())
}

unsafe fn class(call: Call, code: c_int, class: *mut c_int) -> Outcome {
    call.process.codes.expect(code)?;
    // SAFETY: the program gives room for a number.
    unsafe { class.write(call.process.codes.class_of(code)) };
    Ok(())
}

unsafe fn string(call: Call, code: c_int, string: *mut c_char, len: *mut c_int) -> Outcome {
    call.process.codes.expect(code)?;
    let text = call.process.codes.text(code);
    // SAFETY: the program gives room for `MPI_MAX_ERROR_STRING` characters.
    unsafe { text::give(&text, string, MPI_MAX_ERROR_STRING as usize, len) };
    Ok(())
}

unsafe fn add_class(call: Call, class: *mut c_int) -> Outcome {
    // SAFETY: the program gives room for a number.
    unsafe { class.write(call.process.codes.add(|code| code)) };
    Ok(())
}

unsafe fn add_code(call: Call, class: c_int, code: *mut c_int) -> Outcome {
    call.process.codes.expect(class)?;
    // SAFETY: the program gives room for a number.
    unsafe { code.write(call.process.codes.add(|_| class)) };
    Ok(())
}

unsafe fn add_string(call: Call, code: c_int, string: *const c_char) -> Outcome {
    // SAFETY: the program gives a string.
    let text = unsafe { text::taken(string) };
    if text.len() >= MPI_MAX_ERROR_STRING as usize {
        refuse!(
            MPI_ERR_ARG,
            "the text has {} characters, {MPI_MAX_ERROR_STRING} are allowed",
            text.len()
        );
    }
    let set = |added: &mut Option<Added>| {
        if let Some(added) = added {
            added.text = text;
        }
    };
    match call.process.codes.with(code, set) {
        Some(()) => Ok(()),
        None => refuse!(MPI_ERR_ARG, "{code} is no error code that the program has added"),
    }
}

fn remove_class(call: Call, class: c_int) -> Outcome {
    remove(call, class, true)
}

fn remove_code(call: Call, code: c_int) -> Outcome {
    remove(call, code, false)
}

fn remove(call: Call, code: c_int, is_class: bool) -> Outcome {
    let codes = &call.process.codes;
    let fits = codes
        .with(code, |added| added.as_ref().is_some_and(|added| (added.class == code) == is_class));
    if fits != Some(true) {
        refuse!(MPI_ERR_ARG, "{code} is nothing that the program has added and not removed");
    }
    // MPI-4.1 section 9.5: a class goes after its codes, a code after its text.
    match (is_class, codes.of_class(code), codes.text(code)) {
        (true, left @ 1.., _) => {
            refuse!(MPI_ERR_ARG, "{left} codes of the class {code} have to be removed first")
        }
        (false, _, text) if !text.is_empty() => {
            refuse!(MPI_ERR_ARG, "the text of the code {code} has to be removed first: {text}")
        }
        _ => {}
    }
    codes.with(code, |added| *added = None);
    codes.forget_last_removed();
    Ok(())
}

fn remove_string(call: Call, code: c_int) -> Outcome {
    let clear = |added: &mut Option<Added>| {
        if let Some(added) = added {
            added.text.clear();
        }
    };
    match call.process.codes.with(code, clear) {
        Some(()) => Ok(()),
        None => refuse!(MPI_ERR_ARG, "{code} is nothing that the program has added"),
    }
}
