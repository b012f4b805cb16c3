//! Checks the types of functions that were written by hand because they follow no rule of the
//! generator.

use std::any::TypeId;
use std::ffi::{c_char, c_double, c_int, c_void};

use vrt_abi::signatures;
use vrt_abi::types::*;

macro_rules! is {
    ($($name:ident: ($($argument:ty),*) -> $result:ty;)*) => {$(
        assert_eq!(
            TypeId::of::<signatures::$name>(),
            TypeId::of::<unsafe extern "C-unwind" fn($($argument),*) -> $result>(),
            stringify!($name)
        );
    )*};
}

#[test]
fn they_are_what_a_reader_expects() {
    is! {
        MPI_Wtime: () -> c_double;
        MPI_Aint_add: (MPI_Aint, MPI_Aint) -> MPI_Aint;
        MPI_Comm_fromint: (c_int) -> MPI_Comm;
        MPI_Init: (*mut c_int, *mut *mut *mut c_char) -> c_int;
        MPI_Send: (*const c_void, c_int, MPI_Datatype, c_int, c_int, MPI_Comm) -> c_int;
        MPI_Recv_c: (
            *mut c_void, MPI_Count, MPI_Datatype, c_int, c_int, MPI_Comm, *mut MPI_Status
        ) -> c_int;
        MPI_Group_range_incl: (MPI_Group, c_int, *mut [c_int; 3], *mut MPI_Group) -> c_int;
        MPI_Alltoallw: (
            *const c_void, *const c_int, *const c_int, *const MPI_Datatype,
            *mut c_void, *const c_int, *const c_int, *const MPI_Datatype, MPI_Comm
        ) -> c_int;
        MPI_Comm_spawn_multiple: (
            c_int, *mut *mut c_char, *mut *mut *mut c_char, *const c_int, *const MPI_Info,
            c_int, MPI_Comm, *mut MPI_Comm, *mut c_int
        ) -> c_int;
        MPI_Unpack_external: (
            *const c_char, *const c_void, MPI_Aint, *mut MPI_Aint, *mut c_void, c_int, MPI_Datatype
        ) -> c_int;
        MPI_Op_create: (MPI_User_function, c_int, *mut MPI_Op) -> c_int;
        MPI_Comm_create_errhandler: (
            Option<unsafe extern "C-unwind" fn(*mut MPI_Comm, *mut c_int, ...)>, *mut MPI_Errhandler
        ) -> c_int;
        MPI_T_event_handle_free: (
            MPI_T_event_registration, *mut c_void, MPI_T_event_free_cb_function
        ) -> c_int;
        MPI_T_source_get_info: (
            c_int, *mut c_char, *mut c_int, *mut c_char, *mut c_int, *mut c_int, *mut MPI_Count,
            *mut MPI_Count, *mut MPI_Info
        ) -> c_int;
    }
    assert_eq!(
        TypeId::of::<signatures::MPI_Pcontrol>(),
        TypeId::of::<unsafe extern "C-unwind" fn(c_int, ...) -> c_int>()
    );
    assert_eq!(
        TypeId::of::<MPI_User_function_c>(),
        TypeId::of::<
            Option<
                unsafe extern "C-unwind" fn(
                    *mut c_void,
                    *mut c_void,
                    *mut MPI_Count,
                    *mut MPI_Datatype,
                ),
            >,
        >()
    );
}
