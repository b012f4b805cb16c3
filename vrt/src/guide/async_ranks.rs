//! Async ranks, and futures in blocking ranks.
//!
//! Above an `async fn main` the attribute makes async ranks, which await the twins of the blocking calls:
//!
//! ```no_run
//! use vrt::traits::*;
//!
//! #[vrt::main]
//! async fn main(world: vrt::World) {
//!     let (rank, size) = (world.rank(), world.size());
//!     let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
//!     let next = world.process_at_rank(next);
//!     let previous = world.process_at_rank(previous);
//!     // Both go on at the same time.
//!     let ((), (token, _)) = tokio::join!(next.send_async(&rank), previous.receive_async::<i32>());
//!     assert_eq!(token, previous.rank());
//! }
//! ```
//!
//! # The twin of `x` is `x_async`
//!
//! It takes the same arguments and gives a future of the same result: `receive_into_with_tag(buf, tag)` is
//! `receive_into_with_tag_async(buf, tag).await`. The twins are in traits of their own
//! ([`AsyncSource`](crate::point_to_point::AsyncSource),
//! [`AsyncDestination`](crate::point_to_point::AsyncDestination),
//! [`AsyncCollectives`](crate::collective::AsyncCollectives), [`AsyncRoot`](crate::collective::AsyncRoot)), all of
//! which [`traits`](crate::traits) has; those of neighbour collectives and sparse exchanges are in the trait of the
//! calls. Exceptions:
//!
//! | call | twin |
//! |---|---|
//! | requests (`immediate_..`) | `request.await` instead of `request.wait()` |
//! | `buffered_send`, `ready_send` | `send_async`, which copies what it cannot send at once |
//! | `try_..` | none: a wrong call panics when it is made or awaited |
//! | `send_receive` and its variants | `send_async` and `receive_async`, joined |
//! | communicators and topologies (`duplicate`, `split_..`, `create_..`), `migrate_to` | none |
//! | of windows everything except `allocate_window`, `fence`, `put`, `get`, `accumulate` and `free` | none |
//! | none | [`send_vec_async`](crate::point_to_point::AsyncDestination::send_vec_async), which owns what it sends and gives it back |
//!
//! Blocking ranks can await as well, through [`block_on`](crate::block_on): vrt's timers, or tokio's timers, sockets
//! and files.
//!
//! # Futures are not `Send`
//!
//! A rank's futures belong to its PE's thread and to the rank. They cannot be given to `tokio::spawn`, which wants
//! `Send`. Join them inside the rank (`tokio::join!`, `tokio::select!`, `FuturesUnordered`), or use
//! [`tokio::task::LocalSet`] inside [`block_on`](crate::block_on). `tokio::spawn` is for tasks that do not call vrt;
//! their results come back through a channel or a `JoinHandle`, which a rank can await.
//!
//! # What it means to drop a future
//!
//! A future does nothing before it is polled, and goes on only while it is polled: what has to happen at the same
//! time, such as a receive and the send that it answers, must be joined. It can be dropped at any time, in a `select!`
//! or by [`timeout`](crate::timeout()):
//!
//! - a dropped receive loses no message: one that has been matched already stays for the next receive;
//! - a dropped send goes on;
//! - the rank's part in a dropped collective operation goes on.
//!
//! A future can also be forgotten: the runtime never uses memory that the future borrows while it waits. That costs a
//! copy of what a collective operation uses, and of a long message that is sent and not received at once.
//! [`send_vec_async`](crate::point_to_point::AsyncDestination::send_vec_async), which owns its data, needs none.
//!
//! # Windows
//!
//! A [`Window`](crate::window::Window) is freed by all ranks together. In an async rank await its
//! [`free_async`](crate::window::Window::free_async). One that is dropped waits for nothing: the rank's part in
//! freeing it goes on beside what else the rank does.
//!
//! [`tokio::task::LocalSet`]: https://docs.rs/tokio/latest/tokio/task/struct.LocalSet.html
