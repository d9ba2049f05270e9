//! A compiled series as bytes, to be kept beside an item: what it is made of, in numbers of as few bytes as
//! they need, lists as differences. The clock's zone is a number that the keeper of the bytes gives and
//! understands.
//!
//! Reading refuses whatever no writer wrote, so a series that was read is as sound as one that was compiled.

use super::{Added, Clock, Place, Range, Series, Single};
use crate::civil::{Civil, Instant};
use crate::encoding::{Reader, put, put_signed};
use crate::rule::Rule;
use crate::value::{Length, Nominal};

/// The version of the bytes; others are refused.
const VERSION: u64 = 1;

/// What follows, beside what every series has.
const FIXED: u64 = 1;
const DATE: u64 = 2;
const RULE: u64 = 4;
const MORE: u64 = 8;

impl Series {
    /// The series as bytes, with the number of its clock.
    #[must_use]
    pub fn to_bytes(&self, clock: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32);
        let bytes_mut = &mut bytes;
        put(bytes_mut, VERSION);
        let bit = |set: bool, bit: u64| if set { bit } else { 0 };
        let one_rule = self.rules.len() == 1;
        let plain = self.exrules.is_empty()
            && self.extras.is_empty()
            && self.excluded.is_empty()
            && self.excluded_days.is_empty()
            && self.singles.is_empty()
            && self.ranges.is_empty()
            && self.rules.len() <= 1;
        let flags = bit(self.is_fixed(), FIXED)
            | bit(self.date, DATE)
            | bit(one_rule && plain, RULE)
            | bit(!plain, MORE);
        put(bytes_mut, flags);
        put(bytes_mut, clock);
        put_signed(bytes_mut, self.start.seconds());
        put_length(bytes_mut, self.length);
        if plain {
            self.rules.iter().for_each(|rule| rule.put(bytes_mut));
        } else {
            self.put_lists(bytes_mut);
        }
        bytes
    }

    fn put_lists(&self, bytes: &mut Vec<u8>) {
        for rules in [&self.rules, &self.exrules] {
            put(bytes, rules.len() as u64);
            rules.iter().for_each(|rule| rule.put(bytes));
        }
        for keys in [&self.excluded, &self.excluded_days] {
            put(bytes, keys.len() as u64);
            let mut before = 0i64;
            for key in keys {
                put_signed(bytes, key.wrapping_sub(before));
                before = *key;
            }
        }
        put(bytes, self.extras.len() as u64);
        for extra in &self.extras {
            put_signed(bytes, extra.key);
            put_some_length(bytes, extra.length);
        }
        put(bytes, self.singles.len() as u64);
        for single in &self.singles {
            put_signed(bytes, single.original);
            put_place(bytes, single.place);
            put_length(bytes, single.length);
            put(bytes, single.tag);
        }
        put(bytes, self.ranges.len() as u64);
        for range in &self.ranges {
            put_signed(bytes, range.from);
            put_signed(bytes, range.shift);
            put_some_length(bytes, range.length);
            put(bytes, range.tag);
        }
    }

    /// The series of bytes; `resolve` knows the clock of a number. None where the bytes are no series, or
    /// the clock is of another kind than it was.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], resolve: &mut dyn FnMut(u64) -> Clock) -> Option<Series> {
        let mut reader = Reader::new(bytes);
        let reader = &mut reader;
        if reader.number()? != VERSION {
            return None;
        }
        let flags = reader.number()?;
        let clock = reader.number()?;
        let start = Civil::new(reader.signed()?)?;
        let mut series = Series {
            start,
            date: flags & DATE != 0,
            clock: Clock::Floating,
            length: read_length(reader)?,
            rules: Vec::new(),
            exrules: Vec::new(),
            extras: Vec::new(),
            excluded: Vec::new(),
            excluded_days: Vec::new(),
            singles: Vec::new(),
            ranges: Vec::new(),
        };
        match flags & !(FIXED | DATE) {
            0 => {}
            RULE => series.rules.push(Rule::read(reader)?),
            MORE => series.read_lists(reader)?,
            _ => return None,
        }
        if !series.date {
            series.clock = resolve(clock);
        }
        let whole_day = !series.date || start.second_of_day() == 0;
        let sound = reader.is_at_end() && series.is_fixed() == (flags & FIXED != 0) && whole_day;
        sound.then_some(series)
    }

    fn read_lists(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        self.rules = list(reader, Rule::read)?;
        self.exrules = list(reader, Rule::read)?;
        self.excluded = read_keys(reader)?;
        self.excluded_days = read_keys(reader)?;
        self.extras = list(reader, |reader| {
            Some(Added { key: read_key(reader)?, length: read_some_length(reader)? })
        })?;
        self.singles = list(reader, |reader| {
            Some(Single {
                original: read_key(reader)?,
                place: read_place(reader)?,
                length: read_length(reader)?,
                tag: reader.number()?,
            })
        })?;
        self.ranges = list(reader, |reader| {
            Some(Range {
                from: read_key(reader)?,
                shift: read_key(reader)?,
                length: read_some_length(reader)?,
                tag: reader.number()?,
            })
        })?;
        let sorted = self.extras.is_sorted_by(|a, b| a.key < b.key)
            && self.singles.is_sorted_by(|a, b| a.original < b.original)
            && self.ranges.is_sorted_by(|a, b| a.from < b.from);
        sorted.then_some(())
    }
}

