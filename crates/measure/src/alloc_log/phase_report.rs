//! The section of a report about phases: calls, memory, sizes and lifetimes of each.

use super::alloc_subject::AllocSubject;
use super::analysis::{AllocAnalysis, PhaseStatistics, format_time};
use super::call_statistics::LifetimeShares;
use super::findings::count_of;
use super::phase_charts::{phase_charts, phase_tables};
use crate::chart::MeasureUnit;
use crate::measure_report::{ReportSection, ReportTable};

/// A column of a table of phases: its name, and the cell of a phase.
type PhaseColumn = (&'static str, fn(&PhaseStatistics, &AllocAnalysis) -> String);

const OVERVIEW: [PhaseColumn; 5] = [
    ("time", |phase, _| format_time(phase.duration_us)),
    ("calls", |phase, _| count(phase.statistics.total_calls())),
    ("requested, at most", |phase, _| bytes(phase.statistics.upper_bytes)),
    ("peak", |phase, _| bytes(phase.peak_bytes)),
    ("live at its end", |phase, _| bytes(phase.end_bytes)),
];

const MEMORY: [PhaseColumn; 3] = [
    ("live at the peak", |phase, _| bytes(phase.bytes_at_peak)),
    ("live at the end", |phase, _| bytes(phase.unreleased_bytes)),
    ("objects live at the end", |phase, _| count(phase.unreleased_objects)),
];

const SIZES: [PhaseColumn; 4] = [
    ("requests", |phase, _| count(phase.statistics.requests())),
    ("below 512 bytes", |phase, _| {
        share(phase.statistics.small_requests(), phase.statistics.requests())
    }),
    ("mean size", |phase, _| {
        let requests = phase.statistics.requests();
        phase.statistics.upper_bytes.checked_div(requests).map_or("-".into(), bytes)
    }),
    ("most frequent size", |phase, _| {
        // Among very many sizes, another one may be as frequent.
        let size = phase.statistics.frequent_sizes(1).into_iter().next();
        let is_known = |(_, times): &(u64, u64)| *times > phase.statistics.missing_requests();
        size.filter(is_known).map_or("-".into(), |(size, _)| count_of(size, "byte"))
    }),
];

const LIFETIMES: [PhaseColumn; 6] = [
    ("released objects", |phase, _| count(phase.statistics.lifetime_shares.released)),
    ("by the next call", |phase, _| lifetime_share(phase, |shares| shares.at_zero)),
    ("within 0.01 % of the calls", |phase, _| {
        lifetime_share(phase, |shares| shares.at_most_ten_thousandth)
    }),
    ("within 10 % of the calls", |phase, _| lifetime_share(phase, |shares| shares.at_most_tenth)),
    ("median lifetime in calls", |phase, _| {
        phase.statistics.lifetimes.quantile(0.5).map_or("-".into(), count)
    }),
    ("median lifetime in time", |phase, analysis| {
        let median = phase.statistics.lifetimes_us.quantile(0.5);
        median.map_or("-".into(), |time_us| analysis.format_lifetime(time_us))
    }),
];

/// Returns the section of phases, if there are any.
pub(super) fn phases_section(subjects: &[AllocSubject<'_>]) -> Option<ReportSection> {
    if subjects.iter().all(|subject| subject.analysis.phases.len() < 2) {
        return None;
    }
    let tables = subjects.iter().flat_map(|subject| {
        let title = |title: &str| match subjects {
            [_] => title.to_string(),
            _ => format!("{title}: {}", subject.name),
        };
        [
            phase_table(title("Phases"), subject, &OVERVIEW),
            phase_table(title("Live memory by phase"), subject, &MEMORY),
            phase_table(title("Sizes by phase"), subject, &SIZES),
            phase_table(title("Lifetimes by phase"), subject, &LIFETIMES),
        ]
    });
    Some(ReportSection {
        heading: "Phases".into(),
        text: "Phases begin where the program, or its messages, set a mark. An object belongs to \
               the phase that asked for it, or for its last size, whenever it was released."
            .into(),
        charts: phase_charts(subjects),
        tables: tables.chain(phase_tables(subjects)).collect(),
    })
}

/// Builds a table with a row for each phase.
fn phase_table(title: String, subject: &AllocSubject<'_>, columns: &[PhaseColumn]) -> ReportTable {
    let end = subject.logged_process().end_point();
    let names = columns.iter().map(|(name, _)| end.phrase(name));
    let head = ["phase".to_string()].into_iter().chain(names);
    let row = |phase: &PhaseStatistics| {
        let cells = columns.iter().map(|(_, cell)| cell(phase, &subject.analysis));
        [phase.name.clone()].into_iter().chain(cells).collect()
    };
    ReportTable {
        title,
        head: head.collect(),
        rows: subject.analysis.phases.iter().map(row).collect(),
    }
}

fn count(value: u64) -> String {
    MeasureUnit::Count.format(value as f64)
}

fn bytes(value: u64) -> String {
    MeasureUnit::Bytes.format(value as f64)
}

fn share(part: u64, of: u64) -> String {
    if of == 0 { "-".into() } else { MeasureUnit::Share.format(part as f64 / of as f64) }
}

fn lifetime_share(phase: &PhaseStatistics, part: fn(&LifetimeShares) -> u64) -> String {
    let shares = &phase.statistics.lifetime_shares;
    share(part(shares), shares.released)
}
