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

const COLOURS: [ColourRole; 4] =
    [ColourRole::First, ColourRole::Error, ColourRole::Second, ColourRole::Third];

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
    let lines = replays.iter().zip(COLOURS).map(|(replay, colour)| StepLine {
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
    let bytes = |replay| MeasureUnit::Bytes.format(peak(&replay) as f64);
    Some(format!(
        "The lowest peak of resident memory has {} ({}), the highest {} ({}).",
        least.allocator,
        bytes(least),
        most.allocator,
        bytes(most)
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
