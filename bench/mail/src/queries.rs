//! The list of queries, with the goals at 100,000 messages.

use crate::{Result, thread_time};
use larder_query::{
    MailQuery, MailQueryContext, MailSearch, ThreadMessage, ThreadOrder, UserLocale, order_threads,
};
use larder_store::{DataDirectory, Reader};
use rusqlite::{Connection, OpenFlags};

/// The messages of a list.
const LIST_ROWS: usize = 500;

/// The runs of which the least counts.
const RUNS: usize = 5;

/// The form of an answer.
#[derive(Clone, Copy)]
enum AnswerForm {
    /// The newest 500, with the values of a list.
    Newest,
    /// The number of messages.
    Count,
    /// The rows of all messages.
    Rows,
    /// The newest 500 and the other messages of their threads, in the order of threads.
    Threads,
}

/// A query with the form of its answer and the goal in milliseconds.
const QUERIES: &[(&str, AnswerForm, f64)] = &[
    ("the", AnswerForm::Newest, 0.4),
    ("report", AnswerForm::Newest, 0.4),
    ("the date:2019-03-01..2019-06-30", AnswerForm::Count, 0.1),
    ("frobnitzel", AnswerForm::Newest, 0.1),
    ("\"of the\"", AnswerForm::Count, 3.0),
    ("\"the report\"", AnswerForm::Count, 3.0),
    ("\"of the\"", AnswerForm::Newest, 0.6),
    ("\"annual walrus audit\"", AnswerForm::Newest, 0.6),
    ("s*", AnswerForm::Count, 25.0),
    ("perf*", AnswerForm::Newest, 1.0),
    ("flag:unread subject:report", AnswerForm::Newest, 0.4),
    ("from:mary*", AnswerForm::Newest, 0.4),
    ("(report or invoice) and from:james and not budget", AnswerForm::Newest, 1.0),
    ("*obnit*", AnswerForm::Newest, 1.0),
    ("/frob.*/", AnswerForm::Newest, 20.0),
    ("*a*", AnswerForm::Count, 500.0),
    ("the", AnswerForm::Count, 1.0),
    ("size:0..", AnswerForm::Rows, 100.0),
    ("maildir:/INBOX", AnswerForm::Newest, 0.4),
    ("maildir:/INBOX", AnswerForm::Threads, 3.0),
    ("frobnitzel", AnswerForm::Threads, 3.0),
];

/// Saved searches that are counted in one pass.
const SAVED_SEARCHES: [&str; 20] = [
    "flag:unread",
    "maildir:/INBOX flag:unread",
    "flag:flagged",
    "from:james",
    "from:mary*",
    "to:me@example.org",
    "subject:report",
    "subject:invoice or subject:budget",
    "list:*",
    "flag:attach",
    "report flag:unread",
    "(report or invoice) not budget",
    "date:2019..2020",
    "date:2019-03..2019-06 report",
    "size:1M..",
    "prio:high",
    "frobnitzel",
    "audit walrus",
    "maildir:/INBOX from:james",
    "perf*",
];
/// The goal of counting them, in milliseconds.
const SAVED_SEARCHES_GOAL: f64 = 5.0;

/// Runs the queries with a part in their texts, and prints their times. Returns whether all goals
/// are met.
pub(crate) fn time_queries(directory: &DataDirectory, part: &str) -> Result<bool> {
    let reader = Reader::open(directory)?;
    let database = open_database(directory)?;
    let context = MailQueryContext::from(&UserLocale::default());
    let mut is_met = true;
    for (text, form, goal) in QUERIES.iter().filter(|(text, ..)| text.contains(part)) {
        let query = MailQuery::parse(text, &context)?;
        let (hits, least) = least_time(|| answer(&reader, &query, *form))?;
        let floor = match form {
            AnswerForm::Newest | AnswerForm::Rows => {
                let rows = newest_rows(&reader, &query, *form)?;
                format!("{:9.3}", least_time(|| read_rows(&database, &rows))?.1)
            }
            AnswerForm::Count | AnswerForm::Threads => String::new(),
        };
        let form = match form {
            AnswerForm::Newest => "newest 500",
            AnswerForm::Count => "count",
            AnswerForm::Rows => "all rows",
            AnswerForm::Threads => "500, threads",
        };
        let mark = if least > *goal { " missed" } else { "" };
        is_met &= least <= *goal;
        println!("{text:50} {form:12} {hits:6} {least:9.3} {goal:6.1}{mark:7}{floor}");
    }
    if !part.is_empty() {
        return Ok(is_met);
    }
    let saved = SAVED_SEARCHES.map(|text| MailQuery::parse(text, &context));
    let saved = saved.into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
    let (hits, least) = least_time(|| {
        let mail = reader.mail()?;
        let words = mail.words();
        let counts = MailSearch::open(&mail, &words)?.count_each(&saved)?;
        Ok(usize::try_from(counts.iter().map(|count| count.messages).sum::<u64>())?)
    })?;
    let mark = if least > SAVED_SEARCHES_GOAL { " missed" } else { "" };
    is_met &= least <= SAVED_SEARCHES_GOAL;
    let name = "20 saved searches";
    println!("{name:50} {:12} {hits:6} {least:9.3} {SAVED_SEARCHES_GOAL:6.1}{mark}", "counts");
    Ok(is_met)
}

