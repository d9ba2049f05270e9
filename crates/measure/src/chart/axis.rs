//! Axes: the positions of values, the marks, and the format of numbers.

use crate::chart::{PlotArea, svg_text};
use std::fmt::Write as _;

/// The unit of a number, which decides how it is formatted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasureUnit {
    /// `1,234`, `3.5`
    Count,
    /// `1.2 kB`
    Bytes,
    /// Microseconds: `134 µs`, `2.5 s`, `3 h`
    Time,
    /// Nanoseconds: `134 ns`, `2.5 ms`, `3 s`
    Nanoseconds,
    /// 0 to 1: `40 %`
    Share,
}

impl MeasureUnit {
    /// Formats a value with about two digits, for people who read quickly.
    #[must_use]
    pub fn format(self, value: f64) -> String {
        self.format_with(value, format_number, format_brief)
    }

    /// Formats a value with three digits, for values that are compared.
    #[must_use]
    pub fn format_precisely(self, value: f64) -> String {
        self.format_with(value, format_three_digits, format_three_digits)
    }

    fn format_with(
        self,
        value: f64,
        count: fn(f64) -> String,
        number: fn(f64) -> String,
    ) -> String {
        let units: &[(f64, &str)] = match self {
            MeasureUnit::Count if value > MAX_EXACT_COUNT => return format!("≈ {}", count(value)),
            MeasureUnit::Count => return count(value),
            // Almost nothing is not nothing, nor almost all all of it.
            MeasureUnit::Share if value > 0.0 && value < 0.001 => return "<0.1 %".into(),
            MeasureUnit::Share if value > 0.999 && value < 1.0 => return ">99.9 %".into(),
            // A share that is rounded up to all of it would hide the rest.
            MeasureUnit::Share if value > 0.99 && value < 1.0 => {
                return format!("{:.1} %", value * 100.0);
            }
            MeasureUnit::Share => return format!("{} %", number(value * 100.0)),
            MeasureUnit::Bytes => &[
                (1.0, "bytes"),
                (1e3, "kB"),
                (1e6, "MB"),
                (1e9, "GB"),
                (1e12, "TB"),
                (1e15, "PB"),
                (1e18, "EB"),
            ],
            MeasureUnit::Nanoseconds => &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")],
            MeasureUnit::Time => &[
                (1.0, "µs"),
                (1e3, "ms"),
                (1e6, "s"),
                (6e7, "min"),
                (3.6e9, "h"),
                (8.64e10, "days"),
            ],
        };
        // The largest unit that is not greater than the value. A number that would be formatted as
        // 1,000 of a unit is 1 of the next.
        let fits = |(size, _): &&(f64, &str)| value.abs() >= size * 0.9995;
        let (size, name) =
            units.iter().rev().find(fits).or(units.first()).copied().unwrap_or((1.0, ""));
        match number(value / size) {
            one if one == "1" && name == "bytes" => "1 byte".into(),
            text => format!("{text} {name}"),
        }
    }

