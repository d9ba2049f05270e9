//! The output of a report of an instrument: text, and the files that the user names.

use crate::context::CommandContext;
use crate::failure::{CommandFailure, FailureKind};
use crate::output::{FAINT_STYLE, STRONG_STYLE, sanitize_line};
use crate::output_path::OutputPath;
use crate::table::format_figure_rows;
use larder_measure::measure_report::{MeasureReport, ReportTable};
use larder_store::FilePrivacy;
use std::fs::{File, Metadata};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The files that a report is written to, beside the text.
#[derive(Clone, Copy, Default)]
pub(super) struct ReportFiles<'a> {
    /// The page with charts.
    pub(super) html: Option<&'a OutputPath>,
    /// The picture of the charts over time.
    pub(super) svg: Option<&'a OutputPath>,
}

impl ReportFiles<'_> {
    /// Fails if a file is one of the inputs or both files are one, or if a file cannot be created:
    /// before a measurement that would be lost. Pipes and devices are opened later, when there is
    /// something to write.
    pub(super) fn check(
        self,
        context: &mut CommandContext,
        inputs: &[&Path],
    ) -> Result<(), CommandFailure> {
        for path in [self.html, self.svg].into_iter().flatten() {
            check_not_input(path.path(), inputs)?;
            if !path.is_direct() {
                drop(context.create_output(path, FilePrivacy::Private)?);
            }
        }
        match (self.html, self.svg) {
            (Some(html), Some(svg)) => check_two_files(html, svg),
            _ => Ok(()),
        }
    }

    /// Writes the files; returns the first failure. A reader of the page who has gone takes nothing
    /// from the picture, nor hides that it cannot be written.
    pub(super) fn write(
        self,
        context: &mut CommandContext,
        report: &MeasureReport,
    ) -> Result<(), CommandFailure> {
        let page = self.html.map_or(Ok(()), |path| {
            context.write_output(path, FilePrivacy::Private, report.render_html().as_bytes())
        });
        if page.as_ref().is_err_and(|failure| !failure.is_broken_pipe()) {
            return page;
        }
        if let Some(path) = self.svg {
            context.write_output(path, FilePrivacy::Private, report.render_svg().as_bytes())?;
        }
        page
    }
}

/// Fails if the page and the picture would be written to one file.
fn check_two_files(html: &OutputPath, svg: &OutputPath) -> Result<(), CommandFailure> {
    // Nothing of a device is replaced.
    if html.is_direct() && html.path() != Path::new("-") {
        return Ok(());
    }
    let id = |path: &OutputPath| file_id(std::fs::metadata(path.path()));
    // A file that is not there yet has a name in a directory.
    let name = |path: &OutputPath| {
        let path = std::path::absolute(path.path()).ok()?;
        Some((file_id(std::fs::metadata(path.parent()?)), path.file_name()?.to_owned()))
    };
    if name(html) == name(svg) || id(html).is_some() && id(html) == id(svg) {
        let name = sanitize_line(&html.path().display().to_string());
        let message = format!("{name} is the file of both --html and --svg");
        return Err(CommandFailure::new(FailureKind::Usage, message)
            .with_hint("choose another output file for one of them"));
    }
    Ok(())
}

/// Returns the device and the number of a file.
fn file_id(file: std::io::Result<Metadata>) -> Option<(u64, u64)> {
    file.ok().map(|file| (file.dev(), file.ino()))
}

/// Fails if the output file is one of the inputs, by whatever name.
pub(super) fn check_not_input(target: &Path, logs: &[&Path]) -> Result<(), CommandFailure> {
    let Some(target_id) = file_id(std::fs::metadata(target)) else { return Ok(()) };
    let is_target = |log: &&Path| match log.to_str() {
        Some("-") => {
            let input = std::io::stdin().as_fd().try_clone_to_owned();
            file_id(input.and_then(|input| File::from(input).metadata())) == Some(target_id)
        }
        _ => file_id(std::fs::metadata(log)) == Some(target_id),
    };
    if logs.iter().any(is_target) {
        let message = format!("{} is the log itself", sanitize_line(&target.display().to_string()));
        return Err(CommandFailure::new(FailureKind::Usage, message)
            .with_hint("choose another output file"));
    }
    Ok(())
}

/// Ends the output of a command whose exit code says more than that it was printed. A reader who
/// has gone is no failure here: the code stays.
pub(super) fn finish_output(
    context: &mut CommandContext,
    printed: Result<(), CommandFailure>,
) -> Result<(), CommandFailure> {
    let printed = printed.and_then(|()| Ok(context.out.flush()?));
    match printed {
        Err(failure) if failure.is_broken_pipe() => {
            context.out.close();
            Ok(())
        }
        printed => printed,
    }
}

/// Prints a report.
pub(super) fn print_report(
    context: &mut CommandContext,
    report: &MeasureReport,
) -> Result<(), CommandFailure> {
    let title = sanitize_line(&report.title);
    context.out.print_line(format!("{STRONG_STYLE}{title}{STRONG_STYLE:#}"))?;
    for finding in &report.findings {
        context.out.print_line(sanitize_line(finding))?;
    }
    for section in &report.sections {
        context.out.print_line("")?;
        let heading = sanitize_line(&section.heading);
        context.out.print_line(format!("{STRONG_STYLE}{heading}{STRONG_STYLE:#}"))?;
        context.out.print_line(sanitize_line(&section.text))?;
        for table in &section.tables {
            if section.tables.len() > 1 {
                context.out.print_line(sanitize_line(&table.title))?;
            }
            print_table(context, table)?;
        }
    }
    Ok(())
}

fn print_table(context: &mut CommandContext, table: &ReportTable) -> Result<(), CommandFailure> {
    let rows: Vec<Vec<String>> = [&table.head]
        .into_iter()
        .chain(&table.rows)
        .map(|row| row.iter().map(|cell| sanitize_line(cell)).collect())
        .collect();
    let width = context.out.line_width().map(|width| width.saturating_sub(2));
    for (number, line) in format_figure_rows(&rows, width).iter().enumerate() {
        match number {
            0 => context.out.print_line(format!("  {FAINT_STYLE}{line}{FAINT_STYLE:#}"))?,
            _ => context.out.print_line(format!("  {line}"))?,
        }
    }
    Ok(())
}
