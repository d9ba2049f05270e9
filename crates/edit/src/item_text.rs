//! Cards and components of calendars that a person typed: what is to be added, and what came back
//! from an editor.
//!
//! Pure functions from bytes to items that the store can take, or to what is wrong with them. It
//! reads no file and writes nothing. It is apart from `import`, which takes streams of any size and
//! whatever is in them: here a person waits, everything is in memory, and one bad line is worth a
//! refusal.

use crate::calendar_context_builder::{CalendarContextBuilder, NO_TZID_REASON, ZoneAddition};
use larder_format::component::Component;
use larder_format::contact::{Contact, Problem, ProblemKind, insert_uid};
use larder_format::splitter::{Splitter, StreamPiece};
use larder_store::{CalendarContext, Extractor, ParsedItem};
use larder_time::civil::Instant;
use std::io;
use std::sync::Arc;

/// More bytes than this were typed by nobody; an import takes larger files.
pub const MAX_TEXT_BYTES: usize = 32 << 20;

/// Why a text holds no card that can be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No text at all, or none that is a card.
    #[error("there is no card and no event in it")]
    NoItem,
    /// More bytes than [`LARGEST`].
    #[error("it has more than 32 MB")]
    TooLarge,
    /// A card without a UID needs a random one.
    #[error("no random number could be had: {0}")]
    Random(#[source] io::Error),
    /// An edited text has more than the card in it.
    #[error("line {line}: text outside the card")]
    TextOutsideItem {
        /// Where that text begins, from 1.
        line: u64,
    },
    /// An edited text has no card in it, or several.
    #[error("one {name} is needed, and there are {found}")]
    NotExactlyOne {
        /// A card, or the name of a component.
        name: String,
        /// How many there are.
        found: usize,
    },
    /// An edited card is none that the store can take.
    #[error("line {}: {problem}", .problem.line)]
    InvalidItem {
        /// What is wrong with it, and where.
        problem: Problem,
    },
    /// An edited card that may be half of one.
    #[error("the line END:VCARD is missing")]
    MissingCardEnd,
    /// An edited component that may be half of one.
    #[error("the line END:{name} is missing")]
    MissingComponentEnd {
        /// What it is.
        name: String,
    },
    /// An edited component that would stand for another occurrence.
    #[error("the RECURRENCE-ID has to stay as it is: it says which occurrence it is")]
    RecurrenceIdChanged,
    /// An edited card that would be another item.
    #[error("the UID has to stay {uid:?}: it is what the item is known by")]
    UidChanged {
        /// The UID it had.
        uid: String,
    },
    /// An edited card that lost the line it is known by.
    #[error("the line UID:{uid} is missing")]
    UidRemoved {
        /// The UID it had.
        uid: String,
    },
}

/// What there is to say about a place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextDiagnostic {
    /// The line, from 1.
    pub line: u64,
    /// What is the matter there.
    pub kind: TextDiagnosticKind,
}

/// What is the matter with a place in a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextDiagnosticKind {
    /// A card that is taken has this about it.
    #[error("{0}")]
    Problem(Problem),
    /// A card that is left out, for this reason.
    #[error("{0}")]
    InvalidItem(Problem),
    /// A component that says something of a line that is not understood.
    #[error("{0}")]
    Note(String),
    /// Text that belongs to no card, and is left out.
    #[error("text outside any card")]
    TextOutsideItem,
    /// A time zone that nothing can use is left out.
    #[error("{}", NO_TZID_REASON)]
    ZoneWithoutTzid,
}

impl TextDiagnosticKind {
    /// Was something left out, or is this a warning?
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        !matches!(self, TextDiagnosticKind::Problem(_) | TextDiagnosticKind::Note(_))
    }
}

/// A text divided into cards and other things, none of them looked into yet.
#[derive(Debug, Default)]
pub struct SplitText {
    /// Each with the line of its BEGIN, and what the calendar around it says if it is no card.
    items: Vec<(u64, Vec<u8>, Option<Arc<CalendarContext>>)>,
    diagnostics: Vec<TextDiagnostic>,
}

impl SplitText {
    /// Divides a text.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::NoItem`] where it holds no component of any kind.
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
                    let frame = (name != "VCARD").then(Arc::default);
                    pieces.items.push((line, bytes.to_vec(), frame));
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

