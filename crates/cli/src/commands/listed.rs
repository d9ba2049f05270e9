//! The list that `larder watch` keeps on a terminal: what there is to see of an answer, drawn again when something changes.
//!
//! The view says that something changed, and which items; what the list shows is asked anew, in its order, as far as the terminal has
//! room. So the list is right whatever it was before.

use super::agenda::{self, INDENT};
use super::expand;
use super::find::{contact_row, item_row, laid_out, usual_fields, usual_sort};
use super::item::{self, Column};
use super::watch::How;
use crate::context::{Context, now};
use crate::failure::Failure;
use crate::output::{CHANGED, FAINT, NEW, count, grouped, moment};
use crate::screen::{self, Screen};
use crate::table::shorten;
use larder_query::views::{Tell, Views};
use larder_query::{About, Answer, Day, Entries, Find, window_of};
use larder_store::{Family, Reader};
use larder_time::civil::Instant;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant as Timer};

/// What is new is marked for so long.
const MARKED: Duration = Duration::from_secs(5);
/// So often it is looked whether it is another day, or the terminal another size.
const PATIENCE: Duration = Duration::from_secs(1);
/// Who did not look for so long was stopped meanwhile, and something else may stand on the terminal.
const STOPPED: Duration = Duration::from_secs(3);
/// Occurrences that are found for a list; there is no terminal that shows more.
const MOST: usize = 1000;

/// A line of the list, with the row of the item that it is about.
type Line = (Option<i64>, String);

/// What is shown of an answer.
struct Shown {
    lines: Vec<Line>,
    /// How many entries are not among them; `None`: it is not known.
    left: Option<usize>,
    /// How many items, and what they are.
    number: String,
}

/// A list on a terminal.
pub(super) struct List {
    how: How,
    screen: Screen,
    /// What is marked, and how.
    marks: HashMap<i64, char>,
    marked: Option<Timer>,
    /// The first answer is whole.
    is_whole: bool,
    since: i64,
    changed: Option<i64>,
    is_stale: bool,
    /// What is marked has been drawn: it gives way to what changes next.
    is_drawn: bool,
    day: i64,
    /// The size of the terminal for which it was drawn, and when that was looked at last.
    size: (usize, usize),
    looked: Timer,
}

impl List {
    pub(super) fn new(how: How) -> List {
        List {
            how,
            screen: Screen::default(),
            marks: HashMap::new(),
            marked: None,
            is_whole: false,
            since: now(),
            changed: None,
            is_stale: false,
            is_drawn: false,
            day: 0,
            size: (0, 0),
            looked: Timer::now(),
        }
    }

    /// Notes what is told.
    pub(super) fn tell(&mut self, tell: &Tell) {
        if std::mem::take(&mut self.is_drawn) {
            self.marks.clear();
        }
        let mut mark = |rows: &mut dyn Iterator<Item = i64>, mark| {
            self.marks.extend(rows.map(|row| (row, mark)));
        };
        match tell {
            Tell::Added(told) if self.is_whole => {
                mark(&mut told.iter().map(|told| told.row), '+');
            }
            Tell::Modified(told) if self.is_whole => {
                mark(&mut told.iter().map(|told| told.row), '~');
            }
            Tell::Fresh => self.is_whole = false,
            Tell::Complete(_) => {
                self.changed = self.is_whole.then(now).or(self.changed);
                (self.is_whole, self.is_stale) = (true, true);
                self.marked = Some(Timer::now());
            }
            _ => {}
        }
    }

    /// For how long nothing has to be drawn unless something changes.
    pub(super) fn patience(&self) -> Duration {
        let marked = self.marked.filter(|_| !self.marks.is_empty());
        marked.map_or(PATIENCE, |since| MARKED.saturating_sub(since.elapsed()).min(PATIENCE))
    }

    /// Draws what there is to see now, if it is not what stands there.
    pub(super) fn draw(&mut self, context: &mut Context, views: &Views) -> Result<(), Failure> {
        if !self.is_whole {
            return Ok(());
        }
        let is_old = self.marked.is_some_and(|since| since.elapsed() >= MARKED);
        if is_old && !self.marks.is_empty() {
            self.marks.clear();
            self.is_stale = true;
        }
        let asker = &mut context.settings.asker;
        // By the minute, as the view reads it.
        asker.now = Instant::clamped((now() / 60_000) * 60);
        let day = asker.local.civil(asker.now).day();
        let size = context.out.size();
        self.look_at_terminal(context, size)?;
        if !self.is_stale && day == self.day {
            return Ok(());
        }
        (self.is_stale, self.day) = (false, day);
        let (lines, columns) = size;
        let find = self.how.find(&context.settings)?;
        // The last line says how many there are.
        let room = lines.saturating_sub(1).max(2);
        let shown = views.read(|reader| self.shown(context, reader, find, room, columns))??;
        let lines = self.marked_up(shown);
        let mut lines: Vec<String> = lines.iter().map(|line| context.out.shown(line)).collect();
        if let Some(status) = lines.last_mut() {
            *status = shorten(status, columns.saturating_sub(1));
        }
        if let Some(drawn) = self.screen.draw(lines, columns) {
            context.out.bytes(drawn.as_bytes())?;
            context.out.flush()?;
        }
        self.is_drawn = true;
        Ok(())
    }

