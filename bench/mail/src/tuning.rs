//! The study of the `--tune-` options: its table in a Markdown page, and its charts.

use crate::Result;
use larder_measure::chart::{
    Chart, ChartAxis, ColourRole, MeasureUnit, Polyline, PolylineChart, render_svg_file,
};
use larder_measure::page_section::replace_section;
use std::collections::BTreeMap;
use std::path::Path;

/// The section of the page.
const SECTION: &str = "tuning";
/// The modes of `--tune-synchronous`, from the fastest.
const SYNC_MODES: [(&str, ColourRole); 3] =
    [("off", ColourRole::First), ("normal", ColourRole::Second), ("full", ColourRole::Error)];

/// The values of the options.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TunedOptions {
    batch: u32,
    readers: u32,
    synchronous: String,
    is_sorted: bool,
}

impl TunedOptions {
    fn is_default(&self, processors: u32) -> bool {
        self.batch as usize == larder_sync::DEFAULT_MAIL_BATCH
            && self.readers == processors
            && self.synchronous == "normal"
            && self.is_sorted
    }
}

/// The least costs of the runs with the same options.
#[derive(Debug, Clone, Copy)]
struct RunCost {
    cpu_us: f64,
    wall_us: f64,
    /// `None`: no run took long enough to sample it.
    anonymous_bytes: Option<f64>,
    written_bytes: f64,
    runs: usize,
}

/// The study: costs by options, of runs whose files were in memory and of those that were read from
/// the disk.
#[derive(Debug, Default)]
struct TuningStudy {
    machine: String,
    processors: u32,
    warm: BTreeMap<TunedOptions, RunCost>,
    cold: BTreeMap<TunedOptions, RunCost>,
}

/// Replaces the table in the page, and writes the charts.
pub(crate) fn write_study(figures: &Path, page: &Path, picture: &Path) -> Result<()> {
    let study = TuningStudy::parse(&std::fs::read_to_string(figures)?)?;
    let mut text = std::fs::read_to_string(page)?;
    let name = picture.file_name().unwrap_or_default().to_string_lossy();
    if !replace_section(&mut text, SECTION, &study.to_table(&name)) {
        return Err(format!("{}: no section {SECTION}", page.display()).into());
    }
    std::fs::write(page, text)?;
    Ok(std::fs::write(picture, study.to_svg())?)
}

impl TuningStudy {
    fn parse(text: &str) -> Result<TuningStudy> {
        let mut study = TuningStudy::default();
        for line in text.lines() {
            if let Some(machine) = line.strip_prefix("# ") {
                study.machine = machine.to_string();
                continue;
            }
            let fields: Vec<&str> = line.split('\t').collect();
            if let ["processors", count] = fields[..] {
                study.processors = count.parse()?;
                continue;
            }
            let [state, batch, readers, sorted, synchronous, ref costs @ ..] = fields[..] else {
                return Err(format!("not a line of figures: {line}").into());
            };
            let [cpu, wall, anonymous, written] = costs else {
                return Err(format!("not a line of figures: {line}").into());
            };
            let options = TunedOptions {
                batch: batch.parse()?,
                readers: readers.parse()?,
                synchronous: synchronous.to_string(),
                is_sorted: sorted == "true",
            };
            let run = RunCost {
                cpu_us: cpu.parse()?,
                wall_us: wall.parse()?,
                anonymous_bytes: match *anonymous {
                    "-" => None,
                    bytes => Some(bytes.parse()?),
                },
                written_bytes: written.parse()?,
                runs: 1,
            };
            let costs = if state == "cold" { &mut study.cold } else { &mut study.warm };
            let cost = costs.get(&options).map_or(run, |known| known.merge_minima(run));
            costs.insert(options, cost);
        }
        Ok(study)
    }

