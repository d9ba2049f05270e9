//! The report of the memory of a tree of processes.

use super::{MemoryTimeline, TreeSample};
use crate::chart::{ChartAxis, ChartMark, ColourRole, MeasureUnit, StepChart, StepLine};
use crate::measure_report::{MeasureReport, ReportSection, ReportTable, SectionChart};
use crate::memory_map::{MemoryBytes, MemoryMap};

/// Mappings in the table; the others are one row.
const MAX_MAPPING_ROWS: usize = 25;
/// Mappings in the table of a phase.
const MAX_PHASE_MAPPING_ROWS: usize = 10;
/// Processes in the table.
const MAX_PROCESS_ROWS: usize = 50;

const ABOUT_MEMORY: &str = "Resident memory counts shared pages in each process, proportional \
                            memory divides them among their processes, and private memory leaves \
                            them out.";
const NO_PHASES: &str = " There are no phases: --phases REGEX begins them at messages of a command. \
                         Marks that a program sets itself are only seen by larder measure record.";

/// Builds the report of a command or process of this name.
#[must_use]
pub fn memory_report(name: &str, timeline: &MemoryTimeline) -> MeasureReport {
    MeasureReport {
        title: format!("Memory: {name}"),
        audience: "For developers: how much memory the program and its children take, when, and \
                   for what.",
        findings: [describe_peak(timeline)].into_iter().chain(describe_phase(timeline)).collect(),
        sections: [time_section(timeline)]
            .into_iter()
            .chain(phase_section(timeline))
            .chain([map_section(timeline), process_section(timeline)])
            .collect(),
    }
}

fn bytes(value: u64) -> String {
    MeasureUnit::Bytes.format(value as f64)
}

fn time(value: u64) -> String {
    MeasureUnit::Time.format(value as f64)
}

fn describe_peak(timeline: &MemoryTimeline) -> String {
    let Some(peak) = timeline.samples.iter().max_by_key(|sample| sample.resident_bytes) else {
        return "The command ended before its memory could be read.".into();
    };
    format!(
        "At most {} were resident, {} of it anonymous, after {} of {} in {}.",
        bytes(peak.resident_bytes),
        bytes(peak.anonymous_bytes),
        time(peak.time_us),
        time(timeline.samples.last().map_or(0, |sample| sample.time_us)),
        if peak.processes == 1 {
            "1 process".into()
        } else {
            format!("{} processes", peak.processes)
        }
    )
}

/// Names the phase of the peak, if there are phases.
fn describe_phase(timeline: &MemoryTimeline) -> Option<String> {
    let peak = timeline.samples.iter().max_by_key(|sample| sample.resident_bytes)?;
    let phase = timeline.phases.iter().rev().find(|phase| phase.time_us <= peak.time_us)?;
    Some(format!("The peak is in \"{}\".", phase.name))
}

fn time_section(timeline: &MemoryTimeline) -> ReportSection {
    let line = |name: &str, colour, value: fn(&TreeSample) -> f64| StepLine {
        name: name.into(),
        colour,
        is_filled: false,
        points: timeline
            .samples
            .iter()
            .map(|sample| (sample.time_us as f64, value(sample)))
            .collect(),
        lows: Vec::new(),
        end: None,
    };
    let end = timeline.samples.last().map_or(1, |sample| sample.time_us.max(1)) as f64;
    let marks = || {
        let phases = timeline.phases.iter();
        phases
            .map(|phase| ChartMark { at: phase.time_us as f64, name: phase.name.clone() })
            .collect()
    };
    let chart = |title: &str, y_axis, lines| -> SectionChart {
        let x_axis = ChartAxis::linear("time", MeasureUnit::Time);
        let chart = StepChart {
            x_axis,
            x_range: (0.0, end),
            y_axis,
            min_y_max: 1.0,
            lines,
            marks: marks(),
        };
        (title.into(), String::new(), Box::new(chart))
    };
    let memory = vec![
        line("resident (RSS)", ColourRole::First, |sample| sample.resident_bytes as f64),
        line("proportional (PSS)", ColourRole::Second, |sample| sample.proportional_bytes as f64),
        line("private (USS)", ColourRole::Third, |sample| sample.private_bytes as f64),
        line("anonymous", ColourRole::Error, |sample| sample.anonymous_bytes as f64),
    ];
    let busy = vec![line("processors", ColourRole::First, |sample| sample.processor_share)];
    let most = |value: fn(&TreeSample) -> u64| {
        bytes(timeline.samples.iter().map(value).max().unwrap_or_default())
    };
    let row = |name: &str, value: String| vec![name.to_string(), value];
    ReportSection {
        heading: "Over time".into(),
        text: format!("{ABOUT_MEMORY}{}", if timeline.phases.is_empty() { NO_PHASES } else { "" }),
        charts: vec![
            chart("Memory", ChartAxis::linear("memory", MeasureUnit::Bytes), memory),
            chart("Processors in use", ChartAxis::linear("processors", MeasureUnit::Count), busy),
        ],
        tables: vec![ReportTable {
            title: "Peaks".into(),
            head: vec![String::new(), "peak".into()],
            rows: vec![
                row("resident (RSS)", most(|sample| sample.resident_bytes)),
                row("proportional (PSS)", most(|sample| sample.proportional_bytes)),
                row("private (USS)", most(|sample| sample.private_bytes)),
                row("anonymous", most(|sample| sample.anonymous_bytes)),
                row("mapped (VMS)", most(|sample| sample.mapped_bytes)),
                row("processors in use", {
                    let shares = timeline.samples.iter().map(|sample| sample.processor_share);
                    MeasureUnit::Count.format(shares.fold(0.0, f64::max))
                }),
            ],
        }],
    }
}

