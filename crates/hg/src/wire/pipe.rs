//! The protocol over the pipes of `hg serve --stdio`, through ssh.
//!
//! A command is a line with its name, then each argument: a line with its name and length, and its
//! value. An answer is a line with its length, and its bytes; a bundle comes without a length. An
//! empty line in place of a length says that the message is on standard error, up to a line with a
//! hyphen. See `mercurial/sshpeer.py` and `mercurial/wireprotoserver.py` of Mercurial.

use super::capabilities::Capabilities;
use super::command::WireCommand;
use super::ssh_location::SshLocation;
use super::transport::{ANSWER_LIMIT_BYTES, Transport};
use super::wire_peer::WirePeer;
use crate::bundle::ByteStream;
use crate::byte_reader::{fill, read_bytes};
use crate::received_bytes::{CountedStream, ReceivedBytes};
use crate::revision::ChangeError;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Nodes in the arguments of one command; these have no limit of size.
const NODE_LIMIT: usize = 1 << 16;

/// The most lines before the server's greeting, such as a message of the day.
const MAX_BANNER_LINES: usize = 500;

/// The longest line that is read, and kept of standard error.
const LINE_LIMIT_BYTES: u64 = 1 << 16;

/// How many lines of standard error are kept for messages.
const KEPT_LINES: usize = 20;

/// How long a message on standard error is waited for.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// Is called with each line that the server writes to standard error, from another thread.
pub type ServerOutput = Box<dyn FnMut(&[u8]) + Send>;

/// The program that connects to other machines.
#[derive(Clone, Debug)]
pub enum SshCommand {
    /// A program, as in git's `GIT_SSH`.
    Program(OsString),
    /// A command of the shell, as in git's `GIT_SSH_COMMAND` and `core.sshCommand`.
    Shell(OsString),
}

/// A server that is run as a child process.
pub struct PipeServer {
    command: Command,
}

impl PipeServer {
    /// Serves a repository of another machine, by the command `hg` there.
    pub fn ssh(ssh: &SshCommand, hg: &str, location: &SshLocation) -> PipeServer {
        let mut command = match ssh {
            SshCommand::Program(program) => Command::new(program),
            SshCommand::Shell(text) => {
                let mut line = text.clone();
                line.push(" \"$@\"");
                let mut command = Command::new("sh");
                command.arg("-c").arg(line).arg(text);
                command
            }
        };
        if let Some(port) = location.port {
            command.arg("-p").arg(port.to_string());
        }
        command.arg(location.target());
        command.arg(format!("{hg} -R {} serve --stdio", quote(&location.path)));
        PipeServer { command }
    }
}

/// Quotes a word for a shell, as Mercurial does: words that need no quotes stay.
fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%_-+=:,./".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Starts a server, and connects to it.
pub fn connect_pipe(server: PipeServer, output: ServerOutput) -> Result<WirePeer, ChangeError> {
    let transport = PipeTransport::start(server, output)?;
    Ok(WirePeer::new(Box::new(transport)))
}

/// The standard error of a server.
#[derive(Default)]
struct Messages {
    lines: VecDeque<String>,
    /// Whether there will be no more, or the line with a hyphen that ends a message was read.
    is_complete: bool,
}

/// The messages, which a thread reads.
#[derive(Clone, Default)]
struct MessageReader(Arc<(Mutex<Messages>, Condvar)>);

