//! A working day, as the programs of a desktop ask: a panel that is open all day, alarms asked for each minute, a calendar that is
//! opened each hour, and somebody who types names.
//!
//! The day's clock is the load's own, so that eight hours go by as fast as they are asked for. It is there to see what
//! keeping answers is worth (`larder measure queries`); what it finds is not looked at.

use super::{Looking, month_back, written};
use crate::generate::dates::Day;
use larder_query::Error;
use larder_query::views::{Form, Question, View};
use std::sync::Arc;
use std::time::Duration;

/// Minutes of a working day, from nine o'clock.
const MINUTES: i64 = 8 * 60;
const NINE: i64 = 9 * 60;
/// So often, in minutes, the calendar is opened, somebody is looked for, and the tasks are looked at.
const CALENDAR: i64 = 60;
const NAMES: i64 = 7;
const TASKS: i64 = 30;
/// What is typed, one after the other; people look for the same few people.
const TYPED: [&str; 12] = [
    "anna", "muller", "smith", "anna", "garcia", "anna", "kim", "muller", "rossi", "anna", "jones",
    "smith",
];

/// The day's clock: sets what time it is, in seconds since 1970-01-01T00:00:00 by the clock of whoever asks.
pub type SetClock<'a> = &'a mut dyn FnMut(i64);

impl Looking<'_> {
    pub(super) fn day(
        &mut self,
        today: i64,
        pace: Duration,
        set_clock: SetClock<'_>,
    ) -> Result<(), Error> {
        let mut panel = None;
        for minute in 0..MINUTES {
            set_clock(today * 86_400 + (NINE + minute) * 60);
            self.views.catch_up()?;
            if panel.is_none() {
                let week = self.open("panel", "when:today..+7d")?;
                panel = Some((week, self.open("panel", "is:overdue")?));
            }
            if let Some((week, overdue)) = &mut panel {
                while week.tell()?.is_some() {}
                while overdue.tell()?.is_some() {}
            }
            self.alarms(Day(today), NINE + minute)?;
            if minute % CALENDAR == 0 {
                self.calendar(Day(today))?;
            }
            if minute % NAMES == 0 {
                let name = TYPED[(minute / NAMES) as usize % TYPED.len()];
                self.type_name(name)?;
            }
            if minute % TASKS == 0 {
                self.ask("tasks", Form::Line, "is:task -is:completed")?;
            }
            std::thread::sleep(pace);
        }
        Ok(())
    }

    /// What rings in this minute, as the predecessor's alarm daemon asks: no two questions are alike.
    fn alarms(&mut self, today: Day, minute: i64) -> Result<(), Error> {
        let at = |minute: i64| {
            format!("(make-time \"{today}T{:02}{:02}00Z\")", minute / 60, minute % 60)
        };
        let question = format!("(has-alarms-in-range? {} {})", at(minute), at(minute + 1));
        self.ask("alarms", Form::Sexp, &question)
    }

    /// The calendar is opened on this month, paged forth and back, and closed.
    fn calendar(&mut self, today: Day) -> Result<(), Error> {
        let mut shown: Option<View> = None;
        for back in [0, -1, -2, -1, 0, 1, 0] {
            let (year, month, _) = month_back(today, back).date();
            let next = self.open("calendar", &format!("when:{year:04}-{month:02}"))?;
            drop(shown.replace(next));
        }
        let days = [today.plus(1), today.plus(2), today];
        for day in days {
            let next = self.open("calendar", &format!("when:{}", written(day)))?;
            drop(shown.replace(next));
        }
        Ok(())
    }

    /// A view for each letter, and the answer to the last is looked at.
    fn type_name(&mut self, name: &str) -> Result<(), Error> {
        let mut shown: Option<View> = None;
        for (end, _) in name.char_indices().skip(1).chain([(name.len(), ' ')]) {
            let next = self.open("search", name.get(..end).unwrap_or(name))?;
            drop(shown.replace(next));
        }
        drop(shown);
        self.ask("search", Form::Line, name)
    }

    fn ask(&mut self, client: &str, form: Form, text: &str) -> Result<(), Error> {
        let question = Question::new(form, text, Arc::clone(self.settings));
        self.found.items += self.views.find(question, client, &mut |_, _| true)?;
        Ok(())
    }
}
