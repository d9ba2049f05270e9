//! Polyline charts: measured points joined by lines, to compare programs or configurations.

use crate::chart::axis::ChartAxis;
use crate::chart::{Chart, ColourRole, DASH_PATTERNS, PlotArea, XmlEscaped};
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
    /// The marks of the x axis and their names, in order.
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
        x.marks.clone_from(&self.x_marks);
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
            let dashes = DASH_PATTERNS.get(number).unwrap_or(&"none");
            writeln!(out, "<g class=\"{class}\">")?;
            writeln!(out, "<path class=\"line\" stroke-dasharray=\"{dashes}\" d=\"{path}\"/>")?;
            for point in &line.points {
                let (across, down) = place(point);
                let at = self.x_mark_name(point.0);
                let value = self.y_axis.unit.format(point.1);
                writeln!(
                    out,
                    "<circle class=\"fill\" cx=\"{across:.1}\" cy=\"{down:.1}\" r=\"4\"><title>{}</title></circle>",
                    XmlEscaped(&format!("{}: {at}, {value}", line.name))
                )?;
            }
            out.push_str("</g>\n");
        }
        out.push_str("</svg>");
        Ok(out)
    }

    fn legend(&self) -> Vec<(ColourRole, String)> {
        self.lines.iter().map(|line| (line.colour, line.name.clone())).collect()
    }
}

impl PolylineChart<'_> {
    fn x_mark_name(&self, at: f64) -> String {
        let mark = self.x_marks.iter().find(|(value, _)| (value - at).abs() < 1e-9);
        mark.map_or_else(|| self.x_axis.unit.format(at), |(_, name)| name.clone())
    }
}
