//! Who has to look at a change: questions by what their answers must have.
//!
//! A question is filed under something without which no item answers it: a UID, a value, the beginning of one, three letters, or
//! a window of time; of several the rarest. An item that changed has few of these, so of ten thousand questions those few are
//! asked that may be told something. What has no such thing is asked each time. It is no index of items, and what it names is
//! tested; it may name too many, and leaves none out.

use super::narrow::{Way, each_three, ways};
use crate::query::Query;
use larder_format::field::{CALENDAR_FIELDS, Field};
use larder_format::fold::{fold, words};
use larder_store::{Family, Kind, What};
use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};
use std::slice;

/// The number of a question.
pub(super) type Asked = u32;

/// What an item has, and had, of which a question may be filed under.
pub(super) trait Has {
    /// The collection that it is in, and its kind.
    fn place(&self) -> (i64, Kind);
    /// Gives the values of a field.
    fn each(&self, field: &'static Field, each: &mut dyn FnMut(&str));
    /// The UIDs by which it goes.
    fn uids(&self) -> [Option<&str>; 4];
    /// From when to when windows may meet it.
    fn spans(&self, what: What) -> [Option<(i64, i64)>; 2];
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
    uids: HashMap<String, Askers>,
    fields: BTreeMap<u16, OfField>,
    letters: Letters,
    words: FxHashMap<String, Askers>,
    occurrences: Windows,
    alarms: Windows,
    /// Those that are asked each time.
    rest: Vec<Asked>,
}

/// Questions by three letters in a row. An item has hundreds of these, and nobody asks for most of them.
#[derive(Debug, Default)]
struct Letters {
    /// A bit for each that is, or was, asked for, and for others that fall on the same: what has none needs no look at more memory.
    asked: Vec<u64>,
    of: FxHashMap<u64, Askers>,
}

/// Questions about the values of one field.
#[derive(Debug)]
struct OfField {
    field: &'static Field,
    /// Whose field it is.
    family: Family,
    values: HashMap<String, Askers>,
    beginnings: Beginnings,
    /// For so many questions its letters and words are looked at.
    lettered: usize,
}

/// Questions by the beginning of a value, and how long those are, each for so many questions: there are few lengths, and a value is
/// looked up by its beginning of each.
#[derive(Debug, Default)]
struct Beginnings {
    lengths: BTreeMap<usize, usize>,
    of: FxHashMap<String, Askers>,
}

/// Who is filed under one thing: mostly one question.
#[derive(Debug)]
enum Askers {
    One(Asked),
    Many(Vec<Asked>),
}

impl Askers {
    fn all(&self) -> &[Asked] {
        match self {
            Askers::One(one) => slice::from_ref(one),
            Askers::Many(many) => many,
        }
    }

    fn add(&mut self, asked: Asked) {
        match self {
            Askers::One(one) => *self = Askers::Many(vec![*one, asked]),
            Askers::Many(many) => many.push(asked),
        }
    }

    /// False: nobody is left.
    fn remove(&mut self, asked: Asked) -> bool {
        match self {
            Askers::One(one) => *one != asked,
            Askers::Many(many) => {
                if let Some(at) = many.iter().position(|other| *other == asked) {
                    many.swap_remove(at);
                }
                !many.is_empty()
            }
        }
    }
}

fn put<K: Hash + Eq, S: BuildHasher>(map: &mut HashMap<K, Askers, S>, key: K, asked: Asked) {
    map.entry(key).and_modify(|of| of.add(asked)).or_insert(Askers::One(asked));
}

fn take<K, Q, S>(map: &mut HashMap<K, Askers, S>, key: &Q, asked: Asked)
where
    K: Hash + Eq + Borrow<Q>,
    Q: Hash + Eq + ?Sized,
    S: BuildHasher,
{
    if map.get_mut(key).is_some_and(|of| !of.remove(asked)) {
        map.remove(key);
    }
}

fn extend<K, Q, S>(found: &mut Vec<Asked>, map: &HashMap<K, Askers, S>, key: &Q)
where
    K: Hash + Eq + Borrow<Q>,
    Q: Hash + Eq + ?Sized,
    S: BuildHasher,
{
    if let Some(of) = map.get(key) {
        found.extend_from_slice(of.all());
    }
}

impl Concern {
    /// Files a question, which is put to this collection.
    pub(super) fn add(&mut self, asked: Asked, query: &Query, collection: Option<i64>) {
        self.file(query, collection, &mut |filed, way| filed.add(way, asked));
    }

