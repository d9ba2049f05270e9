//! Edits of one property or subcomponent that leave all other bytes unchanged: other lines, their
//! order, line ends and encoding.
//!
//! The functions change a [component](crate::component) itself, never its subcomponents. They write
//! lines as [`writer`](mod@crate::writer) does, with the line ends of the item. The merge of
//! [`contact`](crate::contact) splices with this module, too.

use crate::component::{Component, Subcomponent};
use crate::contact::Contact;
use crate::content_line::{content_lines, line_end_after_cr};
use crate::property::Property;
use crate::splice::{decode_text, detect_line_end, splice};
use crate::writer::{ComponentBuilder, ParamPairs, escape_text, fold_line, format_content_line};
use std::ops::Range;

/// Sets a property to one value: replaces its first occurrence and removes the others, or adds it
/// after the last property. The value is not escaped here. Returns `None` if the bytes are not a
/// component or the name is invalid.
#[must_use]
pub fn set_property(
    item: &[u8],
    name: &str,
    params: ParamPairs<'_>,
    value: &str,
) -> Option<Vec<u8>> {
    let text = decode_text(item);
    let parts = ComponentLayout::parse(&text)?;
    let line = format_content_line(name, params, value);
    is_property_line(&line).then_some(())?;
    let mut spans = parts.spans_named(name).into_iter();
    let Some(first) = spans.next() else {
        return splice(item, &[parts.insertion(&line)]);
    };
    let mut edits = vec![parts.replacement(first, &line)];
    edits.extend(spans.map(|span| parts.removal(span)));
    splice(item, &edits)
}

/// Removes all properties of this name. Returns `None` if the bytes are not a component.
#[must_use]
pub fn remove_property(item: &[u8], name: &str) -> Option<Vec<u8>> {
    let text = decode_text(item);
    let parts = ComponentLayout::parse(&text)?;
    let edits: Vec<_> =
        parts.spans_named(name).into_iter().map(|span| parts.removal(span)).collect();
    splice(item, &edits)
}

/// Adds a property after the last one, even if one of its name exists: a line as
/// [`format_content_line`] makes it. Returns `None` if the bytes are not a component, or the line
/// is not a property.
#[must_use]
pub fn append_property(item: &[u8], line: &str) -> Option<Vec<u8>> {
    let text = decode_text(item);
    is_property_line(line).then_some(())?;
    splice(item, &[ComponentLayout::parse(&text)?.insertion(line)])
}

/// Returns whether the text is one property line other than BEGIN and END.
fn is_property_line(line: &str) -> bool {
    let one = |line| {
        let property = Property::parse(line);
        property.is_property() && !property.has_name("BEGIN") && !property.has_name("END")
    };
    !line.contains(['\r', '\n']) && content_lines(line.as_bytes()).next().is_some_and(one)
}

/// Adds a subcomponent, such as an alarm, after everything else in the component. Returns `None` if
/// the bytes are not a component.
#[must_use]
pub fn append_subcomponent(item: &[u8], part: ComponentBuilder) -> Option<Vec<u8>> {
    let text = decode_text(item);
    let parts = ComponentLayout::parse(&text)?;
    let lines = part.finish();
    let lines = match parts.line_end {
        // A fold after a lone CR would not be recognised.
        "\r" | "\r\n" => lines,
        line_end => lines.replace("\r\n", line_end),
    };
    let at = parts.end.unwrap_or(text.len());
    splice(item, &[(at..at, parts.format_lines_at(at, &lines))])
}

/// Removes the selected subcomponents, such as alarms, with everything inside. Returns `None` if
/// the bytes are not a component.
#[must_use]
pub fn remove_subcomponents(
    item: &[u8],
    unwanted: &dyn Fn(&Subcomponent<'_>) -> bool,
) -> Option<Vec<u8>> {
    let text = decode_text(item);
    let parts = ComponentLayout::parse(&text)?;
    let of_it = parts.component.subcomponents().iter().filter(|part| part.depth() == 1);
    let mut numbers = of_it.filter(|part| unwanted(part)).map(Subcomponent::line_range).peekable();
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut lines = content_lines(&text);
    while let Some(line) = lines.next() {
        let span = lines.offset() - line.raw.len()..lines.offset();
        while numbers.next_if(|range| *range.end() < line.number).is_some() {}
        if !numbers.peek().is_some_and(|range| range.contains(&line.number)) {
            continue;
        }
        match spans.last_mut().filter(|last| last.end == span.start) {
            Some(last) => last.end = span.end,
            None => spans.push(span),
        }
    }
    let edits: Vec<_> = spans.into_iter().map(|span| parts.removal(span)).collect();
    splice(item, &edits)
}

/// Returns the item with this UID on a line of its own, after the VERSION of a card or otherwise
/// after BEGIN, with the line end used there. All other bytes and the encoding stay.
#[must_use]
pub fn insert_uid(bytes: &[u8], uid: &str) -> Vec<u8> {
    let (at, line) = uid_insertion(&decode_text(bytes), uid);
    splice(bytes, &[(at..at, line)]).unwrap_or_else(|| bytes.to_vec())
}

/// Returns the position of the UID's line, and the line.
fn uid_insertion(item: &[u8], uid: &str) -> (usize, String) {
    let uid = escape_text(&uid.trim().replace(['\r', '\n'], " "));
    let number = Contact::parse(item)
        .properties()
        .iter()
        .find(|p| p.has_name("VERSION"))
        .map(Property::line_number);
    let mut lines = content_lines(item);
    let mut found = None;
    while let Some(line) = lines.next() {
        found = Some((lines.offset(), line.raw));
        if number.is_none_or(|number| line.number == number) {
            break;
        }
    }
    let Some((at, raw)) = found else {
        return (0, format!("UID:{uid}\n"));
    };
    let content =
        raw.len() - raw.iter().rev().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    match std::str::from_utf8(&raw[content..]).unwrap_or_default() {
        "" => (at, format!("\nUID:{uid}")),
        line_end => (at, format!("UID:{uid}{line_end}")),
    }
}

/// A component with the positions of its own lines.
struct ComponentLayout<'t> {
    text: &'t [u8],
    component: Component<'t>,
    /// The byte ranges of its properties, in order.
    spans: Vec<Range<usize>>,
    /// The offset after the BEGIN line.
    begin_line_end: usize,
    /// The offset of the END line.
    end: Option<usize>,
    line_end: &'static str,
}

