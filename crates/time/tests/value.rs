//! Values from text and back.

use larder_time::value::{EventLength, IcalDateTime, IcalDuration, Period, UtcOffset};
use proptest::prelude::*;

/// Parses a value and formats it again; errors begin with `!`.
fn check<T: std::str::FromStr + ToString>(text: &str, expected: &str)
where
    T::Err: ToString,
{
    let found = match text.parse::<T>() {
        Ok(value) => value.to_string(),
        Err(wrong) => format!("!{}", wrong.to_string()),
    };
    match expected {
        "!" => assert!(found.starts_with('!'), "{text}: {found}"),
        expected => assert_eq!(found, expected, "{text}"),
    }
}

#[test]
fn dates_and_times_are_parsed() {
    let check = check::<IcalDateTime>;
    check("20260305", "20260305");
    check("2026-03-05", "20260305");
    check(" 20260305T120000Z ", "20260305T120000Z");
    check("20260305t120001z", "20260305T120001Z");
    check("2026-03-05T12:00:01", "20260305T120001");
    check("2026-03-05 12:00", "20260305T120000");
    check("20260305T1200", "20260305T120000");
    check("19711030T16000Z", "19711030T160000Z");
    check("20260630T235960Z", "20260630T235959Z");
    check("00010101", "00010101");
    check("16010101T000000", "16010101T000000");
    check("20260230", "!the date or time \"20260230\" does not exist");
    check("20260305T240000", "!the date or time \"20260305T240000\" does not exist");
    check("00000101", "!");
    check("2026-0305", "!");
    check("20260305T", "!");
    check("20260305T12", "!");
    check("20260305T12:00:0", "!");
    check("20260305T120000ZZ", "!");
    check("120260305", "!");
    check("+2026030", "!");
    check("", "!\"\" is neither a date nor a date-time");
    check("2026030५", "!");
}

#[test]
fn durations_are_parsed() {
    let check = check::<IcalDuration>;
    check("P1W", "P1W");
    check("P7D", "P1W");
    check("P1D", "P1D");
    check("-PT15M", "-PT15M");
    check("+P1DT2H3M4S", "P1DT2H3M4S");
    check("PT0S", "PT0S");
    check("P", "PT0S");
    check("P1DT", "P1D");
    check("p1dt1h", "P1DT1H");
    check("P1W2D", "P9D");
    check("P1Y1M", "P395D");
    check("PT90M", "PT1H30M");
    check("-P1D", "-P1D");
    check("15M", "!");
    check("P15", "!");
    check("PD", "!");
    check("PT1D", "!");
    check("P1H", "!");
    check("P1T1H", "!");
    check("P99999999999999999999D", "!");
    check("P4000001D", "!");
    check("P4000000W", "!");
}

#[test]
fn offsets_and_periods_are_parsed() {
    check::<UtcOffset>("+0100", "+0100");
    check::<UtcOffset>("-0530", "-0530");
    check::<UtcOffset>("+005328", "+005328");
    check::<UtcOffset>("-00:30", "-0030");
    check::<UtcOffset>("+01", "+0100");
    check::<UtcOffset>("-0000", "+0000");
    for wrong in ["0100", "+2400", "+1", "+01000", "+0160", "", "+"] {
        check::<UtcOffset>(wrong, "!");
    }
    let period =
        |text: &str| Period::parse(text).map(|period| (period.to_string(), period.length()));
    let text = "19970101T180000Z/19970102T070000Z";
    assert_eq!(period(text), Ok((text.to_string(), EventLength::Exact(46_800))));
    let text = "19970101T180000Z/PT5H30M";
    let length = EventLength::Nominal(IcalDuration { days: 0, seconds: 19_800 });
    assert_eq!(period(text), Ok((text.to_string(), length)));
    for wrong in ["19970101T180000Z", "19970101T180000Z/", "/PT5H", "19970101T180000Z/5H"] {
        assert!(period(wrong).is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn nothing_panics(text in "[-+0-9TPZWDHMSYtz:/ ]{0,24}") {
        let _ = (IcalDateTime::parse(&text), IcalDuration::parse(&text), Period::parse(&text), UtcOffset::parse(&text));
    }

    #[test]
    fn formatted_durations_are_parsed_back(days in 0i64..4_000_000, seconds in 0i64..10_000_000, sign in prop::bool::ANY) {
        let sign = if sign { -1 } else { 1 };
        let length = IcalDuration { days: sign * days, seconds: sign * seconds };
        prop_assert_eq!(IcalDuration::parse(&length.to_string()), Ok(length));
    }
}
