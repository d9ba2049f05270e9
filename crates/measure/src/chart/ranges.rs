//! Range charts: the mean, the 95th percentile and the maximum of each row, on a logarithmic axis.

use crate::chart::axis::ChartAxis;
use crate::chart::{
    Chart, ColourRole, PlotArea, XmlEscaped, svg_text, text_width_pixels, truncate_to_width,
};
use std::fmt::{self, Write as _};

/// A row of the chart.
#[derive(Debug, Clone)]
pub struct ChartRange {
    /// The name of the row.
    pub name: String,
    /// The series, each with the mean, the 95th percentile and the maximum.
    pub values: Vec<(ColourRole, String, [f64; 3])>,
}

/// Ranges in rows, from the top.
pub struct RangeChart<'a> {
    /// The axis of the values.
    pub x_axis: ChartAxis<'a>,
    /// The rows.
    pub ranges: Vec<ChartRange>,
}

const ROW_HEIGHT_PIXELS: f64 = 18.0;

impl Chart for RangeChart<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        let values = || self.ranges.iter().flat_map(|range| &range.values);
        let rows = values().count() as f64 * ROW_HEIGHT_PIXELS + self.ranges.len() as f64 * 8.0;
        let names =
            self.ranges.iter().map(|range| text_width_pixels(&range.name)).fold(0.0, f64::max);
        let left = names.min(width * 0.36) + 14.0;
        let plot = PlotArea { right: width - 30.0, ..PlotArea::new(width, rows + 54.0, left) };
        let all = || values().flat_map(|(_, _, values)| *values);
        let (low, high) = (all().fold(f64::MAX, f64::min), all().fold(1.0, f64::max));
        let power = |value: f64, up: bool| {
            let power = value.max(1.0).log10();
            10f64.powf(if up { power.ceil() } else { power.floor() })
        };
        let x = self.x_axis.scale_to(power(low, false), power(high, true), plot.left, plot.right);
        let mut out = plot.svg_start_tag();
        x.draw_x_axis(&mut out, &plot)?;
        let mut top = plot.top;
        for range in &self.ranges {
            writeln!(out, "<g><title>{}</title>", XmlEscaped(&range.name))?;
            out.push_str(&svg_text(
                left - 8.0,
                top + 14.0,
                "end",
                "",
                &truncate_to_width(&range.name, left - 14.0),
            ));
            out.push_str("</g>\n");
            for (colour, series, values) in &range.values {
                let [mean, p95, max] = values.map(|value| self.x_axis.unit.format(value));
                let tooltip = format!(
                    "{} - {series}: mean {mean}, 95th percentile {p95}, maximum {max}",
                    range.name
                );
                let [mean, p95, max] = values.map(|value| x.position(value));
                let middle = top + 10.0;
                let class = colour.css_class();
                writeln!(
                    out,
                    "<g class=\"{class}\"><title>{}</title>\
                     <path class=\"line\" d=\"M{mean:.1} {middle:.1}H{max:.1}M{max:.1} {:.1}v10\"/>\
                     <path class=\"life\" stroke-width=\"6\" d=\"M{:.1} {middle:.1}H{:.1}\"/>\
                     <circle class=\"fill\" cx=\"{mean:.1}\" cy=\"{middle:.1}\" r=\"5\"/></g>",
                    XmlEscaped(&tooltip),
                    middle - 5.0,
                    mean.min(p95),
                    mean.max(p95),
                )?;
                top += ROW_HEIGHT_PIXELS;
            }
            top += 8.0;
        }
        out.push_str("</svg>");
        Ok(out)
    }

    fn legend(&self) -> Vec<(ColourRole, String)> {
        let first = self.ranges.iter().max_by_key(|range| range.values.len());
        let all = first.into_iter().flat_map(|range| &range.values);
        let legend: Vec<_> = all.map(|(tone, whose, _)| (*tone, whose.clone())).collect();
        if legend.len() > 1 { legend } else { Vec::new() }
    }
}