impl<'t> ComponentLayout<'t> {
    fn parse(text: &'t [u8]) -> Option<ComponentLayout<'t>> {
        let component = Component::parse_text(text);
        if component.fatal_problem().is_some() {
            return None;
        }
        let mut parts = ComponentLayout {
            text,
            spans: Vec::new(),
            begin_line_end: 0,
            end: None,
            line_end: detect_line_end(text),
            component,
        };
        let own_end = format!("END:{}", parts.component.kind().name());
        let mut numbers = parts.component.properties().iter().map(Property::line_number).peekable();
        let mut lines = content_lines(text);
        while let Some(line) = lines.next() {
            let start = lines.offset() - line.raw.len();
            if parts.begin_line_end == 0 {
                parts.begin_line_end = lines.offset();
            }
            if numbers.next_if_eq(&line.number).is_some() {
                parts.spans.push(start..lines.offset());
            } else if line.text.trim_ascii().eq_ignore_ascii_case(own_end.as_bytes()) {
                parts.end = Some(start);
            }
        }
        drop(numbers);
        Some(parts)
    }

    /// Returns the byte ranges of the properties with this name; adjacent ones are joined.
    fn spans_named(&self, name: &str) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        let properties = self.component.properties().iter().zip(&self.spans);
        for (_, span) in properties.filter(|(property, _)| property.has_name(name)) {
            match places.last_mut().filter(|last| last.end == span.start) {
                Some(last) => last.end = span.end,
                None => places.push(span.clone()),
            }
        }
        places
    }

    /// Returns the edit that inserts a property.
    fn insertion(&self, line: &str) -> (Range<usize>, String) {
        // After a quoted-printable value that ends in `=`, a new line would be read as its
        // continuation.
        let goes_on = |property: &&Property<'_>| property.value().ends_with(b"=");
        let last = self.component.properties().last().filter(|last| !goes_on(last));
        let at = last.and(self.spans.last()).map_or(self.begin_line_end, |span| span.end);
        let line = fold_line(line, self.line_end);
        (at..at, self.format_lines_at(at, &line))
    }

    /// Returns the edit that replaces a line, keeping its line end.
    fn replacement(&self, span: Range<usize>, line: &str) -> (Range<usize>, String) {
        let ended = self
            .text
            .get(span.clone())
            .is_some_and(|old| old.ends_with(b"\n") || old.ends_with(b"\r"));
        let line = fold_line(line, self.line_end);
        let line = if ended { line } else { line.trim_end_matches(['\r', '\n']).to_string() };
        let end = span.end;
        (span, line + self.line_end_guard(self.line_end, end))
    }

    /// Formats lines for insertion at the start of a line, or after a last line that lacks its line
    /// end.
    fn format_lines_at(&self, at: usize, lines: &str) -> String {
        let before = self.text.get(..at).unwrap_or_default();
        if before.ends_with(b"\n") || before.ends_with(b"\r") {
            return format!("{lines}{}", self.line_end_guard(self.line_end, at));
        }
        format!("{}{}", self.line_end, lines.trim_end_matches(['\r', '\n']))
    }

    /// Returns the edit that removes a line.
    fn removal(&self, span: Range<usize>) -> (Range<usize>, String) {
        let before = self.text.get(..span.start).unwrap_or_default();
        let last = if before.ends_with(b"\r") { "\r" } else { "\n" };
        let text = self.line_end_guard(last, span.end).to_string();
        (span, text)
    }

    /// Returns the text that keeps this line end a line end at this position: a lone CR is one only
    /// before a property name.
    fn line_end_guard(&self, line_end: &str, at: usize) -> &'static str {
        let rest = self.text.get(at..).unwrap_or_default();
        if line_end == "\r" && line_end_after_cr(rest, true) != Some(1) { "\n" } else { "" }
    }
}
