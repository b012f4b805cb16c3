//! The monitor's process: it answers on its sockets until the job is over.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tiny_http::{Header, Method, Request, Response, Server};

use super::Web;
use super::snapshot::Looking;
use crate::waits;
use vrt_core::pe::Looker;
use vrt_slot::report::say;

const PAGE: &str = include_str!("page.html");
/// Several who look get the same within this time.
const FRESH: Duration = Duration::from_millis(200);

/// Somebody wants to know.
enum Question {
    Browser(Box<Request>),
    Socket(Sender<String>),
    /// The table of who waits for what is to be printed.
    Signal,
}

/// A token that nobody guesses.
pub(super) fn token() -> std::io::Result<String> {
    let mut bytes = [0u8; 16];
    // SAFETY: the bytes are writable.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got != bytes.len() as isize {
        return Err(std::io::Error::last_os_error());
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Lives as the monitor of a job that a process answers for, in a process of its own with one thread, which ends with
/// the job: the caller has seen to that, or it is over when `signals` is closed. Each byte from there has the table of
/// who waits for what printed.
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
    let token = web.as_ref().map(|web| web.token.clone()).unwrap_or_default();
    if let Some(Web { listener, .. }) = web {
        match Server::from_listener(listener, None) {
            Ok(server) => serve_browsers(server, questions.clone()),
            Err(error) => say(format_args!("--monitor: {error}")),
        }
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
    answer(Looking::at(looker.clone(), supervisor, command.join(" ")), print, &token, &asked);
    // SAFETY: destructors would be those of the supervisor's image.
    unsafe { libc::_exit(0) }
}

fn serve_browsers(server: Server, questions: Sender<Question>) {
    std::thread::spawn(move || {
        for request in server.incoming_requests() {
            if questions.send(Question::Browser(Box::new(request))).is_err() {
                return;
            }
        }
    });
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
        for stream in socket.incoming().flatten().filter(is_of_this_user) {
            let questions = questions.clone();
            std::thread::spawn(move || serve_stream(&stream, &questions));
        }
    });
}

/// A line of JSON for each line that comes.
fn serve_stream(stream: &UnixStream, questions: &Sender<Question>) {
    for line in BufReader::new(stream).lines() {
        let (reply, replied) = channel();
        if line.is_err() || questions.send(Question::Socket(reply)).is_err() {
            return;
        }
        let Ok(text) = replied.recv() else { return };
        let mut stream = stream;
        if stream.write_all(text.as_bytes()).and_then(|()| stream.write_all(b"\n")).is_err() {
            return;
        }
    }
}

/// Whether who has connected is this user, or root.
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

fn answer(mut looking: Looking, print: impl Fn(), token: &str, asked: &Receiver<Question>) {
    let mut last: Option<(Instant, String)> = None;
    let mut look = || {
        if let Some((at, text)) = &last
            && at.elapsed() < FRESH
        {
            return text.clone();
        }
        let text = serde_json::to_string(&looking.look()).unwrap_or_default();
        last = Some((Instant::now(), text.clone()));
        text
    };
    for question in asked {
        // Whoever has gone meanwhile misses nothing.
        let _ = match question {
            Question::Socket(reply) => reply.send(look()).map_err(|_| ()),
            Question::Browser(request) => reply_to(*request, token, &mut look).map_err(|_| ()),
            Question::Signal => {
                print();
                Ok(())
            }
        };
    }
}

fn reply_to(
    request: Request,
    token: &str,
    look: &mut impl FnMut() -> String,
) -> std::io::Result<()> {
    let wanted = request.url().strip_prefix('/').and_then(|path| path.split_once('/'));
    let (status, kind, text) = match wanted {
        Some((given, _)) if given != token => (403, "text/plain", REFUSED.to_owned()),
        None => (403, "text/plain", REFUSED.to_owned()),
        _ if *request.method() != Method::Get => (405, "text/plain", "only GET\n".to_owned()),
        Some((_, "")) => (200, "text/html", PAGE.to_owned()),
        Some((_, "snapshot")) => (200, "application/json", look()),
        Some(_) => (404, "text/plain", "there is no such page\n".to_owned()),
    };
    let kind = format!("{kind}; charset=utf-8");
    let headers = [
        ("Content-Type", kind.as_str()),
        ("Cache-Control", "no-store"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Content-Type-Options", "nosniff"),
    ];
    let mut response = Response::from_string(text).with_status_code(status);
    for (name, value) in headers {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    request.respond(response)
}

const REFUSED: &str =
    "the address has to have the job's token, as the job has said when it began\n";
