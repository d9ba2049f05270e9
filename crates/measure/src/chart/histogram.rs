//! Histograms: how often values of each range occur, on linear or logarithmic axes.

use crate::chart::axis::{ChartAxis, round_up_to_mark};
use crate::chart::{Chart, ColourRole, PlotArea, XmlEscaped};
use std::fmt::{self, Write as _};

/// A range of values and how often it occurs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistogramBucket {
    /// The first value.
    pub start: f64,
    /// The first value of the next range.
    pub end: f64,
    /// The number of occurrences.
    pub count: f64,
}

/// The occurrences of one subject.
#[derive(Debug, Clone)]
pub struct HistogramSeries {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub colour: ColourRole,
    /// The buckets that are not empty, in order.
    pub buckets: Vec<HistogramBucket>,
}

/// A histogram of one subject, or of several drawn over each other.
pub struct HistogramChart<'a> {
    /// The axis of the values.
    pub x_axis: ChartAxis<'a>,
    /// The axis of the numbers.
    pub y_axis: ChartAxis<'a>,
    /// The subjects.
    pub series: Vec<HistogramSeries>,
}

impl Chart for HistogramChart<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        let plot = PlotArea::new(width, 240.0, 72.0);
        let buckets = || self.series.iter().flat_map(|series| &series.buckets);
        let first = buckets().map(|bucket| bucket.start).fold(f64::MAX, f64::min);
        let last = buckets().map(|bucket| bucket.end).fold(1.0, f64::max);
        let most = buckets().map(|bucket| bucket.count).fold(1.0, f64::max);
        let x = self.x_axis.scale_to(first.min(last), last, plot.left, plot.right);
        let top = round_up_to_mark(most, self.y_axis.unit, 5.0);
        let y = self.y_axis.scale_to(0.0, top, plot.bottom, plot.top);
        let mut out = plot.svg_start_tag();
        y.draw_y_axis(&mut out, &plot)?;
        x.draw_x_axis(&mut out, &plot)?;
        for series in &self.series {
            writeln!(out, "<g class=\"{}\">", series.colour.css_class())?;
            for column in columns_of_pixels(&series.buckets, &|value| x.position(value)) {
                let down = y.position(column.bucket.count);
                let height = (plot.bottom - down).max(1.0);
                writeln!(
                    out,
                    "<rect class=\"fill\" opacity=\".75\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{}</title></rect>",
                    column.left,
                    plot.bottom - height,
                    column.width,
                    XmlEscaped(&self.tooltip(&series.name, &column.bucket))
                )?;
            }
            out.push_str("</g>\n");
        }
        out.push_str("</svg>");
        Ok(out)
    }

    fn legend(&self) -> Vec<(ColourRole, String)> {
        let series = self.series.iter().map(|series| (series.colour, series.name.clone()));
        if self.series.len() > 1 { series.collect() } else { Vec::new() }
    }
}

impl HistogramChart<'_> {
    fn tooltip(&self, name: &str, bucket: &HistogramBucket) -> String {
        let (from, to) = (bucket.start, bucket.end - 1.0);
        let range = match from < to {
            true => format!("{} to {}", self.x_axis.unit.format(from), self.x_axis.unit.format(to)),
            false => self.x_axis.unit.format(from),
        };
        format!("{name}: {range}, {}", self.y_axis.unit.format(bucket.count))
    }
}

/// A column of the picture.
struct PixelColumn {
    left: f64,
    width: f64,
    bucket: HistogramBucket,
}

/// Joins buckets that are narrower than a pixel: of those that fall on one, the highest is drawn,
/// so that no peak is lost.
fn columns_of_pixels(buckets: &[HistogramBucket], x: &dyn Fn(f64) -> f64) -> Vec<PixelColumn> {
    let mut columns: Vec<PixelColumn> = Vec::new();
    for bucket in buckets {
        let left = x(bucket.start);
        let width = (x(bucket.end) - left - 0.5).max(1.0);
        match columns.last_mut() {
            Some(last) if left - last.left < 1.0 => {
                if bucket.count > last.bucket.count {
                    last.bucket = *bucket;
                }
            }
            _ => columns.push(PixelColumn { left, width, bucket: *bucket }),
        }
    }
    columns
}
