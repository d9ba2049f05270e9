//! The set of occurrences in one period of a rule.
//!
//! The set of a period is the product of days and times of day, both bit sets. It is built without
//! a list, counted by counting bits, and its nth member is the nth bit. A day belongs to it if it
//! matches every part of the rule. The distinction of RFC 5545 between expanding and limiting parts
//! needs no code: an expanding part leaves more days to match.

use super::{Frequency, Rule, SkipMode};
use crate::civil::{
    CivilTime, DAY_SECONDS, Date, FIRST_DAY_NUMBER, LAST_DAY_NUMBER, Weekday, days_in_month,
    days_in_year, first_day_of_month, first_day_of_week, first_day_of_week_one, first_day_of_year,
    week_year_and_number, weeks_in_year,
};

/// Consecutive days as bits, enough for the 53 weeks of a long year.
pub(super) type DayBits = [u64; 6];

/// The civil times of one period.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeriodSet {
    /// The day number of bit 0.
    first: i64,
    days: DayBits,
    times: TimeOfDaySet,
}

/// Times of day: every hour with every minute and every second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeOfDaySet {
    pub(super) hours: u64,
    pub(super) minutes: u64,
    pub(super) seconds: u64,
}

/// Returns the first set bit at or after a position.
fn first_bit_from(set: u64, place: i64) -> Option<i64> {
    let rest = if place < 64 { set >> place.max(0) << place.max(0) } else { 0 };
    (rest != 0).then(|| i64::from(rest.trailing_zeros()))
}

/// Returns the set bit with `nth` set bits before it.
fn nth_bit(mut set: u64, nth: u64) -> i64 {
    for _ in 0..nth {
        set &= set.wrapping_sub(1);
    }
    i64::from(set.trailing_zeros())
}

impl TimeOfDaySet {
    fn len(self) -> u64 {
        let [hours, minutes, seconds] =
            [self.hours, self.minutes, self.seconds].map(|set| u64::from(set.count_ones()));
        hours * minutes * seconds
    }

    /// Returns the first time at or after a second of the day.
    pub(super) fn next_time_from(self, second: i64) -> Option<i64> {
        let first = |set: u64| i64::from(set.trailing_zeros());
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let first_minute = first(self.minutes) * 60 + first(self.seconds);
        if self.hours >> hour & 1 == 1 {
            let same_minute =
                first_bit_from(self.seconds, second).filter(|_| self.minutes >> minute & 1 == 1);
            if let Some(second) = same_minute {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = first_bit_from(self.minutes, minute + 1) {
                return Some(hour * 3600 + minute * 60 + first(self.seconds));
            }
        }
        first_bit_from(self.hours, hour + 1).map(|hour| hour * 3600 + first_minute)
    }

    fn nth(self, nth: u64) -> i64 {
        let seconds = u64::from(self.seconds.count_ones()).max(1);
        let minutes = u64::from(self.minutes.count_ones()).max(1);
        let hour = nth_bit(self.hours, nth / seconds / minutes);
        let minute = nth_bit(self.minutes, nth / seconds % minutes);
        hour * 3600 + minute * 60 + nth_bit(self.seconds, nth % seconds)
    }
}

impl PeriodSet {
    pub(super) fn is_empty(&self) -> bool {
        self.days == [0; 6]
    }

    /// The number of members.
    pub(super) fn len(&self) -> u64 {
        self.days.iter().map(|word| u64::from(word.count_ones())).sum::<u64>() * self.times.len()
    }

    /// Returns the first member at or after a civil time.
    pub(super) fn next_member_from(&self, at: CivilTime) -> Option<CivilTime> {
        let place = at.day_number() - self.first;
        if place >= 0
            && self.next_day_from(place) == Some(place)
            && let Some(second) = self.times.next_time_from(at.second_of_day())
        {
            return CivilTime::new((self.first + place) * DAY_SECONDS + second);
        }
        let next = self.next_day_from(if place < 0 { 0 } else { place + 1 })?;
        CivilTime::new((self.first + next) * DAY_SECONDS + self.times.nth(0))
    }

