//! Items of any kind as text: new ones that a person typed, and those that come back from an
//! editor.
//!
//! The functions are pure: they convert bytes to parsed items or report the problems of the text.
//! This is separate from the import, which reads streams of any size and skips invalid items. Here
//! a person waits for the result and the text is in memory, so one invalid line makes the whole
//! text invalid.

use crate::calendar_context_builder::{CalendarContextBuilder, NO_TZID_REASON, ZoneAddition};
use crate::item_edits::add_missing_uid;
use larder_format::component::Component;
use larder_format::contact::is_same_card;
use larder_format::edit::insert_uid;
use larder_format::problem::Problem;
use larder_format::splitter::{SkipReason, Splitter, StreamPiece};
use larder_store::{CalendarContext, Extractor, Kind, ParsedItem, RejectedItem};
use larder_time::civil::Instant;
use std::io;
use std::sync::Arc;

/// The largest text, in bytes. A larger one was not typed by a person; `larder import` accepts it.
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
        /// The name after BEGIN.
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
    /// An edited item may be incomplete.
    #[error("missing END:{name}")]
    MissingEnd {
        /// The name after BEGIN.
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
    /// A time zone definition without a name was skipped.
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
    kind: Kind,
    /// The calendar context; empty for an item outside any calendar.
    context: Arc<CalendarContext>,
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
                StreamPiece::CalendarLines { bytes, utf16_text, .. } => {
                    calendar.add_lines(bytes, utf16_text);
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
                    let (kind, bytes) = (Kind::from_stream_name(name), bytes.to_vec());
                    pieces.items.push(SplitItem { line, bytes, kind, context: Arc::default() });
                }
                StreamPiece::Skipped { why: SkipReason::NestedCalendarEnd, .. } => {}
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
        let is_in_calendar = |item: &&mut SplitItem| item.kind.is_exported_in_calendar();
        for item in self.items.iter_mut().skip(first).filter(is_in_calendar) {
            item.context = Arc::clone(context);
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
        for item in self.items {
            parsed_text.add_item(extractor, item, random)?;
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
    /// Parses an item, and adds it or the reason why it was skipped.
    fn add_item(
        &mut self,
        extractor: &Extractor,
        item: SplitItem,
        random: &mut dyn FnMut() -> io::Result<[u8; 16]>,
    ) -> Result<(), Error> {
        let SplitItem { line: first, bytes, kind, context } = item;
        let add_lines = |diagnostic: TextDiagnostic| TextDiagnostic {
            line: first + diagnostic.line.max(1) - 1,
            kind: diagnostic.kind,
        };
        // The text is checked without a new UID, which would be its only line if it is empty.
        let parsed_item = match extractor.parse_item(kind, bytes.clone(), &context) {
            Ok(parsed_item) => parsed_item,
            Err(RejectedItem { problem, .. }) => {
                let kind = TextDiagnosticKind::InvalidItem(problem);
                self.diagnostics
                    .push(add_lines(TextDiagnostic { line: problem.line.into(), kind }));
                return Ok(());
            }
        };
        self.diagnostics.extend(item_diagnostics(&parsed_item).into_iter().map(add_lines));
        if parsed_item.uid().is_some() {
            self.items.push(parsed_item);
            return Ok(());
        }
        let bytes = insert_uid(&bytes, &uid_from_random(random().map_err(Error::Random)?));
        if let Ok(parsed_item) = extractor.parse_item(kind, bytes, &context) {
            self.items.push(parsed_item);
        }
        Ok(())
    }
}

/// The item whose text is edited, as it was read.
#[derive(Debug, Clone, Copy)]
pub struct EditBase<'a> {
    /// The kind.
    pub kind: Kind,
    /// The UID that it is stored under.
    pub uid: &'a str,
    /// The source bytes.
    pub bytes: &'a [u8],
    /// The calendar context.
    pub context: &'a CalendarContext,
}

/// Parses the only item of an edited text. It must be complete and keep the UID of the item (the
/// UID in its bytes, or else the UID under which it is stored) and its RECURRENCE-ID. A component
/// of a calendar gets the time of the change, and a changed item without a UID gets the one that it
/// is stored under. The diagnostics that an import would report are returned with the item.
///
/// # Errors
/// The rule that the text breaks.
pub fn parse_edited_item(
    extractor: &Extractor,
    original: EditBase<'_>,
    text: &[u8],
    now: Instant,
) -> Result<(ParsedItem, Vec<TextDiagnostic>), Error> {
    let EditBase { kind, uid, bytes: before, context } = original;
    let refused = |rejected: RejectedItem| Error::InvalidItem { problem: rejected.problem };
    let old = extractor.parse_item(kind, before.to_vec(), context).map_err(refused)?;
    let name = match kind.component_name() {
        Some(name) => name.to_string(),
        None => Component::parse(before).kind().name().to_string(),
    };
    let text = find_single_component(text, &name)?;
    let (typed, parsed_item) = match kind.is_exported_in_calendar() {
        true => {
            let (bytes, context) =
                crate::event::stamp_edited_component(extractor, context, before, text.clone(), now);
            // Diagnostics have the line numbers of the text as it was typed.
            let typed = extractor.parse_item(kind, text, &context).map_err(refused)?;
            (Some(typed), extractor.parse_item(kind, bytes, &context).map_err(refused)?)
        }
        false => (None, extractor.parse_item(kind, text, context).map_err(refused)?),
    };
    let typed = typed.as_ref().unwrap_or(&parsed_item);
    if typed.problems().iter().any(|problem| problem.kind.is_missing_end()) {
        return Err(Error::MissingEnd { name });
    }
    // An item whose UID was taken is stored under a derived UID, and its bytes keep their own.
    let expected_uid = old.uid().unwrap_or(uid);
    let diagnostics = item_diagnostics(typed);
    match parsed_item.uid() {
        Some(uid) if uid != expected_uid => {
            Err(Error::UidChanged { uid: expected_uid.to_string() })
        }
        None if old.uid().is_some() => Err(Error::UidRemoved { uid: expected_uid.to_string() }),
        _ if parsed_item.recurrence_id() != old.recurrence_id() => Err(Error::RecurrenceIdChanged),
        _ if is_same_card(before, parsed_item.bytes()) => Ok((parsed_item, diagnostics)),
        _ => {
            let parsed_item = add_missing_uid(extractor, parsed_item, uid).map_err(refused)?;
            Ok((parsed_item, diagnostics))
        }
    }
}

/// Returns the problems of an item and the warnings about it.
fn item_diagnostics(item: &ParsedItem) -> Vec<TextDiagnostic> {
    let problems = item.problems().iter().map(|problem| TextDiagnostic {
        line: problem.line.into(),
        kind: TextDiagnosticKind::Problem(*problem),
    });
    let warnings = item.warnings().iter().map(|warning| TextDiagnostic {
        line: warning.line.into(),
        kind: TextDiagnosticKind::Note(warning.text.clone()),
    });
    problems.chain(warnings).collect()
}

/// Returns the bytes of the only component of this name in a text. Blank lines around it are
/// ignored.
///
/// # Errors
/// [`Error::NotExactlyOne`] and [`Error::TextOutsideItem`].
pub fn find_single_component(text: &[u8], name: &str) -> Result<Vec<u8>, Error> {
    let mut items: Vec<Vec<u8>> = Vec::new();
    let mut outside = None;
    split(text, usize::MAX, &mut |piece| match piece {
        StreamPiece::Component { name: found, bytes, .. } if found == name => {
            items.push(bytes.to_vec());
        }
        StreamPiece::CalendarLines { .. } | StreamPiece::CalendarEnds { .. } => {}
        StreamPiece::Component { line, .. }
        | StreamPiece::CalendarBegins { line, .. }
        | StreamPiece::Skipped { line, .. } => {
            outside = outside.or(Some(line));
        }
    });
    match (outside, <[Vec<u8>; 1]>::try_from(items)) {
        (Some(line), _) => Err(Error::TextOutsideItem { line }),
        (None, Ok([item])) => Ok(item),
        (None, Err(items)) => {
            Err(Error::NotExactlyOne { name: name.to_string(), found: items.len() })
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
