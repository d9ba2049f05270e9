//! Charts: the format of numbers on axes, and the texts of a figure.

use larder_measure::chart::{
    BarChart, Chart as _, ChartAxis, ChartBar, ChartMark, ColourRole, HistogramBucket,
    HistogramChart, HistogramSeries, MeasureUnit, PhaseAxes, Polyline, PolylineChart,
    StackedAreaChart, StepChart, StepDotChart, StepLine, format_date, format_time_of_day,
    render_figure,
};

#[track_caller]
fn assert_formats(
    format: fn(MeasureUnit, f64) -> String,
    expected: &[(MeasureUnit, f64, &'static str)],
) {
    for (unit, value, text) in expected {
        assert_eq!(format(*unit, *value), *text);
    }
}

#[test]
fn numbers_are_formatted_with_their_unit() {
    assert_formats(
        MeasureUnit::format,
        &[
            (MeasureUnit::Count, 0.0, "0"),
            (MeasureUnit::Count, 1_234_567.0, "1,234,567"),
            (MeasureUnit::Count, 2.5, "2.5"),
            (MeasureUnit::Count, 12.5, "13"),
            (MeasureUnit::Bytes, 0.0, "0 bytes"),
            (MeasureUnit::Bytes, 1.0, "1 byte"),
            (MeasureUnit::Bytes, 1000.0, "1 kB"),
            (MeasureUnit::Bytes, 123_456.0, "123 kB"),
            (MeasureUnit::Time, 0.0, "0 µs"),
            (MeasureUnit::Time, 999.9, "1 ms"),
            (MeasureUnit::Time, 1234.0, "1.2 ms"),
            (MeasureUnit::Time, 59.0 * 1e6, "59 s"),
            (MeasureUnit::Time, 90.0 * 1e6, "1.5 min"),
            (MeasureUnit::Time, 86_400.0 * 2e6, "2 days"),
            (MeasureUnit::Nanoseconds, 134.0, "134 ns"),
            (MeasureUnit::Nanoseconds, 2.54e6, "2.5 ms"),
            (MeasureUnit::Share, 0.015, "1.5 %"),
            (MeasureUnit::Share, 0.985, "99 %"),
            (MeasureUnit::Share, 0.9951, "99.5 %"),
            (MeasureUnit::Share, 1.0, "100 %"),
        ],
    );
}

#[test]
fn compared_numbers_have_three_digits() {
    assert_formats(
        MeasureUnit::format_precisely,
        &[
            (MeasureUnit::Count, 0.0, "0"),
            (MeasureUnit::Count, 1_234_567.4, "1,234,567"),
            (MeasureUnit::Count, 0.3294, "0.329"),
            (MeasureUnit::Count, 9.996, "10.0"),
            (MeasureUnit::Nanoseconds, 1.3e9, "1.30 s"),
            (MeasureUnit::Bytes, 52e6, "52 MB"),
            (MeasureUnit::Bytes, 12.34e3, "12.3 kB"),
            (MeasureUnit::Share, 0.1234, "12.3 %"),
        ],
    );
}

/// Zero is the same in all units, and the key of a line has its dashes.
#[test]
fn an_axis_begins_at_zero_without_a_unit() {
    let points = vec![(0.0, 2e6), (2.5e6, 5e6)];
    let chart = StepChart {
        axes: PhaseAxes {
            x_axis: ChartAxis::linear("time", MeasureUnit::Time),
            x_range: (0.0, 3e6),
            y_axis: ChartAxis::linear("memory", MeasureUnit::Bytes),
            marks: Vec::new(),
        },
        min_y_max: 1.0,
        lines: vec![step_line("one", points.clone()), step_line("two", points)],
    };
    let html = render_figure("Title", "", &chart);
    assert!(html.contains(">0<") && !html.contains(">0 µs<") && !html.contains(">0 bytes<"));
    let key = "<path class=\"line\" stroke-dasharray=\"7 3\" d=\"M0 4h26\"/></svg>two";
    assert!(html.contains(key), "{html}");
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

/// Each place has the values of all series as a tooltip, marks have the names that the chart gives
/// them, and nothing is drawn outside the picture.
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
    let tooltip = "<title>hundred - a &lt; b: 900 ns, c: 40 µs</title>";
    check(log.clone(), ChartAxis::log("", MeasureUnit::Nanoseconds), tooltip);
    check(linear, ChartAxis::linear("", MeasureUnit::Nanoseconds), tooltip);
    let nothing =
        PolylineChart { x_axis: log.clone(), x_marks: Vec::new(), y_axis: log, lines: Vec::new() };
    assert!(!render_figure("", "", &nothing).contains("NaN"));
}

fn step_chart(lines: Vec<StepLine>, marks: Vec<ChartMark>) -> StepChart<'static> {
    StepChart {
        axes: PhaseAxes {
            x_axis: ChartAxis::linear("calls", MeasureUnit::Count),
            x_range: (0.0, 1e6),
            y_axis: ChartAxis::linear("memory", MeasureUnit::Bytes),
            marks,
        },
        min_y_max: 1.0,
        lines,
    }
}

fn step_line(name: &str, points: Vec<(f64, f64)>) -> StepLine {
    let colour = ColourRole::First;
    StepLine { name: name.into(), colour, is_filled: false, points, lows: Vec::new(), end: None }
}

/// A run that is shorter than another has no memory after its end.
#[test]
fn a_line_ends_where_its_values_do() {
    let line = step_line("live", vec![(0.0, 5e6), (5e5, 0.0)]);
    let path_end = |end| {
        let chart = step_chart(vec![StepLine { end, ..line.clone() }], Vec::new());
        let picture = chart.draw(860.0).unwrap();
        let path = picture.split("class=\"line\"").nth(1).unwrap().split('"').nth(3).unwrap();
        path.rsplit('H').next().unwrap().split('V').next().unwrap().parse::<f64>().unwrap()
    };
    let (whole, half) = (path_end(None), path_end(Some(5e5)));
    assert!(half > 0.4 * whole && half < 0.6 * whole, "{half} of {whole}");
}

/// Returns the attribute of an element.
fn attribute(element: &str, name: &str) -> Option<f64> {
    let rest = element.split(&format!(" {name}=\"")).nth(1)?;
    rest.split('"').next()?.parse().ok()
}

/// However many phases there are, their names do not overlap and stay in the picture, and no line
/// goes through a name.
#[test]
fn the_names_of_phases_do_not_overlap() {
    for (count, spread) in [(1, 1.0), (9, 0.05), (12, 1.0), (40, 1.0), (1000, 1.0), (30, 0.001)] {
        let mark = |number: u32| ChartMark {
            at: 1e6 * (1.0 - spread * f64::from(count - number) / f64::from(count)),
            name: "phase of ".to_string() + &"work ".repeat(number as usize % 9),
        };
        let chart =
            step_chart(vec![step_line("live", vec![(0.0, 5e6)])], (0..count).map(mark).collect());
        for width in [860.0, 360.0] {
            let picture = chart.draw(width).unwrap();
            let mut names: Vec<(f64, f64, f64)> = Vec::new();
            for element in picture.split('<').filter(|part| part.contains("class=\"faint\"")) {
                let text = element.split('>').nth(1).unwrap();
                if text.starts_with("phase") {
                    let left = attribute(element, "x").unwrap();
                    let right = left + text.chars().count() as f64 * 6.0;
                    names.push((left, right, attribute(element, "y").unwrap()));
                }
            }
            assert!(!names.is_empty(), "{count} in {width}");
            for (number, (left, right, top)) in names.iter().enumerate() {
                assert!(*left >= 0.0 && *right <= width, "{left} to {right} of {width}");
                let others = &names[number + 1..];
                let overlaps = |other: &&(f64, f64, f64)| {
                    (other.2 - top).abs() < 12.0 && other.0 < *right && other.1 > *left
                };
                assert_eq!(others.iter().find(overlaps), None, "{count} in {width}");
                for line in picture.split('<').filter(|part| part.contains("class=\"mark\"")) {
                    let place = line.split("d=\"M").nth(1).unwrap();
                    let (at, rest) = place.split_once(' ').unwrap();
                    let begin: f64 = rest.split('V').next().unwrap().parse().unwrap();
                    let at: f64 = at.parse().unwrap();
                    let crosses = at > *left && at < *right && begin < top - 10.0;
                    assert!(!crosses, "{count} in {width}: a line at {at}, a name at {left}");
                }
            }
        }
    }
}

/// Wherever the pointer is in the plot, the values there are shown.
#[test]
fn hover_texts_cover_the_plot() {
    let lines = vec![
        step_line("live", vec![(0.0, 1e6), (250_000.0, 9e6), (250_100.0, 2e6)]),
        step_line("resident", vec![(0.0, 4e6), (500_000.0, 6e6)]),
    ];
    let marks = vec![ChartMark { at: 600_000.0, name: "write".into() }];
    let picture = step_chart(lines, marks).draw(860.0).unwrap();
    let strips: Vec<&str> = picture.split("<g class=\"touch\">").skip(1).collect();
    let mut end = 72.0;
    for strip in &strips {
        let rectangle = strip.split("<rect").nth(1).unwrap();
        assert!((attribute(rectangle, "x").unwrap() - end).abs() < 0.2);
        end += attribute(rectangle, "width").unwrap();
    }
    assert!((end - 846.0).abs() < 1.0, "{end}");
    let texts = |part: &str| strips.iter().filter(|strip| strip.contains(part)).count();
    // The peak is narrower than a strip.
    assert_eq!(texts("live: 9 MB"), 1);
    assert_eq!(texts("resident: 4 MB") + texts("resident: 6 MB"), strips.len());
    assert!(texts(" in write - live: 2 MB, resident: 6 MB") > 30);
}

/// A line of many points takes little room, and its extremes are in the picture.
#[test]
fn many_points_are_reduced_without_losing_extremes() {
    let value = |number: u32| match number {
        77_777 => 1e9,
        number => 4e8 + f64::from(number * 7919 % 100_000) * 1000.0,
    };
    let points = (0..100_000).map(|number| (f64::from(number) * 10.0, value(number))).collect();
    let picture = step_chart(vec![step_line("live", points)], Vec::new()).draw(860.0).unwrap();
    assert!(picture.len() < 120_000, "{}", picture.len());
    let path = picture.split("stroke-dasharray").nth(1).unwrap();
    assert!(path.contains("V10.0"), "the peak is at the top of the plot");
}

#[test]
fn a_legend_names_no_series_that_is_zero() {
    let lines = vec![
        step_line("live", vec![(0.0, 5e6)]),
        step_line("swapped", vec![(0.0, 0.0)]),
        step_line("resident", vec![(0.0, 6e6)]),
    ];
    let html = render_figure("Title", "", &step_chart(lines, Vec::new()));
    assert!(html.contains("</svg>live</span>") && !html.contains("swapped"), "{html}");
    let bar = |name: &str| ChartBar {
        name: name.into(),
        x_start: 0.0,
        values: vec![1.0, 0.0, 2.0],
        label: String::new(),
    };
    let series = ["run", "shared", "cached"].map(|name| (ColourRole::First, name.to_string()));
    let chart = BarChart {
        x_axis: ChartAxis::linear("answers", MeasureUnit::Count),
        series: series.into(),
        bars: vec![bar("one"), bar("two")],
    };
    let names: Vec<String> = chart.legend().into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["run", "cached"]);
    assert!(chart.draw(860.0).unwrap().contains("<title>one - run: 1, cached: 2</title>"));
}

