//! Phases of a program by its messages: standard error is passed on as it comes, and lines that
//! match a pattern begin a phase. So programs that know nothing of marks have phases, too: git and
//! Mercurial name theirs in their progress.

use regex::bytes::Regex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
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
/// How long the rest of a line is waited for: many programs write a line in pieces, but at once.
const LINE_REST_LIMIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
/// The limit of a look at messages that have come.
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
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
        let reader = std::thread::spawn(move || {
            read_messages(messages, &pattern, is_silent, pass_on, begin);
        });
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

/// Waits for the rest of a line; returns whether none has come.
fn is_silent(messages: &ChildStderr, limit: &Timespec) -> bool {
    let mut events = [PollFd::new(messages, PollFlags::IN)];
    matches!(retry_on_intr(|| poll(&mut events, Some(limit))), Ok(0))
}

/// Passes messages on until there are no more.
fn read_messages<R: Read>(
    mut messages: R,
    pattern: &Regex,
    is_silent: impl Fn(&R, &Timespec) -> bool,
    mut pass_on: impl FnMut(&[u8]),
    begin: impl Fn(Vec<u8>),
) {
    let mut finder = PhaseFinder::default();
    let mut buffer = [0; 4096];
    while let Ok(count) = messages.read(&mut buffer) {
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        // Phases of ended lines first: whoever has read such a line can rely on its phase. A
        // collector that no longer listens changes nothing for the program.
        for byte in bytes {
            if let Some(phase) = finder.take(*byte, pattern) {
                begin(phase);
            }
        }
        // The wait for the rest of a line holds back nothing, such as the dots of a progress bar.
        pass_on(bytes);
        // A program that works before it ends its line has begun the phase.
        if !finder.line.is_empty()
            && is_silent(&messages, &NO_WAIT)
            && let Some(phase) = finder.open_line_phase(pattern)
            && is_silent(&messages, &LINE_REST_LIMIT)
            && let Some(phase) = finder.begin(phase)
        {
            begin(phase);
        }
    }
    if let Some(phase) = finder.end_line(pattern) {
        begin(phase);
    }
}

/// Returns the name of the phase that a line begins.
fn phase_name<'l>(line: &'l [u8], pattern: &Regex) -> Option<&'l [u8]> {
    let captures = pattern.captures(line)?;
    let name = captures.get(1).or_else(|| captures.get(0))?.as_bytes();
    (!name.is_empty()).then_some(name)
}

/// Finds phases in lines, which end with a line feed, or with a carriage return as in progress, or
/// with the messages.
#[derive(Default)]
struct PhaseFinder {
    line: Vec<u8>,
    phase: Vec<u8>,
    /// The last name in the line that no next character changed: it is not tried again.
    lasting_name: Vec<u8>,
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
        self.end_line(pattern)
    }

    /// Ends the line; returns the name of a phase that begins with it.
    fn end_line(&mut self, pattern: &Regex) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        self.lasting_name.clear();
        self.begin(phase_name(&line, pattern)?.to_vec())
    }

    /// Begins a phase; returns its name unless it is the current one.
    fn begin(&mut self, name: Vec<u8>) -> Option<Vec<u8>> {
        if name == self.phase {
            return None;
        }
        self.phase.clone_from(&name);
        Some(name)
    }

    /// Returns the name of another phase that a line begins which has not ended. A name that the
    /// next character may change is none: its rest may be about to come. Only the characters of
    /// ASCII are tried, so that a line with others has none before its end. An optional rest of
    /// more characters is not foreseen: it makes another phase when it comes after a pause.
    fn open_line_phase(&mut self, pattern: &Regex) -> Option<Vec<u8>> {
        if !self.line.is_ascii() {
            return None;
        }
        let name = phase_name(&self.line, pattern).filter(|name| *name != self.phase)?;
        if name != self.lasting_name {
            if !is_lasting_name(name, &self.line, pattern) {
                return None;
            }
            self.lasting_name = name.to_vec();
        }
        Some(name.to_vec())
    }
}

