//! Phases of a program by its messages: standard error is passed on as it comes, and lines that
//! match a pattern begin a phase. So programs that know nothing of marks have phases, too: git and
//! Mercurial name theirs in their progress.

use regex::bytes::Regex;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::process::ChildStderr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest line in which a pattern is searched; the rest of a longer one is another line.
const MAX_LINE_BYTES: usize = 4096;
/// How long the last messages of a command are waited for.
pub(crate) const LAST_MESSAGES_LIMIT: Duration = Duration::from_secs(1);
/// How long a message waits for its phase to be noted.
const NOTED_PHASE_LIMIT: Duration = Duration::from_millis(200);

/// A phase that a message has begun. The message is passed on when this is dropped.
pub(crate) struct BegunPhase {
    pub(crate) name: Vec<u8>,
    /// Disconnected by the drop.
    _noted: Sender<Infallible>,
}

/// Phases as they begin.
pub(crate) struct MessagePhases {
    phases: Receiver<BegunPhase>,
    reader: JoinHandle<()>,
    /// Set while messages are written to the output, whose reader may be slow.
    is_writing: Arc<AtomicBool>,
}

impl MessagePhases {
    /// Begins to read messages, and to pass them on to `output`; at each phase `wake` is called.
    pub(crate) fn start(
        messages: ChildStderr,
        pattern: Regex,
        mut output: impl Write + Send + 'static,
        wake: impl Fn() + Send + 'static,
    ) -> MessagePhases {
        let (sender, phases) = channel();
        let begin = move |name| {
            let (noted, wait) = channel();
            drop(sender.send(BegunPhase { name, _noted: noted }));
            wake();
            // A collector that is late does not hold back messages for longer.
            let _ = wait.recv_timeout(NOTED_PHASE_LIMIT);
        };
        let is_writing = Arc::new(AtomicBool::new(false));
        let writing = Arc::clone(&is_writing);
        let pass_on = move |bytes: &[u8]| {
            writing.store(true, Ordering::Relaxed);
            // Where the output is gone, the program shall not notice.
            drop(output.write_all(bytes).and_then(|()| output.flush()));
            writing.store(false, Ordering::Relaxed);
        };
        let reader = std::thread::spawn(move || read_messages(messages, &pattern, pass_on, begin));
        MessagePhases { phases, reader, is_writing }
    }

    /// Returns the phases that have begun since the last call.
    pub(crate) fn next_phases(&self) -> impl Iterator<Item = BegunPhase> + '_ {
        self.phases.try_iter()
    }

    /// Waits for a phase to begin; returns it, or `None` after this time.
    pub(crate) fn wait_for_phase(&self, limit: Duration) -> Option<BegunPhase> {
        match self.phases.recv_timeout(limit) {
            Ok(phase) => Some(phase),
            Err(RecvTimeoutError::Timeout) => None,
            // No message follows, so that nothing else waits.
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(limit);
                None
            }
        }
    }

    /// Waits until all messages are passed on, but not longer than this while there are none: a
    /// process that goes on in the background may keep the messages of a command open. The time
    /// that the output takes for messages is unlimited, until `is_stopped` says that a request to
    /// end has come. Returns the names of the phases that the last messages have begun.
    pub(crate) fn finish_within(
        &self,
        limit: Duration,
        is_stopped: &dyn Fn() -> bool,
    ) -> Vec<Vec<u8>> {
        let mut waited = Duration::ZERO;
        let mut names = Vec::new();
        while !self.reader.is_finished() && waited < limit {
            names.extend(self.next_phases().map(|phase| phase.name));
            let begin = Instant::now();
            std::thread::sleep(Duration::from_millis(1));
            // A slow reader of the output shall get all that the command has written.
            if !self.is_writing.load(Ordering::Relaxed) || is_stopped() {
                waited += begin.elapsed();
            }
        }
        names.extend(self.next_phases().map(|phase| phase.name));
        names
    }
}

