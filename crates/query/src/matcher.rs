//! The predicate of a query: the test of one parsed item. It defines the result of a query; every
//! plan must agree with it.
//!
//! A [`Matcher`] is made once for a query and tests many items. Texts are folded and patterns
//! compiled when it is made, and only the values that the query tests are decoded. The types of
//! collections have different fields, so it has one predicate for each. Separate from `item`, which
//! reads the values, and from `value_matcher`, which tests a single value.
//!
//! The functions have the semantics of evolution-data-server's evaluator in memory
//! (`e-book-backend-sexp.c`), with the folding of its SQL evaluator on both sides;
//! `tests/eds_functions.rs` lists the deliberate differences.

use crate::item::{DecodedItem, ItemFields, StoredFieldsItem};
use crate::query::{Comparison, FieldSelector, FieldTest, NumericOperand, Query};
use crate::time_test::{DateProperty, TimeTest};
use crate::value_matcher::{ValueMatcher, WordPattern};
use larder_format::collection_type::{COLLECTION_TYPES, find_any_field};
use larder_format::decoding::{split_structured, unescape_text};
use larder_format::field::{Field, FieldType};
use larder_format::property::Property;
use larder_store::{
    CollectionType, ItemMeta, Kind, Overlap, Reader, StoredFields, TimeRange, is_storable,
};
use larder_time::rule::StepBudget;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::LazyLock;

/// A prepared query. A type of collection that has no match has no predicate.
#[derive(Debug, Clone)]
pub struct Matcher {
    /// By type of collection.
    matchers: [Option<Box<CollectionTypeMatcher>>; COLLECTION_TYPES.len()],
    ignores_indexes: bool,
}

/// The predicate for one type of collection.
#[derive(Debug, Clone)]
struct CollectionTypeMatcher {
    predicate: Predicate,
    /// The fields that the predicate reads; `None` if it needs whole items.
    fields: Option<Box<[&'static Field]>>,
    /// Whether the predicate reads UIDs.
    has_uid_test: bool,
}

#[derive(Debug, Clone)]
enum Predicate {
    Constant(bool),
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    Not(Box<Predicate>),
    Word(WordPattern, CollectionType),
    Uids(HashSet<String>),
    Uid(ValueMatcher),
    Fields(FieldSet, ValueMatcher),
    Property(String, ValueMatcher),
    Any(&'static [&'static Field], ValueMatcher),
    Kind(Kind),
    InRange(TimeRange),
    DateInRange(DateProperty, TimeRange),
    Overdue(TimeRange),
    Number(NumericOperand, Comparison, i64),
}

/// The fields that a test of one field reads.
#[derive(Debug, Clone)]
struct FieldSet {
    fields: &'static [&'static Field],
    /// A missing field counts as an empty value, unless evolution-data-server has a list there.
    missing_is_empty: bool,
}

impl Matcher {
    /// Prepares a query. A pattern that cannot be compiled matches nothing; the parsers refuse it.
    #[must_use]
    pub fn new(query: &Query) -> Matcher {
        let prepare = |collection_type| {
            let node = Predicate::from_query(query, collection_type);
            if matches!(node, Predicate::Constant(false)) {
                return None;
            }
            let mut fields = Vec::new();
            let fields = node.collect_fields(&mut fields).then_some(fields.into());
            let uids = node.has_uid_test();
            Some(Box::new(CollectionTypeMatcher { predicate: node, fields, has_uid_test: uids }))
        };
        Matcher {
            matchers: std::array::from_fn(|index| prepare(COLLECTION_TYPES[index].collection_type)),
            ignores_indexes: false,
        }
    }

    /// Returns whether an item matches.
    #[must_use]
    pub fn matches_item(&self, item: &DecodedItem<'_>) -> bool {
        self.for_item(item.meta)
            .is_some_and(|matcher| matcher.predicate.matches(&item.meta.uid, item))
    }

    /// Returns whether values of an item that is stored under this UID match.
    pub(crate) fn matches_values(&self, uid: &str, values: &impl ItemFields) -> bool {
        self.for_kind(values.kind()).is_some_and(|matcher| matcher.predicate.matches(uid, values))
    }

    /// Returns whether values of this item, current or former, match.
    pub(crate) fn matches_fields(&self, meta: &ItemMeta, values: &impl ItemFields) -> bool {
        self.for_item(meta).is_some_and(|matcher| matcher.predicate.matches(&meta.uid, values))
    }

