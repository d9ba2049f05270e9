use super::item;
use crate::args::Format;
use crate::context::{Context, now};
use crate::failure::{Code, Failure, Kind};
use crate::ids::title;
use crate::output::{FAINT, STRONG, STRUCK, coloured, plain};
use crate::table::{padded, styled};
use anstyle::Style;
use larder_date_phrase::{self as phrase, Language};
use larder_query::{Busy, Day, Entries, Find, OnDay, when};
use larder_store::{Reader, What, Window};
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
pub(crate) struct Agenda {
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
    #[arg(long, short = 'n', value_name = "N", default_value_t = MOST)]
    limit: usize,
}

/// So many occurrences are shown, unless more are asked for: of what happens each second there is no end.
pub(super) const MOST: usize = 100_000;

/// A line of a day: its time, what it is, where, and in which calendar.
type Row = [String; 4];

impl Agenda {
    /// Is only busy time asked for?
    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let window = self.window(context)?;
        let reader = context.reader()?;
        let found = {
            let mut ask = |find: &Find| context.ask("larder agenda", &reader, find);
            larder_query::agenda_by(&mut ask, &reader, &self.collections, &window, self.limit)?
        };
        if found.cut {
            more(context);
        }
        super::expand::unsure(context, &reader, &found.unsure)?;
        if self.busy {
            return busy(context, &found, &window);
        }
        match context.format {
            Format::Json => {
                for entry in &found.entries {
                    context.out.json(&item::occurrence_json(entry, &window.local))?;
                }
            }
            _ => days(context, &reader, &found, &window)?,
        }
        nothing(context, found.entries.is_empty(), "nothing is on")
    }

    fn window(&self, context: &Context) -> Result<Window, Failure> {
        if let Some(option) =
            [&self.from, &self.to].into_iter().flatten().find(|from| from.starts_with("--"))
        {
            let what = format!("there is no option {option:?}");
            return Err(Failure::new(Kind::Usage, what).hint("larder agenda --help lists them"));
        }
        let asker = &context.settings.asker;
        let now = asker.local.civil(asker.now);
        let (from, to) = match &self.from {
            Some(from) => (from.as_str(), self.to.as_deref()),
            None => ("today", Some("+6d")),
        };
        let phrase = phrase::range(from, to, now, &asker.language)
            .map_err(|error| Failure::new(Kind::Usage, error))?;
        Ok(asker.window(&phrase, What::Occurrences))
    }
}

/// Says that there is more than was printed.
pub(super) fn more(context: &Context) {
    context.note("there is more than this: ask for a shorter time, or with a larger --limit");
}

/// How an answer ends that may be empty.
pub(super) fn nothing(context: &Context, empty: bool, note: &str) -> Result<Code, Failure> {
    if empty && context.format == Format::Text {
        context.note(note);
    }
    Ok(if empty { Code::NothingFound } else { Code::Done })
}

fn days(
    context: &mut Context,
    reader: &Reader,
    found: &Entries,
    window: &Window,
) -> Result<(), Failure> {
    let width = context.out.width();
    let days = larder_query::days(&found.entries, window);
    let lines = laid_out(reader, &context.settings.asker.language, &days, width)?;
    for (place, (row, line)) in lines.iter().enumerate() {
        match row {
            None => {
                let gap = if place > 0 { "\n" } else { "" };
                context.out.line(format!("{gap}{line}"))?;
            }
            Some(_) => context.out.line(format!("{INDENT}{line}"))?,
        }
    }
    Ok(())
}