    fn next_day_from(&self, place: i64) -> Option<i64> {
        let start = usize::try_from(place / 64).ok()?;
        let mut words = self.days.iter().enumerate().skip(start);
        words.find_map(|(word, bits)| {
            let base = word as i64 * 64;
            first_bit_from(*bits, place - base).map(|bit| base + bit)
        })
    }

    /// Returns the number of members before a civil time.
    pub(super) fn count_before(&self, at: CivilTime) -> u64 {
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

    /// Returns the member with `nth` members before it.
    pub(super) fn nth(&self, nth: u64) -> Option<CivilTime> {
        let times = self.times.len().max(1);
        let (mut day, time) = (nth / times, nth % times);
        for (word, bits) in self.days.iter().enumerate() {
            let count = u64::from(bits.count_ones());
            if day < count {
                let place = word as i64 * 64 + nth_bit(*bits, day);
                return CivilTime::new((self.first + place) * DAY_SECONDS + self.times.nth(time));
            }
            day -= count;
        }
        None
    }
}

/// A rule with the parts that its start implies.
#[derive(Debug, Clone)]
pub(super) struct RuleParts<'r> {
    pub(super) rule: &'r Rule,
    pub(super) months: u16,
    pub(super) month_days: u32,
    pub(super) weekdays: u8,
    pub(super) nth_scope: NthScope,
    /// The times on each day of a period; for HOURLY and finer, the times that a step must match.
    pub(super) times: TimeOfDaySet,
    year: YearDays,
}

/// The scope of the ordinal of a weekday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NthScope {
    Nothing,
    Month,
    Year,
}

/// The days of a year that match BYYEARDAY and BYWEEKNO, and the nth weekdays of the year; computed
/// once for each year.
#[derive(Debug, Clone, Default)]
struct YearDays {
    year: i32,
    allowed: DayBits,
    nth_days: DayBits,
}

