//! `larder measure`.

mod alloc;
mod memory;
mod query_log;
mod record;
mod replay;
mod report;
mod report_output;
mod workload;

use self::alloc::AllocArgs;
use self::memory::MemoryArgs;
use self::query_log::QueryLogArgs;
use self::record::RecordArgs;
use self::replay::ReplayArgs;
use self::report::ResultsArgs;
use self::report_output::finish_output;
use self::workload::BrowseArgs;
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{FAINT_STYLE, format_bytes};
use crate::output_path::OutputPath;
use crate::table::format_columns;
use larder_generate as generate;
use larder_measure::command_signals::CommandSignals;
use larder_measure::process_cost::{
    ProcessCost, describe_failure, exit_code, min_median_max, run_command,
};
use larder_store::FilePrivacy;
use serde_json::json;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Generate test data, benchmark commands, analyse query and allocation logs
#[derive(Debug, clap::Args)]
pub(crate) struct MeasureArgs {
    #[command(subcommand)]
    instrument: MeasureCommand,
}

#[derive(Debug, clap::Subcommand)]
enum MeasureCommand {
    /// Generate realistic data of any size, the same for the same seed
    Generate {
        #[command(subcommand)]
        what: GenerateCommand,
    },
    Run(MeasureRunArgs),
    Memory(MemoryArgs),
    Browse(BrowseArgs),
    Queries(QueryLogArgs),
    Record(RecordArgs),
    Alloc(AllocArgs),
    Replay(ReplayArgs),
    Report(ResultsArgs),
}

/// Run a command and print its time, CPU time, peak anonymous memory and bytes written
///
/// Prints minimum, median and maximum of several runs. CPU time and bytes written include the
/// processes that the command starts and waits for. Anonymous memory is that of the largest
/// process, the command or one below it, and of the command alone, among samples: a run that was
/// too short for them does not count, and without any other there is - (in JSON null). `larder
/// measure memory` has sums over all processes. The command's standard output is discarded unless
/// --show is given. The exit code is the exit code of the command. After a run that fails, or an
/// interrupt, no further run is started, and the figures are those of the complete runs, if there
/// are any.
#[derive(Debug, clap::Args)]
struct MeasureRunArgs {
    /// The number of runs
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Show the command's output, and the median cost in one line below it
    #[arg(long)]
    show: bool,
    /// The command and its arguments, after --
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, clap::Subcommand)]
enum GenerateCommand {
    /// vCards of all versions: names in many scripts, phones, e-mails, addresses, some photos
    Contacts {
        /// The number of items
        number: u64,
        #[command(flatten)]
        target: GenerateTargetArgs,
    },
    /// A calendar over ten years in several time zones: events, a fifth of them recurring, tasks
    /// and memos
    Calendar {
        /// The number of items
        number: u64,
        /// Generate only events
        #[arg(long)]
        events: bool,
        #[command(flatten)]
        target: GenerateTargetArgs,
    },
    /// A calendar that defines the same few time zones repeatedly
    Zones {
        /// The number of definitions
        number: u64,
        /// Add an event for each definition
        #[arg(long)]
        events: bool,
        #[command(flatten)]
        target: GenerateTargetArgs,
    },
    /// Queries for a generated calendar with the same seed: kind, search line and S-expression on
    /// each line
    Queries {
        /// The number of queries
        number: u64,
        /// The number of components of the calendar
        #[arg(long, value_name = "N", default_value_t = 20_000,
              value_parser = clap::value_parser!(u64).range(1..))]
        of: u64,
        /// The calendar was generated with --events
        #[arg(long)]
        events: bool,
        #[command(flatten)]
        target: GenerateTargetArgs,
    },
}

#[derive(Debug, clap::Args)]
struct GenerateTargetArgs {
    /// The seed of the pseudo-random numbers
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<OutputPath>,
}

impl GenerateCommand {
    fn output_target(&self) -> &GenerateTargetArgs {
        match self {
            GenerateCommand::Contacts { target, .. }
            | GenerateCommand::Calendar { target, .. }
            | GenerateCommand::Zones { target, .. }
            | GenerateCommand::Queries { target, .. } => target,
        }
    }

