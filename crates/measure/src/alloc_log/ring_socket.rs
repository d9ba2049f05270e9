//! The socket to which recorded processes send their rings, and its messages.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg, sockopt,
};
use std::fs::Permissions;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time within which the message of a connection has to arrive.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest path of a socket.
const MAX_PATH_BYTES: usize = 107;
/// The length of the name of a socket.
const SOCKET_NAME_BYTES: usize = 16;
/// The longest message with a ring.
const MAX_MESSAGE_BYTES: usize = 2048;

/// Creates a folder for a socket: in the temporary folder, or where that has too long a path for a
/// socket, in `/tmp`.
pub(super) fn socket_folder() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("larder-record.");
    let folder = builder.tempdir()?;
    if folder.path().as_os_str().len() + 1 + SOCKET_NAME_BYTES <= MAX_PATH_BYTES {
        return Ok(folder);
    }
    // Where there is no such folder, a shorter name may fit.
    Ok(builder.tempdir_in("/tmp").unwrap_or(folder))
}

/// Listens at a socket in a folder. A program that has given up its rights may send its ring, too:
/// so all users may pass the folder, in which they see no names, and the name is known only to
/// programs that have it in their environment. The kernel lists the one of before.
fn listen(folder: &Path) -> io::Result<(UnixListener, PathBuf)> {
    let first = folder.join("rings");
    let listener = UnixListener::bind(&first).map_err(|error| {
        let hint = "TMPDIR names another folder for it";
        io::Error::new(error.kind(), format!("{}: {error}; {hint}", first.display()))
    })?;
    let name = RandomState::new().hash_one(0);
    let socket = folder.join(format!("{name:0width$x}", width = SOCKET_NAME_BYTES));
    // Where the path is too long for that, the rings of other users are not recorded.
    if socket.as_os_str().len() > MAX_PATH_BYTES {
        return Ok((listener, first));
    }
    std::fs::rename(first, &socket)?;
    std::fs::set_permissions(&socket, Permissions::from_mode(0o666))?;
    std::fs::set_permissions(folder, Permissions::from_mode(0o711))?;
    Ok((listener, socket))
}

/// The message of a process.
pub(super) enum RingMessage {
    Ring(SentRing),
    Failure(RingFailure),
    LostRing(LostRing),
}

/// A process that could not make a ring.
pub(super) struct RingFailure {
    pub(super) pid: u32,
    /// The path of the program.
    pub(super) executable: String,
    /// The inode of the ring of its parent, and the number of the fork there; 0: it began with
    /// exec.
    pub(super) parent_ring: u64,
    pub(super) fork_number: u32,
}

/// A ring that was sent, but could not be received: this process has as many files open as it may.
pub(super) struct LostRing {
    pub(super) pid: u32,
    /// The path of the program.
    pub(super) executable: String,
}

/// A ring that a process has sent.
pub(super) struct SentRing {
    pub(super) ring: OwnedFd,
    /// The process id as this process sees it.
    pub(super) pid: u32,
    /// The path of the program.
    pub(super) executable: String,
    /// The command line, as far as it was sent.
    pub(super) arguments: Vec<String>,
}

/// The socket to which processes send their rings.
pub(super) struct RingSocket {
    listener: UnixListener,
    /// Connections whose messages have not arrived.
    connections: Vec<RingConnection>,
    /// The failure to accept the next one.
    accept_failure: Option<io::Error>,
    /// The first such failure.
    first_failure: Option<String>,
}

impl RingSocket {
    /// Listens in a folder; returns the path of the socket, too.
    pub(super) fn listen(folder: &Path) -> io::Result<(RingSocket, PathBuf)> {
        let (listener, path) = listen(folder)?;
        listener.set_nonblocking(true)?;
        let (connections, accept_failure, first_failure) = (Vec::new(), None, None);
        Ok((RingSocket { listener, connections, accept_failure, first_failure }, path))
    }

    /// Returns the messages that have arrived.
    pub(super) fn receive(&mut self) -> Vec<RingMessage> {
        self.accept();
        let mut messages = Vec::new();
        for connection in std::mem::take(&mut self.connections) {
            if connection.is_silent() {
                self.connections.push(connection);
            } else {
                messages.extend(connection.receive());
            }
        }
        messages
    }

