//! Contacts and calendar components as text: new items that a person typed, and items that come
//! back from an editor.
//!
//! Pure functions from bytes to parsed items, or to the problems of the text. Separate from the
//! import, which reads streams of any size and skips bad items: here a person waits, the text is in
//! memory, and one bad line is worth a refusal.

use crate::calendar_context_builder::{CalendarContextBuilder, NO_TZID_REASON, ZoneAddition};
use larder_format::component::Component;
use larder_format::contact::{Contact, Problem, ProblemKind};
use larder_format::edit::insert_uid;
use larder_format::splitter::{Splitter, StreamPiece};
use larder_store::{CalendarContext, Extractor, ParsedItem, RejectedItem};
use larder_time::civil::Instant;
use std::io;
use std::sync::Arc;

/// The largest text. A larger one was not typed, and belongs into an import.
pub const MAX_TEXT_BYTES: usize = 32 << 20;

/// The reason why a text is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text contains no component.
    #[error("no vCard and no calendar item in the text")]
    NoItem,
    /// The text exceeds [`MAX_TEXT_BYTES`].
    #[error("the text is larger than 32 MB")]
    TooLarge,
    /// An item without a UID needs random bytes, and the system gave none.
    #[error("cannot get random bytes for a UID: {0}")]
    Random(#[source] io::Error),
    /// An edited text contains more than the item.
    #[error("line {line}: text outside the item")]
    TextOutsideItem {
        /// The first line of that text, from 1.
        line: u64,
    },
    /// An edited text contains no item, or several.
    #[error("expected one {name}, found {found}")]
    NotExactlyOne {
        /// `card`, or the name of a component.
        name: String,
        /// The number of items in the text.
        found: usize,
    },
    /// An edited item is invalid.
    #[error("line {}: {problem}", .problem.line)]
    InvalidItem {
        /// The problem.
        problem: Problem,
    },
    /// An edited card may be incomplete.
    #[error("missing END:VCARD")]
    MissingCardEnd,
    /// An edited component may be incomplete.
    #[error("missing END:{name}")]
    MissingComponentEnd {
        /// The name of the component.
        name: String,
    },
    /// An edited override would override another occurrence.
    #[error("RECURRENCE-ID cannot be changed: it identifies the occurrence")]
    RecurrenceIdChanged,
    /// An edited item has another UID.
    #[error("the UID cannot be changed: it must stay {uid:?}")]
    UidChanged {
        /// The UID of the item.
        uid: String,
    },
    /// An edited item has lost its UID.
    #[error("missing line UID:{uid}")]
    UidRemoved {
        /// The UID of the item.
        uid: String,
    },
}

/// A diagnostic for a line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextDiagnostic {
    /// The line, from 1.
    pub line: u64,
    /// The problem.
    pub kind: TextDiagnosticKind,
}

/// The problem of a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextDiagnosticKind {
    /// A problem of an item that was accepted.
    #[error("{0}")]
    Problem(Problem),
    /// The reason why an item was skipped.
    #[error("{0}")]
    InvalidItem(Problem),
    /// A line of a component that was accepted has no effect.
    #[error("{0}")]
    Note(String),
    /// Text outside any item was skipped.
    #[error("text outside any item")]
    TextOutsideItem,
    /// A time-zone definition without a name was skipped.
    #[error("{}", NO_TZID_REASON)]
    ZoneWithoutTzid,
}

impl TextDiagnosticKind {
    /// Returns whether text was skipped.
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        !matches!(self, TextDiagnosticKind::Problem(_) | TextDiagnosticKind::Note(_))
    }
}

/// A text that is split into items, which are not parsed yet.
#[derive(Debug, Default)]
pub struct SplitText {
    items: Vec<SplitItem>,
    diagnostics: Vec<TextDiagnostic>,
}

/// The bytes of an item in a text.
#[derive(Debug)]
struct SplitItem {
    /// The line of BEGIN.
    line: u64,
    bytes: Vec<u8>,
    /// The calendar context. `None`: a contact.
    context: Option<Arc<CalendarContext>>,
}

