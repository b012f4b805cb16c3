//! A program becomes a job, as the face starts it.

use std::future::Future;
use std::process::{ExitCode, Termination};

use vrt_launch::Config;

use crate::operation::{drive_async_main, finish_tasks};
use crate::topology::SimpleCommunicator;

/// Runs `main` as the program of every rank of a job, and returns the job's exit status.
///
/// Must be called before any thread is started. It returns in the calling process when the job
/// has ended; errors have been printed then.
///
/// # Examples
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use vrt::traits::*;
///
/// fn main() -> ExitCode {
///     let config = vrt::Config::default().with_pes(2).with_ranks(16);
///     vrt::launch(config, || {
///         let world = vrt::initialize().expect("in a rank").world();
///         println!("rank {} of {}", world.rank(), world.size());
///     })
/// }
/// ```
pub fn launch<F, R>(config: Config, main: F) -> ExitCode
where
    F: Fn() -> R + Sync + 'static,
    R: Termination,
{
    vrt_launch::launch(config, move || finish(main().report()))
}

/// [`launch`] for an async program: each rank awaits the future that `main` returns.
///
/// # Examples
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use vrt::traits::*;
///
/// fn main() -> ExitCode {
///     let config = vrt::Config::default().with_pes(2).with_ranks(16);
///     vrt::launch_async(config, || async {
///         let world = vrt::initialize().expect("in a rank").world();
///         world.barrier_async().await;
///         println!("rank {} of {}", world.rank(), world.size());
///     })
/// }
/// ```
pub fn launch_async<F, Fut>(config: Config, main: F) -> ExitCode
where
    F: Fn() -> Fut + Sync + 'static,
    Fut: Future,
    Fut::Output: Termination,
{
    vrt_launch::launch(config, move || finish(drive_async_main(main()).report()))
}

/// The status that a rank's `main` reports. When that is success it goes on with what it has begun.
fn finish(code: ExitCode) -> i32 {
    // `ExitCode` only compares.
    let status = (0..=255u8).find(|n| ExitCode::from(*n) == code).map_or(1, i32::from);
    if status == 0 {
        finish_tasks();
    }
    status
}

/// Runs `program` on `ranks` virtual ranks, all on one PE in the calling thread, and returns when
/// all have ended. For unit tests and examples; several threads may do so at the same time.
///
/// When it panics, ranks that have not ended are abandoned where they wait: no destructors run, and
/// detached threads that they have started go on. If such a rank waits in a `std::thread::scope`, or has
/// other threads to join, these may use what it has borrowed: then the process ends.
///
/// # Panics
/// With a rank's panic, when a rank calls `exit` with a status other than 0, when all ranks wait
/// for each other (the message says for what), and when the ranks cannot be created: in a PE of a
/// job, inside another local run, and where there is no memory for so many.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     let mut sum = 0;
///     world.all_reduce_into(&world.rank(), &mut sum, vrt::collective::SystemOperation::sum());
///     assert_eq!(sum, 0 + 1 + 2);
/// });
/// ```
pub fn run_local<F>(ranks: u32, program: F)
where
    F: Fn(&SimpleCommunicator) + Sync,
{
    vrt_launch::run_local(ranks, &|| program(&SimpleCommunicator::world()));
}
