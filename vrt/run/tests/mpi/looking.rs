//! Inspects a job started by a launcher: `vrtrun top`, `--monitor`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use vrt_launch::monitor::{Connection, Snapshot};
use vrt_tests::running::until;

use crate::program::Program;
use crate::{VRTRUN, command, job, says};

const TOKEN: Program = Program::new("token.c");
const RANKS: u32 = 8;

/// A job that runs until it is told to end.
struct Running {
    child: Child,
    said: Arc<Mutex<String>>,
    folder: TempDir,
}

impl Running {
    fn start(options: &str) -> Running {
        let folder = TempDir::new().unwrap();
        let end = folder.path().join("end");
        let started = format!(
            "-n 2 {VRTRUN} --ranks {RANKS} {options} {} {}",
            TOKEN.file().display(),
            end.display()
        );
        let mut child =
            command(&started).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        // A launcher may show everything on its own standard output.
        let streams: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for stream in streams {
            let said = Arc::clone(&said);
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    *said.lock().unwrap() += &format!("{line}\n");
                }
            });
        }
        Running { child, said, folder }
    }

    #[track_caller]
    fn says(&self, text: &str) -> String {
        until(text, || self.said.lock().unwrap().contains(text));
        let said = self.said.lock().unwrap();
        let (_, rest) = said.split_once(text).unwrap();
        rest.lines().next().unwrap().to_owned()
    }

    #[track_caller]
    fn end(mut self) {
        fs::write(self.folder.path().join("end"), "").unwrap();
        assert!(self.child.wait().unwrap().success(), "{}", self.said.lock().unwrap());
    }
}

fn snapshot(host: &str, path: &str) -> Snapshot {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path}snapshot HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(body).unwrap()
}

/// On one node the page shows everything; with two nodes it shows PE 0's, and each node has a process that `top` finds.
#[test]
fn its_pes_and_ranks_are_seen() {
    for (nodes, pes) in [("", 2), ("--node-size 1", 1)] {
        let job = Running::start(&format!("{nodes} --monitor 0"));
        let address = job.says("the monitor is at http://");
        let (host, path) = address.split_once('/').unwrap();
        until("all ranks", || snapshot(host, path).ranks.len() as u32 == RANKS / 2 * pes as u32);
        let first = snapshot(host, path);
        assert_eq!((first.pes.len(), first.unseen_pes), (pes, 2 - pes), "{first:?}");
        assert_eq!((first.number_of_ranks, first.ended), (RANKS, 0), "{first:?}");
        until("messages", || snapshot(host, path).messages > first.messages);
        for (number, pe) in first.pes.iter().enumerate() {
            assert!(pe.pe as usize == number && pe.process > 0, "{pe:?}");
        }
        let seen = Connection::to(first.process).unwrap().look().unwrap();
        assert_eq!((seen.pes.len(), seen.process), (pes, first.pes[0].process), "{seen:?}");

        // Launchers pass the signal on to all, so the others take it, too.
        for pe in &first.pes {
            let kill = Command::new("kill").args(["-USR1", &pe.process.to_string()]).status();
            assert!(kill.unwrap().success(), "{pe:?}");
        }
        job.says(" run or could, ");

        let other =
            crate::job(&format!("-n 1 {VRTRUN} --monitor {host} {} none", TOKEN.file().display()));
        assert_ne!(other.status, Some(0), "{other}");
        says(&other, &[&format!("--monitor {host}: Address already in use")]);
        job.end();
        assert!(TcpStream::connect(host).is_err(), "nobody listens when the job is over");
    }
}

/// The process that might have become a monitor ends with the job, even if nobody inspected the job.
#[test]
fn nothing_is_left_of_a_job_that_nobody_has_looked_at() {
    let end = TempDir::new().unwrap();
    let file = end.path().join("end");
    fs::write(&file, "").unwrap();
    let job =
        job(&format!("-n 2 {VRTRUN} --ranks 4 {} {}", TOKEN.file().display(), file.display()));
    assert_eq!(job.status, Some(0), "{job}");
    let mark = file.display().to_string();
    until("the processes are gone", || {
        !fs::read_dir("/proc").unwrap().flatten().any(|process| {
            let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains(&mark)
        })
    });
}
