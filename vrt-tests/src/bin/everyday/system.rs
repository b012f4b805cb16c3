//! Files and programs.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::process::{Command, Stdio};

use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

use crate::rounds::{Rounds, pass};

/// A log that is kept open over some rounds and read again, line by line, between messages.
pub(crate) fn files(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank();
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join(format!("log-{me}"));
    let mut written = 0;
    while let Some(round) = rounds.next() {
        let file = OpenOptions::new().create(true).append(true).open(&path).expect("it opens");
        let mut out = BufWriter::new(file);
        for _ in 0..3 {
            written += 1;
            writeln!(out, "line {written} of rank {me}").expect("it can be written");
            pass(world, &written);
        }
        drop(out);
        world.barrier();
        let lines = BufReader::new(File::open(&path).expect("it opens")).lines();
        let mut count = 0;
        for line in lines {
            let line = line.expect("it can be read");
            count += 1;
            assert_eq!(line, format!("line {count} of rank {me}"));
            if count == written / 2 {
                break;
            }
        }
        let mut file = File::open(&path).expect("it opens");
        file.seek(SeekFrom::Start(5)).expect("it is long enough");
        world.barrier();
        let mut first = [0];
        file.read_exact(&mut first).expect("it is long enough");
        assert_eq!(first, *b"1");
        drop(file);
        assert_eq!(fs::read_to_string(&path).expect("it opens").lines().count(), written);
        let entries = fs::read_dir(folder.path()).expect("it opens");
        pass(world, &round);
        assert_eq!(entries.count(), 1);
    }
}

/// Programs that are started, and what they print, asked for after a message.
pub(crate) fn commands(world: &SimpleCommunicator, rounds: &mut Rounds<'_>) {
    let me = world.rank();
    rounds.state::<()>();
    while let Some(round) = rounds.next_with(&mut ()) {
        let mut echo = Command::new("echo");
        echo.arg(format!("rank {me}")).stdout(Stdio::piped());
        let child = echo.spawn().expect("it starts");
        world.barrier();
        let output = child.wait_with_output().expect("it ends");
        pass(world, &round);
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("rank {me}\n"));
        let mut cat = Command::new("cat");
        let cat = cat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut cat = cat.expect("it starts");
        writeln!(cat.stdin.take().expect("a pipe"), "to {me}").expect("it can be written");
        world.barrier();
        let mut text = String::new();
        cat.stdout.take().expect("a pipe").read_to_string(&mut text).expect("it can be read");
        assert!(cat.wait().expect("it ends").success());
        assert_eq!(text, format!("to {me}\n"));
        let failed = Command::new("false").status().expect("it starts");
        pass(world, &round);
        assert_eq!(failed.code(), Some(1));
    }
}