    /// Returns whether an item matches by its stored fields; `None` if they do not suffice. Sets
    /// `is_uncertain` if the test could not be decided within bounds.
    pub(crate) fn matches_stored_fields(
        &self,
        reader: &Reader,
        meta: &ItemMeta,
        fields: &StoredFields<'_>,
        is_uncertain: &Cell<bool>,
    ) -> Option<bool> {
        if self.ignores_indexes {
            return None;
        }
        let Some(matcher) = self.for_item(meta) else { return Some(false) };
        let tested =
            matcher.fields.as_ref().filter(|_| !(matcher.has_uid_test && meta.derived_uid))?;
        let item =
            StoredFieldsItem { reader, meta, stored_fields: *fields, uncertain: is_uncertain };
        tested
            .iter()
            .all(|field| fields.has_field(field))
            .then(|| matcher.predicate.matches(&meta.uid, &item))
    }

    /// Returns whether stored fields may decide the test.
    pub(crate) fn can_use_stored_fields(&self) -> bool {
        let mut matchers = self.matchers.iter().flatten();
        !self.ignores_indexes && matchers.any(|matcher| matcher.fields.is_some())
    }

    /// Makes the matcher read source bytes only, and no derived data.
    pub(crate) fn without_indexes(self) -> Matcher {
        Matcher { ignores_indexes: true, ..self }
    }

    /// Returns whether the matcher reads no derived data.
    pub(crate) fn is_without_indexes(&self) -> bool {
        self.ignores_indexes
    }

    fn for_item(&self, meta: &ItemMeta) -> Option<&CollectionTypeMatcher> {
        self.for_kind(meta.kind)
    }

    fn for_kind(&self, kind: Kind) -> Option<&CollectionTypeMatcher> {
        self.matchers[kind.collection_type().index()].as_deref()
    }
}

impl Predicate {
    fn from_query(query: &Query, collection_type: CollectionType) -> Predicate {
        match query {
            Query::All => Predicate::Constant(true),
            Query::And(of) => Predicate::combine(of, collection_type, true),
            Query::Or(of) => Predicate::combine(of, collection_type, false),
            Query::Not(query) => match Predicate::from_query(query, collection_type) {
                Predicate::Constant(answer) => Predicate::Constant(!answer),
                node => Predicate::Not(Box::new(node)),
            },
            Query::Word(text) => Predicate::Word(WordPattern::parse(text), collection_type),
            Query::Uids(uids) => Predicate::Uids(uids.iter().cloned().collect()),
            Query::Test(test) => Predicate::from_test(test, collection_type),
            Query::Kind(kind) if kind.collection_type() == collection_type => {
                Predicate::Kind(*kind)
            }
            Query::Time(_) | Query::Number(..) | Query::Kind(_)
                if !collection_type.has_schedules() =>
            {
                Predicate::Constant(false)
            }
            Query::Kind(_) => Predicate::Constant(false),
            Query::Time(TimeTest::InRange(time_range)) => Predicate::InRange(time_range.clone()),
            Query::Time(TimeTest::DateInRange(stamp, time_range)) => {
                Predicate::DateInRange(*stamp, time_range.clone())
            }
            Query::Time(TimeTest::Overdue(time_range)) => Predicate::Overdue(time_range.clone()),
            Query::Number(number, comparison, value) => {
                Predicate::Number(number.clone(), *comparison, *value)
            }
        }
    }

    /// Combines queries by "and" or "or", and folds constants.
    fn combine(of: &[Query], collection_type: CollectionType, all: bool) -> Predicate {
        let mut nodes = Vec::new();
        for query in of {
            match Predicate::from_query(query, collection_type) {
                Predicate::Constant(answer) if answer != all => return Predicate::Constant(answer),
                Predicate::Constant(_) => {}
                node => nodes.push(node),
            }
        }
        nodes.shrink_to_fit();
        match (nodes.pop(), nodes.is_empty()) {
            (None, _) => Predicate::Constant(all),
            (Some(one), true) => one,
            (Some(last), false) => {
                nodes.push(last);
                if all { Predicate::And(nodes) } else { Predicate::Or(nodes) }
            }
        }
    }

    fn from_test(test: &FieldTest, collection_type: CollectionType) -> Predicate {
        let Some(compare) = ValueMatcher::from_test(test) else {
            return Predicate::Constant(false);
        };
        match &test.subject {
            FieldSelector::Nothing => Predicate::Constant(false),
            FieldSelector::Field(field) => match searched_fields(field, collection_type) {
                [] => Predicate::Constant(false),
                [Field { field_type: FieldType::Uid, .. }] => Predicate::Uid(compare),
                of => Predicate::Fields(
                    FieldSet { fields: of, missing_is_empty: !is_list_field(field) },
                    compare,
                ),
            },
            FieldSelector::Property(name) => Predicate::Property(name.clone(), compare),
            // Every item lacks some field.
            FieldSelector::Any if compare.matches("") => Predicate::Constant(true),
            FieldSelector::Any => Predicate::Any(any_fields(collection_type), compare),
        }
    }