/// Days as lines: their headings, and what is on, each with the row of its item and to be indented.
pub(super) fn laid_out(
    reader: &Reader,
    language: &Language,
    days: &[Day<'_>],
    width: Option<usize>,
) -> Result<Vec<(Option<i64>, String)>, Failure> {
    let entries = || days.iter().flat_map(|day| &day.entries);
    let colours = colours(reader, entries().map(|on| &*on.entry.item.head.collection))?;
    let first = entries().next().map(|on| &on.entry.item.head.collection);
    let several = entries().any(|on| Some(&on.entry.item.head.collection) != first);
    let rows: Vec<Row> = entries().map(|on| row(on, several)).collect();
    let width = width.map(|width| width.saturating_sub(INDENT.len()));
    let mut cells = padded(&rows, [11, 40, 32, 0], width).into_iter();
    let mut lines = Vec::with_capacity(rows.len() + days.len());
    for day in days {
        lines.push((None, format!("{STRONG}{}{STRONG:#}", language.date(day.date))));
        for (on, [time, what, place, calendar]) in day.entries.iter().zip(&mut cells) {
            let item = &on.entry.item;
            let colour = colours.get(&*item.head.collection).copied().unwrap_or_default();
            let style = if item.is_cancelled() || item.done { STRUCK } else { colour };
            let cells = [
                (Style::new(), time.as_str()),
                (style, what.as_str()),
                (FAINT, place.as_str()),
                (colour, calendar.as_str()),
            ];
            lines.push((Some(item.head.row), styled(&cells)));
        }
    }
    Ok(lines)
}

/// What stands before each line of a day.
pub(super) const INDENT: &str = "  ";

/// The colours of these calendars.
fn colours<'e>(
    reader: &Reader,
    names: impl Iterator<Item = &'e str>,
) -> Result<BTreeMap<&'e str, Style>, Failure> {
    let mut colours = BTreeMap::new();
    for name in names {
        if let Entry::Vacant(vacant) = colours.entry(name) {
            vacant.insert(coloured(larder_query::colour(reader, name)?));
        }
    }
    Ok(colours)
}

fn row(on: &OnDay<'_>, several: bool) -> Row {
    let item = &on.entry.item;
    let mut what = title(&item.summary);
    let marks = item::marks(item).into_iter().map(String::from).chain(on.part());
    let marks: Vec<String> = marks.collect();
    if !marks.is_empty() {
        what.push_str(&format!(" ({})", marks.join(", ")));
    }
    let place = item::place(&item.location);
    let place = if place.is_empty() { place } else { format!("({place})") };
    let calendar = if several { plain(&item.head.collection) } else { String::new() };
    [on.time(), what, place, calendar]
}

fn busy(context: &mut Context, found: &Entries, window: &Window) -> Result<Code, Failure> {
    let busy = larder_query::busy(&found.entries, window);
    if context.format == Format::Raw {
        let at = Instant::clamped(now() / 1000);
        let text = larder_query::free_busy(&busy, window, at);
        context.out.bytes(text.as_bytes())?;
        return Ok(Code::Done);
    }
    let mut last = None;
    for span in &busy {
        if context.format == Format::Json {
            let (from, to) =
                (when::moment(span.from, &window.local), when::moment(span.to, &window.local));
            context.out.json(&json!({ "from": from, "to": to, "tentative": span.tentative }))?;
            continue;
        }
        let day = window.local.civil(span.from).date();
        if last != Some(day) {
            let gap = if last.is_some() { "\n" } else { "" };
            let heading = context.settings.asker.language.date(day);
            context.out.line(format!("{gap}{STRONG}{heading}{STRONG:#}"))?;
            last = Some(day);
        }
        let line = taken(context, span, window, day);
        context.out.line(line)?;
    }
    nothing(context, busy.is_empty(), "all of it is free")
}

/// A line of busy time: `09:30-10:00`, with the day on which it ends where that is another.
fn taken(context: &Context, span: &Busy, window: &Window, day: Date) -> String {
    let (from, to) = (window.local.civil(span.from), window.local.civil(span.to));
    let ends = to.plus(-1).date();
    let until = when::end_clock(to);
    let ends = match ends == day {
        true => String::new(),
        false => format!(" ({})", context.settings.asker.language.date(ends)),
    };
    let tentative = if span.tentative { "  tentative" } else { "" };
    format!("{INDENT}{}-{until}{ends}{tentative}", when::clock(from))
}