    fn generate_to(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        let seed = self.output_target().seed;
        match *self {
            GenerateCommand::Contacts { number, .. } => generate::write_contacts(number, seed, out),
            GenerateCommand::Calendar { number, events, .. } => {
                generate::write_calendar(number, seed, events, out)
            }
            GenerateCommand::Zones { number, events, .. } => {
                generate::write_zone_definitions(number, seed, events, out)
            }
            GenerateCommand::Queries { number, of, events, .. } => {
                generate::write_queries(number, of, seed, events, out)
            }
        }
    }
}

impl MeasureArgs {
    /// Returns whether the subcommand generates data.
    pub(super) fn is_generator(&self) -> bool {
        matches!(self.instrument, MeasureCommand::Generate { .. })
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let what = match self.instrument {
            MeasureCommand::Run(runs) => return runs.run(context),
            MeasureCommand::Memory(memory) => return memory.run(context),
            MeasureCommand::Browse(browse) => return browse.run(context),
            MeasureCommand::Queries(queries) => return queries.run(context),
            MeasureCommand::Record(record) => return record.run(context),
            MeasureCommand::Alloc(alloc) => return alloc.run(context),
            MeasureCommand::Replay(replay) => return replay.run(context),
            MeasureCommand::Report(report) => return report.run(context),
            MeasureCommand::Generate { what } => what,
        };
        match &what.output_target().output {
            None => what.generate_to(&mut context.out)?,
            Some(path) => {
                let mut file = context.create_output(path, FilePrivacy::Public)?;
                let mut buffer = std::io::BufWriter::new(&mut file);
                let written = what.generate_to(&mut buffer).and_then(|()| buffer.flush());
                drop(buffer);
                written.map_err(|error| file.to_error(error))?;
                file.commit()?;
            }
        }
        Ok(CommandStatus::Done)
    }
}

impl MeasureRunArgs {
    fn run(&self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(CommandFailure::new(FailureKind::Usage, "missing command after --")
                .with_hint("usage: larder measure run -- COMMAND"));
        };
        let (mut runs, mut is_cut) = (Vec::new(), false);
        // An interrupt is one for the command as well: no further run is started.
        let interrupted = crate::interrupt::note_interrupt();
        let termination = crate::interrupt::note_termination();
        let signals = CommandSignals { termination, ..CommandSignals::default() };
        for _ in 0..self.repeat {
            let output = if self.show { Stdio::inherit() } else { Stdio::null() };
            let mut command = Command::new(program);
            let cost = run_command(command.args(arguments).stdout(output), &signals)
                .map_err(|error| CommandFailure::from_file_error(Path::new(program), &error))?;
            runs.push(cost);
            // The command may have made nothing of a signal, or may have ended early by it.
            is_cut = cost.is_terminated || interrupted.load(Ordering::Relaxed);
            if is_cut || !cost.status.success() {
                break;
            }
        }
        let printed = self.print_costs(context, &runs, is_cut);
        finish_output(context, printed)?;
        let is_short = runs.len() < self.repeat as usize;
        Ok(match runs.last().map_or(0, |run| exit_code(run.status)) {
            0 if is_cut && is_short => CommandStatus::Interrupted,
            code => CommandStatus::Command(code),
        })
    }

    fn print_costs(
        &self,
        context: &mut CommandContext,
        runs: &[ProcessCost],
        is_cut: bool,
    ) -> Result<(), CommandFailure> {
        let code = runs.last().map_or(0, |run| exit_code(run.status));
        let signal = runs.last().and_then(|run| run.status.signal());
        // What is shown says itself why it failed.
        let is_evident = self.show && signal.is_none() && runs.len() == self.repeat as usize;
        if let Some(end) = runs.last().and_then(|run| describe_failure(run.status))
            && !is_evident
        {
            let none_follows = match runs.len() < self.repeat as usize {
                true => "; no further run was started",
                false => "",
            };
            let (run, runs) = (runs.len(), self.repeat);
            context.print_warning(format!("run {run} of {runs} {end}{none_follows}"));
        }
        // A run that was cut short is none of the others' kind.
        let costs = match runs {
            [complete @ .., last] if !complete.is_empty() && (is_cut || !last.status.success()) => {
                complete
            }
            runs => runs,
        };
        let mut object = json!({ "runs": costs.len(), "code": code, "signal": signal });
        let mut rows = vec![["", "min", "median", "max"].map(String::from)];
        for (name, key, value) in COST_COLUMNS {
            let Some(spread) = cost_spread(costs, key, value) else { continue };
            let [least, median, most] = spread;
            object[key] = json!({ "min": least, "median": median, "max": most });
            let shown = spread.map(|value| match value {
                None => "-".into(),
                Some(value) if key.ends_with("_bytes") => format_bytes(value),
                Some(value) => format!("{:.1} ms", value as f64 / 1e3),
            });
            let [least, median, most] = shown;
            rows.push([name.to_string(), least, median, most]);
        }
        if context.format == OutputFormat::Json {
            context.out.print_json(&object)?;
            return Ok(());
        }
        if self.show {
            let median = |row: usize| rows.get(row).map_or("", |row| row[2].as_str());
            let (wall, anonymous) = (median(1), median(5));
            let memory = match anonymous {
                "-" => String::new(),
                _ => format!(", {anonymous} of memory"),
            };
            context.out.print_line(format!("{FAINT_STYLE}[{wall}{memory}]{FAINT_STYLE:#}"))?;
            return Ok(());
        }
        for line in format_columns(&rows, [50, 14, 14, 14], None) {
            context.out.print_line(line)?;
        }
        Ok(())
    }
}

