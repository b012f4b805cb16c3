//! The small part of HTTP that serves a page: GET, one request per connection.
//!
//! Anybody on this machine may connect, with or without the token. So the number of connections is limited, and each
//! has little time and space for its request.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The most connections at a time; further ones are rejected.
const CONNECTIONS: usize = 16;
/// How long a client may take to send its request, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest request in bytes.
const LONGEST: u64 = 16 << 10;

/// What is requested.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
}

/// What is answered.
pub(super) struct Answer {
    pub(super) status: u32,
    pub(super) kind: &'static str,
    pub(super) text: String,
}

/// Answers every client, until the process ends.
pub(super) fn serve(
    listener: TcpListener,
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) {
    let (answer, open) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.set_write_timeout(Some(PATIENCE));
            if open.load(Ordering::Relaxed) >= CONNECTIONS {
                let text = "too many connections at a time\n".to_owned();
                let _ =
                    write_answer(&mut stream, &Answer { status: 503, kind: "text/plain", text });
                continue;
            }
            open.fetch_add(1, Ordering::Relaxed);
            let (answer, of_this) = (Arc::clone(&answer), Arc::clone(&open));
            let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
                // Whoever has gone meanwhile misses nothing.
                if let Ok(Some(request)) = read_request(&stream) {
                    let _ = write_answer(&mut stream, &answer(&request));
                }
                of_this.fetch_sub(1, Ordering::Relaxed);
            });
            if thread.is_err() {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    });
}

/// A stream that ends at a given time.
struct Until<'a>(&'a TcpStream, Instant);

impl Read for Until<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = self.1.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.0.set_read_timeout(Some(left))?;
        let mut stream = self.0;
        stream.read(to)
    }
}

fn read_request(stream: &TcpStream) -> io::Result<Option<Request>> {
    request_of(BufReader::new(Until(stream, Instant::now() + PATIENCE).take(LONGEST)))
}

/// The request; its headers are ignored.
fn request_of(mut lines: impl BufRead) -> io::Result<Option<Request>> {
    let mut first = String::new();
    lines.read_line(&mut first)?;
    let mut line = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line.trim_end().is_empty() {
            break;
        }
    }
    let words: Vec<&str> = first.split_whitespace().collect();
    let [method, path, version] = words[..] else { return Ok(None) };
    let is_request = version.starts_with("HTTP/1.") && path.starts_with('/');
    Ok(is_request.then(|| Request { method: method.to_owned(), path: path.to_owned() }))
}

fn write_answer(stream: &mut TcpStream, answer: &Answer) -> io::Result<()> {
    let Answer { status, kind, text } = answer;
    let reason = match status {
        200 => "OK",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        _ => "Service Unavailable",
    };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_far_as_they_matter() {
        let read = |text: &str| request_of(text.as_bytes()).unwrap();
        let get = |path: &str| Some(Request { method: "GET".to_owned(), path: path.to_owned() });
        assert_eq!(read("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), get("/"));
        assert_eq!(read("GET /a/b HTTP/1.0\n\n"), get("/a/b"));
        for text in ["", "GET / HTTP/1.1\r\nHost: a", "GET /\r\n\r\n", "a b c\r\n\r\n", "\r\n\r\n"]
        {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    /// With the maximum of connections open, none of which sends anything, another one is rejected and nothing waits
    /// for it.
    #[test]
    fn connections_that_say_nothing_are_few() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, |_| Answer { status: 200, kind: "text/plain", text: "here".to_owned() });
        let ask = || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            let mut text = String::new();
            // One that is sent away may hear of it as a reset.
            let _ = stream.read_to_string(&mut text);
            text
        };
        assert!(ask().ends_with("\r\n\r\nhere"));
        let silent: Vec<_> =
            (0..CONNECTIONS + 1).map(|_| TcpStream::connect(address).unwrap()).collect();
        let refused = ask();
        assert!(!refused.contains("200 OK"), "{refused}");
        drop(silent);
        // They are seen to have gone.
        while !ask().ends_with("here") {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
