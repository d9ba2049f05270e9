//! Charts for people: SVG in an HTML figure, with title, legend, and labelled axes.
//!
//! A chart is independent of its subject and needs only the enclosing page (see
//! [`crate::html_page`]): no script, font or network. Each chart is drawn in two widths, wide and
//! narrow, and the page shows the one that fits, because a scaled picture is unreadable. A
//! `<title>` shows the values under the pointer. Colours are classes that the page defines for
//! light and dark; the legend names their meaning.
//!
//! The project draws charts itself because a chart takes a hundred lines, and chart crates are
//! larger than this program.

mod axis;
mod bars;
mod flame_graph;
mod histogram;
mod hover;
mod lifelines;
mod line_columns;
mod lines;
mod marks;
mod phase_axes;
mod polylines;
mod ranges;
mod stacked_areas;

pub(crate) use self::axis::format_count;
pub use self::axis::{
    AxisScale, ChartAxis, MeasureUnit, UtcOffsetFn, format_date, format_time_of_day,
};
pub use self::bars::{BarChart, ChartBar, ColumnChart};
pub use self::flame_graph::{FlameFrame, FlameGraph};
pub use self::histogram::{HistogramBucket, HistogramChart, HistogramSeries};
pub use self::lifelines::{Lifeline, LifelineBand, LifelineChart};
pub use self::line_columns::StepLine;
pub use self::lines::{StepChart, StepDotChart};
pub use self::marks::ChartMark;
pub use self::phase_axes::PhaseAxes;
pub use self::polylines::{Polyline, PolylineChart};
pub use self::ranges::{ChartRange, RangeChart};
pub use self::stacked_areas::StackedAreaChart;

use std::fmt::{self, Display};

/// The dashes of the lines of a chart, in their order, so that lines do not differ in colour alone.
const DASH_PATTERNS: [&str; 5] = ["none", "7 3", "2 3", "8 3 2 3", "4 2"];

/// The two widths of each chart, in pixels.
const CHART_WIDTHS_PIXELS: [(&str, f64); 2] = [("wide", 860.0), ("narrow", 360.0)];

/// The width of a column of an SVG file, in pixels.
const SVG_COLUMN_PIXELS: f64 = 440.0;

/// The colours. They can be told apart with most forms of colour blindness (Okabe and Ito), in
/// light and dark.
pub(crate) const PALETTE_CSS: &str = "\
:root{color-scheme:light dark;--ground:#fff;--text:#222;--faint:#5a5a5a;--line:#ddd;--box:#f5f6f8;\
--c0:#0072b2;--c1:#00805c;--c2:#9a4f86;--c3:#d5430e;--c4:#b07800;--c5:#8a8a8a}
@media(prefers-color-scheme:dark){:root{--ground:#16181c;--text:#e8e8e8;--faint:#aaa;--line:#383c44;--box:#1f2228;\
--c0:#56b4e9;--c1:#3fd0a0;--c2:#e09acb;--c3:#ff7d4d;--c4:#f0b429;--c5:#888}}
";

/// The styles of the parts of charts.
pub(crate) const CHART_CSS: &str = "\
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{--c:var(--c5)}
text{fill:var(--text);paint-order:stroke;stroke:var(--ground);stroke-width:2px}text.faint{fill:var(--faint)}text.title{font-weight:600;font-size:14px}
.grid{stroke:var(--line);fill:none}
.fill{fill:var(--c)}
.line{stroke:var(--c);fill:none;stroke-width:2}
.area{fill:var(--c);opacity:.2}
.life{stroke:var(--c);fill:none}
.range{fill:var(--c);opacity:.35}
.part{fill:var(--c);opacity:.9}
.phase{fill:var(--text);opacity:.05}
.mark{stroke:var(--faint);stroke-dasharray:2 3;fill:none}
.touch{opacity:0}.touch rect{fill:var(--text);opacity:.08}.touch:hover{opacity:1}
";

/// A colour, by its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColourRole {
    /// The first series: blue.
    First,
    /// The second series: green.
    Second,
    /// The third series: purple.
    Third,
    /// Errors: vermilion.
    Error,
    /// Warnings: amber.
    Warning,
    /// References for comparison: grey.
    Reference,
}

impl ColourRole {
    fn css_class(self) -> &'static str {
        match self {
            ColourRole::First => "c0",
            ColourRole::Second => "c1",
            ColourRole::Third => "c2",
            ColourRole::Error => "c3",
            ColourRole::Warning => "c4",
            ColourRole::Reference => "c5",
        }
    }
}

/// A chart that can be drawn in any width.
pub trait Chart {
    /// Draws the chart in a width in pixels.
    ///
    /// # Errors
    /// None: writing into a string does not fail.
    fn draw(&self, width: f64) -> Result<String, fmt::Error>;
    /// Returns the meaning of the colours; empty if there is only one.
    fn legend(&self) -> Vec<(ColourRole, String)>;
    /// Returns whether the series are lines, each with the dashes of its place in the legend.
    fn is_dashed(&self) -> bool {
        false
    }
}

