//! Buffered standard output, and messages on standard error.
#![allow(clippy::print_stderr, reason = "this is the module that prints")]

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use clap::ColorChoice;
use larder_present::safe_text::{escape_line, escape_output, is_escaped_in_json};
use std::borrow::Cow;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Stderr, StdoutLock, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;

/// The style of names, the first thing to look for in a line.
pub(crate) const STRONG_STYLE: Style = Style::new().bold();
/// The style of secondary text.
pub(crate) const FAINT_STYLE: Style = Style::new().dimmed();
/// The style of removed items and lines.
pub(crate) const REMOVED_STYLE: Style = AnsiColor::Red.on_default();
/// The style of added items and lines.
pub(crate) const ADDED_STYLE: Style = AnsiColor::Green.on_default();
/// The style of changed items.
pub(crate) const CHANGED_STYLE: Style = AnsiColor::Yellow.on_default();
/// The style of cancelled items.
pub(crate) const CANCELLED_STYLE: Style = Style::new().strikethrough();

/// Returns the terminal colour of a number, from 1 (red) to 6 (cyan).
pub(crate) fn colour_style(number: u8) -> Style {
    let all = [
        AnsiColor::Red,
        AnsiColor::Green,
        AnsiColor::Yellow,
        AnsiColor::Blue,
        AnsiColor::Magenta,
        AnsiColor::Cyan,
    ];
    let colour = all.get(usize::from(number).wrapping_sub(1));
    colour.map_or(Style::new(), |colour| colour.on_default())
}

/// Standard output. Styles are removed unless it is a terminal; raw bytes are never changed.
pub(crate) struct OutputStream {
    stream: BufWriter<StandardStream>,
    is_styled: bool,
    /// The bytes of the last item lack the end of their last line.
    is_line_open: bool,
}

/// The stream that is written to.
enum StandardStream {
    Output(StdoutLock<'static>),
    /// Standard output has the bytes of a file that the user named.
    Error(Stderr),
    /// The reader has gone.
    Closed,
}

impl Write for StandardStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            StandardStream::Output(stream) => stream.write(bytes),
            StandardStream::Error(stream) => stream.write(bytes),
            StandardStream::Closed => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            StandardStream::Output(stream) => stream.flush(),
            StandardStream::Error(stream) => stream.flush(),
            StandardStream::Closed => Ok(()),
        }
    }
}

impl OutputStream {
    pub(crate) fn new() -> OutputStream {
        let is_styled = AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        let stream = StandardStream::Output(io::stdout().lock());
        let stream = BufWriter::with_capacity(64 << 10, stream);
        OutputStream { stream, is_styled, is_line_open: false }
    }

    /// Prints on standard error from now on, as standard output is for a file that the user named.
    pub(crate) fn divert_to_standard_error(&mut self) -> io::Result<()> {
        self.stream.flush()?;
        *self.stream.get_mut() = StandardStream::Error(io::stderr());
        self.is_styled = false;
        Ok(())
    }

    /// Prints nothing more, nor what is in the buffer: the reader of the output has gone.
    pub(crate) fn close(&mut self) {
        self.stream = BufWriter::with_capacity(0, StandardStream::Closed);
    }

    /// Returns the width of a line: `COLUMNS`, else the width of the terminal. `None` if the output
    /// is not a terminal, as output for programs is never shortened.
    pub(crate) fn line_width(&self) -> Option<usize> {
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let terminal = || io::stdout().is_terminal().then(terminal_size).flatten();
        columns.or_else(|| Some(terminal()?.1)).filter(|columns| *columns > 0)
    }

    /// Returns whether standard output is a terminal.
    pub(crate) fn is_terminal() -> bool {
        io::stdout().is_terminal()
    }

    /// Returns whether standard output is a terminal on which lines can be redrawn.
    pub(crate) fn is_terminal_screen() -> bool {
        let dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        OutputStream::is_terminal() && !dumb
    }

