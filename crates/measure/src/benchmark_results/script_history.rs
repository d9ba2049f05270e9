//! The runs of a script on a machine: its measures, and Larder's regressions.

use super::{BenchmarkRow, BenchmarkRun, OWN_PROGRAM};
use std::collections::BTreeMap;

/// A row is worse if its value has changed by more than this part.
const REGRESSION_SHARE: f64 = 0.10;
/// The error of a quotient of two values.
const ROUNDING_ERROR: f64 = 1e-9;

/// The runs of a script on a machine.
#[derive(Debug, Clone)]
pub struct ScriptHistory<'a> {
    /// The runs, in order of their dates; there is at least one.
    pub runs: Vec<&'a BenchmarkRun>,
}

/// A row of Larder that is more than 10 % worse than in the last run of another commit.
#[derive(Debug, Clone, Copy)]
pub struct BenchmarkRegression<'a> {
    /// The run before.
    pub before_run: &'a BenchmarkRun,
    /// Its row.
    pub before: &'a BenchmarkRow,
    /// The latest run.
    pub after_run: &'a BenchmarkRun,
    /// Its row.
    pub after: &'a BenchmarkRow,
}

impl<'a> ScriptHistory<'a> {
    /// Sorts runs, which are in order of their dates, by machine and script.
    #[must_use]
    pub fn from_runs(runs: &'a [BenchmarkRun]) -> Vec<ScriptHistory<'a>> {
        let mut histories: BTreeMap<(&str, u32, &str), Vec<&BenchmarkRun>> = BTreeMap::new();
        for run in runs {
            let key = (run.machine.as_str(), run.processors, run.script.as_str());
            histories.entry(key).or_default().push(run);
        }
        histories.into_values().map(|runs| ScriptHistory { runs }).collect()
    }

    /// Returns the latest run.
    pub(super) fn latest(&self) -> Option<&'a BenchmarkRun> {
        self.runs.last().copied()
    }

    /// Returns the rows of a measure of the latest run, by measure, in the order of the file.
    pub(super) fn latest_measures(&self) -> Vec<Vec<&'a BenchmarkRow>> {
        let mut measures: Vec<Vec<&BenchmarkRow>> = Vec::new();
        for row in self.latest().into_iter().flat_map(|run| &run.rows) {
            let same = |rows: &&mut Vec<&BenchmarkRow>| {
                rows.first().is_some_and(|first| first.is_same_measure(row))
            };
            match measures.iter_mut().find(same) {
                Some(rows) => rows.push(row),
                None => measures.push(vec![row]),
            }
        }
        measures
    }

    /// Returns the last run of another commit than the latest one that has a row about the same
    /// thing: a second run of a commit does not hide what it made worse.
    pub(super) fn row_before(
        &self,
        row: &BenchmarkRow,
    ) -> Option<(&'a BenchmarkRun, &'a BenchmarkRow)> {
        let is_same = |other: &&BenchmarkRow| other.is_same_row(row);
        let found = |run: &&'a BenchmarkRun| Some((*run, run.rows.iter().find(is_same)?));
        let latest = self.latest()?;
        let others = self.runs.iter().rev().filter(|run| run.commit != latest.commit);
        others.into_iter().find_map(found)
    }

    /// Returns the rows of Larder in the latest run that are worse than before.
    #[must_use]
    pub fn regressions(&self) -> Vec<BenchmarkRegression<'a>> {
        self.comparisons().filter(BenchmarkRegression::is_worse).collect()
    }

    /// Returns whether a row of Larder in the latest run has a value before.
    pub(super) fn is_compared(&self) -> bool {
        self.comparisons().next().is_some()
    }

    /// Returns the rows of Larder in the latest run that have a value before, worse or not.
    fn comparisons(&self) -> impl Iterator<Item = BenchmarkRegression<'a>> {
        let rows = self.latest().into_iter().flat_map(|latest| {
            let own = latest.rows.iter().filter(|row| row.program == OWN_PROGRAM);
            own.map(move |after| (latest, after))
        });
        rows.filter_map(|(after_run, after)| {
            let (before_run, before) = self.row_before(after)?;
            Some(BenchmarkRegression { before_run, before, after_run, after })
        })
    }
}

impl BenchmarkRegression<'_> {
    fn is_worse(&self) -> bool {
        let (before, after) = (self.before.value, self.after.value);
        match self.after.less_is_better {
            true => after > before * (1.0 + REGRESSION_SHARE + ROUNDING_ERROR),
            false => after < before * (1.0 - REGRESSION_SHARE - ROUNDING_ERROR),
        }
    }

    /// Returns the change as a part of the value before; none if that was 0.
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        let before = self.before.value;
        (before > 0.0).then(|| (self.after.value - before) / before)
    }
}

impl BenchmarkRow {
    /// Returns whether two rows have the same measure, of whatever program and size.
    pub(super) fn is_same_measure(&self, other: &BenchmarkRow) -> bool {
        (&self.measure, &self.unit) == (&other.measure, &other.unit)
    }

    /// Returns whether two rows differ in value and version at most.
    pub(super) fn is_same_row(&self, other: &BenchmarkRow) -> bool {
        self.is_same_measure(other) && (&self.program, self.size) == (&other.program, other.size)
    }
}
