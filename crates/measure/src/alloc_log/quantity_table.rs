//! Tables of quantities of one subject, or of two with the change between them.

use super::alloc_subject::AllocSubject;
use crate::chart::MeasureUnit;
use crate::measure_report::ReportTable;

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
            cells.push(format_change(before, after));
        }
        cells
    };
    ReportTable { title: title.into(), head, rows: rows.into_iter().map(format).collect() }
}

/// Returns the change from one value to another, as a percentage.
fn format_change(before: Option<f64>, after: Option<f64>) -> String {
    match (before, after) {
        (Some(before), Some(after)) if (before - after).abs() < f64::EPSILON => "=".into(),
        (Some(before), Some(after)) if before > 0.0 => {
            format!("{:+.1} %", (after - before) / before * 100.0)
        }
        _ => "-".into(),
    }
}
