//! Serialises a rule: flags for the parts that are present, then the parts. Reading validates every
//! invariant of [`Rule`].

use super::{Frequency, NthWeekday, Rule, RuleEnd, SkipMode};
use crate::civil::{CivilTime, Weekday};
use crate::value::IcalDateTime;
use crate::varint::{VarintReader, put_signed_number, put_unsigned_number};

const FREQUENCIES_BY_NUMBER: [Frequency; 7] = [
    Frequency::Secondly,
    Frequency::Minutely,
    Frequency::Hourly,
    Frequency::Daily,
    Frequency::Weekly,
    Frequency::Monthly,
    Frequency::Yearly,
];

const SKIPS_BY_NUMBER: [SkipMode; 3] = [SkipMode::Omit, SkipMode::Backward, SkipMode::Forward];

impl Rule {
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        let head = self.frequency as u64
            | u64::from(self.week_start.number_from_monday()) << 3
            | (self.skip as u64) << 6;
        put_unsigned_number(bytes, head);
        put_unsigned_number(bytes, self.interval.into());
        write_end(bytes, self.end);
        let sets = self.bit_sets();
        let lists = [self.nth_weekdays.len(), self.year_days.len(), self.positions.len()];
        let mut present =
            sets.iter().rev().fold(0u64, |bits, set| bits << 1 | u64::from(*set != 0));
        present |= u64::from(lists != [0; 3]) << sets.len();
        put_unsigned_number(bytes, present);
        sets.iter().filter(|set| **set != 0).for_each(|set| put_unsigned_number(bytes, *set));
        if lists == [0; 3] {
            return;
        }
        lists.iter().for_each(|length| put_unsigned_number(bytes, *length as u64));
        for nth in &self.nth_weekdays {
            put_signed_number(
                bytes,
                i64::from(nth.number) * 8 + i64::from(nth.weekday.number_from_monday()),
            );
        }
        self.year_days.iter().for_each(|day| put_signed_number(bytes, (*day).into()));
        self.positions.iter().for_each(|position| put_signed_number(bytes, (*position).into()));
    }

    fn bit_sets(&self) -> [u64; 9] {
        [
            self.seconds,
            self.minutes,
            self.hours.into(),
            self.months.into(),
            self.month_days.into(),
            self.month_days_from_end.into(),
            self.weekdays.into(),
            self.weeks,
            self.weeks_from_end,
        ]
    }

    pub(crate) fn read(reader: &mut VarintReader<'_>) -> Option<Rule> {
        let head = reader.read_unsigned()?;
        let frequency = *FREQUENCIES_BY_NUMBER.get((head & 7) as usize)?;
        let interval =
            u32::try_from(reader.read_unsigned()?).ok().filter(|interval| *interval > 0)?;
        let mut rule = Rule::with_frequency(interval, frequency);
        rule.week_start = *Weekday::ALL.get((head >> 3 & 7) as usize)?;
        rule.skip = *SKIPS_BY_NUMBER.get(usize::try_from(head >> 6).ok()?)?;
        rule.end = read_end(reader)?;
        let present = reader.read_unsigned().filter(|present| *present < 1 << 10)?;
        rule.read_sets(present, reader)?;
        if present >> 9 == 1 {
            rule.read_lists(reader)?;
        }
        Some(rule)
    }

    fn read_sets(&mut self, present: u64, reader: &mut VarintReader<'_>) -> Option<()> {
        let mut set = |place: u32, valid: u64| match present >> place & 1 {
            0 => Some(0),
            _ => reader.read_unsigned().filter(|set| *set != 0 && set & !valid == 0),
        };
        const SIXTY_BITS_MASK: u64 = (1 << 60) - 1;
        const MONTH_DAYS_MASK: u64 = (1 << 32) - 2;
        const WEEKS_MASK: u64 = (1 << 54) - 2;
        self.seconds = set(0, SIXTY_BITS_MASK)?;
        self.minutes = set(1, SIXTY_BITS_MASK)?;
        self.hours = set(2, (1 << 24) - 1)? as u32;
        self.months = set(3, (1 << 12) - 1)? as u16;
        self.month_days = set(4, MONTH_DAYS_MASK)? as u32;
        self.month_days_from_end = set(5, MONTH_DAYS_MASK)? as u32;
        self.weekdays = set(6, 127)? as u8;
        self.weeks = set(7, WEEKS_MASK)?;
        self.weeks_from_end = set(8, WEEKS_MASK)?;
        Some(())
    }

    fn read_lists(&mut self, reader: &mut VarintReader<'_>) -> Option<()> {
        let [nth, year_days, positions] =
            [reader.read_count()?, reader.read_count()?, reader.read_count()?];
        for _ in 0..nth {
            let both = reader.read_signed()?;
            let number = i16::try_from(both.div_euclid(8)).ok()?;
            let weekday = *Weekday::ALL.get(both.rem_euclid(8) as usize)?;
            self.nth_weekdays.push(NthWeekday { number, weekday });
        }
        for _ in 0..year_days {
            self.year_days.push(i16::try_from(reader.read_signed()?).ok()?);
        }
        for _ in 0..positions {
            self.positions.push(i32::try_from(reader.read_signed()?).ok()?);
        }
        let valid = self.nth_weekdays.is_sorted_by(|a, b| a < b)
            && self.nth_weekdays.iter().all(|nth| (1..=366).contains(&nth.number.unsigned_abs()))
            && self.year_days.is_sorted_by(|a, b| a < b)
            && self.year_days.iter().all(|day| (1..=366).contains(&day.unsigned_abs()))
            && self.positions.is_sorted_by(|a, b| a < b)
            && self.positions.iter().all(|position| *position != 0 && *position != i32::MIN);
        valid.then_some(())
    }
}

