//! Formats a rule canonically: one text for one meaning, parts in the order of the RFC, lists
//! sorted, defaults omitted.

use super::parse::{FREQUENCY_NAMES, SKIP_NAMES, WEEKDAY_NAMES};
use super::{Rule, RuleEnd, SkipMode};
use crate::civil::Weekday;
use std::fmt;

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frequency = FREQUENCY_NAMES.iter().find(|(_, frequency)| *frequency == self.frequency);
        write!(f, "FREQ={}", frequency.map_or("", |(name, _)| name))?;
        match self.end {
            RuleEnd::Never => {}
            RuleEnd::Until(until) => write!(f, ";UNTIL={until}")?,
            RuleEnd::Count(count) => write!(f, ";COUNT={count}")?,
            RuleEnd::UntilAndCount(until, count) => write!(f, ";UNTIL={until};COUNT={count}")?,
            RuleEnd::ResolvedUntil(last) => write!(f, ";UNTIL={last}")?,
        }
        if self.interval > 1 {
            write!(f, ";INTERVAL={}", self.interval)?;
        }
        write_list(f, "BYSECOND", bit_numbers(self.seconds))?;
        write_list(f, "BYMINUTE", bit_numbers(self.minutes))?;
        write_list(f, "BYHOUR", bit_numbers(self.hours.into()))?;
        write_list(f, "BYDAY", self.weekday_members())?;
        write_list(
            f,
            "BYMONTHDAY",
            signed_numbers(self.month_days.into(), self.month_days_from_end.into()),
        )?;
        write_list(f, "BYYEARDAY", &self.year_days)?;
        write_list(f, "BYWEEKNO", signed_numbers(self.weeks, self.weeks_from_end))?;
        write_list(f, "BYMONTH", bit_numbers(u64::from(self.months) << 1))?;
        write_list(f, "BYSETPOS", &self.positions)?;
        if self.week_start != Weekday::Monday {
            write!(f, ";WKST={}", weekday_name(self.week_start))?;
        }
        match SKIP_NAMES.iter().find(|(_, skip)| *skip == self.skip && *skip != SkipMode::Omit) {
            Some((skip, _)) => write!(f, ";RSCALE=GREGORIAN;SKIP={skip}"),
            None => Ok(()),
        }
    }
}

impl Rule {
    fn weekday_members(&self) -> impl Iterator<Item = String> + '_ {
        let plain = Weekday::ALL
            .into_iter()
            .filter(|day| self.weekdays >> day.number_from_monday() & 1 == 1);
        let numbered = self
            .nth_weekdays
            .iter()
            .map(|nth| format!("{}{}", nth.number, weekday_name(nth.weekday)));
        plain.map(|day| weekday_name(day).to_string()).chain(numbered)
    }
}

fn weekday_name(weekday: Weekday) -> &'static str {
    WEEKDAY_NAMES.get(usize::from(weekday.number_from_monday())).copied().unwrap_or_default()
}

fn bit_numbers(set: u64) -> impl Iterator<Item = i32> {
    (0..64).filter(move |bit| set >> bit & 1 == 1)
}

fn signed_numbers(ahead: u64, back: u64) -> impl Iterator<Item = i32> {
    let back = (0..64).rev().filter(move |bit| back >> bit & 1 == 1).map(|bit: i32| -bit);
    back.chain(bit_numbers(ahead))
}

fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    members: impl IntoIterator<Item = T>,
) -> fmt::Result {
    for (place, member) in members.into_iter().enumerate() {
        match place {
            0 => write!(f, ";{name}={member}")?,
            _ => write!(f, ",{member}")?,
        }
    }
    Ok(())
}
