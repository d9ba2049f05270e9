//! Writing content lines: escaping, quoting, folding; and whole new components of calendars.
//!
//! What is written here is what RFC 5545 and RFC 6350 ask for. Lines of other versions, and lines
//! that come from another card, are for [`contact`](crate::contact). Changing an item that is there
//! is for [`edit`](crate::edit).
//!
//! ```
//! use larder_format::write::Draft;
//!
//! let alarm = Draft::new("VALARM").add("TRIGGER", &[("RELATED", "END")], "-PT5M");
//! let event = Draft::new("VEVENT").text("SUMMARY", "Lunch, with Anna").part(alarm).finish();
//! assert_eq!(
//!     event,
//!     "BEGIN:VEVENT\r\nSUMMARY:Lunch\\, with Anna\r\n\
//!      BEGIN:VALARM\r\nTRIGGER;RELATED=END:-PT5M\r\nEND:VALARM\r\nEND:VEVENT\r\n"
//! );
//! ```

use std::fmt::Write as _;

/// Octets of a line, before it is folded.
pub(crate) const MAX_LINE_OCTETS: usize = 75;
const LINE_END: &str = "\r\n";

/// Names and values of parameters, none of them quoted or escaped.
pub type ParamPairs<'p> = &'p [(&'p str, &'p str)];

/// A text as a value has it (RFC 5545, 3.3.11; RFC 6350, 3.4). Line ends of any kind are one; other
/// control characters, which no text may have, are left out.
#[must_use]
pub fn escape_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in normalise_line_ends(text).chars() {
        match c {
            '\\' | ';' | ',' => escaped.extend(['\\', c]),
            '\n' => escaped.push_str("\\n"),
            c if c.is_control() && c != '\t' => {}
            c => escaped.push(c),
        }
    }
    escaped
}

/// A content line, without folds and line end. The value is taken as it is: text has to be escaped
/// before. Whatever the arguments are, it is one line, and the value is where the value is.
#[must_use]
pub fn format_content_line(name: &str, params: ParamPairs<'_>, value: &str) -> String {
    let plain = |name: &str| -> String {
        name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
    };
    let mut line = plain(name);
    for (name, value) in params {
        let _infallible = write!(line, ";{}={}", plain(name), quote_param_value(value));
    }
    line.push(':');
    line.push_str(&normalise_line_ends(value).replace('\n', "\\n"));
    line
}

/// Folds a line, and ends it. Not where lone CRs end lines: a fold has no name that would show them
/// to be line ends.
pub(crate) fn fold_line(line: &str, line_end: &str) -> String {
    let mut folded = String::with_capacity(line.len() + line.len() / 32 + 2);
    let mut width = 0;
    for c in line.chars() {
        if width + c.len_utf8() > MAX_LINE_OCTETS && line_end != "\r" {
            folded.push_str(line_end);
            folded.push(' ');
            width = 1;
        }
        folded.push(c);
        width += c.len_utf8();
    }
    folded.push_str(line_end);
    folded
}

/// A parameter's value, escaped as RFC 6868 has it, and in quotes where it needs them.
pub(crate) fn quote_param_value(value: &str) -> String {
    let mut text = String::new();
    for c in value.replace("\r\n", "\n").chars() {
        match c {
            '^' => text.push_str("^^"),
            '"' => text.push_str("^'"),
            '\n' | '\r' => text.push_str("^n"),
            c => text.push(c),
        }
    }
    if text.contains([',', ';', ':']) || text.trim() != text { format!("\"{text}\"") } else { text }
}

pub(crate) fn normalise_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// A component that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentBuilder {
    name: String,
    lines: String,
}

impl ComponentBuilder {
    /// A component of this name, with nothing in it.
    #[must_use]
    pub fn new(name: &str) -> ComponentBuilder {
        ComponentBuilder { name: name.to_ascii_uppercase(), lines: String::new() }
    }

    /// Adds a property. The value is taken as it is.
    #[must_use]
    pub fn add_property(
        mut self,
        name: &str,
        params: ParamPairs<'_>,
        value: &str,
    ) -> ComponentBuilder {
        self.lines.push_str(&fold_line(&format_content_line(name, params, value), LINE_END));
        self
    }

    /// Adds a property without parameters, whose value is text.
    #[must_use]
    pub fn add_text(self, name: &str, text: &str) -> ComponentBuilder {
        self.add_property(name, &[], &escape_text(text))
    }

    /// Adds a component inside.
    #[must_use]
    pub fn add_subcomponent(mut self, part: ComponentBuilder) -> ComponentBuilder {
        self.lines.push_str(&part.finish());
        self
    }

    /// All of it, with CR LF at the line ends.
    #[must_use]
    pub fn finish(self) -> String {
        let ComponentBuilder { name, lines } = self;
        format!("{}{lines}{}", format_marker("BEGIN", &name), format_marker("END", &name))
    }
}

fn format_marker(marker: &str, name: &str) -> String {
    format!("{}{LINE_END}", format_content_line(marker, &[], name))
}