    /// Returns the lines and columns of the terminal.
    pub(crate) fn terminal_size_or_default(&self) -> (usize, usize) {
        let (lines, columns) = terminal_size().unwrap_or_default();
        let or = |size: usize, usual| if size > 0 { size } else { usual };
        (or(lines, 24), self.line_width().unwrap_or(or(columns, 80)))
    }

    /// Returns a text with its styles, or without them if the output has none, and with escapes for
    /// the characters that no line may have.
    pub(crate) fn render(&self, text: &str) -> String {
        let text = escape_output(text);
        if self.is_styled { text.into_owned() } else { strip_styles(&text) }
    }

    /// Returns whether the reader of the output pipe has gone, for callers that have nothing to
    /// write and so would not notice. Returns `false` if that cannot be determined.
    pub(crate) fn is_reader_gone() -> bool {
        let is_broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        let nothing = || -> io::Result<u64> {
            let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
            // Writing zero bytes always succeeds. Splicing zero bytes from another pipe fails if
            // the reader has gone.
            let (mut empty, end) = io::pipe()?;
            drop(end);
            match stdout.metadata()?.file_type().is_fifo() {
                true => io::copy(&mut empty, &mut stdout),
                false => Ok(0),
            }
        };
        nothing().is_err_and(|error| is_broken(&error))
    }

    /// Prints a line.
    pub(crate) fn print_line(&mut self, text: impl Display) -> io::Result<()> {
        let text = text.to_string();
        let text = escape_output(&text);
        if self.is_styled {
            writeln!(self.stream, "{text}")
        } else {
            writeln!(self.stream, "{}", strip_styles(&text))
        }
    }

    /// Prints bytes unchanged.
    pub(crate) fn print_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Prints the bytes of an item unchanged. They begin a line, though those of the item before
    /// may lack the end of theirs; those of the last item keep their end.
    pub(crate) fn print_item_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(last) = bytes.last() else { return Ok(()) };
        if std::mem::replace(&mut self.is_line_open, *last != b'\n') {
            self.print_bytes(b"\n")?;
        }
        self.print_bytes(bytes)
    }

    /// Prints a JSON object on one line.
    pub(crate) fn print_json(&mut self, value: &serde_json::Value) -> io::Result<()> {
        let text = value.to_string();
        // JSON escapes only the first 32 control characters, but terminals obey others too, and
        // people read JSON. They can occur only in strings.
        let mut rest = text.as_str();
        while let Some(at) = rest.find(is_escaped_in_json) {
            let (before, from) = rest.split_at(at);
            let control = from.chars().next().unwrap_or_default();
            self.stream.write_all(before.as_bytes())?;
            for unit in control.encode_utf16(&mut [0; 2]) {
                write!(self.stream, "\\u{unit:04x}")?;
            }
            rest = &from[control.len_utf8()..];
        }
        writeln!(self.stream, "{rest}")
    }

    /// Flushes the buffer.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Write for OutputStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Returns a text without its styles.