/// Returns whether a line keeps the name of its phase whatever printable ASCII character is next.
fn is_lasting_name(name: &[u8], line: &[u8], pattern: &Regex) -> bool {
    let mut longer = line.to_vec();
    longer.push(b' ');
    let is_kept = |next: u8| {
        if let Some(last) = longer.last_mut() {
            *last = next;
        }
        phase_name(&longer, pattern) == Some(name)
    };
    (b' '..=b'~').all(is_kept)
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
        let pattern = Regex::new(pattern).unwrap();
        read_messages(text.as_bytes(), &pattern, |_, _| false, pass_on, begin);
        assert_eq!(output, text.as_bytes());
        receiver.iter().map(|name| String::from_utf8(name).unwrap()).collect()
    }

    #[test]
    fn progress_of_git_names_phases() {
        let text =
            "Counting objects: 1%\rCounting objects: 100%, done.\nnote\nWriting objects: 5%\r";
        assert_eq!(phases(text, r"^([^:]+): +\d+%"), ["Counting objects", "Writing objects"]);
    }

    /// Messages that come in pieces.
    struct Pieces<'p>(std::slice::Iter<'p, &'p str>);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let piece = self.0.next().copied().unwrap_or_default().as_bytes();
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    /// Returns the phases (in brackets) and the pieces in the order in which they are passed on;
    /// the program works after each piece, or writes on.
    fn phases_of_pieces(pieces: &[&str], pattern: &str, is_silent: bool) -> String {
        let order = std::cell::RefCell::new(String::new());
        let pattern = Regex::new(pattern).unwrap();
        let begin = |phase| {
            order.borrow_mut().push_str(&format!("[{}]", String::from_utf8(phase).unwrap()));
        };
        let pass_on = |bytes: &[u8]| order.borrow_mut().push_str(str::from_utf8(bytes).unwrap());
        let messages = Pieces(pieces.iter());
        read_messages(messages, &pattern, |_, _| is_silent, pass_on, begin);
        order.into_inner()
    }

    #[test]
    fn a_line_begins_a_phase_before_it_ends() {
        let lines = ["phase a... ", "done\nphase b: ", ".", ".\n", "phase c"];
        let order = phases_of_pieces(&lines, r"phase (\w+)", true);
        assert_eq!(order, "phase a... [a]done\nphase b: [b]..\nphase c[c]");
        let order = phases_of_pieces(&["Loading", " done\n"], "Loading|Saving", true);
        assert_eq!(order, "Loading[Loading] done\n");
    }

    #[test]
    fn an_open_line_is_tried_when_nothing_more_has_come() {
        let pattern = Regex::new(r"phase (\w+)").unwrap();
        for (has_more, limits) in [(true, vec![0, 0]), (false, [0, 2_000_000].repeat(2))] {
            let asked = std::cell::RefCell::new(Vec::new());
            let is_silent = |_: &Pieces<'_>, limit: &Timespec| {
                asked.borrow_mut().push(limit.tv_nsec);
                !has_more && limit.tv_nsec == 0
            };
            let messages = Pieces(["phase a.", ".", "\n"].iter());
            read_messages(messages, &pattern, is_silent, |_| {}, |_| {});
            assert_eq!(asked.into_inner(), limits);
        }
    }

    #[test]
    fn a_lasting_name_is_tried_once_in_its_line() {
        let pattern = Regex::new(r"phase (\w+)").unwrap();
        let mut finder = PhaseFinder { line: b"phase a".into(), ..PhaseFinder::default() };
        assert_eq!(finder.open_line_phase(&pattern), None);
        finder.line.push(b'.');
        assert_eq!(finder.open_line_phase(&pattern), Some(b"a".into()));
        assert_eq!(finder.lasting_name, b"a");
        // A trial would refuse it here.
        finder.line.pop();
        assert_eq!(finder.open_line_phase(&pattern), Some(b"a".into()));
        finder.end_line(&pattern);
        assert_eq!(finder.lasting_name, b"");
    }

    /// A name in two pieces is one, and a line that does not match in the end begins no phase.
    #[test]
    fn a_name_that_may_go_on_is_waited_for() {
        let order = phases_of_pieces(&["phase wal", "rus\n"], r"phase (\w+)", true);
        assert_eq!(order, "phase wal[walrus]rus\n");
        let order = phases_of_pieces(&["phase a.", ".", " done\n"], "phase (.*)", true);
        assert_eq!(order, "phase a..[a.. done] done\n");
        let order = phases_of_pieces(&["reading files", " of b\n"], r"^(\w+) files$", true);
        assert_eq!(order, "reading files of b\n");
    }

    /// A rest of several characters that a pattern leaves open is not foreseen.
    #[test]
    fn an_optional_rest_begins_another_phase_after_a_pause() {
        let order = phases_of_pieces(&["reading ", "files\n"], "reading(?: files)?", true);
        assert_eq!(order, "reading [reading][reading files]files\n");
        let order = phases_of_pieces(&["reading ", "files\n"], "reading(?: files)?", false);
        assert_eq!(order, "reading [reading files]files\n");
    }

    #[test]
    fn a_line_with_other_letters_begins_a_phase_at_its_end() {
        let order = phases_of_pieces(&["phase é: ", "ok\n"], r"phase (\w+)", true);
        assert_eq!(order, "phase é: [é]ok\n");
        // A character in two pieces.
        let pattern = Regex::new(r"phase (\w+)").unwrap();
        let mut finder = PhaseFinder { line: b"phase caf\xc3".into(), ..PhaseFinder::default() };
        assert_eq!(finder.open_line_phase(&pattern), None);
        assert_eq!(finder.take(b'\xa9', &pattern), None);
        assert_eq!(finder.end_line(&pattern), Some("café".into()));
    }

    /// The program goes on only after its phase was seen.
    #[test]
    fn an_open_line_in_a_pipe_begins_a_phase() {
        let mut command = Command::new("sh");
        command.args(["-c", "printf 'phase a... ' >&2; read -r line; echo done >&2"]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (pattern, output) = (Regex::new(r"phase (\w+)").unwrap(), std::io::sink());
        let messages = MessagePhases::start(child.stderr.take().unwrap(), pattern, output, || {});
        let phase = messages.wait_for_phase(Duration::from_secs(60));
        assert_eq!(phase.map(|phase| phase.name), Some(b"a".to_vec()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(messages.finish_within(Duration::from_secs(60), &|| false).is_empty());
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
