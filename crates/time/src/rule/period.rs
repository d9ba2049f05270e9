//! What the parts of a rule mean together: the set of occurrences of one of its periods.
//!
//! The set of a period is days times times of day, both as bits, so it is made without a list, counted by
//! counting bits, and its nth member is the nth bit. A day is in it when it passes every part of the rule;
//! whether RFC 5545 says that a part expands or limits makes no difference, as a part that expands only leaves
//! more days to pass.

use super::{Frequency, Rule, Skip};
use crate::civil::{
    Civil, DAY, Date, FIRST_DAY, LAST_DAY, Weekday, month_length, month_start, week_of, week_one,
    week_start, weeks_in, year_length, year_start,
};

/// Days in a row as bits, enough for the 53 weeks of a long year.
pub(super) type Bits = [u64; 6];

/// The clock times of one period.
#[derive(Debug, Clone, Copy)]
pub(super) struct Set {
    /// The number of the day of bit 0.
    first: i64,
    days: Bits,
    times: Times,
}

/// Times of day: every hour with every minute with every second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) hours: u64,
    pub(super) minutes: u64,
    pub(super) seconds: u64,
}

/// The first bit at or after a place.
fn bit_from(set: u64, place: i64) -> Option<i64> {
    let rest = if place < 64 { set >> place.max(0) << place.max(0) } else { 0 };
    (rest != 0).then(|| i64::from(rest.trailing_zeros()))
}

/// The bit that has so many before it.
fn nth_bit(mut set: u64, nth: u64) -> i64 {
    for _ in 0..nth {
        set &= set.wrapping_sub(1);
    }
    i64::from(set.trailing_zeros())
}

impl Times {
    fn len(self) -> u64 {
        let [hours, minutes, seconds] =
            [self.hours, self.minutes, self.seconds].map(|set| u64::from(set.count_ones()));
        hours * minutes * seconds
    }

    /// The first time at or after a second of the day.
    pub(super) fn from(self, second: i64) -> Option<i64> {
        let first = |set: u64| i64::from(set.trailing_zeros());
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let first_minute = first(self.minutes) * 60 + first(self.seconds);
        if self.hours >> hour & 1 == 1 {
            let same_minute =
                bit_from(self.seconds, second).filter(|_| self.minutes >> minute & 1 == 1);
            if let Some(second) = same_minute {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = bit_from(self.minutes, minute + 1) {
                return Some(hour * 3600 + minute * 60 + first(self.seconds));
            }
        }
        bit_from(self.hours, hour + 1).map(|hour| hour * 3600 + first_minute)
    }

    fn nth(self, nth: u64) -> i64 {
        let seconds = u64::from(self.seconds.count_ones()).max(1);
        let minutes = u64::from(self.minutes.count_ones()).max(1);
        let hour = nth_bit(self.hours, nth / seconds / minutes);
        let minute = nth_bit(self.minutes, nth / seconds % minutes);
        hour * 3600 + minute * 60 + nth_bit(self.seconds, nth % seconds)
    }
}

impl Set {
    pub(super) fn is_empty(&self) -> bool {
        self.days == [0; 6]
    }

    /// How many members it has.
    pub(super) fn len(&self) -> u64 {
        self.days.iter().map(|word| u64::from(word.count_ones())).sum::<u64>() * self.times.len()
    }

    /// The first member at or after a clock time.
    pub(super) fn from(&self, at: Civil) -> Option<Civil> {
        let place = at.day() - self.first;
        if place >= 0
            && self.day_from(place) == Some(place)
            && let Some(second) = self.times.from(at.second_of_day())
        {
            return Civil::new((self.first + place) * DAY + second);
        }
        let next = self.day_from(if place < 0 { 0 } else { place + 1 })?;
        Civil::new((self.first + next) * DAY + self.times.nth(0))
    }

