//! Initialization and finalization, and a rank's environment (MPI-4.1 chapters 9 and 11, MPI-5.0
//! chapter 20).

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::operation;
use vrt_core::pe;
use vrt_slot::report;

use crate::abort;
use crate::call::{Call, Export, functions, raise};
use crate::collective;
use crate::fault::{Outcome, fault, refuse};
use crate::numbers::give;
use crate::object::{Info, On};
use crate::process::Process;
use crate::text;

/// The version of the standard that is implemented.
const VERSION: (c_int, c_int) = (5, 0);

functions! {
    MPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) on Nothing when Always = init;
    MPI_Init_thread(
        argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int,
    ) on Nothing when Always = init_thread;
    MPI_Initialized(flag: *mut c_int) on Nothing when AlwaysAnywhere = initialized;
    MPI_Finalized(flag: *mut c_int) on Nothing when AlwaysAnywhere = finalized;
    MPI_Finalize() on Nothing = finalize;
    MPI_Abort(comm: MPI_Comm, code: c_int) on Nothing when Always = abort;
    MPI_Query_thread(provided: *mut c_int) on Nothing when InitializedAnywhere = query_thread;
    MPI_Is_thread_main(flag: *mut c_int) on Nothing when InitializedAnywhere = is_thread_main;
    MPI_Get_version(version: *mut c_int, subversion: *mut c_int) on Nothing when AlwaysAnywhere = version;
    MPI_Get_library_version(version: *mut c_char, len: *mut c_int)
        on Nothing when AlwaysAnywhere = library_version;
    MPI_Get_processor_name(name: *mut c_char, len: *mut c_int) on Nothing = processor_name;
    MPI_Get_hw_resource_info(info: *mut MPI_Info) on Nothing = resources;
    MPI_Alloc_mem(size: MPI_Aint, info: MPI_Info, place: *mut c_void) on Nothing = alloc_mem;
    MPI_Free_mem(place: *mut c_void) on Nothing = free_mem;
    MPI_Abi_get_version(major: *mut c_int, minor: *mut c_int) on Nothing when Always = abi_version;
    MPI_Abi_get_info(info: *mut MPI_Info) on Nothing when Always = abi_info;
}

/// Functions that do not return error codes.
pub(crate) const OTHERS: &[Export] = &[
    Export { name: "MPI_Wtime", address: wtime as *const () },
    Export { name: "MPI_Wtick", address: wtick as *const () },
    Export { name: "MPI_Aint_add", address: aint_add as *const () },
    Export { name: "MPI_Aint_diff", address: aint_diff as *const () },
    Export { name: "MPI_Pcontrol", address: pcontrol as *const () },
];

const _: vrt_abi::signatures::MPI_Wtime = wtime;
const _: vrt_abi::signatures::MPI_Wtick = wtick;
const _: vrt_abi::signatures::MPI_Aint_add = aint_add;
const _: vrt_abi::signatures::MPI_Aint_diff = aint_diff;

unsafe extern "C-unwind" fn wtime() -> f64 {
    pe::monotonic() as f64 * 1e-9
}

unsafe extern "C-unwind" fn wtick() -> f64 {
    1e-9
}

unsafe extern "C-unwind" fn aint_add(base: MPI_Aint, distance: MPI_Aint) -> MPI_Aint {
    base.wrapping_add(distance)
}

unsafe extern "C-unwind" fn aint_diff(one: MPI_Aint, other: MPI_Aint) -> MPI_Aint {
    one.wrapping_sub(other)
}

/// For profiling tools; there are none. Arguments after the level are ignored.
unsafe extern "C-unwind" fn pcontrol(_level: c_int) -> c_int {
    MPI_SUCCESS
}

unsafe fn init(call: Call, _: *mut c_int, _: *mut *mut *mut c_char) -> Outcome {
    if call.process.has_begun() {
        refuse!(MPI_ERR_OTHER, "it was called before");
    }
    vrt_slot::image::beside_program(|| call.process.initialize());
    Ok(())
}

/// Only a rank's own thread may call MPI; it may have other threads.
const THREADS: c_int = MPI_THREAD_FUNNELED;

