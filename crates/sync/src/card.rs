//! Cards and components of calendars that a person typed: what is to be added, and what came back from an editor.
//!
//! Pure functions from bytes to items that the store can take, or to what is wrong with them. It reads no
//! file and writes nothing. It is apart from `import`, which takes streams of any size and whatever is in
//! them: here a person waits, everything is in memory, and one bad line is worth a refusal.

use crate::import::calendar::{Calendar, NO_TZID};
use larder_format::component::Component;
use larder_format::contact::{Contact, Defect, Problem, with_uid};
use larder_format::split::{Piece, Splitter};
use larder_store::{Deriver, Frame, Prepared};
use larder_time::civil::Instant;
use std::io;
use std::sync::Arc;

/// More bytes than this were typed by nobody; [`import`](crate::import()) takes larger files.
pub const LARGEST: usize = 32 << 20;

/// Why a text holds no card that can be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No text at all, or none that is a card.
    #[error("there is no card and no event in it")]
    NoCard,
    /// More bytes than [`LARGEST`].
    #[error("it has more than 32 MB")]
    TooLarge,
    /// A card without a UID needs a random one.
    #[error("no random number could be had: {0}")]
    Random(#[source] io::Error),
    /// An edited text has more than the card in it.
    #[error("line {line}: text outside the card")]
    Outside {
        /// Where that text begins, from 1.
        line: u64,
    },
    /// An edited text has no card in it, or several.
    #[error("one {name} is needed, and there are {found}")]
    NotOne {
        /// A card, or the name of a component.
        name: String,
        /// How many there are.
        found: usize,
    },
    /// An edited card is none that the store can take.
    #[error("line {}: {problem}", .problem.line)]
    Refused {
        /// What is wrong with it, and where.
        problem: Problem,
    },
    /// An edited card that may be half of one.
    #[error("the line END:VCARD is missing")]
    NoEnd,
    /// An edited component that may be half of one.
    #[error("the line END:{name} is missing")]
    NoComponentEnd {
        /// What it is.
        name: String,
    },
    /// An edited component that would stand for another occurrence.
    #[error("the RECURRENCE-ID has to stay as it is: it says which occurrence it is")]
    OtherOccurrence,
    /// An edited card that would be another item.
    #[error("the UID has to stay {uid:?}: it is what the item is known by")]
    OtherUid {
        /// The UID it had.
        uid: String,
    },
    /// An edited card that lost the line it is known by.
    #[error("the line UID:{uid} is missing")]
    NoUid {
        /// The UID it had.
        uid: String,
    },
}

/// What there is to say about a place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The line, from 1.
    pub line: u64,
    /// What is the matter there.
    pub what: What,
}

/// What is the matter with a place in a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum What {
    /// A card that is taken has this about it.
    #[error("{0}")]
    Odd(Problem),
    /// A card that is left out, for this reason.
    #[error("{0}")]
    Refused(Problem),
    /// A component that says something of a line that is not understood.
    #[error("{0}")]
    Noted(String),
    /// Text that belongs to no card, and is left out.
    #[error("text outside any card")]
    Outside,
    /// A time zone that nothing can use is left out.
    #[error("{}", NO_TZID)]
    Nameless,
}

impl What {
    /// Was something left out, or is this a warning?
    #[must_use]
    pub fn left_out(&self) -> bool {
        !matches!(self, What::Odd(_) | What::Noted(_))
    }
}

/// A text divided into cards and other things, none of them looked into yet.
#[derive(Debug, Default)]
pub struct Pieces {
    /// Each with the line of its BEGIN, and what the calendar around it says if it is no card.
    items: Vec<(u64, Vec<u8>, Option<Arc<Frame>>)>,
    remarks: Vec<Remark>,
}

impl Pieces {
    /// Divides a text.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::NoCard`] where it holds no component of any kind.
    pub fn of(text: &[u8]) -> Result<Pieces, Error> {
        if text.len() > LARGEST {
            return Err(Error::TooLarge);
        }
        let mut pieces = Pieces::default();
        let mut calendar = Calendar::default();
        let (mut any, mut first) = (false, 0);
        split(text, LARGEST, &mut |piece| {
            any |= matches!(piece, Piece::Component { .. });
            match piece {
                Piece::CalendarBegins { .. } => {
                    calendar.begin();
                    first = pieces.items.len();
                }
                Piece::CalendarLines { bytes, .. } => {
                    calendar.say(bytes);
                }
                Piece::CalendarEnds { .. } => {
                    pieces.frame(first, &calendar.around().frame);
                    calendar.begin();
                    first = pieces.items.len();
                }
                Piece::Component { name: "VTIMEZONE", line, bytes, .. } => {
                    if !calendar.define(bytes) {
                        pieces.remarks.push(Remark { line, what: What::Nameless });
                    }
                }
                Piece::Component { name, line, bytes, .. } => {
                    let frame = (name != "VCARD").then(Arc::default);
                    pieces.items.push((line, bytes.to_vec(), frame));
                }
                Piece::Stray { first: true, line, .. } => {
                    pieces.remarks.push(Remark { line, what: What::Outside });
                }
                Piece::Stray { .. } => {}
            }
        });
        pieces.frame(first, &calendar.around().frame);
        if any { Ok(pieces) } else { Err(Error::NoCard) }
    }