    fn day_from(&self, place: i64) -> Option<i64> {
        let start = usize::try_from(place / 64).ok()?;
        let mut words = self.days.iter().enumerate().skip(start);
        words.find_map(|(word, bits)| {
            let base = word as i64 * 64;
            bit_from(*bits, place - base).map(|bit| base + bit)
        })
    }

    /// How many members lie before a clock time.
    pub(super) fn before(&self, at: Civil) -> u64 {
        let (mut least, mut most) = (0, self.len());
        while least < most {
            let middle = least.midpoint(most);
            match self.nth(middle) {
                Some(member) if member < at => least = middle + 1,
                _ => most = middle,
            }
        }
        least
    }

    /// The member that has so many before it.
    pub(super) fn nth(&self, nth: u64) -> Option<Civil> {
        let times = self.times.len().max(1);
        let (mut day, time) = (nth / times, nth % times);
        for (word, bits) in self.days.iter().enumerate() {
            let count = u64::from(bits.count_ones());
            if day < count {
                let place = word as i64 * 64 + nth_bit(*bits, day);
                return Civil::new((self.first + place) * DAY + self.times.nth(time));
            }
            day -= count;
        }
        None
    }
}

/// A rule with what its start fills in.
#[derive(Debug, Clone)]
pub(super) struct Parts<'r> {
    pub(super) rule: &'r Rule,
    pub(super) months: u16,
    pub(super) month_days: u32,
    pub(super) weekdays: u8,
    pub(super) nth: NthOf,
    /// Times of the days of a period; for HOURLY and below, those that a step must meet.
    pub(super) times: Times,
    year: Year,
}

/// What the number before a weekday counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NthOf {
    Nothing,
    Month,
    Year,
}

/// The days of a year that pass BYYEARDAY and BYWEEKNO, and the numbered weekdays of the year; made once a year.
#[derive(Debug, Clone, Default)]
struct Year {
    year: i32,
    pass: Bits,
    nth: Bits,
}