impl MessageReader {
    fn lock(&self) -> MutexGuard<'_, Messages> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads lines until there are no more.
    fn run(&self, stderr: ChildStderr, mut output: ServerOutput) {
        let mut read = BufReader::new(stderr);
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = read.by_ref().take(LINE_LIMIT_BYTES).read_until(b'\n', &mut line);
            let text = line.trim_ascii_end();
            let is_end = !matches!(count, Ok(1..));
            let mut messages = self.lock();
            if is_end || text == b"-" {
                messages.is_complete = true;
            } else {
                messages.lines.push_back(String::from_utf8_lossy(text).into_owned());
                if messages.lines.len() > KEPT_LINES {
                    messages.lines.pop_front();
                }
            }
            drop(messages);
            self.0.1.notify_all();
            if is_end {
                return;
            }
            if text != b"-" {
                output(text);
            }
        }
    }

    /// Returns the last lines, once they are complete.
    fn take(&self) -> String {
        let is_incomplete = |messages: &mut Messages| !messages.is_complete;
        let waited = self.0.1.wait_timeout_while(self.lock(), MESSAGE_TIMEOUT, is_incomplete);
        let (mut messages, _) = waited.unwrap_or_else(PoisonError::into_inner);
        Vec::from(std::mem::take(&mut messages.lines)).join("\n")
    }

    /// Returns the error of a server that refused a command.
    fn refusal(&self) -> ChangeError {
        ChangeError::Aborted { message: self.take() }
    }

    /// Returns the error of a connection that ended where more had to come. Without Mercurial's
    /// word for its errors, the lines may be those of ssh, or of a shell on this side.
    fn early_end(&self) -> ChangeError {
        const SERVER_ERROR: &str = "abort: ";
        let message = match self.take() {
            text if text.lines().any(|line| line.starts_with(SERVER_ERROR)) => {
                let message = format!("the connection ended early: {text}");
                return ChangeError::Aborted { message };
            }
            text if text.is_empty() => "the connection to the server ended early".to_owned(),
            text => format!("the connection to the server ended early: {text}"),
        };
        ChangeError::Read(io::Error::new(io::ErrorKind::ConnectionAborted, message))
    }
}

/// The standard output of a server.
type ServerPipe = BufReader<CountedStream<ChildStdout>>;

/// The pipes of a server.
struct PipeTransport {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<ServerPipe>,
    received: ReceivedBytes,
    messages: MessageReader,
    capabilities: Capabilities,
}

impl PipeTransport {
    fn start(server: PipeServer, output: ServerOutput) -> Result<PipeTransport, ChangeError> {
        let mut command = server.command;
        command.env("HGPLAIN", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            let program = command.get_program().display();
            io::Error::new(error.kind(), format!("{program} cannot be run: {error}"))
        })?;
        let messages = MessageReader::default();
        if let Some(stderr) = child.stderr.take() {
            let messages = messages.clone();
            std::thread::spawn(move || messages.run(stderr, output));
        }
        let input = child.stdin.take();
        let received = ReceivedBytes::default();
        let count = |stdout| BufReader::new(CountedStream::new(stdout, received.clone()));
        let stdout = child.stdout.take().map(count);
        let capabilities = Capabilities::default();
        let mut transport =
            PipeTransport { child, input, output: stdout, received, messages, capabilities };
        transport.greet()?;
        Ok(transport)
    }

    /// Asks for the capabilities, and finds them after whatever a shell prints. The answer to the
    /// second command tells where that ends, also on servers that do not know the first one.
    fn greet(&mut self) -> Result<(), ChangeError> {
        let null = "0".repeat(40);
        self.send(format!("hello\nbetween\npairs 81\n{null}-{null}").as_bytes())?;
        let mut is_after_one = false;
        for _ in 0..MAX_BANNER_LINES {
            let line = self.read_line()?;
            if is_after_one && line.is_empty() {
                return Ok(());
            }
            is_after_one = line == b"1";
            if let Some(words) = line.strip_prefix(b"capabilities:") {
                self.capabilities = Capabilities::parse(words);
            }
        }
        Err(ChangeError::new_not_mercurial("the program at the other end is not Mercurial"))
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), ChangeError> {
        let input = self.input.as_mut().ok_or_else(|| self.messages.early_end())?;
        let sent = input.write_all(bytes).and_then(|()| input.flush());
        sent.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => self.messages.early_end(),
            _ => error.into(),
        })
    }

    /// Writes a command with its arguments in the order that the server knows.
    fn send_command(&mut self, command: &WireCommand) -> Result<(), ChangeError> {
        let mut bytes = format!("{}\n", command.name).into_bytes();
        let mut write = |name: &str, value: &[u8]| {
            bytes.extend(format!("{name} {}\n", value.len()).into_bytes());
            bytes.extend_from_slice(value);
        };
        command.arguments.iter().for_each(|(name, value)| write(name, value));
        if let Some(options) = &command.options {
            bytes.extend(format!("* {}\n", options.len()).into_bytes());
            for (name, value) in options {
                bytes.extend(format!("{name} {}\n", value.len()).into_bytes());
                bytes.extend_from_slice(value);
            }
        }
        // A message of an earlier command is not the one of this command.
        self.messages.lock().is_complete = false;
        self.send(&bytes)
    }

    fn server_output(&mut self) -> Result<&mut ServerPipe, ChangeError> {
        self.output.as_mut().ok_or_else(|| self.messages.early_end())
    }

    /// Reads a line, without the end.
    fn read_line(&mut self) -> Result<Vec<u8>, ChangeError> {
        let mut line = Vec::new();
        self.server_output()?.by_ref().take(LINE_LIMIT_BYTES).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Err(self.messages.early_end());
        }
        Ok(line)
    }
}

