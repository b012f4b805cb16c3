//! Error handlers, classes and codes (MPI-4.1 sections 9.3 to 9.5).

use std::ffi::{c_char, c_int};

use vrt_abi::constants::*;
use vrt_abi::types::*;

use crate::call::{Call, functions, raise};
use crate::fault::{Outcome, fault, refuse};
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
    let handler = Handler::of(&call.process.errhandlers, handler)?;
    comm.errhandler.replace(handler);
    Ok(())
}

unsafe fn comm_handler(call: Call, comm: MPI_Comm, handler: *mut MPI_Errhandler) -> Outcome {
    let comm = call.process.comm(comm)?;
    let found = comm.errhandler.borrow().give(&call.process.errhandlers);
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
    let win = call.process.window(win)?;
    win.errhandler.replace(Handler::of(&call.process.errhandlers, handler)?);
    Ok(())
}

unsafe fn win_handler(call: Call, win: MPI_Win, handler: *mut MPI_Errhandler) -> Outcome {
    let win = call.process.window(win)?;
    let found = win.errhandler.borrow().give(&call.process.errhandlers);
    // SAFETY: the program gives room for a handle.
    unsafe { handler.write(found) };
    Ok(())
}

fn call_win(call: Call, win: MPI_Win, code: c_int) -> Outcome {
    call.process.window(win)?;
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