fn list<T>(
    reader: &mut Reader<'_>,
    mut read: impl FnMut(&mut Reader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = reader.count()?;
    (0..count).map(|_| read(reader)).collect()
}

/// No key, and no difference of two, is further from 1970 than the calendar is long.
fn read_key(reader: &mut Reader<'_>) -> Option<i64> {
    const FURTHEST: i64 = 2 * (Civil::MAX.seconds() - Civil::MIN.seconds());
    reader.signed().filter(|key| (-FURTHEST..=FURTHEST).contains(key))
}

fn read_keys(reader: &mut Reader<'_>) -> Option<Vec<i64>> {
    let mut before = 0;
    let mut first = true;
    list(reader, |reader| {
        let difference = read_key(reader)?;
        let grows = std::mem::take(&mut first) || difference > 0;
        before += if grows { difference } else { return None };
        Instant::in_range(before).then_some(before)
    })
}

fn put_length(bytes: &mut Vec<u8>, length: Length) {
    match length {
        Length::Exact(seconds) => {
            put(bytes, 0);
            put_signed(bytes, seconds);
        }
        Length::Nominal(Nominal { days, seconds }) => {
            put(bytes, 1);
            put_signed(bytes, days);
            put_signed(bytes, seconds);
        }
    }
}

fn put_some_length(bytes: &mut Vec<u8>, length: Option<Length>) {
    match length {
        Some(length) => put_length(bytes, length),
        None => put(bytes, 2),
    }
}

fn read_some_length(reader: &mut Reader<'_>) -> Option<Option<Length>> {
    Some(match reader.number()? {
        0 => Some(Length::Exact(reader.signed()?)),
        1 => Some(Length::Nominal(Nominal { days: reader.signed()?, seconds: reader.signed()? })),
        2 => None,
        _ => return None,
    })
}

fn read_length(reader: &mut Reader<'_>) -> Option<Length> {
    read_some_length(reader)?
}

fn put_place(bytes: &mut Vec<u8>, place: Place) {
    let (kind, seconds) = match place {
        Place::Instant(instant) => (0, instant.seconds()),
        Place::Civil(civil) => (1, civil.seconds()),
        Place::Date(civil) => (2, civil.seconds()),
    };
    put(bytes, kind);
    put_signed(bytes, seconds);
}

fn read_place(reader: &mut Reader<'_>) -> Option<Place> {
    let kind = reader.number()?;
    let seconds = reader.signed()?;
    match kind {
        0 => Instant::in_range(seconds).then(|| Place::Instant(Instant::clamped(seconds))),
        1 => Civil::new(seconds).map(Place::Civil),
        2 => Civil::new(seconds).filter(|civil| civil.second_of_day() == 0).map(Place::Date),
        _ => None,
    }
}