impl SplitText {
    /// Splits a text.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::NoItem`] if it contains no component of any kind.
    pub fn from_bytes(text: &[u8]) -> Result<SplitText, Error> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(Error::TooLarge);
        }
        let mut pieces = SplitText::default();
        let mut calendar = CalendarContextBuilder::default();
        let (mut any, mut first) = (false, 0);
        split(text, MAX_TEXT_BYTES, &mut |piece| {
            any |= matches!(piece, StreamPiece::Component { .. });
            match piece {
                StreamPiece::CalendarBegins { .. } => {
                    calendar = CalendarContextBuilder::default();
                    first = pieces.items.len();
                }
                StreamPiece::CalendarLines { bytes, .. } => {
                    calendar.add_lines(bytes);
                }
                StreamPiece::CalendarEnds { .. } => {
                    pieces.set_context(first, &Arc::new(calendar.build()));
                    calendar = CalendarContextBuilder::default();
                    first = pieces.items.len();
                }
                StreamPiece::Component { name: "VTIMEZONE", line, bytes, .. } => {
                    if calendar.add_zone(bytes) == ZoneAddition::WithoutTzid {
                        pieces.diagnostics.push(TextDiagnostic {
                            line,
                            kind: TextDiagnosticKind::ZoneWithoutTzid,
                        });
                    }
                }
                StreamPiece::Component { name, line, bytes, .. } => {
                    let context = (name != "VCARD").then(Arc::default);
                    pieces.items.push(SplitItem { line, bytes: bytes.to_vec(), context });
                }
                StreamPiece::Skipped { first: true, line, .. } => {
                    pieces
                        .diagnostics
                        .push(TextDiagnostic { line, kind: TextDiagnosticKind::TextOutsideItem });
                }
                StreamPiece::Skipped { .. } => {}
            }
        });
        pieces.set_context(first, &Arc::new(calendar.build()));
        if any { Ok(pieces) } else { Err(Error::NoItem) }
    }

    /// Sets the calendar context of the components from this one on.
    fn set_context(&mut self, first: usize, context: &Arc<CalendarContext>) {
        for item in self.items.iter_mut().skip(first).filter(|item| item.context.is_some()) {
            item.context = Some(Arc::clone(context));
        }
    }

    /// Parses the items. An item without a UID gets one from the bytes that `random` returns.
    ///
    /// # Errors
    /// [`Error::Random`]
    pub fn parse_items(
        self,
        extractor: &Extractor,
        random: &mut dyn FnMut() -> io::Result<[u8; 16]>,
    ) -> Result<ParsedText, Error> {
        let mut parsed_text = ParsedText { items: Vec::new(), diagnostics: self.diagnostics };
        for SplitItem { line, bytes, context } in self.items {
            match context {
                Some(context) => {
                    parsed_text.add_component(extractor, line, bytes, &context, random)?;
                }
                None => parsed_text.add_card(extractor, line, bytes, random)?,
            }
        }
        parsed_text.diagnostics.sort_by_key(|diagnostic| diagnostic.line);
        Ok(parsed_text)
    }
}

/// The valid items of a text, and its diagnostics.
#[derive(Debug)]
pub struct ParsedText {
    /// The items in the order of the text; each has a UID.
    pub items: Vec<ParsedItem>,
    /// The diagnostics in the order of the lines.
    pub diagnostics: Vec<TextDiagnostic>,
}

impl ParsedText {
    /// Adds a contact that begins at line `first` of the text.
    fn add_card(
        &mut self,
        extractor: &Extractor,
        first: u64,
        mut bytes: Vec<u8>,
        random: &mut dyn FnMut() -> io::Result<[u8; 16]>,
    ) -> Result<(), Error> {
        let line = |problem: &Problem| first + u64::from(problem.line.max(1)) - 1;
        let card = Contact::parse(&bytes);
        // The text is checked without the new UID, which would be its only line if it is empty.
        if let Some(problem) = card.fatal_problem() {
            let kind = TextDiagnosticKind::InvalidItem(*problem);
            self.diagnostics.push(TextDiagnostic { line: line(problem), kind });
            return Ok(());
        }
        let diagnostic = |problem: &Problem| TextDiagnostic {
            line: line(problem),
            kind: TextDiagnosticKind::Problem(*problem),
        };
        self.diagnostics.extend(card.problems().iter().map(diagnostic));
        if card.uid().is_none() {
            bytes = insert_uid(&bytes, &uid_from_random(random().map_err(Error::Random)?));
        }
        match extractor.parse_contact(bytes) {
            Ok(parsed_item) => self.items.push(parsed_item),
            Err(RejectedItem { problem, .. }) => {
                let line = line(&problem);
                self.diagnostics
                    .push(TextDiagnostic { line, kind: TextDiagnosticKind::InvalidItem(problem) });
            }
        }
        Ok(())
    }

