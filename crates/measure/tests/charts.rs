//! Charts: the format of numbers on axes, and the texts of a figure.

use larder_measure::chart::{
    BarChart, ChartAxis, ChartBar, ColourRole, MeasureUnit, Polyline, PolylineChart, format_date,
    format_time_of_day, render_figure,
};

#[test]
fn numbers_are_formatted_with_their_unit() {
    let check =
        |unit: MeasureUnit, value: f64, expect: &str| assert_eq!(unit.format(value), expect);
    check(MeasureUnit::Count, 0.0, "0");
    check(MeasureUnit::Count, 1_234_567.0, "1,234,567");
    check(MeasureUnit::Count, 2.5, "2.5");
    check(MeasureUnit::Count, 12.5, "13");
    check(MeasureUnit::Bytes, 0.0, "0 bytes");
    check(MeasureUnit::Bytes, 1000.0, "1 kB");
    check(MeasureUnit::Bytes, 123_456.0, "123 kB");
    check(MeasureUnit::Time, 0.0, "0 µs");
    check(MeasureUnit::Time, 999.9, "1 ms");
    check(MeasureUnit::Time, 1234.0, "1.2 ms");
    check(MeasureUnit::Time, 59.0 * 1e6, "59 s");
    check(MeasureUnit::Time, 90.0 * 1e6, "1.5 min");
    check(MeasureUnit::Time, 86_400.0 * 2e6, "2 days");
    check(MeasureUnit::Nanoseconds, 134.0, "134 ns");
    check(MeasureUnit::Nanoseconds, 2.54e6, "2.5 ms");
    check(MeasureUnit::Share, 0.015, "1.5 %");
    check(MeasureUnit::Share, 1.0, "100 %");
}

/// 2 March 2026, 08:00 UTC.
const EIGHT: i64 = 1_772_438_400_000_000;

#[test]
fn dates_and_times_follow_the_utc_offset() {
    assert_eq!(format_date(0, &|_| 0), "1 Jan 1970");
    assert_eq!(format_date(EIGHT, &|_| 17 * 3600), "3 Mar 2026");
    assert_eq!(format_time_of_day(EIGHT - 1, &|_| -3600, true), "06:59:59");
    assert_eq!(
        format_time_of_day(i64::MIN, &|_| i64::MIN, false),
        format_time_of_day(i64::MIN, &|_| i64::MIN, false)
    );
}

#[test]
fn a_figure_has_its_labels_and_tooltips() {
    let bar = |name: &str, value: f64| ChartBar {
        name: name.into(),
        x_start: 0.0,
        values: vec![value],
        label: format!("<{value}>"),
    };
    let chart = BarChart {
        x_axis: ChartAxis::linear("things", MeasureUnit::Count),
        series: vec![(ColourRole::First, "all".into())],
        bars: vec![bar("one", 3.0), bar("a name that is much too long for a narrow screen", 0.0)],
    };
    let html = render_figure("Title & more", "About", &chart);
    for part in
        ["Title &amp; more", "About", "things", "&lt;3&gt;", "<title>one - all: 3</title>", "…"]
    {
        assert!(html.contains(part), "{part} in {html}");
    }
    let nothing = BarChart { bars: Vec::new(), ..chart };
    assert!(!render_figure("", "", &nothing).contains("NaN"));
}

/// Points have their value as a tooltip, marks have the names that the chart gives them, and
/// nothing is drawn outside the picture.
#[test]
fn a_polyline_chart_compares_series() {
    let line = |name: &str, colour, points: &[(f64, f64)]| Polyline {
        name: name.into(),
        colour,
        points: points.to_vec(),
    };
    let check = |x_axis: ChartAxis<'static>, y_axis: ChartAxis<'static>, tooltip: &str| {
        let chart = PolylineChart {
            x_axis,
            x_marks: vec![(100.0, "hundred".into()), (12_800.0, "12,800".into())],
            y_axis,
            lines: vec![
                line("a < b", ColourRole::First, &[(100.0, 900.0), (12_800.0, 2.5e6)]),
                line("c", ColourRole::Reference, &[(100.0, 40_000.0)]),
            ],
        };
        let html = render_figure("Title", "", &chart);
        for part in [">hundred<", ">12,800<", tooltip, "<span class=\"c5\">"] {
            assert!(html.contains(part), "{part} in {html}");
        }
        for at in html.split("cy=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!((0.0..280.0).contains(&at.parse::<f64>().unwrap()), "{at}");
        }
        assert!(!html.contains("NaN") && !html.contains("inf"));
    };
    let log = ChartAxis::log("contacts", MeasureUnit::Count);
    let linear = ChartAxis::linear("contacts", MeasureUnit::Count);
    let tooltip = "<title>a &lt; b: 12,800, 2.5 ms</title>";
    check(log.clone(), ChartAxis::log("", MeasureUnit::Nanoseconds), tooltip);
    check(linear, ChartAxis::linear("", MeasureUnit::Nanoseconds), tooltip);
    let nothing =
        PolylineChart { x_axis: log.clone(), x_marks: Vec::new(), y_axis: log, lines: Vec::new() };
    assert!(!render_figure("", "", &nothing).contains("NaN"));
}
