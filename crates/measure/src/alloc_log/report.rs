//! The report of an allocation log: the same sections for text and for the page, of one log or of
//! two side by side.
//!
//! A section has a sentence that says what its figures mean, a chart, and a table with the figures
//! of the chart, so that nothing is only in a picture.

use super::alloc_subject::{
    AllocSubject, SUBJECT_COLOURS, call_functions, common_end_point, function_name,
};
use super::analysis::AllocAnalysis;
use super::call_statistics::NARROW_BUCKET_BYTES;
use super::call_times::TIME_STEP_US;
use super::end_point::EndPoint;
use super::findings::{
    count_of, describe_changes, describe_cuts, describe_findings, describe_gaps, describe_process,
};
use super::lifetime_report::lifetimes_section;
use super::live_charts::{memory_charts, number_tables};
use super::phase_report::phases_section;
use super::process_list::processes_section;
use super::quantity_table::{QuantityRow, quantity, quantity_table};
use super::ring_layout::RingOperation;
use super::small_sizes::WIDE_BUCKET_BYTES;
use super::stack_profile::StackProfile;
use crate::chart::{
    BarChart, ChartAxis, ChartBar, HistogramBucket, HistogramChart, HistogramSeries, MeasureUnit,
};
use crate::measure_report::{MeasureReport, ReportSection, ReportTable, SectionChart};

/// Rows of the tables of sizes.
pub(super) const MAX_SIZE_ROWS: usize = 12;

/// The samples of call stacks that should be live at the peak, and how many a recording should
/// take at most.
const STACK_SAMPLES_AT_PEAK: u64 = 300;
const MAX_STACK_SAMPLES: u64 = 200_000;
const MIN_STACK_INTERVAL: u64 = 16;