    /// What stands on a terminal that has another size now nobody knows, so it is cleared; nor what somebody else has printed while this
    /// was stopped, so the list stands below that.
    fn look_at_terminal(
        &mut self,
        context: &mut Context,
        size: (usize, usize),
    ) -> Result<(), Failure> {
        let was_stopped = std::mem::replace(&mut self.looked, Timer::now()).elapsed() > STOPPED;
        let is_other = self.size != size && self.size != (0, 0);
        self.size = size;
        if is_other {
            context.out.bytes(screen::CLEAR.as_bytes())?;
        }
        if is_other || was_stopped {
            (self.screen, self.is_stale) = (Screen::default(), true);
        }
        Ok(())
    }

    /// Leaves the list where it stands.
    pub(super) fn end(&self, context: &mut Context) -> Result<(), Failure> {
        context.out.bytes(b"\n")?;
        Ok(context.out.flush()?)
    }

    /// The lines as they are drawn: with their marks, and what there is to say of them last.
    fn marked_up(&self, shown: Shown) -> Vec<String> {
        let Shown { lines, left, number } = shown;
        let mut drawn: Vec<String> = lines.iter().map(|line| self.mark(line)).collect();
        match left {
            Some(0) => {}
            Some(left) => {
                let left = grouped(left as u64);
                drawn.push(format!("{INDENT}{FAINT}… and {left} more{FAINT:#}"));
            }
            None => drawn.push(format!("{INDENT}{FAINT}… and more{FAINT:#}")),
        }
        let clock = |at| moment(at).split(' ').nth(1).unwrap_or_default().to_string();
        let changed = match self.changed {
            Some(at) => format!("changed {}", clock(at)),
            None => format!("unchanged since {}", clock(self.since)),
        };
        drawn.push(format!("{number} · {changed} · Ctrl-C ends"));
        drawn
    }

    fn mark(&self, (row, line): &Line) -> String {
        let mark = row.and_then(|row| self.marks.get(&row));
        match (row, mark) {
            (None, _) => line.clone(),
            (_, None) => format!("{INDENT}{line}"),
            (_, Some(mark)) => {
                let style = if *mark == '+' { NEW } else { CHANGED }.bold();
                format!("{style}{mark}{style:#} {line}")
            }
        }
    }

    /// Asks what is to be seen, as far as there is room.
    fn shown(
        &self,
        context: &Context,
        reader: &Reader,
        mut find: Find,
        room: usize,
        columns: usize,
    ) -> Result<Shown, Failure> {
        if let Some(name) = &find.collection
            && reader.collection_rows(Some(name))?.is_empty()
        {
            // It may come back.
            let number = format!("there is no collection {name:?}");
            return Ok(Shown { lines: Vec::new(), left: Some(0), number });
        }
        let window = window_of(&find.query).filter(|_| self.how.expand).cloned();
        if window.is_none() && find.sort.is_none() {
            find.sort = Some(usual_sort(reader, &find)?);
        }
        let answer = larder_query::find(reader, &find)?;
        let noun = match (self.how.asked.kind, larder_query::about(reader, &find)?) {
            (Some(kind), _) => kind.name(),
            (None, About::Contacts) => "contact",
            (None, _) => "item",
        };
        if let Some(window) = window {
            let found = larder_query::occurrences(reader, &answer, &window, MOST)?;
            let mut days = larder_query::days(&found.entries, &window);
            let left = cut(&mut days, if found.cut { room - 1 } else { room });
            let language = &context.settings.asker.language;
            let lines = agenda::laid_out(reader, language, &days, Some(columns))?;
            return Ok(match found.cut {
                true => Shown { lines, left: None, number: count(answer.len() as u64, noun) },
                false => {
                    let number = number_of(&found).unwrap_or_else(|items| count(items, noun));
                    Shown { lines, left: Some(left), number }
                }
            });
        }
        let room = if answer.len() > room { room - 1 } else { room };
        let width = columns.saturating_sub(INDENT.len());
        let lines = match &self.how.columns {
            Some(columns) => fields(context, reader, &answer, columns, room, width)?,
            None => rows(context, reader, &answer, room, width)?,
        };
        let left = Some(answer.len().saturating_sub(lines.len()));
        Ok(Shown { lines, left, number: count(answer.len() as u64, noun) })
    }
}

