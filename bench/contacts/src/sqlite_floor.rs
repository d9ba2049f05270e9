//! Runs the queries as plain SQL on the rows that `larder-floor same` wrote, without parsing and
//! without verification of candidates. Folded texts and MATCH expressions are prepared outside the
//! measured time.

use crate::Result;
use crate::larder::NeedleGroups as _;
use crate::search_terms::{SearchTerm, UID_SEPARATOR};
use crate::timing::time_row;
use larder_format::field::find_contact_field;
use larder_format::fold::{collect_digits, fold};
use larder_store::Extractor;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

const PROGRAM_NAME: &str = "floor";
/// Offsets of field numbers, as in `larder-floor`: for reversed values, and for the last digits of
/// telephone numbers.
const SUFFIX_FIELD_OFFSET: i64 = 1000;
const PHONE_FIELD_OFFSET: i64 = 2000;
/// Sorts after every text with the same beginning.
const PREFIX_END: &str = "\u{10ffff}";

/// A statement and the values of each of its executions.
struct FloorQuery {
    sql: &'static str,
    values: Vec<Vec<Value>>,
}

const SELECT_ALL: &str = "SELECT bytes FROM source ORDER BY item";
const SELECT_UIDS: &str = "SELECT uid FROM item";
const SELECT_STORED_FIELDS: &str = "SELECT uid || kept FROM item";
/// Finds an item by the hash of its UID, which several items may share.
const SELECT_BY_UID: &str =
    "SELECT s.bytes FROM item i JOIN source s ON s.item = i.id WHERE i.handle = ?1 AND i.uid = ?2";
const SELECT_RANGE: &str = "SELECT s.bytes FROM idx_value v JOIN source s ON s.item = v.item
    WHERE v.field = ?1 AND v.value >= ?2 AND v.value < ?3 LIMIT ?4";
/// The fields that a name is searched in.
const NAME_FIELDS: [&str; 4] = ["full_name", "family_name", "given_name", "nickname"];
const SELECT_NAMES_RANGE: &str = "SELECT s.bytes FROM (SELECT DISTINCT item FROM idx_value
    WHERE field IN (?1, ?2, ?3, ?4) AND value >= ?5 AND value < ?6 LIMIT ?7) v JOIN source s ON s.item = v.item";
const SELECT_EQUAL: &str = "SELECT s.bytes FROM idx_value v JOIN source s ON s.item = v.item
    WHERE v.field = ?1 AND v.value = ?2 LIMIT ?3";
const SELECT_MATCH: &str = "SELECT s.bytes FROM idx_text JOIN source s ON s.item = idx_text.rowid
    WHERE idx_text MATCH ?1 LIMIT ?2";
const SELECT_PAGE: &str = "SELECT s.bytes FROM idx_sort o JOIN source s ON s.item = o.item
    WHERE o.field = ?1 AND o.key >= ?2 ORDER BY o.key, o.item LIMIT ?3";
const SELECT_PAGE_BACK: &str = "SELECT s.bytes FROM idx_sort o JOIN source s ON s.item = o.item
    WHERE o.field = ?1 AND o.key < ?2 ORDER BY o.key DESC, o.item DESC LIMIT ?3";

/// Times every row of the search terms.
pub(crate) fn time_all_rows(
    file: &Path,
    search_terms: &[SearchTerm],
    seconds: f64,
    n: &str,
) -> Result<()> {
    let conn = open(file)?;
    let extractor = Extractor::new("und");
    for group in search_terms.group_by_row() {
        let name = group[0].row.as_str();
        if name == "letters" {
            continue;
        }
        let queries: Vec<FloorQuery> = group
            .iter()
            .map(|search_term| to_floor_query(search_term, &extractor))
            .collect::<Result<_>>()?;
        time_row(PROGRAM_NAME, n, name, seconds, &queries, &mut |query| match name {
            "open" => run_query(&open(file)?, query),
            _ => run_query(&conn, query),
        })?;
    }
    Ok(())
}

fn open(file: &Path) -> Result<Connection> {
    let conn = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    conn.pragma_update(None, "cache_size", -8192)?;
    Ok(conn)
}

