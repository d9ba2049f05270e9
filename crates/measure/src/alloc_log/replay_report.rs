//! The report of replays: resident memory of one log on several allocators.

use super::replay::{ReplayResult, ReplaySample};
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
        let resident = |sample: Option<ReplaySample>| {
            sample.map_or("-".into(), |sample| bytes(sample.resident_bytes))
        };
        let peak = result.live_peak();
        vec![
            allocator.clone(),
            bytes(result.peak_resident_bytes()),
            resident(peak),
            ratio_text(peak.and_then(|peak| peak.ratio())),
            resident(result.end()),
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
        findings: describe_best(replays).into_iter().chain(describe_ratio(replays)).collect(),
        sections: vec![ReportSection {
            heading: "Resident memory".into(),
            text:
                "The memory that each allocator holds for the same calls, made by one thread of a \
                   fresh process that touches every page of what it gets. Live memory is what the \
                   calls have asked for and not yet released. The highest ratio of resident to live \
                   memory is among samples with at least a tenth of the peak of live memory."
                    .into(),
            charts: vec![("Resident memory by calls".into(), String::new(), Box::new(chart))],
            tables: vec![
                ReportTable {
                    title: "Allocators".into(),
                    head: head.map(String::from).to_vec(),
                    rows: rows.collect(),
                },
                places_table(replays),
            ],
        }],
    }
}

fn points(result: &ReplayResult, value: fn(&ReplaySample) -> u64) -> Vec<(f64, f64)> {
    result.samples.iter().map(|sample| (sample.calls as f64, value(sample) as f64)).collect()
}

/// Returns the table of resident and live memory at the notable places of each replay.
fn places_table(replays: &[NamedReplay]) -> ReportTable {
    let head = ["allocator and place", "after calls", "resident", "live", "times the live memory"];
    let rows = replays.iter().flat_map(|NamedReplay { allocator, result }| {
        notable_places(result).into_iter().filter_map(move |place| {
            let sample = place.sample?;
            let bytes = |value: u64| MeasureUnit::Bytes.format(value as f64);
            Some(vec![
                format!("{allocator}, {}", place.name),
                MeasureUnit::Share.format(call_share(result, sample)),
                bytes(sample.resident_bytes),
                bytes(sample.live_bytes),
                ratio_text(sample.ratio()),
            ])
        })
    });
    ReportTable {
        title: "Resident and live memory".into(),
        head: head.map(String::from).to_vec(),
        rows: rows.collect(),
    }
}

/// A place of a replay that reports name.
struct NotablePlace {
    /// Its name for people, and in JSON.
    name: &'static str,
    key: &'static str,
    sample: Option<ReplaySample>,
}

fn notable_places(result: &ReplayResult) -> [NotablePlace; 4] {
    let place = |name, key, sample| NotablePlace { name, key, sample };
    [
        place("peak of resident memory", "at_resident_peak", result.resident_peak()),
        place("peak of live memory", "at_live_peak", result.live_peak()),
        place("highest ratio", "at_highest_ratio", result.highest_ratio()),
        place("end", "at_end", result.end()),
    ]
}

/// Returns the share of the calls up to a sample.
fn call_share(result: &ReplayResult, sample: ReplaySample) -> f64 {
    let calls = result.end().map_or(0, |end| end.calls);
    sample.calls as f64 / calls.max(1) as f64
}

fn ratio_text(ratio: Option<f64>) -> String {
    ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"))
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

/// Names the highest ratio of resident to live memory of all allocators.
fn describe_ratio(replays: &[NamedReplay]) -> Option<String> {
    let ratios = replays.iter().filter_map(|replay| {
        let sample = replay.result.highest_ratio()?;
        Some((sample.ratio()?, sample, replay))
    });
    let (ratio, sample, NamedReplay { allocator, result }) =
        ratios.max_by(|one, two| one.0.total_cmp(&two.0))?;
    let bytes = |value: u64| MeasureUnit::Bytes.format(value as f64);
    Some(format!(
        "The highest ratio of resident to live memory is {ratio:.2}, with {allocator} after {} of \
         the calls: {} for {}.",
        MeasureUnit::Share.format(call_share(result, sample)),
        bytes(sample.resident_bytes),
        bytes(sample.live_bytes)
    ))
}

/// Returns the figures as JSON.
#[must_use]
pub fn replay_json(name: &str, replays: &[NamedReplay]) -> Value {
    let replay = |NamedReplay { allocator, result }: &NamedReplay| {
        let sample =
            |sample: &ReplaySample| json!([sample.calls, sample.live_bytes, sample.resident_bytes]);
        let mut object = json!({
            "allocator": allocator,
            "peak_resident_bytes": result.peak_resident_bytes(),
            "fragmentation": result.live_peak().and_then(|peak| peak.ratio()),
            "wall_us": u64::try_from(result.wall.as_micros()).unwrap_or(u64::MAX),
            "samples": result.samples.iter().map(sample).collect::<Vec<_>>(),
        });
        for place in notable_places(result) {
            let sample = |sample: ReplaySample| {
                json!({
                    "calls": sample.calls,
                    "share_of_calls": call_share(result, sample),
                    "resident_bytes": sample.resident_bytes,
                    "live_bytes": sample.live_bytes,
                    "ratio": sample.ratio(),
                })
            };
            object[place.key] = place.sample.map_or(Value::Null, sample);
        }
        object
    };
    json!({ "log": name, "replays": replays.iter().map(replay).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
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
    /// Live memory stands beside the resident one at the peaks, at the end, and where the ratio of
    /// both is highest: not where next to nothing is live.
    #[test]
    fn resident_memory_stands_beside_live_memory() {
        let sample = |(calls, live_bytes, resident_bytes)| ReplaySample {
            calls,
            live_bytes,
            resident_bytes,
        };
        let samples = [(5, 1, 900), (10, 1000, 1100), (20, 400, 1200), (30, 99, 1000), (40, 0, 50)];
        let wall = std::time::Duration::from_millis(1);
        let result = ReplayResult { samples: samples.map(sample).to_vec(), wall };
        let replays = [NamedReplay { allocator: "a".into(), result }];
        let report = replay_report("log", &replays);
        let rows = &report.sections[0].tables[1].rows;
        let rows: Vec<String> = rows.iter().map(|row| row.join("|")).collect();
        assert_eq!(
            rows,
            [
                "a, peak of resident memory|50 %|1.2 kB|400 bytes|3.00",
                "a, peak of live memory|25 %|1.1 kB|1 kB|1.10",
                "a, highest ratio|50 %|1.2 kB|400 bytes|3.00",
                "a, end|100 %|50 bytes|0 bytes|-",
            ]
        );
        let ratio = "The highest ratio of resident to live memory is 3.00, with a after 50 % of the \
                     calls: 1.2 kB for 400 bytes.";
        assert_eq!(report.findings, [ratio]);
        let json = &replay_json("log", &replays)["replays"][0];
        assert_eq!(
            json["at_highest_ratio"],
            json!({ "calls": 20, "share_of_calls": 0.5, "resident_bytes": 1200, "live_bytes": 400,
                    "ratio": 3.0 })
        );
        assert_eq!(json["at_end"]["live_bytes"], 0);
        assert!(json["at_end"]["ratio"].is_null());
        assert_eq!(json["at_live_peak"]["resident_bytes"], 1100);
    }
}
