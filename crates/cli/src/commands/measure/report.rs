//! `larder measure report`.

use super::report_output::{finish_output, print_report};
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{print_message, sanitize_line};
use crate::output_path::OutputPath;
use larder_measure::benchmark_results::{ResultFolder, results_json, results_report};
use larder_store::FilePrivacy;
use std::path::PathBuf;

/// Compare the results of benchmarks: by program, by size, and from version to version
///
/// Reads the files that the scripts in bench/ write with LARDER_BENCH_RESULTS=DIR; bench/README.md
/// describes them. Compares runs of one machine, and names what is more than 10 % worse than in the
/// last run of another commit. --html writes a self-contained page with charts. The exit code is 3
/// if a file cannot be used.
#[derive(Debug, clap::Args)]
pub(crate) struct ResultsArgs {
    /// The directory with the results
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Also write a page with charts to this file
    #[arg(long, value_name = "PAGE")]
    html: Option<OutputPath>,
}

impl ResultsArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let results = ResultFolder::read(&self.folder)
            .map_err(|error| CommandFailure::from_file_error(&self.folder, &error))?;
        for (path, error) in &results.rejected {
            let text = format!("{}: {error}; the file is left out", path.display());
            print_message("error", sanitize_line(&text));
        }
        let name = sanitize_line(&self.folder.display().to_string());
        if results.runs.is_empty() {
            let message = format!("{name}: no result of a benchmark");
            return Err(CommandFailure::new(FailureKind::NotFound, message)
                .with_hint("the scripts in bench/ write them with LARDER_BENCH_RESULTS=DIR"));
        }
        let report = results_report(&name, &results.runs);
        let written = self.html.as_ref().map_or(Ok(()), |path| {
            context.write_output(path, FilePrivacy::Public, report.render_html().as_bytes())
        });
        let printed = match context.format {
            OutputFormat::Json => {
                context.out.print_json(&results_json(&results)).map_err(CommandFailure::from)
            }
            _ => print_report(context, &report),
        };
        finish_output(context, printed)?;
        finish_output(context, written)?;
        match results.rejected.is_empty() {
            true => Ok(CommandStatus::Done),
            false => Ok(CommandStatus::Rejected),
        }
    }
}
