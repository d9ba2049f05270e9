//! The properties of an item of any format, and the problems of their lines.
//!
//! [`contact`](crate::contact) and [`component`](crate::component) decide which properties an item
//! needs, and which belong to the item itself rather than to a component inside it.

use crate::decoding::{clean_text, unescape_text};
use crate::problem::{Problem, ProblemKind};
use crate::property::Property;

/// At most this many problems are reported for one item.
const MAX_PROBLEMS_PER_ITEM: usize = 20;

/// Properties in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct PropertyList<'a> {
    all: Vec<Property<'a>>,
    /// A filter of the names present: most fields occur in few items, and the filter excludes them
    /// without a scan.
    names: PropertyNameFilter,
}

/// A set of names with false positives.
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
    /// Creates a list with room for the usual number of properties in an item of this size.
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

    /// Returns the properties with one of these names, in order.
    pub(crate) fn iter_named_any<'s>(
        &'s self,
        names: &[&str],
    ) -> impl Iterator<Item = &'s Property<'a>> {
        let may_contain = names.iter().any(|name| self.names.can_contain(name));
        let all = if may_contain { &self.all[..] } else { &[] };
        all.iter().filter(move |property| names.iter().any(|name| property.has_name(name)))
    }

    /// Returns the properties with this name, in order.
    pub(crate) fn iter_named<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s Property<'a>> {
        let all = if self.names.can_contain(name) { &self.all[..] } else { &[] };
        all.iter().filter(move |property| property.has_name(name))
    }

    /// Returns whether one of these properties has a value.
    pub(crate) fn has_value(&self, names: &[&str]) -> bool {
        self.iter_named_any(names).any(|property| {
            property.value().iter().any(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b';' | b','))
        })
    }

    /// The UIDs that are not empty.
    pub(crate) fn uids(&self) -> impl Iterator<Item = String> {
        self.iter_named("UID").filter_map(read_uid)
    }

    /// The line of a second, different UID.
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

/// Collects the problems of an item, line by line.
#[derive(Debug)]
pub(crate) struct ProblemCollector {
    pub(crate) problems: Vec<Problem>,
    /// The whole item is valid UTF-8, so that single lines need no check.
    is_utf8: bool,
    has_nul: bool,
    /// The previous line could not be parsed: a run of such lines is one problem.
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

    /// Checks the next line. Returns false if it is not a property.
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

    /// Adds a problem. A problem of the whole item is reported once, and the number of problems is
    /// limited. A missing end is always reported: an item without it replaces no other one.
    pub(crate) fn add_problem(&mut self, line: u32, what: ProblemKind) {
        let once = matches!(what, ProblemKind::NotUtf8 | ProblemKind::NulByte);
        let is_reported = self.problems.iter().any(|problem| once && problem.kind == what);
        let has_room = self.problems.len() < MAX_PROBLEMS_PER_ITEM || what.is_missing_end();
        if has_room && !is_reported {
            self.problems.push(Problem { line, kind: what });
        }
    }
}
