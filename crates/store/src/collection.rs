//! Collections as readers know them: what their items' names are made from.
//!
//! Making, renaming and removing them is a change like any other and lies in `apply`.

use crate::identity::Of;
use rusqlite::Connection;
use std::sync::Arc;

/// A collection that is there.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) of: Of,
    pub(crate) name: Arc<str>,
}

/// All of them, by row.
pub(crate) fn all(conn: &Connection) -> rusqlite::Result<Vec<Known>> {
    conn.prepare_cached("SELECT id, key, name FROM collection WHERE removed = 0 ORDER BY id")?
        .query_map([], |row| {
            let of = Of { id: row.get(0)?, key: row.get(1)? };
            Ok(Known { of, name: row.get(2)? })
        })?
        .collect()
}
