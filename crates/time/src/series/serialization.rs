//! Serialises a compiled series, to be stored with an item: varints, and lists as differences. The
//! zone is a number that the caller assigns and resolves.
//!
//! Reading rejects bytes that no writer produces, so a deserialised series has the invariants of a
//! compiled one.

use super::{
    CompiledOverride, FutureOverride, OverrideStart, PlannedOccurrence, Series, ZoneReference,
};
use crate::civil::{CivilTime, Instant};
use crate::rule::Rule;
use crate::value::{EventLength, IcalDuration};
use crate::varint::{VarintReader, put_signed_number, put_unsigned_number};

/// The version of the format; other versions are rejected.
const FORMAT_VERSION: u64 = 1;

/// Flags of the optional parts.
const INSTANT_KEYS_FLAG: u64 = 1;
const DATE_FLAG: u64 = 2;
const RULE_FLAG: u64 = 4;
const LISTS_FLAG: u64 = 8;

impl Series {
    /// Serialises the series, with the number of its zone.
    #[must_use]
    pub fn to_bytes(&self, clock: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32);
        let bytes_mut = &mut bytes;
        put_unsigned_number(bytes_mut, FORMAT_VERSION);
        let bit = |set: bool, bit: u64| if set { bit } else { 0 };
        let one_rule = self.rules.len() == 1;
        let plain = self.exrules.is_empty()
            && self.rdates.is_empty()
            && self.excluded_keys.is_empty()
            && self.excluded_days.is_empty()
            && self.overrides.is_empty()
            && self.future_overrides.is_empty()
            && self.rules.len() <= 1;
        let flags = bit(self.has_instant_keys(), INSTANT_KEYS_FLAG)
            | bit(self.is_date, DATE_FLAG)
            | bit(one_rule && plain, RULE_FLAG)
            | bit(!plain, LISTS_FLAG);
        put_unsigned_number(bytes_mut, flags);
        put_unsigned_number(bytes_mut, clock);
        put_signed_number(bytes_mut, self.start.seconds());
        write_length(bytes_mut, self.length);
        if plain {
            self.rules.iter().for_each(|rule| rule.write(bytes_mut));
        } else {
            self.write_lists(bytes_mut);
        }
        bytes
    }

    fn write_lists(&self, bytes: &mut Vec<u8>) {
        for rules in [&self.rules, &self.exrules] {
            put_unsigned_number(bytes, rules.len() as u64);
            rules.iter().for_each(|rule| rule.write(bytes));
        }
        for keys in [&self.excluded_keys, &self.excluded_days] {
            put_unsigned_number(bytes, keys.len() as u64);
            let mut before = 0i64;
            for key in keys {
                put_signed_number(bytes, key.wrapping_sub(before));
                before = *key;
            }
        }
        put_unsigned_number(bytes, self.rdates.len() as u64);
        for extra in &self.rdates {
            put_signed_number(bytes, extra.key);
            write_optional_length(bytes, extra.length);
        }
        put_unsigned_number(bytes, self.overrides.len() as u64);
        for single in &self.overrides {
            put_signed_number(bytes, single.original);
            write_override_start(bytes, single.start);
            write_length(bytes, single.length);
            put_unsigned_number(bytes, single.tag);
        }
        put_unsigned_number(bytes, self.future_overrides.len() as u64);
        for range in &self.future_overrides {
            put_signed_number(bytes, range.from);
            put_signed_number(bytes, range.shift_seconds);
            write_optional_length(bytes, range.length);
            put_unsigned_number(bytes, range.tag);
        }
    }

    /// Deserialises a series; `resolve` maps the number to the zone reference. `None` if the bytes
    /// are malformed, or the zone reference is of another kind than before.
    #[must_use]
    pub fn from_bytes(
        bytes: &[u8],
        resolve: &mut dyn FnMut(u64) -> ZoneReference,
    ) -> Option<Series> {
        let mut reader = VarintReader::new(bytes);
        let reader = &mut reader;
        if reader.read_unsigned()? != FORMAT_VERSION {
            return None;
        }
        let flags = reader.read_unsigned()?;
        let clock = reader.read_unsigned()?;
        let start = CivilTime::new(reader.read_signed()?)?;
        let mut series = Series {
            start,
            is_date: flags & DATE_FLAG != 0,
            zone_reference: ZoneReference::Floating,
            length: read_length(reader)?,
            rules: Vec::new(),
            exrules: Vec::new(),
            rdates: Vec::new(),
            excluded_keys: Vec::new(),
            excluded_days: Vec::new(),
            overrides: Vec::new(),
            future_overrides: Vec::new(),
        };
        match flags & !(INSTANT_KEYS_FLAG | DATE_FLAG) {
            0 => {}
            RULE_FLAG => series.rules.push(Rule::read(reader)?),
            LISTS_FLAG => series.read_lists(reader)?,
            _ => return None,
        }
        if !series.is_date {
            series.zone_reference = resolve(clock);
        }
        let whole_day = !series.is_date || start.second_of_day() == 0;
        let sound = reader.is_at_end()
            && series.has_instant_keys() == (flags & INSTANT_KEYS_FLAG != 0)
            && whole_day;
        sound.then_some(series)
    }

    fn read_lists(&mut self, reader: &mut VarintReader<'_>) -> Option<()> {
        self.rules = read_list(reader, Rule::read)?;
        self.exrules = read_list(reader, Rule::read)?;
        self.excluded_keys = read_keys(reader)?;
        self.excluded_days = read_keys(reader)?;
        self.rdates = read_list(reader, |reader| {
            Some(PlannedOccurrence {
                key: read_key(reader)?,
                length: read_optional_length(reader)?,
            })
        })?;
        self.overrides = read_list(reader, |reader| {
            Some(CompiledOverride {
                original: read_key(reader)?,
                start: read_override_start(reader)?,
                length: read_length(reader)?,
                tag: reader.read_unsigned()?,
            })
        })?;
        self.future_overrides = read_list(reader, |reader| {
            Some(FutureOverride {
                from: read_key(reader)?,
                shift_seconds: read_key(reader)?,
                length: read_optional_length(reader)?,
                tag: reader.read_unsigned()?,
            })
        })?;
        let sorted = self.rdates.is_sorted_by(|a, b| a.key < b.key)
            && self.overrides.is_sorted_by(|a, b| a.original < b.original)
            && self.future_overrides.is_sorted_by(|a, b| a.from < b.from);
        sorted.then_some(())
    }
}

