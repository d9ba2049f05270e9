//! A simulated working day of desktop programs.
//!
//! A panel has views open all day, alarms are queried every minute, a calendar is opened every
//! hour, and names are typed into a search field. The simulated clock runs as fast as the queries
//! are answered. The query log of this day shows the value of the answer cache (`larder measure
//! queries`); the answers themselves are discarded.

use super::{WorkloadClient, format_day, month_start_before};
use larder_generate::dates::DayNumber;
use larder_query::Error;
use larder_query::views::{QuerySyntax, View, ViewQuery};
use std::sync::Arc;
use std::time::Duration;

/// Minutes of a working day, from nine o'clock.
const WORKING_DAY_MINUTES: i64 = 8 * 60;
const DAY_START_MINUTE: i64 = 9 * 60;
/// The intervals of opening the calendar, searching for a person, and viewing the tasks.
const CALENDAR_INTERVAL_MINUTES: i64 = 60;
const SEARCH_INTERVAL_MINUTES: i64 = 7;
const TASKS_INTERVAL_MINUTES: i64 = 30;
/// The texts that are typed, in order; some repeat, because people search for the same few names.
const SEARCH_TEXTS: [&str; 12] = [
    "anna", "muller", "smith", "anna", "garcia", "anna", "kim", "muller", "rossi", "anna", "jones",
    "smith",
];

/// Sets the simulated clock to a local time, in seconds since 1970-01-01T00:00:00.
pub type SetClockFn<'a> = &'a mut dyn FnMut(i64);

impl WorkloadClient<'_> {
    pub(super) fn run_working_day(
        &mut self,
        today: i64,
        pace: Duration,
        set_clock: SetClockFn<'_>,
    ) -> Result<(), Error> {
        let mut panel = None;
        for minute in 0..WORKING_DAY_MINUTES {
            set_clock(today * 86_400 + (DAY_START_MINUTE + minute) * 60);
            self.views.catch_up()?;
            if panel.is_none() {
                let week = self.open_view("panel", "when:today..+7d")?;
                panel = Some((week, self.open_view("panel", "is:overdue")?));
            }
            if let Some((week, overdue)) = &mut panel {
                while week.try_next()?.is_some() {}
                while overdue.try_next()?.is_some() {}
            }
            self.query_alarms(DayNumber(today), DAY_START_MINUTE + minute)?;
            if minute % CALENDAR_INTERVAL_MINUTES == 0 {
                self.page_calendar(DayNumber(today))?;
            }
            if minute % SEARCH_INTERVAL_MINUTES == 0 {
                let name =
                    SEARCH_TEXTS[(minute / SEARCH_INTERVAL_MINUTES) as usize % SEARCH_TEXTS.len()];
                self.type_search(name)?;
            }
            if minute % TASKS_INTERVAL_MINUTES == 0 {
                self.run_query("tasks", QuerySyntax::Line, "is:task -is:completed")?;
            }
            std::thread::sleep(pace);
        }
        Ok(())
    }

    /// Queries the alarms of one minute, as EDS's alarm daemon does: no two of these queries are
    /// equal.
    fn query_alarms(&mut self, today: DayNumber, minute: i64) -> Result<(), Error> {
        let at = |minute: i64| {
            format!("(make-time \"{today}T{:02}{:02}00Z\")", minute / 60, minute % 60)
        };
        let query = format!("(has-alarms-in-range? {} {})", at(minute), at(minute + 1));
        self.run_query("alarms", QuerySyntax::Sexp, &query)
    }

    /// Opens the calendar on the current month, pages forward and back, and closes it.
    fn page_calendar(&mut self, today: DayNumber) -> Result<(), Error> {
        let mut shown: Option<View> = None;
        for back in [0, -1, -2, -1, 0, 1, 0] {
            let (year, month, _) = month_start_before(today, back).to_date();
            let next = self.open_view("calendar", &format!("when:{year:04}-{month:02}"))?;
            drop(shown.replace(next));
        }
        let days = [today.add_days(1), today.add_days(2), today];
        for day in days {
            let next = self.open_view("calendar", &format!("when:{}", format_day(day)))?;
            drop(shown.replace(next));
        }
        Ok(())
    }

    /// Opens a view for each letter and receives the items of the last one.
    fn type_search(&mut self, name: &str) -> Result<(), Error> {
        let mut shown: Option<View> = None;
        for (end, _) in name.char_indices().skip(1).chain([(name.len(), ' ')]) {
            let next = self.open_view("search", name.get(..end).unwrap_or(name))?;
            drop(shown.replace(next));
        }
        drop(shown);
        self.run_query("search", QuerySyntax::Line, name)
    }

    fn run_query(&mut self, client: &str, form: QuerySyntax, text: &str) -> Result<(), Error> {
        let query = ViewQuery::new(form, text, Arc::clone(self.settings));
        self.result.items_received += self.views.find(query, client, &mut |_, _| true)?;
        Ok(())
    }
}
