//! What a question means for an item: the plain test of one parsed card or component. The planner's answer is right
//! when it is this one's.
//!
//! A [`Matcher`] is made once a question, and then tests many items: texts are folded, patterns compiled and
//! numbers read when it is made, and of an item only the values are decoded that the question looks at. As the fields of
//! contacts are not those of what is in calendars, it is made ready for each. What is asked of an item is in `item`; how one
//! value passes, in `compare`.
//!
//! The functions mean what they mean to evolution-data-server's own evaluator in memory (`e-book-backend-sexp.c`),
//! with its SQL evaluator's folding on both sides; `tests/eds_functions.rs` lists where they differ on purpose.

use crate::compare::{Compare, Needle};
use crate::item::{Item, KeptItem, Values};
use crate::query::{Comparison, Number, Query, Subject, Test};
use crate::time::{Stamp, TimeTest};
use larder_format::contact::Contact;
use larder_format::decode::{split_structured, unescape_text};
use larder_format::field::{CALENDAR_FIELDS, FIELDS, Field, Kind, calendar_field, field};
use larder_format::property::Property;
use larder_store::{Family, ItemHead, Kept, Reader, Verdict, Window, can_keep};
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::{LazyLock, OnceLock};

/// A question made ready to be put to many items. Of a family no item of which answers it, nothing is kept.
#[derive(Debug, Clone)]
pub struct Matcher {
    contacts: Option<Box<OfFamily>>,
    calendar: Option<Box<OfFamily>>,
    anew: bool,
}

/// The question as it is put to items of one family.
#[derive(Debug, Clone)]
struct OfFamily {
    node: Node,
    /// The fields that it looks at; `None`: it looks at whole items.
    fields: Option<Box<[&'static Field]>>,
    /// It looks at UIDs.
    uids: bool,
}

#[derive(Debug, Clone)]
enum Node {
    Constant(bool),
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Word(Needle, Family),
    Uids(HashSet<String>),
    Uid(Compare),
    Fields(Fields, Compare),
    Property(String, Compare),
    Any(&'static [&'static Field], Compare),
    Kind(larder_store::Kind),
    In(Window),
    Stamp(Stamp, Window),
    Overdue(Window),
    Number(Number, Comparison, i64),
}

/// The fields that a test of one field looks at.
#[derive(Debug, Clone)]
struct Fields {
    of: &'static [&'static Field],
    /// Is no value as good as an empty one? Not so where evolution-data-server has a list.
    or_empty: bool,
}

impl Matcher {
    /// Makes a question ready. A pattern that cannot be compiled, which no parser lets through, matches nothing.
    #[must_use]
    pub fn new(query: &Query) -> Matcher {
        let of = |family| {
            let node = Node::of(query, family);
            if matches!(node, Node::Constant(false)) {
                return None;
            }
            let mut fields = Vec::new();
            let fields = node.looks_at(&mut fields).then_some(fields.into());
            let uids = node.looks_at_uids();
            Some(Box::new(OfFamily { node, fields, uids }))
        };
        Matcher { contacts: of(Family::Contacts), calendar: of(Family::Calendar), anew: false }
    }

    /// Does the card answer the question, kept under this UID? A question about UIDs is about those under which
    /// items are kept, and about those that their cards name.
    #[must_use]
    pub fn matches(&self, uid: &str, card: &Contact<'_>) -> bool {
        self.contacts.as_ref().is_some_and(|of| of.node.matches(uid, card))
    }

    /// Does the item answer the question?
    #[must_use]
    pub fn matches_item(&self, item: &Item<'_>) -> bool {
        self.of(item.head).is_some_and(|of| of.node.matches(&item.head.uid, item))
    }

    /// Does something answer the question that is, or was, this item?
    pub(crate) fn matches_values(&self, head: &ItemHead, values: &impl Values) -> bool {
        self.of(head).is_some_and(|of| of.node.matches(&head.uid, values))
    }