    /// Formats the mark of an axis: no unit at zero, which is the same in all units, and numbers
    /// that would need more than the room beside the axis with a prefix.
    fn format_mark(self, value: f64) -> String {
        let prefixes = [(1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")];
        match prefixes.into_iter().find(|(size, _)| value >= *size) {
            _ if value == 0.0 => "0".into(),
            Some((size, prefix)) if self == MeasureUnit::Count && value >= LONG_COUNT => {
                format!("{} {prefix}", format_brief(value / size))
            }
            _ => self.format(value),
        }
    }
}

/// Larger numbers are not exact in 64 bits with an exponent.
const MAX_EXACT_COUNT: f64 = 9_007_199_254_740_992.0;
/// Marks from here on do not fit beside a vertical axis when they are written out.
const LONG_COUNT: f64 = 1e8;

/// Formats a number with three digits, a whole one below 100 without decimals.
fn format_three_digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 || size.fract() == 0.0 => format_number(value.round()),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Formats a number with one decimal if it is below ten and the decimal is not 0.
fn format_brief(value: f64) -> String {
    let text =
        if value.abs() < 9.95 { format!("{value:.1}") } else { format_number(value.round()) };
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

fn format_number(value: f64) -> String {
    if value.fract() != 0.0 && value.abs() < 100.0 {
        return format_brief(value);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", group_digits(&format!("{:.0}", value.abs())))
}

/// Formats a number that may be too large for a float to hold exactly.
pub(crate) fn format_count(value: u64) -> String {
    group_digits(&value.to_string())
}

fn group_digits(digits: &str) -> String {
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Returns the offset of local time from UTC in seconds, at a time in microseconds since 1970.
pub type UtcOffsetFn<'a> = &'a dyn Fn(i64) -> i64;

/// The scale of an axis.
#[derive(Clone, Copy)]
pub enum AxisScale<'a> {
    /// Linear.
    Linear,
    /// Logarithmic; values below 1 count as 1.
    Log,
    /// Logarithmic, for numbers of things: it begins at a half, so that 1 is more than nothing.
    LogCount,
    /// Time, in microseconds since 1970.
    Time(UtcOffsetFn<'a>),
}

/// The lower end of a logarithmic axis for numbers of things.
const MIN_LOG_COUNT: f64 = 0.5;

/// An axis.
#[derive(Clone)]
pub struct ChartAxis<'a> {
    /// The name of the quantity.
    pub name: String,
    /// The unit of its numbers.
    pub unit: MeasureUnit,
    /// The scale.
    pub scale: AxisScale<'a>,
}

impl<'a> ChartAxis<'a> {
    /// Returns a linear axis.
    #[must_use]
    pub fn linear(name: &str, unit: MeasureUnit) -> ChartAxis<'a> {
        ChartAxis { name: name.into(), unit, scale: AxisScale::Linear }
    }

    /// Returns a logarithmic axis.
    #[must_use]
    pub fn log(name: &str, unit: MeasureUnit) -> ChartAxis<'a> {
        ChartAxis { name: name.into(), unit, scale: AxisScale::Log }
    }

    /// Returns a logarithmic axis for numbers of things.
    #[must_use]
    pub fn log_count(name: &str) -> ChartAxis<'a> {
        ChartAxis { name: name.into(), unit: MeasureUnit::Count, scale: AxisScale::LogCount }
    }

    /// Returns a time axis.
    #[must_use]
    pub fn time(name: &str, clock: UtcOffsetFn<'a>) -> ChartAxis<'a> {
        ChartAxis { name: name.into(), unit: MeasureUnit::Time, scale: AxisScale::Time(clock) }
    }

    /// Scales a range of values to a range of pixels. The ends of numeric ranges are widened to
    /// marks.
    pub(super) fn scale_to(&self, low: f64, high: f64, from: f64, to: f64) -> ScaledAxis<'_> {
        let (low, high) = match self.scale {
            AxisScale::Linear => (low, if high > low { high } else { low + 1.0 }),
            AxisScale::Log => {
                let low = low.max(1.0);
                (low, high.max(low * 10.0))
            }
            AxisScale::LogCount => (MIN_LOG_COUNT, high.max(10.0)),
            AxisScale::Time(_) => (low, if high > low { high } else { low + 1e6 }),
        };
        let room = (to - from).abs();
        let marks = match self.scale {
            // A vertical axis has room for more labels.
            AxisScale::Linear if from > to => linear_marks(low, high, self.unit, 5.0),
            AxisScale::Linear => linear_marks(low, high, self.unit, max_mark_count(room)),
            AxisScale::Log | AxisScale::LogCount => log_marks(low, high, self.unit),
            AxisScale::Time(clock) => time_marks(low, high, room, clock),
        };
        ScaledAxis { axis: self, min: low, max: high, start_pixel: from, end_pixel: to, marks }
    }
}

impl ChartAxis<'_> {
    /// Scales a vertical axis to values: a linear one from 0 to a mark, a logarithmic one from the
    /// lowest value to the highest.
    pub(super) fn scale_to_values(
        &self,
        low: f64,
        high: f64,
        from: f64,
        to: f64,
    ) -> ScaledAxis<'_> {
        match self.scale {
            AxisScale::Linear => {
                self.scale_to(0.0, round_up_to_mark(high, self.unit, 5.0), from, to)
            }
            _ => self.scale_to(low, high, from, to),
        }
    }
}

/// An axis scaled to a range of values in a picture.
pub(super) struct ScaledAxis<'a> {
    axis: &'a ChartAxis<'a>,
    min: f64,
    max: f64,
    start_pixel: f64,
    end_pixel: f64,
    pub(super) marks: Vec<(f64, String)>,
}

