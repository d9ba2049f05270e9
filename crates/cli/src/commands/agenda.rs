//! `larder agenda`.

use super::find::occurrence_list::{
    DEFAULT_MAX_OCCURRENCES, finish_possibly_empty, note_more_occurrences, warn_of_undecided_items,
};
use super::show::item_format;
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::display_title;
use crate::machine_time::now_milliseconds;
use crate::output::{CANCELLED_STYLE, FAINT_STYLE, STRONG_STYLE, colour_style, sanitize_line};
use crate::table::{pad_cells_with_fixed_columns, style_cells};
use anstyle::Style;
use larder_date_phrase::{DateRange, Language};
use larder_present::{AgendaDay, DayEntry, local_time};
use larder_query::{AgendaContent, BusyPeriod, OccurrenceList, SearchRequest};
use larder_store::{ItemRow, Reader, TimeRange, TimeTarget};
use larder_time::civil::{Date, Instant};
use serde_json::json;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Show events and due tasks day by day
///
/// Without FROM, shows today and the next six days. FROM alone is a day, a week,
/// a month or a range; FROM and TO are a range that includes TO. Both may be in
/// English or in the language of LC_TIME.
///
///   larder agenda                       today and the next six days
///   larder agenda tomorrow
///   larder agenda 2026-03               a month; 2026-W12 is a week
///   larder agenda "next friday" +2w
///   larder agenda monday friday --busy
///
/// Times are in the local time zone (TZ). Recurring events appear on each day on
/// which they occur, and tasks on the day they are due.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AgendaArgs {
    /// The first day, or a range [default: today and the next six days]
    #[arg(allow_hyphen_values = true, value_parser = parse_date_argument)]
    from: Option<String>,
    /// The last day
    #[arg(allow_hyphen_values = true, value_parser = parse_date_argument)]
    to: Option<String>,
    /// Show only this calendar (repeatable)
    #[arg(long = "in", value_name = "NAME")]
    collections: Vec<String>,
    /// Show only busy times, merged and without titles; --format raw prints a VFREEBUSY
    #[arg(long)]
    busy: bool,
    /// Show at most N occurrences
    #[arg(long, short = 'n', value_name = "N", default_value_t = DEFAULT_MAX_OCCURRENCES)]
    limit: usize,
}

/// A line of a day: time, title, place, calendar.
type AgendaRow = [String; 5];

impl AgendaArgs {
    /// Returns whether to show only busy times.
    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let time_range = self.parse_time_range(context)?;
        let reader = context.open_reader()?;
        let content = match self.busy {
            true => AgendaContent::BusyTime,
            false => AgendaContent::EventsAndTasks,
        };
        let found = {
            let mut ask = |find: &SearchRequest| context.run_query("larder agenda", &reader, find);
            larder_query::read_agenda_with(
                &mut ask,
                &reader,
                &self.collections,
                &time_range,
                content,
                self.limit,
            )?
        };
        if found.truncated {
            note_more_occurrences(context, self.limit);
        }
        warn_of_undecided_items(context, &reader, &found.undecided_rows)?;
        if self.busy {
            return print_busy(context, &found, &time_range);
        }
        match context.format {
            OutputFormat::Json => {
                for entry in &found.entries {
                    context
                        .out
                        .print_json(&item_format::occurrence_json(entry, &time_range.local_zone))?;
                }
            }
            _ => print_days(context, &reader, &found, &time_range)?,
        }
        finish_possibly_empty(context, found.entries.is_empty(), "no events")
    }

    fn parse_time_range(&self, context: &CommandContext) -> Result<TimeRange, CommandFailure> {
        let user_locale = &context.settings.user_locale;
        let now = user_locale.zone.to_civil(user_locale.now);
        let (from, to) = match &self.from {
            Some(from) => (from.as_str(), self.to.as_deref()),
            None => ("today", Some("+6d")),
        };
        let parse = |from: &str, to| DateRange::parse_bounds(from, to, now, &user_locale.language);
        // A phrase of two words needs no quotes: next week.
        let joined = to.and_then(|to| parse(&format!("{from} {to}"), None).ok());
        let phrase = match parse(from, to) {
            Ok(phrase) => phrase,
            Err(error) => joined.ok_or_else(|| CommandFailure::new(FailureKind::Usage, error))?,
        };
        Ok(larder_query::date_range_to_time_range(user_locale, &phrase, TimeTarget::Occurrences))
    }
}

/// Returns a date argument. `-3d` is one, and a mistyped option is none.
fn parse_date_argument(text: &str) -> Result<String, &'static str> {
    if text.starts_with("--") { Err("not a date") } else { Ok(text.to_string()) }
}

fn print_days(
    context: &mut CommandContext,
    reader: &Reader,
    found: &OccurrenceList,
    time_range: &TimeRange,
) -> Result<(), CommandFailure> {
    let width = context.out.line_width();
    let days = larder_present::group_by_day(&found.entries, time_range);
    let lines = format_days(reader, &context.settings.user_locale.language, &days, width)?;
    for (place, (row, line)) in lines.iter().enumerate() {
        match row {
            None => {
                let gap = if place > 0 { "\n" } else { "" };
                context.out.print_line(format!("{gap}{line}"))?;
            }
            Some(_) => context.out.print_line(format!("{INDENT}{line}"))?,
        }
    }
    Ok(())
}