    pub(super) fn remove(&mut self, asked: Asked, query: &Query, collection: Option<i64>) {
        let place = self.file(query, collection, &mut |filed, way| filed.remove(way, asked));
        if self.places.get(&place).is_some_and(Filed::is_empty) {
            self.places.remove(&place);
        }
    }

    /// Gives where a question is filed, and under what; `None`: it is asked each time.
    fn file(
        &mut self,
        query: &Query,
        collection: Option<i64>,
        each: &mut dyn FnMut(&mut Filed, Option<&Way>),
    ) -> Place {
        let kind = query.kind();
        let place = (collection, kind);
        let filed = self.places.entry(place).or_default();
        match ways(query, kind) {
            Some(ways) => ways.iter().for_each(|way| each(filed, Some(way))),
            None => each(filed, None),
        }
        place
    }

    /// Adds the questions to which an item that has this may matter.
    pub(super) fn find(&self, item: &dyn Has, found: &mut Vec<Asked>) {
        let (collection, kind) = item.place();
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
            Some(Way::Uid(uid)) => put(&mut self.uids, uid.clone(), asked),
            Some(Way::Value(field, text)) => {
                put(&mut self.field(field).values, text.clone(), asked);
            }
            Some(Way::Beginning(field, text)) => self.field(field).beginnings.add(text, asked),
            Some(Way::Letters(fields, three)) => {
                self.letters.add(*three, asked);
                self.look_at(fields);
            }
            Some(Way::Word(fields, start)) => {
                put(&mut self.words, start.clone(), asked);
                self.look_at(fields);
            }
            Some(Way::Window(What::Occurrences, from, to)) => {
                self.occurrences.add(*from, *to, asked);
            }
            Some(Way::Window(What::Alarms, from, to)) => self.alarms.add(*from, *to, asked),
        }
    }

