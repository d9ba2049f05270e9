//! The report of benchmark results as JSON.

use super::{BenchmarkRegression, BenchmarkRow, BenchmarkRun, ResultFolder, ScriptHistory};
use serde_json::{Value, json};

/// Returns the regressions, and all values by script, machine and row.
#[must_use]
pub fn results_json(folder: &ResultFolder) -> Value {
    let histories = ScriptHistory::from_runs(&folder.runs);
    let regressions = histories.iter().flat_map(ScriptHistory::regressions);
    let rejected = folder.rejected.iter().map(
        |(path, error)| json!({ "file": path.display().to_string(), "reason": error.to_string() }),
    );
    json!({
        "runs": folder.runs.len(),
        "rejected": rejected.collect::<Vec<_>>(),
        "regressions": regressions.map(|one| regression_json(&one)).collect::<Vec<_>>(),
        "scripts": histories.iter().map(history_json).collect::<Vec<_>>(),
    })
}

fn regression_json(regression: &BenchmarkRegression<'_>) -> Value {
    let BenchmarkRegression { before_run, before, after_run, after } = regression;
    let side = |run: &BenchmarkRun, row: &BenchmarkRow| json!({ "date": run.date, "commit": run.commit, "value": row.value });
    json!({
        "script": after_run.script,
        "machine": after_run.machine,
        "measure": after.measure,
        "unit": after.unit,
        "size": after.size,
        "change": regression.change(),
        "before": side(before_run, before),
        "after": side(after_run, after),
    })
}

fn history_json(history: &ScriptHistory<'_>) -> Value {
    let run = |run: &&BenchmarkRun| {
        json!({
            "date": run.date,
            "commit": run.commit,
            "larder": run.larder,
            "system": run.system,
            "load": run.load,
            "size_of": run.size_of,
            "rows": run.rows,
        })
    };
    let first = history.runs.first();
    json!({
        "script": first.map(|run| &run.script),
        "machine": first.map(|run| &run.machine),
        "processors": first.map(|run| run.processors),
        "runs": history.runs.iter().map(run).collect::<Vec<_>>(),
    })
}