/// Of many points in a pixel, the one with the highest sum is drawn, and its parts are in the text.
#[test]
fn stacked_areas_keep_the_highest_sum() {
    let point = |number: u32| {
        let highest = if number == 54_321 { 7e6 } else { 0.0 };
        (f64::from(number), vec![1e6, highest, 0.0])
    };
    let series = ["low", "high", "none"].map(String::from);
    let chart = StackedAreaChart {
        axes: PhaseAxes {
            x_axis: ChartAxis::linear("calls", MeasureUnit::Count),
            x_range: (0.0, 100_000.0),
            y_axis: ChartAxis::linear("memory", MeasureUnit::Bytes),
            marks: vec![ChartMark { at: 50_000.0, name: "phase".into() }],
        },
        series: [ColourRole::First, ColourRole::Second, ColourRole::Third]
            .into_iter()
            .zip(series)
            .collect(),
        points: (0..100_000).map(point).collect(),
    };
    let figure = render_figure("Memory", "", &chart);
    assert!(figure.contains(">8 MB</text>"), "{figure}");
    // A part that is nowhere more than 0 has no area.
    assert_eq!(figure.matches(" part\"").count(), 4, "{figure}");
    assert!(figure.contains(" in phase - 8 MB: low: 1 MB, high: 7 MB</title>"), "{figure}");
    assert!(figure.contains(" - 1 MB: low: 1 MB</title>"), "{figure}");
    assert!(figure.len() < 120_000, "{}", figure.len());
    // Strips of 8 pixels, from end to end in both widths.
    assert_eq!(figure.matches("class=\"touch\"").count(), 97 + 35, "{figure}");
}

