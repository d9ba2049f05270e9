//! Step charts: values that hold until the next point, and cumulative distributions; beside them
//! dots, which hold at their points only.

use crate::chart::hover::draw_line_strips;
use crate::chart::line_columns::{StepLine, end_dot, line_columns, range_path, step_path};
use crate::chart::phase_axes::PhaseAxes;
use crate::chart::{Chart, ColourRole, XmlEscaped, dash_pattern};
use std::fmt::{self, Write as _};

/// The least distance between two dots of a colour.
const DOT_GAP_PIXELS: f64 = 3.0;
/// The radius of the dots of the last series.
const MIN_DOT_RADIUS: usize = 2;

/// A chart of step lines. A line whose values are all 0 is left out beside others.
pub struct StepChart<'a> {
    /// The axes and the phases.
    pub axes: PhaseAxes<'a>,
    /// The minimum of the upper end of the y axis.
    pub min_y_max: f64,
    /// The lines.
    pub lines: Vec<StepLine>,
}

impl Chart for StepChart<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        self.draw_with_dots(&[], width)
    }

    fn is_dashed(&self) -> bool {
        true
    }

    fn legend(&self) -> Vec<(ColourRole, String)> {
        // The title of the chart names a line that is alone.
        let lines = if self.lines.len() > 1 { self.visible_lines() } else { Vec::new() };
        lines.into_iter().map(|line| (line.colour, line.name.clone())).collect()
    }
}

/// A chart of step lines, and of values that are known at some points only.
pub struct StepDotChart<'a> {
    /// The chart of the lines.
    pub steps: StepChart<'a>,
    /// The values that are drawn as dots.
    pub dots: Vec<StepLine>,
}

impl Chart for StepDotChart<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        self.steps.draw_with_dots(&self.dots, width)
    }

    fn is_dashed(&self) -> bool {
        // Dots have no dashes, and the colours tell them apart.
        self.dots.is_empty()
    }

    fn legend(&self) -> Vec<(ColourRole, String)> {
        let dots = self.dots.iter().map(|dots| (dots.colour, dots.name.clone()));
        self.steps.legend().into_iter().chain(dots).collect()
    }
}

impl StepChart<'_> {
    fn draw_with_dots(&self, dots: &[StepLine], width: f64) -> Result<String, fmt::Error> {
        let lines = self.visible_lines();
        let all = lines.iter().copied().chain(dots);
        let values = all.flat_map(|line| line.points.iter().map(|point| point.1));
        let axes = self.axes.scale(width, values.fold(self.min_y_max, f64::max));
        let (plot, x, y) = (&axes.plot, &axes.x, &axes.y);
        let mut out = axes.start_picture()?;
        let end = self.axes.x_range.1;
        for (number, line) in lines.iter().enumerate() {
            let points = line.points.iter().enumerate().map(|(number, (at, value))| {
                let low = line.lows.get(number).unwrap_or(value);
                (x.position(*at), y.position(*value), y.position(*low))
            });
            let columns = line_columns(points);
            let right = x.position(line.end.unwrap_or(end).min(end));
            let path = step_path(&columns, line.is_filled.then_some(plot.bottom), right)?;
            let class = line.colour.css_class();
            writeln!(out, "<g class=\"{class}\"><title>{}</title>", XmlEscaped(&line.name))?;
            if line.is_filled && !path.is_empty() {
                writeln!(out, "<path class=\"area\" d=\"{path}V{:.1}Z\"/>", plot.bottom)?;
            }
            if !line.lows.is_empty()
                && let Some(range) = range_path(&columns, right)?
            {
                writeln!(out, "<path class=\"range\" d=\"{range}\"/>")?;
            }
            let dashes = dash_pattern(number);
            writeln!(out, "<path class=\"line\" stroke-dasharray=\"{dashes}\" d=\"{path}\"/>")?;
            if let Some((x, y)) = end_dot(&columns, right) {
                writeln!(out, "<circle class=\"fill\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>")?;
            }
            out.push_str("</g>\n");
        }
        for (number, series) in dots.iter().enumerate() {
            let places =
                series.points.iter().map(|(at, value)| (x.position(*at), y.position(*value)));
            // Equal values of a later series are drawn on these.
            let radius = MIN_DOT_RADIUS + (dots.len() - 1 - number);
            draw_dots(&mut out, series, radius, places)?;
        }
        draw_line_strips(&mut out, (&lines, dots), &axes)?;
        out.push_str("</svg>");
        Ok(out)
    }

    fn visible_lines(&self) -> Vec<&StepLine> {
        let is_visible = |line: &&StepLine| line.points.iter().any(|point| point.1 > 0.0);
        let lines: Vec<&StepLine> = self.lines.iter().filter(is_visible).collect();
        if lines.is_empty() { self.lines.iter().take(1).collect() } else { lines }
    }
}

/// Draws dots; of those that would overlap, the highest.
fn draw_dots(
    out: &mut String,
    dots: &StepLine,
    radius: usize,
    places: impl Iterator<Item = (f64, f64)>,
) -> fmt::Result {
    let mut apart: Vec<(f64, f64)> = Vec::new();
    for (x, y) in places {
        match apart.last_mut() {
            Some(last) if x - last.0 < DOT_GAP_PIXELS => last.1 = last.1.min(y),
            _ => apart.push((x, y)),
        }
    }
    let class = dots.colour.css_class();
    writeln!(out, "<g class=\"{class}\"><title>{}</title>", XmlEscaped(&dots.name))?;
    for (x, y) in apart {
        writeln!(out, "<circle class=\"fill\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>")?;
    }
    out.push_str("</g>\n");
    Ok(())
}
