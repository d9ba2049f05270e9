//! The findings of an allocation log: sentences with the figures that stand out.

use super::alloc_subject::{AllocSubject, common_end_point, shorten_command};
use super::analysis::{AllocAnalysis, format_time};
use super::call_statistics::CallStatistics;
use super::end_point::EndPoint;
use super::log_file::AllocLog;
use super::process_list::ProcessEnding;
use crate::chart::MeasureUnit;

/// A size stands out if it is of so large a part of the requests.
const FREQUENT_SIZE_SHARE: f64 = 0.1;
/// Anonymous memory stands out if it is so many times the live memory, and so much more.
const UNSEEN_FACTOR: f64 = 2.0;
const MIN_UNSEEN_BYTES: u64 = 16 << 20;
/// Factor and bytes for Python, which takes memory for small objects past the allocator.
const UNSEEN_PYTHON_FACTOR: f64 = 1.25;
const MIN_UNSEEN_PYTHON_BYTES: u64 = 4 << 20;
/// The bounds of the requested memory are as good as one if they differ by no larger factor.
const MAX_CLOSE_BOUNDS: f64 = 1.03;
/// Programs that were not recorded and are named.
const MAX_UNRECORDED_NAMES: usize = 5;

/// Describes what stands out.
#[must_use]
pub(super) fn describe_findings(subject: &AllocSubject<'_>) -> Vec<String> {
    let analysis = &subject.analysis;
    if analysis.calls == 0 {
        // Calls may have been made that are not in the log: that was said before.
        let sentence = match describe_missing_calls(subject) {
            Some(_) => "No calls of the process are in the log.",
            None => {
                "No calls were recorded: the program made none, or has an allocator of its own."
            }
        };
        return vec![sentence.into()];
    }
    let mut sentences = vec![describe_peak(analysis)];
    sentences.extend(describe_inheritance(subject));
    sentences.extend(describe_unseen_memory(subject));
    sentences.extend(describe_failures(analysis));
    sentences.extend(describe_sizes(analysis));
    sentences.extend(describe_lifetimes(analysis));
    sentences.push(describe_end(analysis, subject.logged_process().end_point()));
    sentences.extend(describe_phases(analysis));
    sentences.extend(describe_reduced_numbers(analysis));
    sentences.extend(describe_omissions(analysis));
    sentences
}

/// Says which process of its log a subject is, how long it ran, and how it ended.
#[must_use]
pub(super) fn describe_process(subject: &AllocSubject<'_>) -> String {
    let process = subject.logged_process();
    let command = shorten_command(&process.command_line());
    let which = match subject.log.processes.len() {
        1 => command,
        processes => {
            let calls = subject.log.processes.iter().map(|process| process.calls).sum();
            format!(
                "process {} of {} (with {} calls in all, see Processes): {command}",
                subject.process,
                count(processes as u64),
                count(calls)
            )
        }
    };
    let (_, duration_us) = process.duration_us();
    let duration = MeasureUnit::Time.format(duration_us as f64);
    let end = match subject.log.process_ending(subject.process) {
        ProcessEnding::Exit | ProcessEnding::Unrecorded | ProcessEnding::Unknown => String::new(),
        ProcessEnding::Exec => ", until it began another program (exec)".into(),
        ProcessEnding::UnrecordedExec => ", until it began a program that is not recorded".into(),
        ProcessEnding::Unseen => {
            ", until it began a program that is not recorded, or ended unseen by the recorder"
                .into()
        }
        ProcessEnding::Killed => ", to its end, which was likely by a signal".into(),
        ending @ ProcessEnding::Signal(_) => format!(", to its end by {}", ending.describe()),
    };
    format!("Recorded for {duration}{end}: {which}.")
}

/// Describes the calls of a process that are not in its log, or do not fit.
#[must_use]
pub(super) fn describe_gaps(subject: &AllocSubject<'_>) -> Vec<String> {
    let process = subject.logged_process();
    let mut sentences: Vec<String> = describe_missing_calls(subject).into_iter().collect();
    if let Some(end) = process.end.filter(|end| end.anomalies > 0) {
        sentences.push(format!(
            "{} not fit to those before: memory was released twice, or was none of the allocator's, \
             or it was allocated or released by calls that were not seen.",
            match end.anomalies {
                1 => "1 call does".into(),
                anomalies => format!("{} do", count_of(anomalies, "call")),
            }
        ));
    }
    sentences.extend(describe_unrecorded(subject.log));
    sentences
}