/// Builds the report of one subject, or of two to compare.
#[must_use]
pub fn build_report(subjects: &[AllocSubject<'_>]) -> MeasureReport {
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
    let mut sections = vec![
        memory_section(subjects),
        calls_section(subjects),
        sizes_section(subjects),
        lifetimes_section(subjects),
        end_section(subjects),
    ];
    sections.extend(stacks_section(subjects));
    sections.extend(phases_section(subjects));
    sections.extend(processes_section(subjects));
    MeasureReport {
        title: format!("Allocations: {}", names.join(" and ")),
        audience: "For developers: how much memory the program asked the allocator for, when, in \
                   what sizes, and for how long.",
        findings: describe_subjects(subjects),
        sections,
    }
}

/// Returns the sentences of one subject, or the changes and the sentences of two.
fn describe_subjects(subjects: &[AllocSubject<'_>]) -> Vec<String> {
    let sentences = |subject: &AllocSubject<'_>| {
        let process = [describe_process(subject)].into_iter();
        let about = process.chain(describe_gaps(subject));
        let findings = about.chain(describe_findings(subject));
        findings.chain(describe_origins(subject)).collect::<Vec<_>>()
    };
    let Ok(pair) = <&[AllocSubject<'_>; 2]>::try_from(subjects) else {
        return subjects.iter().flat_map(sentences).collect();
    };
    let of_each = pair.iter().flat_map(|subject| {
        sentences(subject).into_iter().map(move |text| format!("{}: {text}", subject.name))
    });
    [describe_changes(pair)].into_iter().chain(of_each).collect()
}

/// Says which functions asked for the memory of a subject, or how to learn it.
fn describe_origins(subject: &AllocSubject<'_>) -> Option<String> {
    if subject.analysis.total.requests() == 0 {
        return None;
    }
    let interval = stack_interval_text(&subject.analysis);
    match &subject.stacks {
        Some(stacks) => Some(stacks.describe_origins(&subject.analysis.peak_and_end(), &interval)),
        None => Some(format!(
            "The log does not say which functions asked for the memory: `larder measure record \
             --stacks {interval}` records that."
        )),
    }
}

/// Returns the distance of samples of call stacks of which some hundred are live at the peak, if
/// they do not cost too much, as it is written on the command line.
fn stack_interval_text(analysis: &AllocAnalysis) -> String {
    let own = analysis.peak.bytes.saturating_sub(analysis.peak.inherited_bytes);
    let wanted = (own / STACK_SAMPLES_AT_PEAK).max(analysis.total.upper_bytes / MAX_STACK_SAMPLES);
    match 1_u64 << wanted.max(MIN_STACK_INTERVAL).ilog2() {
        large if large >= 1 << 20 => format!("{}M", large >> 20),
        small if small >= 1 << 10 => format!("{}k", small >> 10),
        tiny => tiny.to_string(),
    }
}

fn memory_section(subjects: &[AllocSubject<'_>]) -> ReportSection {
    let mut rows = vec![
        quantity(subjects, "duration", MeasureUnit::Time, |s| {
            Some(s.logged_process().duration_us().1 as f64)
        }),
        quantity(subjects, "peak of live memory", MeasureUnit::Bytes, |s| {
            Some(s.analysis.peak.bytes as f64)
        }),
        QuantityRow {
            step: TIME_STEP_US as f64,
            ..quantity(subjects, "time from the start to that peak", MeasureUnit::Time, |s| {
                Some(s.analysis.time_to_peak_us() as f64)
            })
        },
        quantity(subjects, "calls up to that peak", MeasureUnit::Count, |s| {
            Some(s.analysis.peak.calls as f64)
        }),
        quantity(subjects, "objects at that peak", MeasureUnit::Count, |s| {
            Some(s.analysis.peak.objects as f64)
        }),
        quantity(subjects, "peak of live objects", MeasureUnit::Count, |s| {
            Some(s.analysis.peak_objects as f64)
        }),
        quantity(subjects, "requested in total, at least", MeasureUnit::Bytes, |s| {
            Some(s.analysis.total.lower_bytes as f64)
        }),
        quantity(subjects, "requested in total, at most", MeasureUnit::Bytes, |s| {
            Some(s.analysis.total.upper_bytes as f64)
        }),
    ];
    if subjects.iter().any(|subject| subject.logged_process().start.inherited_bytes > 0) {
        type InheritedBytes = fn(&AllocSubject<'_>) -> u64;
        let inherited: [(&str, InheritedBytes); 3] = [
            ("inherited by the fork", |s| s.logged_process().start.inherited_bytes),
            ("of it live at the peak", |s| s.analysis.peak.inherited_bytes),
            ("of it live at the end", |s| s.analysis.inherited_at_end.1),
        ];
        let end = common_end_point(subjects);
        rows.extend(inherited.map(|(name, value)| {
            quantity(subjects, end.phrase(name), MeasureUnit::Bytes, |s| Some(value(s) as f64))
        }));
    }
    let resident =
        quantity(subjects, "peak of resident memory, by samples", MeasureUnit::Bytes, |s| {
            let samples = s.logged_process().samples.iter();
            samples.map(|sample| sample.resident_bytes as f64).reduce(f64::max)
        });
    let mut text =
        "Live memory is the sum of the sizes that the program has asked for and not yet \
                    released. The total is at least the sum of what sizes grew by, and at most the \
                    sum of all sizes, as if every realloc took new memory."
            .to_string();
    if resident.values.iter().any(Option::is_none) {
        text.push_str(
            " Resident memory is sampled every 50 ms; a shorter run has no sample of it. `larder \
             measure memory` has its peak.",
        );
    }
    if resident.values.iter().any(Option::is_some) {
        rows.push(resident);
    }
    ReportSection {
        heading: "Memory".into(),
        text,
        charts: memory_charts(subjects),
        tables: [quantity_table("Memory", subjects, rows)]
            .into_iter()
            .chain(number_tables(subjects))
            .collect(),
    }
}

fn calls_section(subjects: &[AllocSubject<'_>]) -> ReportSection {
    let is_called = |function: &RingOperation| {
        let statistics = |s: &AllocSubject<'_>| {
            s.analysis.total.calls_of(*function) + s.analysis.total.failures_of(*function)
        };
        subjects.iter().any(|subject| statistics(subject) > 0)
    };
    let functions: Vec<RingOperation> = call_functions().filter(is_called).collect();
    let count = |s: &AllocSubject<'_>, function| s.analysis.total.calls_of(function) as f64;
    let mut rows: Vec<QuantityRow> = functions
        .iter()
        .map(|function| {
            quantity(subjects, function_name(*function), MeasureUnit::Count, |s| {
                Some(count(s, *function))
            })
        })
        .collect();
    rows.push(quantity(subjects, "all", MeasureUnit::Count, |s| Some(s.analysis.calls as f64)));
    let failures = quantity(subjects, "of these failed", MeasureUnit::Count, |s| {
        Some(call_functions().map(|f| s.analysis.total.failures_of(f)).sum::<u64>() as f64)
    });
    rows.push(failures);
    rows.push(quantity(subjects, "free(NULL), not counted above", MeasureUnit::Count, |s| {
        s.logged_process().end.map(|end| end.null_frees as f64)
    }));
    // A bar for each subject, in its colour.
    let bars = functions.iter().flat_map(|function| {
        subjects.iter().enumerate().map(|(number, subject)| {
            let calls = count(subject, *function);
            let mut values = vec![0.0; subjects.len()];
            values[number] = calls;
            ChartBar {
                name: function_name(*function).into(),
                x_start: 0.0,
                values,
                label: MeasureUnit::Count.format(calls),
            }
        })
    });
    let name = |subject: &AllocSubject<'_>| match subjects {
        [_] => "calls".to_string(),
        _ => subject.name.clone(),
    };
    let series = SUBJECT_COLOURS.into_iter().zip(subjects.iter().map(name));
    let chart = BarChart {
        x_axis: ChartAxis::linear("calls", MeasureUnit::Count),
        series: series.collect(),
        bars: bars.collect(),
    };
    ReportSection {
        heading: "Calls".into(),
        text:
            "Calls of each function of the allocator that succeeded. The number of all calls has \
               those that failed as well."
                .into(),
        charts: vec![("Calls by function".into(), String::new(), Box::new(chart))],
        tables: vec![quantity_table("Calls by function", subjects, rows)],
    }
}

fn sizes_section(subjects: &[AllocSubject<'_>]) -> ReportSection {
    let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
    let mut rows = vec![
        quantity(subjects, "requests", MeasureUnit::Count, |s| {
            Some(s.analysis.total.requests() as f64)
        }),
        quantity(subjects, "below 512 bytes", MeasureUnit::Share, |s| {
            share(s.analysis.total.small_requests(), s.analysis.total.requests())
        }),
        quantity(subjects, "mean size", MeasureUnit::Bytes, |s| {
            let requests = s.analysis.total.requests();
            share(s.analysis.total.upper_bytes, requests)
        }),
    ];
    if let [subject] = subjects {
        let requests = subject.analysis.total.requests();
        for (size, count) in subject.analysis.total.frequent_sizes(MAX_SIZE_ROWS) {
            let name = format!("of {}", count_of(size, "byte"));
            rows.push(QuantityRow {
                name,
                unit: MeasureUnit::Share,
                step: 0.0,
                values: vec![share(count, requests)],
            });
        }
    }
    let histogram = |title: &str, caption: &str, wide: bool| -> SectionChart {
        let series =
            subjects.iter().zip(SUBJECT_COLOURS).map(|(subject, colour)| HistogramSeries {
                name: subject.name.clone(),
                colour,
                buckets: size_buckets(&subject.analysis, wide),
            });
        let chart = HistogramChart {
            x_axis: ChartAxis::log("bytes of a request", MeasureUnit::Bytes),
            y_axis: ChartAxis::log_count("requests"),
            series: series.collect(),
        };
        (title.into(), caption.into(), Box::new(chart))
    };
    let has_large = |subject: &AllocSubject<'_>| !size_buckets(&subject.analysis, true).is_empty();
    let small = histogram(
        "Small requests, in buckets of 16 bytes",
        "Requests for less than 32 KiB. Both axes are logarithmic.",
        false,
    );
    // The first bucket would be most of a logarithmic axis.
    let large = subjects.iter().any(has_large).then(|| {
        histogram(
            "Large requests, in buckets of 32 KiB",
            "Requests for 32 KiB and more. Both axes are logarithmic.",
            true,
        )
    });
    let charts = [small].into_iter().chain(large);
    ReportSection {
        heading: "Sizes".into(),
        text: ["A request is an allocation, or a change of a size.".to_string()]
            .into_iter()
            .chain(subjects.iter().filter_map(describe_missing))
            .collect::<Vec<_>>()
            .join(" "),
        charts: charts.collect(),
        tables: [quantity_table("Sizes", subjects, rows)]
            .into_iter()
            .chain(subjects.iter().map(|subject| heavy_sizes_table(subject, subjects.len() > 1)))
            .collect(),
    }
}

/// Says how much the counts of single sizes may be too low, if there are very many sizes.
fn describe_missing(subject: &AllocSubject<'_>) -> Option<String> {
    let total = &subject.analysis.total;
    (total.missing_bytes() > 0).then(|| {
        format!(
            "{} has too many different sizes from 32 KiB on to count each one: of a size in the \
             tables, up to {} or {} may be missing.",
            subject.name,
            count_of(total.missing_requests(), "request"),
            MeasureUnit::Bytes.format(total.missing_bytes() as f64)
        )
    })
}

/// Returns the table of the sizes that have the most requested memory.
fn heavy_sizes_table(subject: &AllocSubject<'_>, is_named: bool) -> ReportTable {
    let total = &subject.analysis.total;
    let row = |(size, times): (u64, u64)| {
        let memory = size.saturating_mul(times);
        vec![
            MeasureUnit::Count.format(size as f64),
            MeasureUnit::Count.format(times as f64),
            MeasureUnit::Bytes.format(memory as f64),
            MeasureUnit::Share.format(memory as f64 / total.upper_bytes.max(1) as f64),
        ]
    };
    let of_subject = if is_named { format!(" of {}", subject.name) } else { String::new() };
    ReportTable {
        title: format!("Sizes with the most requested memory{of_subject}"),
        head: ["bytes", "requests", "requested memory", "share"].map(String::from).to_vec(),
        rows: total.heavy_sizes(MAX_SIZE_ROWS).into_iter().map(row).collect(),
    }
}

fn size_buckets(analysis: &AllocAnalysis, wide: bool) -> Vec<HistogramBucket> {
    let bucket = |number: u64, width: u64, count: u64| HistogramBucket {
        start: (number * width) as f64,
        end: ((number + 1) * width) as f64,
        count: count as f64,
    };
    if wide {
        let buckets = analysis.total.wide_buckets().into_iter().filter(|(number, _)| *number > 0);
        return buckets.map(|(number, count)| bucket(number, WIDE_BUCKET_BYTES, count)).collect();
    }
    let buckets = (0..).zip(analysis.total.narrow_buckets()).filter(|(_, count)| *count > 0);
    buckets.map(|(number, count)| bucket(number, NARROW_BUCKET_BYTES, count)).collect()
}

fn end_section(subjects: &[AllocSubject<'_>]) -> ReportSection {
    let mut rows = vec![
        quantity(subjects, "live memory", MeasureUnit::Bytes, |s| {
            Some(s.analysis.end_bytes as f64)
        }),
        quantity(subjects, "live objects", MeasureUnit::Count, |s| {
            Some(s.analysis.end_objects as f64)
        }),
    ];
    if let [subject] = subjects {
        for (size, objects) in subject.analysis.live_at_end.iter().take(MAX_SIZE_ROWS) {
            let objects_text = MeasureUnit::Count.format(*objects as f64);
            rows.push(QuantityRow {
                name: format!("{objects_text} of {}", count_of(*size, "byte")),
                unit: MeasureUnit::Bytes,
                step: 0.0,
                values: vec![Some(size.saturating_mul(*objects) as f64)],
            });
        }
    }
    let end = common_end_point(subjects);
    let text = match end {
        EndPoint::Process => {
            "Memory that was never released, the most first. A program that ends need not release it."
        }
        EndPoint::Log => {
            "Memory that was live at the last call in the log, the most first. The process went on, \
             and may have released it later."
        }
    };
    // Of one subject, that was just said.
    let cuts = if subjects.len() > 1 { describe_cuts(subjects) } else { None };
    ReportSection {
        heading: end.phrase("At the end"),
        text: [text.to_string()].into_iter().chain(cuts).collect::<Vec<_>>().join(" "),
        charts: Vec::new(),
        tables: vec![quantity_table(&end.phrase("Live at the end"), subjects, rows)],
    }
}

fn stacks_section(subjects: &[AllocSubject<'_>]) -> Option<ReportSection> {
    let mut section = match subjects {
        [AllocSubject { stacks, analysis, .. }] => {
            let stacks = stacks.as_ref()?;
            stacks.section(analysis.total.upper_bytes, &analysis.peak_and_end())
        }
        [before, after] => {
            StackProfile::comparison(before.stacks.as_ref()?, after.stacks.as_ref()?)
        }
        _ => return None,
    };
    common_end_point(subjects).phrase_titles(&mut section);
    Some(section)
}
