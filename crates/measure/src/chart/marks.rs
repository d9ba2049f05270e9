//! Marks on an axis: the phases of a run, as bands with names above the plot.
//!
//! Names stand in a few rows, each at its mark. Of names that have no room only the line is drawn;
//! the hover texts of the chart name every phase.

use crate::chart::axis::ScaledAxis;
use crate::chart::{PlotArea, svg_text, text_width_pixels, truncate_to_width};
use std::fmt::{self, Write as _};

/// The most rows of names.
const MAX_ROWS: usize = 5;
const ROW_HEIGHT_PIXELS: f64 = 15.0;
/// The room between a line and its name, and between two names.
const GAP_PIXELS: f64 = 4.0;
/// Lines that are closer than this to the one before are not drawn.
const MIN_LINE_PIXELS: f64 = 3.0;
/// A name that has less room than this stands at the left of its line, unless it is shorter.
const MIN_NAME_PIXELS: f64 = 60.0;
/// The longest name, as a part of the width of the plot.
const MAX_NAME_SHARE: f64 = 0.3;

/// A mark: a phase begins here.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartMark {
    /// Its place on the x axis.
    pub at: f64,
    /// The name of the phase.
    pub name: String,
}

/// A mark in a picture.
struct PlacedMark {
    x: f64,
    /// The row of its name, where that begins, and its text.
    name: Option<(usize, f64, String)>,
}

/// The marks of a chart in a picture.
pub(super) struct MarkLayout {
    marks: Vec<PlacedMark>,
    rows: usize,
}

impl MarkLayout {
    /// Places marks, in order of x, in as few rows as hold all names.
    pub(super) fn new(marks: &[ChartMark], x: &ScaledAxis<'_>, plot: &PlotArea) -> MarkLayout {
        let layout = |rows| MarkLayout { marks: place_names(marks, x, plot, rows), rows };
        let is_complete = |layout: &MarkLayout| layout.marks.iter().all(|mark| mark.name.is_some());
        if marks.is_empty() {
            return layout(0);
        }
        (1..MAX_ROWS).map(layout).find(is_complete).unwrap_or_else(|| layout(MAX_ROWS))
    }

    /// Returns the height of the names.
    pub(super) fn height(&self) -> f64 {
        self.rows as f64 * ROW_HEIGHT_PIXELS
    }

    /// Draws the bands, the lines and the names; the plot begins below the names.
    pub(super) fn draw(&self, out: &mut String, plot: &PlotArea) -> fmt::Result {
        let ends = self.marks.iter().skip(1).map(|mark| mark.x).chain([plot.right]);
        for (number, (mark, end)) in self.marks.iter().zip(ends).enumerate() {
            let (width, height) = (end - mark.x, plot.bottom - plot.top);
            if number.is_multiple_of(2) && width >= 1.0 {
                writeln!(
                    out,
                    "<rect class=\"phase\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>",
                    mark.x, plot.top
                )?;
            }
        }
        let mut free = f64::MIN;
        for mark in &self.marks {
            let top = match &mark.name {
                Some((row, at, name)) => {
                    let line = plot.top - self.height() + (*row as f64 + 0.75) * ROW_HEIGHT_PIXELS;
                    out.push_str(&svg_text(*at, line, "start", "faint", name));
                    line - 8.0
                }
                None if mark.x < free => continue,
                None => plot.top,
            };
            free = mark.x + MIN_LINE_PIXELS;
            writeln!(
                out,
                "<path class=\"mark\" d=\"M{:.1} {top:.1}V{:.1}\"/>",
                mark.x, plot.bottom
            )?;
        }
        Ok(())
    }
}

/// Places names in rows. A name takes the highest row from which its line reaches the plot without
/// crossing the names of earlier marks.
fn place_names(
    marks: &[ChartMark],
    x: &ScaledAxis<'_>,
    plot: &PlotArea,
    rows: usize,
) -> Vec<PlacedMark> {
    let longest = (plot.right - plot.left) * MAX_NAME_SHARE;
    let mut ends = vec![f64::MIN; rows];
    let place = |mark: &ChartMark| {
        let at = x.position(mark.at);
        let room = plot.right - at - GAP_PIXELS;
        let is_at_edge = room < text_width_pixels(&mark.name).min(MIN_NAME_PIXELS);
        let name =
            truncate_to_width(&mark.name, if is_at_edge { longest } else { room.min(longest) });
        let width = text_width_pixels(&name);
        // At the right edge a name stands at the left of its line.
        let start = if is_at_edge { at - GAP_PIXELS - width } else { at + GAP_PIXELS };
        let taken = ends.iter().rposition(|end| *end > start.min(at));
        let row = taken.map_or(0, |row| row + 1);
        let name = ends.get_mut(row).map(|end| {
            *end = (start + width).max(at) + GAP_PIXELS;
            (row, start, name)
        });
        // The line crosses the rows below.
        ends.iter_mut().skip(row + 1).for_each(|end| *end = end.max(at));
        PlacedMark { x: at, name }
    };
    marks.iter().map(place).collect()
}