/// Returns the answer of some runs, and the least of their times in milliseconds.
fn least_time(mut run: impl FnMut() -> Result<usize>) -> Result<(usize, f64)> {
    let (mut hits, mut least) = (0, f64::INFINITY);
    for _ in 0..=RUNS {
        let before = thread_time();
        hits = run()?;
        least = least.min((thread_time() - before).as_secs_f64() * 1000.0);
    }
    Ok((hits, least))
}

/// Opens the index for SQLite alone, mapped into memory as a reader maps it for lists.
fn open_database(directory: &DataDirectory) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = Connection::open_with_flags(directory.database_path(), flags)?;
    database.pragma_update(None, "mmap_size", 1_i64 << 40)?;
    Ok(database)
}

/// Returns the rows of a list, ascending.
fn newest_rows(reader: &Reader, query: &MailQuery, form: AnswerForm) -> Result<Vec<u32>> {
    let mail = reader.mail()?;
    let words = mail.words();
    let limit = if matches!(form, AnswerForm::Rows) { usize::MAX } else { LIST_ROWS };
    let hits = MailSearch::open(&mail, &words)?.find_newest(query, limit)?;
    let mut rows: Vec<u32> = hits.into_iter().map(|hit| hit.row).collect();
    rows.sort_unstable();
    Ok(rows)
}

/// Reads the columns of a list in these rows, and does nothing with them. Returns the number of
/// rows that were found.
fn read_rows(database: &Connection, rows: &[u32]) -> Result<usize> {
    let transaction = database.unchecked_transaction()?;
    let sql = "SELECT handle, uid, uid_origin, stored_fields FROM item WHERE id = ?1";
    let mut select = transaction.prepare_cached(sql)?;
    let (mut found, mut bytes) = (0, 0);
    for row in rows {
        let mut item = select.query([row])?;
        let Some(item) = item.next()? else { continue };
        let is_long = item.get_ref(2)?.as_i64()? > 0;
        bytes += item.get_ref(0)?.as_blob()?.len() + item.get_ref(1)?.as_bytes()?.len();
        bytes += item.get_ref(3)?.as_blob()?.len() + usize::from(is_long);
        found += 1;
    }
    std::hint::black_box(bytes);
    Ok(found)
}

/// Answers a query in a read transaction of its own. Returns the number of messages.
fn answer(reader: &Reader, query: &MailQuery, form: AnswerForm) -> Result<usize> {
    let mail = reader.mail()?;
    let words = mail.words();
    let search = MailSearch::open(&mail, &words)?;
    let newest = |limit| -> Result<Vec<u32>> {
        Ok(search.find_newest(query, limit)?.into_iter().map(|hit| hit.row).collect())
    };
    match form {
        AnswerForm::Count => Ok(usize::try_from(search.count(query)?)?),
        AnswerForm::Newest => Ok(mail.messages(&newest(LIST_ROWS)?)?.len()),
        AnswerForm::Rows => {
            let mut count = 0;
            mail.for_each_message(&newest(usize::MAX)?, &mut |_| count += 1)?;
            Ok(count)
        }
        AnswerForm::Threads => {
            let messages = mail.messages(&search.with_threads(&newest(LIST_ROWS)?)?)?;
            let threaded: Vec<ThreadMessage<'_>> =
                messages.iter().map(ThreadMessage::from).collect();
            Ok(order_threads(&threaded, ThreadOrder::Descending).len())
        }
    }
}