impl<'r> RuleParts<'r> {
    pub(super) fn new(rule: &'r Rule, start: CivilTime) -> RuleParts<'r> {
        let mut parts = RuleParts {
            rule,
            months: rule.months,
            month_days: rule.month_days,
            weekdays: rule.weekdays,
            nth_scope: NthScope::Nothing,
            times: resolve_times(rule, start),
            year: YearDays::default(),
        };
        parts.resolve_nth_scope();
        parts.fill_days_from_start(start);
        parts
    }

    /// Ordinals of weekdays apply to MONTHLY and YEARLY only.
    fn resolve_nth_scope(&mut self) {
        self.nth_scope = match self.rule.frequency {
            _ if self.rule.nth_weekdays.is_empty() => NthScope::Nothing,
            Frequency::Monthly => NthScope::Month,
            Frequency::Yearly if self.months != 0 => NthScope::Month,
            Frequency::Yearly => NthScope::Year,
            _ => {
                let days =
                    self.rule.nth_weekdays.iter().map(|nth| 1 << nth.weekday.number_from_monday());
                self.weekdays = days.fold(self.weekdays, |set, day: u8| set | day);
                NthScope::Nothing
            }
        };
    }

    /// Without a part that names days, the day comes from the start.
    fn fill_days_from_start(&mut self, start: CivilTime) {
        let rule = self.rule;
        let has_weeks = rule.weeks | rule.weeks_from_end != 0;
        let has_days = rule.month_days | rule.month_days_from_end != 0
            || !rule.year_days.is_empty()
            || rule.weekdays != 0
            || !rule.nth_weekdays.is_empty();
        let weekday = 1 << Weekday::from_day_number(start.day_number()).number_from_monday();
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

    pub(super) fn has_week_numbers(&self) -> bool {
        self.rule.weeks | self.rule.weeks_from_end != 0
    }

    /// Returns whether a part other than a plain weekday limits the days.
    pub(super) fn has_limits_beyond_weekdays(&self) -> bool {
        self.months != 0
            || self.month_days | self.rule.month_days_from_end != 0
            || self.nth_scope != NthScope::Nothing
            || !self.rule.year_days.is_empty()
            || self.has_week_numbers()
    }

    pub(super) fn has_day_limits(&self) -> bool {
        self.weekdays != 0 || self.has_limits_beyond_weekdays()
    }

    /// Returns the number of the period that contains a day, for DAILY and coarser.
    pub(super) fn period_number(&self, day: i64) -> i64 {
        match self.rule.frequency {
            Frequency::Yearly if self.has_week_numbers() => {
                i64::from(week_year_and_number(day, self.rule.week_start).0)
            }
            Frequency::Yearly => i64::from(Date::from_day_number(day).year),
            Frequency::Monthly => {
                let date = Date::from_day_number(day);
                i64::from(date.year) * 12 + i64::from(date.month) - 1
            }
            Frequency::Weekly => first_day_of_week(day, self.rule.week_start).div_euclid(7),
            _ => day,
        }
    }

    /// Returns the first day of a period, for DAILY and coarser. A period after the end of the
    /// calendar gets a first day far after the calendar's last day.
    pub(super) fn first_day(&self, period: i64) -> i64 {
        let year = |period: i64| i32::try_from(period).unwrap_or(i32::MAX / 2);
        match self.rule.frequency {
            Frequency::Yearly if period > 10_000 => i64::MAX,
            Frequency::Yearly if self.has_week_numbers() => {
                first_day_of_week_one(year(period), self.rule.week_start)
            }
            Frequency::Yearly => first_day_of_year(year(period)),
            Frequency::Monthly if period > 12 * 10_000 => i64::MAX,
            Frequency::Monthly => {
                first_day_of_month(year(period.div_euclid(12)), period.rem_euclid(12) as u8 + 1)
            }
            // Of seven consecutive days, one is the first day of a week.
            Frequency::Weekly => {
                first_day_of_week(period.saturating_mul(7) + 6, self.rule.week_start)
            }
            _ => period,
        }
    }

    /// Returns the set of a period, for DAILY and coarser.
    pub(super) fn set_of_period(&mut self, period: i64) -> PeriodSet {
        let first = self.first_day(period);
        let mut days = [0; 6];
        match self.rule.frequency {
            Frequency::Yearly if self.has_week_numbers() => {
                self.fill_week_days(period, first, &mut days);
            }
            Frequency::Yearly => {
                let year = period as i32;
                for month in 1..=12 {
                    let at = first_day_of_month(year, month) - first;
                    set_bits(&mut days, at, self.month_bits(year, month));
                }
            }
            Frequency::Monthly => {
                let (year, month) = (period.div_euclid(12) as i32, period.rem_euclid(12) as u8 + 1);
                set_bits(&mut days, 0, self.month_bits(year, month));
            }
            Frequency::Weekly => days[0] = self.week_bits(first),
            _ => days[0] = 1,
        }
        PeriodSet { first, days, times: self.times }
    }

    /// Returns the set of a step, for HOURLY and finer: the times in it that the rule names.
    pub(super) fn set_of_unit(&self, at: CivilTime, unit: i64) -> PeriodSet {
        let second = at.second_of_day();
        let hours = 1 << (second / 3600);
        let minutes = if unit < 3600 { 1 << (second / 60 % 60) } else { self.times.minutes };
        let seconds = if unit < 60 { 1 << (second % 60) } else { self.times.seconds };
        PeriodSet {
            first: at.day_number(),
            days: [1, 0, 0, 0, 0, 0],
            times: TimeOfDaySet { hours, minutes, seconds },
        }
    }

    pub(super) fn has_month(&self, month: u8) -> bool {
        self.months == 0 || self.months >> (month - 1) & 1 == 1
    }

    /// Sets the days of the weeks in BYWEEKNO, in their week year.
    fn fill_week_days(&mut self, period: i64, first: i64, days: &mut DayBits) {
        let year = period as i32;
        let last = weeks_in_year(year, self.rule.week_start);
        for place in 0..7 * i64::from(last) {
            if self.has_week((place / 7 + 1) as u8, last) && self.check_day(first + place) {
                set_bits(days, place, 1);
            }
        }
    }

    fn has_week(&self, week: u8, last: u8) -> bool {
        self.rule.weeks >> week & 1 == 1 || self.rule.weeks_from_end >> (last + 1 - week) & 1 == 1
    }

    fn week_bits(&mut self, first: i64) -> u64 {
        let begins = self.rule.week_start.number_from_monday();
        let set = u64::from(self.weekdays);
        let week = if set == 0 { 127 } else { (set | set << 7) >> begins & 127 };
        if !self.has_limits_beyond_weekdays() {
            return week;
        }
        let days = (0..7).filter(|place| week >> place & 1 == 1);
        days.filter(|place| self.check_day(first + place)).fold(0, |set, place| set | 1 << place)
    }

    fn check_day(&mut self, day: i64) -> bool {
        if !(FIRST_DAY_NUMBER..=LAST_DAY_NUMBER).contains(&day) {
            return false;
        }
        let Date { year, month, day } = Date::from_day_number(day);
        self.month_bits(year, month) >> (day - 1) & 1 == 1
    }

    /// Finds the first day at or after this one that matches all parts, within the same month.
    pub(super) fn search_day_from(&mut self, day: i64) -> DaySearch {
        if !self.has_day_limits() {
            return DaySearch::Day(day);
        }
        let date = Date::from_day_number(day);
        let bits = self.month_bits(date.year, date.month);
        let length = i64::from(days_in_month(date.year, date.month));
        let start = first_day_of_month(date.year, date.month);
        match first_bit_from(u64::from(bits), day - start).filter(|bit| *bit < length) {
            Some(bit) => DaySearch::Day(start + bit),
            None => DaySearch::NotBefore(start + length),
        }
    }

    /// Returns the days of a month that match all parts: bit 0 is the first. With SKIP=FORWARD, the
    /// bit after the last day stands for the first day of the next month.
    fn month_bits(&mut self, year: i32, month: u8) -> u32 {
        if !self.has_month(month) {
            return 0;
        }
        let length = days_in_month(year, month);
        let start = first_day_of_month(year, month);
        let mut bits = self.month_day_bits(length);
        let of_year = start - first_day_of_year(year);
        if self.nth_scope == NthScope::Year
            || !self.rule.year_days.is_empty()
            || self.has_week_limits()
        {
            self.load_year(year);
            bits &= extract_bits(&self.year.allowed, of_year);
        }
        if self.weekdays != 0 || self.nth_scope != NthScope::Nothing {
            let first = (start + 3).rem_euclid(7);
            let week = u64::from(self.weekdays);
            let weeks = (0..6).fold(0, |set, n| set | week << (7 * n));
            bits &= (weeks >> first) as u32 | self.nth_bits(length, first, of_year);
        }
        bits
    }

    /// Returns the days that BYMONTHDAY allows.
    fn month_day_bits(&self, length: u8) -> u32 {
        let all = u32::MAX >> (32 - length);
        let (ahead, back) = (self.month_days >> 1, self.rule.month_days_from_end);
        if ahead | back == 0 {
            return all;
        }
        let back = back.reverse_bits() >> (31 - length);
        let beyond = ahead & !all != 0;
        let moved = match self.rule.skip {
            SkipMode::Backward if beyond => 1 << (length - 1),
            SkipMode::Forward if beyond => 1u32 << length,
            _ => 0,
        };
        (ahead | back) & all | moved
    }

    fn nth_bits(&self, length: u8, first: i64, of_year: i64) -> u32 {
        match self.nth_scope {
            NthScope::Nothing => 0,
            NthScope::Year => extract_bits(&self.year.nth_days, of_year),
            NthScope::Month => {
                let places = self.rule.nth_up_to(5).iter().filter_map(|nth| {
                    nth_weekday_place(nth.number, nth.weekday, first, i64::from(length))
                });
                places.fold(0, |set, place| set | 1 << place)
            }
        }
    }

    /// BYWEEKNO selects the weeks of a YEARLY rule, and limits the weeks of other rules.
    fn has_week_limits(&self) -> bool {
        self.has_week_numbers() && self.rule.frequency != Frequency::Yearly
    }

    /// Returns the days of a year that lie in a selected week of any week year.
    fn days_in_named_weeks(&self, year: i32) -> DayBits {
        let (start, begins) = (first_day_of_year(year), self.rule.week_start);
        let first = first_day_of_week(start, begins);
        let mut days = [0; 6];
        for day in (first..start + days_in_year(year)).step_by(7) {
            let (owner, week) = week_year_and_number(day, begins);
            if self.has_week(week, weeks_in_year(owner, begins)) {
                // Only the days of the first week that lie in the year count.
                let before = (start - day).max(0);
                set_bits(&mut days, (day - start).max(0), 127 >> before);
            }
        }
        days
    }

    fn load_year(&mut self, year: i32) {
        if self.year.year == year {
            return;
        }
        let (start, length) = (first_day_of_year(year), days_in_year(year));
        let first = (start + 3).rem_euclid(7);
        let mut known = YearDays { year, allowed: [u64::MAX; 6], nth_days: [0; 6] };
        if !self.rule.year_days.is_empty() {
            let places = self.rule.year_days.iter().map(|day| i64::from(*day));
            let places = places.map(|day| if day > 0 { day - 1 } else { length + day });
            known.allowed = bits_from_places(places.filter(|place| (0..length).contains(place)));
        }
        if self.has_week_limits() {
            let weeks = self.days_in_named_weeks(year);
            known.allowed.iter_mut().zip(weeks).for_each(|(pass, weeks)| *pass &= weeks);
        }
        let nth = self.rule.nth_up_to(53).iter();
        known.nth_days = bits_from_places(
            nth.filter_map(|nth| nth_weekday_place(nth.number, nth.weekday, first, length)),
        );
        self.year = known;
    }
}

/// The result of a search for a matching day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DaySearch {
    Day(i64),
    NotBefore(i64),
}

/// Returns the position of the nth weekday in a range of days whose first day has weekday `first`.
fn nth_weekday_place(number: i16, weekday: Weekday, first: i64, length: i64) -> Option<i64> {
    let (number, weekday) = (i64::from(number), i64::from(weekday.number_from_monday()));
    let place = if number > 0 {
        (weekday - first).rem_euclid(7) + 7 * (number - 1)
    } else {
        let last = (first + length - 1 - weekday).rem_euclid(7);
        length - 1 - last + 7 * (number + 1)
    };
    (0..length).contains(&place).then_some(place)
}

/// Returns the times of day that the rule names or the start implies. For HOURLY and finer, parts
/// finer than the step are implied by the start, and other parts are limits.
fn resolve_times(rule: &Rule, start: CivilTime) -> TimeOfDaySet {
    let second = start.second_of_day();
    let filled = |set: u64, step: bool, own: i64| match set {
        0 if step => u64::MAX,
        0 => 1 << own,
        set => set,
    };
    let at_most = |frequency| rule.frequency <= frequency;
    TimeOfDaySet {
        hours: filled(rule.hours.into(), at_most(Frequency::Hourly), second / 3600)
            & ((1 << 24) - 1),
        minutes: filled(rule.minutes, at_most(Frequency::Minutely), second / 60 % 60)
            & ((1 << 60) - 1),
        seconds: filled(rule.seconds, at_most(Frequency::Secondly), second % 60) & ((1 << 60) - 1),
    }
}

fn bits_from_places(places: impl Iterator<Item = i64>) -> DayBits {
    let mut days = [0; 6];
    places.for_each(|place| set_bits(&mut days, place, 1));
    days
}

/// Sets the days of a month, or one day, at a position.
fn set_bits(days: &mut DayBits, place: i64, bits: u32) {
    let Ok(place) = usize::try_from(place) else { return };
    let wide = u128::from(bits) << (place % 64);
    for (word, half) in days.iter_mut().skip(place / 64).zip([wide as u64, (wide >> 64) as u64]) {
        *word |= half;
    }
}

/// Returns the days of a month from the days of its year.
fn extract_bits(days: &DayBits, place: i64) -> u32 {
    let Ok(place) = usize::try_from(place) else { return 0 };
    let word = |at: usize| u128::from(days.get(at).copied().unwrap_or(0));
    let wide = word(place / 64) | word(place / 64 + 1) << 64;
    (wide >> (place % 64)) as u32
}
