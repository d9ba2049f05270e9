//! Bar charts: vertical bars over time, horizontal bars with names.

use crate::chart::axis::{ChartAxis, MeasureUnit, max_mark_count, round_up_to_mark};
use crate::chart::{
    Chart, ColourRole, PlotArea, XmlEscaped, svg_text, text_width_pixels, truncate_to_width,
};
use std::fmt::{self, Write as _};

/// A bar of stacked parts.
#[derive(Debug, Clone)]
pub struct ChartBar {
    /// The name of the bar, or the start of its period.
    pub name: String,
    /// The position of a vertical bar.
    pub x_start: f64,
    /// The value of each series.
    pub values: Vec<f64>,
    /// The text at the end of a horizontal bar, in place of its value.
    pub label: String,
}

/// Vertical bars over time.
pub struct ColumnChart<'a> {
    /// The time axis.
    pub x_axis: ChartAxis<'a>,
    /// The range of the time axis.
    pub x_range: (f64, f64),
    /// The width of a bar in units of the time axis.
    pub bar_width: f64,
    /// The axis of the values.
    pub y_axis: ChartAxis<'a>,
    /// The series, which are the parts of each bar.
    pub series: Vec<(ColourRole, String)>,
    /// The bars.
    pub bars: Vec<ChartBar>,
}

impl Chart for ColumnChart<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        let plot = PlotArea::new(width, 240.0, 72.0);
        let most = self.bars.iter().map(|bar| bar.values.iter().sum()).fold(0.0, f64::max);
        let end = round_up_to_mark(most, self.y_axis.unit, 5.0);
        let x = self.x_axis.scale_to(self.x_range.0, self.x_range.1, plot.left, plot.right);
        let y = self.y_axis.scale_to(0.0, end, plot.bottom, plot.top);
        let mut out = plot.svg_start_tag();
        y.draw_y_axis(&mut out, &plot)?;
        x.draw_x_axis(&mut out, &plot)?;
        for bar in &self.bars {
            let (left, right) = (x.position(bar.x_start), x.position(bar.x_start + self.bar_width));
            let thick = (right - left - 1.0).max(1.0);
            let mut below = 0.0;
            writeln!(out, "<g><title>{}</title>", XmlEscaped(&self.tooltip(bar)))?;
            for (value, (tone, _)) in bar.values.iter().zip(&self.series) {
                let (foot, head) = (y.position(below), y.position(below + value));
                below += value;
                let (class, high) = (tone.css_class(), foot - head);
                if high > 0.0 {
                    writeln!(
                        out,
                        "<rect class=\"{class} fill\" x=\"{left:.1}\" y=\"{head:.1}\" width=\"{thick:.1}\" height=\"{high:.1}\"/>"
                    )?;
                }
            }
            out.push_str("</g>\n");
        }
        out.push_str("</svg>");
        Ok(out)
    }

    fn legend(&self) -> Vec<(ColourRole, String)> {
        visible_series(&self.series, &self.bars)
    }
}

impl ColumnChart<'_> {
    fn tooltip(&self, bar: &ChartBar) -> String {
        format_tooltip(&bar.name, &self.series, &bar.values, self.y_axis.unit)
    }
}

/// Returns the series that have a value above 0 in any bar.
fn visible_series(series: &[(ColourRole, String)], bars: &[ChartBar]) -> Vec<(ColourRole, String)> {
    let has_value = |number: usize| bars.iter().any(|bar| bar.values.get(number) > Some(&0.0));
    let visible = series.iter().enumerate().filter(|(number, _)| has_value(*number));
    visible.map(|(_, series)| series.clone()).collect()
}

fn format_tooltip(
    name: &str,
    series: &[(ColourRole, String)],
    values: &[f64],
    unit: MeasureUnit,
) -> String {
    // A part that is not there is not named, unless there is no other.
    let is_empty = values.iter().all(|value| *value == 0.0);
    let parts: Vec<String> = values
        .iter()
        .zip(series)
        .filter(|(value, _)| is_empty || **value != 0.0)
        .map(|(value, (_, name))| format!("{name}: {}", unit.format(*value)))
        .collect();
    format!("{name} - {}", parts.join(", "))
}

/// Horizontal bars with names.
pub struct BarChart<'a> {
    /// The axis of the values.
    pub x_axis: ChartAxis<'a>,
    /// The series, which are the parts of each bar.
    pub series: Vec<(ColourRole, String)>,
    /// The bars, from the top.
    pub bars: Vec<ChartBar>,
}

/// The least width of the bars; labels have the rest.
const MIN_PLOT_PIXELS: f64 = 90.0;
/// The height of a row.
const ROW_HEIGHT_PIXELS: f64 = 22.0;

impl Chart for BarChart<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        let widest = |text_of: fn(&ChartBar) -> &str, most: f64| {
            self.bars
                .iter()
                .map(|bar| text_width_pixels(text_of(bar)))
                .fold(0.0, f64::max)
                .min(most)
        };
        let left = widest(|bar| &bar.name, width * 0.38) + 14.0;
        let right = widest(|bar| &bar.label, width - left - MIN_PLOT_PIXELS) + 16.0;
        let height = self.bars.len() as f64 * ROW_HEIGHT_PIXELS + 54.0;
        let plot = PlotArea { right: width - right, ..PlotArea::new(width, height, left) };
        let most = self.bars.iter().map(|bar| bar.values.iter().sum()).fold(0.0, f64::max);
        let end = round_up_to_mark(most, self.x_axis.unit, max_mark_count(plot.right - plot.left));
        let x = self.x_axis.scale_to(0.0, end, plot.left, plot.right);
        let mut out = plot.svg_start_tag();
        x.draw_x_axis(&mut out, &plot)?;
        for (number, bar) in self.bars.iter().enumerate() {
            let top = plot.top + number as f64 * ROW_HEIGHT_PIXELS + 3.0;
            let tooltip = format_tooltip(&bar.name, &self.series, &bar.values, self.x_axis.unit);
            writeln!(out, "<g><title>{}</title>", XmlEscaped(&tooltip))?;
            out.push_str(&svg_text(
                left - 8.0,
                top + 12.0,
                "end",
                "",
                &truncate_to_width(&bar.name, left - 14.0),
            ));
            let mut before = 0.0;
            for (value, (tone, _)) in bar.values.iter().zip(&self.series) {
                let (from, to) = (x.position(before), x.position(before + value));
                before += value;
                let (class, wide) = (tone.css_class(), to - from);
                writeln!(
                    out,
                    "<rect class=\"{class} fill\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{:.1}\"/>",
                    ROW_HEIGHT_PIXELS - 6.0
                )?;
            }
            let behind = x.position(before) + 6.0;
            let note = truncate_to_width(&bar.label, width - behind);
            out.push_str(&svg_text(behind, top + 12.0, "start", "faint", &note));
            out.push_str("</g>\n");
        }
        out.push_str("</svg>");
        Ok(out)
    }

    fn legend(&self) -> Vec<(ColourRole, String)> {
        if self.series.len() > 1 { visible_series(&self.series, &self.bars) } else { Vec::new() }
    }
}