impl<'r> Parts<'r> {
    pub(super) fn new(rule: &'r Rule, start: Civil) -> Parts<'r> {
        let mut parts = Parts {
            rule,
            months: rule.months,
            month_days: rule.month_days,
            weekdays: rule.weekdays,
            nth: NthOf::Nothing,
            times: times(rule, start),
            year: Year::default(),
        };
        parts.number_days();
        parts.fill_days(start);
        parts
    }

    /// Numbers before weekdays mean something for MONTHLY and YEARLY only.
    fn number_days(&mut self) {
        self.nth = match self.rule.frequency {
            _ if self.rule.nth.is_empty() => NthOf::Nothing,
            Frequency::Monthly => NthOf::Month,
            Frequency::Yearly if self.months != 0 => NthOf::Month,
            Frequency::Yearly => NthOf::Year,
            _ => {
                let days = self.rule.nth.iter().map(|nth| 1 << nth.weekday.number());
                self.weekdays = days.fold(self.weekdays, |set, day: u8| set | day);
                NthOf::Nothing
            }
        };
    }

    /// A day that no part names is the start's.
    fn fill_days(&mut self, start: Civil) {
        let rule = self.rule;
        let has_weeks = rule.weeks | rule.weeks_back != 0;
        let has_days = rule.month_days | rule.month_days_back != 0
            || !rule.year_days.is_empty()
            || rule.weekdays != 0
            || !rule.nth.is_empty();
        let weekday = 1 << Weekday::of_day(start.day()).number();
        match rule.frequency {
            _ if has_days => {}
            Frequency::Yearly if has_weeks => self.weekdays = weekday,
            _ if has_weeks => {}
            Frequency::Yearly | Frequency::Monthly => {
                let Date { month, day, .. } = start.date();
                self.month_days = 1 << day;
                if rule.frequency == Frequency::Yearly && self.months == 0 {
                    self.months = 1 << (month - 1);
                }
            }
            Frequency::Weekly => self.weekdays = weekday,
            _ => {}
        }
    }

    pub(super) fn by_weeks(&self) -> bool {
        self.rule.weeks | self.rule.weeks_back != 0
    }

    /// Does a part ask for more than a weekday?
    pub(super) fn beyond_weekdays(&self) -> bool {
        self.months != 0
            || self.month_days | self.rule.month_days_back != 0
            || self.nth != NthOf::Nothing
            || !self.rule.year_days.is_empty()
            || self.by_weeks()
    }

    pub(super) fn limits_days(&self) -> bool {
        self.weekdays != 0 || self.beyond_weekdays()
    }

    /// The number of the period that holds a day, for frequencies of a day and more.
    pub(super) fn period(&self, day: i64) -> i64 {
        match self.rule.frequency {
            Frequency::Yearly if self.by_weeks() => i64::from(week_of(day, self.rule.week_start).0),
            Frequency::Yearly => i64::from(Date::of_day(day).year),
            Frequency::Monthly => {
                let date = Date::of_day(day);
                i64::from(date.year) * 12 + i64::from(date.month) - 1
            }
            Frequency::Weekly => week_start(day, self.rule.week_start).div_euclid(7),
            _ => day,
        }
    }

    /// The first day of a period, for frequencies of a day and more; far behind the last for periods that are.
    pub(super) fn first_day(&self, period: i64) -> i64 {
        let year = |period: i64| i32::try_from(period).unwrap_or(i32::MAX / 2);
        match self.rule.frequency {
            Frequency::Yearly if period > 10_000 => i64::MAX,
            Frequency::Yearly if self.by_weeks() => week_one(year(period), self.rule.week_start),
            Frequency::Yearly => year_start(year(period)),
            Frequency::Monthly if period > 12 * 10_000 => i64::MAX,
            Frequency::Monthly => {
                month_start(year(period.div_euclid(12)), period.rem_euclid(12) as u8 + 1)
            }
            // The week whose first day is the only one among seven in a row.
            Frequency::Weekly => week_start(period.saturating_mul(7) + 6, self.rule.week_start),
            _ => period,
        }
    }

    /// The set of a period, for frequencies of a day and more.
    pub(super) fn set(&mut self, period: i64) -> Set {
        let first = self.first_day(period);
        let mut days = [0; 6];
        match self.rule.frequency {
            Frequency::Yearly if self.by_weeks() => self.days_of_weeks(period, first, &mut days),
            Frequency::Yearly => {
                let year = period as i32;
                for month in 1..=12 {
                    let at = month_start(year, month) - first;
                    put(&mut days, at, self.month_bits(year, month));
                }
            }
            Frequency::Monthly => {
                let (year, month) = (period.div_euclid(12) as i32, period.rem_euclid(12) as u8 + 1);
                put(&mut days, 0, self.month_bits(year, month));
            }
            Frequency::Weekly => days[0] = self.week_bits(first),
            _ => days[0] = 1,
        }
        Set { first, days, times: self.times }
    }

    /// The set of a step of HOURLY and below: the times within it that its rule names.
    pub(super) fn set_of_step(&self, at: Civil, unit: i64) -> Set {
        let second = at.second_of_day();
        let hours = 1 << (second / 3600);
        let minutes = if unit < 3600 { 1 << (second / 60 % 60) } else { self.times.minutes };
        let seconds = if unit < 60 { 1 << (second % 60) } else { self.times.seconds };
        Set { first: at.day(), days: [1, 0, 0, 0, 0, 0], times: Times { hours, minutes, seconds } }
    }

    pub(super) fn has_month(&self, month: u8) -> bool {
        self.months == 0 || self.months >> (month - 1) & 1 == 1
    }

    /// The days of the weeks that BYWEEKNO names, in the year that owns them.
    fn days_of_weeks(&mut self, period: i64, first: i64, days: &mut Bits) {
        let year = period as i32;
        let last = weeks_in(year, self.rule.week_start);
        for place in 0..7 * i64::from(last) {
            if self.has_week((place / 7 + 1) as u8, last) && self.passes(first + place) {
                put(days, place, 1);
            }
        }
    }

    fn has_week(&self, week: u8, last: u8) -> bool {
        self.rule.weeks >> week & 1 == 1 || self.rule.weeks_back >> (last + 1 - week) & 1 == 1
    }

    fn week_bits(&mut self, first: i64) -> u64 {
        let begins = self.rule.week_start.number();
        let set = u64::from(self.weekdays);
        let week = if set == 0 { 127 } else { (set | set << 7) >> begins & 127 };
        if !self.beyond_weekdays() {
            return week;
        }
        let days = (0..7).filter(|place| week >> place & 1 == 1);
        days.filter(|place| self.passes(first + place)).fold(0, |set, place| set | 1 << place)
    }

    fn passes(&mut self, day: i64) -> bool {
        if !(FIRST_DAY..=LAST_DAY).contains(&day) {
            return false;
        }
        let Date { year, month, day } = Date::of_day(day);
        self.month_bits(year, month) >> (day - 1) & 1 == 1
    }

    /// The first day at or after one that passes all parts, if it is in the same month.
    pub(super) fn day_from(&mut self, day: i64) -> DayFrom {
        if !self.limits_days() {
            return DayFrom::Passes(day);
        }
        let date = Date::of_day(day);
        let bits = self.month_bits(date.year, date.month);
        let length = i64::from(month_length(date.year, date.month));
        let start = month_start(date.year, date.month);
        match bit_from(u64::from(bits), day - start).filter(|bit| *bit < length) {
            Some(bit) => DayFrom::Passes(start + bit),
            None => DayFrom::NotBefore(start + length),
        }
    }

    /// The days of a month that pass all parts: bit 0 is the first. With SKIP=FORWARD, the bit behind the last
    /// stands for the first day of the next month.
    fn month_bits(&mut self, year: i32, month: u8) -> u32 {
        if !self.has_month(month) {
            return 0;
        }
        let length = month_length(year, month);
        let start = month_start(year, month);
        let mut bits = self.month_day_bits(length);
        let of_year = start - year_start(year);
        if self.nth == NthOf::Year || !self.rule.year_days.is_empty() || self.limits_weeks() {
            self.learn_year(year);
            bits &= take(&self.year.pass, of_year);
        }
        if self.weekdays != 0 || self.nth != NthOf::Nothing {
            let first = (start + 3).rem_euclid(7);
            let week = u64::from(self.weekdays);
            let weeks = (0..6).fold(0, |set, n| set | week << (7 * n));
            bits &= (weeks >> first) as u32 | self.nth_bits(length, first, of_year);
        }
        bits
    }

    /// The days that BYMONTHDAY allows.
    fn month_day_bits(&self, length: u8) -> u32 {
        let all = u32::MAX >> (32 - length);
        let (ahead, back) = (self.month_days >> 1, self.rule.month_days_back);
        if ahead | back == 0 {
            return all;
        }
        let back = back.reverse_bits() >> (31 - length);
        let beyond = ahead & !all != 0;
        let moved = match self.rule.skip {
            Skip::Backward if beyond => 1 << (length - 1),
            Skip::Forward if beyond => 1u32 << length,
            _ => 0,
        };
        (ahead | back) & all | moved
    }

    fn nth_bits(&self, length: u8, first: i64, of_year: i64) -> u32 {
        match self.nth {
            NthOf::Nothing => 0,
            NthOf::Year => take(&self.year.nth, of_year),
            NthOf::Month => {
                let places = self.rule.nth_within(5).iter().filter_map(|nth| {
                    nth_weekday(nth.number, nth.weekday, first, i64::from(length))
                });
                places.fold(0, |set, place| set | 1 << place)
            }
        }
    }

    /// BYWEEKNO of YEARLY says which weeks there are; of others, which weeks a day must be in.
    fn limits_weeks(&self) -> bool {
        self.by_weeks() && self.rule.frequency != Frequency::Yearly
    }

    /// The days of a year that lie in one of the weeks, whichever year owns that week.
    fn weeks_of(&self, year: i32) -> Bits {
        let (start, begins) = (year_start(year), self.rule.week_start);
        let first = week_start(start, begins);
        let mut days = [0; 6];
        for day in (first..start + year_length(year)).step_by(7) {
            let (owner, week) = week_of(day, begins);
            if self.has_week(week, weeks_in(owner, begins)) {
                // Of the week that the year begins in, those days that are in it.
                let before = (start - day).max(0);
                put(&mut days, (day - start).max(0), 127 >> before);
            }
        }
        days
    }

    fn learn_year(&mut self, year: i32) {
        if self.year.year == year {
            return;
        }
        let (start, length) = (year_start(year), year_length(year));
        let first = (start + 3).rem_euclid(7);
        let mut known = Year { year, pass: [u64::MAX; 6], nth: [0; 6] };
        if !self.rule.year_days.is_empty() {
            let places = self.rule.year_days.iter().map(|day| i64::from(*day));
            let places = places.map(|day| if day > 0 { day - 1 } else { length + day });
            known.pass = set_of(places.filter(|place| (0..length).contains(place)));
        }
        if self.limits_weeks() {
            let weeks = self.weeks_of(year);
            known.pass.iter_mut().zip(weeks).for_each(|(pass, weeks)| *pass &= weeks);
        }
        let nth = self.rule.nth_within(53).iter();
        known.nth =
            set_of(nth.filter_map(|nth| nth_weekday(nth.number, nth.weekday, first, length)));
        self.year = known;
    }
}

/// What is known of the first day that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DayFrom {
    Passes(i64),
    NotBefore(i64),
}