    fn remove(&mut self, way: Option<&Way>, asked: Asked) {
        match way {
            None => self.rest.retain(|other| *other != asked),
            Some(Way::Uid(uid)) => take(&mut self.uids, uid, asked),
            Some(Way::Value(field, text)) => {
                self.of_field(field, |of| take(&mut of.values, text, asked));
            }
            Some(Way::Beginning(field, text)) => {
                self.of_field(field, |of| of.beginnings.remove(text, asked));
            }
            Some(Way::Letters(fields, three)) => {
                self.letters.remove(*three, asked);
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

    fn field(&mut self, field: &'static Field) -> &mut OfField {
        self.fields.entry(field.id).or_insert_with(|| {
            let of_calendars = CALENDAR_FIELDS.iter().any(|of| of.id == field.id);
            let family = if of_calendars { Family::Calendar } else { Family::Contacts };
            let (values, beginnings) = (HashMap::new(), Beginnings::default());
            OfField { field, family, values, beginnings, lettered: 0 }
        })
    }

    fn look_at(&mut self, fields: &[&'static Field]) {
        for field in fields {
            self.field(field).lettered += 1;
        }
    }

    fn look_away(&mut self, fields: &[&'static Field]) {
        for field in fields {
            self.of_field(field, |of| of.lettered = of.lettered.saturating_sub(1));
        }
    }

    /// Takes something from a field, which goes when nobody asks for it any more.
    fn of_field(&mut self, field: &Field, change: impl FnOnce(&mut OfField)) {
        let Some(of) = self.fields.get_mut(&field.id) else { return };
        change(of);
        if of.values.is_empty() && of.beginnings.of.is_empty() && of.lettered == 0 {
            self.fields.remove(&field.id);
        }
    }

    fn is_empty(&self) -> bool {
        self.uids.is_empty()
            && self.fields.is_empty()
            && self.occurrences.is_empty()
            && self.alarms.is_empty()
            && self.rest.is_empty()
    }

    fn find(&self, item: &dyn Has, family: Family, found: &mut Vec<Asked>) {
        found.extend_from_slice(&self.rest);
        if !self.uids.is_empty() {
            let known = item.uids().into_iter().flatten();
            known.for_each(|uid| extend(found, &self.uids, uid));
        }
        for (windows, what) in
            [(&self.occurrences, What::Occurrences), (&self.alarms, What::Alarms)]
        {
            if !windows.is_empty() {
                let spans = item.spans(what).into_iter().flatten();
                spans.for_each(|(from, to)| windows.find(from, to, found));
            }
        }
        for of in self.fields.values().filter(|of| of.family == family) {
            item.each(of.field, &mut |value| self.find_by(of, &fold(value), found));
        }
    }

    fn find_by(&self, of: &OfField, folded: &str, found: &mut Vec<Asked>) {
        if !of.values.is_empty() {
            extend(found, &of.values, folded);
        }
        of.beginnings.find(folded, found);
        if of.lettered > 0 {
            self.letters.find(folded, found);
            if !self.words.is_empty() {
                find_words(&self.words, folded, found);
            }
        }
    }
}

impl Letters {
    /// 4 KiB of bits, which stay in the nearest memory.
    const WORDS: usize = 512;

    /// Three letters in a number.
    fn in_a_row(three: [char; 3]) -> u64 {
        three.into_iter().fold(0, |row, c| row << 21 | u64::from(u32::from(c)))
    }

    /// The word that has its bit, and the bit: the highest bits of a product with the golden ratio, in which all bits of the row have a part.
    fn bit(row: u64) -> (usize, u64) {
        let mixed = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - 6 - Letters::WORDS.ilog2());
        (mixed as usize / 64, 1 << (mixed % 64))
    }

    fn add(&mut self, three: [char; 3], asked: Asked) {
        let row = Letters::in_a_row(three);
        self.asked.resize(Letters::WORDS, 0);
        let (word, bit) = Letters::bit(row);
        if let Some(word) = self.asked.get_mut(word) {
            *word |= bit;
        }
        put(&mut self.of, row, asked);
    }

    fn remove(&mut self, three: [char; 3], asked: Asked) {
        take(&mut self.of, &Letters::in_a_row(three), asked);
        if self.of.is_empty() {
            *self = Letters::default();
        }
    }

    fn find(&self, folded: &str, found: &mut Vec<Asked>) {
        if self.of.is_empty() {
            return;
        }
        each_three(folded, &mut |three| {
            let row = Letters::in_a_row(three);
            let (word, bit) = Letters::bit(row);
            if self.asked.get(word).is_some_and(|word| word & bit != 0) {
                extend(found, &self.of, &row);
            }
        });
    }
}

impl Beginnings {
    fn add(&mut self, text: &str, asked: Asked) {
        *self.lengths.entry(text.len()).or_default() += 1;
        put(&mut self.of, text.to_string(), asked);
    }

    fn remove(&mut self, text: &str, asked: Asked) {
        if let Some(number) = self.lengths.get_mut(&text.len()) {
            *number -= 1;
            if *number == 0 {
                self.lengths.remove(&text.len());
            }
        }
        take(&mut self.of, text, asked);
    }

    fn find(&self, folded: &str, found: &mut Vec<Asked>) {
        for (length, _) in self.lengths.range(..=folded.len()) {
            if let Some(begun) = folded.get(..*length) {
                extend(found, &self.of, begun);
            }
        }
    }
}

/// Short beginnings of each word: a letter, and two.
fn find_words(starts: &FxHashMap<String, Askers>, folded: &str, found: &mut Vec<Asked>) {
    for word in words(folded) {
        for (at, c) in word.char_indices().take(2) {
            extend(found, starts, word.get(..at + c.len_utf8()).unwrap_or(word));
        }
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
        let class = self.classes.entry(Windows::class(from, to)).or_default();
        // One question may have several that begin alike; the longest finds for all of them.
        class.entry((from, asked)).and_modify(|end| *end = to.max(*end)).or_insert(to);
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
