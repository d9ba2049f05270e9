//! The list that `larder watch` shows on a terminal, redrawn when something changes.
//!
//! The view reports which items changed. After each change the list runs the query again, sorted
//! and limited to the height of the terminal, so that it is always correct.

use super::WatchOptions;
use crate::commands::agenda::{self, INDENT};
use crate::commands::find::field_list::{self, ListFields};
use crate::commands::find::occurrence_list;
use crate::commands::find::{calendar_item_row, default_sort};
use crate::commands::show::item_format::{self, OutputColumn};
use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::machine_time::now_milliseconds;
use crate::output::{
    ADDED_STYLE, CHANGED_STYLE, FAINT_STYLE, format_count, format_grouped, format_local_time,
};
use crate::screen::{self, TerminalScreen};
use crate::table::shorten_to_width;
use larder_present::AgendaDay;
use larder_query::views::{ViewEvent, Views};
use larder_query::{OccurrenceList, ResultSet, SearchRequest, required_time_range};
use larder_store::{ItemRow, Reader};
use larder_time::civil::Instant;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant as Timer};

/// How long changes are marked.
const MARK_DURATION: Duration = Duration::from_secs(5);
/// The interval between checks of the date and of the size of the terminal.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// After a longer gap the process was suspended, and other text may be on the terminal.
const STOP_DETECTION_INTERVAL: Duration = Duration::from_secs(3);
/// The maximum number of occurrences; no terminal shows more.
const MAX_OCCURRENCES: usize = 1000;

/// A line of the list, with the row of its item.
type ScreenLine = (Option<ItemRow>, String);

/// The visible part of an answer.
struct ScreenContents {
    lines: Vec<ScreenLine>,
    /// The number of hidden entries, or `None` if it is unknown.
    hidden_count: Option<usize>,
    /// The number of items and their kind.
    count_text: String,
}

/// A list on a terminal.
pub(super) struct WatchScreen {
    pub(super) watch_query: WatchOptions,
    screen: TerminalScreen,
    /// The marks, by row.
    marks: HashMap<ItemRow, char>,
    marked_at: Option<Timer>,
    /// Whether the first answer is complete.
    is_whole: bool,
    started_at: i64,
    changed_at: Option<i64>,
    is_stale: bool,
    /// Whether the marks have been drawn, so that the next change replaces them.
    is_drawn: bool,
    drawn_day: i64,
    /// The size of the terminal when it was last checked.
    size: (usize, usize),
    last_checked_at: Timer,
}

impl WatchScreen {
    pub(super) fn new(watch_query: WatchOptions) -> WatchScreen {
        WatchScreen {
            watch_query,
            screen: TerminalScreen::default(),
            marks: HashMap::new(),
            marked_at: None,
            is_whole: false,
            started_at: now_milliseconds(),
            changed_at: None,
            is_stale: false,
            is_drawn: false,
            drawn_day: 0,
            size: (0, 0),
            last_checked_at: Timer::now(),
        }
    }

    /// Applies an event of the view.
    pub(super) fn apply_event(&mut self, event: &ViewEvent) {
        if std::mem::take(&mut self.is_drawn) {
            self.marks.clear();
        }
        let mut mark = |rows: &mut dyn Iterator<Item = ItemRow>, mark| {
            self.marks.extend(rows.map(|row| (row, mark)));
        };
        match event {
            ViewEvent::Added(items) if self.is_whole => {
                mark(&mut items.iter().map(|item| item.row), '+');
            }
            ViewEvent::Modified(items) if self.is_whole => {
                mark(&mut items.iter().map(|item| item.row), '~');
            }
            ViewEvent::Reset => self.is_whole = false,
            ViewEvent::Complete(_) => {
                self.changed_at = self.is_whole.then(now_milliseconds).or(self.changed_at);
                (self.is_whole, self.is_stale) = (true, true);
                self.marked_at = Some(Timer::now());
            }
            _ => {}
        }
    }