fn write_end(bytes: &mut Vec<u8>, end: RuleEnd) {
    match end {
        RuleEnd::Never => put_unsigned_number(bytes, 0),
        RuleEnd::ResolvedUntil(last) => {
            put_unsigned_number(bytes, 1);
            put_signed_number(bytes, last.seconds());
        }
        RuleEnd::Count(count) => {
            put_unsigned_number(bytes, 2);
            put_unsigned_number(bytes, count);
        }
        RuleEnd::Until(until) => {
            put_unsigned_number(bytes, 3);
            write_date_time(bytes, until);
        }
        RuleEnd::UntilAndCount(until, count) => {
            put_unsigned_number(bytes, 4);
            write_date_time(bytes, until);
            put_unsigned_number(bytes, count);
        }
    }
}

fn read_end(reader: &mut VarintReader<'_>) -> Option<RuleEnd> {
    Some(match reader.read_unsigned()? {
        0 => RuleEnd::Never,
        1 => RuleEnd::ResolvedUntil(CivilTime::new(reader.read_signed()?)?),
        2 => RuleEnd::Count(read_count(reader)?),
        3 => RuleEnd::Until(read_date_time(reader)?),
        4 => RuleEnd::UntilAndCount(read_date_time(reader)?, read_count(reader)?),
        _ => return None,
    })
}

fn read_count(reader: &mut VarintReader<'_>) -> Option<u64> {
    reader.read_unsigned().filter(|count| *count > 0)
}

fn write_date_time(bytes: &mut Vec<u8>, stamp: IcalDateTime) {
    put_unsigned_number(bytes, u64::from(stamp.is_date) | u64::from(stamp.is_utc) << 1);
    put_signed_number(bytes, stamp.civil.seconds());
}

fn read_date_time(reader: &mut VarintReader<'_>) -> Option<IcalDateTime> {
    let flags = reader.read_unsigned().filter(|flags| *flags < 3)?;
    let civil = CivilTime::new(reader.read_signed()?)?;
    let date = flags & 1 == 1;
    (!date || civil.second_of_day() == 0).then_some(IcalDateTime {
        civil,
        is_date: date,
        is_utc: flags & 2 == 2,
    })
}
