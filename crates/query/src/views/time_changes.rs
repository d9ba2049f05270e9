//! The clock: what it changes in answers, without a change in the store.
//!
//! A question with a relative time says from when on it may say something else (`question`). Then
//! it is read again, and where it does, its views are told the difference of the two answers.

use super::item_version::list_range_occurrences;
use super::pending_changes::{PendingChanges, PendingRows};
use super::state::{RegisteredQuery, ViewsState};
use super::view::RemovedItem;
use super::view_query::ResolvedQuery;
use crate::error::Error;
use crate::execution::{SearchRequest, find};
use crate::matcher::Matcher;
use crate::query_log::{EvictionReason as Why, ResetReason};
use larder_time::civil::Instant;
use std::collections::HashSet;
use std::sync::Arc;

/// A question that cannot be read any more is tried again after a day.
const DAY_SECONDS: i64 = 86_400;
/// One that cannot be answered, after a minute.
const MINUTE_SECONDS: i64 = 60;

impl ViewsState {
    /// Has the questions read again whose time has come.
    pub(super) fn advance_clock(&mut self, now: Instant) -> Result<(), Error> {
        if now < self.now {
            // A clock that was ahead: whatever was read by it may say something else.
            let all: Vec<u32> = self.queries_where(RegisteredQuery::is_time_dependent).collect();
            for number in all {
                self.reevaluate_or_reset(number, now)?;
            }
        }
        self.now = now;
        while let Some(&(at, number)) = self.boundaries.first() {
            if at > now {
                break;
            }
            self.reevaluate_or_reset(number, now)?;
        }
        Ok(())
    }

    /// Has a question read again. One that cannot be answered is in nobody's way: its views begin
    /// anew, and meet what is wrong.
    fn reevaluate_or_reset(&mut self, number: u32, now: Instant) -> Result<(), Error> {
        let Err(error) = self.reevaluate(number, now) else { return Ok(()) };
        let Some(asked) = self.queries.get_mut(number as usize).and_then(Option::as_deref_mut)
        else {
            return Err(error);
        };
        let later = now.saturating_add(MINUTE_SECONDS);
        if let Some(at) = asked.resolved.valid_until.replace(later) {
            self.boundaries.remove(&(at, number));
        }
        self.boundaries.insert((later, number));
        self.reset_views(number, ResetReason::Expired);
        Ok(())
    }

    fn reevaluate(&mut self, number: u32, now: Instant) -> Result<(), Error> {
        let Some(asked) = self.query(number) else { return Ok(()) };
        let reading = match asked.view_query.resolve_at(now) {
            Ok(reading) => reading,
            // It could be read once; whatever it says now, nobody is told.
            Err(_) => ResolvedQuery {
                valid_until: Some(now.saturating_add(DAY_SECONDS)),
                ..asked.resolved.clone()
            },
        };
        let same = reading.query == asked.resolved.query;
        let rows = match same {
            true => None,
            false => {
                Some(self.with_consistent_snapshot(|state| state.diff_by_time(number, &reading))?)
            }
        };
        let Some(asked) = self.queries.get_mut(number as usize).and_then(Option::as_deref_mut)
        else {
            return Ok(());
        };
        if let Some(at) = asked.resolved.valid_until {
            self.boundaries.remove(&(at, number));
        }
        self.boundaries.extend(reading.valid_until.map(|at| (at, number)));
        // What says the same is filed, and made ready, as it was.
        if same {
            asked.resolved = reading;
            return Ok(());
        }
        self.subscriptions.remove(number, &asked.resolved.query, asked.collection);
        self.subscriptions.add(number, &reading.query, asked.collection);
        asked.matcher = Matcher::new(&reading.query);
        asked.resolved = reading;
        for view in &asked.mailboxes {
            view.mark_query_change();
        }
        self.evict_answer(number, Why::Stale);
        if let Some(rows) = rows.filter(|rows| !is_without_changes(rows)) {
            self.enqueue(number, PendingChanges::Rows(Arc::new(rows)), self.seq);
        }
        Ok(())
    }

    /// What the clock has changed in an answer.
    fn diff_by_time(&self, number: u32, to: &ResolvedQuery) -> Result<PendingRows, Error> {
        let mut moved = PendingRows { seq: self.seq, by_clock: true, ..PendingRows::default() };
        let Some(asked) = self.query(number).filter(|asked| !asked.mailboxes.is_empty()) else {
            return Ok(moved);
        };
        let answered: HashSet<i64> = self.find_rows(&asked.search_request())?.into_iter().collect();
        let answers = self.find_rows(&asked.view_query.search_request(&to.query))?;
        moved.added = answers.iter().copied().filter(|row| !answered.contains(row)).collect();
        let answers: HashSet<i64> = answers.into_iter().collect();
        let mut gone: Vec<i64> = answered.difference(&answers).copied().collect();
        gone.sort_unstable();
        self.reader.for_each_item(&gone, &mut |head, _| {
            moved.removed.push(RemovedItem::from_head(&head));
            true
        })?;
        if let (Some(from), Some(to)) = (&asked.resolved.occurrence_range, &to.occurrence_range) {
            let mut both: Vec<i64> = answered.intersection(&answers).copied().collect();
            both.sort_unstable();
            self.reader.for_each_schedule(&both, &mut |row, times| {
                if list_range_occurrences(Some(times), from)
                    != list_range_occurrences(Some(times), to)
                {
                    moved.modified.push(row);
                }
                true
            })?;
        }
        Ok(moved)
    }

    /// The rows of an answer; a collection that is not there holds nothing.
    fn find_rows(&self, question: &SearchRequest) -> Result<Vec<i64>, Error> {
        match find(&self.reader, question) {
            Ok(answer) => Ok(answer.rows()),
            Err(Error::Store(larder_store::Error::NoCollection { .. })) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

fn is_without_changes(rows: &PendingRows) -> bool {
    rows.added.is_empty() && rows.modified.is_empty() && rows.removed.is_empty()
}
