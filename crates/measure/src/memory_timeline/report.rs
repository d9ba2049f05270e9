//! The report of the memory of a tree of processes.

use super::{MemoryTimeline, TreeSample};
use crate::chart::{
    ChartAxis, ChartMark, ColourRole, MeasureUnit, PhaseAxes, StepChart, StepDotChart, StepLine,
};
use crate::measure_report::{MeasureReport, ReportSection, ReportTable, SectionChart};
use crate::memory_map::{MemoryBytes, MemoryMap};
use crate::process_cost::signal_text;

/// Mappings in the table; the others are one row.
const MAX_MAPPING_ROWS: usize = 25;
/// Mappings in the table of a phase.
const MAX_PHASE_MAPPING_ROWS: usize = 10;
/// Programs that may not be read and are named.
const MAX_DENIED_NAMES: usize = 5;
/// Processes in the table.
const MAX_PROCESS_ROWS: usize = 50;

const ABOUT_MEMORY: &str = "Resident memory counts shared pages in each process, proportional \
                            memory divides them among their processes, and private memory leaves \
                            them out. The figures are sums over all processes. Samples are 1 ms \
                            apart at first and 50 ms later. Proportional and private memory are \
                            costly: they are read at some samples only, so that they take a \
                            hundredth of the time, and their peaks are those of these samples.";