/// Returns the section of the phases, each with the memory where it begins; none without phases.
fn phase_section(timeline: &MemoryTimeline) -> Option<ReportSection> {
    if timeline.phases.is_empty() {
        return None;
    }
    let ends = timeline.phases.iter().skip(1).map(|phase| phase.time_us).chain([u64::MAX]);
    let rows = timeline.phases.iter().zip(ends).map(|(phase, end)| {
        let within =
            timeline.samples.iter().filter(|sample| (phase.time_us..end).contains(&sample.time_us));
        let peak = within.map(|sample| sample.resident_bytes).max();
        let total = phase.map.total();
        let begin = |value: u64| if total.mapped > 0 { bytes(value) } else { "-".into() };
        vec![
            phase.name.clone(),
            time(phase.time_us),
            begin(total.resident()),
            begin(total.proportional),
            peak.map_or("-".into(), bytes),
        ]
    });
    let head = ["phase", "begins after", "resident then", "proportional then", "peak resident"];
    let phases = ReportTable {
        title: "Phases".into(),
        head: head.map(String::from).to_vec(),
        rows: rows.collect(),
    };
    let mapped = timeline.phases.iter().filter(|phase| phase.map.total().mapped > 0);
    let maps = mapped.map(|phase| {
        let title =
            format!("Mappings after {}, where \"{}\" begins", time(phase.time_us), phase.name);
        map_table(&title, &phase.map, MAX_PHASE_MAPPING_ROWS)
    });
    Some(ReportSection {
        heading: "Phases".into(),
        text: "Phases begin where a message of the command matches.".into(),
        charts: Vec::new(),
        tables: [phases].into_iter().chain(maps).collect(),
    })
}

fn map_section(timeline: &MemoryTimeline) -> ReportSection {
    ReportSection {
        heading: "Mappings".into(),
        text: format!(
            "Memory by file, heap and stack, after {}, near the peak. Clean pages can be read again \
             from their files; dirty ones have to be kept.",
            time(timeline.map_time_us)
        ),
        charts: Vec::new(),
        tables: vec![map_table("Mappings", &timeline.map, MAX_MAPPING_ROWS)],
    }
}

/// Returns the table of a map: its largest mappings, the others, and the sum.
fn map_table(title: &str, map: &MemoryMap, limit: usize) -> ReportTable {
    let head =
        ["mapping", "proportional", "private", "shared", "clean", "dirty", "mapped", "swapped"];
    let row = |name: &str, memory: &MemoryBytes| {
        let values = [
            memory.proportional,
            memory.private,
            memory.shared,
            memory.resident_clean,
            memory.resident_dirty,
            memory.mapped,
            memory.swapped,
        ];
        [name.to_string()].into_iter().chain(values.map(bytes)).collect::<Vec<_>>()
    };
    let largest: Vec<_> =
        map.largest().into_iter().filter(|(_, memory)| memory.resident() > 0).collect();
    let mut rows: Vec<Vec<String>> =
        largest.iter().take(limit).map(|(name, memory)| row(name, memory)).collect();
    let mut others = MemoryBytes::default();
    largest.iter().skip(limit).for_each(|(_, memory)| others.add(memory));
    if others != MemoryBytes::default() {
        rows.push(row("others", &others));
    }
    rows.push(row("all", &map.total()));
    ReportTable { title: title.into(), head: head.map(String::from).to_vec(), rows }
}

fn process_section(timeline: &MemoryTimeline) -> ReportSection {
    let mut processes: Vec<_> = timeline.processes.iter().collect();
    processes.sort_by_key(|(pid, _, resident)| (std::cmp::Reverse(*resident), *pid));
    let rows = processes
        .iter()
        .take(MAX_PROCESS_ROWS)
        .map(|(pid, name, resident)| vec![name.clone(), pid.to_string(), bytes(*resident)]);
    ReportSection {
        heading: "Processes".into(),
        text: "Processes that lived when a sample was taken, the largest first.".into(),
        charts: Vec::new(),
        tables: vec![ReportTable {
            title: "Processes".into(),
            head: ["program", "process id", "peak resident"].map(String::from).to_vec(),
            rows: rows.collect(),
        }],
    }
}
