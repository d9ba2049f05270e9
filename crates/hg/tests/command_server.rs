//! Mercurial's command server: `hg` that stays, so that hundreds of commands cost one start of
//! Python. The commands and their outputs are those of `hg`; an extension that one command loads
//! stays loaded.
//!
//! <https://wiki.mercurial-scm.org/CommandServer>

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// The exit code of a command that raised an exception, and of some that failed.
const EXCEPTION: i32 = 255;

/// A server, which ends with this process.
struct CommandServer {
    requests: ChildStdin,
    answers: ChildStdout,
    _process: Child,
}

/// The server of this process, which the first command starts.
pub(crate) struct SharedServer(Mutex<Option<CommandServer>>);

impl SharedServer {
    pub(crate) const fn new() -> SharedServer {
        SharedServer(Mutex::new(None))
    }

    /// Runs a command. `hg` is a command that has the environment.
    pub(crate) fn run(&self, hg: impl FnOnce() -> Command, arguments: &[&OsStr]) -> Output {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut server = shared.take().unwrap_or_else(|| CommandServer::start(hg()).unwrap());
        let output = server.run(arguments).unwrap();
        // A command that raises an exception ends the server.
        if output.status.code() != Some(EXCEPTION) {
            *shared = Some(server);
        }
        output
    }
}

impl CommandServer {
    /// Starts `hg`, a command that has its environment.
    fn start(mut hg: Command) -> io::Result<CommandServer> {
        hg.args(["serve", "--cmdserver", "pipe"]).current_dir("/");
        hg.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = hg.spawn()?;
        let requests = process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let answers = process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut server = CommandServer { requests, answers, _process: process };
        let (channel, len) = server.read_header()?;
        let hello = server.read_bytes(len)?;
        assert_eq!(channel, b'o', "{}", String::from_utf8_lossy(&hello));
        Ok(server)
    }

    /// Runs a command. The working directory is `/`, unless `--cwd` names another.
    fn run(&mut self, arguments: &[&OsStr]) -> io::Result<Output> {
        let arguments: Vec<&[u8]> = arguments.iter().map(|argument| argument.as_bytes()).collect();
        self.requests.write_all(b"runcommand\n")?;
        self.write_block(&arguments.join(&0))?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        loop {
            let (channel, len) = match self.read_header() {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    let status = ExitStatus::from_raw(EXCEPTION << 8);
                    return Ok(Output { status, stdout, stderr });
                }
                header => header?,
            };
            match channel {
                b'o' => stdout.extend(self.read_bytes(len)?),
                b'e' => stderr.extend(self.read_bytes(len)?),
                // A command that reads its input finds the end of it.
                b'I' | b'L' => self.write_block(b"")?,
                b'r' => {
                    let code = self.read_bytes(len)?.try_into().map(i32::from_be_bytes);
                    let code = code.map_err(|_| io::ErrorKind::InvalidData)?;
                    let status = ExitStatus::from_raw((code & 255) << 8);
                    return Ok(Output { status, stdout, stderr });
                }
                other => return Err(io::Error::other(format!("channel {other}"))),
            }
        }
    }

    fn write_block(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.requests.write_all(&(bytes.len() as u32).to_be_bytes())?;
        self.requests.write_all(bytes)
    }

    /// Reads the channel of the next block, and the length of the block or of the wanted input.
    fn read_header(&mut self) -> io::Result<(u8, usize)> {
        let mut header = [0; 5];
        self.answers.read_exact(&mut header)?;
        let [channel, len @ ..] = header;
        Ok((channel, u32::from_be_bytes(len) as usize))
    }

    fn read_bytes(&mut self, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.answers.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