/// A process with less was sampled only before its program had begun, or after its end.
const MIN_ANONYMOUS_BYTES: u64 = 16 << 10;
/// The samples of a shorter run are of its start.
const MIN_SAMPLED_TIME: Duration = Duration::from_millis(3);

/// Returns a peak of anonymous memory, if the run was long enough to measure it.
fn measured_memory(run: &ProcessCost, bytes: u64) -> Option<u64> {
    (run.wall >= MIN_SAMPLED_TIME && bytes >= MIN_ANONYMOUS_BYTES).then_some(bytes)
}

/// A cost of a run: its name for people, its key in JSON (microseconds or bytes), its value, if it
/// was measured.
type CostColumn = (&'static str, &'static str, fn(&ProcessCost) -> Option<u64>);

const COST_COLUMNS: [CostColumn; 7] = [
    ("wall", "wall_us", |run| Some(to_microseconds(run.wall))),
    ("user", "user_us", |run| Some(to_microseconds(run.user))),
    ("system", "system_us", |run| Some(to_microseconds(run.system))),
    ("processor", "cpu_us", |run| Some(to_microseconds(run.user + run.system))),
    ("anonymous memory of the largest process, sampled", "anonymous_bytes", |run| {
        measured_memory(run, run.peak_anonymous_bytes)
    }),
    ("anonymous memory of the first process, sampled", "first_anonymous_bytes", |run| {
        measured_memory(run, run.first_anonymous_bytes)
    }),
    ("written", "written_bytes", |run| run.written_bytes),
];

/// Returns minimum, median and maximum of a cost over the runs that it was measured in. `None`: the
/// kernel does not count it, which is no matter of the length of a run.
fn cost_spread(
    runs: &[ProcessCost],
    key: &str,
    value: fn(&ProcessCost) -> Option<u64>,
) -> Option<[Option<u64>; 3]> {
    match min_median_max(runs.iter().filter_map(value)) {
        Some(values) => Some(values.map(Some)),
        None => key.ends_with("anonymous_bytes").then_some([None; 3]),
    }
}

fn to_microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitStatus;

    /// A run that was too short to sample its memory is not one that took none.
    #[test]
    fn runs_without_a_sample_do_not_count() {
        let run = |peak_anonymous_bytes| ProcessCost {
            wall: Duration::from_millis(4),
            user: Duration::ZERO,
            system: Duration::ZERO,
            peak_anonymous_bytes,
            first_anonymous_bytes: 0,
            written_bytes: None,
            status: ExitStatus::from_raw(0),
            is_terminated: false,
        };
        let short = ProcessCost { wall: Duration::from_millis(2), ..run(50_000) };
        let runs = [run(0), run(900_000), run(4096), run(800_000), short];
        let spreads = COST_COLUMNS.map(|(_, key, value)| (key, cost_spread(&runs, key, value)));
        assert_eq!(spreads[0], ("wall_us", Some([2000, 4000, 4000].map(Some))));
        let measured = [Some(800_000), Some(800_000), Some(900_000)];
        assert_eq!(spreads[4], ("anonymous_bytes", Some(measured)));
        assert_eq!(spreads[5], ("first_anonymous_bytes", Some([None; 3])));
        assert_eq!(spreads[6], ("written_bytes", None));
    }
}
