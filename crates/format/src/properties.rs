//! The properties of an item, whichever format it has, and what is wrong with their lines.
//!
//! What properties an item needs, and which ones are its own and not those of something inside it, is for
//! [`contact`](crate::contact) and [`component`](crate::component) to say.

use crate::decode::unescape_text;
use crate::problem::{Defect, Problem};
use crate::property::Property;
use crate::value::clean;

/// An item with more properties than this is refused.
pub const MAX_PROPERTIES: usize = 65_536;
/// Of more problems than this in one item, the rest is not told.
const MAX_PROBLEMS: usize = 20;

/// Properties in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Properties<'a> {
    all: Vec<Property<'a>>,
    /// Which names they may have: most fields are in few items, and are known not to be there without looking
    /// at all properties.
    names: NameSet,
}

/// A set of names that may also hold others.
#[derive(Debug, Clone, Copy, Default)]
struct NameSet(u64);

impl NameSet {
    fn bit(name: &str) -> u64 {
        let (first, last) = match name.as_bytes() {
            [first, .., last] => (first | 0x20, last | 0x20),
            _ => (0, 0),
        };
        1 << ((name.len() * 11 + usize::from(first) * 5 + usize::from(last)) % 64)
    }

    fn add(&mut self, name: &str) {
        self.0 |= NameSet::bit(name);
    }

    fn may_hold(self, name: &str) -> bool {
        self.0 & NameSet::bit(name) != 0
    }
}

impl<'a> Properties<'a> {
    /// With room for as many as an item of these bytes usually has.
    pub(crate) fn with_room_for(bytes: &[u8]) -> Properties<'a> {
        let room = (bytes.len() / 32).min(64);
        Properties { all: Vec::with_capacity(room), names: NameSet::default() }
    }

    pub(crate) fn push(&mut self, property: Property<'a>) {
        self.names.add(property.name());
        self.all.push(property);
    }

    pub(crate) fn all(&self) -> &[Property<'a>] {
        &self.all
    }

    /// Those of one of these names, in order.
    pub(crate) fn named<'s>(&'s self, names: &[&str]) -> impl Iterator<Item = &'s Property<'a>> {
        let some = names.iter().any(|name| self.names.may_hold(name));
        let all = if some { &self.all[..] } else { &[] };
        all.iter().filter(move |property| names.iter().any(|name| property.is(name)))
    }

    /// Those of this name, in order.
    pub(crate) fn of_name<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s Property<'a>> {
        let all = if self.names.may_hold(name) { &self.all[..] } else { &[] };
        all.iter().filter(move |property| property.is(name))
    }

    /// Is there a value in one of these?
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.named(names).any(|property| {
            property.value().iter().any(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b';' | b','))
        })
    }

    /// The UIDs that are not empty.
    pub(crate) fn uids(&self) -> impl Iterator<Item = String> {
        self.of_name("UID").filter_map(uid)
    }

    /// Where there is another UID than the first.
    pub(crate) fn second_uid(&self) -> Option<u32> {
        self.of_name("UID").nth(1)?;
        let mut named = self.of_name("UID");
        let first = named.find_map(uid)?;
        let other = |property: &&Property<'_>| uid(property).is_some_and(|uid| uid != first);
        named.find(other).map(Property::number)
    }

    pub(crate) fn into_owned(self) -> Properties<'static> {
        Properties {
            all: self.all.into_iter().map(Property::into_owned).collect(),
            names: self.names,
        }
    }
}

fn uid(property: &Property<'_>) -> Option<String> {
    clean(&unescape_text(&property.text()))
}

/// What is wrong with the lines of an item, line by line.
#[derive(Debug)]
pub(crate) struct Notes {
    pub(crate) problems: Vec<Problem>,
    /// The whole item is valid UTF-8, so that no line has to be looked at for that.
    valid: bool,
    has_nul: bool,
    /// The line before was an unknown one: a run of those is one problem.
    unknown: bool,
}

impl Notes {
    pub(crate) fn new(bytes: &[u8]) -> Notes {
        Notes {
            problems: Vec::new(),
            valid: std::str::from_utf8(bytes).is_ok(),
            has_nul: memchr::memchr(0, bytes).is_some(),
            unknown: false,
        }
    }

    /// Looks at the next line; false: it is no property.
    pub(crate) fn look_at(&mut self, property: &Property<'_>) -> bool {
        let number = property.number();
        if self.has_nul && memchr::memchr(0, property.raw()).is_some() {
            self.note(number, Defect::NulByte);
        }
        if !property.is_known() {
            if !self.unknown {
                let what = if property.has_colon() { Defect::BadName } else { Defect::NoColon };
                self.note(number, what);
            }
            self.unknown = true;
            return false;
        }
        self.unknown = false;
        if property.has_open_quote() {
            self.note(number, Defect::OpenQuote);
        }
        if !self.valid
            && std::str::from_utf8(property.value()).is_err()
            && property.param("CHARSET").is_none()
        {
            self.note(number, Defect::NotUtf8);
        }
        true
    }

    /// Notes a problem. What holds for an item as a whole is said once, and nothing without end.
    pub(crate) fn note(&mut self, line: u32, what: Defect) {
        let once = matches!(what, Defect::NotUtf8 | Defect::NulByte);
        let said = self.problems.iter().any(|problem| once && problem.what == what);
        if self.problems.len() < MAX_PROBLEMS && !said {
            self.problems.push(Problem { line, what });
        }
    }
}
