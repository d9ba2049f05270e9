//! Who holds a lock: the text in a lock file, and those who wait for it.
//!
//! Separate from `lock`, which takes the locks, because a caller of the store names itself in its
//! options and is told who it waits for.

use std::fmt;
use std::sync::Arc;

/// The length of the record of a holder, with the line feed at its end.
pub(crate) const HOLDER_BYTES: usize = 56;

/// A process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// The number of the process.
    pub process: u32,
    /// Its command, as it named itself.
    pub command: String,
}

/// A function that is called when a lock was not free for two seconds, with the process that holds
/// it; `None`: it left no record. The caller goes on waiting.
pub type WaitNotice = Arc<dyn Fn(Option<&LockHolder>) + Send + Sync>;

/// A program that asks for the locks of a store.
#[derive(Clone)]
pub struct LockRequester {
    /// The command, which others see while they wait for it.
    pub command: String,
    /// The function that is told of a wait.
    pub on_wait: Option<WaitNotice>,
}

impl Default for LockRequester {
    /// A nameless program that is not told of waits.
    fn default() -> LockRequester {
        LockRequester { command: "another program".into(), on_wait: None }
    }
}

impl fmt::Debug for LockRequester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockRequester").field("command", &self.command).finish_non_exhaustive()
    }
}

impl LockRequester {
    /// Returns the record of this process in a lock file: its number and its command, padded with
    /// spaces.
    pub(crate) fn to_record(&self) -> [u8; HOLDER_BYTES] {
        let mut record = [b' '; HOLDER_BYTES];
        record[HOLDER_BYTES - 1] = b'\n';
        let text = format!("{} {}", std::process::id(), self.command);
        let letters = text.bytes().filter(|byte| byte.is_ascii_graphic() || *byte == b' ');
        for (place, byte) in record.iter_mut().take(HOLDER_BYTES - 1).zip(letters) {
            *place = byte;
        }
        record
    }
}

impl LockHolder {
    /// Reads the record of a lock file; `None`: it is none.
    pub(crate) fn from_record(record: &[u8]) -> Option<LockHolder> {
        let text = std::str::from_utf8(record).ok()?.trim_end();
        let (process, command) = text.split_once(' ')?;
        let process = process.parse().ok()?;
        (!command.chars().any(char::is_control))
            .then(|| LockHolder { process, command: command.to_string() })
    }
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.command, self.process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_its_writer() {
        let check = |command: &str, expect: &str| {
            let requester = LockRequester { command: command.into(), on_wait: None };
            let record = requester.to_record();
            let holder = LockHolder::from_record(&record).expect("a record");
            assert_eq!((holder.process, &*holder.command), (std::process::id(), expect));
        };
        check("larder import", "larder import");
        check("tab\tand é.", "taband .");
        let long = "x".repeat(80);
        let requester = LockRequester { command: long, on_wait: None };
        let record = requester.to_record();
        assert_eq!(record.last(), Some(&b'\n'));
        assert!(LockHolder::from_record(&record).is_some_and(|holder| holder.command.len() > 40));
        for none in [&b""[..], b"larder", b"x larder", b"12 lar\x1bder", b"\xff 1"] {
            assert_eq!(LockHolder::from_record(none), None);
        }
        assert_eq!(
            LockHolder { process: 4711, command: "larder import".into() }.to_string(),
            "larder import (process 4711)"
        );
    }
}