    /// Adds the fields that the predicate reads. Returns false if it reads more than stored fields.
    fn collect_fields(&self, fields: &mut Vec<&'static Field>) -> bool {
        let of: &[&'static Field] = match self {
            Predicate::Constant(_)
            | Predicate::Uids(_)
            | Predicate::Uid(_)
            | Predicate::Kind(_)
            | Predicate::InRange(_) => &[],
            Predicate::Number(NumericOperand::Occurrences(_) | NumericOperand::Constant(_), ..) => {
                &[]
            }
            Predicate::And(of) | Predicate::Or(of) => {
                return of.iter().all(|node| node.collect_fields(fields));
            }
            Predicate::Not(node) => return node.collect_fields(fields),
            Predicate::Word(_, collection_type) => word_fields(*collection_type),
            Predicate::Fields(FieldSet { fields: of, .. }, _) => of,
            Predicate::Number(NumericOperand::Field(field), ..) => {
                fields.push(field);
                return is_storable(field);
            }
            Predicate::Property(..)
            | Predicate::Any(..)
            | Predicate::DateInRange(..)
            | Predicate::Overdue(_) => {
                return false;
            }
        };
        fields.extend(of);
        of.iter().all(|field| is_storable(field))
    }

    fn has_uid_test(&self) -> bool {
        match self {
            Predicate::Uids(_) | Predicate::Uid(_) => true,
            Predicate::And(of) | Predicate::Or(of) => of.iter().any(Predicate::has_uid_test),
            Predicate::Not(node) => node.has_uid_test(),
            _ => false,
        }
    }

    fn matches(&self, uid: &str, item: &impl ItemFields) -> bool {
        match self {
            Predicate::Constant(answer) => *answer,
            Predicate::And(all) => all.iter().all(|node| node.matches(uid, item)),
            Predicate::Or(any) => any.iter().any(|node| node.matches(uid, item)),
            Predicate::Not(node) => !node.matches(uid, item),
            Predicate::Word(needle, collection_type) => has_word(needle, item, *collection_type),
            Predicate::Uids(uids) => {
                uids.contains(uid) || item.uid().is_some_and(|uid| uids.contains(&uid))
            }
            Predicate::Uid(compare) => {
                compare.matches(uid) || item.uid().is_some_and(|uid| compare.matches(&uid))
            }
            Predicate::Fields(fields, compare) => fields.matches(compare, item),
            Predicate::Property(name, compare) => {
                property_matches(name, compare, item.properties())
            }
            Predicate::Any(fields, compare) => fields.iter().any(|field| {
                item.any_value(field, &mut |value| compare.matches_field_value(field, value))
                    .unwrap_or_default()
            }),
            Predicate::Kind(kind) => item.kind() == *kind,
            Predicate::InRange(time_range) => item.schedule().is_some_and(|times| {
                let verdict = times.overlap(time_range);
                if verdict == Overlap::Undecided {
                    item.mark_undecided();
                }
                verdict == Overlap::Yes
            }),
            Predicate::DateInRange(stamp, time_range) => item
                .property_instant(*stamp, &time_range.local_zone)
                .is_some_and(|at| time_range.from <= at && at < time_range.to),
            Predicate::Overdue(time_range) => item.is_overdue(time_range),
            Predicate::Number(number, comparison, value) => {
                comparison.compare(numeric_value(number, item), *value)
            }
        }
    }
}

/// The number of an item; -1 if it has none.
fn numeric_value(number: &NumericOperand, item: &impl ItemFields) -> i64 {
    match number {
        NumericOperand::Constant(number) => *number,
        NumericOperand::Field(field) => {
            let mut found = -1;
            item.any_value(field, &mut |value| {
                found = value.trim().parse().unwrap_or(-1);
                true
            });
            found
        }
        NumericOperand::Occurrences(None) => -1,
        NumericOperand::Occurrences(Some(time_range)) => item.schedule().map_or(0, |times| {
            let (count, is_complete) = times.count_in(time_range, StepBudget::default());
            if !is_complete {
                item.mark_undecided();
            }
            count as i64
        }),
    }
}