    /// The components from this one on lie in a calendar that says this.
    fn frame(&mut self, first: usize, frame: &Arc<Frame>) {
        for (_, _, of) in self.items.iter_mut().skip(first).filter(|(.., of)| of.is_some()) {
            *of = Some(Arc::clone(frame));
        }
    }

    /// Reads the cards and components. One without a UID gets a random one, made of the bytes that `random` gives.
    ///
    /// # Errors
    /// [`Error::Random`]
    pub fn typed(
        self,
        deriver: &Deriver,
        random: &mut dyn FnMut() -> io::Result<[u8; 16]>,
    ) -> Result<Typed, Error> {
        let mut typed = Typed { cards: Vec::new(), remarks: self.remarks };
        for (line, bytes, frame) in self.items {
            match frame {
                Some(frame) => typed.component(deriver, line, bytes, &frame, random)?,
                None => typed.card(deriver, line, bytes, random)?,
            }
        }
        typed.remarks.sort_by_key(|remark| remark.line);
        Ok(typed)
    }
}

/// The cards and components of a text that can be added, and what there is to say about it.
#[derive(Debug)]
pub struct Typed {
    /// In their order; each has a UID.
    pub cards: Vec<Prepared>,
    /// In the order of the lines.
    pub remarks: Vec<Remark>,
}

impl Typed {
    /// Takes one card in, which begins at line `first` of the text.
    fn card(
        &mut self,
        deriver: &Deriver,
        first: u64,
        mut bytes: Vec<u8>,
        random: &mut dyn FnMut() -> io::Result<[u8; 16]>,
    ) -> Result<(), Error> {
        let line = |problem: &Problem| first + u64::from(problem.line.max(1)) - 1;
        let card = Contact::parse(&bytes);
        // Of the card as it was given: a UID is a line more, and may be the only one.
        if let Some(problem) = card.refusal() {
            let what = What::Refused(*problem);
            self.remarks.push(Remark { line: line(problem), what });
            return Ok(());
        }
        let odd = |problem: &Problem| Remark { line: line(problem), what: What::Odd(*problem) };
        self.remarks.extend(card.problems().iter().map(odd));
        if card.uid().is_none() {
            bytes = with_uid(&bytes, &fresh_uid(random().map_err(Error::Random)?));
        }
        match deriver.contact(bytes) {
            Ok((prepared, _)) => self.cards.push(prepared),
            Err((_, problem)) => {
                let line = line(&problem);
                self.remarks.push(Remark { line, what: What::Refused(problem) });
            }
        }
        Ok(())
    }
}

impl Typed {
    /// Takes a component of a calendar in.
    fn component(
        &mut self,
        deriver: &Deriver,
        first: u64,
        mut bytes: Vec<u8>,
        frame: &Frame,
        random: &mut dyn FnMut() -> io::Result<[u8; 16]>,
    ) -> Result<(), Error> {
        let at = |line: u32| first + u64::from(line.max(1)) - 1;
        let uid = Component::parse(&bytes).uid();
        let mut said = Vec::new();
        // A UID is a line more, so it is looked at as it was given first.
        let taken = match deriver.component(bytes.clone(), frame) {
            Ok((prepared, problems, notes)) => {
                let odd = |problem: &Problem| (at(problem.line), What::Odd(*problem));
                said.extend(problems.iter().map(odd));
                said.extend(notes.into_iter().map(|(line, note)| (at(line), What::Noted(note))));
                Some(prepared)
            }
            Err((_, problem)) => {
                said.push((at(problem.line), What::Refused(problem)));
                None
            }
        };
        self.remarks.extend(said.into_iter().map(|(line, what)| Remark { line, what }));
        let Some(prepared) = taken else { return Ok(()) };
        if uid.is_some() {
            self.cards.push(prepared);
            return Ok(());
        }
        bytes = with_uid(&bytes, &fresh_uid(random().map_err(Error::Random)?));
        if let Ok((prepared, ..)) = deriver.component(bytes, frame) {
            self.cards.push(prepared);
        }
        Ok(())
    }
}

