//! Error handlers, classes and codes (MPI-4.1 sections 9.3 to 9.5).

use std::ffi::{c_char, c_int};

use vrt_abi::constants::*;
use vrt_abi::types::*;

use crate::call::{Call, functions, raise};
use crate::fault::{Outcome, fault, refuse};
use crate::numbers::give;
use crate::object::{Errhandler, Handler, On};
use crate::text;

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
    MPI_Session_set_errhandler(session: MPI_Session, handler: MPI_Errhandler)
        on Session(session) = set_session;
    MPI_Session_get_errhandler(session: MPI_Session, handler: *mut MPI_Errhandler)
        on Session(session) = session_handler;
    MPI_Session_call_errhandler(session: MPI_Session, code: c_int)
        on Session(session) = call_session;
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

macro_rules! create {
    ($($name:ident($function:ty) = $made:expr;)*) => {$(
        unsafe fn $name(
            call: Call,
            function: $function,
            handler: *mut MPI_Errhandler,
        ) -> Outcome {
            let made = call.process.errhandlers.add($made(function));
            // SAFETY: the program gives room for a handle.
            unsafe { handler.write(MPI_Errhandler(made)) };
            Ok(())
        }
    )*};
}
create! {
    create_comm(MPI_Comm_errhandler_function) = Errhandler::Comm;
    create_win(MPI_Win_errhandler_function) = Errhandler::Win;
    create_file(MPI_File_errhandler_function) = |_| Errhandler::File;
    create_session(MPI_Session_errhandler_function) = Errhandler::Session;
}

/// Setting, querying and calling the handler of an object.
macro_rules! handler {
    ($($of:ident($handle:ty) on $on:ident: $set:ident, $ask:ident, $call:ident;)*) => {$(
        fn $set(call: Call, object: $handle, handler: MPI_Errhandler) -> Outcome {
            let object = call.process.$of(object)?;
            object.errhandler.replace(Handler::of(&call.process.errhandlers, handler)?);
            Ok(())
        }

        unsafe fn $ask(call: Call, object: $handle, handler: *mut MPI_Errhandler) -> Outcome {
            let object = call.process.$of(object)?;
            let found = object.errhandler.borrow().give(&call.process.errhandlers);
            // SAFETY: the program gives room for a handle.
            unsafe { handler.write(found) };
            Ok(())
        }

        fn $call(call: Call, object: $handle, code: c_int) -> Outcome {
            call.process.$of(object)?;
            raise(call, On::$on(object), fault(code, call.process.codes.text(code)));
            Ok(())
        }
    )*};
}
handler! {
    comm(MPI_Comm) on Comm: set_comm, comm_handler, call_comm;
    window(MPI_Win) on Win: set_win, win_handler, call_win;
    session(MPI_Session) on Session: set_session, session_handler, call_session;
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
    unsafe { give(call.process.codes.class_of(code), class) }
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
    unsafe { give(call.process.codes.add(|code| code), class) }
}

unsafe fn add_code(call: Call, class: c_int, code: *mut c_int) -> Outcome {
    call.process.codes.expect(class)?;
    // SAFETY: the program gives room for a number.
    unsafe { give(call.process.codes.add(|_| class), code) }
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
    call.process.codes.set_text(code, text)
}

fn remove_class(call: Call, class: c_int) -> Outcome {
    call.process.codes.remove(class, true)
}

fn remove_code(call: Call, code: c_int) -> Outcome {
    call.process.codes.remove(code, false)
}

fn remove_string(call: Call, code: c_int) -> Outcome {
    call.process.codes.set_text(code, String::new())
}
