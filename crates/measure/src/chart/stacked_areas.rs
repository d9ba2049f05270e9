//! Areas stacked on each other: the parts of a sum over calls or time.

use crate::chart::axis::ScaledAxis;
use crate::chart::hover::{HoverContent, draw_hover_strips};
use crate::chart::phase_axes::{PhaseAxes, ScaledPhaseAxes};
use crate::chart::{Chart, ColourRole, XmlEscaped};
use std::fmt::{self, Write as _};

/// A chart of stacked areas. Where there are more points than pixels, those with the highest sums
/// are drawn.
pub struct StackedAreaChart<'a> {
    /// The axes and the phases.
    pub axes: PhaseAxes<'a>,
    /// The parts, the lowest first: colours and names.
    pub series: Vec<(ColourRole, String)>,
    /// The points, in order of x, each with the values of the parts, which hold until the next.
    pub points: Vec<(f64, Vec<f64>)>,
}

/// The points of a column of pixels, of which one is drawn.
struct AreaColumn<'a> {
    x: f64,
    sum: f64,
    values: &'a [f64],
}

impl Chart for StackedAreaChart<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        let columns = self.columns(&self.axes.scale_x(width));
        let most = columns.iter().map(|column| column.sum).fold(1.0, f64::max);
        let axes = self.axes.scale(width, most);
        let mut out = axes.start_picture()?;
        for (number, (colour, name)) in self.series.iter().enumerate() {
            let Some(path) = area_path(&columns, number, &axes.y, axes.plot.right)? else {
                continue;
            };
            writeln!(
                out,
                "<path class=\"{} part\" d=\"{path}\"><title>{}</title></path>",
                colour.css_class(),
                XmlEscaped(name)
            )?;
        }
        self.draw_strips(&mut out, &columns, &axes)?;
        out.push_str("</svg>");
        Ok(out)
    }

    fn legend(&self) -> Vec<(ColourRole, String)> {
        self.series.clone()
    }
}

impl StackedAreaChart<'_> {
    /// Returns the point with the highest sum of each column of pixels, which it fills: a peak of
    /// few calls is not paler than others.
    fn columns(&self, x: &ScaledAxis<'_>) -> Vec<AreaColumn<'_>> {
        let mut columns: Vec<AreaColumn<'_>> = Vec::new();
        for (at, values) in &self.points {
            let (x, sum) = (x.position(*at).floor(), values.iter().sum());
            match columns.last_mut() {
                Some(last) if last.x == x => {
                    if sum > last.sum {
                        (last.sum, last.values) = (sum, values);
                    }
                }
                _ => columns.push(AreaColumn { x, sum, values }),
            }
        }
        columns
    }

    /// Draws strips with the values of all parts where their sum is highest.
    fn draw_strips(
        &self,
        out: &mut String,
        columns: &[AreaColumn<'_>],
        axes: &ScaledPhaseAxes<'_>,
    ) -> fmt::Result {
        let (mut next, mut held) = (columns.iter().peekable(), None);
        draw_hover_strips(out, axes, |strip| {
            let mut most: Option<&AreaColumn<'_>> = held;
            while let Some(column) = next.next_if(|column| strip.reaches(column.x)) {
                let is_lower = |most: &&AreaColumn<'_>| column.sum < most.sum;
                let is_within = strip.begins_before(column.x);
                most = most.filter(|most| is_within && is_lower(most)).or(Some(column));
                held = Some(column);
            }
            let most = most?;
            let format = |value: f64| axes.y.unit().format(value);
            let parts = self.series.iter().zip(most.values).filter(|(_, value)| **value > 0.0);
            let parts: Vec<String> =
                parts.map(|((_, name), value)| format!("{name}: {}", format(*value))).collect();
            let text = format!("{}: {}", format(most.sum), parts.join(", "));
            Some(HoverContent { text, dots: String::new() })
        })
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
