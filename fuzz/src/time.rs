//! What is made of times: values and rules from text, compiled series from bytes.

use larder_time::civil::{Civil, Instant};
use larder_time::rule::{Budget, Last, Rule};
use larder_time::series::{Clock, Detached, Series};
use larder_time::value::{Nominal, Offset, Period, Stamp};
use larder_time::zone::Zone;

/// Values and rules: what was read comes back from its text; a rule that is entered anywhere gives what one gives that is
/// walked, its masks hold what it gives, and its last occurrence is the last. The first line is the start, the rest the rule.
pub fn rule(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (first, rest) = text.split_once('\n').unwrap_or(("", &text));
    values(first);
    let start = Stamp::parse(first).map_or(Civil::clamped(1_000_000_000), |stamp| stamp.civil);
    if let Ok(rule) = Rule::parse_vcal10(rest) {
        occurrences(&rule, start);
    }
    let Ok(rule) = Rule::parse(rest) else { return };
    let again = rule.to_string();
    assert_eq!(Rule::parse(&again).as_ref(), Ok(&rule), "{again}");
    occurrences(&rule, start);
}

fn values(text: &str) {
    if let Ok(stamp) = Stamp::parse(text) {
        assert_eq!(Stamp::parse(&stamp.to_string()), Ok(stamp));
    }
    if let Ok(length) = Nominal::parse(text) {
        assert_eq!(Nominal::parse(&length.to_string()), Ok(length));
    }
    if let Ok(offset) = Offset::parse(text) {
        assert_eq!(Offset::parse(&offset.to_string()), Ok(offset));
    }
    if let Ok(period) = Period::parse(text) {
        assert_eq!(Period::parse(&period.to_string()), Ok(period));
    }
}

fn occurrences(rule: &Rule, start: Civil) {
    let budget = Budget::new(2_000);
    let mut walk = rule.from(start, start).with_budget(budget);
    let all: Vec<Civil> = walk.by_ref().take(100).collect();
    assert!(walk.steps() <= 2_000, "{} steps", walk.steps());
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "in order");
    let (months, weekdays) = (rule.months(start), rule.weekdays(start));
    for at in &all {
        assert!(months >> (at.date().month - 1) & 1 == 1, "{at} in its months");
        assert!(weekdays >> (at.day() + 3).rem_euclid(7) & 1 == 1, "{at} on its weekdays");
    }
    if let (Some(gap), None) = (rule.longest_gap(start), rule.bound()) {
        let gaps = all.windows(2).map(|pair| pair[1].seconds() - pair[0].seconds());
        assert!(gaps.max().is_none_or(|longest| longest <= gap), "a gap over {gap}");
    }
    if let Some(middle) = all.get(all.len() / 2) {
        let found: Vec<Civil> = rule.from(start, *middle).take(3).collect();
        let expected = &all[all.len() / 2..];
        assert_eq!(found.first(), expected.first(), "sought from {middle}");
    }
    if let (Last::At(last), Some(first)) = (rule.last(start, budget), all.first()) {
        assert!(last >= *first, "the last, {last}, is before the first, {first}");
        assert!(rule.bound().is_none_or(|bound| last <= bound), "{last} is behind the end");
    }
}

/// A compiled series of any bytes that are one: it comes back as the same bytes, and a window holds what is in it.
pub fn series(data: &[u8]) {
    let [kind, bytes @ ..] = data else { return };
    let clock = || if kind % 2 == 0 { Clock::Utc } else { Clock::Floating };
    let Some(series) = Series::from_bytes(bytes, &mut |_| clock()) else { return };
    let again = series.to_bytes(0);
    assert_eq!(Series::from_bytes(&again, &mut |_| clock()).as_ref(), Some(&series));
    let _ = (series.span(), series.longest_gap());
    let from = Instant::clamped(series.start().seconds()).plus(i64::from(*kind) * 1_000_000);
    for to in [from.plus(3_000_000), Instant::MAX] {
        let budget = Budget::new(2_000);
        let found = series.occurrences(from, to, &Zone::UTC, Detached::Give, budget);
        let all: Vec<_> = found.take(100).collect();
        assert!(all.is_sorted_by_key(|one| one.start), "in order");
        for one in all {
            assert!(one.start <= one.end && one.start < to, "{one:?}");
            assert!(one.end > from || one.start >= from, "{one:?}");
        }
    }
}