/// Builds the report of a command or process of this name.
#[must_use]
pub fn memory_report(name: &str, timeline: &MemoryTimeline) -> MeasureReport {
    MeasureReport {
        title: format!("Memory: {name}"),
        audience: "For developers: how much memory the program and its children take, when, and \
                   for what.",
        findings: describe_end(timeline)
            .into_iter()
            .chain(describe_largest_process(timeline))
            .chain([describe_peak(timeline)])
            .chain(describe_phase(timeline))
            .chain(describe_denied(timeline))
            .collect(),
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

/// Says how a command ended that failed.
fn describe_end(timeline: &MemoryTimeline) -> Option<String> {
    match (timeline.signal, timeline.code) {
        (Some(signal), _) => Some(format!("The command was ended by {}.", signal_text(signal))),
        (None, Some(code)) if code != 0 => {
            Some(format!("The command ended with exit code {code}."))
        }
        _ => None,
    }
}

/// Tells the peak that the kernel counts.
fn describe_largest_process(timeline: &MemoryTimeline) -> Option<String> {
    let most = bytes(timeline.largest_process_bytes?);
    Some(format!(
        "Exactly {most} were resident in the largest process at its peak, as the kernel counts it."
    ))
}

/// Tells the largest of the samples.
fn describe_peak(timeline: &MemoryTimeline) -> String {
    let Some(peak) = &timeline.peak else {
        return "The command ended before its memory could be read.".into();
    };
    format!(
        "The largest of {}, 1 to 50 ms apart, has {} resident, {} of it anonymous, after {} of {} \
         in {}. A peak between samples is not in these figures.",
        count_of(timeline.sample_count, "sample", "samples"),
        bytes(peak.resident_bytes),
        bytes(peak.anonymous_bytes),
        time(peak.time_us),
        time(timeline.duration_us),
        count_of(peak.processes, "process", "processes"),
    )
}

fn count_of(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Names the phase of the peak, if there are phases.
fn describe_phase(timeline: &MemoryTimeline) -> Option<String> {
    let peak = timeline.peak?;
    let phase = timeline.phases.iter().rev().find(|phase| phase.time_us <= peak.time_us)?;
    (timeline.phases.len() > 1).then(|| format!("The largest sample is in \"{}\".", phase.name))
}

/// Says how many processes are in some figures only, because there is no permission to read others.
fn describe_denied(timeline: &MemoryTimeline) -> Option<String> {
    let denied = &timeline.denied_processes;
    if denied.is_empty() {
        return None;
    }
    let programs = timeline.processes.iter().filter(|(pid, _, _)| denied.contains(pid));
    let mut names: Vec<&str> = programs.map(|(_, name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let others = names.len().saturating_sub(MAX_DENIED_NAMES);
    names.truncate(MAX_DENIED_NAMES);
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    let it = if denied.len() == 1 { "it" } else { "them" };
    Some(format!(
        "{} may not be read ({}{more}): mappings are those of the others, and proportional and \
         private memory are from samples without {it}. To read {it} needs the user, or root.",
        count_of(denied.len(), "process", "processes"),
        names.join(", "),
    ))
}

fn time_section(timeline: &MemoryTimeline) -> ReportSection {
    let line = |name: &str, colour, value: fn(&TreeSample) -> Option<f64>| StepLine {
        name: name.into(),
        colour,
        is_filled: false,
        points: timeline
            .samples
            .iter()
            .filter_map(|sample| Some((sample.time_us as f64, value(sample)?)))
            .collect(),
        lows: Vec::new(),
        end: None,
    };
    let end = timeline.duration_us.max(1) as f64;
    let marks = || {
        let phases = timeline.phases.iter();
        phases
            .map(|phase| ChartMark { at: phase.time_us as f64, name: phase.name.clone() })
            .collect()
    };
    let chart = |title: &str, y_axis, lines, dots| -> SectionChart {
        let x_axis = ChartAxis::linear("time", MeasureUnit::Time);
        let steps = StepChart {
            axes: PhaseAxes { x_axis, x_range: (0.0, end), y_axis, marks: marks() },
            min_y_max: 1.0,
            lines,
        };
        (title.into(), String::new(), Box::new(StepDotChart { steps, dots }))
    };
    let memory = vec![
        line("resident (RSS)", ColourRole::First, |sample| Some(sample.resident_bytes as f64)),
        line("anonymous", ColourRole::Error, |sample| Some(sample.anonymous_bytes as f64)),
    ];
    let costly = vec![
        line("proportional (PSS)", ColourRole::Second, |sample| {
            sample.proportional_bytes.map(|value| value as f64)
        }),
        line("private (USS)", ColourRole::Third, |sample| {
            sample.private_bytes.map(|value| value as f64)
        }),
    ];
    let busy = vec![line("processors", ColourRole::First, |sample| Some(sample.processor_share))];
    let row = |name: &str, value: fn(&TreeSample) -> Option<u64>| {
        let values = || timeline.samples.iter().filter_map(value);
        let most = values().max().map_or("not read".into(), bytes);
        vec![name.to_string(), most, values().count().to_string()]
    };
    let shares = timeline.samples.iter().map(|sample| sample.processor_share);
    let most_busy = shares.reduce(f64::max);
    let most_busy = most_busy.map_or("not read".into(), |most| MeasureUnit::Count.format(most));
    ReportSection {
        heading: "Over time".into(),
        text: ABOUT_MEMORY.into(),
        charts: vec![
            chart("Memory", ChartAxis::linear("memory", MeasureUnit::Bytes), memory, costly),
            chart(
                "Processors in use",
                ChartAxis::linear("processors", MeasureUnit::Count),
                busy,
                Vec::new(),
            ),
        ],
        tables: vec![ReportTable {
            title: "Peaks among the samples".into(),
            head: ["", "peak", "samples"].map(String::from).to_vec(),
            rows: vec![
                row("resident (RSS)", |sample| Some(sample.resident_bytes)),
                row("proportional (PSS)", |sample| sample.proportional_bytes),
                row("private (USS)", |sample| sample.private_bytes),
                row("anonymous", |sample| Some(sample.anonymous_bytes)),
                row("mapped (VMS)", |sample| Some(sample.mapped_bytes)),
                vec!["processors in use".into(), most_busy, timeline.samples.len().to_string()],
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
    // Where a command starts, nothing but its loader is mapped.
    let mapped = timeline.phases.iter().skip(1).filter(|phase| phase.map.total().mapped > 0);
    let maps = mapped.map(|phase| {
        let title =
            format!("Mappings after {}, where \"{}\" begins", time(phase.time_us), phase.name);
        map_table(&title, &phase.map, MAX_PHASE_MAPPING_ROWS)
    });
    Some(ReportSection {
        heading: "Phases".into(),
        text: match timeline.phases.len() {
            1 => "Phases begin where a message of the command matches. No message matched.".into(),
            _ => "Phases begin where a message of the command matches; \"start\" is before the \
                  first. A phase without a peak ended before a sample was taken in it."
                .into(),
        },
        charts: Vec::new(),
        tables: [phases].into_iter().chain(maps).collect(),
    })
}

fn map_section(timeline: &MemoryTimeline) -> ReportSection {
    let peak = timeline.peak.unwrap_or_default();
    let text = if timeline.map_resident_bytes == 0 && timeline.is_map_denied {
        "There is no permission to read the mappings of the process (/proc/PID/smaps), nor \
         proportional and private memory: that needs its user, or root."
            .into()
    } else if timeline.map_resident_bytes == 0 {
        "The command ended before a map could be read.".into()
    } else {
        let left_out = match timeline.denied_processes.len() {
            0 => String::new(),
            denied => {
                format!(
                    ", without {} that may not be read",
                    count_of(denied, "process", "processes")
                )
            }
        };
        format!(
            "Memory by file, heap and stack{left_out}, after {} with {} resident; the largest sample is after \
             {} and has {}. A map is read again when the memory has grown by 5 %, as long as maps \
             take at most a tenth of the time. Clean pages can be read again from their files; dirty \
             ones have to be kept.",
            time(timeline.map_time_us),
            bytes(timeline.map_resident_bytes),
            time(peak.time_us),
            bytes(peak.resident_bytes),
        )
    };
    ReportSection {
        heading: "Mappings".into(),
        text,
        charts: Vec::new(),
        tables: match timeline.map_resident_bytes {
            0 => Vec::new(),
            _ => vec![map_table("Mappings", &timeline.map, MAX_MAPPING_ROWS)],
        },
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
        text: "Processes that lived when a sample was taken, the largest first. The kernel counts \
               the peak of each since its program began; growth between the last sample of a \
               process and its end is not in it."
            .into(),
        charts: Vec::new(),
        tables: vec![ReportTable {
            title: "Processes".into(),
            head: ["program", "process id", "peak resident"].map(String::from).to_vec(),
            rows: rows.collect(),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_that_may_not_be_read_are_no_empty_mappings() {
        let peak = Some(TreeSample { resident_bytes: 4096, ..TreeSample::default() });
        let timeline = MemoryTimeline { peak, is_map_denied: true, ..MemoryTimeline::default() };
        let section = map_section(&timeline);
        assert!(section.text.contains("no permission"), "{}", section.text);
        assert_eq!(section.tables, []);
    }

    /// Where some processes may not be read, sums are over the others, and say so.
    #[test]
    fn processes_that_may_not_be_read_are_counted() {
        let mut timeline = MemoryTimeline {
            map_resident_bytes: 4096,
            is_map_denied: true,
            processes: vec![(7, "sh".into(), 0), (8, "su".into(), 0), (9, "su".into(), 0)],
            denied_processes: [8, 9].into(),
            ..MemoryTimeline::default()
        };
        let findings = memory_report("sh", &timeline).findings;
        let sentence = "2 processes may not be read (su): mappings are those of the others, and \
                        proportional and private memory are from samples without them. To read \
                        them needs the user, or root.";
        assert_eq!(findings.last().unwrap(), sentence);
        let text = map_section(&timeline).text;
        let begin =
            "Memory by file, heap and stack, without 2 processes that may not be read, after";
        assert!(text.starts_with(begin), "{text}");
        timeline.denied_processes.clear();
        assert!(!memory_report("sh", &timeline).findings.concat().contains("may not be read"));
        assert!(map_section(&timeline).text.starts_with("Memory by file, heap and stack, after"));
    }

    #[test]
    fn the_end_of_a_command_that_failed_is_told() {
        let end = |code, signal| {
            describe_end(&MemoryTimeline { code, signal, ..MemoryTimeline::default() })
        };
        assert_eq!(end(Some(139), Some(11)).unwrap(), "The command was ended by SIGSEGV.");
        assert_eq!(end(Some(3), None).unwrap(), "The command ended with exit code 3.");
        assert_eq!((end(Some(0), None), end(None, None)), (None, None));
    }
}
