//! Cards that a person typed: what is to be added, and what came back from an editor.
//!
//! Pure functions from bytes to cards that the store can take, or to what is wrong with them. It reads no
//! file and writes nothing. It is apart from `import`, which takes streams of any size and whatever is in
//! them: here a person waits, everything is in memory, and one bad line is worth a refusal.

use larder_format::contact::{Contact, Defect, Problem, with_uid};
use larder_format::split::{Piece, Splitter};
use larder_store::{Deriver, Prepared};
use std::io;

/// More bytes than this were typed by nobody; [`import`](crate::import()) takes larger files.
pub const LARGEST: usize = 32 << 20;

/// Why a text holds no card that can be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No text at all, or none that is a card.
    #[error("there is no card in it")]
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
    #[error("one card is needed, and there are {found}")]
    NotOne {
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
    /// Something else than a card, which is left out.
    #[error("{0}: not an address card")]
    OtherKind(String),
    /// Text that belongs to no card, and is left out.
    #[error("text outside any card")]
    Outside,
}

impl What {
    /// Was something left out, or is this a warning?
    #[must_use]
    pub fn left_out(&self) -> bool {
        !matches!(self, What::Odd(_))
    }
}

/// A text divided into cards and other things, none of them looked into yet.
#[derive(Debug, Default)]
pub struct Pieces {
    /// Each with the line of its BEGIN.
    cards: Vec<(u64, Vec<u8>)>,
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
        let (mut any, mut in_calendar) = (false, false);
        split(text, LARGEST, &mut |piece| {
            any |= matches!(piece, Piece::Component { .. } | Piece::CalendarBegins { .. });
            let (line, what) = match piece {
                Piece::CalendarBegins { line, .. } => {
                    in_calendar = true;
                    (line, What::OtherKind("VCALENDAR".into()))
                }
                Piece::CalendarEnds { .. } => {
                    in_calendar = false;
                    return;
                }
                _ if in_calendar => return,
                Piece::Component { name: "VCARD", line, bytes, .. } => {
                    pieces.cards.push((line, bytes.to_vec()));
                    return;
                }
                Piece::Component { name, line, .. } => (line, What::OtherKind(name.to_string())),
                Piece::Stray { first: true, line, .. } => (line, What::Outside),
                Piece::CalendarLines { .. } | Piece::Stray { .. } => return,
            };
            pieces.remarks.push(Remark { line, what });
        });
        if any { Ok(pieces) } else { Err(Error::NoCard) }
    }

    /// Reads the cards. One without a UID gets a random one, made of the bytes that `random` gives.
    ///
    /// # Errors
    /// [`Error::Random`]
    pub fn typed(
        self,
        deriver: &Deriver,
        random: &mut dyn FnMut() -> io::Result<[u8; 16]>,
    ) -> Result<Typed, Error> {
        let mut typed = Typed { cards: Vec::new(), remarks: self.remarks };
        for (line, bytes) in self.cards {
            typed.card(deriver, line, bytes, random)?;
        }
        typed.remarks.sort_by_key(|remark| remark.line);
        Ok(typed)
    }
}

/// The cards of a text that can be added, and what there is to say about it.
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

/// The one card in an edited text, without the blank lines around it, if it is whole and keeps the UID that
/// the item had: the one in `before`, its bytes, else `uid`, which it is kept under.
///
/// # Errors
/// What of this is not so.
pub fn edited(deriver: &Deriver, uid: &str, before: &[u8], text: &[u8]) -> Result<Prepared, Error> {
    let (prepared, problems) =
        deriver.contact(only(text)?).map_err(|(_, problem)| Error::Refused { problem })?;
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

/// The bytes of the only card in a text that holds nothing else.
fn only(text: &[u8]) -> Result<Vec<u8>, Error> {
    let mut cards: Vec<Vec<u8>> = Vec::new();
    let mut outside = None;
    split(text, usize::MAX, &mut |piece| match piece {
        Piece::Component { name: "VCARD", bytes, .. } => cards.push(bytes.to_vec()),
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
        (None, Err(cards)) => Err(Error::NotOne { found: cards.len() }),
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