/// Values that are known at some points only are dots, and hover texts have them only there.
#[test]
fn dots_hold_at_their_points_only() {
    let steps = StepChart {
        axes: PhaseAxes {
            x_axis: ChartAxis::linear("time", MeasureUnit::Count),
            x_range: (0.0, 100.0),
            y_axis: ChartAxis::linear("bytes", MeasureUnit::Count),
            marks: Vec::new(),
        },
        min_y_max: 1.0,
        lines: vec![step_line("all", vec![(0.0, 5.0)])],
    };
    let dots = vec![step_line("some", vec![(1.0, 2.0), (1.1, 3.0), (90.0, 4.0)])];
    let drawn = StepDotChart { steps, dots }.draw(600.0).unwrap();
    assert_eq!(drawn.matches("r=\"2\"").count(), 2, "{drawn}");
    assert_eq!(drawn.matches("some: ").count(), 2, "{drawn}");
    assert!(drawn.matches("all: ").count() > 20, "{drawn}");
}

/// One occurrence is more than nothing, also beside a million.
#[test]
fn one_occurrence_is_a_bar() {
    let bucket = |start, count| HistogramBucket { start, end: start * 2.0, count };
    let chart = HistogramChart {
        x_axis: ChartAxis::log("bytes", MeasureUnit::Bytes),
        y_axis: ChartAxis::log_count("requests"),
        series: vec![HistogramSeries {
            name: "log".into(),
            colour: ColourRole::First,
            buckets: vec![bucket(10.0, 1.0), bucket(100.0, 1e6)],
        }],
    };
    let drawn = chart.draw(860.0).unwrap();
    let heights: Vec<f64> = drawn
        .split(" height=\"")
        .skip(2)
        .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
        .collect();
    assert!(heights[0] >= 8.0 && heights[1] > heights[0], "{heights:?}");
}

/// The marks of large numbers fit beside the axis, and a line begins where its first value is.
#[test]
fn a_line_of_large_numbers_has_readable_marks() {
    let line = StepLine {
        name: "rows".into(),
        colour: ColourRole::First,
        is_filled: false,
        points: vec![(50.0, 3e11), (60.0, 4e11)],
        lows: Vec::new(),
        end: None,
    };
    let chart = StepChart {
        axes: PhaseAxes {
            x_axis: ChartAxis::linear("calls", MeasureUnit::Count),
            x_range: (0.0, 100.0),
            y_axis: ChartAxis::linear("rows", MeasureUnit::Count),
            marks: Vec::new(),
        },
        min_y_max: 1.0,
        lines: vec![line],
    };
    let drawn = chart.draw(860.0).unwrap();
    assert!(drawn.contains(">400 G</text>") && !drawn.contains(",000,000</text>"), "{drawn}");
    let path = drawn.split("class=\"line\"").nth(1).unwrap();
    let path = path.split(" d=\"M").nth(1).unwrap().split('"').next().unwrap();
    assert!(path.split_once('H').unwrap().1.contains('V'), "{path}");
    assert_eq!(path.matches('V').count(), 1, "{path}");
}
