//! Lifelines: a line from the start to the end of each lifetime, in named bands. Lifetimes that do
//! not overlap share a row.

use crate::chart::axis::ChartAxis;
use crate::chart::{
    Chart, ColourRole, PlotArea, XmlEscaped, svg_text, text_width_pixels, truncate_to_width,
};
use std::fmt::{self, Write as _};

/// A lifeline.
#[derive(Debug, Clone)]
pub struct Lifeline {
    /// Its start.
    pub start: f64,
    /// Its end.
    pub end: f64,
    /// Its colour.
    pub colour: ColourRole,
    /// Whether the end is unknown. Such a line is thicker and has a mark at its end.
    pub is_open_ended: bool,
    /// The tooltip.
    pub tooltip: String,
}

/// A group of lifelines.
#[derive(Debug, Clone)]
pub struct LifelineBand {
    /// The name of the group.
    pub name: String,
    /// The lifelines, in the order of their starts.
    pub lifelines: Vec<Lifeline>,
}

/// Lifelines over time.
pub struct LifelineChart<'a> {
    /// The time axis.
    pub x_axis: ChartAxis<'a>,
    /// The range of the time axis.
    pub x_range: (f64, f64),
    /// The meaning of the colours.
    pub legend_entries: Vec<(ColourRole, String)>,
    /// The bands, from the top.
    pub bands: Vec<LifelineBand>,
}

/// The maximum height of all rows, and the limits of the height of one.
const MAX_HEIGHT_PIXELS: f64 = 480.0;
const ROW_HEIGHT_LIMITS_PIXELS: (f64, f64) = (2.5, 9.0);
/// The minimum height of a band, for its name.
const MIN_BAND_HEIGHT_PIXELS: f64 = 18.0;

impl Chart for LifelineChart<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        // Lifetimes with an invisible gap count as overlapping.
        let gap = (self.x_range.1 - self.x_range.0) * 6.0 / width;
        let bands: Vec<(&LifelineBand, Vec<usize>, usize)> =
            self.bands.iter().map(|it| assign_rows(it, gap)).collect();
        let number: usize = bands.iter().map(|(.., rows)| rows).sum();
        let row = (MAX_HEIGHT_PIXELS / number.max(1) as f64)
            .clamp(ROW_HEIGHT_LIMITS_PIXELS.0, ROW_HEIGHT_LIMITS_PIXELS.1);
        let high = |rows: usize| (rows as f64 * row + 6.0).max(MIN_BAND_HEIGHT_PIXELS);
        let height = bands.iter().map(|(.., rows)| high(*rows)).sum::<f64>() + 58.0;
        let names =
            self.bands.iter().map(|band| text_width_pixels(&band.name)).fold(40.0, f64::max);
        let left = names.min(width * 0.25) + 14.0;
        let plot = PlotArea::new(width, height, left);
        let x = self.x_axis.scale_to(self.x_range.0, self.x_range.1, plot.left, plot.right);
        let mut out = plot.svg_start_tag();
        x.draw_x_axis(&mut out, &plot)?;
        let mut top = plot.top;
        for (band, places, rows) in bands {
            writeln!(
                out,
                "<path class=\"grid\" d=\"M0 {top:.1}H{:.1}\"/><g><title>{}</title>",
                plot.right,
                XmlEscaped(&band.name)
            )?;
            out.push_str(&svg_text(
                left - 8.0,
                top + 13.0,
                "end",
                "",
                &truncate_to_width(&band.name, left - 14.0),
            ));
            out.push_str("</g>\n");
            for (life, place) in band.lifelines.iter().zip(places) {
                let middle = top + 3.0 + (place as f64 + 0.5) * row;
                draw_lifeline(
                    &mut out,
                    life,
                    row,
                    middle,
                    (x.position(life.start), x.position(life.end)),
                )?;
            }
            top += high(rows);
        }
        out.push_str("</svg>");
        Ok(out)
    }

    fn legend(&self) -> Vec<(ColourRole, String)> {
        self.legend_entries.clone()
    }
}

/// Assigns each lifeline to the first free row of its band; returns the rows and their number.
fn assign_rows(band: &LifelineBand, gap: f64) -> (&LifelineBand, Vec<usize>, usize) {
    let mut free: Vec<f64> = Vec::new();
    let mut places = Vec::new();
    for life in &band.lifelines {
        let place = free.iter().position(|until| until + gap <= life.start).unwrap_or(free.len());
        match free.get_mut(place) {
            Some(until) => *until = life.end,
            None => free.push(life.end),
        }
        places.push(place);
    }
    (band, places, free.len())
}

fn draw_lifeline(
    out: &mut String,
    life: &Lifeline,
    row: f64,
    middle: f64,
    (from, to): (f64, f64),
) -> fmt::Result {
    let share = if life.is_open_ended { 0.8 } else { 0.45 };
    let thick = (row * share).max(1.2);
    // Every lifeline is wide enough to be visible.
    let to = to.max(from + 1.5);
    let class = life.colour.css_class();
    writeln!(
        out,
        "<g class=\"{class}\"><title>{}</title><path class=\"life\" stroke-width=\"{thick:.1}\" d=\"M{from:.1} {middle:.1}H{to:.1}\"/>",
        XmlEscaped(&life.tooltip)
    )?;
    if life.is_open_ended {
        let half = (row * 0.5).max(2.0);
        writeln!(
            out,
            "<path class=\"fill\" d=\"M{to:.1} {:.1}l{:.1} {half:.1}l-{:.1} {half:.1}z\"/>",
            middle - half,
            half + 2.0,
            half + 2.0
        )?;
    }
    out.push_str("</g>\n");
    Ok(())
}
