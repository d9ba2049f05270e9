//! Hover texts over the whole plot of a chart of lines: strips of some pixels, each with the values
//! of all lines at its place.

use crate::chart::axis::ScaledAxis;
use crate::chart::line_columns::StepLine;
use crate::chart::marks::ChartMark;
use crate::chart::{PlotArea, XmlEscaped};
use std::fmt::{self, Write as _};

/// The width of a strip.
const STRIP_PIXELS: f64 = 8.0;

/// Draws the strips. The value of a line in a strip is its highest one there, or the one before;
/// dots have a value only where one is in the strip.
pub(super) fn draw_hover_strips(
    out: &mut String,
    (lines, dots_only): (&[&StepLine], &[StepLine]),
    marks: &[ChartMark],
    axes: (&ScaledAxis<'_>, &ScaledAxis<'_>),
    plot: &PlotArea,
) -> fmt::Result {
    let (x, y) = axes;
    let all = || lines.iter().copied().chain(dots_only);
    let mut next = vec![0; all().count()];
    let mut held: Vec<Option<f64>> = vec![None; next.len()];
    let strips = ((plot.right - plot.left) / STRIP_PIXELS).ceil() as usize;
    for number in 0..strips {
        let left = plot.left + number as f64 * STRIP_PIXELS;
        let width = STRIP_PIXELS.min(plot.right - left);
        let middle = left + width / 2.0;
        let (mut texts, mut dots) = (Vec::new(), String::new());
        for (number, ((line, next), held)) in all().zip(&mut next).zip(&mut held).enumerate() {
            if line.end.is_some_and(|end| x.position(end) <= left) {
                continue;
            }
            let holds = number < lines.len();
            let mut most = held.filter(|_| holds);
            while let Some((at, value)) = line.points.get(*next)
                && x.position(*at) < left + width
            {
                let is_within = x.position(*at) >= left;
                most = Some(if is_within { most.unwrap_or(*value).max(*value) } else { *value });
                *held = Some(*value);
                *next += 1;
            }
            let Some(most) = most else { continue };
            texts.push(format!("{}: {}", line.name, y.unit().format(most)));
            let class = line.colour.css_class();
            write!(
                dots,
                "<circle class=\"{class} fill\" cx=\"{middle:.1}\" cy=\"{:.1}\" r=\"4\"/>",
                y.position(most)
            )?;
        }
        if texts.is_empty() {
            continue;
        }
        let value = x.value_at(middle);
        let phase = marks.iter().rev().find(|mark| x.position(mark.at) <= middle);
        let phase = phase.map_or(String::new(), |mark| format!(" in {}", mark.name));
        let text = format!("{}{phase} - {}", x.format(value), texts.join(", "));
        writeln!(
            out,
            "<g class=\"touch\"><title>{}</title><rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>{dots}</g>",
            XmlEscaped(&text),
            plot.top,
            plot.bottom - plot.top
        )?;
    }
    Ok(())
}