/// The place of the nth weekday among so many days, the first of which is weekday `first`.
fn nth_weekday(number: i16, weekday: Weekday, first: i64, length: i64) -> Option<i64> {
    let (number, weekday) = (i64::from(number), i64::from(weekday.number()));
    let place = if number > 0 {
        (weekday - first).rem_euclid(7) + 7 * (number - 1)
    } else {
        let last = (first + length - 1 - weekday).rem_euclid(7);
        length - 1 - last + 7 * (number + 1)
    };
    (0..length).contains(&place).then_some(place)
}

/// Times of day that the rule names, or the start fills in; for HOURLY and below, what is finer than a step is
/// filled in, and the rest is whatever the rule limits.
fn times(rule: &Rule, start: Civil) -> Times {
    let second = start.second_of_day();
    let filled = |set: u64, step: bool, own: i64| match set {
        0 if step => u64::MAX,
        0 => 1 << own,
        set => set,
    };
    let at_most = |frequency| rule.frequency <= frequency;
    Times {
        hours: filled(rule.hours.into(), at_most(Frequency::Hourly), second / 3600)
            & ((1 << 24) - 1),
        minutes: filled(rule.minutes, at_most(Frequency::Minutely), second / 60 % 60)
            & ((1 << 60) - 1),
        seconds: filled(rule.seconds, at_most(Frequency::Secondly), second % 60) & ((1 << 60) - 1),
    }
}

fn set_of(places: impl Iterator<Item = i64>) -> Bits {
    let mut days = [0; 6];
    places.for_each(|place| put(&mut days, place, 1));
    days
}

/// Puts the days of a month, or one, at a place.
fn put(days: &mut Bits, place: i64, bits: u32) {
    let Ok(place) = usize::try_from(place) else { return };
    let wide = u128::from(bits) << (place % 64);
    for (word, half) in days.iter_mut().skip(place / 64).zip([wide as u64, (wide >> 64) as u64]) {
        *word |= half;
    }
}

/// The days of a month from those of its year.
fn take(days: &Bits, place: i64) -> u32 {
    let Ok(place) = usize::try_from(place) else { return 0 };
    let word = |at: usize| u128::from(days.get(at).copied().unwrap_or(0));
    let wide = word(place / 64) | word(place / 64 + 1) << 64;
    (wide >> (place % 64)) as u32
}
