//! The body of an answer, which is named in errors, counted, and watched.
//!
//! The download of a file that breaks off is continued where it ended, if the server takes
//! `Range` and says by an entity tag or a date that it still has the same file (RFC 9110, 13.1.5
//! and 14). An answer to a command is made for one request, and cannot be continued.

use super::speed_limit::{SpeedLimit, SpeedWindow};
use crate::received_bytes::ReceivedBytes;
use crate::revision::ChangeError;
use std::io::{self, Read};
use std::time::{Duration, Instant};
use ureq::Body;
use ureq::http::Response;

/// How often a download is continued.
const MAX_CONTINUATIONS: u32 = 10;

/// The most bytes that are read after the ones that a decoder needs.
const MAX_REST_BYTES: u64 = 1 << 14;

/// The limits after which a server counts as silent or too slow.
#[derive(Clone, Debug)]
pub(super) struct DownloadLimits {
    /// How long a server may be silent; the client ends the read after it.
    pub(super) timeout: Option<Duration>,
    pub(super) speed: Option<SpeedLimit>,
}

/// Asks for the rest of a file: from this byte on, if the file has this mark.
pub(super) type Continuation = Box<dyn FnMut(u64, &str) -> io::Result<Response<Body>> + Send>;

/// The body of an answer.
pub(super) struct Download {
    read: Box<dyn Read + Send>,
    url: String,
    received: ReceivedBytes,
    limits: DownloadLimits,
    window: SpeedWindow,
    /// The bytes before the next one.
    position: u64,
    /// The bytes in all, if the server says so.
    total: Option<u64>,
    /// The entity tag or date of the file, and the request for the rest of it.
    rest: Option<(String, Continuation)>,
    continuations: u32,
    /// Whether nothing more can be read.
    is_broken: bool,
}

impl Drop for Download {
    /// Reads the last bytes, which a decoder may not want: a connection that is closed before them
    /// looks broken to the server.
    fn drop(&mut self) {
        if !self.is_broken {
            let mut rest = (&mut self.read).take(MAX_REST_BYTES);
            let _read = io::copy(&mut rest, &mut io::sink());
        }
    }
}

impl Download {
    /// Takes the body of an answer. Without a `continuation` its end is final.
    pub(super) fn new(
        response: Response<Body>,
        url: &str,
        received: ReceivedBytes,
        limits: DownloadLimits,
        continuation: Option<Continuation>,
    ) -> Download {
        // Positions in an encoded file are not those of its bytes here.
        let is_plain = header(&response, "content-encoding").is_none();
        let mark = find_mark(&response).filter(|_| is_plain);
        let total = header(&response, "content-length").filter(|_| is_plain);
        let total = total.and_then(|len| len.parse().ok());
        Download {
            read: Box::new(into_reader(response)),
            url: url.to_owned(),
            received,
            limits,
            window: SpeedWindow::default(),
            position: 0,
            total,
            rest: mark.zip(continuation),
            continuations: 0,
            is_broken: false,
        }
    }

    fn read_once(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let begin = Instant::now();
        let count = self.read.read(buffer).map_err(|error| self.name_error(&error))?;
        let is_short = self.total.is_some_and(|total| self.position + (count as u64) < total);
        if count == 0 && !buffer.is_empty() && is_short {
            return Err(self.name_error(&io::ErrorKind::UnexpectedEof.into()));
        }
        if let Some(limit) = self.limits.speed
            && count > 0
            && self.window.is_too_slow(count, begin.elapsed(), limit)
        {
            let SpeedLimit { bytes_per_second, time } = limit;
            let seconds = time.as_secs();
            let what = format!(
                "{}: less than {bytes_per_second} bytes a second arrived for {seconds} seconds",
                self.url
            );
            return Err(new_error(io::ErrorKind::TimedOut, what));
        }
        Ok(count)
    }

    /// Names the URL, and says what happened in the same words for all forms of answers.
    fn name_error(&self, error: &io::Error) -> io::Error {
        let got = self.position;
        let (kind, what) = match find_kind(error) {
            kind @ io::ErrorKind::TimedOut => match self.limits.timeout {
                Some(time) => {
                    (kind, format!("the server was silent for {} seconds", time.as_secs_f32()))
                }
                None => (kind, "the server was silent for too long".to_owned()),
            },
            kind @ io::ErrorKind::UnexpectedEof => match self.total {
                Some(total) => (kind, format!("the connection ended after {got} of {total} bytes")),
                None => (kind, format!("the connection ended early, after {got} bytes")),
            },
            kind => (kind, error.to_string()),
        };
        new_error(kind, format!("{}: {what}", self.url))
    }

    /// Asks for the rest after an error. Returns false if the server does not give it.
    fn continue_file(&mut self) -> bool {
        let Some((mark, ask)) = &mut self.rest else { return false };
        if self.continuations == MAX_CONTINUATIONS {
            return false;
        }
        self.continuations += 1;
        let Ok(response) = ask(self.position, mark) else { return false };
        let range = header(&response, "content-range").unwrap_or_default();
        let is_rest = range.starts_with(&format!("bytes {}-", self.position));
        if response.status().as_u16() != 206 || !is_rest {
            return false;
        }
        self.window = SpeedWindow::default();
        self.read = Box::new(into_reader(response));
        true
    }
}

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.read_once(buffer) {
                Ok(count) => {
                    self.position += count as u64;
                    self.received.add(count);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let is_broken = error.kind() != io::ErrorKind::TimedOut;
                    if !is_broken || !self.continue_file() {
                        self.is_broken = true;
                        return Err(error);
                    }
                }
            }
        }
    }
}

/// Returns the kind of an error; all ends of a connection are `UnexpectedEof`.
fn find_kind(error: &io::Error) -> io::ErrorKind {
    let client = error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>());
    let kind = match client {
        Some(ureq::Error::Timeout(_)) => io::ErrorKind::TimedOut,
        Some(ureq::Error::Io(error)) => error.kind(),
        _ => error.kind(),
    };
    match kind {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut,
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => io::ErrorKind::UnexpectedEof,
        kind => kind,
    }
}

/// Makes an error whose words a decoder passes on.
fn new_error(kind: io::ErrorKind, what: String) -> io::Error {
    io::Error::new(kind, ChangeError::Read(io::Error::new(kind, what)))
}

fn into_reader(response: Response<Body>) -> impl Read + Send + 'static {
    response.into_body().into_with_config().limit(u64::MAX).reader()
}

fn header<'r>(response: &'r Response<Body>, name: &str) -> Option<&'r str> {
    response.headers().get(name).and_then(|value| value.to_str().ok())
}

/// Returns the entity tag of a file, if it stands for the same bytes, or its date.
fn find_mark(response: &Response<Body>) -> Option<String> {
    let tag = header(response, "etag").filter(|tag| tag.starts_with('"'));
    tag.or_else(|| header(response, "last-modified")).map(str::to_owned)
}