    /// Returns the table in Markdown, with the conditions of the study and the picture.
    fn to_table(&self, picture: &str) -> String {
        let mut table = String::from(
            "| batch | readers | synchronous | order | CPU s | wall s | CPU s, cold | wall s, cold | memory, MB | written, MB |\n\
             |--:|--:|---|---|--:|--:|--:|--:|--:|--:|\n",
        );
        for (options, warm) in &self.warm {
            let TunedOptions { batch, readers, synchronous, is_sorted } = options;
            let cold = self.cold.get(options);
            let seconds = |micros: f64| format!("{:.2}", micros / 1e6);
            let cells = [
                group_thousands(*batch),
                readers.to_string(),
                synchronous.clone(),
                if *is_sorted { "inodes" } else { "date" }.to_string(),
                seconds(warm.cpu_us),
                seconds(warm.wall_us),
                cold.map_or("-".into(), |cold| seconds(cold.cpu_us)),
                cold.map_or("-".into(), |cold| seconds(cold.wall_us)),
                warm.anonymous_bytes.map_or("-".into(), |bytes| format!("{:.0}", bytes / 1e6)),
                format!("{:.0}", warm.written_bytes / 1e6),
            ];
            let is_default = options.is_default(self.processors);
            let cells = cells.map(|cell| if is_default { format!("**{cell}**") } else { cell });
            table.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        let runs = self.warm.values().map(|cost| cost.runs).min().unwrap_or_default();
        let runs = if runs == 1 { "one run".to_string() } else { format!("least of {runs} runs") };
        let about = format!("{runs}; {}. Bold: the defaults.", self.machine);
        format!("{table}\n{about}\n\n![Charts of the time by batch and by readers]({picture})\n")
    }

    fn to_svg(&self) -> String {
        let cold = if self.cold.is_empty() { &self.warm } else { &self.cold };
        let charts: [(&str, PolylineChart<'_>); 4] = [
            ("Wall time by batch, cold", self.batch_chart(cold, |cost| cost.wall_us)),
            ("CPU time by batch, cold", self.batch_chart(cold, |cost| cost.cpu_us)),
            ("Wall time by readers", self.reader_chart(|cost| cost.wall_us)),
            ("CPU time by readers", self.reader_chart(|cost| cost.cpu_us)),
        ];
        let charts: Vec<(&str, &dyn Chart)> =
            charts.iter().map(|(title, chart)| (*title, chart as &dyn Chart)).collect();
        render_svg_file("Time of a first index by the options that tune it", 2, &charts)
    }

    /// Returns a chart with a line for each mode of syncing.
    fn batch_chart(
        &self,
        costs: &BTreeMap<TunedOptions, RunCost>,
        value: fn(&RunCost) -> f64,
    ) -> PolylineChart<'_> {
        let lines = SYNC_MODES.into_iter().map(|(mode, colour)| {
            let is_on_line = |options: &TunedOptions| {
                let plain = TunedOptions { batch: options.batch, ..self.default_options() };
                *options == TunedOptions { synchronous: mode.to_string(), ..plain }
            };
            let x = |options: &TunedOptions| options.batch;
            to_line(&format!("synchronous {mode}"), colour, costs, &is_on_line, x, value)
        });
        to_chart("messages in a transaction", lines.collect())
    }

    /// Returns a chart with a line for each order, and one of files in memory.
    fn reader_chart(&self, value: fn(&RunCost) -> f64) -> PolylineChart<'_> {
        let lines = [
            ("by inodes, cold", ColourRole::First, &self.cold, true),
            ("by date, cold", ColourRole::Error, &self.cold, false),
            ("by inodes, in memory", ColourRole::Second, &self.warm, true),
        ];
        let lines = lines.into_iter().map(|(name, colour, costs, is_sorted)| {
            let is_on_line = |options: &TunedOptions| {
                let plain = TunedOptions { readers: options.readers, ..self.default_options() };
                *options == TunedOptions { is_sorted, ..plain }
            };
            to_line(name, colour, costs, &is_on_line, |options| options.readers, value)
        });
        to_chart("readers", lines.collect())
    }

    fn default_options(&self) -> TunedOptions {
        TunedOptions {
            batch: u32::try_from(larder_sync::DEFAULT_MAIL_BATCH).unwrap_or(u32::MAX),
            readers: self.processors,
            synchronous: "normal".to_string(),
            is_sorted: true,
        }
    }
}

impl RunCost {
    fn merge_minima(self, other: RunCost) -> RunCost {
        RunCost {
            cpu_us: self.cpu_us.min(other.cpu_us),
            wall_us: self.wall_us.min(other.wall_us),
            anonymous_bytes: [self.anonymous_bytes, other.anonymous_bytes]
                .into_iter()
                .flatten()
                .reduce(f64::min),
            written_bytes: self.written_bytes.min(other.written_bytes),
            runs: self.runs + other.runs,
        }
    }
}

fn to_line(
    name: &str,
    colour: ColourRole,
    costs: &BTreeMap<TunedOptions, RunCost>,
    is_on_line: &dyn Fn(&TunedOptions) -> bool,
    x: fn(&TunedOptions) -> u32,
    value: fn(&RunCost) -> f64,
) -> Polyline {
    let on_line = costs.iter().filter(|(options, _)| is_on_line(options));
    let points = on_line.map(|(options, cost)| (f64::from(x(options)), value(cost))).collect();
    Polyline { name: name.to_string(), colour, points }
}

fn to_chart(x_name: &str, mut lines: Vec<Polyline>) -> PolylineChart<'static> {
    lines.retain(|line| !line.points.is_empty());
    let mut marks: Vec<u32> =
        lines.iter().flat_map(|line| line.points.iter().map(|point| point.0 as u32)).collect();
    marks.sort_unstable();
    marks.dedup();
    PolylineChart {
        x_axis: ChartAxis::log(x_name, MeasureUnit::Count),
        x_marks: marks.iter().map(|mark| (f64::from(*mark), group_thousands(*mark))).collect(),
        y_axis: ChartAxis::linear("", MeasureUnit::Time),
        lines,
    }
}

fn group_thousands(number: u32) -> String {
    MeasureUnit::Count.format(f64::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_not_sampled_does_not_count() {
        let line = |batch: u32, bytes: &str| {
            format!("warm\t{batch}\t2\ttrue\tnormal\t1000000\t2000000\t{bytes}\t7000000\n")
        };
        let runs = [line(500, "-"), line(500, "30000000"), line(1000, "-"), line(1000, "-")];
        let study = TuningStudy::parse(&runs.concat()).expect("figures");
        let table = study.to_table("tuning.svg");
        let memory = |batch: &str| {
            let row = table.lines().find(|row| row.starts_with(&format!("| {batch} |")));
            row.and_then(|row| row.split(" | ").nth(8)).map(ToString::to_string)
        };
        assert_eq!(memory("500").as_deref(), Some("30"), "{table}");
        assert_eq!(memory("1,000").as_deref(), Some("-"), "{table}");
    }
}