    /// Returns the time until the next redraw unless something changes.
    pub(super) fn poll_timeout(&self) -> Duration {
        let marked = self.marked_at.filter(|_| !self.marks.is_empty());
        marked.map_or(POLL_INTERVAL, |since| {
            MARK_DURATION.saturating_sub(since.elapsed()).min(POLL_INTERVAL)
        })
    }

    /// Redraws the list if it has changed.
    pub(super) fn draw(
        &mut self,
        context: &mut CommandContext,
        views: &Views,
    ) -> Result<(), CommandFailure> {
        if !self.is_whole {
            return Ok(());
        }
        let is_old = self.marked_at.is_some_and(|since| since.elapsed() >= MARK_DURATION);
        if is_old && !self.marks.is_empty() {
            self.marks.clear();
            self.is_stale = true;
        }
        let user_locale = &mut context.settings.user_locale;
        // By the minute, as the view reads it.
        user_locale.now = Instant::from_seconds_clamped((now_milliseconds() / 60_000) * 60);
        let day = user_locale.zone.to_civil(user_locale.now).day_number();
        let size = context.out.terminal_size_or_default();
        self.check_terminal(context, size)?;
        if !self.is_stale && day == self.drawn_day {
            return Ok(());
        }
        (self.is_stale, self.drawn_day) = (false, day);
        let (lines, columns) = size;
        let request = self.watch_query.to_search_request(&context.settings)?;
        // The last line has the number of items.
        let room = lines.saturating_sub(1).max(2);
        let shown = views
            .with_reader(|reader| self.query_contents(context, reader, request, room, columns))??;
        let lines = self.render_lines(shown);
        let mut lines: Vec<String> = lines.iter().map(|line| context.out.render(line)).collect();
        if let Some(status) = lines.last_mut() {
            *status = shorten_to_width(status, columns.saturating_sub(1));
        }
        if let Some(drawn) = self.screen.redraw(lines, columns) {
            context.out.print_bytes(drawn.as_bytes())?;
            context.out.flush()?;
        }
        self.is_drawn = true;
        Ok(())
    }

    /// Clears a terminal whose size has changed, as its contents are unknown. After a suspension,
    /// draws the list below whatever another program has printed.
    fn check_terminal(
        &mut self,
        context: &mut CommandContext,
        size: (usize, usize),
    ) -> Result<(), CommandFailure> {
        let was_stopped = std::mem::replace(&mut self.last_checked_at, Timer::now()).elapsed()
            > STOP_DETECTION_INTERVAL;
        let is_other = self.size != size && self.size != (0, 0);
        self.size = size;
        if is_other {
            context.out.print_bytes(screen::CLEAR_SCREEN.as_bytes())?;
        }
        if is_other || was_stopped {
            (self.screen, self.is_stale) = (TerminalScreen::default(), true);
        }
        Ok(())
    }

    /// Moves below the list and leaves it in place.
    pub(super) fn finish(&self, context: &mut CommandContext) -> Result<(), CommandFailure> {
        context.out.print_bytes(b"\n")?;
        Ok(context.out.flush()?)
    }

    /// Returns the lines with their marks, and the status line.
    fn render_lines(&self, shown: ScreenContents) -> Vec<String> {
        let ScreenContents { lines, hidden_count: left, count_text: number } = shown;
        let mut drawn: Vec<String> = lines.iter().map(|line| self.mark_line(line)).collect();
        match left {
            Some(0) => {}
            Some(left) => {
                let left = format_grouped(left as u64);
                drawn.push(format!("{INDENT}{FAINT_STYLE}… and {left} more{FAINT_STYLE:#}"));
            }
            None => drawn.push(format!("{INDENT}{FAINT_STYLE}… and more{FAINT_STYLE:#}")),
        }
        let clock = |at| format_local_time(at).split(' ').nth(1).unwrap_or_default().to_string();
        let changed = match self.changed_at {
            Some(at) => format!("changed {}", clock(at)),
            None => format!("unchanged since {}", clock(self.started_at)),
        };
        drawn.push(format!("{number} · {changed} · Ctrl-C ends"));
        drawn
    }