pub(crate) fn strip_styles(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Returns the lines and columns of the terminal. The standard library has no function for it, and
/// a system call would be unsafe code, so this runs `stty`.
fn terminal_size() -> Option<(usize, usize)> {
    let terminal = std::fs::File::open("/dev/tty").ok()?;
    let mut stty = std::process::Command::new("stty");
    let answer = stty.arg("size").stdin(terminal).stderr(std::process::Stdio::null()).output();
    let answer = String::from_utf8(answer.ok()?.stdout).ok()?;
    let mut sizes = answer.split_whitespace().map(|size| size.parse().ok());
    Some((sizes.next()??, sizes.next()??))
}

/// Applies `--color` to both streams.
pub(crate) fn set_color(choice: ColorChoice) {
    match choice {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// Prints a message on standard error after its severity.
pub(crate) fn print_message(severity: &str, text: impl Display) {
    let style = match severity {
        "error" => AnsiColor::Red.on_default().bold(),
        "warning" => AnsiColor::Yellow.on_default().bold(),
        _ => AnsiColor::Cyan.on_default().bold(),
    };
    let text = text.to_string();
    let text = mark_code_points(&text);
    let text = escape_output(&text);
    // A closed standard error is no failure.
    let _unheard = writeln!(anstream::stderr(), "{style}{severity}{style:#}: {text}");
}

/// Writes the escapes of invisible characters in quoted names, such as `\u{202e}`, as all other
/// output has them: `<U+202E>`.
fn mark_code_points(text: &str) -> Cow<'_, str> {
    const START: &str = "\\u{";
    let mut marked = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(START) {
        let (before, from) = rest.split_at(at);
        marked.push_str(before);
        let digits = from[START.len()..].split_once('}');
        let point = digits.and_then(|(digits, _)| u32::from_str_radix(digits, 16).ok());
        // A backslash of the name itself is written twice.
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        match (digits, point) {
            (Some((_, after)), Some(point)) if backslashes % 2 == 0 => {
                marked.push_str(&format!("<U+{point:04X}>"));
                rest = after;
            }
            _ => {
                marked.push_str(START);
                rest = &from[START.len()..];
            }
        }
    }
    match marked.is_empty() && rest.len() == text.len() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(marked + rest),
    }
}

/// Returns a text as a part of one line, in which imported text can neither send escape sequences
/// to the terminal nor hide what it is. Columns need it before their widths are computed; all other
/// output is escaped when it is printed.
pub(crate) fn sanitize_line(text: &str) -> String {
    escape_line(text).into_owned()
}

/// Returns labels as a person reads them; one with white space is quoted, as in `label:`.
pub(crate) fn join_labels<'l>(labels: impl Iterator<Item = &'l str>) -> String {
    let shown = labels.map(|label| match label.contains(char::is_whitespace) {
        true => format!("\"{}\"", sanitize_line(label)),
        false => sanitize_line(label),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Stands for a number of items that damage prevents to count.
pub(crate) const UNKNOWN_COUNT: &str = "not counted";

/// `1 contact`, `2 contacts`.
pub(crate) fn format_count(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", format_grouped(number), if number == 1 { "" } else { "s" })
}

/// `1,234,567`.
pub(crate) fn format_grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1.2 MB`.
pub(crate) fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Formats an instant in the machine's time zone.
pub(crate) fn format_local_time(milliseconds: i64) -> String {
    match jiff::Timestamp::from_millisecond(milliseconds) {
        Ok(instant) => {
            let local = instant.to_zoned(crate::machine_time::local_zone());
            local.strftime("%Y-%m-%d %H:%M:%S").to_string()
        }
        Err(_) => "-".into(),
    }
}

/// Formats a time in UTC, in seconds since 1970, as `asctime` of C; 1970 if there is none.
pub(crate) fn format_asctime(seconds: Option<i64>) -> String {
    let instant = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    instant.unwrap_or_default().strftime("%a %b %e %H:%M:%S %Y").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(format_grouped(0), "0");
        assert_eq!(format_grouped(999), "999");
        assert_eq!(format_grouped(1_234_567), "1,234,567");
        assert_eq!(format_count(1, "contact"), "1 contact");
        assert_eq!(format_count(2_000, "contact"), "2,000 contacts");
        assert_eq!(format_bytes(999), "999 bytes");
        assert_eq!(format_bytes(1_250_000), "1.2 MB");
        assert_eq!(sanitize_line("a\x1b[31mb\nc"), "a<U+001B>[31mb c");
    }

    #[test]
    fn quoted_names_have_the_escapes_of_other_output() {
        for (name, expect) in [
            ("plain", "\"plain\""),
            ("a\u{202e}b\u{1}", "\"a<U+202E>b<U+0001>\""),
            (r"\u{202e}", r#""\\u{202e}""#),
            ("\\\u{202e}", r#""\\<U+202E>""#),
            (r"\u{", r#""\\u{""#),
        ] {
            assert_eq!(mark_code_points(&format!("{name:?}")), expect);
        }
    }
}
