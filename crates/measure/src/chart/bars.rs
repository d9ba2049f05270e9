//! Bars: standing ones over time, lying ones with names.

use crate::chart::axis::{Axis, Unit, end_of, marks_in};
use crate::chart::{Draw, Escaped, Plot, Tone, cut, text, width_of};
use std::fmt::{self, Write as _};

/// A bar: parts upon each other.
#[derive(Debug, Clone)]
pub struct Bar {
    /// What it is, or when it begins: the text of a row.
    pub name: String,
    /// When it begins: the place of a column.
    pub at: f64,
    /// Its parts, as many as there are series.
    pub values: Vec<f64>,
    /// What is said of it at its end, in place of its value.
    pub note: String,
}

/// Standing bars over time.
pub struct Columns<'a> {
    /// Along the time.
    pub along: Axis<'a>,
    /// The first and the last moment.
    pub from: (f64, f64),
    /// How wide a bar is, on that axis.
    pub wide: f64,
    /// What is counted.
    pub up: Axis<'a>,
    /// What the parts are.
    pub series: Vec<(Tone, String)>,
    /// The bars.
    pub bars: Vec<Bar>,
}

impl Draw for Columns<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        let plot = Plot::new(width, 240.0, 72.0);
        let most = self.bars.iter().map(|bar| bar.values.iter().sum()).fold(0.0, f64::max);
        let end = end_of(most, self.up.unit, 5.0);
        let x = self.along.laid(self.from.0, self.from.1, plot.left, plot.right);
        let y = self.up.laid(0.0, end, plot.bottom, plot.top);
        let mut out = plot.begin();
        y.left(&mut out, &plot)?;
        x.lower(&mut out, &plot)?;
        for bar in &self.bars {
            let (left, right) = (x.place(bar.at), x.place(bar.at + self.wide));
            let thick = (right - left - 1.0).max(1.0);
            let mut below = 0.0;
            writeln!(out, "<g><title>{}</title>", Escaped(&self.told(bar)))?;
            for (value, (tone, _)) in bar.values.iter().zip(&self.series) {
                let (foot, head) = (y.place(below), y.place(below + value));
                below += value;
                let (class, high) = (tone.class(), foot - head);
                if high > 0.0 {
                    writeln!(
                        out,
                        "<rect class=\"{class} fill\" x=\"{left:.1}\" y=\"{head:.1}\" width=\"{thick:.1}\" height=\"{high:.1}\"/>"
                    )?;
                }
            }
            out.push_str("</g>\n");
        }
        out.push_str("</svg>");
        Ok(out)
    }

    fn legend(&self) -> Vec<(Tone, String)> {
        self.series.clone()
    }
}

impl Columns<'_> {
    fn told(&self, bar: &Bar) -> String {
        told(&bar.name, &self.series, &bar.values, self.up.unit)
    }
}

fn told(name: &str, series: &[(Tone, String)], values: &[f64], unit: Unit) -> String {
    let parts: Vec<String> = values
        .iter()
        .zip(series)
        .map(|(value, (_, name))| format!("{name}: {}", unit.write(*value)))
        .collect();
    format!("{name} - {}", parts.join(", "))
}

/// Lying bars, each with its name.
pub struct Rows<'a> {
    /// What is counted.
    pub along: Axis<'a>,
    /// What the parts are.
    pub series: Vec<(Tone, String)>,
    /// The bars, from above.
    pub bars: Vec<Bar>,
}

/// How high a row is.
const ROW: f64 = 22.0;

impl Draw for Rows<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        let widest = |of: fn(&Bar) -> &str, most: f64| {
            self.bars.iter().map(|bar| width_of(of(bar))).fold(0.0, f64::max).min(most)
        };
        let left = widest(|bar| &bar.name, width * 0.38) + 14.0;
        let right = widest(|bar| &bar.note, width * 0.42) + 16.0;
        let height = self.bars.len() as f64 * ROW + 54.0;
        let plot = Plot { right: width - right, ..Plot::new(width, height, left) };
        let most = self.bars.iter().map(|bar| bar.values.iter().sum()).fold(0.0, f64::max);
        let end = end_of(most, self.along.unit, marks_in(plot.right - plot.left));
        let x = self.along.laid(0.0, end, plot.left, plot.right);
        let mut out = plot.begin();
        x.lower(&mut out, &plot)?;
        for (number, bar) in self.bars.iter().enumerate() {
            let top = plot.top + number as f64 * ROW + 3.0;
            let told = told(&bar.name, &self.series, &bar.values, self.along.unit);
            writeln!(out, "<g><title>{}</title>", Escaped(&told))?;
            out.push_str(&text(left - 8.0, top + 12.0, "end", "", &cut(&bar.name, left - 14.0)));
            let mut before = 0.0;
            for (value, (tone, _)) in bar.values.iter().zip(&self.series) {
                let (from, to) = (x.place(before), x.place(before + value));
                before += value;
                let (class, wide) = (tone.class(), to - from);
                writeln!(
                    out,
                    "<rect class=\"{class} fill\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{:.1}\"/>",
                    ROW - 6.0
                )?;
            }
            let behind = x.place(before) + 6.0;
            let note = cut(&bar.note, width - behind);
            out.push_str(&text(behind, top + 12.0, "start", "faint", &note));
            out.push_str("</g>\n");
        }
        out.push_str("</svg>");
        Ok(out)
    }

    fn legend(&self) -> Vec<(Tone, String)> {
        if self.series.len() > 1 { self.series.clone() } else { Vec::new() }
    }
}
