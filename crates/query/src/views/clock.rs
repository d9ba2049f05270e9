//! The clock: what it changes in answers, without a change in the store.
//!
//! A question with a relative time says from when on it may say something else (`question`). Then it is read again, and where it does,
//! its views are told the difference of the two answers.

use super::hub::{Asked, State};
use super::news::{News, Rows};
use super::question::Reading;
use super::version::occurrences;
use super::view::Gone;
use crate::error::Error;
use crate::log::{Anew, Drop as Why};
use crate::matcher::Matcher;
use crate::run::{Find, find};
use larder_time::civil::Instant;
use std::collections::HashSet;
use std::sync::Arc;

/// A question that cannot be read any more is tried again after a day.
const DAY: i64 = 86_400;
/// One that cannot be answered, after a minute.
const MINUTE: i64 = 60;

impl State {
    /// Has the questions read again whose time has come.
    pub(super) fn pass_time(&mut self, now: Instant) -> Result<(), Error> {
        if now < self.now {
            // A clock that was ahead: whatever was read by it may say something else.
            let all: Vec<u32> = self.those(Asked::is_in_time).collect();
            for number in all {
                self.try_again(number, now)?;
            }
        }
        self.now = now;
        while let Some(&(at, number)) = self.boundaries.first() {
            if at > now {
                break;
            }
            self.try_again(number, now)?;
        }
        Ok(())
    }

    /// Has a question read again. One that cannot be answered is in nobody's way: its views begin anew, and meet what is wrong.
    fn try_again(&mut self, number: u32, now: Instant) -> Result<(), Error> {
        let Err(error) = self.read_again(number, now) else { return Ok(()) };
        let Some(asked) = self.asked.get_mut(number as usize).and_then(Option::as_deref_mut) else {
            return Err(error);
        };
        let later = now.plus(MINUTE);
        if let Some(at) = asked.reading.until.replace(later) {
            self.boundaries.remove(&(at, number));
        }
        self.boundaries.insert((later, number));
        self.lose(number, Anew::Expired);
        Ok(())
    }

    fn read_again(&mut self, number: u32, now: Instant) -> Result<(), Error> {
        let Some(asked) = self.of(number) else { return Ok(()) };
        let reading = match asked.question.read(now) {
            Ok(reading) => reading,
            // It could be read once; whatever it says now, nobody is told.
            Err(_) => Reading { until: Some(now.plus(DAY)), ..asked.reading.clone() },
        };
        let same = reading.query == asked.reading.query;
        let rows = match same {
            true => None,
            false => Some(self.still(|state| state.moved(number, &reading))?),
        };
        let Some(asked) = self.asked.get_mut(number as usize).and_then(Option::as_deref_mut) else {
            return Ok(());
        };
        if let Some(at) = asked.reading.until {
            self.boundaries.remove(&(at, number));
        }
        self.boundaries.extend(reading.until.map(|at| (at, number)));
        // What says the same is filed, and made ready, as it was.
        if same {
            asked.reading = reading;
            return Ok(());
        }
        self.concern.remove(number, &asked.reading.query, asked.collection);
        self.concern.add(number, &reading.query, asked.collection);
        asked.matcher = Matcher::new(&reading.query);
        asked.reading = reading;
        for view in &asked.views {
            view.turn();
        }
        self.give_up(number, Why::Stale);
        if let Some(rows) = rows.filter(|rows| !is_empty(rows)) {
            self.put(number, News::Rows(Arc::new(rows)), self.seq);
        }
        Ok(())
    }

    /// What the clock has changed in an answer.
    fn moved(&self, number: u32, to: &Reading) -> Result<Rows, Error> {
        let mut moved = Rows { seq: self.seq, by_clock: true, ..Rows::default() };
        let Some(asked) = self.of(number).filter(|asked| !asked.views.is_empty()) else {
            return Ok(moved);
        };
        let answered: HashSet<i64> = self.rows(&asked.find())?.into_iter().collect();
        let answers = self.rows(&asked.question.find(&to.query))?;
        moved.added = answers.iter().copied().filter(|row| !answered.contains(row)).collect();
        let answers: HashSet<i64> = answers.into_iter().collect();
        let mut gone: Vec<i64> = answered.difference(&answers).copied().collect();
        gone.sort_unstable();
        self.reader.items(&gone, &mut |head, _| {
            moved.removed.push(Gone::of(&head));
            true
        })?;
        if let (Some(from), Some(to)) = (&asked.reading.window, &to.window) {
            let mut both: Vec<i64> = answered.intersection(&answers).copied().collect();
            both.sort_unstable();
            self.reader.times(&both, &mut |row, times| {
                if occurrences(Some(times), from) != occurrences(Some(times), to) {
                    moved.modified.push(row);
                }
                true
            })?;
        }
        Ok(moved)
    }

    /// The rows of an answer; a collection that is not there holds nothing.
    fn rows(&self, question: &Find) -> Result<Vec<i64>, Error> {
        match find(&self.reader, question) {
            Ok(answer) => Ok(answer.rows()),
            Err(Error::Store(larder_store::Error::NoCollection { .. })) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

fn is_empty(rows: &Rows) -> bool {
    rows.added.is_empty() && rows.modified.is_empty() && rows.removed.is_empty()
}
