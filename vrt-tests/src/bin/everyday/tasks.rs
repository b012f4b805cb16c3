//! tokio, in async ranks: tasks, timeouts, channels, files.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use vrt::collective::SystemOperation;
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

use crate::rounds::{Rounds, neighbours};

/// Gives a number to the next rank; returns what the one before gives.
async fn pass(world: &SimpleCommunicator, number: u64) -> u64 {
    let (next, previous) = neighbours(world);
    let (next, previous) = (world.process_at_rank(next), world.process_at_rank(previous));
    let (_, got) = tokio::join!(next.send_async(&number), previous.receive_async());
    got.0
}

/// Tasks that the rank spawns and waits for after a message; what they return is kept.
pub(crate) async fn tasks(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let mut kept: Vec<(u64, String)> = rounds.state();
    while let Some(round) = rounds.next_with_async(&mut kept).await {
        let task = tokio::spawn(async move {
            tokio::task::yield_now().await;
            format!("task of {me} in {round}")
        });
        let mut set = JoinSet::new();
        for i in 0..5u64 {
            set.spawn(async move {
                if i % 2 == 0 {
                    tokio::time::sleep(Duration::from_micros(100)).await;
                }
                vec![i * round; 10]
            });
        }
        let blocking = tokio::task::spawn_blocking(move || (0..round).sum::<u64>());
        pass(world, round).await;
        kept.push((round, task.await.expect("it ends well")));
        world.barrier_async().await;
        let mut sum = 0;
        while let Some(numbers) = set.join_next().await {
            sum += numbers.expect("it ends well").iter().sum::<u64>();
        }
        assert_eq!(sum, 100 * round);
        assert_eq!(blocking.await.expect("it ends well"), round * (round - 1) / 2);
        pass(world, me).await;
        assert!(kept.iter().all(|(round, text)| *text == format!("task of {me} in {round}")));
        if kept.len() > 5 {
            kept.remove(0);
        }
    }
}

/// Receives that are given up after a time and begun again: no message is lost.
pub(crate) async fn timeouts(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let (next, previous) = neighbours(world);
    let mut given_up: u64 = rounds.state();
    while let Some(round) = rounds.next_with_async(&mut given_up).await {
        let send = async {
            if world.rank() % 2 == 0 {
                tokio::time::sleep(Duration::from_micros(300)).await;
            }
            world.process_at_rank(next).send_with_tag_async(&round, 1).await;
        };
        let receive = async {
            loop {
                let previous = world.process_at_rank(previous);
                let message = previous.receive_with_tag_async::<u64>(1);
                if round % 2 == 0 {
                    match tokio::time::timeout(Duration::from_micros(50), message).await {
                        Ok((number, _)) => break number,
                        Err(_) => given_up += 1,
                    }
                } else {
                    tokio::select! {
                        (number, _) = message => break number,
                        () = vrt::sleep_async(Duration::from_micros(50)) => given_up += 1,
                    }
                }
            }
        };
        let ((), got) = tokio::join!(send, receive);
        assert_eq!(got, round);
        world.barrier_async().await;
    }
    let mut all = 0u64;
    world.all_reduce_into_async(&given_up, &mut all, SystemOperation::sum()).await;
    assert!(all > 0, "no timeout was seen");
}

/// Channels between a rank and its tasks, kept over messages.
pub(crate) async fn channels(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank() as u64;
    let (kept, mut to_itself) = mpsc::unbounded_channel::<Vec<u64>>();
    while let Some(round) = rounds.next_async().await {
        kept.send(vec![me, round]).expect("open");
        let (questions, mut asked) = mpsc::channel::<(u64, oneshot::Sender<String>)>(2);
        let (state, seen) = watch::channel(0u64);
        let server = tokio::spawn(async move {
            while let Some((number, answer)) = asked.recv().await {
                state.send(number).expect("somebody looks");
                answer.send(format!("answer to {number}")).expect("somebody waits");
            }
        });
        for number in 0..4 {
            let (answer, answered) = oneshot::channel();
            questions.send((number + round, answer)).await.expect("the server runs");
            if number % 2 == 0 {
                pass(world, round).await;
            }
            let answer = answered.await.expect("the server answers");
            assert_eq!(answer, format!("answer to {}", number + round));
        }
        assert_eq!(*seen.borrow(), 3 + round);
        world.barrier_async().await;
        drop((questions, seen));
        server.await.expect("it ends well");
        assert_eq!(to_itself.recv().await.expect("it was sent"), [me, round]);
        pass(world, me).await;
    }
}

/// Files that are written and read by tokio.
pub(crate) async fn files(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let me = world.rank() as u64;
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("file");
    while let Some(round) = rounds.next_async().await {
        let text = format!("rank {me} in round {round}\n").repeat(20);
        tokio::fs::write(&path, &text).await.expect("it can be written");
        pass(world, round).await;
        let read = tokio::fs::read_to_string(&path).await.expect("it can be read");
        world.barrier_async().await;
        assert_eq!(read, text);
        let mut file = tokio::fs::File::create(&path).await.expect("it can be made");
        file.write_all(b"first ").await.expect("it can be written");
        pass(world, me).await;
        file.write_all(b"second").await.expect("it can be written");
        file.flush().await.expect("it can be written");
        drop(file);
        let mut file = tokio::fs::File::open(&path).await.expect("it can be opened");
        let mut read = [0; 6];
        file.read_exact(&mut read).await.expect("it is long enough");
        world.barrier_async().await;
        let mut rest = String::new();
        file.read_to_string(&mut rest).await.expect("it can be read");
        assert_eq!((&read, &*rest), (b"first ", "second"));
    }
}