/// The one card in an edited text, without the blank lines around it, if it is whole and keeps the UID that
/// the item had: the one in `before`, its bytes, else `uid`, which it is kept under.
///
/// # Errors
/// What of this is not so.
pub fn edited(deriver: &Deriver, uid: &str, before: &[u8], text: &[u8]) -> Result<Prepared, Error> {
    let (prepared, problems) =
        deriver.contact(only(text, "VCARD")?).map_err(|(_, problem)| Error::Refused { problem })?;
    if problems.iter().any(|problem| problem.what == Defect::NoEnd) {
        return Err(Error::NoEnd);
    }
    // An item that is kept beside another of its UID is known by a derived one, whatever its bytes say.
    let card = Contact::parse(before);
    let own = card.uid();
    let stays = own.as_deref().unwrap_or(uid);
    match prepared.uid() {
        Some(uid) if uid != stays => Err(Error::OtherUid { uid: stays.to_string() }),
        None if own.is_some() => Err(Error::NoUid { uid: stays.to_string() }),
        _ => Ok(prepared),
    }
}

/// The same for a component of a calendar that says `frame`: it stays the occurrence that it was, too, and gets the time of the change.
/// What an import would remark on it comes with it.
///
/// # Errors
/// What of this is not so.
pub fn edited_component(
    deriver: &Deriver,
    frame: &Frame,
    uid: &str,
    before: &[u8],
    text: &[u8],
    now: Instant,
) -> Result<(Prepared, Vec<Remark>), Error> {
    let name = Component::parse(before).kind().name().to_string();
    let refused = |(_, problem)| Error::Refused { problem };
    let (was, ..) = deriver.component(before.to_vec(), frame).map_err(refused)?;
    let text = only(text, &name)?;
    let (bytes, of) = crate::event::noted(deriver, frame, before, text.clone(), now);
    // By the lines of the text, before those of the change are in it.
    let (_, problems, notes) = deriver.component(text, &of).map_err(refused)?;
    let (prepared, ..) = deriver.component(bytes, &of).map_err(refused)?;
    if problems.iter().any(|problem| problem.what == Defect::NoComponentEnd) {
        return Err(Error::NoComponentEnd { name });
    }
    let stays = was.uid().unwrap_or(uid);
    match prepared.uid() {
        Some(uid) if uid != stays => Err(Error::OtherUid { uid: stays.to_string() }),
        None if was.uid().is_some() => Err(Error::NoUid { uid: stays.to_string() }),
        _ if prepared.recurrence() != was.recurrence() => Err(Error::OtherOccurrence),
        _ => Ok((prepared, remarks(&problems, notes))),
    }
}

/// What there is to say about a component, by its lines.
fn remarks(problems: &[Problem], notes: Vec<(u32, String)>) -> Vec<Remark> {
    let odd = |of: &Problem| Remark { line: of.line.into(), what: What::Odd(*of) };
    let noted = |(line, note): (u32, String)| Remark { line: line.into(), what: What::Noted(note) };
    problems.iter().map(odd).chain(notes.into_iter().map(noted)).collect()
}

fn called(component: &str) -> String {
    if component == "VCARD" { "card".into() } else { component.into() }
}

/// The bytes of the only card in a text that holds nothing else but blank lines.
///
/// # Errors
/// There is none, or more than that.
pub fn only_card(text: &[u8]) -> Result<Vec<u8>, Error> {
    only(text, "VCARD")
}

/// The bytes of the only component of this name in a text that holds nothing else.
fn only(text: &[u8], wanted: &str) -> Result<Vec<u8>, Error> {
    let mut cards: Vec<Vec<u8>> = Vec::new();
    let mut outside = None;
    split(text, usize::MAX, &mut |piece| match piece {
        Piece::Component { name, bytes, .. } if name == wanted => cards.push(bytes.to_vec()),
        Piece::CalendarLines { .. } | Piece::CalendarEnds { .. } => {}
        Piece::Component { line, .. }
        | Piece::CalendarBegins { line, .. }
        | Piece::Stray { line, .. } => {
            outside = outside.or(Some(line));
        }
    });
    match (outside, <[Vec<u8>; 1]>::try_from(cards)) {
        (Some(line), _) => Err(Error::Outside { line }),
        (None, Ok([card])) => Ok(card),
        (None, Err(cards)) => Err(Error::NotOne { name: called(wanted), found: cards.len() }),
    }
}

fn split(text: &[u8], largest: usize, sink: &mut dyn FnMut(Piece<'_>)) {
    let mut splitter = Splitter::new(largest);
    splitter.push(text, sink);
    splitter.finish(sink);
}

/// A UID made of random bytes (RFC 9562, version 4), as RFC 6350 6.7.6 likes it.
#[must_use]
pub fn fresh_uid(random: [u8; 16]) -> String {
    let number = u128::from_be_bytes(random);
    let version = number & !(0xf << 76) | 0x4 << 76;
    let hex = format!("{:032x}", version & !(0x3 << 62) | 0x2 << 62);
    let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
    format!("urn:uuid:{a}-{b}-{c}-{d}-{e}")
}
