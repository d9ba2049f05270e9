//! Drawing: lines over a logarithmic or a plain axis, as SVG.
//!
//! It knows nothing of contacts. Each of those compared has its colour, its mark and its dashes, so
//! that nobody has to tell colours apart; and the picture brings its own ground, which follows the
//! reader's choice of light or dark.

use std::fmt::{Error, Write as _};

const CHART_WIDTH_PIXELS: f64 = 720.0;
const CHART_HEIGHT_PIXELS: f64 = 400.0;
/// Room at the left, right, top and bottom.
const MARGINS_PIXELS: [f64; 4] = [76.0, 196.0, 58.0, 52.0];

/// Classes `c0` to `c4` are those compared, in their order: blue, vermilion, green, grey, purple.
const CHART_CSS: &str = "<style>\
    .ground{fill:#fff}.grid{stroke:#ddd}text{fill:#222}.faint{fill:#555}\
    .c0{--c:#0072b2}.c1{--c:#d55e00}.c2{--c:#00805c}.c3{--c:#666}.c4{--c:#9a4f86}\
    .line{stroke:var(--c);fill:none;stroke-width:2}.mark{fill:var(--c)}\
    @media(prefers-color-scheme:dark){.ground{fill:#16181c}.grid{stroke:#383c44}text{fill:#e8e8e8}.faint{fill:#aaa}\
    .c0{--c:#56b4e9}.c1{--c:#ff9040}.c2{--c:#3fd0a0}.c3{--c:#a8a8a8}.c4{--c:#e09acb}}\
    </style>";
const DASH_PATTERNS: [&str; 5] = ["none", "none", "8 3", "2 4", "5 2 1 2"];

/// A line of a chart.
pub(crate) struct BenchLine {
    pub(crate) name: &'static str,
    /// Which colour, mark and dashes.
    pub(crate) style_index: usize,
    /// Where, and the value.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A chart: what it shows, and how numbers are written.
pub(crate) struct BenchChart<'a> {
    pub(crate) title: &'a str,
    /// The unit of its values.
    pub(crate) about: &'a str,
    /// The lower axis: its name, and a mark and its name for each position.
    pub(crate) x_label: &'a str,
    pub(crate) x_marks: Vec<(f64, String)>,
    /// Both axes are logarithmic, or neither.
    pub(crate) is_logarithmic: bool,
    pub(crate) format_value: fn(f64) -> String,
    pub(crate) lines: &'a [BenchLine],
}

/// From a span of values onto a span of the picture.
struct BenchAxis {
    is_logarithmic: bool,
    min: f64,
    max: f64,
    start_pixel: f64,
    end_pixel: f64,
}

impl BenchAxis {
    fn transform(&self, value: f64) -> f64 {
        if self.is_logarithmic { value.log10() } else { value }
    }

    fn position(&self, value: f64) -> f64 {
        let (low, high) = (self.transform(self.min), self.transform(self.max));
        let share = (self.transform(value) - low) / (high - low).max(1e-9);
        self.start_pixel + share * (self.end_pixel - self.start_pixel)
    }
}

/// 1, 2 and 5 times powers of ten, from the last one before the least value to the first one behind
/// the greatest.
fn nice_steps(least: f64, greatest: f64) -> Vec<f64> {
    let first = least.log10().floor() as i32;
    let all: Vec<f64> = (first..first + 20)
        .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)))
        .collect();
    let before = all.iter().rposition(|step| *step <= least * 1.001).unwrap_or(0);
    let behind = all.iter().position(|step| *step >= greatest * 0.999).unwrap_or(all.len() - 1);
    all[before..=behind.max(before + 1)].to_vec()
}

/// The values that are written beside the picture.
fn axis_marks(least: f64, greatest: f64, logarithmic: bool) -> Vec<f64> {
    if !logarithmic {
        let step = nice_steps(greatest / 6.0, greatest / 6.0)[1];
        return (0..=(greatest / step).ceil() as u32)
            .map(|times| f64::from(times) * step)
            .collect();
    }
    let marks = nice_steps(least, greatest);
    if marks.len() <= 9 {
        return marks;
    }
    // Over that many, powers of ten alone.
    let [first, last] = [least.log10().floor() as i32, greatest.log10().ceil() as i32];
    (first..=last).map(|power| 10f64.powi(power)).collect()
}

