//! Targets of the time crate: values and rules from text, compiled series from bytes.

use larder_time::civil::{CivilTime, Instant};
use larder_time::rule::{LastOccurrence, Rule, StepBudget};
use larder_time::series::{OverrideMode, Series, ZoneReference};
use larder_time::value::{IcalDateTime, IcalDuration, Period, UtcOffset};
use larder_time::zone::Zone;

/// Values and rules: a value that parses is written as a text that parses to the same value. The
/// occurrences of a rule from a later start are those of the full walk; the rule's masks contain
/// all occurrences; its last occurrence is not before the first one. The first line is the start,
/// the rest is the rule.
pub fn check_rule(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (first, rest) = text.split_once('\n').unwrap_or(("", &text));
    check_values(first);
    let start = IcalDateTime::parse(first)
        .map_or(CivilTime::from_seconds_clamped(1_000_000_000), |stamp| stamp.civil);
    if let Ok(rule) = Rule::parse_vcal10(rest) {
        check_occurrences(&rule, start);
    }
    let Ok(rule) = Rule::parse(rest) else { return };
    let again = rule.to_string();
    assert_eq!(Rule::parse(&again).as_ref(), Ok(&rule), "{again}");
    check_occurrences(&rule, start);
}

fn check_values(text: &str) {
    if let Ok(stamp) = IcalDateTime::parse(text) {
        assert_eq!(IcalDateTime::parse(&stamp.to_string()), Ok(stamp));
    }
    if let Ok(length) = IcalDuration::parse(text) {
        assert_eq!(IcalDuration::parse(&length.to_string()), Ok(length));
    }
    if let Ok(offset) = UtcOffset::parse(text) {
        assert_eq!(UtcOffset::parse(&offset.to_string()), Ok(offset));
    }
    if let Ok(period) = Period::parse(text) {
        assert_eq!(Period::parse(&period.to_string()), Ok(period));
    }
}

fn check_occurrences(rule: &Rule, start: CivilTime) {
    let budget = StepBudget::new(2_000);
    let mut walk = rule.occurrences_from(start, start).with_budget(budget);
    let all: Vec<CivilTime> = walk.by_ref().take(100).collect();
    assert!(walk.spent_steps() <= 2_000, "{} steps", walk.spent_steps());
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "in order");
    let (months, weekdays) = (rule.month_mask(start), rule.weekday_mask(start));
    for at in &all {
        assert!(months >> (at.date().month - 1) & 1 == 1, "{at} in its months");
        assert!(weekdays >> (at.day_number() + 3).rem_euclid(7) & 1 == 1, "{at} on its weekdays");
    }
    if let (Some(gap), None) = (rule.max_gap_seconds(start), rule.until_bound()) {
        let gaps = all.windows(2).map(|pair| pair[1].seconds() - pair[0].seconds());
        assert!(gaps.max().is_none_or(|longest| longest <= gap), "a gap over {gap}");
    }
    if let Some(middle) = all.get(all.len() / 2) {
        let found: Vec<CivilTime> = rule.occurrences_from(start, *middle).take(3).collect();
        let expected = &all[all.len() / 2..];
        assert_eq!(found.first(), expected.first(), "from {middle}");
    }
    if let (LastOccurrence::At(last), Some(first)) =
        (rule.last_occurrence(start, budget), all.first())
    {
        assert!(last >= *first, "the last, {last}, is before the first, {first}");
        assert!(rule.until_bound().is_none_or(|bound| last <= bound), "{last} is after the end");
    }
}

/// A compiled series: bytes that parse are written as the same bytes, and the occurrences of a time
/// range lie in the range.
pub fn check_series(data: &[u8]) {
    let [kind, bytes @ ..] = data else { return };
    let clock = || if kind % 2 == 0 { ZoneReference::Utc } else { ZoneReference::Floating };
    let Some(series) = Series::from_bytes(bytes, &mut |_| clock()) else { return };
    let again = series.to_bytes(0);
    assert_eq!(Series::from_bytes(&again, &mut |_| clock()).as_ref(), Some(&series));
    let _ = (series.span(), series.max_gap_seconds());
    let from = Instant::from_seconds_clamped(series.start().seconds())
        .saturating_add(i64::from(*kind) * 1_000_000);
    for to in [from.saturating_add(3_000_000), Instant::MAX] {
        let budget = StepBudget::new(2_000);
        let found = series.occurrences(from, to, &Zone::UTC, OverrideMode::Include, budget);
        let all: Vec<_> = found.take(100).collect();
        assert!(all.is_sorted_by_key(|one| one.start), "in order");
        for one in all {
            assert!(one.start <= one.end && one.start < to, "{one:?}");
            assert!(one.end > from || one.start >= from, "{one:?}");
        }
    }
}
