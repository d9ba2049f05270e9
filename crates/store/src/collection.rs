//! Collections as readers know them: what their items' handles are made from, and how they are indexed.
//!
//! Making, renaming and removing them is a change like any other and lies in `apply`.

use crate::Family;
use crate::identity::Of;
use crate::span::{self, What};
use crate::summary::Summary;
use rusqlite::Connection;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A collection that is there.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) of: Of,
    pub(crate) name: Arc<str>,
    pub(crate) summary: Arc<Summary>,
    /// The classes of spans that it has, of occurrences and of alarms.
    classes: [Classes; 2],
}

#[derive(Debug, Default)]
struct Classes {
    /// They were asked for.
    asked: AtomicBool,
    found: OnceLock<Vec<i64>>,
}

impl Known {
    /// The classes of spans to look at, in the snapshot in which it is known: those that it has. To find out which ones takes
    /// about as long as to look for one in vain, so who asks for the first time gets all that there can be.
    pub(crate) fn classes(&self, conn: &Connection, what: What) -> rusqlite::Result<&[i64]> {
        let [occurrences, alarms] = &self.classes;
        let known = if what == What::Alarms { alarms } else { occurrences };
        if let Some(classes) = known.found.get() {
            return Ok(classes);
        }
        if !known.asked.swap(true, Ordering::Relaxed) {
            return Ok(span::all_classes(what));
        }
        let found = span::classes(conn, self.of.id, what)?;
        Ok(known.found.get_or_init(|| found))
    }
}

/// All of them, by row.
pub(crate) fn all(conn: &Connection) -> rusqlite::Result<Vec<Known>> {
    let sql = "SELECT id, key, name, summary, family FROM collection WHERE removed = 0 ORDER BY id";
    conn.prepare_cached(sql)?
        .query_map([], |row| {
            let of = Of { id: row.get(0)?, key: row.get(1)? };
            let summary =
                Summary::of_stored(row.get_ref(3)?.as_str()?, Family::of_number(row.get(4)?));
            Ok(Known { of, name: row.get(2)?, summary, classes: Default::default() })
        })?
        .collect()
}
