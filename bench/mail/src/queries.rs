//! The list of queries, with the goals at 100,000 messages.

use crate::{Result, thread_time};
use larder_query::{
    MailQuery, MailQueryContext, MailSearch, ThreadMessage, ThreadOrder, UserLocale, order_threads,
};
use larder_store::{DataDirectory, Reader};

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

/// Runs all queries, and prints their times. Returns whether all goals are met.
pub(crate) fn time_queries(directory: &DataDirectory) -> Result<bool> {
    let reader = Reader::open(directory)?;
    let context = MailQueryContext::from(&UserLocale::default());
    let mut is_met = true;
    for (text, form, goal) in QUERIES {
        let query = MailQuery::parse(text, &context)?;
        let (hits, least) = least_time(|| answer(&reader, &query, *form))?;
        let form = match form {
            AnswerForm::Newest => "newest 500",
            AnswerForm::Count => "count",
            AnswerForm::Rows => "all rows",
            AnswerForm::Threads => "500, threads",
        };
        let mark = if least > *goal { " missed" } else { "" };
        is_met &= least <= *goal;
        println!("{text:50} {form:12} {hits:6} {least:9.3} {goal:6.1}{mark}");
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
        let before = thread_time()?;
        hits = run()?;
        least = least.min((thread_time()? - before).as_secs_f64() * 1000.0);
    }
    Ok((hits, least))
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
        AnswerForm::Newest => Ok(mail.messages(&newest(500)?)?.len()),
        AnswerForm::Rows => {
            let mut count = 0;
            mail.for_each_message(&newest(usize::MAX)?, &mut |_| count += 1)?;
            Ok(count)
        }
        AnswerForm::Threads => {
            let messages = mail.messages(&search.with_threads(&newest(500)?)?)?;
            let threaded: Vec<ThreadMessage<'_>> = messages
                .iter()
                .map(|message| ThreadMessage {
                    message_id: &message.uid,
                    references: &message.summary.references,
                    date: message.summary.date,
                    subject: &message.summary.subject,
                })
                .collect();
            Ok(order_threads(&threaded, ThreadOrder::Descending).len())
        }
    }
}