/// Passes messages on until there are no more.
fn read_messages(
    mut messages: impl Read,
    pattern: &Regex,
    mut pass_on: impl FnMut(&[u8]),
    begin: impl Fn(Vec<u8>),
) {
    let mut finder = PhaseFinder::default();
    let mut buffer = [0; 4096];
    while let Ok(count) = messages.read(&mut buffer) {
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        // Phases first: whoever has read a message can rely on its phase. A collector that no
        // longer listens changes nothing for the program.
        for byte in bytes {
            if let Some(phase) = finder.take(*byte, pattern) {
                begin(phase);
            }
        }
        pass_on(bytes);
    }
}

/// Finds phases in lines, which end with a line feed, or with a carriage return as in progress.
#[derive(Default)]
struct PhaseFinder {
    line: Vec<u8>,
    phase: Vec<u8>,
}

impl PhaseFinder {
    /// Takes a byte; returns the name of a phase that begins with the line that it ends.
    fn take(&mut self, byte: u8, pattern: &Regex) -> Option<Vec<u8>> {
        if !matches!(byte, b'\n' | b'\r') {
            self.line.push(byte);
            if self.line.len() < MAX_LINE_BYTES {
                return None;
            }
        }
        let line = std::mem::take(&mut self.line);
        let captures = pattern.captures(&line)?;
        let name = captures.get(1).or_else(|| captures.get(0))?.as_bytes().to_vec();
        if name.is_empty() || name == self.phase {
            return None;
        }
        self.phase.clone_from(&name);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn phases(text: &str, pattern: &str) -> Vec<String> {
        let (sender, receiver) = channel();
        let mut output = Vec::new();
        let begin = move |phase| sender.send(phase).unwrap();
        let pass_on = |bytes: &[u8]| output.extend_from_slice(bytes);
        read_messages(text.as_bytes(), &Regex::new(pattern).unwrap(), pass_on, begin);
        assert_eq!(output, text.as_bytes());
        receiver.iter().map(|name| String::from_utf8(name).unwrap()).collect()
    }

    #[test]
    fn progress_of_git_names_phases() {
        let text =
            "Counting objects: 1%\rCounting objects: 100%, done.\nnote\nWriting objects: 5%\r";
        assert_eq!(phases(text, r"^([^:]+): +\d+%"), ["Counting objects", "Writing objects"]);
    }

    /// An output that takes its time, and counts bytes.
    struct SlowOutput(Sender<usize>);

    impl Write for SlowOutput {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            std::thread::sleep(Duration::from_millis(20));
            self.0.send(bytes.len()).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The pipe holds 64 KiB, which take the output far longer than the limit.
    #[test]
    fn a_slow_output_gets_all_messages() {
        let mut command = Command::new("sh");
        command.args(["-c", "seq 1 20000 >&2"]).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, written) = channel();
        let pattern = Regex::new("phase").unwrap();
        let output = SlowOutput(sender);
        let messages = MessagePhases::start(child.stderr.take().unwrap(), pattern, output, || {});
        child.wait().unwrap();
        messages.finish_within(Duration::from_millis(250), &|| false);
        assert_eq!(written.try_iter().sum::<usize>(), 108_894);
    }

    /// An output that takes nothing until the other end of the channel is dropped.
    struct StalledOutput(Receiver<Infallible>);

    impl Write for StalledOutput {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            assert!(self.0.recv().is_err());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_request_to_end_ends_the_wait_for_a_stalled_output() {
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", "echo a >&2"]).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, receiver) = channel();
        let (pattern, output) = (Regex::new("phase").unwrap(), StalledOutput(receiver));
        let messages = MessagePhases::start(child.stderr.take().unwrap(), pattern, output, || {});
        child.wait().unwrap();
        let begin = Instant::now();
        let is_stopped = || begin.elapsed() > Duration::from_millis(200);
        messages.finish_within(Duration::from_millis(50), &is_stopped);
        assert!(!messages.reader.is_finished());
        drop(sender);
        messages.finish_within(Duration::from_secs(10), &|| false);
        assert!(messages.reader.is_finished());
    }

    #[test]
    fn a_pattern_without_groups_is_the_name() {
        assert_eq!(phases("a phase-1 b\nphase-2\n", r"phase-\d"), ["phase-1", "phase-2"]);
    }
}
