//! Duplicates: contacts that may be the same person.
//!
//! Two cards are joined by a common value, which is a full name, an e-mail address or a phone
//! number:
//!
//! * An address or a number joins cards whose names agree: all words of one name, or their
//!   initials, are in the other. If only two cards have the value, their names may differ (`Mum`
//!   and `Helga Berg`); such groups come last.
//! * A name of one word joins only cards without a disagreement: both have e-mail addresses but
//!   none in common, or phone numbers, or organisations. A name of more than five cards joins none.
//! * An address or a number of more than fifty cards joins none: it may be a switchboard.
//! * Nothing joins cards with different birthdays, a list and a person, or a person and their
//!   organisation.
//!
//! Names are compared folded, in any order of their words; phone numbers as by `eqphone_national`,
//! if they have at least six digits and the same extension. Joins are transitive. Work is bounded:
//! if very many numbers have the same ending, only the first are compared by the numbering plans.
//!
//! Separate from `execution` because it compares items with each other. One scan keeps eight bytes
//! for each value; cards that seem to have a value in common are then read again.

mod phone_comparison;

use crate::damaged_items::DamagedItems;
use crate::error::Error;
use crate::execution::find;
use crate::query::{Query, QueryContext};
use crate::result_set::{ItemPage, ResultSet};
use crate::search_request::SearchRequest;
use larder_format::contact::Contact;
use larder_format::field::{Field, find_contact_field};
use larder_format::fold::{fold, split_words};
use larder_store::{ItemRow, Reader};
use phone_comparison::{DialledNumber, MAX_COMPARED_PAIRS, PhoneComparer};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;

/// The maximum number of cards read in one transaction.
const CARDS_PER_TX: usize = 256;
/// The maximum number of cards that an address or a number joins.
const MAX_CARDS_PER_VALUE: usize = 50;
/// The maximum number of cards that a name joins.
const MAX_CARDS_PER_NAME: usize = 5;
/// The maximum number of values of a field of one card that are compared.
const MAX_VALUES_PER_FIELD: usize = 64;
/// The maximum number of names of one card that are compared.
const MAX_NAMES_PER_CARD: usize = 8;
/// The longest name that is compared.
const MAX_NAME_BYTES: usize = 250;
/// The maximum number of pairs of cards whose comparison is cached.
const MAX_CACHED_PAIRS: usize = 8192;
/// The maximum number of cards that are cached: duplicates are compared once for each common value.
const MAX_CACHED_CARDS: usize = 256;

/// Contacts that may be the same person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateGroup {
    /// The values that at least two of them have in common.
    pub reasons: Vec<DuplicateReason>,
    /// Their rows, in ascending order.
    pub rows: Vec<ItemRow>,
    confidence: u8,
}

impl DuplicateGroup {
    /// Returns the cards as a result set.
    #[must_use]
    pub fn result_set(&self) -> ResultSet {
        ResultSet::from_rows(&self.rows)
    }
}

/// A value that cards have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DuplicateReason {
    /// The field: `email`, `phone` or `full_name`.
    pub field: &'static str,
    /// The value as written in the first card.
    pub value: String,
}

/// The groups of likely duplicates, without the cards that are damaged.
#[derive(Debug)]
pub struct DuplicateGroups {
    /// The groups, the most certain first.
    pub groups: Vec<DuplicateGroup>,
    damaged: DamagedItems,
}

impl DuplicateGroups {
    /// Returns an error if cards were left out, because they are damaged.
    ///
    /// # Errors
    /// [`Error::DamagedItems`], or an error of the store that names the only one.
    pub fn check_complete(&self) -> Result<(), Error> {
        self.damaged.to_result()
    }
}

