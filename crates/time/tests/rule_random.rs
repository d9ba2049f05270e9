//! Properties of all rules.

use crate::rule::rule;
use larder_time::civil::CivilTime;
use larder_time::rule::{LastOccurrence, Rule, RuleEnd, StepBudget};
use proptest::prelude::*;

/// Generates rules that are mostly valid and match often.
pub(crate) fn any_rule() -> impl Strategy<Value = String> {
    let list = |name: &'static str, values: Vec<&'static str>| {
        let members = prop::sample::subsequence(values, 1..4);
        prop::option::weighted(0.25, members).prop_map(move |members| match members {
            Some(members) => format!(";{name}={}", members.join(",")),
            None => String::new(),
        })
    };
    let frequencies =
        vec!["SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"];
    (
        prop::sample::select(frequencies),
        prop::sample::select(vec![1, 1, 1, 2, 3, 7, 25, 100]),
        list("BYMONTH", vec!["1", "2", "3", "6", "10", "12"]),
        list("BYWEEKNO", vec!["1", "2", "20", "53", "-1"]),
        list("BYYEARDAY", vec!["1", "60", "100", "366", "-1"]),
        list("BYMONTHDAY", vec!["1", "13", "29", "31", "-1", "-2"]),
        list("BYDAY", vec!["MO", "TU", "FR", "SU", "1MO", "-1FR", "5SU"]),
        list("BYHOUR", vec!["0", "9", "17", "23"]),
        list("BYMINUTE", vec!["0", "30", "59"]),
        list("BYSETPOS", vec!["1", "2", "-1", "-3"]),
        prop::sample::select(vec!["", ";WKST=SU", ";WKST=TH"]),
        prop::sample::select(vec![
            "",
            "",
            ";RSCALE=GREGORIAN;SKIP=FORWARD",
            ";RSCALE=GREGORIAN;SKIP=BACKWARD",
        ]),
    )
        .prop_map(|(frequency, interval, m, w, y, d, day, h, min, pos, start, skip)| {
            format!(
                "FREQ={frequency};INTERVAL={interval}{m}{w}{y}{d}{day}{h}{min}{pos}{start}{skip}"
            )
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn seeking_equals_enumeration(text in any_rule(), start in 0i64..2_000_000_000, ahead in 0i64..200_000_000) {
        let rule = rule(&text);
        let start = CivilTime::from_seconds_clamped(start);
        let budget = StepBudget::new(100_000);
        let all: Vec<CivilTime> = rule.occurrences_from(start, start).with_budget(budget).take(500).collect();
        for at in [start.saturating_add(ahead % 1_000_000), start.saturating_add(ahead)] {
            let complete = all.last().is_some_and(|last| *last >= at);
            let expected = all.iter().copied().find(|found| *found >= at);
            if complete {
                let found = rule.occurrences_from(start, at).with_budget(budget).next();
                prop_assert_eq!(found, expected, "{} from {} at {}", text, start, at);
            }
        }
        prop_assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn masks_and_gaps_hold_for_every_occurrence(text in any_rule(), start in 0i64..2_000_000_000) {
        let rule = rule(&text);
        let start = CivilTime::from_seconds_clamped(start);
        let all: Vec<CivilTime> =
            rule.occurrences_from(start, start).with_budget(StepBudget::new(20_000)).take(300).collect();
        let (months, weekdays) = (rule.month_mask(start), rule.weekday_mask(start));
        for at in &all {
            prop_assert!(months >> (at.date().month - 1) & 1 == 1, "{} in its months", at);
            prop_assert!(weekdays >> (at.day_number() + 3).rem_euclid(7) & 1 == 1, "{} on its weekdays", at);
        }
        if let Some(gap) = rule.max_gap_seconds(start) {
            for pair in all.windows(2) {
                prop_assert!(pair[1].seconds() - pair[0].seconds() <= gap, "{} then {}", pair[0], pair[1]);
            }
        }
        if let Some(place) = all.len().checked_sub(1) {
            let counted = rule.clone().with_end(RuleEnd::Count(place as u64 + 1));
            let last = counted.last_occurrence(start, StepBudget::new(1_000_000));
            prop_assert!(matches!(last, LastOccurrence::At(at) if at == all[place]), "{:?}, not {}", last, all[place]);
            let until = rule.with_until(all[place].saturating_add(1));
            let last = until.last_occurrence(start, StepBudget::new(1_000_000));
            prop_assert!(matches!(last, LastOccurrence::At(at) if at >= all[place]) || last == LastOccurrence::Unknown);
        }
    }

    #[test]
    fn nothing_panics(text in "(FREQ=(DAILY|MONTHLY|YEARLY|HOURLY))?[-+A-Z0-9,;=#é ]{0,40}") {
        let start = CivilTime::from_seconds_clamped(0);
        for rule in [Rule::parse(&text), Rule::parse_vcal10(&text)].into_iter().flatten() {
            let _ = rule.occurrences_from(start, start).take(10).count();
            let _ = rule.last_occurrence(start, StepBudget::new(1000));
        }
    }
}
