//! Content lines and new components: escaping, quoting, folding.
//!
//! Output follows RFC 5545 and RFC 6350. [`contact`](crate::contact) writes lines of other versions
//! and lines from another card; [`edit`](crate::edit) changes existing items.
//!
//! ```
//! use larder_format::writer::ComponentBuilder;
//!
//! let alarm =
//!     ComponentBuilder::new("VALARM").add_property("TRIGGER", &[("RELATED", "END")], "-PT5M");
//! let event = ComponentBuilder::new("VEVENT")
//!     .add_text("SUMMARY", "Lunch, with Anna")
//!     .add_subcomponent(alarm)
//!     .finish();
//! assert_eq!(
//!     event,
//!     "BEGIN:VEVENT\r\nSUMMARY:Lunch\\, with Anna\r\n\
//!      BEGIN:VALARM\r\nTRIGGER;RELATED=END:-PT5M\r\nEND:VALARM\r\nEND:VEVENT\r\n"
//! );
//! ```

use std::fmt::Write as _;

/// The maximum length of a line in octets; longer lines are folded.
pub(crate) const MAX_LINE_OCTETS: usize = 75;
const LINE_END: &str = "\r\n";

/// Names and values of parameters, neither quoted nor escaped.
pub type ParamPairs<'p> = &'p [(&'p str, &'p str)];

/// Escapes a text value (RFC 5545, 3.3.11; RFC 6350, 3.4). Every line end becomes `\n`; other
/// control characters, which text cannot contain, are removed.
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

/// Formats a content line without folds and line end. The value must be escaped already. Whatever
/// the arguments, the result is one line whose value is the given one.
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

/// Folds a line and appends the line end. Not for lone CRs as line ends: no property name follows a
/// fold, so they would not be recognised.
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

/// Escapes a parameter value (RFC 6868), and quotes it if needed.
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

/// A component under construction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentBuilder {
    name: String,
    lines: String,
}

impl ComponentBuilder {
    /// Creates an empty component of this name.
    #[must_use]
    pub fn new(name: &str) -> ComponentBuilder {
        ComponentBuilder { name: name.to_ascii_uppercase(), lines: String::new() }
    }

    /// Adds a property. The value must be escaped already.
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

    /// Adds a text property without parameters.
    #[must_use]
    pub fn add_text(self, name: &str, text: &str) -> ComponentBuilder {
        self.add_property(name, &[], &escape_text(text))
    }

    /// Adds a subcomponent.
    #[must_use]
    pub fn add_subcomponent(mut self, part: ComponentBuilder) -> ComponentBuilder {
        self.lines.push_str(&part.finish());
        self
    }

    /// Returns the component with CR LF line ends.
    #[must_use]
    pub fn finish(self) -> String {
        let ComponentBuilder { name, lines } = self;
        format!("{}{lines}{}", format_marker("BEGIN", &name), format_marker("END", &name))
    }
}

fn format_marker(marker: &str, name: &str) -> String {
    format!("{}{LINE_END}", format_content_line(marker, &[], name))
}
