//! Lines in steps: what stays until it changes, and the shares of what is no greater (CDF).

use crate::chart::axis::{Axis, Scale, end_of};
use crate::chart::{Draw, Escaped, Plot, Tone};
use std::fmt::{self, Write as _};

/// A line: from each point its value holds until the next.
#[derive(Debug, Clone)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// Its colour.
    pub tone: Tone,
    /// Is what lies below it filled?
    pub filled: bool,
    /// Where, and how much; in order.
    pub points: Vec<(f64, f64)>,
}

/// Lines in steps.
pub struct Lines<'a> {
    /// Along the lower edge.
    pub along: Axis<'a>,
    /// From where to where.
    pub from: (f64, f64),
    /// Upwards, from 0.
    pub up: Axis<'a>,
    /// How high at least.
    pub least: f64,
    /// The lines.
    pub lines: Vec<Line>,
}

const DASHES: [&str; 4] = ["none", "7 3", "2 3", "8 3 2 3"];

impl Draw for Lines<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        let plot = Plot::new(width, 240.0, 72.0);
        let values = || self.lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
        let most = values().fold(self.least, f64::max);
        let x = self.along.laid(self.from.0, self.from.1, plot.left, plot.right);
        let y = self.up.laid(0.0, end_of(most, self.up.unit, 5.0), plot.bottom, plot.top);
        let mut out = plot.begin();
        y.left(&mut out, &plot)?;
        x.lower(&mut out, &plot)?;
        for (number, line) in self.lines.iter().enumerate() {
            let Some(&(first, _)) = line.points.first() else { continue };
            let mut path = String::new();
            let mut last = plot.bottom;
            write!(path, "M{:.1} {last:.1}", x.place(first))?;
            for (at, value) in &line.points {
                let (across, down) = (x.place(*at), y.place(*value));
                // Steps that nobody could see are left out.
                if (down - last).abs() >= 0.05 {
                    write!(path, "H{across:.1}V{down:.1}")?;
                    last = down;
                }
            }
            write!(path, "H{:.1}", x.place(self.from.1))?;
            let class = line.tone.class();
            writeln!(out, "<g class=\"{class}\"><title>{}</title>", Escaped(&line.name))?;
            if line.filled {
                writeln!(out, "<path class=\"area\" d=\"{path}V{:.1}Z\"/>", plot.bottom)?;
            }
            let dashes = DASHES.get(number).unwrap_or(&"none");
            writeln!(out, "<path class=\"line\" stroke-dasharray=\"{dashes}\" d=\"{path}\"/></g>")?;
            self.points(&mut out, line, &|at| x.place(at), &|value| y.place(value))?;
        }
        out.push_str("</svg>");
        Ok(out)
    }

    fn legend(&self) -> Vec<(Tone, String)> {
        self.lines.iter().map(|line| (line.tone, line.name.clone())).collect()
    }
}

impl Lines<'_> {
    /// Places to point at, as many as there is room for, which tell the values there.
    fn points(
        &self,
        out: &mut String,
        line: &Line,
        x: &dyn Fn(f64) -> f64,
        y: &dyn Fn(f64) -> f64,
    ) -> fmt::Result {
        let mut free = f64::MIN;
        for (at, value) in &line.points {
            let (across, down) = (x(*at), y(*value));
            if across < free {
                continue;
            }
            free = across + 8.0;
            let place = match self.along.scale {
                Scale::Moments(clock) => super::moment(*at as i64, clock, true),
                _ => self.along.unit.write(*at),
            };
            let told = format!("{}: {place}, {}", line.name, self.up.unit.write(*value));
            writeln!(
                out,
                "<circle class=\"touch\" cx=\"{across:.1}\" cy=\"{down:.1}\" r=\"5\"><title>{}</title></circle>",
                Escaped(&told)
            )?;
        }
        Ok(())
    }
}
