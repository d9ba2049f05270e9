//! Lifetimes in a report, in calls and in time.

use super::alloc_subject::{AllocSubject, SUBJECT_COLOURS};
use super::analysis::AllocAnalysis;
use super::quantity_table::{QuantityRow, quantity, quantity_table};
use crate::chart::{ChartAxis, MeasureUnit, PhaseAxes, StepChart, StepLine};
use crate::measure_report::{ReportSection, SectionChart};

/// Returns the section of lifetimes.
pub(super) fn lifetimes_section(subjects: &[AllocSubject<'_>]) -> ReportSection {
    let share = |name: &str, part: fn(&AllocAnalysis) -> u64| {
        quantity(subjects, name, MeasureUnit::Share, move |s| {
            let released = s.analysis.lifetimes.released;
            (released > 0).then(|| part(&s.analysis) as f64 / released as f64)
        })
    };
    let quantile = |name: &str, part: f64| {
        quantity(subjects, name, MeasureUnit::Count, move |s| {
            s.analysis.total.lifetimes.quantile(part).map(|calls| calls as f64)
        })
    };
    let step_us = time_step_us(subjects);
    let time_quantile = |name: &str, part: f64| {
        let row = quantity(subjects, name, MeasureUnit::Time, move |s| {
            s.analysis.total.lifetimes_us.quantile(part).map(|time_us| time_us as f64)
        });
        QuantityRow { step: step_us, ..row }
    };
    let rows = vec![
        quantity(subjects, "released objects", MeasureUnit::Count, |s| {
            Some(s.analysis.lifetimes.released as f64)
        }),
        share("released by the next call", |analysis| analysis.lifetimes.at_zero),
        share("short-lived: at most 0.01 % of the calls", |analysis| {
            analysis.lifetimes.at_most_ten_thousandth
        }),
        share("lived for at most 10 % of the calls", |analysis| analysis.lifetimes.at_most_tenth),
        quantile("median lifetime in calls", 0.5),
        quantile("90 % lived for at most, in calls", 0.9),
        quantile("99 % lived for at most, in calls", 0.99),
        time_quantile("median lifetime in time", 0.5),
        time_quantile("90 % lived for at most, in time", 0.9),
        time_quantile("99 % lived for at most, in time", 0.99),
    ];
    let has_released = subjects.iter().any(|subject| subject.analysis.lifetimes.released > 0);
    let is_forked = |subject: &AllocSubject<'_>| subject.logged_process().start.is_forked;
    let inherited = match subjects.iter().any(is_forked) {
        true => " Those from before a fork are left out.",
        false => "",
    };
    let no_charts = match (has_released, inherited) {
        (true, _) => "",
        (false, "") => "No object was released, so there is no chart. ",
        (false, _) => "No object of its own was released, so there is no chart. ",
    };
    ReportSection {
        heading: "Lifetimes".into(),
        text: format!(
            "{no_charts}The lifetime of an object is the number of calls, or the time, between its allocation \
             and its release. A realloc continues the object: it ends no life, and of a buffer that \
             grew the lifetime is that from its first size on. Times below {} are not told apart.{inherited}",
            MeasureUnit::Time.format(step_us)
        ),
        charts: match has_released {
            true => vec![calls_chart(subjects), time_chart(subjects)],
            false => Vec::new(),
        },
        tables: vec![quantity_table("Lifetimes", subjects, rows)],
    }
}

/// Returns the least time that lifetimes are told from none: of several logs the coarsest, because
/// their values are compared.
fn time_step_us(subjects: &[AllocSubject<'_>]) -> f64 {
    subjects.iter().map(|subject| subject.analysis.time_step_us).max().unwrap_or(1) as f64
}

fn calls_chart(subjects: &[AllocSubject<'_>]) -> SectionChart {
    let calls = subjects.iter().map(|subject| subject.analysis.calls).max().unwrap_or(0);
    let chart = distribution(
        subjects,
        ChartAxis::log("lifetime in calls, plus 1", MeasureUnit::Count),
        (1.0, calls.max(2) as f64),
        |analysis| {
            let steps = analysis.total.lifetimes.cumulative().into_iter();
            steps.map(|(calls, sum)| (calls as f64 + 1.0, sum as f64)).collect()
        },
    );
    let caption = "The share of the objects that lived for so many calls, or for fewer.";
    ("Released objects by lifetime".into(), caption.into(), Box::new(chart))
}

fn time_chart(subjects: &[AllocSubject<'_>]) -> SectionChart {
    let step_us = time_step_us(subjects);
    let durations = subjects.iter().map(|subject| subject.logged_process().duration_us().1);
    let chart = distribution(
        subjects,
        ChartAxis::log("lifetime", MeasureUnit::Time),
        (step_us, durations.max().unwrap_or(0) as f64),
        |analysis| {
            let steps = analysis.total.lifetimes_us.cumulative().into_iter();
            steps.map(|(time_us, sum)| (time_us as f64, sum as f64)).collect()
        },
    );
    let caption = "The share of the objects that lived for so long, or shorter. Those at the left \
                   edge lived shorter than times are known.";
    ("Released objects by lifetime in time".into(), caption.into(), Box::new(chart))
}

/// Returns the chart of a cumulated distribution of released objects.
fn distribution(
    subjects: &[AllocSubject<'_>],
    x_axis: ChartAxis<'static>,
    x_range: (f64, f64),
    points: fn(&AllocAnalysis) -> Vec<(f64, f64)>,
) -> StepChart<'static> {
    let lines = subjects.iter().zip(SUBJECT_COLOURS).map(|(subject, colour)| {
        let total = subject.analysis.lifetimes.released.max(1) as f64;
        let points = points(&subject.analysis).into_iter();
        StepLine {
            name: subject.name.clone(),
            colour,
            is_filled: subjects.len() == 1,
            points: points.map(|(lifetime, sum)| (lifetime, sum / total)).collect(),
            lows: Vec::new(),
            end: None,
        }
    });
    StepChart {
        axes: PhaseAxes {
            x_axis,
            x_range,
            y_axis: ChartAxis::linear("objects", MeasureUnit::Share),
            marks: Vec::new(),
        },
        min_y_max: 1.0,
        lines: lines.collect(),
    }
}