/// Leaves so much of these days that they and a line that says there is more have room. Returns how many entries went.
fn cut(days: &mut Vec<Day<'_>>, room: usize) -> usize {
    let sizes: Vec<usize> = days.iter().map(|day| day.entries.len()).collect();
    let shown = shown_of(&sizes, room);
    for (day, shown) in days.iter_mut().zip(&shown) {
        day.entries.truncate(*shown);
    }
    days.retain(|day| !day.entries.is_empty());
    sizes.iter().sum::<usize>() - shown.iter().sum::<usize>()
}

/// How many entries are shown of days that have so many, each with a heading: all, or as many as leave room for a line.
fn shown_of(sizes: &[usize], room: usize) -> Vec<usize> {
    if sizes.iter().sum::<usize>() + sizes.len() <= room {
        return sizes.to_vec();
    }
    let mut left = room.saturating_sub(1);
    let mut shown_of = |size: &usize| {
        let shown = (*size).min(left.saturating_sub(1));
        // Without an entry there is no heading, and nothing after it.
        left = if shown == 0 { 0 } else { left - 1 - shown };
        shown
    };
    sizes.iter().map(&mut shown_of).collect()
}

/// How many items these are occurrences of, where they are of one kind; else their number.
fn number_of(found: &Entries) -> Result<String, u64> {
    let heads = || found.entries.iter().map(|entry| &entry.item.head);
    let number = heads().map(|head| head.row).collect::<HashSet<i64>>().len() as u64;
    let first = heads().next().map(|head| head.kind).ok_or(number)?;
    match heads().all(|head| head.kind == first) {
        true => Ok(count(number, first.name())),
        false => Err(number),
    }
}

/// The fields that were asked for, of the first items.
fn fields(
    context: &Context,
    reader: &Reader,
    answer: &Answer,
    columns: &[Column],
    room: usize,
    width: usize,
) -> Result<Vec<Line>, Failure> {
    let (fields, local) = (Column::fields(columns), &context.settings.asker.local);
    let (mut lines, mut failed) = (Vec::new(), None);
    answer.fields(reader, &fields, &mut |head, of| {
        let line = || -> Result<Line, Failure> {
            let letters = reader.letters(head.handle)?;
            let cells = item::column_cells(reader, local, head, of, columns)?;
            let handle = format!("{:.letters$}", head.handle);
            let cells = shorten(&cells.join("  "), width.saturating_sub(letters + 2));
            Ok((Some(head.row), format!("{FAINT}{handle}{FAINT:#}  {cells}")))
        };
        match line() {
            Ok(line) => lines.push(line),
            Err(failure) => failed = Some(failure),
        }
        failed.is_none() && lines.len() < room
    })?;
    failed.map_or(Ok(lines), Err)
}

/// What `larder find` shows of the first items.
fn rows(
    context: &Context,
    reader: &Reader,
    answer: &Answer,
    room: usize,
    width: usize,
) -> Result<Vec<Line>, Failure> {
    let fields = usual_fields();
    let (mut heads, mut contacts, mut failed) = (Vec::new(), Vec::new(), None);
    answer.fields(reader, &fields, &mut |head, of| {
        let is_item = head.kind.family() == Family::Calendar;
        if !is_item {
            match contact_row(reader, head, of, &fields) {
                Ok(row) => contacts.push(row),
                Err(failure) => failed = Some(failure),
            }
        }
        heads.push((head.row, is_item));
        failed.is_none() && heads.len() < room
    })?;
    if let Some(failure) = failed {
        return Err(failure);
    }
    let items: Vec<i64> =
        heads.iter().filter(|(_, is_item)| *is_item).map(|(row, _)| *row).collect();
    let briefs = larder_query::briefs(reader, &items, &context.settings.asker.local)?;
    // What was removed since is drawn without next time.
    heads.retain(|(row, is_item)| !is_item || briefs.contains_key(row));
    let of_items =
        items.iter().filter_map(|row| briefs.get(row)).map(|brief| item_row(reader, brief));
    let of_items = of_items.collect::<Result<Vec<_>, Failure>>()?;
    let mut contacts = laid_out(&contacts, Some(width)).into_iter();
    let mut items = expand::laid_out(&of_items, Some(width)).into_iter();
    let line = |(row, is_item): (i64, bool)| {
        let line = if is_item { items.next() } else { contacts.next() };
        (Some(row), line.unwrap_or_default())
    };
    Ok(heads.into_iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::shown_of;

    #[test]
    fn as_many_as_there_is_room_for() {
        let check = |sizes: &[usize], room: usize, expect: &[usize]| {
            assert_eq!(shown_of(sizes, room), expect, "{sizes:?} in {room}");
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
