//! The monitor's process: it answers on its sockets until the job has ended.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::http::{Answer, Request, serve};
use super::snapshot::Looking;
use super::web::Web;
use crate::waits;
use vrt_core::pe::Looker;

const PAGE: &str = include_str!("page.html");
/// Requests within this time get the same answer.
const FRESH: Duration = Duration::from_millis(200);

/// How many of this user's programs may be connected at a time; for further ones the job appears to have ended.
const LOOKERS: usize = 64;

/// A request to the monitor.
enum Question {
    Shot(Sender<String>),
    /// Print the table of what each rank waits for.
    Signal,
}

/// Runs the monitor of a job that a process supervises, in a separate process with one thread. It ends with the job:
/// the caller has arranged that, or it ends when `signals` is closed. Each byte from `signals` requests the table of
/// what each rank waits for.
pub(super) fn live(
    supervisor: u32,
    looker: &Looker,
    socket: Option<UnixListener>,
    web: Option<Web>,
    signals: Option<UnixStream>,
) -> ! {
    // SAFETY: plain system calls in a process with one thread.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"vrt-monitor".as_ptr());
        // Ctrl-C is the supervisor's.
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
    let (questions, asked) = channel();
    if let Some(Web { listener, token }) = web {
        let questions = questions.clone();
        serve(listener, move |request| answer_to(request, &token, || ask(&questions)));
    }
    if let Some(signals) = signals {
        serve_signals(signals, questions.clone());
    }
    if let Some(socket) = socket {
        serve_socket(socket, questions);
    }
    let command: Vec<_> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let print = || waits::print(looker);
    answer(Looking::at(looker.clone(), supervisor, command.join(" ")), print, &asked);
    // SAFETY: destructors would be those of the supervisor's image.
    unsafe { libc::_exit(0) }
}

/// A snapshot of the job now; `None`: the job has ended.
fn ask(questions: &Sender<Question>) -> Option<String> {
    let (reply, replied) = channel();
    questions.send(Question::Shot(reply)).ok()?;
    replied.recv().ok()
}

fn serve_signals(mut signals: UnixStream, questions: Sender<Question>) {
    std::thread::spawn(move || {
        while matches!(signals.read(&mut [0]), Ok(1)) && questions.send(Question::Signal).is_ok() {}
        // SAFETY: it ends without destructors, which are the parent's.
        unsafe { libc::_exit(0) }
    });
}

fn serve_socket(socket: UnixListener, questions: Sender<Question>) {
    std::thread::spawn(move || {
        let open = Arc::new(AtomicUsize::new(0));
        for stream in socket.incoming().flatten().filter(is_of_this_user) {
            if open.load(Ordering::Relaxed) >= LOOKERS {
                continue;
            }
            open.fetch_add(1, Ordering::Relaxed);
            let (questions, open) = (questions.clone(), Arc::clone(&open));
            std::thread::spawn(move || {
                serve_stream(&stream, &questions);
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
}

/// Answers each line received with a line of JSON.
fn serve_stream(stream: &UnixStream, questions: &Sender<Question>) {
    for line in BufReader::new(stream).lines() {
        if line.is_err() {
            return;
        }
        let Some(text) = ask(questions) else { return };
        let mut stream = stream;
        if stream.write_all(text.as_bytes()).and_then(|()| stream.write_all(b"\n")).is_err() {
            return;
        }
    }
}

/// Whether the client is this user, or root.
fn is_of_this_user(stream: &UnixStream) -> bool {
    let mut peer = libc::ucred { pid: 0, uid: libc::uid_t::MAX, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the call writes at most so many bytes to `peer`.
    unsafe {
        let known = libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut size,
        );
        known == 0 && (peer.uid == libc::geteuid() || peer.uid == 0)
    }
}

fn answer(mut looking: Looking, print: impl Fn(), asked: &Receiver<Question>) {
    let mut last: Option<(Instant, String)> = None;
    let mut look = || {
        if let Some((at, text)) = &last
            && at.elapsed() < FRESH
        {
            return text.clone();
        }
        let text = looking.look().json();
        last = Some((Instant::now(), text.clone()));
        text
    };
    for question in asked {
        // Whoever has gone meanwhile misses nothing.
        let _ = match question {
            Question::Shot(reply) => reply.send(look()).map_err(|_| ()),
            Question::Signal => {
                print();
                Ok(())
            }
        };
    }
}

fn answer_to(request: &Request, token: &str, look: impl Fn() -> Option<String>) -> Answer {
    let wanted = request.path.strip_prefix('/').and_then(|path| path.split_once('/'));
    let (status, kind, text) = match wanted {
        Some((given, _)) if given != token => (403, "text/plain", REFUSED.to_owned()),
        None => (403, "text/plain", REFUSED.to_owned()),
        _ if request.method != "GET" => (405, "text/plain", "only GET\n".to_owned()),
        Some((_, "")) => (200, "text/html", vrt_trace::page::of(PAGE)),
        Some((_, "snapshot")) => match look() {
            Some(text) => (200, "application/json", text),
            None => (503, "text/plain", "the job is over\n".to_owned()),
        },
        Some(_) => (404, "text/plain", "there is no such page\n".to_owned()),
    };
    Answer { status, kind, text }
}

const REFUSED: &str =
    "the address has to have the job's token, as the job has said when it began\n";
