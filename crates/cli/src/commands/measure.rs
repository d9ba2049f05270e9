use super::browse::Browse;
use super::queries::Queries;
use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure, Kind};
use crate::output::{FAINT, size};
use crate::table::columns;
use larder_measure::generate;
use larder_measure::run::{Run, run, spread};
use serde_json::json;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// The instruments
#[derive(Debug, clap::Args)]
pub(crate) struct Measure {
    #[command(subcommand)]
    instrument: Instrument,
}

#[derive(Debug, clap::Subcommand)]
enum Instrument {
    /// Make realistic data of any size, the same for the same seed
    Generate {
        #[command(subcommand)]
        what: What,
    },
    Run(Runs),
    Browse(Browse),
    Queries(Queries),
}

/// Run a command and print what it cost: time, processor, peak of anonymous memory, bytes written
///
/// Of several runs the least, the median and the most. What the command prints on standard output is thrown
/// away unless --show is given. The exit code is the command's; a run that fails is the last one.
#[derive(Debug, clap::Args)]
struct Runs {
    /// How often
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Let the command print, and print the median cost in one line below it
    #[arg(long)]
    show: bool,
    /// The command and its arguments, behind --
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// vCards: names of many scripts, one to three phones and e-mails, addresses, some photos, all versions
    Contacts {
        /// How many
        number: u64,
        #[command(flatten)]
        target: Target,
    },
    /// A calendar: events, a fifth of them recurring, tasks and notes, over ten years and in several time zones
    Calendar {
        /// How many
        number: u64,
        /// Events alone
        #[arg(long)]
        events: bool,
        #[command(flatten)]
        target: Target,
    },
    /// A calendar that defines the same few time zones again and again
    Zones {
        /// How many definitions
        number: u64,
        /// An event for each
        #[arg(long)]
        events: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Questions to a generated calendar of the same seed: kind, search line and EDS expression on each line
    Queries {
        /// How many
        number: u64,
        /// Of how many components the calendar is
        #[arg(long, value_name = "N", default_value_t = 20_000,
              value_parser = clap::value_parser!(u64).range(1..))]
        of: u64,
        /// Of events alone
        #[arg(long)]
        events: bool,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, clap::Args)]
struct Target {
    /// The beginning of the pseudo-random numbers
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl What {
    fn target(&self) -> &Target {
        match self {
            What::Contacts { target, .. }
            | What::Calendar { target, .. }
            | What::Zones { target, .. }
            | What::Queries { target, .. } => target,
        }
    }

    fn write(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        let seed = self.target().seed;
        match *self {
            What::Contacts { number, .. } => generate::contacts(number, seed, out),
            What::Calendar { number, events, .. } => generate::calendar(number, seed, events, out),
            What::Zones { number, events, .. } => generate::zones(number, seed, events, out),
            What::Queries { number, of, events, .. } => {
                generate::queries(number, of, seed, events, out)
            }
        }
    }
}

impl Measure {
    /// Does it make data? All others tell something.
    pub(super) fn generates(&self) -> bool {
        matches!(self.instrument, Instrument::Generate { .. })
    }

    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let what = match self.instrument {
            Instrument::Run(runs) => return runs.run(context),
            Instrument::Browse(browse) => return browse.run(context),
            Instrument::Queries(queries) => return queries.run(context),
            Instrument::Generate { what } => what,
        };
        match &what.target().output {
            None => what.write(&mut context.out)?,
            Some(path) => {
                let write = || {
                    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
                    what.write(&mut file)?;
                    file.flush()
                };
                write().map_err(|error: std::io::Error| Failure::file(path, &error))?;
            }
        }
        Ok(Code::Done)
    }
}

impl Runs {
    fn run(&self, context: &mut Context) -> Result<Code, Failure> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(Failure::new(Kind::Usage, "a command is missing behind --")
                .hint("larder measure run -- COMMAND"));
        };
        let mut runs = Vec::new();
        for _ in 0..self.repeat {
            let output = if self.show { Stdio::inherit() } else { Stdio::null() };
            let cost = run(Command::new(program).args(arguments).stdout(output))
                .map_err(|error| Failure::file(Path::new(program), &error))?;
            runs.push(cost);
            if !cost.status.success() {
                break;
            }
        }
        self.print(context, &runs)?;
        Ok(runs.last().map_or(Code::Done, |run| Code::Command(code(run.status))))
    }

    fn print(&self, context: &mut Context, runs: &[Run]) -> Result<(), Failure> {
        let code = runs.last().map_or(0, |run| code(run.status));
        let mut object = json!({ "runs": runs.len(), "code": code });
        let mut rows = vec![["", "least", "median", "most"].map(String::from)];
        for (name, key, value) in COSTS {
            let Some(spread) = spread(runs.iter().filter_map(value)) else { continue };
            let [least, median, most] = spread;
            object[key] = json!({ "min": least, "median": median, "max": most });
            let shown = spread.map(|value| match key.ends_with("_bytes") {
                true => size(value),
                false => format!("{:.1} ms", value as f64 / 1e3),
            });
            let [least, median, most] = shown;
            rows.push([name.to_string(), least, median, most]);
        }
        if context.format == Format::Json {
            context.out.json(&object)?;
            return Ok(());
        }
        if self.show {
            let median = |row: usize| rows.get(row).map_or("", |row| row[2].as_str());
            let (wall, anonymous) = (median(1), median(5));
            context.out.line(format!("{FAINT}[{wall}, {anonymous} of memory]{FAINT:#}"))?;
            return Ok(());
        }
        for line in columns(&rows, [20; 4], None) {
            context.out.line(line)?;
        }
        Ok(())
    }
}

/// What is printed of a run: its name for people, its key in JSON (microseconds or bytes), its value.
type Cost = (&'static str, &'static str, fn(&Run) -> Option<u64>);

const COSTS: [Cost; 6] = [
    ("wall", "wall_us", |run| Some(microseconds(run.wall))),
    ("user", "user_us", |run| Some(microseconds(run.user))),
    ("system", "system_us", |run| Some(microseconds(run.system))),
    ("processor", "cpu_us", |run| Some(microseconds(run.user + run.system))),
    ("anonymous memory", "anonymous_bytes", |run| Some(run.anonymous)),
    ("written", "written_bytes", |run| run.written),
];

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The exit code; 128 and the number of the signal that ended it, as shells have it.
fn code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    u8::try_from(status.code().or(signal).unwrap_or(1)).unwrap_or(1)
}
