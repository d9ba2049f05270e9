//! The same questions, by bare SQL to the rows that `larder-floor same` wrote: no parsing, no test of what was
//! found. What is folded, and the text of the MATCH, are made outside the measured time.

use crate::Outcome;
use crate::clock::row;
use crate::larder::ByRows as _;
use crate::needles::{BETWEEN, Needle};
use larder_format::field::field;
use larder_format::fold::{digits, fold};
use larder_store::Deriver;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

const WHO: &str = "floor";
/// As in `larder-floor`: added to a field's number for values from their ends, and for the ends of numbers.
const ENDS: i64 = 1000;
const NUMBERS: i64 = 2000;
/// After every text.
const LAST: &str = "\u{10ffff}";

/// A statement with its values, to run once or several times.
struct Asked {
    sql: &'static str,
    values: Vec<Vec<Value>>,
}

const ALL: &str = "SELECT bytes FROM source ORDER BY item";
const IDS: &str = "SELECT uid FROM item";
const KEPT: &str = "SELECT uid || kept FROM item";
/// By the hash, which may have several.
const UID: &str =
    "SELECT s.bytes FROM item i JOIN source s ON s.item = i.id WHERE i.handle = ?1 AND i.uid = ?2";
const RANGE: &str = "SELECT s.bytes FROM idx_value v JOIN source s ON s.item = v.item
    WHERE v.field = ?1 AND v.value >= ?2 AND v.value < ?3 LIMIT ?4";
/// A name is looked for in four fields.
const NAMES: [&str; 4] = ["full_name", "family_name", "given_name", "nickname"];
const NAMES_RANGE: &str = "SELECT s.bytes FROM (SELECT DISTINCT item FROM idx_value
    WHERE field IN (?1, ?2, ?3, ?4) AND value >= ?5 AND value < ?6 LIMIT ?7) v JOIN source s ON s.item = v.item";
const EQUAL: &str = "SELECT s.bytes FROM idx_value v JOIN source s ON s.item = v.item
    WHERE v.field = ?1 AND v.value = ?2 LIMIT ?3";
const MATCH: &str = "SELECT s.bytes FROM idx_text JOIN source s ON s.item = idx_text.rowid
    WHERE idx_text MATCH ?1 LIMIT ?2";
const PAGE: &str = "SELECT s.bytes FROM idx_sort o JOIN source s ON s.item = o.item
    WHERE o.field = ?1 AND o.key >= ?2 ORDER BY o.key, o.item LIMIT ?3";
const BACK: &str = "SELECT s.bytes FROM idx_sort o JOIN source s ON s.item = o.item
    WHERE o.field = ?1 AND o.key < ?2 ORDER BY o.key DESC, o.item DESC LIMIT ?3";

/// Times every row of the needles.
pub(crate) fn ask(file: &Path, needles: &[Needle], seconds: f64, n: &str) -> Outcome<()> {
    let conn = open(file)?;
    let deriver = Deriver::new("und");
    for group in needles.chunk_by_rows() {
        let name = group[0].row.as_str();
        if name == "letters" {
            continue;
        }
        let asked: Vec<Asked> =
            group.iter().map(|needle| of(needle, &deriver)).collect::<Outcome<_>>()?;
        row(WHO, n, name, seconds, &asked, &mut |asked| match name {
            "open" => run(&open(file)?, asked),
            _ => run(&conn, asked),
        })?;
    }
    Ok(())
}

fn open(file: &Path) -> Outcome<Connection> {
    let conn = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    conn.pragma_update(None, "cache_size", -8192)?;
    Ok(conn)
}

fn run(conn: &Connection, asked: &Asked) -> Outcome<usize> {
    let mut select = conn.prepare_cached(asked.sql)?;
    let mut given = 0;
    for values in &asked.values {
        let mut rows = select.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            given += usize::from(!row.get_ref(0)?.as_bytes()?.to_vec().is_empty());
        }
    }
    let may_be_none = asked.sql == PAGE || asked.sql == BACK;
    Ok(if may_be_none { given.max(1) } else { given })
}

fn of(needle: &Needle, deriver: &Deriver) -> Outcome<Asked> {
    let id = |name: &str| field(name).map(|field| i64::from(field.id)).ok_or("no such field");
    let limit = if needle.limit == 0 { -1 } else { needle.limit as i64 };
    let folded = fold(&needle.text).into_owned();
    let equal = |field: i64, text: &str| vec![field.into(), text.to_string().into(), limit.into()];
    let from = |field: i64, text: String| {
        let end = format!("{text}{LAST}");
        vec![vec![field.into(), text.into(), end.into(), limit.into()]]
    };
    let kind = needle.row.split('/').next().unwrap_or_default();
    let (sql, values) = match kind {
        "all" | "all-eds" => (ALL, vec![Vec::new()]),
        "ids" => (IDS, vec![Vec::new()]),
        "ids-rev" | "fields-3" => (KEPT, vec![Vec::new()]),
        "uid" | "uids-100" => {
            let uids = needle.text.split(BETWEEN);
            let handle = |uid: &str| handle(uid).to_be_bytes().to_vec();
            (UID, uids.map(|uid| vec![handle(uid).into(), uid.to_string().into()]).collect())
        }
        "open" | "exact" => (EQUAL, vec![equal(id("full_name")?, &folded)]),
        "exact-email" => (EQUAL, vec![equal(id("email")?, &folded)]),
        "suffix" => (RANGE, from(id("full_name")? + ENDS, folded.chars().rev().collect())),
        "suffix-email" => (RANGE, from(id("email")? + ENDS, folded.chars().rev().collect())),
        "phone" => {
            let last: String = digits(&folded).chars().rev().take(7).collect();
            (EQUAL, vec![equal(id("phone")? + NUMBERS, &last)])
        }
        "page-50" | "page-back" | "page-end" => {
            let key = match kind {
                "page-end" => vec![0xff],
                _ => deriver.sort_key(&needle.text),
            };
            let sql = if kind == "page-50" { PAGE } else { BACK };
            (sql, vec![vec![id("file_as")?.into(), key.into(), limit.into()]])
        }
        "substring" | "any" => (MATCH, vec![vec![trigrams(&folded).into(), limit.into()]]),
        _ if kind.starts_with("prefix-") => {
            let end = format!("{folded}{LAST}");
            let fields = NAMES.iter().map(|name| Ok(id(name)?.into()));
            let mut values: Vec<Value> = fields.collect::<Outcome<_>>()?;
            values.extend([folded.into(), end.into(), limit.into()]);
            (NAMES_RANGE, vec![values])
        }
        other => return Err(format!("no floor for {other}").into()),
    };
    Ok(Asked { sql, values })
}

/// As in `larder-floor`.
fn handle(uid: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    uid.hash(&mut hash);
    hash.finish()
}

/// A MATCH for what has all trigrams of a text.
fn trigrams(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let terms: Vec<String> = chars
        .windows(3)
        .map(|three| format!("\"{}\"", String::from_iter(three).replace('"', "\"\"")))
        .collect();
    terms.join(" AND ")
}