    fn mark_line(&self, (row, line): &ScreenLine) -> String {
        let mark = row.and_then(|row| self.marks.get(&row));
        match (row, mark) {
            (None, _) => line.clone(),
            (_, None) => format!("{INDENT}{line}"),
            (_, Some(mark)) => {
                let style = if *mark == '+' { ADDED_STYLE } else { CHANGED_STYLE }.bold();
                format!("{style}{mark}{style:#} {line}")
            }
        }
    }

    /// Runs the query, as far as the terminal has room.
    fn query_contents(
        &self,
        context: &CommandContext,
        reader: &Reader,
        mut request: SearchRequest,
        room: usize,
        columns: usize,
    ) -> Result<ScreenContents, CommandFailure> {
        if let Some(name) = &request.collection
            && reader.collections().list_rows(Some(name))?.is_empty()
        {
            // It may be created or restored later.
            let number = format!("no collection {name:?}");
            return Ok(ScreenContents {
                lines: Vec::new(),
                hidden_count: Some(0),
                count_text: number,
            });
        }
        let time_range =
            required_time_range(&request.query).filter(|_| self.watch_query.expand).cloned();
        if time_range.is_none() && request.sort.is_none() {
            request.sort = default_sort(reader, &request)?;
        }
        let answer = larder_query::find(reader, &request)?;
        let noun = match self.watch_query.query_args.kind {
            Some(kind) => kind.name(),
            None => larder_query::resolve_domain(reader, &request)?.item_noun(),
        };
        if let Some(time_range) = time_range {
            let found =
                larder_query::list_occurrences(reader, &answer, &time_range, MAX_OCCURRENCES)?;
            let mut days = larder_present::group_by_day(&found.entries, &time_range);
            let left = truncate_days(&mut days, if found.truncated { room - 1 } else { room });
            let language = &context.settings.user_locale.language;
            let lines = agenda::format_days(reader, language, &days, Some(columns))?;
            return Ok(match found.truncated {
                true => ScreenContents {
                    lines,
                    hidden_count: None,
                    count_text: format_count(answer.len() as u64, noun),
                },
                false => {
                    let number =
                        count_items(&found).unwrap_or_else(|items| format_count(items, noun));
                    ScreenContents { lines, hidden_count: Some(left), count_text: number }
                }
            });
        }
        let room = if answer.len() > room { room - 1 } else { room };
        let width = columns.saturating_sub(INDENT.len());
        let lines = match &self.watch_query.columns {
            Some(columns) => column_lines(context, reader, &answer, columns, room, width)?,
            None => default_lines(context, reader, &answer, room, width)?,
        };
        let left = Some(answer.len().saturating_sub(lines.len()));
        Ok(ScreenContents {
            lines,
            hidden_count: left,
            count_text: format_count(answer.len() as u64, noun),
        })
    }
}

/// Truncates days so that they and a line for the rest fit. Returns the number of entries removed.
fn truncate_days(days: &mut Vec<AgendaDay<'_>>, room: usize) -> usize {
    let sizes: Vec<usize> = days.iter().map(|day| day.entries.len()).collect();
    let shown = visible_counts(&sizes, room);
    for (day, shown) in days.iter_mut().zip(&shown) {
        day.entries.truncate(*shown);
    }
    days.retain(|day| !day.entries.is_empty());
    sizes.iter().sum::<usize>() - shown.iter().sum::<usize>()
}

/// Returns how many entries of each day are visible, with a heading for each day: all, or as many
/// as leave room for one more line.
fn visible_counts(sizes: &[usize], room: usize) -> Vec<usize> {
    if sizes.iter().sum::<usize>() + sizes.len() <= room {
        return sizes.to_vec();
    }
    let mut left = room.saturating_sub(1);
    let mut shown_of = |size: &usize| {
        let shown = (*size).min(left.saturating_sub(1));
        // A day without a visible entry has no heading, and no day after it is visible.
        left = if shown == 0 { 0 } else { left - 1 - shown };
        shown
    };
    sizes.iter().map(&mut shown_of).collect()
}

