//! Tables of quantities of one subject, or of two with the change between them.

use super::alloc_subject::AllocSubject;
use crate::chart::MeasureUnit;
use crate::measure_report::ReportTable;

/// Larger changes are factors.
const MIN_FACTOR: f64 = 10.0;

/// A row of a table that compares subjects.
pub(super) struct QuantityRow {
    pub(super) name: String,
    pub(super) unit: MeasureUnit,
    /// Smaller values are not told from 0.
    pub(super) step: f64,
    pub(super) values: Vec<Option<f64>>,
}

/// Returns a row with a value of each subject.
pub(super) fn quantity(
    subjects: &[AllocSubject<'_>],
    name: impl Into<String>,
    unit: MeasureUnit,
    value: impl Fn(&AllocSubject<'_>) -> Option<f64>,
) -> QuantityRow {
    let values = subjects.iter().map(value).collect();
    QuantityRow { name: name.into(), unit, step: 0.0, values }
}

impl QuantityRow {
    fn format_value(&self, value: Option<f64>) -> String {
        match value {
            Some(value) if value < self.step => format!("<{}", self.unit.format(self.step)),
            Some(value) => self.unit.format(value),
            None => "-".into(),
        }
    }
}

/// Builds a table of quantities, with the change if there are two subjects.
pub(super) fn quantity_table(
    title: &str,
    subjects: &[AllocSubject<'_>],
    rows: Vec<QuantityRow>,
) -> ReportTable {
    let mut head = vec![String::new()];
    match subjects {
        [_] => head.push("value".into()),
        _ => head.extend(subjects.iter().map(|subject| subject.name.clone())),
    }
    if subjects.len() == 2 {
        head.push("change".into());
    }
    let format = |row: QuantityRow| {
        let mut cells = vec![row.name.clone()];
        cells.extend(row.values.iter().map(|value| row.format_value(*value)));
        if let [before, after] = row.values[..] {
            let known = |value: Option<f64>| value.map(|it| if it < row.step { 0.0 } else { it });
            cells.push(format_change(row.unit, known(before), known(after)));
        }
        cells
    };
    ReportTable { title: title.into(), head, rows: rows.into_iter().map(format).collect() }
}

/// Returns the change from one value to another: as a percentage, or as a factor from 10 on; from
/// one share to another, in percentage points.
fn format_change(unit: MeasureUnit, before: Option<f64>, after: Option<f64>) -> String {
    let (Some(before), Some(after)) = (before, after) else { return "-".into() };
    if (before - after).abs() < f64::EPSILON {
        return "=".into();
    }
    if unit == MeasureUnit::Share {
        return match (after - before) * 100.0 {
            points if points.abs() < 0.05 => {
                if points < 0.0 { "<0.1 points less" } else { "<0.1 points more" }.into()
            }
            points => format!("{points:+.1} points"),
        };
    }
    if before <= 0.0 {
        return "-".into();
    }
    let times = after / before;
    match (times - 1.0) * 100.0 {
        change if change.abs() < 0.05 => {
            if change < 0.0 { "<0.1 % less" } else { "<0.1 % more" }.into()
        }
        _ if times >= MIN_FACTOR => format!("× {}", MeasureUnit::Count.format(times.round())),
        change => format!("{change:+.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_readable() {
        let change = |before, after| format_change(MeasureUnit::Count, Some(before), Some(after));
        assert_eq!(change(5.0, 5.0), "=");
        assert_eq!(change(100.0, 99.999), "<0.1 % less");
        assert_eq!(change(1e9, 1e9 + 1.0), "<0.1 % more");
        assert_eq!(change(100.0, 87.5), "-12.5 %");
        assert_eq!(change(2.0, 5.0), "+150.0 %");
        assert_eq!(change(1_000.0, 3_925_333.0), "× 3,925");
        assert_eq!(change(0.0, 5.0), "-");
        assert_eq!(format_change(MeasureUnit::Count, None, Some(1.0)), "-");
        let points = |before, after| format_change(MeasureUnit::Share, Some(before), Some(after));
        assert_eq!(points(0.98, 0.43), "-55.0 points");
        assert_eq!((points(0.0, 0.5), points(0.5, 0.5)), ("+50.0 points".into(), "=".into()));
        assert_eq!(points(0.5, 0.4999), "<0.1 points less");
    }
}
