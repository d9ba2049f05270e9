//! Series of all kinds: a window is a part of the whole, a series survives its encoding, and no
//! bytes cause a panic.

use crate::rule_random::any_rule;
use crate::series::{clock, parse_description};
use crate::zone::zone;
use larder_time::civil::{CivilTime, DAY_SECONDS, Instant};
use larder_time::rule::{Rule, StepBudget};
use larder_time::series::{
    CalendarDateTime, EventLength, Occurrence, Override, OverrideMode, Rdate, Series, SeriesSpec,
    TimePattern, ZoneReference,
};
use larder_time::zone::Zone;
use proptest::prelude::*;

/// Generates descriptions that are mostly sensible.
fn any_description() -> impl Strategy<Value = SeriesSpec> {
    let clocks = prop::sample::select(vec![
        "Z",
        "-",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
    ]);
    let lengths =
        prop::sample::select(vec!["0", "3600", "100000", "P1D", "PT30M", "P1DT2H", "P40D"]);
    let near = || prop::collection::vec((0i64..400, 0i64..48), 0..4);
    let base = 1_600_000_000i64..1_800_000_000;
    let rules = prop::collection::vec(
        (
            any_rule(),
            prop::sample::select(vec![
                "",
                ";COUNT=7",
                ";COUNT=40",
                ";UNTIL=20290101",
                ";UNTIL=20290101T000000Z",
            ]),
        ),
        0..3,
    );
    let changes =
        prop::collection::vec((0usize..60, any::<bool>(), -30i64..30, any::<bool>()), 0..4);
    (base, any::<bool>(), clocks, lengths, rules, near(), near(), changes).prop_map(
        |(base, date, clock_name, length, rules, dates, exclusions, changes)| {
            let zone_reference = clock(clock_name);
            let at = |seconds: i64| {
                let civil = CivilTime::from_seconds_clamped(seconds - seconds.rem_euclid(1800));
                if date {
                    CalendarDateTime::from_date(civil)
                } else {
                    CalendarDateTime::from_civil(civil, zone_reference.clone())
                }
            };
            let mut description = parse_description(&format!("START 19700101\nLENGTH {length}"));
            description.start = at(base);
            let rule =
                |(rule, end): (String, &str)| Rule::parse(&format!("{rule}{end}")).expect("a rule");
            description.rules = rules.into_iter().map(rule).collect();
            let near =
                |(days, half_hours): (i64, i64)| at(base + days * DAY_SECONDS + half_hours * 1800);
            description.rdates = dates
                .into_iter()
                .map(|near_by| Rdate { start: near(near_by), length: None })
                .collect();
            description.exdates = exclusions.into_iter().map(near).collect();
            // Overrides replace existing occurrences.
            let (plain, _) = Series::new(&description, StepBudget::new(20_000));
            let planned: Vec<Occurrence> = plain
                .occurrences(
                    Instant::MIN,
                    Instant::MAX,
                    &Zone::UTC,
                    OverrideMode::Include,
                    StepBudget::new(5_000),
                )
                .take(60)
                .collect();
            for (tag, (place, following, hours, longer)) in changes.into_iter().enumerate() {
                let Some(one) = planned.get(place) else { continue };
                let original = if date {
                    CalendarDateTime::from_date(one.original_civil)
                } else {
                    CalendarDateTime::from_civil(one.original_civil, zone_reference.clone())
                };
                let moved = one
                    .original_civil
                    .saturating_add(hours * if date { DAY_SECONDS } else { 3600 });
                let start = if date {
                    CalendarDateTime::from_date(moved)
                } else {
                    CalendarDateTime::from_civil(moved, zone_reference.clone())
                };
                let length = longer.then_some(EventLength::from_days(2));
                description.overrides.push(Override {
                    original,
                    is_this_and_future: following,
                    start: Some(start),
                    length,
                    tag: tag as u64,
                });
            }
            description
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A window has the occurrences of the whole that meet it, and each occurrence is inside the
    /// span and the pattern of its series.
    #[test]
    fn a_window_is_a_part_of_the_whole(description in any_description(), local in prop::sample::select(vec!["UTC", "Europe/Berlin", "Pacific/Apia"]), days in 0i64..500, width in 0i64..100) {
        let (series, _) = Series::new(&description, StepBudget::new(100_000));
        let local = zone(local);
        let all = |from, to, detached| {
            let mut found = series.occurrences(from, to, &local, detached, StepBudget::new(60_000));
            let all: Vec<Occurrence> = found.by_ref().collect();
            (all, found.is_exhausted())
        };
        let begin = Instant::from_seconds_clamped(series.start().seconds());
        for detached in [OverrideMode::Include, OverrideMode::Exclude] {
            let (whole, exhausted) = all(begin.saturating_add(-40 * DAY_SECONDS), begin.saturating_add(700 * DAY_SECONDS), detached);
            if exhausted {
                continue;
            }
            prop_assert!(whole.windows(2).all(|pair| pair[0].start <= pair[1].start));
            let (from, to) = (begin.saturating_add(days * DAY_SECONDS - DAY_SECONDS), begin.saturating_add((days + width) * DAY_SECONDS));
            let expected: Vec<Occurrence> = whole.iter().copied()
                .filter(|one| one.start < to && (one.end > from || one.start >= from)).collect();
            let (found, exhausted) = all(from, to, detached);
            prop_assert!(exhausted || found == expected, "{:?}\n{:?}", found, expected);
            let (span, pattern) = (series.span(), TimePattern::from_series(&series));
            let met = found.iter().any(|one| !one.is_override);
            let within = match span.is_utc {
                true => TimePattern::from_time_range(from.seconds(), to.seconds()),
                false => {
                    let (low, high) = local.offset_bounds();
                    TimePattern::from_time_range(from.seconds() + i64::from(low), to.seconds() + i64::from(high))
                }
            };
            prop_assert!(!met || pattern.can_meet(within), "{:?} in {:?}", pattern, within);
            for one in whole.iter().filter(|one| !one.is_override) {
                let (start, end) = match span.is_utc {
                    true => (one.start.seconds(), one.end.seconds()),
                    false => (one.start_civil.seconds(), one.end_civil.seconds()),
                };
                prop_assert!(start >= span.first, "{:?} in {:?}", one, span);
                let (low, high) = local.offset_bounds();
                let change = if span.is_utc { 0 } else { i64::from(high - low) };
                prop_assert!(span.end.is_none_or(|last| end <= last + change), "{:?} in {:?}", one, span);
            }
        }
    }

    /// A window of one second at an occurrence is never ruled out.
    #[test]
    fn patterns_rule_no_occurrence_out(
        base in 0i64..4_000_000_000,
        rule in prop::sample::select(vec![
            "WEEKLY", "WEEKLY;INTERVAL=2;BYDAY=MO,FR", "MONTHLY", "MONTHLY;BYMONTHDAY=31", "MONTHLY;BYMONTHDAY=1,-1",
            "MONTHLY;BYDAY=2TU", "YEARLY", "YEARLY;BYMONTH=2;BYMONTHDAY=28,29", "YEARLY;BYYEARDAY=1,366", "DAILY;BYHOUR=1,23",
            "DAILY;BYMONTH=3,12", "YEARLY;BYWEEKNO=1;BYDAY=MO", "YEARLY;BYDAY=-1SU;BYMONTH=12", "HOURLY;INTERVAL=7",
        ]),
        zone_reference in prop::sample::select(vec![
            "Z", "-", "Europe/Berlin", "Pacific/Apia", "Asia/Kathmandu", "America/New_York", "Pacific/Kiritimati",
        ]),
        date in any::<bool>(),
        length in prop::sample::select(vec!["0", "1", "3600", "86400", "P1D", "P1DT2H", "P2D", "P3D", "200000", "P9D"]),
        days in 0i64..60,
    ) {
        let zone_reference = clock(zone_reference);
        let civil = CivilTime::from_seconds_clamped(base);
        let mut description = parse_description(&format!("START 19700101\nLENGTH {length}"));
        description.start = if date { CalendarDateTime::from_date(CivilTime::from_seconds_clamped(base - base.rem_euclid(DAY_SECONDS))) } else { CalendarDateTime::from_civil(civil, zone_reference) };
        description.rules = vec![Rule::parse(&format!("FREQ={rule}")).expect("a rule")];
        let (series, _) = Series::new(&description, StepBudget::new(20_000));
        let pattern = TimePattern::from_series(&series);
        let floats = !series.span().is_utc;
        let all = series.occurrences(Instant::MIN, Instant::MAX, &Zone::UTC, OverrideMode::Exclude, StepBudget::new(50_000));
        for one in all.take(120) {
            let (start, end) = match floats {
                true => (one.start_civil.seconds(), one.end_civil.seconds()),
                false => (one.start.seconds(), one.end.seconds()),
            };
            for second in [start, end.max(start + 1) - 1] {
                let windows = [(second, second + 1), (second - days * DAY_SECONDS, second + 1), (second, second + days * DAY_SECONDS + 1)];
                for (from, to) in windows {
                    let window = TimePattern::from_time_range(from, to);
                    prop_assert!(pattern.can_meet(window), "{:?}: {:?} in {:?}", one, pattern, window);
                }
            }
        }
    }

    /// If the pattern states that an occurrence starts in a window, one does.
    #[test]
    fn certain_starts_are_in_the_window(
        base in 0i64..2_000_000_000,
        rule in prop::sample::select(vec![
            "WEEKLY", "WEEKLY;BYDAY=MO,TH", "WEEKLY;INTERVAL=2", "DAILY", "DAILY;INTERVAL=3", "DAILY;BYDAY=SA,SU", "MONTHLY",
            "MONTHLY;BYDAY=2TU", "YEARLY", "HOURLY;INTERVAL=7", "WEEKLY;BYHOUR=1,22",
        ]),
        zone_reference in prop::sample::select(vec![
            "Z", "-", "Europe/Berlin", "Asia/Kathmandu", "America/New_York", "Pacific/Kiritimati", "Australia/Lord_Howe",
        ]),
        length in prop::sample::select(vec!["0", "3600", "90000", "P1D"]),
        after in 0i64..1_000_000_000,
        takes in prop::sample::select(vec![1, 3 * 3600, 12 * 3600, DAY_SECONDS - 1, DAY_SECONDS, DAY_SECONDS + 3600, 2 * DAY_SECONDS, 7 * DAY_SECONDS, 31 * DAY_SECONDS]),
        midnight in any::<bool>(),
    ) {
        let mut description = parse_description(&format!("START 19700101\nLENGTH {length}"));
        description.start = CalendarDateTime::from_civil(CivilTime::from_seconds_clamped(base), clock(zone_reference));
        description.rules = vec![Rule::parse(&format!("FREQ={rule}")).expect("a rule")];
        let (series, _) = Series::new(&description, StepBudget::new(20_000));
        let change = match series.zone_reference() {
            ZoneReference::Zone(zone) => i64::from(zone.offset_bounds().1 - zone.offset_bounds().0),
            _ => 0,
        };
        let from = base + 2 * DAY_SECONDS + if midnight { after - (base + after).rem_euclid(DAY_SECONDS) } else { after };
        let (from, to) = (from.max(base + DAY_SECONDS), from.max(base + DAY_SECONDS) + takes);
        if let Some(gap) = series.max_gap_seconds()
            && TimePattern::from_series(&series).has_start_in(gap + change, from, to)
        {
            let (from, to) = (Instant::from_seconds_clamped(from), Instant::from_seconds_clamped(to));
            let mut all = series.occurrences(from, to, &Zone::UTC, OverrideMode::Exclude, StepBudget::default());
            prop_assert!(all.any(|one| one.start >= from && one.start < to), "{} in {}..{}", rule, from.seconds(), to.seconds());
        }
        if series.is_gapless_weekly() && TimePattern::from_series(&series).has_whole_day_in(from, to) {
            let (from, to) = (Instant::from_seconds_clamped(from), Instant::from_seconds_clamped(to));
            let mut all = series.occurrences(from, to, &Zone::UTC, OverrideMode::Exclude, StepBudget::default());
            prop_assert!(all.next().is_some(), "{} in {}..{}", rule, from.seconds(), to.seconds());
        }
    }

    #[test]
    fn encoded_series_are_decoded_alike(description in any_description()) {
        let (series, _) = Series::new(&description, StepBudget::new(20_000));
        let bytes = series.to_bytes(3);
        let back = Series::from_bytes(&bytes, &mut |_| series.zone_reference().clone());
        prop_assert_eq!(back.as_ref(), Some(&series));
        for end in 0..bytes.len() {
            prop_assert_eq!(Series::from_bytes(&bytes[..end], &mut |_| series.zone_reference().clone()), None);
        }
    }

    #[test]
    fn nothing_panics(description in any_description(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), noise in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut bytes = Series::new(&description, StepBudget::new(20_000)).0.to_bytes(0);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        for bytes in [bytes, [&[1, 9][..], &noise].concat()] {
            for zone_reference in ["Z", "-", "Europe/Berlin"] {
                let Some(series) = Series::from_bytes(&bytes, &mut |_| clock(zone_reference)) else { continue };
                let _ = (series.span(), series.max_gap_seconds());
                let found = series.occurrences(Instant::from_seconds_clamped(1_700_000_000), Instant::MAX, &Zone::UTC, OverrideMode::Include, StepBudget::new(2_000));
                let _ = found.take(100).count();
            }
        }
    }
}