    /// The components from this one on lie in a calendar that says this.
    fn set_context(&mut self, first: usize, frame: &Arc<CalendarContext>) {
        for (_, _, of) in self.items.iter_mut().skip(first).filter(|(.., of)| of.is_some()) {
            *of = Some(Arc::clone(frame));
        }
    }

    /// Reads the cards and components. One without a UID gets a random one, made of the bytes that
    /// `random` gives.
    ///
    /// # Errors
    /// [`Error::Random`]
    pub fn parse_items(
        self,
        deriver: &Extractor,
        random: &mut dyn FnMut() -> io::Result<[u8; 16]>,
    ) -> Result<ParsedText, Error> {
        let mut typed = ParsedText { items: Vec::new(), diagnostics: self.diagnostics };
        for (line, bytes, frame) in self.items {
            match frame {
                Some(frame) => typed.add_component(deriver, line, bytes, &frame, random)?,
                None => typed.add_card(deriver, line, bytes, random)?,
            }
        }
        typed.diagnostics.sort_by_key(|remark| remark.line);
        Ok(typed)
    }
}

/// The cards and components of a text that can be added, and what there is to say about it.
#[derive(Debug)]
pub struct ParsedText {
    /// In their order; each has a UID.
    pub items: Vec<ParsedItem>,
    /// In the order of the lines.
    pub diagnostics: Vec<TextDiagnostic>,
}

impl ParsedText {
    /// Takes one card in, which begins at line `first` of the text.
    fn add_card(
        &mut self,
        deriver: &Extractor,
        first: u64,
        mut bytes: Vec<u8>,
        random: &mut dyn FnMut() -> io::Result<[u8; 16]>,
    ) -> Result<(), Error> {
        let line = |problem: &Problem| first + u64::from(problem.line.max(1)) - 1;
        let card = Contact::parse(&bytes);
        // Of the card as it was given: a UID is a line more, and may be the only one.
        if let Some(problem) = card.fatal_problem() {
            let what = TextDiagnosticKind::InvalidItem(*problem);
            self.diagnostics.push(TextDiagnostic { line: line(problem), kind: what });
            return Ok(());
        }
        let odd = |problem: &Problem| TextDiagnostic {
            line: line(problem),
            kind: TextDiagnosticKind::Problem(*problem),
        };
        self.diagnostics.extend(card.problems().iter().map(odd));
        if card.uid().is_none() {
            bytes = insert_uid(&bytes, &uid_from_random(random().map_err(Error::Random)?));
        }
        match deriver.parse_contact(bytes) {
            Ok((prepared, _)) => self.items.push(prepared),
            Err((_, problem)) => {
                let line = line(&problem);
                self.diagnostics
                    .push(TextDiagnostic { line, kind: TextDiagnosticKind::InvalidItem(problem) });
            }
        }
        Ok(())
    }
}

impl ParsedText {
    /// Takes a component of a calendar in.
    fn add_component(
        &mut self,
        deriver: &Extractor,
        first: u64,
        mut bytes: Vec<u8>,
        frame: &CalendarContext,
        random: &mut dyn FnMut() -> io::Result<[u8; 16]>,
    ) -> Result<(), Error> {
        let at = |line: u32| first + u64::from(line.max(1)) - 1;
        let uid = Component::parse(&bytes).uid();
        let mut said = Vec::new();
        // A UID is a line more, so it is looked at as it was given first.
        let taken = match deriver.parse_component(bytes.clone(), frame) {
            Ok((prepared, problems, notes)) => {
                let odd =
                    |problem: &Problem| (at(problem.line), TextDiagnosticKind::Problem(*problem));
                said.extend(problems.iter().map(odd));
                said.extend(
                    notes
                        .into_iter()
                        .map(|(line, note)| (at(line), TextDiagnosticKind::Note(note))),
                );
                Some(prepared)
            }
            Err((_, problem)) => {
                said.push((at(problem.line), TextDiagnosticKind::InvalidItem(problem)));
                None
            }
        };
        self.diagnostics
            .extend(said.into_iter().map(|(line, what)| TextDiagnostic { line, kind: what }));
        let Some(prepared) = taken else { return Ok(()) };
        if uid.is_some() {
            self.items.push(prepared);
            return Ok(());
        }
        bytes = insert_uid(&bytes, &uid_from_random(random().map_err(Error::Random)?));
        if let Ok((prepared, ..)) = deriver.parse_component(bytes, frame) {
            self.items.push(prepared);
        }
        Ok(())
    }
}