impl ScaledAxis<'_> {
    fn transform(&self, value: f64) -> f64 {
        match self.axis.scale {
            AxisScale::Log => value.max(1.0).log10(),
            AxisScale::LogCount => value.max(MIN_LOG_COUNT).log10(),
            _ => value,
        }
    }

    pub(super) fn position(&self, value: f64) -> f64 {
        let (low, high) = (self.transform(self.min), self.transform(self.max));
        let share = (self.transform(value) - low) / (high - low).max(1e-9);
        self.start_pixel + share.clamp(0.0, 1.0) * (self.end_pixel - self.start_pixel)
    }

    /// Returns the value at a position.
    pub(super) fn value_at(&self, position: f64) -> f64 {
        let (low, high) = (self.transform(self.min), self.transform(self.max));
        let share = (position - self.start_pixel) / (self.end_pixel - self.start_pixel);
        let value = low + share * (high - low);
        match self.axis.scale {
            AxisScale::Log | AxisScale::LogCount => 10f64.powf(value),
            _ => value,
        }
    }

    pub(super) fn unit(&self) -> MeasureUnit {
        self.axis.unit
    }

    /// Formats a value that is not a mark.
    pub(super) fn format(&self, value: f64) -> String {
        match self.axis.scale {
            AxisScale::Time(clock) => format_time_of_day(value as i64, clock, true),
            _ if self.axis.unit == MeasureUnit::Count => self.axis.unit.format(value.round()),
            _ => self.axis.unit.format(value),
        }
    }

    /// Draws the lower axis: marks with their lines, and its name.
    pub(super) fn draw_x_axis(&self, out: &mut String, plot: &PlotArea) -> std::fmt::Result {
        let (top, bottom) = (plot.top, plot.bottom);
        let mut free = f64::MIN;
        for (value, name) in &self.marks {
            let at = self.position(*value);
            writeln!(out, "<path class=\"grid\" d=\"M{at:.1} {top:.1}V{bottom:.1}\"/>")?;
            // Labels that would overlap or exceed the picture are omitted.
            let half = super::text_width_pixels(name) / 2.0;
            if at - half >= free && at + half <= plot.width {
                out.push_str(&svg_text(at, bottom + 16.0, "middle", "", name));
                free = at + half + 8.0;
            }
        }
        let middle = f64::midpoint(self.start_pixel, self.end_pixel);
        out.push_str(&svg_text(middle, bottom + 36.0, "middle", "faint", &self.axis.name));
        Ok(())
    }

    /// Draws the left axis.
    pub(super) fn draw_y_axis(&self, out: &mut String, plot: &PlotArea) -> std::fmt::Result {
        for (value, name) in &self.marks {
            let at = self.position(*value);
            writeln!(
                out,
                "<path class=\"grid\" d=\"M{:.1} {at:.1}H{:.1}\"/>",
                plot.left, plot.right
            )?;
            out.push_str(&svg_text(plot.left - 6.0, at + 4.0, "end", "", name));
        }
        Ok(())
    }
}

/// Returns the smallest 1, 2 or 5 times a power of ten that is at least `step`.
fn nice_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= step * 0.999);
    digit.unwrap_or(10.0) * power
}

/// Returns the smallest mark that is at least `most`: the end of an axis from zero.
pub(super) fn round_up_to_mark(most: f64, unit: MeasureUnit, marks: f64) -> f64 {
    let step = mark_step(most, unit, marks);
    (most / step).ceil().max(1.0) * step
}

fn mark_step(most: f64, unit: MeasureUnit, marks: f64) -> f64 {
    let least = if unit == MeasureUnit::Count { 1.0 } else { 1e-3 };
    // Times above a minute have steps of minutes, hours and days.
    let wanted = (most / marks).max(least);
    let clock = [6e7, 3e8, 6e8, 1.8e9, 3.6e9, 1.08e10, 2.16e10, 4.32e10, 8.64e10];
    match clock.into_iter().find(|step| *step >= wanted) {
        Some(step) if unit == MeasureUnit::Time && wanted > 3e7 => step,
        _ => nice_step(wanted),
    }
}

/// Returns the number of marks that fit.
pub(super) fn max_mark_count(room: f64) -> f64 {
    (room / 70.0).floor().clamp(2.0, 5.0)
}

fn linear_marks(low: f64, high: f64, unit: MeasureUnit, marks: f64) -> Vec<(f64, String)> {
    let step = mark_step(high - low, unit, marks);
    let first = (low / step).ceil();
    let mark = |number: u32| (first + f64::from(number)) * step;
    let marks = (0..50).map(mark).take_while(|value| *value <= high * 1.0001);
    marks.map(|value| (value, unit.format_mark(value))).collect()
}

