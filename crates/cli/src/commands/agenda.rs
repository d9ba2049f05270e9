use super::item_format;
use crate::args::OutputFormat;
use crate::context::{CommandContext, now_milliseconds};
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::display_title;
use crate::output::{CANCELLED_STYLE, FAINT_STYLE, STRONG_STYLE, colour_style, sanitize_line};
use crate::table::{pad_cells, style_cells};
use anstyle::Style;
use larder_date_phrase::{DateRange, Language};
use larder_present::{AgendaDay, DayEntry, local_time};
use larder_query::{BusyPeriod, OccurrenceList, SearchRequest};
use larder_store::{Reader, TimeRange, TimeTarget};
use larder_time::civil::{Date, Instant};
use serde_json::json;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Show what is on, day by day
///
/// Without FROM: today and the six days that follow. FROM alone is a day, a
/// week, a month or a range; FROM and TO are a range to the end of TO. Days and
/// months are understood in English and in the language of LC_TIME.
///
///   larder agenda                       today and the next six days
///   larder agenda tomorrow
///   larder agenda 2026-03               a month; 2026-W12 is a week
///   larder agenda "next friday" +2w
///   larder agenda monday friday --busy
///
/// Times are by the clock of this machine (TZ). What recurs is shown each time,
/// tasks on the day on which they are due.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AgendaArgs {
    /// The first day, or the whole range [default: today and the six days that follow]
    #[arg(allow_hyphen_values = true)]
    from: Option<String>,
    /// The last day
    #[arg(allow_hyphen_values = true)]
    to: Option<String>,
    /// Only what is in this calendar; may be given several times
    #[arg(long = "in", value_name = "NAME")]
    collections: Vec<String>,
    /// Only when time is taken, merged, and not by what; --format raw gives it as a VFREEBUSY
    #[arg(long)]
    busy: bool,
    /// At most so many occurrences
    #[arg(long, short = 'n', value_name = "N", default_value_t = DEFAULT_MAX_OCCURRENCES)]
    limit: usize,
}

/// So many occurrences are shown, unless more are asked for: of what happens each second there is
/// no end.
pub(super) const DEFAULT_MAX_OCCURRENCES: usize = 100_000;

/// A line of a day: its time, what it is, where, and in which calendar.
type AgendaRow = [String; 4];

impl AgendaArgs {
    /// Is only busy time asked for?
    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let window = self.parse_time_range(context)?;
        let reader = context.open_reader()?;
        let found = {
            let mut ask = |find: &SearchRequest| context.run_query("larder agenda", &reader, find);
            larder_query::read_agenda_with(
                &mut ask,
                &reader,
                &self.collections,
                &window,
                self.limit,
            )?
        };
        if found.truncated {
            note_more_occurrences(context);
        }
        super::occurrence_list::warn_of_uncertain_items(context, &reader, &found.uncertain_rows)?;
        if self.busy {
            return print_busy(context, &found, &window);
        }
        match context.format {
            OutputFormat::Json => {
                for entry in &found.entries {
                    context
                        .out
                        .print_json(&item_format::occurrence_json(entry, &window.local_zone))?;
                }
            }
            _ => print_days(context, &reader, &found, &window)?,
        }
        finish_possibly_empty(context, found.entries.is_empty(), "nothing is on")
    }

    fn parse_time_range(&self, context: &CommandContext) -> Result<TimeRange, CommandFailure> {
        if let Some(option) =
            [&self.from, &self.to].into_iter().flatten().find(|from| from.starts_with("--"))
        {
            let what = format!("there is no option {option:?}");
            return Err(CommandFailure::new(FailureKind::Usage, what)
                .with_hint("larder agenda --help lists them"));
        }
        let asker = &context.settings.user_locale;
        let now = asker.zone.to_civil(asker.now);
        let (from, to) = match &self.from {
            Some(from) => (from.as_str(), self.to.as_deref()),
            None => ("today", Some("+6d")),
        };
        let phrase = DateRange::parse_bounds(from, to, now, &asker.language)
            .map_err(|error| CommandFailure::new(FailureKind::Usage, error))?;
        Ok(asker.to_time_range(&phrase, TimeTarget::Occurrences))
    }
}

/// Says that there is more than was printed.
pub(super) fn note_more_occurrences(context: &CommandContext) {
    context.print_note("there is more than this: ask for a shorter time, or with a larger --limit");
}

/// How an answer ends that may be empty.
pub(super) fn finish_possibly_empty(
    context: &CommandContext,
    empty: bool,
    note: &str,
) -> Result<CommandStatus, CommandFailure> {
    if empty && context.format == OutputFormat::Text {
        context.print_note(note);
    }
    Ok(if empty { CommandStatus::NothingFound } else { CommandStatus::Done })
}