/// Draws it.
pub(crate) fn draw_chart(chart: &BenchChart<'_>) -> Result<String, Error> {
    let [left, right, top, bottom] = MARGINS_PIXELS;
    let values = || chart.lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let greatest = values().fold(f64::MIN_POSITIVE, f64::max);
    let marks = axis_marks(values().fold(greatest, f64::min), greatest, chart.is_logarithmic);
    let places: Vec<f64> = chart.x_marks.iter().map(|place| place.0).collect();
    let over = |marks: &[f64], from, to| BenchAxis {
        is_logarithmic: chart.is_logarithmic,
        min: marks.iter().copied().fold(f64::INFINITY, f64::min),
        max: marks.iter().copied().fold(0.0, f64::max),
        start_pixel: from,
        end_pixel: to,
    };
    let x = over(&places, left + 12.0, CHART_WIDTH_PIXELS - right - 12.0);
    let y = over(&marks, CHART_HEIGHT_PIXELS - bottom, top);
    let mut out = String::new();
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {CHART_WIDTH_PIXELS} {CHART_HEIGHT_PIXELS}\" width=\"{CHART_WIDTH_PIXELS}\" height=\"{CHART_HEIGHT_PIXELS}\" \
         font-family=\"sans-serif\" font-size=\"12\">{CHART_CSS}\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
         <text x=\"16\" y=\"22\" font-size=\"15\">{}</text>\n<text class=\"faint\" x=\"16\" y=\"40\">{}</text>",
        escape_xml(chart.title),
        escape_xml(chart.about)
    )?;
    draw_grid(&mut out, chart, &marks, &x, &y)?;
    for (number, line) in chart.lines.iter().enumerate() {
        draw_line(&mut out, line, number, &x, &y)?;
    }
    writeln!(out, "</svg>")?;
    Ok(out)
}

fn draw_grid(
    out: &mut String,
    chart: &BenchChart<'_>,
    marks: &[f64],
    x: &BenchAxis,
    y: &BenchAxis,
) -> Result<(), Error> {
    let [left, right, top, bottom] = MARGINS_PIXELS;
    let (end, floor) = (CHART_WIDTH_PIXELS - right, CHART_HEIGHT_PIXELS - bottom);
    for value in marks {
        let at = y.position(*value);
        writeln!(
            out,
            "<path class=\"grid\" d=\"M{left} {at:.1}H{end}\"/>\n\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 8.0,
            at + 4.0,
            (chart.format_value)(*value)
        )?;
    }
    for (value, name) in &chart.x_marks {
        let at = x.position(*value);
        writeln!(
            out,
            "<path class=\"grid\" d=\"M{at:.1} {top}V{floor}\"/>\n\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            floor + 18.0,
            escape_xml(name)
        )?;
    }
    writeln!(
        out,
        "<text class=\"faint\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(left, end),
        CHART_HEIGHT_PIXELS - 12.0,
        escape_xml(chart.x_label)
    )
}

/// The line, and its entry at the right.
fn draw_line(
    out: &mut String,
    line: &BenchLine,
    number: usize,
    x: &BenchAxis,
    y: &BenchAxis,
) -> Result<(), Error> {
    let dashes = DASH_PATTERNS[line.style_index % DASH_PATTERNS.len()];
    let (at, height) = (
        CHART_WIDTH_PIXELS - MARGINS_PIXELS[1] + 14.0,
        MARGINS_PIXELS[2] + 10.0 + 22.0 * number as f64,
    );
    let mut path = String::new();
    writeln!(out, "<g class=\"c{}\">", line.style_index)?;
    for (number, (place, value)) in line.points.iter().enumerate() {
        let (across, down) = (x.position(*place), y.position(*value));
        write!(path, "{}{across:.1} {down:.1}", if number == 0 { 'M' } else { 'L' })?;
        writeln!(
            out,
            "<path class=\"mark\" d=\"{}\"/>",
            mark_path(line.style_index, across, down)
        )?;
    }
    let end = at + 30.0;
    writeln!(
        out,
        "<path class=\"line\" stroke-dasharray=\"{dashes}\" d=\"{path}\"/>\n\
         <path class=\"line\" stroke-dasharray=\"{dashes}\" d=\"M{at} {height}H{end}\"/>\n\
         <path class=\"mark\" d=\"{}\"/>\n<text x=\"{}\" y=\"{}\">{}</text>\n</g>",
        mark_path(line.style_index, at + 15.0, height),
        at + 38.0,
        height + 4.0,
        escape_xml(line.name)
    )
}

/// A circle, a square, a triangle, a diamond, a triangle on its head.
fn mark_path(style: usize, x: f64, y: f64) -> String {
    match style {
        0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", x - 4.0),
        1 => format!("M{:.1} {:.1}h8v8h-8z", x - 4.0, y - 4.0),
        2 => format!("M{x:.1} {:.1}l5 9h-10z", y - 6.0),
        3 => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0),
        _ => format!("M{x:.1} {:.1}l5 -9h-10z", y + 6.0),
    }
}

fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