fn run_query(conn: &Connection, query: &FloorQuery) -> Result<usize> {
    let mut select = conn.prepare_cached(query.sql)?;
    let mut count = 0;
    for values in &query.values {
        let mut rows = select.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            count += usize::from(!row.get_ref(0)?.as_bytes()?.to_vec().is_empty());
        }
    }
    let may_be_empty = query.sql == SELECT_PAGE || query.sql == SELECT_PAGE_BACK;
    Ok(if may_be_empty { count.max(1) } else { count })
}

fn to_floor_query(search_term: &SearchTerm, extractor: &Extractor) -> Result<FloorQuery> {
    let id = |name: &str| {
        find_contact_field(name).map(|field| i64::from(field.id)).ok_or("no such field")
    };
    let limit = if search_term.limit == 0 { -1 } else { search_term.limit as i64 };
    let folded = fold(&search_term.text).into_owned();
    let equal = |field: i64, text: &str| vec![field.into(), text.to_string().into(), limit.into()];
    let starting_with = |field: i64, text: String| {
        let end = format!("{text}{PREFIX_END}");
        vec![vec![field.into(), text.into(), end.into(), limit.into()]]
    };
    let kind = search_term.row.split('/').next().unwrap_or_default();
    let (sql, values) = match kind {
        "all" | "all-eds" => (SELECT_ALL, vec![Vec::new()]),
        "ids" => (SELECT_UIDS, vec![Vec::new()]),
        "ids-rev" | "fields-3" => (SELECT_STORED_FIELDS, vec![Vec::new()]),
        "uid" | "uids-100" => {
            let uids = search_term.text.split(UID_SEPARATOR);
            let handle = |uid: &str| hash_uid(uid).to_be_bytes().to_vec();
            (
                SELECT_BY_UID,
                uids.map(|uid| vec![handle(uid).into(), uid.to_string().into()]).collect(),
            )
        }
        "open" | "exact" => (SELECT_EQUAL, vec![equal(id("full_name")?, &folded)]),
        "exact-email" => (SELECT_EQUAL, vec![equal(id("email")?, &folded)]),
        "suffix" => (
            SELECT_RANGE,
            starting_with(id("full_name")? + SUFFIX_FIELD_OFFSET, folded.chars().rev().collect()),
        ),
        "suffix-email" => (
            SELECT_RANGE,
            starting_with(id("email")? + SUFFIX_FIELD_OFFSET, folded.chars().rev().collect()),
        ),
        "phone" => {
            let last: String = collect_digits(&folded).chars().rev().take(7).collect();
            (SELECT_EQUAL, vec![equal(id("phone")? + PHONE_FIELD_OFFSET, &last)])
        }
        "page-50" | "page-back" | "page-end" => {
            let key = match kind {
                "page-end" => vec![0xff],
                _ => extractor.sort_key(&search_term.text),
            };
            let sql = if kind == "page-50" { SELECT_PAGE } else { SELECT_PAGE_BACK };
            (sql, vec![vec![id("file_as")?.into(), key.into(), limit.into()]])
        }
        "substring" | "any" => {
            (SELECT_MATCH, vec![vec![trigram_match(&folded).into(), limit.into()]])
        }
        _ if kind.starts_with("prefix-") => {
            let end = format!("{folded}{PREFIX_END}");
            let fields = NAME_FIELDS.iter().map(|name| Ok(id(name)?.into()));
            let mut values: Vec<Value> = fields.collect::<Result<_>>()?;
            values.extend([folded.into(), end.into(), limit.into()]);
            (SELECT_NAMES_RANGE, vec![values])
        }
        other => return Err(format!("no floor for {other}").into()),
    };
    Ok(FloorQuery { sql, values })
}

/// Returns the hash of a UID, as `larder-floor` stores it.
fn hash_uid(uid: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    uid.hash(&mut hash);
    hash.finish()
}

/// Returns the MATCH expression for all trigrams of a text.
fn trigram_match(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let terms: Vec<String> = chars
        .windows(3)
        .map(|three| format!("\"{}\"", String::from_iter(three).replace('"', "\"\"")))
        .collect();
    terms.join(" AND ")
}
