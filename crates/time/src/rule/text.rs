//! A rule as text again: one text for one meaning, parts in the order of the RFC, lists sorted, defaults left out.

use super::parse::{FREQUENCIES, SKIPS, WEEKDAYS};
use super::{End, Rule, Skip};
use crate::civil::Weekday;
use std::fmt;

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frequency = FREQUENCIES.iter().find(|(_, frequency)| *frequency == self.frequency);
        write!(f, "FREQ={}", frequency.map_or("", |(name, _)| name))?;
        match self.end {
            End::Never => {}
            End::Until(until) => write!(f, ";UNTIL={until}")?,
            End::Count(count) => write!(f, ";COUNT={count}")?,
            End::Both(until, count) => write!(f, ";UNTIL={until};COUNT={count}")?,
            End::At(last) => write!(f, ";UNTIL={last}")?,
        }
        if self.interval > 1 {
            write!(f, ";INTERVAL={}", self.interval)?;
        }
        list(f, "BYSECOND", bits(self.seconds))?;
        list(f, "BYMINUTE", bits(self.minutes))?;
        list(f, "BYHOUR", bits(self.hours.into()))?;
        list(f, "BYDAY", self.days())?;
        list(f, "BYMONTHDAY", signed(self.month_days.into(), self.month_days_back.into()))?;
        list(f, "BYYEARDAY", &self.year_days)?;
        list(f, "BYWEEKNO", signed(self.weeks, self.weeks_back))?;
        list(f, "BYMONTH", bits(u64::from(self.months) << 1))?;
        list(f, "BYSETPOS", &self.positions)?;
        if self.week_start != Weekday::Monday {
            write!(f, ";WKST={}", name(self.week_start))?;
        }
        match SKIPS.iter().find(|(_, skip)| *skip == self.skip && *skip != Skip::Omit) {
            Some((skip, _)) => write!(f, ";RSCALE=GREGORIAN;SKIP={skip}"),
            None => Ok(()),
        }
    }
}

impl Rule {
    fn days(&self) -> impl Iterator<Item = String> + '_ {
        let plain = Weekday::ALL.into_iter().filter(|day| self.weekdays >> day.number() & 1 == 1);
        let numbered = self.nth.iter().map(|nth| format!("{}{}", nth.number, name(nth.weekday)));
        plain.map(|day| name(day).to_string()).chain(numbered)
    }
}

fn name(weekday: Weekday) -> &'static str {
    WEEKDAYS.get(usize::from(weekday.number())).copied().unwrap_or_default()
}

fn bits(set: u64) -> impl Iterator<Item = i32> {
    (0..64).filter(move |bit| set >> bit & 1 == 1)
}

fn signed(ahead: u64, back: u64) -> impl Iterator<Item = i32> {
    let back = (0..64).rev().filter(move |bit| back >> bit & 1 == 1).map(|bit: i32| -bit);
    back.chain(bits(ahead))
}

fn list<T: fmt::Display>(
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