/// Finds groups of duplicates in a collection, the most certain first. At least one card of each
/// group matches the query; the limit is the number of groups.
///
/// # Errors
/// An unknown collection, or an error of the store.
pub fn find_duplicates(
    reader: &Reader,
    request: &SearchRequest,
    context: &QueryContext,
) -> Result<DuplicateGroups, Error> {
    let mut search = DuplicateSearch::new(reader, context);
    let all = SearchRequest { collection: request.collection.clone(), ..SearchRequest::default() };
    search.rows = find(reader, &all)?.rows();
    search.scan()?;
    search.compare_all()?;
    let mut damaged = std::mem::take(&mut search.page.damaged);
    let mut groups = search.into_groups();
    if request.query != Query::All {
        let matches = find(reader, &SearchRequest { sort: None, limit: None, ..request.clone() })?;
        damaged.extend(&matches.damaged);
        let matches: HashSet<ItemRow> = matches.rows().into_iter().collect();
        groups.retain(|group| group.rows.iter().any(|row| matches.contains(row)));
    }
    groups.truncate(request.limit.unwrap_or(usize::MAX));
    Ok(DuplicateGroups { groups, damaged })
}

/// A value that cards may have in common, in the form that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum MatchKey {
    Email(String),
    Phone(DialledNumber),
    /// The folded words, sorted.
    Name(String),
}

impl MatchKey {
    fn phone(&self) -> Option<&DialledNumber> {
        if let MatchKey::Phone(phone) = self { Some(phone) } else { None }
    }

    fn field(&self) -> &'static str {
        match self {
            MatchKey::Email(_) => "email",
            MatchKey::Phone(_) => "phone",
            MatchKey::Name(_) => "full_name",
        }
    }
}

/// Returns a hash whose last two bits are the kind: 1 for an address, 2 for a number, 3 for a name.
fn hash_key(kind: u32, text: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    (hasher.finish() >> 32) as u32 & !3 | kind
}

/// Returns how many cards a value of this hash may join.
fn max_cards_per_hash(hash: u32) -> usize {
    if hash & 3 == 3 { MAX_CARDS_PER_NAME } else { MAX_CARDS_PER_VALUE }
}

/// The values of a card that are compared.
#[derive(Debug, Default)]
struct MatchKeys {
    /// Each key with its hash, and the value in the card.
    keys: Vec<(u32, MatchKey, String)>,
    org: Vec<String>,
    birth: String,
    is_list: bool,
}

/// Returns the folded words of a name, sorted.
fn sort_words(name: &str) -> String {
    let folded = fold(name);
    let mut words: Vec<&str> = split_words(&folded).collect();
    words.sort_unstable();
    words.join(" ")
}