impl FieldSet {
    fn matches(&self, compare: &ValueMatcher, item: &impl ItemFields) -> bool {
        self.fields.iter().any(|field| {
            let passes =
                item.any_value(field, &mut |value| compare.matches_field_value(field, value));
            passes.unwrap_or_else(|| self.missing_is_empty && compare.matches(""))
        })
    }
}

/// Fields by type of collection.
type FieldsByType = LazyLock<Vec<Vec<&'static Field>>>;

fn fields_by_type(is_wanted: impl Fn(&Field) -> bool) -> Vec<Vec<&'static Field>> {
    let wanted = |collection_type: CollectionType| {
        collection_type.fields().iter().filter(|field| is_wanted(field)).collect()
    };
    CollectionType::all().map(wanted).collect()
}

/// The fields of a test of any field: the indexed fields, without UIDs, flags and the time of the
/// last revision, which users do not search for.
pub(crate) fn any_fields(collection_type: CollectionType) -> &'static [&'static Field] {
    static ANY_FIELDS: FieldsByType = LazyLock::new(|| {
        fields_by_type(|field| {
            field.is_indexed
                && !matches!(field.field_type, FieldType::Uid | FieldType::Flag)
                && field.name != "rev"
        })
    });
    &ANY_FIELDS[collection_type.index()]
}

/// The fields in which bare words are searched.
pub(crate) fn word_fields(collection_type: CollectionType) -> &'static [&'static Field] {
    static WORD_FIELDS: FieldsByType =
        LazyLock::new(|| fields_by_type(|field| field.is_default_search));
    &WORD_FIELDS[collection_type.index()]
}

/// The fields that a test of a field reads in a type of collection: for the full name also the
/// parts of the name and nicknames; in a later type of collection, the field there with the name of
/// the field, or else with one of its aliases.
pub(crate) fn searched_fields(
    one: &'static Field,
    collection_type: CollectionType,
) -> &'static [&'static Field] {
    static NAME_FIELDS: LazyLock<Vec<&'static Field>> = LazyLock::new(|| {
        ["full_name", "family_name", "given_name", "nickname"]
            .into_iter()
            .filter_map(find_any_field)
            .collect()
    });
    static SINGLE_FIELDS: LazyLock<Vec<(u16, [&'static Field; 1])>> = LazyLock::new(|| {
        let fields = CollectionType::all().flat_map(CollectionType::fields);
        fields.map(|field| (field.id, [field])).collect()
    });
    // A name is looked up in the types of collections in their order.
    let one = match CollectionType::from_field(one).cmp(&collection_type) {
        Ordering::Less => collection_type
            .find_field(one.name)
            .or_else(|| one.aliases.iter().find_map(|alias| collection_type.find_field(alias))),
        Ordering::Equal => Some(one),
        Ordering::Greater => None,
    };
    let Some(one) = one else { return &[] };
    if one.name == "full_name" {
        return &NAME_FIELDS;
    }
    SINGLE_FIELDS.iter().find(|(id, _)| *id == one.id).map_or(&[], |(_, one)| one)
}

/// Returns whether evolution-data-server has a list of values for a field. A missing list has no
/// value; any other missing field has an empty one.
fn is_list_field(field: &Field) -> bool {
    let lists = ["full_name", "email", "phone", "address", "categories", "photo", "logo"];
    lists.contains(&field.name) || field.name.starts_with("im")
}

/// Tests the components of all properties of a name, and their whole values.
fn property_matches(name: &str, compare: &ValueMatcher, properties: &[Property<'_>]) -> bool {
    let mut named = properties.iter().filter(|property| property.has_name(name));
    let separator = if name.eq_ignore_ascii_case("CATEGORIES") { ',' } else { ';' };
    let first = |text: &str| {
        split_structured(text, separator).first().is_some_and(|value| !value.trim().is_empty())
    };
    let pass = |text: &str| {
        // Also the whole value: `1;2` need not be a list.
        compare.matches(unescape_text(text).trim())
            || split_structured(text, separator).iter().any(|value| compare.matches(value.trim()))
    };
    match compare {
        ValueMatcher::FirstExists => named.next().is_some_and(|property| first(&property.text())),
        _ => named.any(|property| pass(&property.text())),
    }
}

/// Returns whether an item has a word in one of the fields that are searched for bare words.
fn has_word(needle: &WordPattern, item: &impl ItemFields, collection_type: CollectionType) -> bool {
    let has = |field: &&'static Field| {
        item.any_value(field, &mut |value| needle.matches(field, value)).unwrap_or_default()
    };
    word_fields(collection_type).iter().any(has)
}