    /// Adds a component that begins at line `first` of the text.
    fn add_component(
        &mut self,
        extractor: &Extractor,
        first: u64,
        mut bytes: Vec<u8>,
        context: &CalendarContext,
        random: &mut dyn FnMut() -> io::Result<[u8; 16]>,
    ) -> Result<(), Error> {
        let at = |line: u32| first + u64::from(line.max(1)) - 1;
        let uid = Component::parse(&bytes).uid();
        let mut found = Vec::new();
        // The text is checked without the new UID, which would be its only line if it is empty.
        let parsed = match extractor.parse_component(bytes.clone(), context) {
            Ok(parsed_item) => {
                let numbered =
                    |problem: &Problem| (at(problem.line), TextDiagnosticKind::Problem(*problem));
                found.extend(parsed_item.problems().iter().map(numbered));
                let warnings = parsed_item.warnings().iter();
                found.extend(warnings.map(|warning| {
                    (at(warning.line), TextDiagnosticKind::Note(warning.text.clone()))
                }));
                Some(parsed_item)
            }
            Err(RejectedItem { problem, .. }) => {
                found.push((at(problem.line), TextDiagnosticKind::InvalidItem(problem)));
                None
            }
        };
        self.diagnostics
            .extend(found.into_iter().map(|(line, kind)| TextDiagnostic { line, kind }));
        let Some(parsed_item) = parsed else { return Ok(()) };
        if uid.is_some() {
            self.items.push(parsed_item);
            return Ok(());
        }
        bytes = insert_uid(&bytes, &uid_from_random(random().map_err(Error::Random)?));
        if let Ok(parsed_item) = extractor.parse_component(bytes, context) {
            self.items.push(parsed_item);
        }
        Ok(())
    }
}

/// Parses the only card of an edited text. It must be complete and keep the UID of the item: the
/// one in its bytes `before`, else `uid`, the one that it is stored under.
///
/// # Errors
/// The rule that the text breaks.
pub fn parse_edited_card(
    extractor: &Extractor,
    uid: &str,
    before: &[u8],
    text: &[u8],
) -> Result<ParsedItem, Error> {
    let parsed_item = extractor
        .parse_contact(find_single_component(text, "VCARD")?)
        .map_err(|rejected| Error::InvalidItem { problem: rejected.problem })?;
    if parsed_item.problems().iter().any(|problem| problem.kind == ProblemKind::MissingCardEnd) {
        return Err(Error::MissingCardEnd);
    }
    // An item whose UID was taken is stored under a derived UID, and its bytes keep their own.
    let card = Contact::parse(before);
    let old_uid = card.uid();
    let expected_uid = old_uid.as_deref().unwrap_or(uid);
    match parsed_item.uid() {
        Some(uid) if uid != expected_uid => {
            Err(Error::UidChanged { uid: expected_uid.to_string() })
        }
        None if old_uid.is_some() => Err(Error::UidRemoved { uid: expected_uid.to_string() }),
        _ => Ok(parsed_item),
    }
}

