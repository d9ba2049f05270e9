//! Who has to look at a change: questions by what their answers must have.
//!
//! A question is filed under something without which no item answers it: a UID, a value, the beginning of one, three letters, or
//! a window of time; of several the rarest. An item that changed has few of these, so of ten thousand questions those few are
//! asked that may be told something. What has no such thing is asked each time. It is no index of items, and what it names is
//! tested; it may name too many, and leaves none out.

use crate::compare::{Needle, phone_digits, pieces};
use crate::matcher::{any_fields, looked_at, word_fields};
use crate::query::{Op, Query, Subject, Test};
use crate::time::TimeTest;
use larder_format::field::{CALENDAR_FIELDS, FIELDS, Field, Kind as FieldKind};
use larder_format::fold::{fold, words};
use larder_store::{Family, Kind, What, Window};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

/// The number of a question.
pub(super) type Asked = u32;
/// More ways than this to one question cost more than to ask it.
const WAYS: usize = 64;

/// What an item has of which a question may be filed under.
pub(super) trait Has {
    /// Gives the values of a field.
    fn each(&self, field: &'static Field, each: &mut dyn FnMut(&str));
    /// The UIDs by which it goes.
    fn uids(&self) -> [Option<String>; 2];
    /// From when to when a window may meet it.
    fn span(&self, what: What) -> Option<(i64, i64)>;
}

/// Something that an item must have to answer a question.
#[derive(Debug, Clone, PartialEq)]
enum Way {
    Uid(String),
    /// A folded value of a field.
    Value(&'static Field, String),
    /// The beginning of a folded value of a field.
    Beginning(&'static Field, String),
    /// Three letters in a folded value of any of these fields.
    Letters(Vec<&'static Field>, [char; 3]),
    /// One or two letters at the beginning of a word in any of these fields.
    Word(Vec<&'static Field>, String),
    Window(What, i64, i64),
}

/// How an answer is narrowed.
enum Narrow {
    Nothing,
    All,
    /// Any of these.
    Ways(Vec<Way>),
}

impl Way {
    /// How many items probably have it, from few to many.
    fn breadth(&self) -> i64 {
        match self {
            Way::Uid(_) => 0,
            Way::Value(..) => 1,
            Way::Beginning(_, text) if text.len() > 2 => 2,
            Way::Letters(..) => 3,
            Way::Word(..) => 5,
            Way::Window(_, from, to) => 4 + (to.saturating_sub(*from) / (400 * 86_400)).min(1),
            Way::Beginning(..) => 5,
        }
    }
}

/// Where a question is put: a row of a collection, and a kind.
type Place = (Option<i64>, Option<Kind>);

/// All questions, by what has to be there for them to be asked.
#[derive(Debug, Default)]
pub(super) struct Concern {
    places: HashMap<Place, Filed>,
}

/// Questions that are put to one place.
#[derive(Debug, Default)]
struct Filed {
    uids: HashMap<String, Vec<Asked>>,
    values: HashMap<u16, HashMap<String, Vec<Asked>>>,
    beginnings: HashMap<u16, BTreeMap<String, Vec<Asked>>>,
    letters: HashMap<[char; 3], Vec<Asked>>,
    words: HashMap<String, Vec<Asked>>,
    /// Whose letters and words are looked at, for how many questions.
    lettered: HashMap<u16, (&'static Field, usize)>,
    occurrences: Windows,
    alarms: Windows,
    /// Those that are asked each time.
    rest: Vec<Asked>,
}

impl Concern {
    /// Files a question of a family, which is put to this collection.
    pub(super) fn add(&mut self, asked: Asked, query: &Query, collection: Option<i64>) {
        self.file(query, collection, &mut |filed, way| filed.add(way, asked));
    }

    pub(super) fn remove(&mut self, asked: Asked, query: &Query, collection: Option<i64>) {
        self.file(query, collection, &mut |filed, way| filed.remove(way, asked));
        self.places.retain(|_, filed| !filed.is_empty());
    }

    /// Gives where a question is filed, and under what; `None`: it is asked each time.
    fn file(
        &mut self,
        query: &Query,
        collection: Option<i64>,
        each: &mut dyn FnMut(&mut Filed, Option<&Way>),
    ) {
        let kind = kind_of(query);
        let filed = self.places.entry((collection, kind)).or_default();
        // Its items may be of either family, unless it says which.
        let families: &[Family] = match kind.map(Kind::family) {
            Some(Family::Contacts) => &[Family::Contacts],
            Some(Family::Calendar) => &[Family::Calendar],
            _ => &[Family::Contacts, Family::Calendar],
        };
        let mut ways: Vec<Way> = Vec::new();
        for family in families {
            match narrow(query, *family) {
                Narrow::Nothing => {}
                Narrow::All => return each(filed, None),
                Narrow::Ways(more) => {
                    for way in more {
                        if !ways.contains(&way) {
                            ways.push(way);
                        }
                    }
                }
            }
        }
        match ways.len() {
            ..=WAYS => ways.iter().for_each(|way| each(filed, Some(way))),
            _ => each(filed, None),
        }
    }

    /// Adds the questions to which an item of this collection and kind may matter.
    pub(super) fn find(&self, item: &dyn Has, collection: i64, kind: Kind, found: &mut Vec<Asked>) {
        for place in [
            (None, None),
            (Some(collection), None),
            (None, Some(kind)),
            (Some(collection), Some(kind)),
        ] {
            if let Some(filed) = self.places.get(&place) {
                filed.find(item, kind.family(), found);
            }
        }
    }
}

impl Filed {
    fn add(&mut self, way: Option<&Way>, asked: Asked) {
        match way {
            None => self.rest.push(asked),
            Some(Way::Uid(uid)) => self.uids.entry(uid.clone()).or_default().push(asked),
            Some(Way::Value(field, text)) => {
                let values = self.values.entry(field.id).or_default();
                values.entry(text.clone()).or_default().push(asked);
            }
            Some(Way::Beginning(field, text)) => {
                let values = self.beginnings.entry(field.id).or_default();
                values.entry(text.clone()).or_default().push(asked);
            }
            Some(Way::Letters(fields, three)) => {
                self.letters.entry(*three).or_default().push(asked);
                self.look_at(fields);
            }
            Some(Way::Word(fields, start)) => {
                self.words.entry(start.clone()).or_default().push(asked);
                self.look_at(fields);
            }
            Some(Way::Window(What::Occurrences, from, to)) => {
                self.occurrences.add(*from, *to, asked);
            }
            Some(Way::Window(What::Alarms, from, to)) => self.alarms.add(*from, *to, asked),
        }
    }

    fn remove(&mut self, way: Option<&Way>, asked: Asked) {
        fn take<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Vec<Asked>>, key: &K, asked: Asked) {
            if let Some(all) = map.get_mut(key) {
                all.retain(|other| *other != asked);
                if all.is_empty() {
                    map.remove(key);
                }
            }
        }
        match way {
            None => self.rest.retain(|other| *other != asked),
            Some(Way::Uid(uid)) => take(&mut self.uids, uid, asked),
            Some(Way::Value(field, text)) => {
                if let Some(values) = self.values.get_mut(&field.id) {
                    take(values, text, asked);
                    if values.is_empty() {
                        self.values.remove(&field.id);
                    }
                }
            }
            Some(Way::Beginning(field, text)) => self.remove_beginning(field.id, text, asked),
            Some(Way::Letters(fields, three)) => {
                take(&mut self.letters, three, asked);
                self.look_away(fields);
            }
            Some(Way::Word(fields, start)) => {
                take(&mut self.words, start, asked);
                self.look_away(fields);
            }
            Some(Way::Window(What::Occurrences, from, to)) => {
                self.occurrences.remove(*from, *to, asked);
            }
            Some(Way::Window(What::Alarms, from, to)) => self.alarms.remove(*from, *to, asked),
        }
    }

    fn look_at(&mut self, fields: &[&'static Field]) {
        for field in fields {
            self.lettered.entry(field.id).or_insert((field, 0)).1 += 1;
        }
    }

    fn look_away(&mut self, fields: &[&'static Field]) {
        for field in fields {
            if let Some((_, users)) = self.lettered.get_mut(&field.id) {
                *users = users.saturating_sub(1);
            }
        }
        self.lettered.retain(|_, (_, users)| *users > 0);
    }

    fn remove_beginning(&mut self, field: u16, text: &str, asked: Asked) {
        let Some(values) = self.beginnings.get_mut(&field) else { return };
        if let Some(all) = values.get_mut(text) {
            all.retain(|other| *other != asked);
            if all.is_empty() {
                values.remove(text);
            }
        }
        if values.is_empty() {
            self.beginnings.remove(&field);
        }
    }

    fn is_empty(&self) -> bool {
        self.uids.is_empty()
            && self.values.is_empty()
            && self.beginnings.is_empty()
            && self.letters.is_empty()
            && self.words.is_empty()
            && self.occurrences.is_empty()
            && self.alarms.is_empty()
            && self.rest.is_empty()
    }

    fn find(&self, item: &dyn Has, family: Family, found: &mut Vec<Asked>) {
        found.extend_from_slice(&self.rest);
        if !self.uids.is_empty() {
            let known = item.uids().into_iter().flatten();
            found.extend(known.filter_map(|uid| self.uids.get(&uid)).flatten());
        }
        for (id, values) in &self.values {
            let Some(field) = field_of(*id, family) else { continue };
            item.each(field, &mut |value| {
                found.extend(values.get(&*fold(value)).into_iter().flatten());
            });
        }
        for (id, beginnings) in &self.beginnings {
            let Some(field) = field_of(*id, family) else { continue };
            item.each(field, &mut |value| find_beginnings(beginnings, &fold(value), found));
        }
        for (id, (field, _)) in &self.lettered {
            if field_of(*id, family).is_none() {
                continue;
            }
            item.each(field, &mut |value| {
                let folded = fold(value);
                if !self.letters.is_empty() {
                    each_three(&folded, &mut |three| {
                        found.extend(self.letters.get(&three).into_iter().flatten());
                    });
                }
                if !self.words.is_empty() {
                    find_words(&self.words, &folded, found);
                }
            });
        }
        for (windows, what) in
            [(&self.occurrences, What::Occurrences), (&self.alarms, What::Alarms)]
        {
            if !windows.is_empty()
                && let Some((from, to)) = item.span(what)
            {
                windows.find(from, to, found);
            }
        }
    }
}

fn find_beginnings(
    beginnings: &BTreeMap<String, Vec<Asked>>,
    folded: &str,
    found: &mut Vec<Asked>,
) {
    // From the longest that may be there to shorter ones; each look-up tells how far to go back.
    let mut longest = folded;
    while let Some((known, asked)) =
        beginnings.range::<str, _>((Bound::Unbounded, Bound::Included(longest))).next_back()
    {
        let common = known.bytes().zip(longest.bytes()).take_while(|(a, b)| a == b).count();
        if common == known.len() {
            found.extend(asked);
        }
        // What is a beginning of both is no longer than what they have in common.
        let shorter = if common == known.len() { common.saturating_sub(1) } else { common };
        let shorter = (0..=shorter).rev().find(|at| longest.is_char_boundary(*at)).unwrap_or(0);
        if shorter == 0 {
            break;
        }
        longest = longest.get(..shorter).unwrap_or_default();
    }
}

/// Short beginnings of each word: a letter, and two.
fn find_words(starts: &HashMap<String, Vec<Asked>>, folded: &str, found: &mut Vec<Asked>) {
    for word in words(folded) {
        for (at, c) in word.char_indices().take(2) {
            let start = word.get(..at + c.len_utf8()).unwrap_or(word);
            found.extend(starts.get(start).into_iter().flatten());
        }
    }
}

/// The field of this number, if items of the family can have it.
fn field_of(id: u16, family: Family) -> Option<&'static Field> {
    let fields = if family == Family::Calendar { CALENDAR_FIELDS } else { FIELDS };
    fields.iter().find(|field| field.id == id)
}

/// Each three letters in a row.
fn each_three(text: &str, each: &mut dyn FnMut([char; 3])) {
    let mut chars = text.chars();
    let (Some(mut a), Some(mut b)) = (chars.next(), chars.next()) else { return };
    for c in chars {
        each([a, b, c]);
        (a, b) = (b, c);
    }
}

/// The kind that all answers to a question are of.
fn kind_of(query: &Query) -> Option<Kind> {
    match query {
        Query::Kind(kind) => Some(*kind),
        Query::And(all) => all.iter().find_map(kind_of),
        _ => None,
    }
}

fn narrow(query: &Query, family: Family) -> Narrow {
    match query {
        Query::All | Query::Not(_) | Query::Number(..) => Narrow::All,
        Query::Kind(kind) if kind.family() == family => Narrow::All,
        Query::Kind(_) => Narrow::Nothing,
        Query::And(all) => narrowest(all, family),
        Query::Or(any) => any_of(any.iter().map(|query| narrow(query, family))),
        Query::Uids(uids) => Narrow::Ways(uids.iter().cloned().map(Way::Uid).collect()),
        Query::Word(text) => match Needle::of(text) {
            Needle::Anywhere(folded, None) => letters(word_fields(family), &folded),
            Needle::Beginning(start) => {
                Narrow::Ways(vec![Way::Word(word_fields(family).to_vec(), start)])
            }
            Needle::Anywhere(..) => Narrow::All,
        },
        Query::Time(_) if family != Family::Calendar => Narrow::Nothing,
        Query::Time(TimeTest::In(window)) => of_window(window),
        Query::Time(_) => Narrow::All,
        Query::Test(test) => of_test(test, family),
    }
}

fn of_window(window: &Window) -> Narrow {
    let (from, to) = (window.from.seconds(), window.to.seconds());
    if from >= to {
        Narrow::Nothing
    } else {
        Narrow::Ways(vec![Way::Window(window.what, from, to)])
    }
}

fn narrowest(all: &[Query], family: Family) -> Narrow {
    let mut best: Option<(i64, Vec<Way>)> = None;
    for query in all {
        match narrow(query, family) {
            Narrow::Nothing => return Narrow::Nothing,
            Narrow::All => {}
            Narrow::Ways(ways) => {
                let breadth = ways.iter().map(Way::breadth).max().unwrap_or(0);
                if best.as_ref().is_none_or(|(known, _)| breadth < *known) {
                    best = Some((breadth, ways));
                }
            }
        }
    }
    best.map_or(Narrow::All, |(_, ways)| Narrow::Ways(ways))
}

fn any_of(any: impl Iterator<Item = Narrow>) -> Narrow {
    let mut all = Vec::new();
    for narrow in any {
        match narrow {
            Narrow::Nothing => {}
            Narrow::All => return Narrow::All,
            Narrow::Ways(ways) => all.extend(ways),
        }
    }
    if all.is_empty() { Narrow::Nothing } else { Narrow::Ways(all) }
}

fn of_test(test: &Test, family: Family) -> Narrow {
    let folded = fold(&test.text).into_owned();
    let fields: &[&'static Field] = match &test.subject {
        Subject::Nothing => return Narrow::Nothing,
        Subject::Property(_) => return Narrow::All,
        Subject::Field(Field { kind: FieldKind::Uid, .. }) => {
            return match test.op {
                Op::Is => Narrow::Ways(vec![Way::Uid(test.text.clone())]),
                _ => Narrow::All,
            };
        }
        Subject::Field(field) => looked_at(field, family),
        Subject::Any => any_fields(family),
    };
    if fields.is_empty() {
        return Narrow::Nothing;
    }
    // An empty text is found where the field is missing, and the digits of a phone number among others.
    if folded.is_empty() || (test.op == Op::Contains && phone_digits(&test.text).is_some()) {
        return Narrow::All;
    }
    let one = matches!(&test.subject, Subject::Field(_));
    let each = |way: fn(&'static Field, String) -> Way| {
        Narrow::Ways(fields.iter().map(|field| way(field, folded.clone())).collect())
    };
    match test.op {
        Op::Is if one => each(Way::Value),
        Op::BeginsWith if one => each(Way::Beginning),
        Op::Contains => {
            let longest = pieces(&folded).into_iter().max_by_key(String::len).unwrap_or_default();
            letters(fields, &longest)
        }
        Op::Is | Op::BeginsWith | Op::EndsWith | Op::Includes => letters(fields, &folded),
        _ => Narrow::All,
    }
}

/// What has this text in it has its last three letters.
fn letters(fields: &[&'static Field], text: &str) -> Narrow {
    let mut last = None;
    each_three(text, &mut |three| last = Some(three));
    match last {
        Some(three) => Narrow::Ways(vec![Way::Letters(fields.to_vec(), three)]),
        None => Narrow::All,
    }
}

/// Windows by their length and beginning, so that those which a span reaches into lie close together.
#[derive(Debug, Default)]
struct Windows {
    /// By the power of two that is no shorter.
    classes: BTreeMap<u32, BTreeMap<(i64, Asked), i64>>,
}

impl Windows {
    fn class(from: i64, to: i64) -> u32 {
        64 - (to.saturating_sub(from).max(1) as u64 - 1).leading_zeros()
    }

    fn add(&mut self, from: i64, to: i64, asked: Asked) {
        self.classes.entry(Windows::class(from, to)).or_default().insert((from, asked), to);
    }

    fn remove(&mut self, from: i64, to: i64, asked: Asked) {
        let class = Windows::class(from, to);
        if let Some(windows) = self.classes.get_mut(&class) {
            windows.remove(&(from, asked));
            if windows.is_empty() {
                self.classes.remove(&class);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Those that overlap with this stretch.
    fn find(&self, from: i64, to: i64, found: &mut Vec<Asked>) {
        for (class, windows) in &self.classes {
            let longest = 1i64.checked_shl(*class).filter(|length| *length > 0).unwrap_or(i64::MAX);
            let first = from.saturating_sub(longest);
            for ((_, asked), end) in
                windows.range((first, Asked::MIN)..(to.saturating_add(1), Asked::MIN))
            {
                if *end >= from {
                    found.push(*asked);
                }
            }
        }
    }
}