    fn accept(&mut self) {
        self.accept_failure = loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.connections.push(RingConnection::new(stream)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break None,
                Err(error) => break Some(error),
            }
        };
        if let Some(error) = &self.accept_failure {
            self.first_failure.get_or_insert_with(|| error.to_string());
        }
    }

    /// Returns whether a message is about to arrive.
    pub(super) fn is_message_due(&self) -> bool {
        !self.connections.is_empty()
    }

    /// Returns the event that a process connects; `None` while a connection cannot be accepted,
    /// which would end each sleep.
    pub(super) fn connection_event(&self) -> Option<PollFd<'_>> {
        self.accept_failure.is_none().then(|| PollFd::new(&self.listener, PollFlags::IN))
    }

    /// Returns the first failure to accept a connection.
    pub(super) fn into_failure(self) -> Option<String> {
        self.first_failure
    }
}

/// A connection of a process that is about to send its ring.
struct RingConnection {
    stream: UnixStream,
    limit: Instant,
}

impl RingConnection {
    fn new(stream: UnixStream) -> RingConnection {
        RingConnection { stream, limit: Instant::now() + MESSAGE_TIMEOUT }
    }

    /// Returns whether the message has arrived, or the connection is closed.
    fn is_readable(&self) -> bool {
        let mut events = [PollFd::new(&self.stream, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut events, Some(&now)), Ok(count) if count > 0)
    }

    /// Returns whether its message still has to be waited for: it was usually sent before the
    /// connection was accepted, but a process may have been stopped in between.
    fn is_silent(&self) -> bool {
        !self.is_readable() && Instant::now() < self.limit
    }

    /// Receives the message, if it has arrived.
    fn receive(self) -> Option<RingMessage> {
        receive_message(&self.stream)
    }
}

fn receive_message(stream: &UnixStream) -> Option<RingMessage> {
    let mut data = vec![0; MAX_MESSAGE_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut messages = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(stream, &mut [IoSliceMut::new(&mut data)], &mut messages, flags).ok()?;
    let mut descriptors = messages.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let ring = descriptors.next().and_then(|mut descriptors| descriptors.next());
    let peer = sockopt::socket_peercred(stream).ok()?.pid;
    let pid = peer.as_raw_nonzero().get().cast_unsigned();
    data.truncate(received.bytes);
    if ring.is_none() && received.flags.contains(ReturnFlags::CTRUNC) {
        let executable = data.split(|byte| *byte == 0).next().unwrap_or_default();
        let executable = String::from_utf8_lossy(executable).into_owned();
        return Some(RingMessage::LostRing(LostRing { pid, executable }));
    }
    let Some(ring) = ring else {
        // One that only wakes sends nothing.
        let (parent_ring, data) = data.split_first_chunk::<8>()?;
        let (number, executable) = data.split_first_chunk::<8>()?;
        let fork_number = u64::from_le_bytes(*number);
        return Some(RingMessage::Failure(RingFailure {
            pid,
            executable: String::from_utf8_lossy(executable).into_owned(),
            parent_ring: u64::from_le_bytes(*parent_ring),
            fork_number: u32::try_from(fork_number).ok()?,
        }));
    };
    let text = String::from_utf8_lossy(&data).into_owned();
    let mut texts = text.split_terminator('\0').map(String::from);
    Some(RingMessage::Ring(SentRing {
        ring,
        pid,
        executable: texts.next().unwrap_or_default(),
        arguments: texts.collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_cannot_be_made_is_named() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a".repeat(100));
        std::fs::create_dir(&folder).unwrap();
        let error = RingSocket::listen(&folder).err().unwrap().to_string();
        assert!(error.starts_with(&folder.display().to_string()), "{error}");
        assert!(error.ends_with("TMPDIR names another folder for it"), "{error}");
        let folder = socket_folder().unwrap();
        RingSocket::listen(folder.path()).unwrap();
    }
}