/// Parses the only component of an edited text, with the calendar context of its item. In addition
/// to the rules of [`parse_edited_card`], RECURRENCE-ID must stay. The component gets the time of
/// the change, and the diagnostics that an import would report are returned with it.
///
/// # Errors
/// The rule that the text breaks.
pub fn parse_edited_component(
    extractor: &Extractor,
    context: &CalendarContext,
    uid: &str,
    before: &[u8],
    text: &[u8],
    now: Instant,
) -> Result<(ParsedItem, Vec<TextDiagnostic>), Error> {
    let name = Component::parse(before).kind().name().to_string();
    let refused = |rejected: RejectedItem| Error::InvalidItem { problem: rejected.problem };
    let old = extractor.parse_component(before.to_vec(), context).map_err(refused)?;
    let text = find_single_component(text, &name)?;
    let (bytes, new_context) =
        crate::event::stamp_edited_component(extractor, context, before, text.clone(), now);
    // Diagnostics have the line numbers of the text as it was typed.
    let typed = extractor.parse_component(text, &new_context).map_err(refused)?;
    let parsed_item = extractor.parse_component(bytes, &new_context).map_err(refused)?;
    let is_open = |problem: &Problem| problem.kind == ProblemKind::MissingComponentEnd;
    if typed.problems().iter().any(is_open) {
        return Err(Error::MissingComponentEnd { name });
    }
    let expected_uid = old.uid().unwrap_or(uid);
    match parsed_item.uid() {
        Some(uid) if uid != expected_uid => {
            Err(Error::UidChanged { uid: expected_uid.to_string() })
        }
        None if old.uid().is_some() => Err(Error::UidRemoved { uid: expected_uid.to_string() }),
        _ if parsed_item.recurrence_id() != old.recurrence_id() => Err(Error::RecurrenceIdChanged),
        _ => Ok((parsed_item, component_diagnostics(&typed))),
    }
}

/// Returns the problems of a component and the warnings about it, by line.
fn component_diagnostics(component: &ParsedItem) -> Vec<TextDiagnostic> {
    let problems = component.problems().iter().map(|problem| TextDiagnostic {
        line: problem.line.into(),
        kind: TextDiagnosticKind::Problem(*problem),
    });
    let warnings = component.warnings().iter().map(|warning| TextDiagnostic {
        line: warning.line.into(),
        kind: TextDiagnosticKind::Note(warning.text.clone()),
    });
    problems.chain(warnings).collect()
}

fn item_label(component: &str) -> String {
    if component == "VCARD" { "card".into() } else { component.into() }
}

/// Returns the bytes of the only card in a text. Blank lines around it are ignored.
///
/// # Errors
/// [`Error::NotExactlyOne`] and [`Error::TextOutsideItem`].
pub fn find_single_card(text: &[u8]) -> Result<Vec<u8>, Error> {
    find_single_component(text, "VCARD")
}

/// Returns the bytes of the only component of this name in a text.
fn find_single_component(text: &[u8], wanted: &str) -> Result<Vec<u8>, Error> {
    let mut cards: Vec<Vec<u8>> = Vec::new();
    let mut outside = None;
    split(text, usize::MAX, &mut |piece| match piece {
        StreamPiece::Component { name, bytes, .. } if name == wanted => cards.push(bytes.to_vec()),
        StreamPiece::CalendarLines { .. } | StreamPiece::CalendarEnds { .. } => {}
        StreamPiece::Component { line, .. }
        | StreamPiece::CalendarBegins { line, .. }
        | StreamPiece::Skipped { line, .. } => {
            outside = outside.or(Some(line));
        }
    });
    match (outside, <[Vec<u8>; 1]>::try_from(cards)) {
        (Some(line), _) => Err(Error::TextOutsideItem { line }),
        (None, Ok([card])) => Ok(card),
        (None, Err(cards)) => {
            Err(Error::NotExactlyOne { name: item_label(wanted), found: cards.len() })
        }
    }
}

fn split(text: &[u8], largest: usize, sink: &mut dyn FnMut(StreamPiece<'_>)) {
    let mut splitter = Splitter::new(largest);
    splitter.push(text, sink);
    splitter.finish(sink);
}

/// Formats random bytes as a UID: a URN with a UUID of version 4 (RFC 9562; RFC 6350, 6.7.6).
#[must_use]
pub fn uid_from_random(random: [u8; 16]) -> String {
    let number = u128::from_be_bytes(random);
    let version = number & !(0xf << 76) | 0x4 << 76;
    let hex = format!("{:032x}", version & !(0x3 << 62) | 0x2 << 62);
    let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
    format!("urn:uuid:{a}-{b}-{c}-{d}-{e}")
}