impl MatchKeys {
    fn from_card(card: &Contact<'_>, region: Option<&str>) -> MatchKeys {
        let all =
            |field: &Field| card.values(field).into_iter().take(MAX_VALUES_PER_FIELD).collect();
        let values =
            |name: &str| -> Vec<String> { find_contact_field(name).map(all).unwrap_or_default() };
        let first = |name: &str| values(name).into_iter().next().unwrap_or_default();
        let mut facts = MatchKeys {
            org: values("org").iter().map(|org| sort_words(org)).collect(),
            birth: first("birth_date"),
            is_list: first("list") == "1",
            ..MatchKeys::default()
        };
        // The full name of a card without a name is its e-mail address.
        let is_name = |name: &String| !name.contains('@') && name.len() <= MAX_NAME_BYTES;
        for name in values("full_name").into_iter().filter(is_name).take(MAX_NAMES_PER_CARD) {
            let sorted = sort_words(&name);
            if !sorted.is_empty() {
                facts.keys.push((hash_key(3, &sorted), MatchKey::Name(sorted), name));
            }
        }
        // A contact list contains the addresses of its members.
        if facts.is_list {
            return facts;
        }
        for email in values("email") {
            let folded = fold(&email).into_owned();
            facts.keys.push((hash_key(1, &folded), MatchKey::Email(folded), email));
        }
        for phone in values("phone") {
            let number = DialledNumber::parse(&phone, region);
            let ends: Vec<u32> = number
                .iter()
                .flat_map(DialledNumber::lookup_suffixes)
                .map(|end| hash_key(2, end))
                .collect();
            for end in ends {
                facts
                    .keys
                    .extend(number.clone().map(|it| (end, MatchKey::Phone(it), phone.clone())));
            }
        }
        facts
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().filter_map(|(_, shared, _)| match shared {
            MatchKey::Name(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Returns whether these are certainly different.
    fn contradicts(&self, other: &MatchKeys) -> bool {
        let works_at = |person: &MatchKeys, firm: &MatchKeys| {
            person.org.iter().any(|org| firm.names().any(|name| name == org))
                && !person.names().any(|name| firm.names().any(|firm| firm == name))
        };
        self.is_list != other.is_list
            || has_other_birthday(&self.birth, &other.birth)
            || works_at(self, other)
            || works_at(other, self)
    }

    /// Returns whether both have addresses, numbers or organisations, but none in common.
    fn disagrees(&self, other: &MatchKeys, plans: &mut PhoneComparer<'_>) -> bool {
        fn differ<T>(a: &[T], b: &[T], mut same: impl FnMut(&T, &T) -> bool) -> bool {
            !a.is_empty() && !b.is_empty() && !a.iter().any(|a| b.iter().any(|b| same(a, b)))
        }
        fn keys_of_kind<'f, T>(
            facts: &'f MatchKeys,
            kind: impl Fn(&'f MatchKey) -> Option<T>,
        ) -> Vec<T> {
            facts.keys.iter().filter_map(|(_, shared, _)| kind(shared)).collect()
        }
        fn email(shared: &MatchKey) -> Option<&MatchKey> {
            matches!(shared, MatchKey::Email(_)).then_some(shared)
        }
        let (a, b) = (keys_of_kind(self, MatchKey::phone), keys_of_kind(other, MatchKey::phone));
        differ(&self.org, &other.org, |a, b| a == b)
            || differ(&keys_of_kind(self, email), &keys_of_kind(other, email), |a, b| a == b)
            || (differ(&a, &b, |a, b| a == b) && differ(&a, &b, |a, b| plans.compare(a, b)))
    }

    /// Returns whether the names agree; `None` if one of the cards has no name.
    fn names_agree(&self, other: &MatchKeys, words: usize) -> Option<bool> {
        if self.names().next().is_none() || other.names().next().is_none() {
            return None;
        }
        Some(self.names().any(|a| {
            other.names().any(|b| is_name_within(a, b, words) || is_name_within(b, a, words))
        }))
    }
}

/// Returns whether all words of one name, and at least `least`, are in the other. A single letter
/// is an initial.
fn is_name_within(short: &str, long: &str, least: usize) -> bool {
    let mut left: Vec<&str> = long.split(' ').collect();
    let mut number = 0;
    for word in short.split(' ') {
        let initial = word.chars().nth(1).is_none();
        let same = left.iter().position(|known| *known == word);
        let begins = || left.iter().position(|known| initial && known.starts_with(word));
        let shortened = || {
            left.iter().position(|known| known.chars().nth(1).is_none() && word.starts_with(known))
        };
        let Some(at) = same.or_else(begins).or_else(shortened) else { return false };
        left.remove(at);
        number += 1;
    }
    number >= least
}

/// Returns whether two birthdays differ: by month and day if a year is missing.
fn has_other_birthday(a: &str, b: &str) -> bool {
    let year = |date: &str| date.starts_with(|c: char| c.is_ascii_digit());
    let day = |date: &str| date.get(date.len().saturating_sub(5)..).map(str::to_string);
    let (known, years) = (!a.is_empty() && !b.is_empty(), year(a) && year(b));
    known && if years { a != b } else { day(a) != day(b) }
}

/// The rule by which two cards are compared: they share a name of one word, a longer name, an
/// address or number that only these two have, or one that other cards have as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum MatchRule {
    OneWordName,
    Name,
    ExclusiveValue,
    CommonValue,
}

/// Returns whether it is certain that two cards are the same person; `None` if they are not joined.
fn match_confidence(
    by: MatchRule,
    a: &MatchKeys,
    b: &MatchKeys,
    plans: &mut PhoneComparer<'_>,
) -> Option<bool> {
    match by {
        _ if a.contradicts(b) => None,
        MatchRule::Name => Some(true),
        MatchRule::OneWordName => (!a.disagrees(b, plans)).then_some(true),
        MatchRule::ExclusiveValue => Some(a.names_agree(b, 1) != Some(false)),
        MatchRule::CommonValue => a.names_agree(b, 2).filter(|agree| *agree),
    }
}

/// A search for duplicates. Cards are numbered in the order of their rows.
struct DuplicateSearch<'a> {
    reader: &'a Reader,
    region: Option<&'a str>,
    rows: Vec<ItemRow>,
    /// The cards that are being read, and all damaged ones so far.
    page: ItemPage,
    /// The hash of each value, with the number of its card.
    values: Vec<u64>,
    cached_keys: HashMap<u32, Rc<MatchKeys>>,
    phone_comparer: PhoneComparer<'a>,
    /// The results of comparisons.
    cached_verdicts: HashMap<(u32, u32, MatchRule), Option<bool>>,
    /// The parent of each card in its group (union-find).
    parents: Vec<u32>,
    /// A card of a group, the reason, and whether it is certain.
    reasons: Vec<(u32, DuplicateReason, bool)>,
}

impl<'a> DuplicateSearch<'a> {
    fn new(reader: &'a Reader, context: &'a QueryContext) -> DuplicateSearch<'a> {
        let region = context.region.as_deref();
        DuplicateSearch {
            reader,
            region,
            rows: Vec::new(),
            page: ItemPage::default(),
            values: Vec::new(),
            cached_keys: HashMap::new(),
            phone_comparer: PhoneComparer { region, ..PhoneComparer::default() },
            cached_verdicts: HashMap::new(),
            parents: Vec::new(),
            reasons: Vec::new(),
        }
    }

    /// Reads every card once, one page a transaction.
    fn scan(&mut self) -> Result<(), Error> {
        let (mut rest, mut first) = (self.rows.as_slice(), 0);
        while !rest.is_empty() {
            let rows = rest.get(..CARDS_PER_TX).unwrap_or(rest);
            let count = self.page.fill(self.reader, rows)?;
            for (meta, bytes) in self.page.iter() {
                let number = first + rows.partition_point(|row| *row < meta.row);
                // No collection has more cards.
                let Ok(number) = u32::try_from(number) else { break };
                let facts = MatchKeys::from_card(&Contact::parse(bytes), self.region);
                let value = |hash: u32| u64::from(hash) << 32 | u64::from(number);
                self.values.extend(facts.keys.iter().map(|(hash, ..)| value(*hash)));
            }
            (rest, first) = (rest.get(count..).unwrap_or_default(), first + count);
        }
        self.parents = (0..u32::try_from(self.rows.len()).unwrap_or(u32::MAX)).collect();
        Ok(())
    }

    /// Compares the cards that seem to have a value in common.
    fn compare_all(&mut self) -> Result<(), Error> {
        let values = self.shared_values();
        let mut runs: Vec<(u32, u8)> = Vec::new();
        for run in values.chunk_by(|a, b| a >> 32 == b >> 32) {
            let start = runs.last().map_or(0, |(start, length)| start + u32::from(*length));
            runs.push((start, u8::try_from(run.len()).unwrap_or(u8::MAX)));
        }
        let number = |value: &u64| (value & u64::from(u32::MAX)) as u32;
        // Duplicates usually share several values, so the same pair soon occurs again.
        runs.sort_unstable_by_key(|(start, _)| values.get(*start as usize).map(number));
        for (start, length) in runs {
            let run = values.get(start as usize..).unwrap_or_default();
            let run = run.get(..usize::from(length)).unwrap_or_default();
            let cards: Vec<u32> = run.iter().map(number).collect();
            let hash = run.first().map_or(0, |value| value >> 32);
            self.compare_cards(hash as u32, &cards)?;
        }
        Ok(())
    }

    /// Returns the hashes of values that more than one card, but not too many cards, seem to have.
    fn shared_values(&mut self) -> Vec<u64> {
        let mut values = std::mem::take(&mut self.values);
        values.sort_unstable();
        values.dedup();
        let runs = || values.chunk_by(|a, b| a >> 32 == b >> 32);
        let most =
            |run: &[u64]| run.first().map_or(0, |value| max_cards_per_hash((value >> 32) as u32));
        let shared = |run: &&[u64]| (2..=most(run)).contains(&run.len());
        let number = runs().filter(shared).map(<[u64]>::len).sum();
        let mut kept = Vec::with_capacity(number);
        runs().filter(shared).for_each(|run| kept.extend_from_slice(run));
        kept
    }

    fn compare_cards(&mut self, hash: u32, cards: &[u32]) -> Result<(), Error> {
        let facts = self.load_match_keys(cards)?;
        // The values with this hash, and for each card the values that it has.
        let (mut values, mut places) = (Vec::new(), HashMap::new());
        let mut place = |shared| {
            *places.entry(shared).or_insert_with(|| {
                values.push(shared);
                values.len() - 1
            })
        };
        let mut own: Vec<Vec<(usize, &String)>> = Vec::with_capacity(facts.len());
        for (_, one) in &facts {
            let of_hash = one.keys.iter().filter(|(known, ..)| *known == hash);
            own.push(of_hash.map(|(_, shared, shown)| (place(shared), shown)).collect());
        }
        if self.cached_verdicts.len() > MAX_CACHED_PAIRS {
            self.cached_verdicts.clear();
        }
        // Numbers of two countries, and texts that merely have the same hash, are different values.
        self.phone_comparer.pairs_left = MAX_COMPARED_PAIRS;
        let phones: Vec<Option<&DialledNumber>> =
            values.iter().map(|value| value.phone()).collect();
        let same = self.phone_comparer.group_equal(&phones);
        let mut known_reasons = HashSet::new();
        for (at, ((a, one), of_one)) in facts.iter().zip(&own).enumerate() {
            let mut firsts = HashMap::new();
            for first in of_one {
                for place in same.get(first.0).into_iter().flatten() {
                    firsts.entry(*place).or_insert(first);
                }
            }
            let common = |values_of_other: &Vec<(usize, &String)>| {
                values_of_other.iter().find_map(|(place, _)| firsts.get(place).copied())
            };
            let common: Vec<_> = own.iter().map(common).collect();
            let shared_by = common.iter().flatten().count();
            for ((b, other), common) in facts.iter().zip(&common).skip(at + 1) {
                let Some((place, shown)) = *common else { continue };
                let Some(shared) = values.get(*place) else { continue };
                let by = match shared {
                    MatchKey::Name(name) if !name.contains(' ') => MatchRule::OneWordName,
                    MatchKey::Name(_) => MatchRule::Name,
                    _ if shared_by == 2 => MatchRule::ExclusiveValue,
                    _ => MatchRule::CommonValue,
                };
                let plans = &mut self.phone_comparer;
                let known = self.cached_verdicts.entry((*a, *b, by));
                if let Some(sure) =
                    *known.or_insert_with(|| match_confidence(by, one, other, plans))
                {
                    let reason = DuplicateReason { field: shared.field(), value: (*shown).clone() };
                    self.union(*a, *b);
                    // Once for each group suffices.
                    let reason = (self.root(*a), reason, sure);
                    if known_reasons.insert(reason.clone()) {
                        self.reasons.push(reason);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads the values of these cards. Cards that were removed or are damaged are skipped.
    fn load_match_keys(&mut self, cards: &[u32]) -> Result<Vec<(u32, Rc<MatchKeys>)>, Error> {
        if self.cached_keys.len() > MAX_CACHED_CARDS {
            self.cached_keys.clear();
        }
        let new = cards.iter().copied().filter(|card| !self.cached_keys.contains_key(card));
        let new: Vec<(ItemRow, u32)> =
            new.filter_map(|card| Some((*self.rows.get(card as usize)?, card))).collect();
        let rows: Vec<ItemRow> = new.iter().map(|(row, _)| *row).collect();
        let mut rest = rows.as_slice();
        while !rest.is_empty() {
            let count = self.page.fill(self.reader, rest)?;
            for (meta, bytes) in self.page.iter() {
                if let Ok(at) = new.binary_search_by_key(&meta.row, |(row, _)| *row)
                    && let Some((_, card)) = new.get(at)
                {
                    let keys = MatchKeys::from_card(&Contact::parse(bytes), self.region);
                    self.cached_keys.insert(*card, Rc::new(keys));
                }
            }
            rest = rest.get(count..).unwrap_or_default();
        }
        let found =
            cards.iter().filter_map(|card| Some((*card, Rc::clone(self.cached_keys.get(card)?))));
        Ok(found.collect())
    }

    /// Returns the root of a card's group.
    fn root(&mut self, card: u32) -> u32 {
        let mut card = card;
        while let Some(&above) = self.parents.get(card as usize)
            && above != card
        {
            // Path halving.
            let further = self.parents.get(above as usize).copied().unwrap_or(above);
            if let Some(place) = self.parents.get_mut(card as usize) {
                *place = further;
            }
            card = further;
        }
        card
    }

    fn union(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        if let Some(place) = self.parents.get_mut(a.max(b) as usize) {
            *place = a.min(b);
        }
    }

    fn into_groups(mut self) -> Vec<DuplicateGroup> {
        self.cached_keys.clear();
        let mut reasons = std::mem::take(&mut self.reasons);
        for (card, ..) in &mut reasons {
            *card = self.root(*card);
        }
        reasons.sort_unstable();
        reasons.dedup();
        let mut groups: Vec<(u32, DuplicateGroup)> = Vec::new();
        let mut reasons = reasons.into_iter().peekable();
        while let Some((root, first, sure)) = reasons.next() {
            let mut group = DuplicateGroup {
                reasons: vec![first],
                rows: Vec::new(),
                confidence: u8::from(sure),
            };
            while let Some((_, reason, sure)) = reasons.next_if(|(other, ..)| *other == root) {
                group.reasons.push(reason);
                group.confidence = group.confidence.min(u8::from(sure));
            }
            group.reasons.dedup();
            group.reasons.shrink_to_fit();
            group.confidence *= reason_weight(&group.reasons);
            groups.push((root, group));
        }
        for card in 0..self.rows.len() {
            let root = self.root(u32::try_from(card).unwrap_or(u32::MAX));
            if let Ok(at) = groups.binary_search_by_key(&root, |(root, _)| *root)
                && let (Some((_, group)), Some(row)) = (groups.get_mut(at), self.rows.get(card))
            {
                group.rows.push(*row);
            }
        }
        groups.sort_by_key(|(root, group)| (u8::MAX - group.confidence, *root));
        groups.into_iter().map(|(_, group)| group).collect()
    }
}

/// Returns the weight of reasons: an address counts more than a number, a number more than a name.
fn reason_weight(reasons: &[DuplicateReason]) -> u8 {
    let worth = [("email", 4), ("phone", 3), ("full_name", 2)];
    let is_one = |field: &str| reasons.iter().any(|reason| reason.field == field);
    worth.iter().filter(|(field, _)| is_one(field)).map(|(_, worth)| worth).sum()
}