    /// Does what is kept of an item answer the question? `None`: it does not tell, and the item has to be asked. Where there is a
    /// doubt, it is said.
    pub(crate) fn matches_kept(
        &self,
        reader: &Reader,
        head: &ItemHead,
        kept: &Kept<'_>,
        doubt: &Cell<bool>,
    ) -> Option<bool> {
        if self.anew {
            return None;
        }
        let Some(of) = self.of(head) else { return Some(false) };
        let fields = of.fields.as_ref().filter(|_| !(of.uids && head.derived_uid))?;
        let item = KeptItem { reader, head, kept: *kept, doubt };
        fields.iter().all(|field| kept.holds(field)).then(|| of.node.matches(&head.uid, &item))
    }

    /// Can what is kept of an item answer the question?
    pub(crate) fn asks_what_is_kept(&self) -> bool {
        let mut families = [&self.contacts, &self.calendar].into_iter().flatten();
        !self.anew && families.any(|of| of.fields.is_some())
    }

    /// The same question, put to items as they are, and not to anything that is derived from them.
    pub(crate) fn by_cards(self) -> Matcher {
        Matcher { anew: true, ..self }
    }

    /// Is it put to nothing that is derived?
    pub(crate) fn is_anew(&self) -> bool {
        self.anew
    }

    fn of(&self, head: &ItemHead) -> Option<&OfFamily> {
        match head.kind.family() {
            Family::Calendar => self.calendar.as_deref(),
            _ => self.contacts.as_deref(),
        }
    }
}

impl Node {
    fn of(query: &Query, family: Family) -> Node {
        match query {
            Query::All => Node::Constant(true),
            Query::And(of) => Node::join(of, family, true),
            Query::Or(of) => Node::join(of, family, false),
            Query::Not(query) => match Node::of(query, family) {
                Node::Constant(answer) => Node::Constant(!answer),
                node => Node::Not(Box::new(node)),
            },
            Query::Word(text) => Node::Word(Needle::of(text), family),
            Query::Uids(uids) => Node::Uids(uids.iter().cloned().collect()),
            Query::Test(test) => Node::test(test, family),
            Query::Kind(kind) if kind.family() == family => Node::Kind(*kind),
            Query::Time(_) | Query::Number(..) | Query::Kind(_) if family != Family::Calendar => {
                Node::Constant(false)
            }
            Query::Kind(_) => Node::Constant(false),
            Query::Time(TimeTest::In(window)) => Node::In(window.clone()),
            Query::Time(TimeTest::Stamp(stamp, window)) => Node::Stamp(*stamp, window.clone()),
            Query::Time(TimeTest::Overdue(window)) => Node::Overdue(window.clone()),
            Query::Number(number, comparison, value) => {
                Node::Number(number.clone(), *comparison, *value)
            }
        }
    }

    /// All of these, or any. What is constant for the family decides, or says nothing.
    fn join(of: &[Query], family: Family, all: bool) -> Node {
        let mut nodes = Vec::new();
        for query in of {
            match Node::of(query, family) {
                Node::Constant(answer) if answer != all => return Node::Constant(answer),
                Node::Constant(_) => {}
                node => nodes.push(node),
            }
        }
        nodes.shrink_to_fit();
        match (nodes.pop(), nodes.is_empty()) {
            (None, _) => Node::Constant(all),
            (Some(one), true) => one,
            (Some(last), false) => {
                nodes.push(last);
                if all { Node::And(nodes) } else { Node::Or(nodes) }
            }
        }
    }

    fn test(test: &Test, family: Family) -> Node {
        let Some(compare) = Compare::of(test) else { return Node::Constant(false) };
        match &test.subject {
            Subject::Nothing => Node::Constant(false),
            Subject::Field(field) => match looked_at(field, family) {
                [] => Node::Constant(false),
                [Field { kind: Kind::Uid, .. }] => Node::Uid(compare),
                of => Node::Fields(Fields { of, or_empty: !is_list(field) }, compare),
            },
            Subject::Property(name) => Node::Property(name.clone(), compare),
            // Some field or other is missing in every card.
            Subject::Any if compare.passes("") => Node::Constant(true),
            Subject::Any => Node::Any(any_fields(family), compare),
        }
    }

