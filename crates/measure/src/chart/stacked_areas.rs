//! Areas stacked on each other: the parts of a sum over calls or time.

use crate::chart::axis::{ChartAxis, ScaledAxis, round_up_to_mark};
use crate::chart::marks::{ChartMark, MarkLayout};
use crate::chart::{Chart, ColourRole, PlotArea, XmlEscaped};
use std::fmt::{self, Write as _};

const HEIGHT_PIXELS: f64 = 240.0;
const LEFT_PIXELS: f64 = 72.0;
/// The width of a strip with a hover text.
const STRIP_PIXELS: f64 = 8.0;

/// A chart of stacked areas. Where there are more points than pixels, those with the highest sums
/// are drawn.
pub struct StackedAreaChart<'a> {
    /// The x axis.
    pub x_axis: ChartAxis<'a>,
    /// The range of the x axis.
    pub x_range: (f64, f64),
    /// The y axis, from 0.
    pub y_axis: ChartAxis<'a>,
    /// The parts, the lowest first: colours and names.
    pub series: Vec<(ColourRole, String)>,
    /// The points, in order of x, each with the values of the parts, which hold until the next.
    pub points: Vec<(f64, Vec<f64>)>,
    /// The phases, in order of x.
    pub marks: Vec<ChartMark>,
}

/// The points of a column of pixels, of which one is drawn.
struct AreaColumn<'a> {
    x: f64,
    sum: f64,
    values: &'a [f64],
}

impl Chart for StackedAreaChart<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        let plot = PlotArea::new(width, HEIGHT_PIXELS, LEFT_PIXELS);
        let x = self.x_axis.scale_to(self.x_range.0, self.x_range.1, plot.left, plot.right);
        let layout = MarkLayout::new(&self.marks, &x, &plot);
        let plot = PlotArea {
            top: plot.top + layout.height(),
            ..PlotArea::new(width, HEIGHT_PIXELS + layout.height(), LEFT_PIXELS)
        };
        let columns = self.columns(&x, 1.0);
        let most = columns.iter().map(|column| column.sum).fold(1.0, f64::max);
        let most = round_up_to_mark(most, self.y_axis.unit, 5.0);
        let y = self.y_axis.scale_to(0.0, most, plot.bottom, plot.top);
        let mut out = plot.svg_start_tag();
        y.draw_y_axis(&mut out, &plot)?;
        x.draw_x_axis(&mut out, &plot)?;
        layout.draw(&mut out, &plot)?;
        for (number, (colour, name)) in self.series.iter().enumerate() {
            let Some(path) = area_path(&columns, number, &y, plot.right)? else { continue };
            writeln!(
                out,
                "<path class=\"{} part\" d=\"{path}\"><title>{}</title></path>",
                colour.css_class(),
                XmlEscaped(name)
            )?;
        }
        self.draw_hover_strips(&mut out, (&x, &y), &plot)?;
        out.push_str("</svg>");
        Ok(out)
    }

    fn legend(&self) -> Vec<(ColourRole, String)> {
        self.series.clone()
    }
}

impl StackedAreaChart<'_> {
    /// Returns the point with the highest sum of each column of so many pixels.
    fn columns(&self, x: &ScaledAxis<'_>, pixels: f64) -> Vec<AreaColumn<'_>> {
        let mut columns: Vec<AreaColumn<'_>> = Vec::new();
        for (at, values) in &self.points {
            let (x, sum) = (x.position(*at), values.iter().sum());
            match columns.last_mut() {
                Some(last) if (last.x / pixels).floor() == (x / pixels).floor() => {
                    if sum > last.sum {
                        (last.sum, last.values) = (sum, values);
                    }
                }
                _ => columns.push(AreaColumn { x, sum, values }),
            }
        }
        columns
    }

    /// Draws strips with the values of all parts under the pointer.
    fn draw_hover_strips(
        &self,
        out: &mut String,
        (x, y): (&ScaledAxis<'_>, &ScaledAxis<'_>),
        plot: &PlotArea,
    ) -> fmt::Result {
        let columns = self.columns(x, STRIP_PIXELS);
        let ends = columns.iter().skip(1).map(|column| column.x).chain([plot.right]);
        for (column, end) in columns.iter().zip(ends) {
            let width = end - column.x;
            if width <= 0.0 {
                continue;
            }
            let phase = self.marks.iter().rev().find(|mark| x.position(mark.at) <= column.x);
            let phase = phase.map_or(String::new(), |mark| format!(" in {}", mark.name));
            let parts = self.series.iter().zip(column.values).filter(|(_, value)| **value > 0.0);
            let parts: Vec<String> = parts
                .map(|((_, name), value)| format!("{name}: {}", y.unit().format(*value)))
                .collect();
            let text = format!(
                "{}{phase} - {}: {}",
                x.format(x.value_at(column.x)),
                y.unit().format(column.sum),
                parts.join(", ")
            );
            writeln!(
                out,
                "<g class=\"touch\"><title>{}</title><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/></g>",
                XmlEscaped(&text),
                column.x,
                plot.top,
                plot.bottom - plot.top
            )?;
        }
        Ok(())
    }
}

/// Returns the path around the area of a part; `None` if it is 0 everywhere.
fn area_path(
    columns: &[AreaColumn<'_>],
    number: usize,
    y: &ScaledAxis<'_>,
    right: f64,
) -> Result<Option<String>, fmt::Error> {
    let below = |column: &AreaColumn<'_>, parts: usize| -> f64 {
        y.position(column.values.iter().take(parts).sum())
    };
    let is_empty = |column: &AreaColumn<'_>| column.values.get(number).is_none_or(|it| *it <= 0.0);
    let Some(first) = columns.first().filter(|_| !columns.iter().all(is_empty)) else {
        return Ok(None);
    };
    let mut path = String::new();
    write!(path, "M{:.1} {:.1}", first.x, below(first, number))?;
    for column in columns {
        write!(path, "H{:.1}V{:.1}", column.x, below(column, number + 1))?;
    }
    write!(path, "H{right:.1}")?;
    for column in columns.iter().rev() {
        write!(path, "V{:.1}H{:.1}", below(column, number), column.x)?;
    }
    path.push('Z');
    Ok(Some(path))
}
