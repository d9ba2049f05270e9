//! The properties of an item, whichever format it has, and what is wrong with their lines.
//!
//! What properties an item needs, and which ones are its own and not those of something inside it,
//! is for [`contact`](crate::contact) and [`component`](crate::component) to say.

use crate::decoding::unescape_text;
use crate::field_values::clean_text;
use crate::problem::{Problem, ProblemKind};
use crate::property::Property;

/// An item with more properties than this is refused.
pub const MAX_PROPERTIES_PER_ITEM: usize = 65_536;
/// Of more problems than this in one item, the rest is not told.
const MAX_PROBLEMS_PER_ITEM: usize = 20;

/// Properties in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct PropertyList<'a> {
    all: Vec<Property<'a>>,
    /// Which names they may have: most fields are in few items, and are known not to be there
    /// without looking at all properties.
    names: PropertyNameFilter,
}

/// A set of names that may also hold others.
#[derive(Debug, Clone, Copy, Default)]
struct PropertyNameFilter(u64);

impl PropertyNameFilter {
    fn bit(name: &str) -> u64 {
        let (first, last) = match name.as_bytes() {
            [first, .., last] => (first | 0x20, last | 0x20),
            _ => (0, 0),
        };
        1 << ((name.len() * 11 + usize::from(first) * 5 + usize::from(last)) % 64)
    }

    fn add(&mut self, name: &str) {
        self.0 |= PropertyNameFilter::bit(name);
    }

    fn can_contain(self, name: &str) -> bool {
        self.0 & PropertyNameFilter::bit(name) != 0
    }
}

impl<'a> PropertyList<'a> {
    /// With room for as many as an item of these bytes usually has.
    pub(crate) fn with_capacity_for(bytes: &[u8]) -> PropertyList<'a> {
        let room = (bytes.len() / 32).min(64);
        PropertyList { all: Vec::with_capacity(room), names: PropertyNameFilter::default() }
    }

    pub(crate) fn push(&mut self, property: Property<'a>) {
        self.names.add(property.name());
        self.all.push(property);
    }

    pub(crate) fn as_slice(&self) -> &[Property<'a>] {
        &self.all
    }

    /// Those of one of these names, in order.
    pub(crate) fn iter_named_any<'s>(
        &'s self,
        names: &[&str],
    ) -> impl Iterator<Item = &'s Property<'a>> {
        let some = names.iter().any(|name| self.names.can_contain(name));
        let all = if some { &self.all[..] } else { &[] };
        all.iter().filter(move |property| names.iter().any(|name| property.has_name(name)))
    }

    /// Those of this name, in order.
    pub(crate) fn iter_named<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s Property<'a>> {
        let all = if self.names.can_contain(name) { &self.all[..] } else { &[] };
        all.iter().filter(move |property| property.has_name(name))
    }

    /// Is there a value in one of these?
    pub(crate) fn has_value(&self, names: &[&str]) -> bool {
        self.iter_named_any(names).any(|property| {
            property.value().iter().any(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b';' | b','))
        })
    }

    /// The UIDs that are not empty.
    pub(crate) fn uids(&self) -> impl Iterator<Item = String> {
        self.iter_named("UID").filter_map(read_uid)
    }

    /// Where there is another UID than the first.
    pub(crate) fn second_uid_line(&self) -> Option<u32> {
        self.iter_named("UID").nth(1)?;
        let mut named = self.iter_named("UID");
        let first = named.find_map(read_uid)?;
        let other = |property: &&Property<'_>| read_uid(property).is_some_and(|uid| uid != first);
        named.find(other).map(Property::line_number)
    }

    pub(crate) fn into_owned(self) -> PropertyList<'static> {
        PropertyList {
            all: self.all.into_iter().map(Property::into_owned).collect(),
            names: self.names,
        }
    }
}

fn read_uid(property: &Property<'_>) -> Option<String> {
    clean_text(&unescape_text(&property.text()))
}

/// What is wrong with the lines of an item, line by line.
#[derive(Debug)]
pub(crate) struct ProblemCollector {
    pub(crate) problems: Vec<Problem>,
    /// The whole item is valid UTF-8, so that no line has to be looked at for that.
    is_utf8: bool,
    has_nul: bool,
    /// The line before was an unknown one: a run of those is one problem.
    is_after_unknown: bool,
}

impl ProblemCollector {
    pub(crate) fn new(bytes: &[u8]) -> ProblemCollector {
        ProblemCollector {
            problems: Vec::new(),
            is_utf8: std::str::from_utf8(bytes).is_ok(),
            has_nul: memchr::memchr(0, bytes).is_some(),
            is_after_unknown: false,
        }
    }

    /// Looks at the next line; false: it is no property.
    pub(crate) fn check_property(&mut self, property: &Property<'_>) -> bool {
        let number = property.line_number();
        if self.has_nul && memchr::memchr(0, property.raw()).is_some() {
            self.add_problem(number, ProblemKind::NulByte);
        }
        if !property.is_property() {
            if !self.is_after_unknown {
                let what = if property.has_colon() {
                    ProblemKind::BadName
                } else {
                    ProblemKind::MissingColon
                };
                self.add_problem(number, what);
            }
            self.is_after_unknown = true;
            return false;
        }
        self.is_after_unknown = false;
        if property.has_open_quote() {
            self.add_problem(number, ProblemKind::UnclosedQuote);
        }
        if !self.is_utf8
            && std::str::from_utf8(property.value()).is_err()
            && property.param("CHARSET").is_none()
        {
            self.add_problem(number, ProblemKind::NotUtf8);
        }
        true
    }

    /// Notes a problem. What holds for an item as a whole is said once, and nothing without end.
    pub(crate) fn add_problem(&mut self, line: u32, what: ProblemKind) {
        let once = matches!(what, ProblemKind::NotUtf8 | ProblemKind::NulByte);
        let said = self.problems.iter().any(|problem| once && problem.kind == what);
        if self.problems.len() < MAX_PROBLEMS_PER_ITEM && !said {
            self.problems.push(Problem { line, kind: what });
        }
    }
}
