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
//!
//! The test of an item counts its steps and ends early when they exceed their budget; the caller
//! checks the counter. A sub-expression that stands in several lists is tested once for an item.

use crate::item::{DecodedItem, ItemFields, StoredFieldsItem, TestStatus};
use crate::query::{Comparison, FieldSelector, FieldTest, NumericOperand, Query};
use crate::step_counter::StepCounter;
use crate::sub_expressions::{ExpressionNumber, NumberedQuery, SubExpressions};
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
use std::cell::RefCell;
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
    /// Whether an item that matches by some of its values matches.
    is_monotone: bool,
    /// Whether the predicate reads UIDs.
    has_uid_test: bool,
    /// Whether the predicate may read a field several times.
    has_several_tests: bool,
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
    /// A predicate that occurs several times, and its number.
    Shared(ExpressionNumber, Box<Predicate>),
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
        let mut expressions = SubExpressions::default();
        let numbered = expressions.number(query);
        let prepare = |collection_type: CollectionType| {
            // No search finds the items that Larder keeps for itself.
            if !collection_type.is_listed() {
                return None;
            }
            let node = Predicate::from_query(&numbered, &expressions, collection_type);
            if matches!(node, Predicate::Constant(false)) {
                return None;
            }
            let mut fields = Vec::new();
            let fields = node.collect_fields(&mut fields).then_some(fields.into());
            let (has_uid_test, has_several_tests) = (node.has_uid_test(), node.has_several_tests());
            let is_monotone = !has_uid_test && node.is_monotone();
            Some(Box::new(CollectionTypeMatcher {
                predicate: node,
                fields,
                is_monotone,
                has_uid_test,
                has_several_tests,
            }))
        };
        Matcher {
            matchers: std::array::from_fn(|index| prepare(COLLECTION_TYPES[index].collection_type)),
            ignores_indexes: false,
        }
    }

    /// Returns whether an item matches. The test of a single item has no budget.
    ///
    /// # Errors
    /// Errors of the store, such as a damaged time zone definition.
    pub(crate) fn matches_item(&self, item: DecodedItem<'_>) -> Result<bool, larder_store::Error> {
        let is_match = self.matches_fields(item.meta, &item, &StepCounter::without_limit());
        item.status.into_undecided()?;
        Ok(is_match)
    }

    /// Returns whether values of an item that is stored under this UID match.
    pub(crate) fn matches_values(&self, uid: &str, values: &impl ItemFields) -> bool {
        let steps = StepCounter::without_limit();
        self.for_kind(values.kind())
            .is_some_and(|matcher| matcher.predicate.evaluate(uid, values, &steps))
    }

    /// Returns whether values of this item, current or former, match.
    pub(crate) fn matches_fields(
        &self,
        meta: &ItemMeta,
        values: &impl ItemFields,
        steps: &StepCounter,
    ) -> bool {
        self.for_item(meta)
            .is_some_and(|matcher| matcher.predicate.evaluate(&meta.uid, values, steps))
    }

    /// Returns whether the test of an item of this kind may read a field several times.
    pub(crate) fn has_several_tests(&self, kind: Kind) -> bool {
        self.for_kind(kind).is_some_and(|matcher| matcher.has_several_tests)
    }

    /// Returns whether an item matches by its stored fields; `None` if they do not suffice. The
    /// result counts only if `status` has no error.
    pub(crate) fn matches_stored_fields(
        &self,
        reader: &Reader,
        meta: &ItemMeta,
        fields: &StoredFields<'_>,
        status: &TestStatus,
        steps: &StepCounter,
    ) -> Option<bool> {
        if self.ignores_indexes {
            return None;
        }
        let Some(matcher) = self.for_item(meta) else { return Some(false) };
        let item = StoredFieldsItem { reader, meta, stored_fields: *fields, status };
        let evaluate = || matcher.predicate.evaluate(&meta.uid, &item, steps);
        let tested = matcher.fields.as_ref();
        match tested.filter(|_| !(matcher.has_uid_test && meta.derived_uid)) {
            Some(tested) => tested.iter().all(|field| fields.has_field(field)).then(evaluate),
            None => Some(true).filter(|_| matcher.is_monotone && evaluate()),
        }
    }

    /// Returns whether stored fields may decide the test.
    pub(crate) fn can_use_stored_fields(&self) -> bool {
        let mut matchers = self.matchers.iter().flatten();
        let can_decide =
            |matcher: &CollectionTypeMatcher| matcher.fields.is_some() || matcher.is_monotone;
        !self.ignores_indexes && matchers.any(|matcher| can_decide(matcher))
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
    fn from_query(
        numbered: &NumberedQuery<'_>,
        expressions: &SubExpressions<'_>,
        collection_type: CollectionType,
    ) -> Predicate {
        let parts = || {
            let parts = numbered.parts.iter();
            parts.map(|part| Predicate::from_query(part, expressions, collection_type))
        };
        let predicate = match numbered.query {
            Query::And(_) => Predicate::combine(parts(), true),
            Query::Or(_) => Predicate::combine(parts(), false),
            Query::Not(_) => match parts().next() {
                None => Predicate::Constant(false),
                Some(Predicate::Constant(answer)) => Predicate::Constant(!answer),
                Some(node) => Predicate::Not(Box::new(node)),
            },
            test => Predicate::from_leaf(test, collection_type),
        };
        match predicate {
            Predicate::Constant(_) => predicate,
            _ if expressions.is_shared(numbered.number) => {
                Predicate::Shared(numbered.number, Box::new(predicate))
            }
            _ => predicate,
        }
    }

    /// Prepares a query without parts.
    fn from_leaf(query: &Query, collection_type: CollectionType) -> Predicate {
        match query {
            Query::All => Predicate::Constant(true),
            // The caller combines the parts of these.
            Query::And(_) | Query::Or(_) | Query::Not(_) => Predicate::Constant(false),
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
    fn combine(parts: impl Iterator<Item = Predicate>, all: bool) -> Predicate {
        let mut nodes = Vec::new();
        for part in parts {
            match part {
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
            Predicate::Not(node) | Predicate::Shared(_, node) => {
                return node.collect_fields(fields);
            }
            Predicate::Word(pattern, collection_type) => pattern_fields(pattern, *collection_type),
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

    /// Returns whether further values of an item never make the predicate false.
    fn is_monotone(&self) -> bool {
        match self {
            Predicate::Word(..) | Predicate::Any(..) | Predicate::Kind(_) => true,
            Predicate::Fields(FieldSet { missing_is_empty, .. }, compare) => {
                !(*missing_is_empty && compare.matches(""))
            }
            Predicate::And(of) | Predicate::Or(of) => of.iter().all(Predicate::is_monotone),
            Predicate::Shared(_, node) => node.is_monotone(),
            _ => false,
        }
    }

    fn has_uid_test(&self) -> bool {
        match self {
            Predicate::Uids(_) | Predicate::Uid(_) => true,
            Predicate::And(of) | Predicate::Or(of) => of.iter().any(Predicate::has_uid_test),
            Predicate::Not(node) | Predicate::Shared(_, node) => node.has_uid_test(),
            _ => false,
        }
    }

    /// Returns whether the predicate may read a field several times.
    fn has_several_tests(&self) -> bool {
        match self {
            Predicate::And(of) | Predicate::Or(of) => {
                of.len() > 1 || of.iter().any(Predicate::has_several_tests)
            }
            Predicate::Not(node) | Predicate::Shared(_, node) => node.has_several_tests(),
            _ => false,
        }
    }

    fn evaluate(&self, uid: &str, item: &impl ItemFields, steps: &StepCounter) -> bool {
        Evaluation { uid, item, steps, shared: RefCell::default() }.matches(self)
    }
}

/// The test of one item.
struct Evaluation<'a, I> {
    /// The UID under which the item is stored.
    uid: &'a str,
    item: &'a I,
    steps: &'a StepCounter,
    /// The results of shared predicates by their numbers.
    shared: RefCell<Vec<Option<bool>>>,
}

impl<I: ItemFields> Evaluation<'_, I> {
    fn matches(&self, predicate: &Predicate) -> bool {
        let item = self.item;
        match predicate {
            Predicate::Constant(answer) => *answer,
            Predicate::And(all) => all.iter().all(|node| self.matches(node)),
            Predicate::Or(any) => any.iter().any(|node| self.matches(node)),
            Predicate::Not(node) => !self.matches(node),
            Predicate::Shared(number, node) => self.matches_shared(*number, node),
            // All other predicates are single tests.
            _ if !self.steps.count_test(0) => false,
            Predicate::Word(needle, collection_type) => self.has_word(needle, *collection_type),
            Predicate::Uids(uids) => {
                uids.contains(self.uid) || item.uid().is_some_and(|uid| uids.contains(&uid))
            }
            Predicate::Uid(compare) => {
                self.passes(compare, self.uid)
                    || item.uid().is_some_and(|uid| self.passes(compare, &uid))
            }
            Predicate::Fields(FieldSet { fields, missing_is_empty }, compare) => {
                fields.iter().any(|field| {
                    let passes = self.any_value_passes(field, compare);
                    passes.unwrap_or_else(|| *missing_is_empty && self.passes(compare, ""))
                })
            }
            Predicate::Property(name, compare) => {
                let passes = |value: &str| self.passes(compare, value);
                property_matches(name, compare, item.properties(), &passes)
            }
            Predicate::Any(fields, compare) => {
                fields.iter().any(|field| self.any_value_passes(field, compare).unwrap_or_default())
            }
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

    fn matches_shared(&self, number: ExpressionNumber, node: &Predicate) -> bool {
        let known = self.shared.borrow().get(number).copied().flatten();
        known.unwrap_or_else(|| {
            let result = self.matches(node);
            let mut shared = self.shared.borrow_mut();
            if shared.len() <= number {
                shared.resize(number + 1, None);
            }
            shared[number] = Some(result);
            result
        })
    }

    /// Returns whether a value passes a test.
    fn passes(&self, compare: &ValueMatcher, value: &str) -> bool {
        compare.count_steps(value, self.steps, || compare.matches(value))
    }

    /// Returns whether a value of a field passes; `None` if there is no value.
    fn any_value_passes(&self, field: &Field, compare: &ValueMatcher) -> Option<bool> {
        self.steps.count_test(0);
        self.item.any_value(field, &mut |value| {
            compare.count_steps(value, self.steps, || compare.matches_field_value(field, value))
        })
    }

    /// Returns whether the item has a word in one of the fields that are searched for bare words.
    fn has_word(&self, needle: &WordPattern, collection_type: CollectionType) -> bool {
        let has = |field: &&'static Field| {
            let passes = self.item.any_value(field, &mut |value| {
                self.steps.count_test(value.len() as u64) && needle.matches(field, value)
            });
            passes.unwrap_or_default()
        };
        pattern_fields(needle, collection_type).iter().any(has)
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
    static ANY_FIELDS: FieldsByType = LazyLock::new(|| fields_by_type(is_any_field));
    &ANY_FIELDS[collection_type.index()]
}

fn is_any_field(field: &Field) -> bool {
    field.is_indexed
        && !matches!(field.field_type, FieldType::Uid | FieldType::Flag)
        && field.name != "rev"
}

/// The fields that name an item, in which short bare words are searched.
pub(crate) fn word_fields(collection_type: CollectionType) -> &'static [&'static Field] {
    static WORD_FIELDS: FieldsByType =
        LazyLock::new(|| fields_by_type(|field| field.is_default_search));
    &WORD_FIELDS[collection_type.index()]
}

/// Returns whether bare words are searched in a field.
#[must_use]
pub fn is_bare_word_field(field: &Field) -> bool {
    let has_row = |fields: &[&'static Field]| fields.iter().any(|one| one.id == field.id);
    let collection_type = CollectionType::from_field(field);
    let long_word = WordPattern::Substring("word".into(), None);
    has_row(word_fields(collection_type)) || has_row(pattern_fields(&long_word, collection_type))
}

/// The fields in which this bare word is searched.
pub(crate) fn pattern_fields(
    pattern: &WordPattern,
    collection_type: CollectionType,
) -> &'static [&'static Field] {
    static TEXT_FIELDS: FieldsByType = LazyLock::new(|| {
        fields_by_type(|field| is_any_field(field) && field.field_type != FieldType::Date)
    });
    match pattern {
        // A shorter word is looked up in the index of words, which has few fields.
        WordPattern::Substring(text, _)
            if collection_type.row().has_full_text_words && text.chars().nth(2).is_some() =>
        {
            &TEXT_FIELDS[collection_type.index()]
        }
        _ => word_fields(collection_type),
    }
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
fn property_matches(
    name: &str,
    compare: &ValueMatcher,
    properties: &[Property<'_>],
    passes: &dyn Fn(&str) -> bool,
) -> bool {
    let mut named = properties.iter().filter(|property| property.has_name(name));
    let separator = if name.eq_ignore_ascii_case("CATEGORIES") { ',' } else { ';' };
    let first = |text: &str| {
        split_structured(text, separator).first().is_some_and(|value| !value.trim().is_empty())
    };
    let pass = |text: &str| {
        // Also the whole value: `1;2` need not be a list.
        passes(unescape_text(text).trim())
            || split_structured(text, separator).iter().any(|value| passes(value.trim()))
    };
    match compare {
        ValueMatcher::FirstExists => named.next().is_some_and(|property| first(&property.text())),
        _ => named.any(|property| pass(&property.text())),
    }
}
