//! The report of replays: resident memory of one log on several allocators.

use super::replay::ReplayResult;
use crate::chart::{ChartAxis, ColourRole, MeasureUnit, PhaseAxes, StepChart, StepLine};
use crate::measure_report::{MeasureReport, ReportSection, ReportTable};
use serde_json::{Value, json};

/// A replay with the name of its allocator.
pub struct NamedReplay {
    /// The name.
    pub allocator: String,
    /// The replay.
    pub result: ReplayResult,
}

/// The colours of the allocators, in turn; of more, the dashes of the lines tell them apart.
const COLOURS: [ColourRole; 5] = [
    ColourRole::First,
    ColourRole::Error,
    ColourRole::Second,
    ColourRole::Third,
    ColourRole::Warning,
];

/// Builds the report of a log of this name.
#[must_use]
pub fn replay_report(name: &str, replays: &[NamedReplay]) -> MeasureReport {
    let head =
        ["allocator", "peak", "at the live peak", "times the live memory", "at the end", "time"];
    let rows = replays.iter().map(|NamedReplay { allocator, result }| {
        let bytes = |value: u64| MeasureUnit::Bytes.format(value as f64);
        let peak = result.live_peak();
        let end = result.samples.last().map_or(0, |sample| sample.resident_bytes);
        vec![
            allocator.clone(),
            bytes(result.peak_resident_bytes()),
            peak.map_or("-".into(), |peak| bytes(peak.resident_bytes)),
            fragmentation(result).map_or("-".into(), |ratio| format!("{ratio:.2}")),
            bytes(end),
            MeasureUnit::Time.format(result.wall.as_micros() as f64),
        ]
    });
    let live = replays.first().map(|first| StepLine {
        name: "live".into(),
        colour: ColourRole::Reference,
        is_filled: true,
        points: points(&first.result, |sample| sample.live_bytes),
        lows: Vec::new(),
        end: None,
    });
    let lines = replays.iter().zip(COLOURS.into_iter().cycle()).map(|(replay, colour)| StepLine {
        name: replay.allocator.clone(),
        colour,
        is_filled: false,
        points: points(&replay.result, |sample| sample.resident_bytes),
        lows: Vec::new(),
        end: None,
    });
    let calls = replays.iter().flat_map(|replay| replay.result.samples.last());
    let chart = StepChart {
        axes: PhaseAxes {
            x_axis: ChartAxis::linear("calls of the allocator", MeasureUnit::Count),
            x_range: (0.0, calls.map(|sample| sample.calls).max().unwrap_or(1) as f64),
            y_axis: ChartAxis::linear("memory", MeasureUnit::Bytes),
            marks: Vec::new(),
        },
        min_y_max: 1.0,
        lines: live.into_iter().chain(lines).collect(),
    };
    MeasureReport {
        title: format!("Allocators: {name}"),
        audience: "For developers: the memory that the same calls take on other allocators.",
        findings: describe_best(replays).into_iter().collect(),
        sections: vec![ReportSection {
            heading: "Resident memory".into(),
            text:
                "The memory that each allocator holds for the same calls, made by one thread of a \
                   fresh process that touches every page of what it gets."
                    .into(),
            charts: vec![("Resident memory by calls".into(), String::new(), Box::new(chart))],
            tables: vec![ReportTable {
                title: "Allocators".into(),
                head: head.map(String::from).to_vec(),
                rows: rows.collect(),
            }],
        }],
    }
}

fn points(
    result: &ReplayResult,
    value: fn(&super::replay::ReplaySample) -> u64,
) -> Vec<(f64, f64)> {
    result.samples.iter().map(|sample| (sample.calls as f64, value(sample) as f64)).collect()
}

/// Returns resident memory divided by live memory, where that has its peak.
fn fragmentation(result: &ReplayResult) -> Option<f64> {
    let peak = result.live_peak().filter(|peak| peak.live_bytes > 0)?;
    Some(peak.resident_bytes as f64 / peak.live_bytes as f64)
}

fn describe_best(replays: &[NamedReplay]) -> Option<String> {
    let peak = |replay: &&NamedReplay| replay.result.peak_resident_bytes();
    let (least, most) = (replays.iter().min_by_key(peak)?, replays.iter().max_by_key(peak)?);
    if replays.len() < 2 {
        return None;
    }
    let bytes = |replay| MeasureUnit::Bytes.format_precisely(peak(&replay) as f64);
    let (lowest, highest) = (bytes(least), bytes(most));
    if lowest == highest {
        return Some(format!("The peak of resident memory is the same with all: {highest}."));
    }
    Some(format!(
        "The lowest peak of resident memory has {} ({lowest}), the highest {} ({highest}).",
        least.allocator, most.allocator,
    ))
}

/// Returns the figures as JSON.
#[must_use]
pub fn replay_json(name: &str, replays: &[NamedReplay]) -> Value {
    let replay = |NamedReplay { allocator, result }: &NamedReplay| {
        let sample = |sample: &super::replay::ReplaySample| {
            json!([sample.calls, sample.live_bytes, sample.resident_bytes])
        };
        json!({
            "allocator": allocator,
            "peak_resident_bytes": result.peak_resident_bytes(),
            "fragmentation": fragmentation(result),
            "wall_us": u64::try_from(result.wall.as_micros()).unwrap_or(u64::MAX),
            "samples": result.samples.iter().map(sample).collect::<Vec<_>>(),
        })
    };
    json!({ "log": name, "replays": replays.iter().map(replay).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::super::replay::ReplaySample;
    use super::*;

    fn replay(allocator: &str, resident_bytes: u64) -> NamedReplay {
        let sample = ReplaySample { calls: 1, live_bytes: 10, resident_bytes };
        let wall = std::time::Duration::from_millis(1);
        let result = ReplayResult { samples: vec![sample], wall };
        NamedReplay { allocator: allocator.into(), result }
    }

    #[test]
    fn every_allocator_is_in_the_chart() {
        let replays = ["a", "b", "c", "d", "e", "f", "g"].map(|name| replay(name, 4096));
        let report = replay_report("log", &replays);
        let legend = report.sections[0].charts[0].2.legend();
        let names: Vec<&str> = legend.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["live", "a", "b", "c", "d", "e", "f", "g"]);
    }

    #[test]
    fn the_lowest_and_the_highest_peak_are_told_apart() {
        let sentence = |peaks: [u64; 2]| {
            let [one, two] = peaks.map(|peak| replay(&format!("of {peak}"), peak));
            describe_best(&[one, two]).unwrap()
        };
        assert_eq!(
            sentence([11_100_000, 10_900_000]),
            "The lowest peak of resident memory has of 10900000 (10.9 MB), the highest of 11100000 \
             (11.1 MB)."
        );
        let same = "The peak of resident memory is the same with all: 11.1 MB.";
        assert_eq!(sentence([11_100_000, 11_100_001]), same);
    }
}
