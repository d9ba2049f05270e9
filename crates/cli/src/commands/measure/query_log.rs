//! `larder measure queries`.

use super::report_output::{check_not_input, finish_output};
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{
    FAINT_STYLE, REMOVED_STYLE, STRONG_STYLE, format_count, format_grouped, print_message,
    sanitize_line,
};
use crate::output_path::OutputPath;
use crate::table::{pad_cells_by_name_column, shorten_to_width};
use larder_measure::chart::MeasureUnit;
use larder_measure::query_log::comparison::{compare_reports, format_change};
use larder_measure::query_log::log_reader::{BadLine, BadLines};
use larder_measure::query_log::view_lifetimes::LifetimeReport;
use larder_measure::query_log::{
    AnonymisationReport, QueryLogReport, anonymise, read_log, render_html, text_report,
};
use larder_store::FilePrivacy;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Analyse a query log: frequency and cost of queries, lifetimes of views, cache hit rate
///
/// Views that were never closed are listed with client and query. With OTHER, compares the logs
/// from before and after a change. --html writes a self-contained page with charts. docs/queries.md
/// documents the format of the log and the report.
#[derive(Debug, clap::Args)]
pub(crate) struct QueryLogArgs {
    /// The log (- for standard input)
    #[arg(value_name = "FILE")]
    log: PathBuf,
    /// A second log to compare with: FILE is before the change, OTHER after it
    other: Option<PathBuf>,
    /// Also write a page with charts to this file
    #[arg(long, value_name = "PAGE")]
    html: Option<OutputPath>,
    /// Also simulate the cache with this budget: 300K, 2M
    #[arg(long, value_name = "BYTES", value_parser = crate::byte_size::parse_nonzero_bytes)]
    budget: Option<u64>,
    /// Only write a copy of the log to OUT, with texts and names replaced by tokens
    #[arg(long, value_name = "OUT", conflicts_with_all = ["other", "html", "budget"])]
    anonymise: Option<OutputPath>,
}

impl QueryLogArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        if let Some(out) = &self.anonymise {
            return anonymise_log(context, &self.log, out);
        }
        let reports = self.read_reports(context)?;
        let offset = |at: i64| {
            let at = jiff::Timestamp::from_microsecond(at).unwrap_or_default();
            i64::from(crate::machine_time::local_zone().to_offset(at).seconds())
        };
        let mut named = reports.iter().map(|(name, report)| (name.as_str(), report));
        let Some(first) = named.next() else { return Ok(CommandStatus::NothingFound) };
        let second = named.next();
        let mut written = Ok(());
        if let Some(path) = &self.html {
            check_not_input(path.path(), &self.log_paths())?;
            let text = render_html(first, second, &offset);
            written = context.write_output(path, FilePrivacy::Private, text.as_bytes());
        }
        let mut printer =
            ReportPrinter { width: context.out.line_width(), context, utc_offset_at: &offset };
        let printed = match (printer.context.format, second) {
            (OutputFormat::Json, _) => printer.print_json(&reports),
            (_, None) => printer.print_report(first),
            (_, Some(second)) => printer.print_comparison(first, second),
        };
        finish_output(context, printed)?;
        finish_output(context, written)?;
        let broken = reports.iter().any(|(_, report)| report.bad_lines.lines > 0);
        Ok(if broken { CommandStatus::Rejected } else { CommandStatus::Done })
    }

    fn log_paths(&self) -> Vec<&Path> {
        [Some(&self.log), self.other.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect()
    }

    /// Reads the logs; returns the name and the report of each.
    fn read_reports(
        &self,
        context: &CommandContext,
    ) -> Result<Vec<(String, QueryLogReport)>, CommandFailure> {
        let logs = self.log_paths();
        let mut reports = Vec::new();
        for path in &logs {
            let report = read_log(&mut *open_log(path)?, self.budget)
                .map_err(|error| CommandFailure::from_file_error(path, &error))?;
            print_broken_lines(context, path, &report.bad_lines);
            if report.is_empty() {
                return Err(empty_log_failure(path));
            }
            reports.push((log_name(path), report));
        }
        // Logs with the same name are distinguished by their folders.
        if matches!(reports.as_slice(), [(a, _), (b, _)] if a == b) {
            for ((name, _), path) in reports.iter_mut().zip(&logs) {
                *name = sanitize_line(&path.display().to_string());
            }
        }
        Ok(reports)
    }
}

