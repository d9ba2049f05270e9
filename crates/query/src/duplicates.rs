//! Likely twins: cards that are perhaps of one person.
//!
//! Two cards are joined by a value that both have, the name shown, an e-mail address or a phone number:
//!
//! * An address or a number joins cards whose names can be one person's: all words of the one are words of the other,
//!   or their first letters. Where only two cards have it, their names need not agree (`Mum` and `Helga Berg`): those
//!   groups come last.
//! * A name of one word joins only cards that do not disagree: both have e-mail addresses, but none in common; or phone
//!   numbers; or organisations. A name that more than five cards have is that of several people, and joins none.
//! * An address or a number that more than fifty cards have joins none: it is a switchboard's.
//! * Nothing joins two cards with different birthdays, a list and a person, or somebody and the organisation they are with.
//!
//! Names are compared folded, in any order of their words; phone numbers as `eqphone_national` does, if they have six
//! digits at least and the same extension. What is joined to one of a group belongs to the group. Work is bounded: of
//! very many numbers with one ending the first are compared by the numbering plans, the others as they are dialled.
//!
//! It is apart from `run` because it asks what cards have in common, and not what one of them is. One scan keeps eight bytes a
//! value, and what several cards seem to have is then compared by the cards themselves.

mod phone;

use crate::answer::Answer;
use crate::error::Error;
use crate::query::{Query, Settings};
use crate::run::{Find, find};
use larder_format::contact::Contact;
use larder_format::field::{Field, field};
use larder_format::fold::{fold, words};
use larder_store::Reader;
use phone::{COMPARED, Phone, Plans};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;

/// Rows of items read in one transaction.
const PAGE: usize = 256;
/// A value of more cards than this joins none of them.
const MANY: usize = 50;
/// A name of more cards than this is that of several people.
const NAMESAKES: usize = 5;
/// Of more values of a field than this in one card the rest is not compared.
const VALUES: usize = 64;
/// Nor the rest of more names than this, nor what is longer.
const NAMES: usize = 8;
const LONG_NAME: usize = 250;
/// Pairs of cards about which is kept whether they are one person's.
const PAIRS: usize = 8192;
/// Cards that are kept, since twins are met once for each value they have in common.
const KEPT: usize = 256;

/// Cards that are perhaps of one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// What they have in common, two of them at least each time.
    pub reasons: Vec<Reason>,
    /// Their rows, in the order in which they came.
    pub rows: Vec<i64>,
    sure: u8,
}

impl Group {
    /// The cards, as an answer.
    #[must_use]
    pub fn items(&self) -> Answer {
        Answer::of(&self.rows)
    }
}

/// A value that cards have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason {
    /// The field: `email`, `phone` or `full_name`.
    pub field: &'static str,
    /// The value, as the first of the cards has it.
    pub value: String,
}

/// Groups of likely twins, those that are surest first: in the collection, with one card at least that answers the
/// question, and as many as the limit allows.
///
/// # Errors
/// An unknown collection, or what the store reports.
pub fn duplicates(reader: &Reader, asked: &Find, settings: &Settings) -> Result<Vec<Group>, Error> {
    let mut search = Search::new(reader, settings);
    let all = Find { collection: asked.collection.clone(), ..Find::default() };
    search.rows = find(reader, &all)?.rows();
    search.scan()?;
    search.compare()?;
    let mut groups = search.into_groups();
    if asked.query != Query::All {
        let answers = find(reader, &Find { sort: None, limit: None, ..asked.clone() })?;
        let answers: HashSet<i64> = answers.rows().into_iter().collect();
        groups.retain(|group| group.rows.iter().any(|row| answers.contains(row)));
    }
    groups.truncate(asked.limit.unwrap_or(usize::MAX));
    Ok(groups)
}

/// Something that cards can have in common, in the form in which it is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Shared {
    Email(String),
    Phone(Phone),
    /// The folded words in their order in the alphabet.
    Name(String),
}

impl Shared {
    fn phone(&self) -> Option<&Phone> {
        if let Shared::Phone(phone) = self { Some(phone) } else { None }
    }

    fn field(&self) -> &'static str {
        match self {
            Shared::Email(_) => "email",
            Shared::Phone(_) => "phone",
            Shared::Name(_) => "full_name",
        }
    }
}

/// A hash whose last bits are the kind: 1 for an address, 2 for a number, 3 for a name.
fn hash(kind: u32, text: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    (hasher.finish() >> 32) as u32 & !3 | kind
}

/// How many cards may have a value of this hash, if it is to join any.
fn most(hash: u32) -> usize {
    if hash & 3 == 3 { NAMESAKES } else { MANY }
}