/// Renders a chart as an HTML figure with title, caption and legend.
#[must_use]
pub fn render_figure(title: &str, about: &str, chart: &dyn Chart) -> String {
    let key = |number: usize| match chart.is_dashed() {
        true => format!(
            "<svg width=\"26\" height=\"8\"><path class=\"line\" stroke-dasharray=\"{}\" d=\"M0 4h26\"/></svg>",
            dash_pattern(number)
        ),
        false => "<i></i>".into(),
    };
    let legend: String = chart
        .legend()
        .iter()
        .enumerate()
        .map(|(number, (tone, name))| {
            let (class, key) = (tone.css_class(), key(number));
            format!("<span class=\"{class}\">{key}{}</span> ", XmlEscaped(name))
        })
        .collect();
    let mut out = format!("<figure>\n<figcaption><b>{}</b>", XmlEscaped(title));
    if !about.is_empty() {
        out.push_str(&format!("<br>{}", XmlEscaped(about)));
    }
    if !legend.is_empty() {
        out.push_str(&format!("<br><span class=\"legend\">{}</span>", legend.trim_end()));
    }
    out.push_str("</figcaption>\n");
    for (class, width) in CHART_WIDTHS_PIXELS {
        let label = XmlEscaped(title);
        let picture = chart.draw(width).unwrap_or_default();
        out.push_str(&format!(
            "<div class=\"{class}\" role=\"img\" aria-label=\"{label}\">{picture}</div>\n"
        ));
    }
    out.push_str("</figure>\n");
    out
}

/// Renders charts with their titles as one SVG file, in columns, readable in light and dark. The
/// page that shows the picture needs no styles of its own.
#[must_use]
pub fn render_svg_file(label: &str, columns: usize, charts: &[(&str, &dyn Chart)]) -> String {
    let (mut body, mut top, mut row_height) = (String::new(), 0.0, 0.0_f64);
    let width = columns as f64 * SVG_COLUMN_PIXELS;
    for (number, (title, chart)) in charts.iter().enumerate() {
        let column = number % columns.max(1);
        if column == 0 {
            top += row_height;
            row_height = 0.0;
        }
        let left = column as f64 * SVG_COLUMN_PIXELS;
        let (head, head_height) = svg_head(title, *chart);
        let picture = chart.draw(SVG_COLUMN_PIXELS - 16.0).unwrap_or_default();
        let height = svg_height(&picture) + head_height;
        row_height = row_height.max(height + 8.0);
        body.push_str(&format!(
            "<g transform=\"translate({left:.0} {top:.0})\">\n{head}\
             <g transform=\"translate(0 {head_height:.0})\">\n{picture}\n</g></g>\n"
        ));
    }
    let height = top + row_height;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{}\">\n\
         <style>\n{PALETTE_CSS}svg{{font:12px system-ui,sans-serif}}\n{CHART_CSS}</style>\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" rx=\"8\" fill=\"var(--ground)\"/>\n{body}</svg>\n",
        XmlEscaped(label)
    )
}

/// Returns the title and the legend of a chart in an SVG file, and their height.
fn svg_head(title: &str, chart: &dyn Chart) -> (String, f64) {
    let mut head = svg_text(12.0, 24.0, "start", "title", title);
    let (mut left, mut line) = (12.0, 44.0);
    let legend = chart.legend();
    for (number, (colour, name)) in legend.iter().enumerate() {
        let room = text_width_pixels(name) + 46.0;
        if left + room > SVG_COLUMN_PIXELS && left > 12.0 {
            (left, line) = (12.0, line + 18.0);
        }
        let (class, dashes) = (colour.css_class(), dash_pattern(number));
        head.push_str(&format!(
            "<path class=\"{class} line\" stroke-dasharray=\"{dashes}\" d=\"M{left:.0} {:.0}h24\"/>\n",
            line - 4.0
        ));
        head.push_str(&svg_text(left + 30.0, line, "start", "", name));
        left += room;
    }
    (head, if legend.is_empty() { 32.0 } else { line + 8.0 })
}

/// Returns the dashes of a line, by its number.
fn dash_pattern(number: usize) -> &'static str {
    DASH_PATTERNS.get(number % DASH_PATTERNS.len()).unwrap_or(&"none")
}

/// Returns the height that a drawn chart declares.
fn svg_height(picture: &str) -> f64 {
    let height = picture.split(" height=\"").nth(1).and_then(|rest| rest.split('"').next());
    height.and_then(|height| height.parse().ok()).unwrap_or_default()
}

/// The drawing area of a chart, inside the axes.
#[derive(Debug, Clone, Copy)]
struct PlotArea {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl PlotArea {
    /// Returns the area of a picture, with room for the lower axis and for `left` pixels at the
    /// left.
    fn new(width: f64, height: f64, left: f64) -> PlotArea {
        PlotArea { width, height, left, right: width - 14.0, top: 10.0, bottom: height - 44.0 }
    }

    fn svg_start_tag(&self) -> String {
        let PlotArea { width, height, .. } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\">\n"
        )
    }
}

/// Returns a text element: its position, its anchor (`start`, `middle`, `end`) and its classes.
fn svg_text(x: f64, y: f64, anchor: &str, class: &str, text: &str) -> String {
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>\n",
        XmlEscaped(text)
    )
}

/// Estimates the width of a text in pixels.
fn text_width_pixels(text: &str) -> f64 {
    let wide = |c: char| if c > '\u{2e7f}' { 12.0 } else { 6.6 };
    text.chars().map(wide).sum()
}

/// Cuts a text to a width in pixels.
fn truncate_to_width(text: &str, room: f64) -> String {
    if text_width_pixels(text) <= room {
        return text.to_string();
    }
    let (mut short, mut used) = (String::new(), 7.0);
    for c in text.chars() {
        used += text_width_pixels(c.encode_utf8(&mut [0; 4]));
        if used > room {
            break;
        }
        short.push(c);
    }
    short.push('…');
    short
}

/// A text escaped for HTML and XML, without the control characters that they do not allow.
pub(crate) struct XmlEscaped<'a>(pub(crate) &'a str);

impl Display for XmlEscaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => f.write_str(" ")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}
