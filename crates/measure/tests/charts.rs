//! Charts: what is written on axes, and what is told of what is drawn.

use larder_measure::chart::{Axis, Bar, Rows, Tone, Unit, date, figure, moment};

#[test]
fn numbers_for_people() {
    let check = |unit: Unit, value: f64, expect: &str| assert_eq!(unit.write(value), expect);
    check(Unit::Count, 0.0, "0");
    check(Unit::Count, 1_234_567.0, "1,234,567");
    check(Unit::Count, 2.5, "2.5");
    check(Unit::Count, 12.5, "13");
    check(Unit::Bytes, 0.0, "0 bytes");
    check(Unit::Bytes, 1000.0, "1 kB");
    check(Unit::Bytes, 123_456.0, "123 kB");
    check(Unit::Time, 0.0, "0 µs");
    check(Unit::Time, 999.9, "1 ms");
    check(Unit::Time, 1234.0, "1.2 ms");
    check(Unit::Time, 59.0 * 1e6, "59 s");
    check(Unit::Time, 90.0 * 1e6, "1.5 min");
    check(Unit::Time, 86_400.0 * 2e6, "2 days");
    check(Unit::Share, 0.015, "1.5 %");
    check(Unit::Share, 1.0, "100 %");
}

/// 2 March 2026, 08:00 UTC.
const EIGHT: i64 = 1_772_438_400_000_000;

#[test]
fn days_and_times() {
    assert_eq!(date(0, &|_| 0), "1 Jan 1970");
    assert_eq!(date(EIGHT, &|_| 17 * 3600), "3 Mar 2026");
    assert_eq!(moment(EIGHT - 1, &|_| -3600, true), "06:59:59");
    assert_eq!(moment(i64::MIN, &|_| i64::MIN, false), moment(i64::MIN, &|_| i64::MIN, false));
}

#[test]
fn a_chart_has_what_it_says() {
    let bar = |name: &str, value: f64| Bar {
        name: name.into(),
        at: 0.0,
        values: vec![value],
        note: format!("<{value}>"),
    };
    let chart = Rows {
        along: Axis::linear("things", Unit::Count),
        series: vec![(Tone::First, "all".into())],
        bars: vec![bar("one", 3.0), bar("a name that is much too long for a narrow screen", 0.0)],
    };
    let html = figure("Title & more", "About", &chart);
    for part in
        ["Title &amp; more", "About", "things", "&lt;3&gt;", "<title>one - all: 3</title>", "…"]
    {
        assert!(html.contains(part), "{part} in {html}");
    }
    let nothing = Rows { bars: Vec::new(), ..chart };
    assert!(!figure("", "", &nothing).contains("NaN"));
}
