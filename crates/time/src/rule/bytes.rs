//! A rule as bytes: which parts there are, then the parts. Reading checks everything that [`Rule`] takes for granted.

use super::{End, Frequency, Nth, Rule, Skip};
use crate::civil::{Civil, Weekday};
use crate::encoding::{Reader, put, put_signed};
use crate::value::Stamp;

const FREQUENCIES: [Frequency; 7] = [
    Frequency::Secondly,
    Frequency::Minutely,
    Frequency::Hourly,
    Frequency::Daily,
    Frequency::Weekly,
    Frequency::Monthly,
    Frequency::Yearly,
];

const SKIPS: [Skip; 3] = [Skip::Omit, Skip::Backward, Skip::Forward];

impl Rule {
    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        let head = self.frequency as u64
            | u64::from(self.week_start.number()) << 3
            | (self.skip as u64) << 6;
        put(bytes, head);
        put(bytes, self.interval.into());
        put_end(bytes, self.end);
        let sets = self.sets();
        let lists = [self.nth.len(), self.year_days.len(), self.positions.len()];
        let mut present =
            sets.iter().rev().fold(0u64, |bits, set| bits << 1 | u64::from(*set != 0));
        present |= u64::from(lists != [0; 3]) << sets.len();
        put(bytes, present);
        sets.iter().filter(|set| **set != 0).for_each(|set| put(bytes, *set));
        if lists == [0; 3] {
            return;
        }
        lists.iter().for_each(|length| put(bytes, *length as u64));
        for nth in &self.nth {
            put_signed(bytes, i64::from(nth.number) * 8 + i64::from(nth.weekday.number()));
        }
        self.year_days.iter().for_each(|day| put_signed(bytes, (*day).into()));
        self.positions.iter().for_each(|position| put_signed(bytes, (*position).into()));
    }

    fn sets(&self) -> [u64; 9] {
        [
            self.seconds,
            self.minutes,
            self.hours.into(),
            self.months.into(),
            self.month_days.into(),
            self.month_days_back.into(),
            self.weekdays.into(),
            self.weeks,
            self.weeks_back,
        ]
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Rule> {
        let head = reader.number()?;
        let frequency = *FREQUENCIES.get((head & 7) as usize)?;
        let interval = u32::try_from(reader.number()?).ok().filter(|interval| *interval > 0)?;
        let mut rule = Rule::every(interval, frequency);
        rule.week_start = *Weekday::ALL.get((head >> 3 & 7) as usize)?;
        rule.skip = *SKIPS.get(usize::try_from(head >> 6).ok()?)?;
        rule.end = read_end(reader)?;
        let present = reader.number().filter(|present| *present < 1 << 10)?;
        rule.read_sets(present, reader)?;
        if present >> 9 == 1 {
            rule.read_lists(reader)?;
        }
        Some(rule)
    }

    fn read_sets(&mut self, present: u64, reader: &mut Reader<'_>) -> Option<()> {
        let mut set = |place: u32, valid: u64| match present >> place & 1 {
            0 => Some(0),
            _ => reader.number().filter(|set| *set != 0 && set & !valid == 0),
        };
        const SIXTY: u64 = (1 << 60) - 1;
        const MONTH: u64 = (1 << 32) - 2;
        const WEEKS: u64 = (1 << 54) - 2;
        self.seconds = set(0, SIXTY)?;
        self.minutes = set(1, SIXTY)?;
        self.hours = set(2, (1 << 24) - 1)? as u32;
        self.months = set(3, (1 << 12) - 1)? as u16;
        self.month_days = set(4, MONTH)? as u32;
        self.month_days_back = set(5, MONTH)? as u32;
        self.weekdays = set(6, 127)? as u8;
        self.weeks = set(7, WEEKS)?;
        self.weeks_back = set(8, WEEKS)?;
        Some(())
    }

    fn read_lists(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let [nth, year_days, positions] = [reader.count()?, reader.count()?, reader.count()?];
        for _ in 0..nth {
            let both = reader.signed()?;
            let number = i16::try_from(both.div_euclid(8)).ok()?;
            let weekday = *Weekday::ALL.get(both.rem_euclid(8) as usize)?;
            self.nth.push(Nth { number, weekday });
        }
        for _ in 0..year_days {
            self.year_days.push(i16::try_from(reader.signed()?).ok()?);
        }
        for _ in 0..positions {
            self.positions.push(i32::try_from(reader.signed()?).ok()?);
        }
        let valid = self.nth.is_sorted_by(|a, b| a < b)
            && self.nth.iter().all(|nth| (1..=366).contains(&nth.number.unsigned_abs()))
            && self.year_days.is_sorted_by(|a, b| a < b)
            && self.year_days.iter().all(|day| (1..=366).contains(&day.unsigned_abs()))
            && self.positions.is_sorted_by(|a, b| a < b)
            && self.positions.iter().all(|position| *position != 0 && *position != i32::MIN);
        valid.then_some(())
    }
}

fn put_end(bytes: &mut Vec<u8>, end: End) {
    match end {
        End::Never => put(bytes, 0),
        End::At(last) => {
            put(bytes, 1);
            put_signed(bytes, last.seconds());
        }
        End::Count(count) => {
            put(bytes, 2);
            put(bytes, count);
        }
        End::Until(until) => {
            put(bytes, 3);
            put_stamp(bytes, until);
        }
        End::Both(until, count) => {
            put(bytes, 4);
            put_stamp(bytes, until);
            put(bytes, count);
        }
    }
}

fn read_end(reader: &mut Reader<'_>) -> Option<End> {
    Some(match reader.number()? {
        0 => End::Never,
        1 => End::At(Civil::new(reader.signed()?)?),
        2 => End::Count(read_count(reader)?),
        3 => End::Until(read_stamp(reader)?),
        4 => End::Both(read_stamp(reader)?, read_count(reader)?),
        _ => return None,
    })
}

fn read_count(reader: &mut Reader<'_>) -> Option<u64> {
    reader.number().filter(|count| *count > 0)
}

fn put_stamp(bytes: &mut Vec<u8>, stamp: Stamp) {
    put(bytes, u64::from(stamp.date) | u64::from(stamp.utc) << 1);
    put_signed(bytes, stamp.civil.seconds());
}

fn read_stamp(reader: &mut Reader<'_>) -> Option<Stamp> {
    let flags = reader.number().filter(|flags| *flags < 3)?;
    let civil = Civil::new(reader.signed()?)?;
    let date = flags & 1 == 1;
    (!date || civil.second_of_day() == 0).then_some(Stamp { civil, date, utc: flags & 2 == 2 })
}