/// What of a card is compared.
#[derive(Debug, Default)]
struct Facts {
    /// Each with its hash, and as the card has it.
    shared: Vec<(u32, Shared, String)>,
    org: Vec<String>,
    birth: String,
    list: bool,
}

/// The folded words of a name, in the order of the alphabet.
fn in_order(name: &str) -> String {
    let folded = fold(name);
    let mut words: Vec<&str> = words(&folded).collect();
    words.sort_unstable();
    words.join(" ")
}

impl Facts {
    fn of(card: &Contact<'_>, region: Option<&str>) -> Facts {
        let all = |field: &Field| card.values(field).into_iter().take(VALUES).collect();
        let values = |name: &str| -> Vec<String> { field(name).map(all).unwrap_or_default() };
        let first = |name: &str| values(name).into_iter().next().unwrap_or_default();
        let mut facts = Facts {
            org: values("org").iter().map(|org| in_order(org)).collect(),
            birth: first("birth_date"),
            list: first("list") == "1",
            ..Facts::default()
        };
        // Where a card has no name, its e-mail address is shown.
        let is_name = |name: &String| !name.contains('@') && name.len() <= LONG_NAME;
        for name in values("full_name").into_iter().filter(is_name).take(NAMES) {
            let sorted = in_order(&name);
            if !sorted.is_empty() {
                facts.shared.push((hash(3, &sorted), Shared::Name(sorted), name));
            }
        }
        // The addresses of a list are those of its members.
        if facts.list {
            return facts;
        }
        for email in values("email") {
            let folded = fold(&email).into_owned();
            facts.shared.push((hash(1, &folded), Shared::Email(folded), email));
        }
        for phone in values("phone") {
            let number = Phone::of(&phone, region);
            let ends: Vec<u32> =
                number.iter().flat_map(Phone::ends).map(|end| hash(2, end)).collect();
            for end in ends {
                facts
                    .shared
                    .extend(number.clone().map(|it| (end, Shared::Phone(it), phone.clone())));
            }
        }
        facts
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.shared.iter().filter_map(|(_, shared, _)| match shared {
            Shared::Name(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Are these certainly two?
    fn contradicts(&self, other: &Facts) -> bool {
        let works_at = |person: &Facts, firm: &Facts| {
            person.org.iter().any(|org| firm.names().any(|name| name == org))
                && !person.names().any(|name| firm.names().any(|firm| firm == name))
        };
        self.list != other.list
            || births_differ(&self.birth, &other.birth)
            || works_at(self, other)
            || works_at(other, self)
    }

    /// Do both have addresses, numbers or organisations, and none in common?
    fn disagrees(&self, other: &Facts, plans: &mut Plans<'_>) -> bool {
        fn differ<T>(a: &[T], b: &[T], mut same: impl FnMut(&T, &T) -> bool) -> bool {
            !a.is_empty() && !b.is_empty() && !a.iter().any(|a| b.iter().any(|b| same(a, b)))
        }
        fn of<'f, T>(facts: &'f Facts, kind: impl Fn(&'f Shared) -> Option<T>) -> Vec<T> {
            facts.shared.iter().filter_map(|(_, shared, _)| kind(shared)).collect()
        }
        fn email(shared: &Shared) -> Option<&Shared> {
            matches!(shared, Shared::Email(_)).then_some(shared)
        }
        let (a, b) = (of(self, Shared::phone), of(other, Shared::phone));
        differ(&self.org, &other.org, |a, b| a == b)
            || differ(&of(self, email), &of(other, email), |a, b| a == b)
            || (differ(&a, &b, |a, b| a == b) && differ(&a, &b, |a, b| plans.is(a, b)))
    }

    /// Can these be one person's names? `None`: one of them has no name.
    fn names_agree(&self, other: &Facts, words: usize) -> Option<bool> {
        if self.names().next().is_none() || other.names().next().is_none() {
            return None;
        }
        Some(
            self.names().any(|a| {
                other.names().any(|b| name_within(a, b, words) || name_within(b, a, words))
            }),
        )
    }
}

/// Are all words of one name, so many at least, in the other? A single letter is the beginning of one.
fn name_within(short: &str, long: &str, least: usize) -> bool {
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

/// Two birthdays, and not the same: where a year is missing, by month and day.
fn births_differ(a: &str, b: &str) -> bool {
    let year = |date: &str| date.starts_with(|c: char| c.is_ascii_digit());
    let day = |date: &str| date.get(date.len().saturating_sub(5)..).map(str::to_string);
    let (known, years) = (!a.is_empty() && !b.is_empty(), year(a) && year(b));
    known && if years { a != b } else { day(a) != day(b) }
}

/// How two cards are asked about: by a word that is their name, by their name, by an address or a number of these two only,
/// or of others too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum By {
    Word,
    Name,
    Theirs,
    Common,
}

/// How sure it is that two cards are of one person, if they are at all.
fn joins(by: By, a: &Facts, b: &Facts, plans: &mut Plans<'_>) -> Option<bool> {
    match by {
        _ if a.contradicts(b) => None,
        By::Name => Some(true),
        By::Word => (!a.disagrees(b, plans)).then_some(true),
        By::Theirs => Some(a.names_agree(b, 1) != Some(false)),
        By::Common => a.names_agree(b, 2).filter(|agree| *agree),
    }
}

/// The search, from the scan to the groups. Cards are numbered in the order of their rows.
struct Search<'a> {
    reader: &'a Reader,
    region: Option<&'a str>,
    rows: Vec<i64>,
    /// The hash of a value, and the number of the card that has it.
    values: Vec<u64>,
    kept: HashMap<u32, Rc<Facts>>,
    plans: Plans<'a>,
    /// Whether two cards are one person's, as it was found.
    known: HashMap<(u32, u32, By), Option<bool>>,
    /// For each card one that it is joined to, or itself.
    joined: Vec<u32>,
    /// Why, with one of the cards, and how sure.
    reasons: Vec<(u32, Reason, bool)>,
}

impl<'a> Search<'a> {
    fn new(reader: &'a Reader, settings: &'a Settings) -> Search<'a> {
        let region = settings.region.as_deref();
        Search {
            reader,
            region,
            rows: Vec::new(),
            values: Vec::new(),
            kept: HashMap::new(),
            plans: Plans { region, ..Plans::default() },
            known: HashMap::new(),
            joined: Vec::new(),
            reasons: Vec::new(),
        }
    }

    /// Reads every card once, a page a transaction.
    fn scan(&mut self) -> Result<(), Error> {
        let (region, values, mut first) = (self.region, &mut self.values, 0);
        for page in self.rows.chunks(PAGE) {
            self.reader.items(page, &mut |head, bytes| {
                let number = first + page.partition_point(|row| *row < head.row);
                // More cards than that are in no book.
                let Ok(number) = u32::try_from(number) else { return false };
                let facts = Facts::of(&Contact::parse(bytes), region);
                let value = |hash: u32| u64::from(hash) << 32 | u64::from(number);
                values.extend(facts.shared.iter().map(|(hash, ..)| value(*hash)));
                true
            })?;
            first += page.len();
        }
        self.joined = (0..u32::try_from(self.rows.len()).unwrap_or(u32::MAX)).collect();
        Ok(())
    }

    /// Compares the cards that seem to have a value in common.
    fn compare(&mut self) -> Result<(), Error> {
        let values = self.shared_values();
        let mut runs: Vec<(u32, u8)> = Vec::new();
        for run in values.chunk_by(|a, b| a >> 32 == b >> 32) {
            let start = runs.last().map_or(0, |(start, length)| start + u32::from(*length));
            runs.push((start, u8::try_from(run.len()).unwrap_or(u8::MAX)));
        }
        let number = |value: &u64| (value & u64::from(u32::MAX)) as u32;
        // Twins have several values in common: they are met soon after each other.
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

    /// The values that more than one card seems to have, and not very many.
    fn shared_values(&mut self) -> Vec<u64> {
        let mut values = std::mem::take(&mut self.values);
        values.sort_unstable();
        values.dedup();
        let runs = || values.chunk_by(|a, b| a >> 32 == b >> 32);
        let most = |run: &[u64]| run.first().map_or(0, |value| most((value >> 32) as u32));
        let shared = |run: &&[u64]| (2..=most(run)).contains(&run.len());
        let number = runs().filter(shared).map(<[u64]>::len).sum();
        let mut kept = Vec::with_capacity(number);
        runs().filter(shared).for_each(|run| kept.extend_from_slice(run));
        kept
    }

    fn compare_cards(&mut self, hash: u32, cards: &[u32]) -> Result<(), Error> {
        let facts = self.facts(cards)?;
        // The values of this hash, and of each card which of them it has.
        let (mut values, mut places) = (Vec::new(), HashMap::new());
        let mut place = |shared| {
            *places.entry(shared).or_insert_with(|| {
                values.push(shared);
                values.len() - 1
            })
        };
        let mut own: Vec<Vec<(usize, &String)>> = Vec::with_capacity(facts.len());
        for (_, one) in &facts {
            let of_hash = one.shared.iter().filter(|(known, ..)| *known == hash);
            own.push(of_hash.map(|(_, shared, shown)| (place(shared), shown)).collect());
        }
        if self.known.len() > PAIRS {
            self.known.clear();
        }
        // Numbers of two countries, and what only has the same hash, are other values.
        self.plans.left = COMPARED;
        let phones: Vec<Option<&Phone>> = values.iter().map(|value| value.phone()).collect();
        let same = self.plans.same(&phones);
        let mut said = HashSet::new();
        for (at, ((a, one), of_one)) in facts.iter().zip(&own).enumerate() {
            let mut firsts = HashMap::new();
            for first in of_one {
                for place in same.get(first.0).into_iter().flatten() {
                    firsts.entry(*place).or_insert(first);
                }
            }
            let common = |of_other: &Vec<(usize, &String)>| {
                of_other.iter().find_map(|(place, _)| firsts.get(place).copied())
            };
            let common: Vec<_> = own.iter().map(common).collect();
            let shared_by = common.iter().flatten().count();
            for ((b, other), common) in facts.iter().zip(&common).skip(at + 1) {
                let Some((place, shown)) = *common else { continue };
                let Some(shared) = values.get(*place) else { continue };
                let by = match shared {
                    Shared::Name(name) if !name.contains(' ') => By::Word,
                    Shared::Name(_) => By::Name,
                    _ if shared_by == 2 => By::Theirs,
                    _ => By::Common,
                };
                let plans = &mut self.plans;
                let known = self.known.entry((*a, *b, by));
                if let Some(sure) = *known.or_insert_with(|| joins(by, one, other, plans)) {
                    let reason = Reason { field: shared.field(), value: (*shown).clone() };
                    self.join(*a, *b);
                    // Once for each group is enough, of many cards.
                    let told = (self.root(*a), reason, sure);
                    if said.insert(told.clone()) {
                        self.reasons.push(told);
                    }
                }
            }
        }
        Ok(())
    }

    /// What there is to compare of these cards; those that are gone are left out.
    fn facts(&mut self, cards: &[u32]) -> Result<Vec<(u32, Rc<Facts>)>, Error> {
        if self.kept.len() > KEPT {
            self.kept.clear();
        }
        let new = cards.iter().copied().filter(|card| !self.kept.contains_key(card));
        let new: Vec<(i64, u32)> =
            new.filter_map(|card| Some((*self.rows.get(card as usize)?, card))).collect();
        let rows: Vec<i64> = new.iter().map(|(row, _)| *row).collect();
        let (kept, region) = (&mut self.kept, self.region);
        self.reader.items(&rows, &mut |head, bytes| {
            if let Ok(at) = new.binary_search_by_key(&head.row, |(row, _)| *row)
                && let Some((_, card)) = new.get(at)
            {
                kept.insert(*card, Rc::new(Facts::of(&Contact::parse(bytes), region)));
            }
            true
        })?;
        let found = cards.iter().filter_map(|card| Some((*card, Rc::clone(self.kept.get(card)?))));
        Ok(found.collect())
    }

    /// The first card that a card is joined to.
    fn root(&mut self, card: u32) -> u32 {
        let mut card = card;
        while let Some(&above) = self.joined.get(card as usize)
            && above != card
        {
            // Each look halves the way of the next one.
            let further = self.joined.get(above as usize).copied().unwrap_or(above);
            if let Some(place) = self.joined.get_mut(card as usize) {
                *place = further;
            }
            card = further;
        }
        card
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        if let Some(place) = self.joined.get_mut(a.max(b) as usize) {
            *place = a.min(b);
        }
    }

    fn into_groups(mut self) -> Vec<Group> {
        self.kept.clear();
        let mut reasons = std::mem::take(&mut self.reasons);
        for (card, ..) in &mut reasons {
            *card = self.root(*card);
        }
        reasons.sort_unstable();
        reasons.dedup();
        let mut groups: Vec<(u32, Group)> = Vec::new();
        let mut reasons = reasons.into_iter().peekable();
        while let Some((root, first, sure)) = reasons.next() {
            let mut group = Group { reasons: vec![first], rows: Vec::new(), sure: u8::from(sure) };
            while let Some((_, reason, sure)) = reasons.next_if(|(other, ..)| *other == root) {
                group.reasons.push(reason);
                group.sure = group.sure.min(u8::from(sure));
            }
            group.reasons.dedup();
            group.reasons.shrink_to_fit();
            group.sure *= weight(&group.reasons);
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
        groups.sort_by_key(|(root, group)| (u8::MAX - group.sure, *root));
        groups.into_iter().map(|(_, group)| group).collect()
    }
}

/// What kinds of reasons are worth: an address is more than a number, a number more than a name.
fn weight(reasons: &[Reason]) -> u8 {
    let worth = [("email", 4), ("phone", 3), ("full_name", 2)];
    let is_one = |field: &str| reasons.iter().any(|reason| reason.field == field);
    worth.iter().filter(|(field, _)| is_one(field)).map(|(_, worth)| worth).sum()
}
