//! Step charts: values that hold until the next point, and cumulative distributions.

use crate::chart::axis::{AxisScale, ChartAxis, round_up_to_mark};
use crate::chart::{Chart, ColourRole, DASH_PATTERNS, PlotArea, XmlEscaped};
use std::fmt::{self, Write as _};

/// A line; the value of each point holds until the next.
#[derive(Debug, Clone)]
pub struct StepLine {
    /// The name of the line.
    pub name: String,
    /// Its colour.
    pub colour: ColourRole,
    /// Whether the area below the line is filled.
    pub is_filled: bool,
    /// The points, in order of x.
    pub points: Vec<(f64, f64)>,
}

/// A chart of step lines.
pub struct StepChart<'a> {
    /// The x axis.
    pub x_axis: ChartAxis<'a>,
    /// The range of the x axis.
    pub x_range: (f64, f64),
    /// The y axis, from 0.
    pub y_axis: ChartAxis<'a>,
    /// The minimum of the upper end of the y axis.
    pub min_y_max: f64,
    /// The lines.
    pub lines: Vec<StepLine>,
}

impl Chart for StepChart<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        let plot = PlotArea::new(width, 240.0, 72.0);
        let values = || self.lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
        let most = values().fold(self.min_y_max, f64::max);
        let x = self.x_axis.scale_to(self.x_range.0, self.x_range.1, plot.left, plot.right);
        let y = self.y_axis.scale_to(
            0.0,
            round_up_to_mark(most, self.y_axis.unit, 5.0),
            plot.bottom,
            plot.top,
        );
        let mut out = plot.svg_start_tag();
        y.draw_y_axis(&mut out, &plot)?;
        x.draw_x_axis(&mut out, &plot)?;
        for (number, line) in self.lines.iter().enumerate() {
            let Some(&(first, _)) = line.points.first() else { continue };
            let mut path = String::new();
            let mut last = plot.bottom;
            write!(path, "M{:.1} {last:.1}", x.position(first))?;
            for (at, value) in &line.points {
                let (across, down) = (x.position(*at), y.position(*value));
                // Steps too small to be visible are omitted.
                if (down - last).abs() >= 0.05 {
                    write!(path, "H{across:.1}V{down:.1}")?;
                    last = down;
                }
            }
            write!(path, "H{:.1}", x.position(self.x_range.1))?;
            let class = line.colour.css_class();
            writeln!(out, "<g class=\"{class}\"><title>{}</title>", XmlEscaped(&line.name))?;
            if line.is_filled {
                writeln!(out, "<path class=\"area\" d=\"{path}V{:.1}Z\"/>", plot.bottom)?;
            }
            let dashes = DASH_PATTERNS.get(number).unwrap_or(&"none");
            writeln!(out, "<path class=\"line\" stroke-dasharray=\"{dashes}\" d=\"{path}\"/></g>")?;
            self.draw_hover_points(&mut out, line, &|at| x.position(at), &|value| {
                y.position(value)
            })?;
        }
        out.push_str("</svg>");
        Ok(out)
    }

    fn legend(&self) -> Vec<(ColourRole, String)> {
        self.lines.iter().map(|line| (line.colour, line.name.clone())).collect()
    }
}

impl StepChart<'_> {
    /// Draws evenly spaced hover points whose tooltips show the values there.
    fn draw_hover_points(
        &self,
        out: &mut String,
        line: &StepLine,
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
            let place = match self.x_axis.scale {
                AxisScale::Time(clock) => super::format_time_of_day(*at as i64, clock, true),
                _ => self.x_axis.unit.format(*at),
            };
            let tooltip = format!("{}: {place}, {}", line.name, self.y_axis.unit.format(*value));
            writeln!(
                out,
                "<circle class=\"touch\" cx=\"{across:.1}\" cy=\"{down:.1}\" r=\"5\"><title>{}</title></circle>",
                XmlEscaped(&tooltip)
            )?;
        }
        Ok(())
    }
}