/// Returns the number of items with their kind, or the bare number if the kinds differ.
fn count_items(found: &OccurrenceList) -> Result<String, u64> {
    let metas = || found.entries.iter().map(|entry| &entry.item.meta);
    let number = metas().map(|meta| meta.row).collect::<HashSet<ItemRow>>().len() as u64;
    let first = metas().next().map(|meta| meta.kind).ok_or(number)?;
    match metas().all(|meta| meta.kind == first) {
        true => Ok(format_count(number, first.name())),
        false => Err(number),
    }
}

/// Returns the lines of the first items with the fields of `--fields`.
fn column_lines(
    context: &CommandContext,
    reader: &Reader,
    answer: &ResultSet,
    columns: &[OutputColumn],
    room: usize,
    width: usize,
) -> Result<Vec<ScreenLine>, CommandFailure> {
    let (fields, local) =
        (OutputColumn::fields_of_columns(columns), &context.settings.user_locale.zone);
    let (mut lines, mut failed) = (Vec::new(), None);
    answer.for_each_projected(reader, &fields, &mut |meta, item| {
        let line = || -> Result<ScreenLine, CommandFailure> {
            let letters = reader.items().unique_prefix_len(meta.handle)?;
            let cells = item_format::column_cells(reader, local, meta, item, columns)?;
            let handle = format!("{:.letters$}", meta.handle);
            let cells = shorten_to_width(&cells.join("  "), width.saturating_sub(letters + 2));
            Ok((Some(meta.row), format!("{FAINT_STYLE}{handle}{FAINT_STYLE:#}  {cells}")))
        };
        match line() {
            Ok(line) => lines.push(line),
            Err(failure) => failed = Some(failure),
        }
        failed.is_none() && lines.len() < room
    })?;
    failed.map_or(Ok(lines), Err)
}

/// Returns the lines of the first items as `larder find` prints them.
fn default_lines(
    context: &CommandContext,
    reader: &Reader,
    answer: &ResultSet,
    room: usize,
    width: usize,
) -> Result<Vec<ScreenLine>, CommandFailure> {
    let list_fields = ListFields::new();
    let (mut metas, mut field_rows, mut failed) = (Vec::new(), Vec::new(), None);
    answer.for_each_projected(reader, list_fields.all(), &mut |meta, item| {
        let fields = list_fields.for_kind(meta.kind);
        if let Some(fields) = fields {
            match field_list::list_row(reader, meta, item, fields) {
                Ok(row) => field_rows.push(row),
                Err(failure) => failed = Some(failure),
            }
        }
        metas.push((meta.row, fields.is_none()));
        failed.is_none() && metas.len() < room
    })?;
    if let Some(failure) = failed {
        return Err(failure);
    }
    let items: Vec<ItemRow> =
        metas.iter().filter(|(_, is_item)| *is_item).map(|(row, _)| *row).collect();
    let summaries =
        larder_query::read_item_summaries(reader, &items, &context.settings.user_locale.zone)?;
    // Items removed in the meantime are left out.
    metas.retain(|(row, is_item)| !is_item || summaries.contains_key(row));
    let of_items = items
        .iter()
        .filter_map(|row| summaries.get(row))
        .map(|summary| calendar_item_row(reader, summary));
    let of_items = of_items.collect::<Result<Vec<_>, CommandFailure>>()?;
    let mut field_rows = field_list::format_rows(&field_rows, Some(width)).into_iter();
    let mut items = occurrence_list::format_rows(&of_items, Some(width)).into_iter();
    let line = |(row, is_item): (ItemRow, bool)| {
        let line = if is_item { items.next() } else { field_rows.next() };
        (Some(row), line.unwrap_or_default())
    };
    Ok(metas.into_iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::visible_counts;

    #[test]
    fn days_are_cut_to_the_room() {
        let check = |sizes: &[usize], room: usize, expect: &[usize]| {
            assert_eq!(visible_counts(sizes, room), expect, "{sizes:?} in {room}");
        };
        check(&[], 5, &[]);
        check(&[2, 1], 5, &[2, 1]);
        check(&[2, 1], 4, &[2, 0]);
        check(&[2, 1], 3, &[1, 0]);
        check(&[2, 1], 2, &[0, 0]);
        check(&[1, 5, 1], 7, &[1, 3, 0]);
        check(&[3], 0, &[0]);
    }
}