fn log_name(path: &Path) -> String {
    match path.to_str() {
        Some("-") => "standard input".into(),
        _ => sanitize_line(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy()),
    }
}

fn open_log(path: &Path) -> Result<Box<dyn BufRead>, CommandFailure> {
    if path.to_str() == Some("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file = File::open(path).map_err(|error| CommandFailure::from_file_error(path, &error))?;
    Ok(Box::new(BufReader::with_capacity(256 << 10, file)))
}

fn empty_log_failure(path: &Path) -> CommandFailure {
    CommandFailure::new(FailureKind::NotFound, format!("{}: not a query log", log_name(path)))
        .with_hint("docs/queries.md describes the format")
}

fn print_broken_lines(context: &CommandContext, path: &Path, broken: &BadLines) {
    if context.quiet {
        return;
    }
    let name = log_name(path);
    for BadLine { line, reason } in &broken.samples {
        print_message("error", format!("rejected {name}:{line}: {}", sanitize_line(reason)));
    }
    let more = broken.lines - broken.samples.len() as u64;
    if more > 0 {
        print_message("error", format!("rejected {name}: {}", format_count(more, "more line")));
    }
}

fn anonymise_log(
    context: &mut CommandContext,
    log: &Path,
    out: &OutputPath,
) -> Result<CommandStatus, CommandFailure> {
    check_not_input(out.path(), &[log])?;
    let mut source = open_log(log)?;
    // The output is written only when complete, so that an invalid log overwrites nothing.
    let mut file = context.create_output(out, FilePrivacy::Private)?;
    let mut whole = BufWriter::new(&mut file);
    let report = anonymise(&mut *source, &mut whole).and_then(|report| {
        whole.flush()?;
        Ok(report)
    });
    drop(whole);
    let report = report.map_err(|error| file.to_error(error))?;
    print_broken_lines(context, log, &report.bad_lines);
    if report.lines == 0 {
        return Err(empty_log_failure(log));
    }
    file.commit()?;
    let printed = print_anonymised(context, &report);
    finish_output(context, printed)?;
    Ok(if report.bad_lines.lines > 0 { CommandStatus::Rejected } else { CommandStatus::Done })
}

fn print_anonymised(
    context: &mut CommandContext,
    report: &AnonymisationReport,
) -> Result<(), CommandFailure> {
    if context.format == OutputFormat::Json {
        context.out.print_json(&serde_json::json!({
            "lines": report.lines, "unknown_lines": report.unknown_lines, "bad_lines": report.bad_lines.lines, "texts": report.texts,
        }))?;
    } else {
        let (lines, texts) =
            (format_count(report.lines, "line"), format_count(report.texts, "text"));
        context.out.print_line(format!("Wrote {lines}; replaced {texts} and names"))?;
        if report.unknown_lines > 0 {
            let unknown = format_count(report.unknown_lines, "line");
            context.out.print_line(format!("{unknown} with unknown events rejected"))?;
        }
    }
    Ok(())
}

/// A report as JSON, with the name of its log.
#[derive(serde::Serialize)]
struct NamedReportJson<'a> {
    log: &'a str,
    #[serde(flatten)]
    report: &'a QueryLogReport,
}

/// The number of rows printed of a table.
const MAX_TABLE_ROWS: usize = 8;
/// The width of a bar of characters.
const BAR_COLUMNS: f64 = 24.0;

