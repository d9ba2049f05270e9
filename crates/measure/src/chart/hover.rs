//! Hover texts over the whole plot of a chart: strips of some pixels, each with the values at its
//! place.

use crate::chart::XmlEscaped;
use crate::chart::line_columns::StepLine;
use crate::chart::phase_axes::ScaledPhaseAxes;
use std::fmt::{self, Write as _};

/// The width of a strip.
const STRIP_PIXELS: f64 = 8.0;

/// A strip of a plot.
#[derive(Debug, Clone, Copy)]
pub(super) struct HoverStrip {
    left: f64,
    right: f64,
}

/// The values that are shown where the pointer is in a strip.
pub(super) struct HoverContent {
    /// The values.
    pub(super) text: String,
    /// Elements that point at them.
    pub(super) dots: String,
}

/// Draws strips from the left to the right. A strip for which there is no content has none.
pub(super) fn draw_hover_strips(
    out: &mut String,
    axes: &ScaledPhaseAxes<'_>,
    mut content: impl FnMut(HoverStrip) -> Option<HoverContent>,
) -> fmt::Result {
    let plot = &axes.plot;
    let strips = ((plot.right - plot.left) / STRIP_PIXELS).ceil() as usize;
    for number in 0..strips {
        let left = plot.left + number as f64 * STRIP_PIXELS;
        let right = (left + STRIP_PIXELS).min(plot.right);
        let strip = HoverStrip { left, right };
        let Some(HoverContent { text, dots }) = content(strip) else { continue };
        let text = format!("{} - {text}", axes.place_name(strip.middle()));
        writeln!(
            out,
            "<g class=\"touch\"><title>{}</title><rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>{dots}</g>",
            XmlEscaped(&text),
            plot.top,
            right - left,
            plot.bottom - plot.top
        )?;
    }
    Ok(())
}

impl HoverStrip {
    fn middle(self) -> f64 {
        f64::midpoint(self.left, self.right)
    }

    /// Returns whether a place is in the strip, or before it.
    pub(super) fn reaches(self, x: f64) -> bool {
        x < self.right
    }

    /// Returns whether a place is in the strip, or behind it.
    pub(super) fn begins_before(self, x: f64) -> bool {
        x >= self.left
    }
}

/// Draws strips with the values of lines. The value of a line in a strip is its highest one there,
/// or the one before; dots have a value only where one is in the strip.
pub(super) fn draw_line_strips(
    out: &mut String,
    (lines, dots_only): (&[&StepLine], &[StepLine]),
    axes: &ScaledPhaseAxes<'_>,
) -> fmt::Result {
    let (x, y) = (&axes.x, &axes.y);
    let all = || lines.iter().copied().chain(dots_only);
    let mut next = vec![0; all().count()];
    let mut held: Vec<Option<f64>> = vec![None; next.len()];
    draw_hover_strips(out, axes, |strip| {
        let (mut texts, mut dots) = (Vec::new(), String::new());
        for (number, ((line, next), held)) in all().zip(&mut next).zip(&mut held).enumerate() {
            if line.end.is_some_and(|end| x.position(end) <= strip.left) {
                continue;
            }
            let holds = number < lines.len();
            let mut most = held.filter(|_| holds);
            while let Some((at, value)) = line.points.get(*next)
                && strip.reaches(x.position(*at))
            {
                let is_within = strip.begins_before(x.position(*at));
                most = Some(if is_within { most.unwrap_or(*value).max(*value) } else { *value });
                *held = Some(*value);
                *next += 1;
            }
            let Some(most) = most else { continue };
            texts.push(format!("{}: {}", line.name, y.unit().format(most)));
            dots.push_str(&format!(
                "<circle class=\"{} fill\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"/>",
                line.colour.css_class(),
                strip.middle(),
                y.position(most)
            ));
        }
        (!texts.is_empty()).then(|| HoverContent { text: texts.join(", "), dots })
    })
}
