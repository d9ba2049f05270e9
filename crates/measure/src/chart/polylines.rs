//! Polyline charts: measured points joined by lines, to compare programs or configurations.

use crate::chart::axis::{AxisScale, ChartAxis, ScaledAxis};
use crate::chart::{Chart, ColourRole, PlotArea, XmlEscaped, dash_pattern};
use std::fmt::{self, Write as _};

/// The room between the outermost points and the ends of the x axis, in pixels.
const X_PADDING_PIXELS: f64 = 14.0;
/// The room above and below the points on a logarithmic axis, as a factor.
const Y_PADDING_FACTOR: f64 = 1.3;

/// A series of points.
#[derive(Debug, Clone)]
pub struct Polyline {
    /// The name of the series.
    pub name: String,
    /// Its colour.
    pub colour: ColourRole,
    /// The points, in order of x.
    pub points: Vec<(f64, f64)>,
}

/// A chart of polylines.
pub struct PolylineChart<'a> {
    /// The x axis.
    pub x_axis: ChartAxis<'a>,
    /// The marks of the x axis and their names, in order. On a time axis they name points only, and
    /// the axis has marks of its own.
    pub x_marks: Vec<(f64, String)>,
    /// The y axis. A linear one begins at 0.
    pub y_axis: ChartAxis<'a>,
    /// The series.
    pub lines: Vec<Polyline>,
}

impl Chart for PolylineChart<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        let plot = PlotArea::new(width, 280.0, 72.0);
        let values = || self.lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
        let max = values().fold(f64::MIN_POSITIVE, f64::max);
        let min = values().fold(max, f64::min);
        let y = self.y_axis.scale_to_values(
            min / Y_PADDING_FACTOR,
            max * Y_PADDING_FACTOR,
            plot.bottom,
            plot.top,
        );
        let mark = |at: Option<&(f64, String)>| at.map_or(0.0, |(value, _)| *value);
        let (first, last) = (mark(self.x_marks.first()), mark(self.x_marks.last()));
        let ends = (plot.left + X_PADDING_PIXELS, plot.right - X_PADDING_PIXELS);
        let mut x = self.x_axis.scale_to(first, last, ends.0, ends.1);
        if !matches!(self.x_axis.scale, AxisScale::Time(_)) {
            x.marks.clone_from(&self.x_marks);
        }
        let mut out = plot.svg_start_tag();
        y.draw_y_axis(&mut out, &plot)?;
        x.draw_x_axis(&mut out, &plot)?;
        for (number, line) in self.lines.iter().enumerate() {
            let place = |(at, value): &(f64, f64)| (x.position(*at), y.position(*value));
            let mut path = String::new();
            for (number, point) in line.points.iter().enumerate() {
                let (across, down) = place(point);
                write!(path, "{}{across:.1} {down:.1}", if number == 0 { 'M' } else { 'L' })?;
            }
            let class = line.colour.css_class();
            let dashes = dash_pattern(number);
            writeln!(out, "<g class=\"{class}\">")?;
            writeln!(out, "<path class=\"line\" stroke-dasharray=\"{dashes}\" d=\"{path}\"/>")?;
            for point in &line.points {
                let (across, down) = place(point);
                writeln!(
                    out,
                    "<circle class=\"fill\" cx=\"{across:.1}\" cy=\"{down:.1}\" r=\"4\"/>"
                )?;
            }
            out.push_str("</g>\n");
        }
        self.draw_hover_strips(&mut out, &x, &plot)?;
        out.push_str("</svg>");
        Ok(out)
    }

    fn is_dashed(&self) -> bool {
        true
    }

    fn legend(&self) -> Vec<(ColourRole, String)> {
        self.lines.iter().map(|line| (line.colour, line.name.clone())).collect()
    }
}

impl PolylineChart<'_> {
    /// Draws a strip for each place with points, up to the middle between it and the next; its
    /// hover text has the values of all series there.
    fn draw_hover_strips(
        &self,
        out: &mut String,
        x: &ScaledAxis<'_>,
        plot: &PlotArea,
    ) -> fmt::Result {
        let mut places: Vec<f64> =
            self.lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let middles = places.windows(2).map(|pair| match pair {
            [a, b] => f64::midpoint(x.position(*a), x.position(*b)),
            _ => plot.right,
        });
        let ends: Vec<f64> = middles.chain([plot.right]).collect();
        let mut left = plot.left;
        for (at, right) in places.iter().zip(ends) {
            let value_of = |line: &Polyline| {
                let (_, value) = line.points.iter().find(|point| point.0 == *at)?;
                Some(format!("{}: {}", line.name, self.y_axis.unit.format(*value)))
            };
            let values: Vec<String> = self.lines.iter().filter_map(value_of).collect();
            let text = format!("{} - {}", self.x_mark_name(*at), values.join(", "));
            writeln!(
                out,
                "<g class=\"touch\"><title>{}</title><rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/></g>",
                XmlEscaped(&text),
                plot.top,
                right - left,
                plot.bottom - plot.top
            )?;
            left = right;
        }
        Ok(())
    }

    fn x_mark_name(&self, at: f64) -> String {
        let mark = self.x_marks.iter().find(|(value, _)| (value - at).abs() < 1e-9);
        mark.map_or_else(|| self.x_axis.unit.format(at), |(_, name)| name.clone())
    }
}
