//! Handles in Fortran, where they are integers (MPI-5.0 section 19.3.4).
//!
//! Such a number is the lower half of a handle: its kind and its index in the table. The generation, which
//! distinguishes a handle from an older one with the same index, is that of the current entry when the number is
//! converted back.

use std::ffi::c_int;

use vrt_abi::types::*;

use crate::call::Export;
use crate::handles::Table;
use crate::numbers;
use crate::process::Process;

/// Handles of predefined objects are below this, and in no table.
const FIRST_OF_TABLES: c_int = 0x1000;

/// The handle for a number, from one of the rank's tables.
fn handle<T: 'static>(
    number: c_int,
    table: impl FnOnce(&'static Process) -> &'static Table<T>,
) -> usize {
    if (0..FIRST_OF_TABLES).contains(&number) {
        return numbers::index(number);
    }
    let found = Process::current().and_then(|process| table(process).whole(number.cast_unsigned()));
    // What stands for nothing is refused by the function that gets it.
    found.unwrap_or(number.cast_unsigned() as usize)
}

macro_rules! conversions {
    ($($to:ident, $from:ident: $handle:ident in $($table:ident).+;)*) => {
        $(
            #[allow(non_snake_case, reason = "the names are MPI's")]
            unsafe extern "C-unwind" fn $to(handle: $handle) -> c_int {
                numbers::halves(handle.0 as u64)[0]
            }

            #[allow(non_snake_case, reason = "the names are MPI's")]
            unsafe extern "C-unwind" fn $from(number: c_int) -> $handle {
                $handle(handle(number, |process| &process.$($table).+))
            }

            const _: vrt_abi::signatures::$to = $to;
            const _: vrt_abi::signatures::$from = $from;
        )*

        /// The functions of this module.
        pub(crate) const EXPORTS: &[Export] = &[
            $(
                Export { name: stringify!($to), address: $to as *const () },
                Export { name: stringify!($from), address: $from as *const () },
            )*
        ];
    };
}

conversions! {
    MPI_Comm_toint, MPI_Comm_fromint: MPI_Comm in comms;
    MPI_Errhandler_toint, MPI_Errhandler_fromint: MPI_Errhandler in errhandlers;
    MPI_Group_toint, MPI_Group_fromint: MPI_Group in groups;
    MPI_Info_toint, MPI_Info_fromint: MPI_Info in infos;
    MPI_Message_toint, MPI_Message_fromint: MPI_Message in messages;
    MPI_Op_toint, MPI_Op_fromint: MPI_Op in ops;
    MPI_Request_toint, MPI_Request_fromint: MPI_Request in requests.all;
    MPI_Session_toint, MPI_Session_fromint: MPI_Session in sessions;
    MPI_Type_toint, MPI_Type_fromint: MPI_Datatype in types.made;
    MPI_Win_toint, MPI_Win_fromint: MPI_Win in windows;
}
