//! The HTML report of a query log is self-contained; timelines and histograms are bounded.

use crate::generated_log;
use crate::query_log::{log, report};
use larder_measure::chart::MeasureUnit;
use larder_measure::query_log::comparison::format_change;
use larder_measure::query_log::histogram::Histogram;
use larder_measure::query_log::render_html;
use larder_measure::query_log::timeline::{Timeline, TimelineBucket};

/// The page loads nothing, runs no scripts, and closes each element.
#[test]
fn a_page_is_self_contained() {
    let day = report(&generated_log::day());
    for html in [
        render_html(("a", &day), None, &|_| 0),
        render_html(("a", &day), Some(("b", &day)), &|_| 0),
    ] {
        let without = html.replace("http://www.w3.org/2000/svg", "");
        for word in
            ["http", "url(", "@import", "<script", "<link", "<img", "src=", "NaN", "\"inf", " inf "]
        {
            assert!(!without.contains(word), "{word}");
        }
        for name in
            ["svg", "g", "figure", "table", "tr", "td", "div", "title", "text", "p", "h2", "dl"]
        {
            let open = html.matches(&format!("<{name}>")).count()
                + html.matches(&format!("<{name} ")).count();
            assert_eq!(open, html.matches(&format!("</{name}>")).count(), "{name}");
        }
        assert!(html.len() < 1_000_000, "{}", html.len());
        assert!(html.contains("</h1>\n<p class=\"faint\">For developers"));
    }
    let nothing = render_html(("empty", &report("")), None, &|_| 0);
    assert!(nothing.contains("No queries.") && !nothing.contains("NaN"));
}

/// Two logs are compared in a chart, and in words.
#[test]
fn a_comparison_has_a_chart_and_words() {
    let day = report(&generated_log::day());
    let html = render_html(("a", &day), Some(("b", &day)), &|_| 0);
    assert!(html.contains("<b>The figures of both logs</b>") && html.contains(">same<"));
    let check = |before: f64, after: f64, unit, expect: &str| {
        assert_eq!(format_change(before, after, unit), expect);
    };
    check(9.3, 1.0, MeasureUnit::Time, "9.3 times faster");
    check(1.0, 3.0, MeasureUnit::Time, "3 times slower");
    check(557.0, 2.6, MeasureUnit::Count, "214 times less");
    check(10.0, 12.0, MeasureUnit::Bytes, "+20 %");
    check(0.0, 1.0, MeasureUnit::Count, "was 0");
    check(1.0, 0.0, MeasureUnit::Count, "now 0");
}

/// Key figures fill their rows on wide and on narrow screens.
#[test]
fn key_figures_make_whole_rows() {
    let day = report(&generated_log::day());
    let html = render_html(("a", &day), None, &|_| 0);
    let tiles = html.matches("<dt>").count();
    let columns = html.split("--columns:").nth(1).and_then(|rest| rest.split('"').next());
    let columns: usize = columns.unwrap().parse().unwrap();
    assert!(
        tiles.is_multiple_of(columns) && tiles.is_multiple_of(2),
        "{tiles} in {columns} columns"
    );
}

/// Some programs connect as a new client for each view.
#[test]
fn clients_beyond_the_limit_share_a_band() {
    let click = |it: u64| {
        let close = it * 1000;
        format!("{it} 1 open view={it} client=c{it}\n{close} 1 close view={it} client=c{it}\n")
    };
    let lines: String = (1..500).map(click).collect();
    let html = render_html(("x", &report(&log(&lines))), None, &|_| 0);
    assert!(
        html.contains(">285 others<"),
        "300 lifelines are shown; 15 clients have their own bands"
    );
}

#[derive(Default)]
struct Sum(u64);

impl TimelineBucket for Sum {
    fn merge(&mut self, later: Sum) {
        self.0 += later.0;
    }
}

#[test]
fn a_timeline_has_a_limited_number_of_buckets() {
    let check = |moments: &[i64], width: i64| {
        let mut line: Timeline<Sum> = Timeline::new(10);
        for at in moments {
            line.bucket_at(*at).0 += 1;
        }
        assert_eq!(line.bucket_width_micros, width, "{moments:?}");
        assert!(line.buckets().count() <= 10);
        assert_eq!(line.buckets().map(|(_, sum)| sum.0).sum::<u64>(), moments.len() as u64);
    };
    check(&[], 1000);
    check(&[5, 6, 9999], 1000);
    check(&[5, 10_000], 10_000);
    check(&[0, 3600 * 1_000_000], 15 * 60 * 1_000_000);
    check(&[24 * 3600 * 1_000_000, 0], 6 * 3600 * 1_000_000);
    check(&[i64::MAX, i64::MIN, 0], (7 * 86_400_000_000) << 22);
}

#[test]
fn the_quantiles_of_a_histogram_have_a_bounded_error() {
    let mut spread = Histogram::default();
    assert_eq!(
        (spread.mean(), spread.quantile(0.5), spread.cumulative_shares().len()),
        (0.0, 0, 0)
    );
    for value in (0..=1000).chain([u64::MAX]) {
        spread.add(value);
    }
    assert_eq!(
        (spread.quantile(0.0), spread.quantile(0.01), spread.quantile(1.0)),
        (0, 10, u64::MAX)
    );
    let median = spread.quantile(0.5);
    assert!((500..=516).contains(&median), "{median}");
    let curve = spread.cumulative_shares();
    assert!(curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
    assert_eq!(curve.last().unwrap().1, 1.0);
}