unsafe fn init_thread(
    call: Call,
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> Outcome {
    let levels =
        [MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE];
    if !levels.contains(&required) {
        refuse!(MPI_ERR_ARG, "{required} is no thread level: {levels:?} are");
    }
    // SAFETY: the program gives room for a number.
    unsafe {
        init(call, argc, argv)?;
        call.process.threads.store(required.min(THREADS), Ordering::Relaxed);
        provided.write(required.min(THREADS));
    }
    Ok(())
}

unsafe fn initialized(call: Call, flag: *mut c_int) -> Outcome {
    // SAFETY: the program gives room for a flag.
    unsafe { give(call.process.has_begun().into(), flag) }
}

unsafe fn finalized(call: Call, flag: *mut c_int) -> Outcome {
    // SAFETY: the program gives room for a flag.
    unsafe { give(call.process.is_finalized().into(), flag) }
}

/// First the attributes of `MPI_COMM_SELF` are deleted; then the rank waits for all operations in the background, and
/// all ranks for each other.
fn finalize(call: Call) -> Outcome {
    let process = call.process;
    process.itself.attributes.delete_all(MPI_COMM_SELF.0)?;
    process.world.attributes.delete_all(MPI_COMM_WORLD.0)?;
    operation::finish_tasks();
    collective::barrier_of(call, &process.world)?;
    process.finalize();
    Ok(())
}

/// Ends all ranks of the job, whatever the communicator.
fn abort(call: Call, comm: MPI_Comm, code: c_int) -> Outcome {
    let rank = pe::current_rank().unwrap_or_default();
    let name = call.process.comm(comm).map(|comm| comm.name()).unwrap_or_default();
    let on = if name.is_empty() { String::new() } else { format!("{name}, ") };
    report::say(format_args!("rank {rank} called MPI_Abort({on}{code}); ending the job"));
    abort::flush();
    abort::end_job(abort::exit_status(code))
}

unsafe fn query_thread(call: Call, provided: *mut c_int) -> Outcome {
    // SAFETY: the program gives room for a number.
    unsafe { give(call.process.threads.load(Ordering::Relaxed), provided) }
}

unsafe fn is_thread_main(_: Call, flag: *mut c_int) -> Outcome {
    // SAFETY: the program gives room for a flag.
    unsafe { give(Process::current().is_some().into(), flag) }
}

unsafe fn version(_: Call, version: *mut c_int, subversion: *mut c_int) -> Outcome {
    // SAFETY: the program gives room for two numbers.
    unsafe {
        version.write(VERSION.0);
        subversion.write(VERSION.1);
    }
    Ok(())
}

unsafe fn library_version(_: Call, version: *mut c_char, len: *mut c_int) -> Outcome {
    let text = concat!("vrt ", env!("CARGO_PKG_VERSION"), ": MPI ranks as virtual ranks");
    // SAFETY: the program gives room for `MPI_MAX_LIBRARY_VERSION_STRING` characters.
    unsafe { text::give(text, version, MPI_MAX_LIBRARY_VERSION_STRING as usize, len) };
    Ok(())
}

/// The host and the current PE of the rank.
unsafe fn processor_name(_: Call, name: *mut c_char, len: *mut c_int) -> Outcome {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let pe = pe::whereabouts().map_or(0, |(_, pe)| pe);
    let text = format!("{}:pe{pe}", host.trim());
    // SAFETY: the program gives room for `MPI_MAX_PROCESSOR_NAME` characters.
    unsafe { text::give(&text, name, MPI_MAX_PROCESSOR_NAME as usize, len) };
    Ok(())
}

/// A rank is not bound to any hardware: it may be moved.
unsafe fn resources(call: Call, info: *mut MPI_Info) -> Outcome {
    // SAFETY: the program gives room for a handle.
    unsafe { give(MPI_Info(call.process.infos.add(Info::default())), info) }
}

unsafe fn alloc_mem(call: Call, size: MPI_Aint, info: MPI_Info, place: *mut c_void) -> Outcome {
    call.process.info_or_empty(info)?;
    let Ok(size) = usize::try_from(size) else {
        refuse!(MPI_ERR_ARG, "{size} bytes: the size is negative");
    };
    // SAFETY: a plain allocation; the program gives room for a pointer.
    unsafe {
        let block = libc::malloc(size.max(1));
        if block.is_null() {
            refuse!(MPI_ERR_NO_MEM, "there are no {size} bytes left for this rank");
        }
        place.cast::<*mut c_void>().write(block);
    }
    Ok(())
}

unsafe fn free_mem(_: Call, place: *mut c_void) -> Outcome {
    // SAFETY: the program gives what `MPI_Alloc_mem` gave it.
    unsafe { libc::free(place) };
    Ok(())
}

unsafe fn abi_version(_: Call, major: *mut c_int, minor: *mut c_int) -> Outcome {
    // SAFETY: the program gives room for two numbers.
    unsafe {
        major.write(MPI_ABI_VERSION);
        minor.write(MPI_ABI_SUBVERSION);
    }
    Ok(())
}

unsafe fn abi_info(call: Call, info: *mut MPI_Info) -> Outcome {
    let found = Info::of(&[
        ("mpi_aint_size", size_of::<MPI_Aint>()),
        ("mpi_count_size", size_of::<MPI_Count>()),
        ("mpi_offset_size", size_of::<MPI_Offset>()),
    ]);
    // SAFETY: the program gives room for a handle.
    unsafe { give(MPI_Info(call.process.infos.add(found)), info) }
}

/// Reports a function of the API that is not implemented yet.
pub(crate) fn missing(name: &'static str) -> c_int {
    let Some(process) = Process::current() else { return MPI_ERR_UNSUPPORTED_OPERATION };
    // Such a call is rare, and its name is kept as long as the rank is there.
    let site = Box::leak(Box::new(vrt_core::Site { call: name, location: None }));
    let call = Call { process, site };
    let fault = fault(MPI_ERR_UNSUPPORTED_OPERATION, "vrt does not have this function yet");
    raise(call, On::Nothing, fault)
}
