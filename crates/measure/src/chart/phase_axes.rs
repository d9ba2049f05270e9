//! The frame of a chart of values that hold from one place on the x axis to the next: two axes, and
//! the phases of the run as bands with names above the plot.

use crate::chart::PlotArea;
use crate::chart::axis::{ChartAxis, ScaledAxis, round_up_to_mark};
use crate::chart::marks::{ChartMark, MarkLayout};
use std::fmt;

const HEIGHT_PIXELS: f64 = 240.0;
const LEFT_PIXELS: f64 = 72.0;

/// The axes of a chart, and the phases.
pub struct PhaseAxes<'a> {
    /// The x axis.
    pub x_axis: ChartAxis<'a>,
    /// The range of the x axis.
    pub x_range: (f64, f64),
    /// The y axis, from 0.
    pub y_axis: ChartAxis<'a>,
    /// The phases, in order of x.
    pub marks: Vec<ChartMark>,
}

/// The axes of a chart in a picture.
pub(super) struct ScaledPhaseAxes<'a> {
    pub(super) plot: PlotArea,
    pub(super) x: ScaledAxis<'a>,
    pub(super) y: ScaledAxis<'a>,
    marks: &'a [ChartMark],
    layout: MarkLayout,
}

impl PhaseAxes<'_> {
    /// Scales the x axis to a width.
    pub(super) fn scale_x(&self, width: f64) -> ScaledAxis<'_> {
        let plot = PlotArea::new(width, HEIGHT_PIXELS, LEFT_PIXELS);
        self.x_axis.scale_to(self.x_range.0, self.x_range.1, plot.left, plot.right)
    }

    /// Scales the axes to a width and to the highest value.
    pub(super) fn scale(&self, width: f64, most: f64) -> ScaledPhaseAxes<'_> {
        let x = self.scale_x(width);
        let plot = PlotArea::new(width, HEIGHT_PIXELS, LEFT_PIXELS);
        let layout = MarkLayout::new(&self.marks, &x, &plot);
        let plot = PlotArea {
            top: plot.top + layout.height(),
            ..PlotArea::new(width, HEIGHT_PIXELS + layout.height(), LEFT_PIXELS)
        };
        let most = round_up_to_mark(most, self.y_axis.unit, 5.0);
        let y = self.y_axis.scale_to(0.0, most, plot.bottom, plot.top);
        ScaledPhaseAxes { plot, x, y, marks: &self.marks, layout }
    }
}

impl ScaledPhaseAxes<'_> {
    /// Begins the picture with the axes and the phases.
    pub(super) fn start_picture(&self) -> Result<String, fmt::Error> {
        let mut out = self.plot.svg_start_tag();
        self.y.draw_y_axis(&mut out, &self.plot)?;
        self.x.draw_x_axis(&mut out, &self.plot)?;
        self.layout.draw(&mut out, &self.plot)?;
        Ok(out)
    }

    /// Names a place in the picture: its value on the x axis, and its phase.
    pub(super) fn place_name(&self, x: f64) -> String {
        let value = self.x.format(self.x.value_at(x));
        let phase = self.marks.iter().rev().find(|mark| self.x.position(mark.at) <= x);
        phase.map_or_else(|| value.clone(), |mark| format!("{value} in {}", mark.name))
    }
}