    /// Adds the fields that it looks at. False: it looks at more.
    fn looks_at(&self, fields: &mut Vec<&'static Field>) -> bool {
        let of: &[&'static Field] = match self {
            Node::Constant(_) | Node::Uids(_) | Node::Uid(_) | Node::Kind(_) | Node::In(_) => &[],
            Node::Number(Number::Occurrences(_) | Number::Constant(_), ..) => &[],
            Node::And(of) | Node::Or(of) => return of.iter().all(|node| node.looks_at(fields)),
            Node::Not(node) => return node.looks_at(fields),
            Node::Word(_, family) => word_fields(*family),
            Node::Fields(Fields { of, .. }, _) => of,
            Node::Number(Number::Field(field), ..) => {
                fields.push(field);
                return can_keep(field);
            }
            Node::Property(..) | Node::Any(..) | Node::Stamp(..) | Node::Overdue(_) => {
                return false;
            }
        };
        fields.extend(of);
        of.iter().all(|field| can_keep(field))
    }

    fn looks_at_uids(&self) -> bool {
        match self {
            Node::Uids(_) | Node::Uid(_) => true,
            Node::And(of) | Node::Or(of) => of.iter().any(Node::looks_at_uids),
            Node::Not(node) => node.looks_at_uids(),
            _ => false,
        }
    }

    fn matches(&self, uid: &str, item: &impl Values) -> bool {
        match self {
            Node::Constant(answer) => *answer,
            Node::And(all) => all.iter().all(|node| node.matches(uid, item)),
            Node::Or(any) => any.iter().any(|node| node.matches(uid, item)),
            Node::Not(node) => !node.matches(uid, item),
            Node::Word(needle, family) => has_word(needle, item, *family),
            Node::Uids(uids) => {
                uids.contains(uid) || item.uid().is_some_and(|uid| uids.contains(&uid))
            }
            Node::Uid(compare) => {
                compare.passes(uid) || item.uid().is_some_and(|uid| compare.passes(&uid))
            }
            Node::Fields(fields, compare) => fields.pass(compare, item),
            Node::Property(name, compare) => property_passes(name, compare, item.properties()),
            Node::Any(fields, compare) => fields.iter().any(|field| {
                item.any(field, &mut |value| compare.passes_in(field, value)).unwrap_or_default()
            }),
            Node::Kind(kind) => item.kind() == *kind,
            Node::In(window) => item.times().is_some_and(|times| {
                let verdict = times.meets(window);
                if verdict == Verdict::Unknown {
                    item.doubt();
                }
                verdict == Verdict::Yes
            }),
            Node::Stamp(stamp, window) => item
                .stamp(*stamp, &window.local)
                .is_some_and(|at| window.from <= at && at < window.to),
            Node::Overdue(window) => item.is_overdue(window),
            Node::Number(number, comparison, value) => {
                comparison.holds(number_of(number, item), *value)
            }
        }
    }
}

/// The number that an item has; -1 where it has none.
fn number_of(number: &Number, item: &impl Values) -> i64 {
    match number {
        Number::Constant(number) => *number,
        Number::Field(field) => {
            let mut found = -1;
            item.any(field, &mut |value| {
                found = value.trim().parse().unwrap_or(-1);
                true
            });
            found
        }
        Number::Occurrences(None) => -1,
        Number::Occurrences(Some(window)) => item.times().map_or(0, |times| {
            let (count, whole) = times.count(window);
            if !whole {
                item.doubt();
            }
            count as i64
        }),
    }
}

impl Fields {
    fn pass(&self, compare: &Compare, item: &impl Values) -> bool {
        self.of.iter().any(|field| {
            let passes = item.any(field, &mut |value| compare.passes_in(field, value));
            passes.unwrap_or_else(|| self.or_empty && compare.passes(""))
        })
    }
}

