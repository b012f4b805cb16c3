//! The web page of a job: where it is found.

use std::net::TcpListener;

use vrt_slot::report::say;

/// The web page of a job, before it is served.
pub(super) struct Web {
    pub(super) listener: TcpListener,
    pub(super) token: String,
}

impl Web {
    /// Prints its address.
    pub(super) fn announce(listener: TcpListener) -> std::io::Result<Web> {
        let token = token()?;
        say(format_args!("the monitor is at http://{}/{token}/", listener.local_addr()?));
        Ok(Web { listener, token })
    }
}

/// A token that cannot be guessed.
fn token() -> std::io::Result<String> {
    let mut bytes = [0u8; 16];
    // SAFETY: the bytes are writable.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got != bytes.len() as isize {
        return Err(std::io::Error::last_os_error());
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
