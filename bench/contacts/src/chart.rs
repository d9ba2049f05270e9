//! Charts: a figure against the number of contacts, both logarithmic, a line for each of those compared.

use crate::Outcome;
use crate::table::{Figures, ROWS, is_shared, short};
use std::fmt::Write as _;
use std::path::Path;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
/// Room at the left, right, top and bottom.
const ROOM: [f64; 4] = [80.0, 120.0, 40.0, 50.0];
const COLOURS: [(&str, &str); 4] =
    [("larder", "#1b6ca8"), ("eds", "#c0392b"), ("eds-direct", "#e08e0b"), ("floor", "#777777")];

/// A line of a chart.
struct Line {
    who: &'static str,
    colour: &'static str,
    /// Number of contacts, and the value.
    points: Vec<(f64, f64)>,
}

/// Writes a file for each row, and for each of the rows of memory.
pub(crate) fn write(figures: &Figures, dir: &Path) -> Outcome<()> {
    std::fs::create_dir_all(dir)?;
    let mut rows: Vec<(String, String, f64)> = Vec::new();
    for &(row, name, _) in ROWS {
        let name = format!("{name}, µs of wall time");
        rows.push((row.to_string(), name, 1e3));
    }
    for kind in ["rss", "pss", "vms", "anonymous"] {
        let name = format!("memory per contact ({kind}), bytes, without those of the empty book");
        rows.push((format!("memory-{kind}"), name, 1.0));
    }
    for (row, name, unit) in rows {
        let mut lines = Vec::new();
        for (who, colour) in COLOURS {
            let mut points: Vec<(f64, f64)> = figures
                .iter()
                .filter(|((by, _, of), figure)| by == who && *of == row && figure.median > 0.0)
                .map(|((_, n, _), figure)| {
                    let share = if is_shared(&row) { figure.hits.max(1.0) } else { 1.0 };
                    (*n as f64, figure.median / unit / share)
                })
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            if !points.is_empty() {
                lines.push(Line { who, colour, points });
            }
        }
        if !lines.is_empty() {
            let file = format!("{}.svg", row.replace('/', "-of-at-most-"));
            std::fs::write(dir.join(file), svg(&name, &lines)?)?;
        }
    }
    Ok(())
}

/// An axis: from a power of ten to another, onto a span of the picture.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Axis {
        let low = values.clone().fold(f64::INFINITY, f64::min).log10().floor();
        let high = values.fold(0.0, f64::max).log10().ceil().max(low + 1.0);
        Axis { low, high, from, to }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value.log10() - self.low) / (self.high - self.low);
        self.from + share * (self.to - self.from)
    }

    fn powers(&self) -> impl Iterator<Item = f64> + use<> {
        (self.low as i32..=self.high as i32).map(|power| 10f64.powi(power))
    }
}

fn svg(title: &str, lines: &[Line]) -> Result<String, std::fmt::Error> {
    let [left, right, top, bottom] = ROOM;
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let x = Axis::over(points().map(|point| point.0), left, WIDTH - right);
    let y = Axis::over(points().map(|point| point.1), HEIGHT - bottom, top);
    let mut out = String::new();
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{left}\" y=\"22\" font-size=\"14\">{title}</text>"
    )?;
    for value in y.powers() {
        let (at, end, before) = (y.place(value), WIDTH - right, left - 8.0);
        writeln!(
            out,
            "<path d=\"M{left} {at:.1}H{end}\" stroke=\"#dddddd\"/>\n\
             <text x=\"{before}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            at + 4.0,
            short(value)
        )?;
    }
    for value in x.powers() {
        let (at, end, below) = (x.place(value), HEIGHT - bottom, HEIGHT - bottom + 18.0);
        writeln!(
            out,
            "<path d=\"M{at:.1} {top}V{end}\" stroke=\"#dddddd\"/>\n\
             <text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{value}</text>"
        )?;
    }
    let (middle, below) = ((left + WIDTH - right) / 2.0, HEIGHT - 12.0);
    writeln!(out, "<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">contacts</text>")?;
    for (place, Line { who, colour, points }) in lines.iter().enumerate() {
        let mut path = String::new();
        for (number, (n, value)) in points.iter().enumerate() {
            let (step, at, height) =
                (if number == 0 { 'M' } else { 'L' }, x.place(*n), y.place(*value));
            write!(path, "{step}{at:.1} {height:.1}")?;
            writeln!(out, "<circle cx=\"{at:.1}\" cy=\"{height:.1}\" r=\"3\" fill=\"{colour}\"/>")?;
        }
        let (at, height) = (WIDTH - right + 12.0, top + 18.0 * (place as f64 + 1.0));
        writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n\
             <text x=\"{at}\" y=\"{height}\" fill=\"{colour}\">{who}</text>"
        )?;
    }
    writeln!(out, "</svg>")?;
    Ok(out)
}
