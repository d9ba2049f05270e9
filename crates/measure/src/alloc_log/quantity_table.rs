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
            cells.push(format_change(before, after));
        }
        cells
    };
    ReportTable { title: title.into(), head, rows: rows.into_iter().map(format).collect() }
}

/// Returns the change from one value to another: as a percentage, or as a factor from 10 on.
fn format_change(before: Option<f64>, after: Option<f64>) -> String {
    let (Some(before), Some(after)) = (before, after) else { return "-".into() };
    if (before - after).abs() < f64::EPSILON {
        return "=".into();
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
        let change = |before, after| format_change(Some(before), Some(after));
        assert_eq!(change(5.0, 5.0), "=");
        assert_eq!(change(100.0, 99.999), "<0.1 % less");
        assert_eq!(change(1e9, 1e9 + 1.0), "<0.1 % more");
        assert_eq!(change(100.0, 87.5), "-12.5 %");
        assert_eq!(change(2.0, 5.0), "+150.0 %");
        assert_eq!(change(1_000.0, 3_925_333.0), "× 3,925");
        assert_eq!((change(0.0, 5.0), format_change(None, Some(1.0))), ("-".into(), "-".into()));
    }
}
