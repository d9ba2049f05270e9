//! The figures of a log that are told first, and those of two logs beside each other.

use crate::chart::Unit;
use crate::queries::Report;

/// One figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// What it is.
    pub name: &'static str,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: Unit,
}

/// The figures that are told first.
#[must_use]
pub fn figures(report: &Report) -> Vec<Figure> {
    let Report { reuse, lives, cost, worth, informed, .. } = report;
    let figure = |name, value, unit| Figure { name, value, unit };
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
    vec![
        figure("answers", reuse.answers.all() as f64, Unit::Count),
        figure("different questions", reuse.questions as f64, Unit::Count),
        figure("from the cache", share(reuse.answers.cache, reuse.answers.all()), Unit::Share),
        figure("from an open view", share(reuse.answers.shared, reuse.answers.all()), Unit::Share),
        figure("views opened", lives.opened as f64, Unit::Count),
        figure("views never closed", lives.never_closed() as f64, Unit::Count),
        figure("mean time, worked out", cost.run.us.mean(), Unit::Time),
        figure("worst time", cost.run.us.most as f64, Unit::Time),
        figure(
            "visited per item given",
            cost.run.scanned_per_returned().unwrap_or(0.0),
            Unit::Count,
        ),
        figure("kept answers, at most", lives.kept.peak as f64, Unit::Bytes),
        figure(
            "kept without a limit",
            worth.trials.last().map_or(0.0, |it| it.peak as f64),
            Unit::Bytes,
        ),
        figure("views told per change", share(informed.told, informed.changes), Unit::Count),
    ]
}

/// The figures of two logs: the name, before, after, and how it changed.
#[must_use]
pub fn both(before: &Report, after: &Report) -> Vec<[String; 4]> {
    let row = |(a, b): (Figure, Figure)| {
        [a.name.to_string(), a.unit.write(a.value), b.unit.write(b.value), change(a.value, b.value)]
    };
    figures(before).into_iter().zip(figures(after)).map(row).collect()
}

/// `+20 %`, `/ 3.5`: what became of a value.
#[must_use]
pub fn change(before: f64, after: f64) -> String {
    let brief = |times: f64| Unit::Count.write((times * 10.0).round() / 10.0);
    match after / before {
        _ if before == after => "same".into(),
        _ if before == 0.0 => "new".into(),
        _ if after == 0.0 => "gone".into(),
        times if times >= 2.0 => format!("x {}", brief(times)),
        times if times <= 0.5 => format!("/ {}", brief(1.0 / times)),
        times => format!("{:+.0} %", (times - 1.0) * 100.0),
    }
}