struct ReportPrinter<'a> {
    context: &'a mut CommandContext,
    width: Option<usize>,
    utc_offset_at: &'a dyn Fn(i64) -> i64,
}

impl ReportPrinter<'_> {
    fn print_line(&mut self, text: impl std::fmt::Display) -> Result<(), CommandFailure> {
        Ok(self.context.out.print_line(text)?)
    }

    fn print_heading(&mut self, title: &str, text: &str) -> Result<(), CommandFailure> {
        self.print_line("")?;
        self.print_line(format!("{STRONG_STYLE}{title}{STRONG_STYLE:#}"))?;
        self.print_line(sanitize_line(text))
    }

    /// Prints a table with a faint heading. The last column is shortened first.
    fn print_table<const N: usize>(
        &mut self,
        head: [&str; N],
        rows: Vec<[String; N]>,
    ) -> Result<(), CommandFailure> {
        if rows.is_empty() {
            return Ok(());
        }
        let head = head.map(String::from);
        let rows: Vec<[String; N]> =
            rows.into_iter().map(|row| row.map(|cell| sanitize_line(&cell))).collect();
        let all: Vec<[String; N]> = [head].into_iter().chain(rows).collect();
        let width = self.width.map(|width| width.saturating_sub(2));
        for (number, cells) in
            pad_cells_by_name_column(&all, [60; N], width, N - 1).iter().enumerate()
        {
            let line = cells.concat();
            let line = line.trim_end();
            match number {
                0 => self.print_line(format!("  {FAINT_STYLE}{line}{FAINT_STYLE:#}"))?,
                _ => self.print_line(format!("  {line}"))?,
            }
        }
        Ok(())
    }

    /// Returns whether there is room only for the most important columns.
    fn is_narrow(&self) -> bool {
        self.width.is_some_and(|width| width < 80)
    }

    /// Returns a bar whose length is the share.
    fn format_bar(&self, share: f64) -> String {
        const BAR_PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        let most = if self.is_narrow() { BAR_COLUMNS / 2.0 } else { BAR_COLUMNS };
        let eighths = (share.clamp(0.0, 1.0) * most * 8.0).ceil() as usize;
        let part = BAR_PARTS.get(eighths % 8).copied().unwrap_or_default();
        format!("{}{part}", "█".repeat(eighths / 8))
    }

    fn print_json(&mut self, reports: &[(String, QueryLogReport)]) -> Result<(), CommandFailure> {
        for (name, report) in reports {
            let json = serde_json::to_value(NamedReportJson { log: name, report });
            self.context.out.print_json(&json.map_err(std::io::Error::from)?)?;
        }
        Ok(())
    }

    fn print_report(
        &mut self,
        (name, report): (&str, &QueryLogReport),
    ) -> Result<(), CommandFailure> {
        self.print_line(format!(
            "{STRONG_STYLE}{name}{STRONG_STYLE:#}: {}",
            text_report::describe_log(report, self.utc_offset_at)
        ))?;
        self.print_reuse(report)?;
        self.print_lifetimes(report)?;
        self.print_cost(report)?;
        self.print_cache_value(report)?;
        self.print_notified_views(report)
    }

    fn print_reuse(
        &mut self,
        QueryLogReport { reuse, .. }: &QueryLogReport,
    ) -> Result<(), CommandFailure> {
        self.print_heading("Queries and repetition", &text_report::describe_reuse(reuse))?;
        let most = reuse.repeat_buckets.iter().map(|times| times.answers).max().unwrap_or(1) as f64;
        let rows = reuse.repeat_buckets.iter().map(|times| {
            [
                text_report::format_count_range(times.min, times.max),
                format_grouped(times.queries),
                format_grouped(times.answers),
                self.format_bar(times.answers as f64 / most),
            ]
        });
        let rows = rows.collect();
        self.print_table(["times requested", "queries", "answers", ""], rows)?;
        let most = reuse.most_frequent.iter().take(MAX_TABLE_ROWS);
        if self.is_narrow() {
            let rows = most.map(|often| {
                [
                    format_grouped(often.answers.total()),
                    text_report::format_query(&often.query.query),
                ]
            });
            return self.print_table(["answers", "query"], rows.collect());
        }
        let rows = most.map(|often| {
            [
                format_grouped(often.answers.total()),
                format_grouped(often.answers.cache),
                format_grouped(often.answers.shared),
                text_report::format_query_target(&often.query),
                text_report::format_query(&often.query.query),
            ]
        });
        self.print_table(["answers", "from cache", "shared", "collection", "query"], rows.collect())
    }

    fn print_lifetimes(&mut self, report: &QueryLogReport) -> Result<(), CommandFailure> {
        let lives = &report.lifetimes;
        self.print_heading(
            "Lifetimes of views and cached answers",
            &text_report::describe_lifetimes(lives),
        )?;
        self.print_unclosed_views(lives)?;
        self.print_line(text_report::describe_cache_residency(lives))?;
        let rows = lives.clients.iter().take(MAX_TABLE_ROWS).map(|client| {
            let lived = |us: u64| match client.lifetimes_us.count {
                0 => "-".to_string(),
                _ => text_report::format_duration(us as f64),
            };
            [
                client.client.clone(),
                format_grouped(client.opened),
                format_grouped(client.leaked + client.process_died + client.open_at_end),
                lived(client.lifetimes_us.quantile(0.5)),
                lived(client.lifetimes_us.max),
            ]
        });
        self.print_table(
            ["client", "opened", "never closed", "median lifetime", "longest"],
            rows.collect(),
        )
    }

    /// Prints each view that was never closed, leaks first.
    fn print_unclosed_views(&mut self, lives: &LifetimeReport) -> Result<(), CommandFailure> {
        for life in lives.unclosed.iter().take(2 * MAX_TABLE_ROWS) {
            let text = sanitize_line(&text_report::describe_view_lifetime(
                life,
                lives.time_span,
                self.utc_offset_at,
            ));
            let width = self.width.unwrap_or(usize::MAX).saturating_sub(2);
            self.print_line(format!(
                "  {REMOVED_STYLE}{}{REMOVED_STYLE:#}",
                shorten_to_width(&text, width)
            ))?;
        }
        match lives.unclosed.len().saturating_sub(2 * MAX_TABLE_ROWS) as u64 {
            0 => Ok(()),
            more => self.print_line(format!("  ... and {}", format_count(more, "more view"))),
        }
    }

    fn print_cost(
        &mut self,
        QueryLogReport { cost, .. }: &QueryLogReport,
    ) -> Result<(), CommandFailure> {
        self.print_heading("Query time", &text_report::describe_cost(cost))?;
        let narrow = self.is_narrow();
        let rows = cost.collections.iter().take(2 * MAX_TABLE_ROWS).map(|cost| {
            let group = &cost.group;
            [
                text_report::format_collection_cost(cost),
                format_grouped(group.work.us.count),
                text_report::format_duration(group.work.us.mean()),
                text_report::format_duration(group.work.us.max as f64),
                text_report::format_scan_ratio(&group.work),
                match narrow {
                    true => String::new(),
                    false => text_report::format_query(&group.slowest_query.query),
                },
            ]
        });
        let last = if narrow { "" } else { "slowest query" };
        let head = ["collection", "queries", "mean", "maximum", "rows per item", last];
        self.print_table(head, rows.collect())?;
        if cost.backends.len() > 1 {
            let rows = cost.backends.iter().take(MAX_TABLE_ROWS).map(|group| {
                [
                    group.backend.clone(),
                    format_grouped(group.work.us.count),
                    text_report::format_duration(group.work.us.mean()),
                    text_report::format_duration(group.work.us.max as f64),
                    text_report::format_scan_ratio(&group.work),
                ]
            });
            let head = ["backend", "queries", "mean", "maximum", "rows per item"];
            self.print_table(head, rows.collect())?;
        }
        Ok(())
    }

    fn print_cache_value(
        &mut self,
        QueryLogReport { cache, .. }: &QueryLogReport,
    ) -> Result<(), CommandFailure> {
        self.print_heading("Cache hit rate", &text_report::describe_cache(cache))?;
        if cache.answers == 0 {
            return Ok(());
        }
        let recorded = cache.recorded.map(|trial| (trial, "recorded".to_string()));
        let trials = cache
            .trials
            .iter()
            .map(|trial| (*trial, text_report::format_budget(trial.budget_bytes)));
        let rows = trials.chain(recorded).map(|(trial, name)| {
            [
                name,
                text_report::format_share(trial.hits, cache.answers),
                larder_measure::chart::MeasureUnit::Bytes.format(trial.peak_bytes as f64),
                text_report::format_duration(trial.saved_us as f64),
                self.format_bar(trial.hit_rate),
            ]
        });
        let rows = rows.collect();
        self.print_table(["budget", "hit rate", "peak memory", "time saved", ""], rows)?;
        match text_report::describe_replay_accuracy(cache) {
            Some(text) => self.print_line(text),
            None => Ok(()),
        }
    }

    fn print_notified_views(
        &mut self,
        QueryLogReport { fan_out, .. }: &QueryLogReport,
    ) -> Result<(), CommandFailure> {
        self.print_heading("Views notified by a change", &text_report::describe_fan_out(fan_out))?;
        let most =
            fan_out.views_notified_buckets.iter().map(|bucket| bucket.changes).max().unwrap_or(1)
                as f64;
        let rows = fan_out.views_notified_buckets.iter().map(|bucket| {
            [
                text_report::format_view_count(bucket.min, bucket.max),
                format_grouped(bucket.changes),
                self.format_bar(bucket.changes as f64 / most),
            ]
        });
        let rows = rows.collect();
        self.print_table(["views notified", "changes", ""], rows)
    }

    /// Prints the comparison of two logs: figures, cost by collection, and views left open.
    fn print_comparison(
        &mut self,
        (before, a): (&str, &QueryLogReport),
        (after, b): (&str, &QueryLogReport),
    ) -> Result<(), CommandFailure> {
        for (name, report) in [(before, a), (after, b)] {
            self.print_line(format!(
                "{STRONG_STYLE}{name}{STRONG_STYLE:#}: {}",
                text_report::describe_log(report, self.utc_offset_at)
            ))?;
        }
        self.print_line("")?;
        self.print_table(["", "before", "after", "change"], compare_reports(a, b))?;
        self.print_heading("Query time", "Means by collection and backend.")?;
        let mut rows = Vec::new();
        for earlier in a.cost.collections.iter().take(2 * MAX_TABLE_ROWS) {
            let mut others = b.cost.collections.iter();
            let Some(later) = others.find(|it| it.is_same_group(earlier)) else { continue };
            let [from, to] = [earlier, later].map(|it| it.group.work.us.mean());
            rows.push([
                text_report::format_collection_cost(earlier),
                text_report::format_duration(from),
                text_report::format_duration(to),
                format_change(from, to, MeasureUnit::Time),
                format!(
                    "{} > {}",
                    text_report::format_scan_ratio(&earlier.group.work),
                    text_report::format_scan_ratio(&later.group.work)
                ),
            ]);
        }
        self.print_table(["collection", "before", "after", "change", "rows per item"], rows)?;
        let describe = |name: &str, report: &QueryLogReport| {
            format!("{name}: {}", text_report::describe_lifetimes(&report.lifetimes))
        };
        self.print_heading("Lifetimes of views", &describe(before, a))?;
        self.print_unclosed_views(&a.lifetimes)?;
        self.print_line(sanitize_line(&describe(after, b)))?;
        self.print_unclosed_views(&b.lifetimes)?;
        Ok(())
    }
}