fn log_marks(low: f64, high: f64, unit: MeasureUnit) -> Vec<(f64, String)> {
    let all: Vec<f64> = match unit {
        MeasureUnit::Time => {
            [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 6e7, 6e8, 3.6e9, 3.6e10, 8.64e10, 8.64e11]
                .into()
        }
        _ => (0..16).map(|power| 10f64.powi(power)).collect(),
    };
    let within = |value: &f64| *value >= low * 0.999 && *value <= high * 1.001;
    let mut all: Vec<f64> = all.into_iter().filter(within).collect();
    if all.len() < 4 {
        let steps = |power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power));
        all = (0..16).flat_map(steps).filter(within).collect();
    }
    all.into_iter().map(|value| (value, unit.format_mark(value))).collect()
}

const SECOND_MICROS: f64 = 1e6;
const DAY_MICROS: f64 = 86_400.0 * SECOND_MICROS;

fn time_marks(low: f64, high: f64, room: f64, clock: UtcOffsetFn<'_>) -> Vec<(f64, String)> {
    let wanted = (high - low) / (room / 75.0).max(2.0);
    if wanted < SECOND_MICROS {
        let step = nice_step(wanted.max(1.0));
        let mark = |number: u32| low + f64::from(number) * step;
        let marks = (0..50).map(mark).take_while(|value| *value <= high);
        return marks.map(|at| (at, format!("+{}", MeasureUnit::Time.format(at - low)))).collect();
    }
    let seconds = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200];
    let mut steps = seconds.map(|step| f64::from(step) * SECOND_MICROS).into_iter();
    let days = || [1.0, 2.0, 7.0, 14.0, 28.0].map(|days| days * DAY_MICROS).into_iter();
    let step = steps.find(|step| *step >= wanted).or_else(|| days().find(|step| *step >= wanted));
    let step = step.unwrap_or_else(|| (wanted / (364.0 * DAY_MICROS)).ceil() * 364.0 * DAY_MICROS);
    let ahead = clock(low as i64) as f64 * SECOND_MICROS;
    let first = ((low + ahead) / step).ceil();
    let mark = |number: u32| (first + f64::from(number)) * step - ahead;
    let marks = (0..50).map(mark).take_while(|value| *value <= high);
    let name = |at: f64| match (at as i64, step) {
        (at, step) if step >= DAY_MICROS || is_midnight(at, clock) => format_date(at, clock),
        (at, step) => format_time_of_day(at, clock, step < 60.0 * SECOND_MICROS),
    };
    marks.map(|at| (at, name(at))).collect()
}

fn is_midnight(at: i64, clock: UtcOffsetFn<'_>) -> bool {
    local_seconds(at, clock).rem_euclid(86_400) == 0
}

/// Formats a time of day: `09:30`, optionally with seconds.
#[must_use]
pub fn format_time_of_day(at: i64, clock: UtcOffsetFn<'_>, seconds: bool) -> String {
    let local = local_seconds(at, clock).rem_euclid(86_400);
    let (hour, minute, second) = (local / 3600, local / 60 % 60, local % 60);
    match seconds {
        true => format!("{hour:02}:{minute:02}:{second:02}"),
        false => format!("{hour:02}:{minute:02}"),
    }
}

/// Formats a date: `2 Mar 2026`.
#[must_use]
pub fn format_date(at: i64, clock: UtcOffsetFn<'_>) -> String {
    const MONTH_NAMES: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day) =
        larder_generate::civil_date(local_seconds(at, clock).div_euclid(86_400));
    let month = MONTH_NAMES.get((month as usize).wrapping_sub(1)).unwrap_or(&"");
    format!("{day} {month} {year}")
}

fn local_seconds(at: i64, clock: UtcOffsetFn<'_>) -> i64 {
    at.div_euclid(1_000_000).saturating_add(clock(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_counts_are_exact_or_marked() {
        assert_eq!(format_count(i64::MAX as u64), "9,223,372,036,854,775,807");
        assert_eq!(format_count(0), "0");
        assert_eq!(MeasureUnit::Count.format(9_007_199_254_740_991.0), "9,007,199,254,740,991");
        assert_eq!(MeasureUnit::Count.format(1e16), "≈ 10,000,000,000,000,000");
        assert_eq!(MeasureUnit::Count.format(-1234.0), "-1,234");
    }

    #[test]
    fn midnight_has_its_date() {
        let marks = time_marks(1.0, 3.0 * DAY_MICROS, 525.0, &|_| 0);
        let names: Vec<&str> = marks.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["12:00", "2 Jan 1970", "12:00", "3 Jan 1970", "12:00", "4 Jan 1970"]);
    }
}
