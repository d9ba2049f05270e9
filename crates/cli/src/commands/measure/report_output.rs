//! The output of a report of an instrument, as text.

use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::output::{FAINT_STYLE, STRONG_STYLE, sanitize_line};
use crate::table::format_figure_rows;
use larder_measure::measure_report::{MeasureReport, ReportTable};

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