/// Names programs below the command that are not in its log.
fn describe_unrecorded(log: &AllocLog) -> Option<String> {
    let unrecorded = &log.end.as_ref()?.unrecorded;
    let mut names: Vec<&str> = unrecorded.iter().map(|(_, program)| program.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let others = names.len().saturating_sub(MAX_UNRECORDED_NAMES);
    names.truncate(MAX_UNRECORDED_NAMES);
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    (!unrecorded.is_empty()).then(|| {
        format!(
            "Not recorded, and not in any figure: {} ({}{more}).",
            match unrecorded.len() {
                1 => "1 process".into(),
                processes => format!("{} processes", count(processes as u64)),
            },
            names.join(", ")
        )
    })
}

/// Says why calls of a process are missing in its log, if some are.
fn describe_missing_calls(subject: &AllocSubject<'_>) -> Option<String> {
    let process = subject.logged_process();
    let text = match &process.end {
        None if subject.log.damage.is_some() => {
            "A part of the log cannot be read: calls of the process are missing.".into()
        }
        None => "The log ends before the process did: later calls are missing.".into(),
        Some(end) if end.calls > process.calls => format!(
            "A part of the log cannot be read: the last {} of {} are missing.",
            count(end.calls - process.calls),
            count_of(end.calls, "call")
        ),
        Some(end) if end.is_abandoned => {
            "The process went on after its recording had ended: later calls are missing.".into()
        }
        Some(_) => return None,
    };
    Some(text)
}

/// Describes the changes from one log to another.
#[must_use]
pub(super) fn describe_changes(subjects: &[AllocSubject<'_>; 2]) -> String {
    let [before, after] = subjects.each_ref().map(|subject| &subject.analysis);
    let change = |value: fn(&AllocAnalysis) -> u64, format: fn(u64) -> String| {
        describe_change(value(before), value(after), format)
    };
    let changes = format!(
        "From {} to {}: peak of live memory {}, live memory {} {}, requested memory, at least, {}, \
         calls {}.",
        subjects[0].name,
        subjects[1].name,
        change(|analysis| analysis.peak.bytes, bytes),
        common_end_point(subjects).phrase("at the end"),
        change(|analysis| analysis.end_bytes, bytes),
        change(|analysis| analysis.total.lower_bytes, bytes),
        change(|analysis| analysis.calls, count)
    );
    [changes].into_iter().chain(describe_cuts(subjects)).collect::<Vec<_>>().join(" ")
}

/// Describes the change of a figure.
fn describe_change(from: u64, to: u64, format: fn(u64) -> String) -> String {
    let values = format!("{} to {}", format(from), format(to));
    match to as f64 / from as f64 {
        _ if from == to => format!("the same ({})", format(to)),
        _ if from == 0 => format!("{} where there was none", format(to)),
        times if times >= 2.0 => format!("{times:.1} times as much ({values})"),
        times if times >= 1.0 => format!("{} more ({values})", share_text(times - 1.0)),
        times => format!("{} less ({values})", share_text(1.0 - times)),
    }
}

/// Says of two subjects whose figures are only those up to the end of their logs.
pub(super) fn describe_cuts(subjects: &[AllocSubject<'_>]) -> Option<String> {
    let cut = subjects.iter().filter(|subject| subject.logged_process().is_cut());
    let names: Vec<&str> = cut.map(|subject| subject.name.as_str()).collect();
    let (of, logs) = match names[..] {
        [] => return None,
        [name] => (name.to_string(), "its log ends before its process did"),
        _ => ("both".into(), "their logs end before their processes did"),
    };
    Some(format!(
        "The figures of {of} are incomplete: {logs}, and what was live there may have been released \
         later."
    ))
}

/// Formats the share of a change, which is not 0.
fn share_text(share: f64) -> String {
    match share < 0.001 {
        true => "less than 0.1 %".into(),
        false => format!("{:.1} %", share * 100.0),
    }
}

fn bytes(value: u64) -> String {
    MeasureUnit::Bytes.format(value as f64)
}

fn count(value: u64) -> String {
    MeasureUnit::Count.format(value as f64)
}

/// Returns a number with the name of what is counted.
pub(super) fn count_of(value: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(value), if value == 1 { "" } else { "s" })
}

fn share(part: u64, of: u64) -> String {
    MeasureUnit::Share.format(part as f64 / of.max(1) as f64)
}

fn describe_peak(analysis: &AllocAnalysis) -> String {
    let peak = &analysis.peak;
    format!(
        "{} asked for {} in total. At most {} were live at once, in {}, after {} of the calls, {} \
         from the start.",
        count_of(analysis.calls, "call"),
        requested_text(&analysis.total),
        bytes(peak.bytes),
        count_of(peak.objects, "object"),
        share(peak.calls, analysis.calls),
        format_time(analysis.time_to_peak_us())
    )
}

/// Describes the memory from before the fork.
fn describe_inheritance(subject: &AllocSubject<'_>) -> Option<String> {
    let (start, analysis) = (&subject.logged_process().start, &subject.analysis);
    let (left, left_bytes) = analysis.inherited_at_end;
    (start.inherited_bytes > 0).then(|| {
        format!(
            "{} in {} are from before the fork: {} of them were live at the peak, {} {}, \
             when {} had been released.",
            bytes(start.inherited_bytes),
            count_of(start.inherited_objects, "object"),
            bytes(analysis.peak.inherited_bytes),
            bytes(left_bytes),
            subject.logged_process().end_point().phrase("at the end"),
            count_of(start.inherited_objects.saturating_sub(left), "object")
        )
    })
}

/// Returns whether the bounds of the requested memory differ by more than a few percent, because
/// reallocs keep much of it.
fn are_bounds_apart(statistics: &CallStatistics) -> bool {
    statistics.upper_bytes as f64 > statistics.lower_bytes as f64 * MAX_CLOSE_BOUNDS
}

/// Returns the requested memory, with both of its bounds if they are apart.
fn requested_text(statistics: &CallStatistics) -> String {
    let (lower, upper) = (bytes(statistics.lower_bytes), bytes(statistics.upper_bytes));
    match lower != upper && are_bounds_apart(statistics) {
        true => format!("{lower} (what sizes grew by) to {upper} (all sizes)"),
        false => upper,
    }
}

fn describe_failures(analysis: &AllocAnalysis) -> Option<String> {
    let (count, largest) = analysis.failures;
    (count > 0).then(|| {
        format!(
            "{} failed; the largest request among them was for {}.",
            count_of(count, "call"),
            bytes(largest)
        )
    })
}

/// Says that much more memory is resident than is live, and where it may be.
fn describe_unseen_memory(subject: &AllocSubject<'_>) -> Option<String> {
    let process = subject.logged_process();
    let anonymous = process.samples.iter().map(|sample| sample.anonymous_bytes).max()?;
    let live = subject.analysis.peak.bytes;
    let name = process.start.executable.rsplit('/').next().unwrap_or_default();
    let is_python = name.starts_with("python");
    let (factor, least) = match is_python {
        true => (UNSEEN_PYTHON_FACTOR, MIN_UNSEEN_PYTHON_BYTES),
        false => (UNSEEN_FACTOR, MIN_UNSEEN_BYTES),
    };
    let unseen = anonymous.saturating_sub(live);
    (unseen > least && anonymous as f64 > live as f64 * factor).then(|| {
        let mut text = format!(
            "At most {} were live, but {} of anonymous memory were resident: memory that the \
             program takes by mmap is not recorded, and the allocator keeps some that was released.",
            bytes(live),
            bytes(anonymous)
        );
        if is_python {
            text.push_str(
                " Python takes memory for small objects by mmap, unless it is recorded with \
                 PYTHONMALLOC=malloc: without that, they are in no figure.",
            );
        }
        text
    })
}

fn describe_sizes(analysis: &AllocAnalysis) -> Option<String> {
    let requests = analysis.total.requests();
    if requests == 0 {
        return None;
    }
    let small = share(analysis.total.small_requests(), requests);
    let mut text = format!("{small} of the requests are for less than 512 bytes");
    if let Some((size, times)) = analysis.total.frequent_sizes(1).first()
        && *times as f64 >= requests as f64 * FREQUENT_SIZE_SHARE
    {
        let size = count_of(*size, "byte");
        text.push_str(&format!("; {} are for {size}", share(*times, requests)));
    }
    text.push('.');
    // Few large requests may have most of the memory.
    let large = analysis.total.upper_bytes.saturating_sub(analysis.total.bytes_below_32_kib());
    text.push_str(&format!(
        " {} of {} is in requests for at least 32 KiB.",
        share(large, analysis.total.upper_bytes),
        match are_bounds_apart(&analysis.total) {
            true => "the sum of all sizes",
            false => "the requested memory",
        }
    ));
    Some(text)
}

fn describe_lifetimes(analysis: &AllocAnalysis) -> Option<String> {
    let released = analysis.lifetimes.released;
    let median = analysis.total.lifetimes.quantile(0.5)?;
    let median_us = analysis.total.lifetimes_us.quantile(0.5)?;
    let median_time = match median_us < analysis.time_step_us {
        true => format!("less than {}", MeasureUnit::Time.format(analysis.time_step_us as f64)),
        false => format!("about {}", MeasureUnit::Time.format(median_us as f64)),
    };
    Some(format!(
        "Half of the objects that were released had lived for {} and {median_time}; {} were released by the very \
         next call, and {} lived for more than a tenth of the calls.",
        match median {
            0 => "no call in between".to_string(),
            _ => format!("at most {}", count_of(median, "call")),
        },
        share(analysis.lifetimes.at_zero, released),
        share(released - analysis.lifetimes.at_most_tenth, released)
    ))
}

fn describe_end(analysis: &AllocAnalysis, end: EndPoint) -> String {
    let time = match end {
        EndPoint::Process if analysis.end_objects == 0 => {
            return "Everything was released at the end.".into();
        }
        EndPoint::Process => "At the end",
        EndPoint::Log => "Where the log ends,",
    };
    format!(
        "{time} {} in {} were live, {} of the peak.",
        bytes(analysis.end_bytes),
        count_of(analysis.end_objects, "object"),
        share(analysis.end_bytes, analysis.peak.bytes)
    )
}

fn describe_reduced_numbers(analysis: &AllocAnalysis) -> impl Iterator<Item = String> {
    let reduced = analysis.numbers.iter().filter(|series| series.values_per_point > 1);
    reduced.map(|series| {
        format!(
            "The number \"{}\" has {} values: of each {} one after another the lowest and the \
             highest are kept.",
            series.name,
            count(series.count),
            count(series.values_per_point)
        )
    })
}

fn describe_omissions(analysis: &AllocAnalysis) -> impl Iterator<Item = String> {
    let marks = (analysis.omitted_marks > 0).then(|| {
        format!(
            "{} marks after the first {} are left out of the charts.",
            count(analysis.omitted_marks),
            count(analysis.marks.len() as u64)
        )
    });
    let values = (analysis.omitted_values > 0).then(|| {
        format!(
            "{} values of numbers after the first {} names are left out.",
            count(analysis.omitted_values),
            count(analysis.numbers.len() as u64)
        )
    });
    marks.into_iter().chain(values)
}

fn describe_phases(analysis: &AllocAnalysis) -> Option<String> {
    if analysis.phases.len() < 2 {
        return None;
    }
    let requested = analysis.phases.iter().max_by_key(|phase| phase.statistics.lower_bytes)?;
    let holder = analysis.phases.iter().max_by_key(|phase| phase.bytes_at_peak)?;
    Some(format!(
        "Of {} phases, \"{}\" asked for the most memory ({}{}); the peak is in \"{}\", and {} of it \
         is memory that \"{}\" asked for.",
        analysis.phases.len(),
        requested.name,
        share(requested.statistics.lower_bytes, analysis.total.lower_bytes),
        if are_bounds_apart(&analysis.total) { " of what sizes grew by" } else { "" },
        analysis.peak_phase,
        share(holder.bytes_at_peak, analysis.peak.bytes),
        holder.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_described_by_their_ratio() {
        for (from, to, text) in [
            (0, 0, "the same (0)"),
            (0, 5000, "5,000 where there was none"),
            (1, 0, "100.0 % less (1 to 0)"),
            (2, 3, "50.0 % more (2 to 3)"),
            (2, 5, "2.5 times as much (2 to 5)"),
        ] {
            assert_eq!(describe_change(from, to, count), text);
        }
    }
}