/// What any-field looks at: no UID and no time of revision, which nobody means; pictures and keys are not
/// indexed, and `1` is no word for a list.
pub(crate) fn any_fields(family: Family) -> &'static [&'static Field] {
    let all = |fields: &'static [Field]| -> Vec<&'static Field> {
        let meant = |field: &&Field| {
            field.indexed && !matches!(field.kind, Kind::Uid | Kind::Flag) && field.name != "rev"
        };
        fields.iter().filter(meant).collect()
    };
    static CONTACTS: OnceLock<Vec<&'static Field>> = OnceLock::new();
    static CALENDAR: OnceLock<Vec<&'static Field>> = OnceLock::new();
    match family {
        Family::Calendar => CALENDAR.get_or_init(|| all(CALENDAR_FIELDS)),
        _ => CONTACTS.get_or_init(|| all(FIELDS)),
    }
}

/// Where free words look.
pub(crate) fn word_fields(family: Family) -> &'static [&'static Field] {
    let all = |fields: &'static [Field]| -> Vec<&'static Field> {
        fields.iter().filter(|field| field.words).collect()
    };
    static CONTACTS: OnceLock<Vec<&'static Field>> = OnceLock::new();
    static CALENDAR: OnceLock<Vec<&'static Field>> = OnceLock::new();
    match family {
        Family::Calendar => CALENDAR.get_or_init(|| all(CALENDAR_FIELDS)),
        _ => CONTACTS.get_or_init(|| all(FIELDS)),
    }
}

/// The fields of a family that a test of this field looks at: of the full name also the parts of the name and the
/// nicknames; and where a field of contacts is asked for that has a namesake in calendars, that one.
pub(crate) fn looked_at(one: &'static Field, family: Family) -> &'static [&'static Field] {
    static NAMES: LazyLock<Vec<&'static Field>> = LazyLock::new(|| {
        ["full_name", "family_name", "given_name", "nickname"]
            .into_iter()
            .filter_map(field)
            .collect()
    });
    static EACH: LazyLock<Vec<(u16, [&'static Field; 1])>> = LazyLock::new(|| {
        FIELDS.iter().chain(CALENDAR_FIELDS).map(|field| (field.id, [field])).collect()
    });
    let is_of_calendar = calendar_field(one.name).is_some_and(|of| of.id == one.id);
    let one = match (family, is_of_calendar) {
        (Family::Calendar, false) => calendar_field(one.name),
        (Family::Contacts, true) => None,
        _ => Some(one),
    };
    let Some(one) = one else { return &[] };
    if one.name == "full_name" {
        return &NAMES;
    }
    EACH.iter().find(|(id, _)| *id == one.id).map_or(&[], |(_, one)| one)
}

/// Has evolution-data-server a list of values here? Then a missing value is none; else it is an empty text.
fn is_list(field: &Field) -> bool {
    let lists = ["full_name", "email", "phone", "address", "categories", "photo", "logo"];
    lists.contains(&field.name) || field.name.starts_with("im")
}

/// The values of a property that is no field: its components, and those of all properties of that name.
fn property_passes(name: &str, compare: &Compare, properties: &[Property<'_>]) -> bool {
    let mut of_name = properties.iter().filter(|property| property.is(name));
    let separator = if name.eq_ignore_ascii_case("CATEGORIES") { ',' } else { ';' };
    let first = |text: &str| {
        split_structured(text, separator).first().is_some_and(|value| !value.trim().is_empty())
    };
    let pass = |text: &str| {
        // Also the whole, as people see it: `1;2` may be no list at all.
        compare.passes(unescape_text(text).trim())
            || split_structured(text, separator).iter().any(|value| compare.passes(value.trim()))
    };
    match compare {
        Compare::FirstExists => of_name.next().is_some_and(|property| first(&property.text())),
        _ => of_name.any(|property| pass(&property.text())),
    }
}

/// Has an item this word in one of the fields in which free words are looked for?
fn has_word(needle: &Needle, item: &impl Values, family: Family) -> bool {
    let has = |field: &&'static Field| {
        item.any(field, &mut |value| needle.is_in(field, value)).unwrap_or_default()
    };
    word_fields(family).iter().any(has)
}