impl Transport for PipeTransport {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn node_limit(&self) -> usize {
        NODE_LIMIT
    }

    fn call(&mut self, command: &WireCommand) -> Result<Vec<u8>, ChangeError> {
        self.send_command(command)?;
        let line = self.read_line()?;
        if line.is_empty() {
            return Err(self.messages.refusal());
        }
        let len = std::str::from_utf8(&line).ok().and_then(|text| text.parse::<usize>().ok());
        let len = len.filter(|len| *len <= ANSWER_LIMIT_BYTES);
        let len = len.ok_or_else(|| {
            let shown = line.escape_ascii();
            ChangeError::new_damaged(format!("an answer of length \"{shown}\" to {}", command.name))
        })?;
        let mut answer = Vec::new();
        read_bytes(self.server_output()?, len, &mut answer)?;
        Ok(answer)
    }

    fn stream(
        &mut self,
        make: &dyn Fn(usize) -> WireCommand,
    ) -> Result<ByteStream<'_>, ChangeError> {
        self.send_command(&make(NODE_LIMIT))?;
        if fill(self.server_output()?)?.first() == Some(&b'\n') {
            self.server_output()?.consume(1);
            return Err(self.messages.refusal());
        }
        let messages = self.messages.clone();
        Ok(Box::new(PipeStream { read: self.server_output()?, messages }))
    }

    fn open_url(&mut self, _url: &str) -> Option<Result<ByteStream<'static>, ChangeError>> {
        None
    }

    fn received_bytes(&self) -> ReceivedBytes {
        self.received.clone()
    }
}

/// The server ends when its input does; the thread of its messages ends with it.
impl Drop for PipeTransport {
    fn drop(&mut self) {
        self.input = None;
        self.output = None;
        // A child that cannot be waited for has been waited for.
        drop(self.child.wait());
    }
}

/// A bundle on a pipe, which does not end before the bundle does.
struct PipeStream<'a> {
    read: &'a mut ServerPipe,
    messages: MessageReader,
}

impl BufRead for PipeStream<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let bytes = self.read.fill_buf()?;
        if bytes.is_empty() {
            return Err(self.messages.early_end().into());
        }
        Ok(bytes)
    }

    fn consume(&mut self, count: usize) {
        self.read.consume(count);
    }
}

impl Read for PipeStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_shells() {
        let pairs = [("a/b.c", "a/b.c"), ("", "''"), ("a b", "'a b'"), ("it's;", "'it'\\''s;'")];
        for (word, quoted) in pairs {
            assert_eq!(quote(word), quoted);
        }
    }
}