fn print_days(
    context: &mut CommandContext,
    reader: &Reader,
    found: &OccurrenceList,
    window: &TimeRange,
) -> Result<(), CommandFailure> {
    let width = context.out.line_width();
    let days = larder_present::group_by_day(&found.entries, window);
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

/// Days as lines: their headings, and what is on, each with the row of its item and to be indented.
pub(super) fn format_days(
    reader: &Reader,
    language: &Language,
    days: &[AgendaDay<'_>],
    width: Option<usize>,
) -> Result<Vec<(Option<i64>, String)>, CommandFailure> {
    let entries = || days.iter().flat_map(|day| &day.entries);
    let colours = calendar_styles(reader, entries().map(|on| &*on.entry.item.head.collection))?;
    let first = entries().next().map(|on| &on.entry.item.head.collection);
    let several = entries().any(|on| Some(&on.entry.item.head.collection) != first);
    let rows: Vec<AgendaRow> = entries().map(|on| entry_row(on, several)).collect();
    let width = width.map(|width| width.saturating_sub(INDENT.len()));
    let mut cells = pad_cells(&rows, [11, 40, 32, 0], width).into_iter();
    let mut lines = Vec::with_capacity(rows.len() + days.len());
    for day in days {
        lines.push((None, format!("{STRONG_STYLE}{}{STRONG_STYLE:#}", language.date(day.date))));
        for (on, [time, what, place, calendar]) in day.entries.iter().zip(&mut cells) {
            let item = &on.entry.item;
            let colour = colours.get(&*item.head.collection).copied().unwrap_or_default();
            let style = if item.is_cancelled() || item.is_done { CANCELLED_STYLE } else { colour };
            let cells = [
                (Style::new(), time.as_str()),
                (style, what.as_str()),
                (FAINT_STYLE, place.as_str()),
                (colour, calendar.as_str()),
            ];
            lines.push((Some(item.head.row), style_cells(&cells)));
        }
    }
    Ok(lines)
}

/// What stands before each line of a day.
pub(super) const INDENT: &str = "  ";

/// The colours of these calendars.
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

fn entry_row(on: &DayEntry<'_>, several: bool) -> AgendaRow {
    let item = &on.entry.item;
    let mut what = display_title(&item.summary);
    let marks = item_format::status_marks(item).into_iter().map(String::from).chain(on.part_text());
    let marks: Vec<String> = marks.collect();
    if !marks.is_empty() {
        what.push_str(&format!(" ({})", marks.join(", ")));
    }
    let place = item_format::first_location_line(&item.location);
    let place = if place.is_empty() { place } else { format!("({place})") };
    let calendar = if several { sanitize_line(&item.head.collection) } else { String::new() };
    [on.time_text(), what, place, calendar]
}

fn print_busy(
    context: &mut CommandContext,
    found: &OccurrenceList,
    window: &TimeRange,
) -> Result<CommandStatus, CommandFailure> {
    let busy = larder_query::busy_periods(&found.entries, window);
    if context.format == OutputFormat::Raw {
        let at = Instant::from_seconds_clamped(now_milliseconds() / 1000);
        let text = larder_present::format_free_busy(&busy, window, at);
        context.out.print_bytes(text.as_bytes())?;
        return Ok(CommandStatus::Done);
    }
    let mut last = None;
    for span in &busy {
        if context.format == OutputFormat::Json {
            let (from, to) = (
                local_time::format_instant(span.from, &window.local_zone),
                local_time::format_instant(span.to, &window.local_zone),
            );
            context
                .out
                .print_json(&json!({ "from": from, "to": to, "tentative": span.tentative }))?;
            continue;
        }
        let day = window.local_zone.to_civil(span.from).date();
        if last != Some(day) {
            let gap = if last.is_some() { "\n" } else { "" };
            let heading = context.settings.user_locale.language.date(day);
            context.out.print_line(format!("{gap}{STRONG_STYLE}{heading}{STRONG_STYLE:#}"))?;
            last = Some(day);
        }
        let line = format_busy_line(context, span, window, day);
        context.out.print_line(line)?;
    }
    finish_possibly_empty(context, busy.is_empty(), "all of it is free")
}

/// A line of busy time: `09:30-10:00`, with the day on which it ends where that is another.
fn format_busy_line(
    context: &CommandContext,
    span: &BusyPeriod,
    window: &TimeRange,
    day: Date,
) -> String {
    let (from, to) = (window.local_zone.to_civil(span.from), window.local_zone.to_civil(span.to));
    let ends = to.saturating_add(-1).date();
    let until = local_time::format_end_clock(to);
    let ends = match ends == day {
        true => String::new(),
        false => format!(" ({})", context.settings.user_locale.language.date(ends)),
    };
    let tentative = if span.tentative { "  tentative" } else { "" };
    format!("{INDENT}{}-{until}{ends}{tentative}", local_time::format_clock(from))
}
