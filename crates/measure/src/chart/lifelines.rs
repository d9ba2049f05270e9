//! Lifelines: who was there from when to when, a line each, in bands with a name. Lives that do not meet share a row.

use crate::chart::axis::Axis;
use crate::chart::{Draw, Escaped, Plot, Tone, cut, text, width_of};
use std::fmt::{self, Write as _};

/// A life.
#[derive(Debug, Clone)]
pub struct Lifeline {
    /// From when
    pub from: f64,
    /// to when.
    pub to: f64,
    /// Its colour.
    pub tone: Tone,
    /// Did it not end, as far as is known? Then it is thicker, and has a mark at its end.
    pub endless: bool,
    /// What is told of it.
    pub title: String,
}

/// Lives that belong together.
#[derive(Debug, Clone)]
pub struct Band {
    /// What they have in common.
    pub name: String,
    /// The lives, in the order in which they began.
    pub lives: Vec<Lifeline>,
}

/// Lives over time.
pub struct Lifelines<'a> {
    /// Along the time.
    pub along: Axis<'a>,
    /// The first and the last moment.
    pub from: (f64, f64),
    /// What the colours mean.
    pub tones: Vec<(Tone, String)>,
    /// The bands, from above.
    pub bands: Vec<Band>,
}

/// How high the lines may be together, and how high one is at least and at most.
const HEIGHT: f64 = 480.0;
const ROW: (f64, f64) = (2.5, 9.0);
/// A band is so high at least, for its name.
const BAND: f64 = 18.0;

impl Draw for Lifelines<'_> {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        // Lives that are nearer than anybody could see do meet.
        let gap = (self.from.1 - self.from.0) * 6.0 / width;
        let bands: Vec<(&Band, Vec<usize>, usize)> =
            self.bands.iter().map(|it| rows(it, gap)).collect();
        let number: usize = bands.iter().map(|(.., rows)| rows).sum();
        let row = (HEIGHT / number.max(1) as f64).clamp(ROW.0, ROW.1);
        let high = |rows: usize| (rows as f64 * row + 6.0).max(BAND);
        let height = bands.iter().map(|(.., rows)| high(*rows)).sum::<f64>() + 58.0;
        let names = self.bands.iter().map(|band| width_of(&band.name)).fold(40.0, f64::max);
        let left = names.min(width * 0.25) + 14.0;
        let plot = Plot::new(width, height, left);
        let x = self.along.laid(self.from.0, self.from.1, plot.left, plot.right);
        let mut out = plot.begin();
        x.lower(&mut out, &plot)?;
        let mut top = plot.top;
        for (band, places, rows) in bands {
            writeln!(
                out,
                "<path class=\"grid\" d=\"M0 {top:.1}H{:.1}\"/><g><title>{}</title>",
                plot.right,
                Escaped(&band.name)
            )?;
            out.push_str(&text(left - 8.0, top + 13.0, "end", "", &cut(&band.name, left - 14.0)));
            out.push_str("</g>\n");
            for (life, place) in band.lives.iter().zip(places) {
                let middle = top + 3.0 + (place as f64 + 0.5) * row;
                line(&mut out, life, row, middle, (x.place(life.from), x.place(life.to)))?;
            }
            top += high(rows);
        }
        out.push_str("</svg>");
        Ok(out)
    }

    fn legend(&self) -> Vec<(Tone, String)> {
        self.tones.clone()
    }
}

/// In which row of its band each life is, and how many there are: the first that is free again.
fn rows(band: &Band, gap: f64) -> (&Band, Vec<usize>, usize) {
    let mut free: Vec<f64> = Vec::new();
    let mut places = Vec::new();
    for life in &band.lives {
        let place = free.iter().position(|until| until + gap <= life.from).unwrap_or(free.len());
        match free.get_mut(place) {
            Some(until) => *until = life.to,
            None => free.push(life.to),
        }
        places.push(place);
    }
    (band, places, free.len())
}

fn line(
    out: &mut String,
    life: &Lifeline,
    row: f64,
    middle: f64,
    (from, to): (f64, f64),
) -> fmt::Result {
    let share = if life.endless { 0.8 } else { 0.45 };
    let thick = (row * share).max(1.2);
    // A life that was too short to be seen is seen nevertheless.
    let to = to.max(from + 1.5);
    let class = life.tone.class();
    writeln!(
        out,
        "<g class=\"{class}\"><title>{}</title><path class=\"life\" stroke-width=\"{thick:.1}\" d=\"M{from:.1} {middle:.1}H{to:.1}\"/>",
        Escaped(&life.title)
    )?;
    if life.endless {
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