fn read_list<T>(
    reader: &mut VarintReader<'_>,
    mut read: impl FnMut(&mut VarintReader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = reader.read_count()?;
    (0..count).map(|_| read(reader)).collect()
}

/// No key, and no difference of two keys, exceeds the length of the calendar.
fn read_key(reader: &mut VarintReader<'_>) -> Option<i64> {
    const MAX_KEY_SECONDS: i64 = 2 * (CivilTime::MAX.seconds() - CivilTime::MIN.seconds());
    reader.read_signed().filter(|key| (-MAX_KEY_SECONDS..=MAX_KEY_SECONDS).contains(key))
}

fn read_keys(reader: &mut VarintReader<'_>) -> Option<Vec<i64>> {
    let mut before = 0;
    let mut first = true;
    read_list(reader, |reader| {
        let difference = read_key(reader)?;
        let grows = std::mem::take(&mut first) || difference > 0;
        before += if grows { difference } else { return None };
        Instant::is_in_range(before).then_some(before)
    })
}

fn write_length(bytes: &mut Vec<u8>, length: EventLength) {
    match length {
        EventLength::Exact(seconds) => {
            put_unsigned_number(bytes, 0);
            put_signed_number(bytes, seconds);
        }
        EventLength::Nominal(IcalDuration { days, seconds }) => {
            put_unsigned_number(bytes, 1);
            put_signed_number(bytes, days);
            put_signed_number(bytes, seconds);
        }
    }
}

fn write_optional_length(bytes: &mut Vec<u8>, length: Option<EventLength>) {
    match length {
        Some(length) => write_length(bytes, length),
        None => put_unsigned_number(bytes, 2),
    }
}

fn read_optional_length(reader: &mut VarintReader<'_>) -> Option<Option<EventLength>> {
    Some(match reader.read_unsigned()? {
        0 => Some(EventLength::Exact(reader.read_signed()?)),
        1 => Some(EventLength::Nominal(IcalDuration {
            days: reader.read_signed()?,
            seconds: reader.read_signed()?,
        })),
        2 => None,
        _ => return None,
    })
}

fn read_length(reader: &mut VarintReader<'_>) -> Option<EventLength> {
    read_optional_length(reader)?
}

fn write_override_start(bytes: &mut Vec<u8>, place: OverrideStart) {
    let (kind, seconds) = match place {
        OverrideStart::Instant(instant) => (0, instant.seconds()),
        OverrideStart::Civil(civil) => (1, civil.seconds()),
        OverrideStart::Date(civil) => (2, civil.seconds()),
    };
    put_unsigned_number(bytes, kind);
    put_signed_number(bytes, seconds);
}

fn read_override_start(reader: &mut VarintReader<'_>) -> Option<OverrideStart> {
    let kind = reader.read_unsigned()?;
    let seconds = reader.read_signed()?;
    match kind {
        0 => Instant::is_in_range(seconds)
            .then(|| OverrideStart::Instant(Instant::from_seconds_clamped(seconds))),
        1 => CivilTime::new(seconds).map(OverrideStart::Civil),
        2 => CivilTime::new(seconds)
            .filter(|civil| civil.second_of_day() == 0)
            .map(OverrideStart::Date),
        _ => None,
    }
}