/// Formats days as lines: headings, and entries with the row of their item, which the caller
/// indents.
pub(super) fn format_days(
    reader: &Reader,
    language: &Language,
    days: &[AgendaDay<'_>],
    width: Option<usize>,
) -> Result<Vec<(Option<ItemRow>, String)>, CommandFailure> {
    let entries = || days.iter().flat_map(|day| &day.entries);
    let colours = calendar_styles(reader, entries().map(|on| &*on.entry.item.meta.collection))?;
    let first = entries().next().map(|on| &on.entry.item.meta.collection);
    let several = entries().any(|on| Some(&on.entry.item.meta.collection) != first);
    let rows: Vec<AgendaRow> =
        entries().map(|on| entry_row(reader, on, several)).collect::<Result<_, _>>()?;
    let width = width.map(|width| width.saturating_sub(INDENT.len()));
    let fixed = [true, false, false, false, true];
    let mut cells =
        pad_cells_with_fixed_columns(&rows, [11, 40, 32, 24, 0], width, fixed).into_iter();
    let mut lines = Vec::with_capacity(rows.len() + days.len());
    for day in days {
        lines.push((None, format!("{STRONG_STYLE}{}{STRONG_STYLE:#}", language.date(day.date))));
        for (on, [time, what, place, calendar, id]) in day.entries.iter().zip(&mut cells) {
            let item = &on.entry.item;
            let colour = colours.get(&*item.meta.collection).copied().unwrap_or_default();
            let style = if item.is_cancelled() || item.is_done { CANCELLED_STYLE } else { colour };
            let cells = [
                (Style::new(), time.as_str()),
                (style, what.as_str()),
                (FAINT_STYLE, place.as_str()),
                (colour, calendar.as_str()),
                (FAINT_STYLE, id.as_str()),
            ];
            lines.push((Some(item.meta.row), style_cells(&cells)));
        }
    }
    Ok(lines)
}

/// The indentation of entries.
pub(super) const INDENT: &str = "  ";

/// Returns the colours of these calendars.
fn calendar_styles<'e>(
    reader: &Reader,
    names: impl Iterator<Item = &'e str>,
) -> Result<BTreeMap<&'e str, Style>, CommandFailure> {
    let mut colours = BTreeMap::new();
    for name in names {
        if let Entry::Vacant(vacant) = colours.entry(name) {
            let properties = larder_query::read_calendar_properties(reader, name)?;
            vacant.insert(colour_style(larder_present::calendar_colour(name, &properties)));
        }
    }
    Ok(colours)
}

fn entry_row(
    reader: &Reader,
    on: &DayEntry<'_>,
    several: bool,
) -> Result<AgendaRow, CommandFailure> {
    let item = &on.entry.item;
    let mut what = display_title(item.meta.kind, &item.summary);
    let marks = item_format::status_marks(item).into_iter().map(String::from).chain(on.part_text());
    let marks: Vec<String> = marks.collect();
    if !marks.is_empty() {
        what.push_str(&format!(" ({})", marks.join(", ")));
    }
    let place = item_format::first_location_line(&item.location);
    let place = if place.is_empty() { place } else { format!("({place})") };
    let calendar = if several { sanitize_line(&item.meta.collection) } else { String::new() };
    let letters = reader.items().unique_prefix_len(item.meta.handle)?;
    let id = format!("{:.letters$}", item.meta.handle);
    Ok([on.time_text(), what, place, calendar, id])
}

fn print_busy(
    context: &mut CommandContext,
    found: &OccurrenceList,
    time_range: &TimeRange,
) -> Result<CommandStatus, CommandFailure> {
    let busy = larder_query::busy_periods(&found.entries, time_range);
    if context.format == OutputFormat::Raw {
        let at = Instant::from_seconds_clamped(now_milliseconds() / 1000);
        let text = larder_present::format_free_busy(&busy, time_range, at);
        context.out.print_bytes(text.as_bytes())?;
        return Ok(CommandStatus::Done);
    }
    let mut last = None;
    for span in &busy {
        if context.format == OutputFormat::Json {
            let (from, to) = (
                local_time::format_instant(span.from, &time_range.local_zone),
                local_time::format_instant(span.to, &time_range.local_zone),
            );
            context
                .out
                .print_json(&json!({ "from": from, "to": to, "tentative": span.tentative }))?;
            continue;
        }
        let day = time_range.local_zone.to_civil(span.from).date();
        if last != Some(day) {
            let gap = if last.is_some() { "\n" } else { "" };
            let heading = context.settings.user_locale.language.date(day);
            context.out.print_line(format!("{gap}{STRONG_STYLE}{heading}{STRONG_STYLE:#}"))?;
            last = Some(day);
        }
        let line = format_busy_line(context, span, time_range, day);
        context.out.print_line(line)?;
    }
    // Of a list that was cut, nothing is known about the rest.
    finish_possibly_empty(context, busy.is_empty() && !found.truncated, "no busy times")
}

/// Formats a busy period: `09:30-10:00`, with the day on which it ends if that is another day.
fn format_busy_line(
    context: &CommandContext,
    span: &BusyPeriod,
    time_range: &TimeRange,
    day: Date,
) -> String {
    let (from, to) =
        (time_range.local_zone.to_civil(span.from), time_range.local_zone.to_civil(span.to));
    let ends = to.saturating_add(-1).date();
    let until = local_time::format_end_clock(to);
    let ends = match ends == day {
        true => String::new(),
        false => format!(" ({})", context.settings.user_locale.language.date(ends)),
    };
    let tentative = if span.tentative { "  tentative" } else { "" };
    format!("{INDENT}{}-{until}{ends}{tentative}", local_time::format_clock(from))
}