/// The one card in an edited text, without the blank lines around it, if it is whole and keeps the
/// UID that the item had: the one in `before`, its bytes, else `uid`, which it is kept under.
///
/// # Errors
/// What of this is not so.
pub fn parse_edited_card(
    deriver: &Extractor,
    uid: &str,
    before: &[u8],
    text: &[u8],
) -> Result<ParsedItem, Error> {
    let (prepared, problems) = deriver
        .parse_contact(find_single_component(text, "VCARD")?)
        .map_err(|(_, problem)| Error::InvalidItem { problem })?;
    if problems.iter().any(|problem| problem.kind == ProblemKind::MissingCardEnd) {
        return Err(Error::MissingCardEnd);
    }
    // An item that is kept beside another of its UID is known by a derived one, whatever its bytes
    // say.
    let card = Contact::parse(before);
    let own = card.uid();
    let stays = own.as_deref().unwrap_or(uid);
    match prepared.uid() {
        Some(uid) if uid != stays => Err(Error::UidChanged { uid: stays.to_string() }),
        None if own.is_some() => Err(Error::UidRemoved { uid: stays.to_string() }),
        _ => Ok(prepared),
    }
}

/// The same for a component of a calendar that says `frame`: it stays the occurrence that it was,
/// too, and gets the time of the change. What an import would remark on it comes with it.
///
/// # Errors
/// What of this is not so.
pub fn parse_edited_component(
    deriver: &Extractor,
    frame: &CalendarContext,
    uid: &str,
    before: &[u8],
    text: &[u8],
    now: Instant,
) -> Result<(ParsedItem, Vec<TextDiagnostic>), Error> {
    let name = Component::parse(before).kind().name().to_string();
    let refused = |(_, problem)| Error::InvalidItem { problem };
    let (was, ..) = deriver.parse_component(before.to_vec(), frame).map_err(refused)?;
    let text = find_single_component(text, &name)?;
    let (bytes, of) =
        crate::event::stamp_edited_component(deriver, frame, before, text.clone(), now);
    // By the lines of the text, before those of the change are in it.
    let (_, problems, notes) = deriver.parse_component(text, &of).map_err(refused)?;
    let (prepared, ..) = deriver.parse_component(bytes, &of).map_err(refused)?;
    if problems.iter().any(|problem| problem.kind == ProblemKind::MissingComponentEnd) {
        return Err(Error::MissingComponentEnd { name });
    }
    let stays = was.uid().unwrap_or(uid);
    match prepared.uid() {
        Some(uid) if uid != stays => Err(Error::UidChanged { uid: stays.to_string() }),
        None if was.uid().is_some() => Err(Error::UidRemoved { uid: stays.to_string() }),
        _ if prepared.recurrence_id() != was.recurrence_id() => Err(Error::RecurrenceIdChanged),
        _ => Ok((prepared, component_diagnostics(&problems, notes))),
    }
}

/// What there is to say about a component, by its lines.
fn component_diagnostics(problems: &[Problem], notes: Vec<(u32, String)>) -> Vec<TextDiagnostic> {
    let odd = |of: &Problem| TextDiagnostic {
        line: of.line.into(),
        kind: TextDiagnosticKind::Problem(*of),
    };
    let noted = |(line, note): (u32, String)| TextDiagnostic {
        line: line.into(),
        kind: TextDiagnosticKind::Note(note),
    };
    problems.iter().map(odd).chain(notes.into_iter().map(noted)).collect()
}

fn item_label(component: &str) -> String {
    if component == "VCARD" { "card".into() } else { component.into() }
}

/// The bytes of the only card in a text that holds nothing else but blank lines.
///
/// # Errors
/// There is none, or more than that.
pub fn find_single_card(text: &[u8]) -> Result<Vec<u8>, Error> {
    find_single_component(text, "VCARD")
}

/// The bytes of the only component of this name in a text that holds nothing else.
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

/// A UID made of random bytes (RFC 9562, version 4), as RFC 6350 6.7.6 likes it.
#[must_use]
pub fn uid_from_random(random: [u8; 16]) -> String {
    let number = u128::from_be_bytes(random);
    let version = number & !(0xf << 76) | 0x4 << 76;
    let hex = format!("{:032x}", version & !(0x3 << 62) | 0x2 << 62);
    let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
    format!("urn:uuid:{a}-{b}-{c}-{d}-{e}")
}
