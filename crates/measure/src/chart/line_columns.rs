//! Lines of steps, reduced to columns of pixels: of the points in a column, the first, the lowest,
//! the highest and the last are kept, so that a line of many points looks as if all were drawn.

use crate::chart::ColourRole;
use std::fmt::{self, Write as _};

/// Steps of less than this are not drawn.
const MIN_STEP_PIXELS: f64 = 0.05;
/// Lines of less than this are drawn as dots.
const MIN_LINE_PIXELS: f64 = 3.0;

/// A line; the value of each point holds until the next.
#[derive(Debug, Clone)]
pub struct StepLine {
    /// The name of the line.
    pub name: String,
    /// Its colour.
    pub colour: ColourRole,
    /// Whether the area below the line is filled.
    pub is_filled: bool,
    /// The points, in order of x.
    pub points: Vec<(f64, f64)>,
    /// The lowest values of the points, whose own values are then the highest; may be empty.
    pub lows: Vec<f64>,
    /// Where the line ends; `None`: at the right end of the chart.
    pub end: Option<f64>,
}

/// The points of a line in one column of pixels. Positions are from the top of the picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LineColumn {
    x: f64,
    /// The positions of the first point, the two extremes in their order, and the last point.
    steps: [f64; 4],
    /// The position of the highest value, and of the lowest value below the line.
    high: f64,
    low: f64,
}

/// Reduces points, in order of x, each with the position of the lowest value below it.
pub(super) fn line_columns(points: impl Iterator<Item = (f64, f64, f64)>) -> Vec<LineColumn> {
    let mut columns: Vec<LineColumn> = Vec::new();
    for (x, y, low) in points {
        match columns.last_mut() {
            Some(column) if column.x.floor() == x.floor() => column.add(y, low),
            _ => columns.push(LineColumn { x, steps: [y; 4], high: y, low: low.max(y) }),
        }
    }
    columns
}

impl LineColumn {
    fn add(&mut self, y: f64, low: f64) {
        let [_, first, second, last] = &mut self.steps;
        let (top, bottom) = (first.min(*second), first.max(*second));
        // The extreme that was reached later is the second one.
        if y < top {
            (*first, *second) = (bottom, y);
        } else if y > bottom {
            (*first, *second) = (top, y);
        }
        *last = y;
        self.high = self.high.min(y);
        self.low = self.low.max(low).max(y);
    }
}

/// Returns the path of a step line to its right end. It begins at the bottom of the plot if that is
/// given, else at its first value: there is none before.
pub(super) fn step_path(
    columns: &[LineColumn],
    bottom: Option<f64>,
    right: f64,
) -> Result<String, fmt::Error> {
    let mut path = String::new();
    let Some(first) = columns.first() else { return Ok(path) };
    let [start, ..] = first.steps;
    let mut last = bottom.unwrap_or(start);
    write!(path, "M{:.1} {last:.1}", first.x)?;
    for column in columns {
        let mut is_at = false;
        for y in column.steps {
            if (y - last).abs() < MIN_STEP_PIXELS {
                continue;
            }
            if !is_at {
                write!(path, "H{:.1}", column.x)?;
                is_at = true;
            }
            write!(path, "V{y:.1}")?;
            last = y;
        }
    }
    write!(path, "H{right:.1}")?;
    Ok(path)
}

/// Returns the place of a dot for a line that begins where it ends, and has no length to be seen.
pub(super) fn end_dot(columns: &[LineColumn], right: f64) -> Option<(f64, f64)> {
    let first = columns.first().filter(|first| right - first.x < MIN_LINE_PIXELS)?;
    let [.., last] = columns.last()?.steps;
    Some((first.x.min(right), last))
}

/// Returns the path around the area between the highest and the lowest values, if there is one.
pub(super) fn range_path(columns: &[LineColumn], right: f64) -> Result<Option<String>, fmt::Error> {
    let has_range = columns.iter().any(|column| column.low - column.high >= 1.0);
    let Some(first) = columns.first().filter(|_| has_range) else { return Ok(None) };
    let mut path = String::new();
    write!(path, "M{:.1} {:.1}V{:.1}", first.x, first.low, first.high)?;
    for column in columns.get(1..).unwrap_or_default() {
        write!(path, "H{:.1}V{:.1}", column.x, column.high)?;
    }
    write!(path, "H{right:.1}")?;
    for column in columns.iter().rev() {
        write!(path, "V{:.1}H{:.1}", column.low, column.x)?;
    }
    path.push('Z');
    Ok(Some(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extremes_of_a_column_are_kept() {
        let points = (0..10_000).map(|number| {
            let y = if number == 5_432 { 3.0 } else { 100.0 + f64::from(number % 7) };
            (f64::from(number) / 1000.0, y, y)
        });
        let columns = line_columns(points);
        assert_eq!(columns.len(), 10);
        let path = step_path(&columns, Some(200.0), 10.0).unwrap();
        assert!(path.contains("V3.0"), "{path}");
        assert!(path.starts_with("M0.0 200.0H0.0V100.0V106.0"), "{path}");
        assert!(path.len() < 1000, "{path}");
        assert!(step_path(&columns, None, 10.0).unwrap().starts_with("M0.0 100.0H0.0V106.0"));
        assert_eq!(range_path(&columns, 10.0).unwrap().unwrap().matches('H').count(), 20);
    }

    #[test]
    fn a_line_of_one_value_at_its_end_is_a_dot() {
        let columns = line_columns([(9.0, 40.0, 40.0)].into_iter());
        assert_eq!(end_dot(&columns, 10.0), Some((9.0, 40.0)));
        assert_eq!(end_dot(&columns, 100.0), None);
        assert_eq!(end_dot(&[], 10.0), None);
    }

    #[test]
    fn a_line_without_points_has_no_path() {
        assert_eq!(step_path(&[], None, 10.0).unwrap(), "");
        assert_eq!(range_path(&[], 10.0).unwrap(), None);
    }
}
