//! Searches for messages that would take too long: each ends within its budget, with an error that
//! names a term.

use crate::mailbox::Mailbox;
use larder_query::{Error, MailQuery, MailQueryContext, MailSearch, UserLocale};

/// The budget of the tests; the default is some ten seconds.
const FEW_STEPS: u64 = 8000;

fn run(mailbox: &Mailbox, line: &str, max_steps: Option<u64>) -> Result<u64, Error> {
    let query = MailQuery::parse(line, &MailQueryContext::from(&UserLocale::default())).unwrap();
    let reader = mailbox.store.open_reader().unwrap();
    let mail = reader.mail().unwrap();
    let words = mail.words();
    let mut search = MailSearch::open(&mail, &words).unwrap();
    if let Some(max_steps) = max_steps {
        search = search.with_max_steps(max_steps);
    }
    let count = search.count(&query)?;
    assert_eq!(search.find_newest(&query, usize::MAX)?.len() as u64, count, "{line}");
    Ok(count)
}

#[test]
fn expensive_searches_end_with_an_error_that_names_the_term() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..40);
    mailbox.sync();
    let phrase = format!("\"{}\"", "common ".repeat(2000));
    let nested = format!("{}common{}", "(".repeat(40), " or common)".repeat(40));
    for (line, term, count) in [
        ("*o*", "*o*", 40),
        ("/./", "/./", 40),
        ("*d1*", "*d1*", 11),
        ("*1", "*1", 4),
        ("body:w*", "w*", 40),
        ("\"common w*\"", "w*", 40),
        (&phrase, "common", 0),
        (&nested, "common", 40),
    ] {
        assert_eq!(run(&mailbox, line, None).unwrap(), count, "{line}");
        let few = if line.starts_with('*') { 2000 } else { FEW_STEPS };
        match run(&mailbox, line, Some(few)) {
            Err(Error::MailStepLimit { term: found }) => {
                assert!(found.contains(term) || term.starts_with(&found), "{line}: {found}");
            }
            other => panic!("{line}: {other:?}"),
        }
    }
    assert_eq!(
        run(&mailbox, "/./", Some(100)).unwrap_err().to_string(),
        "the query is too expensive: \"/./\" has to be looked up in too many messages"
    );
}

#[test]
fn the_budget_is_that_of_one_search() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..3);
    mailbox.sync();
    for _ in 0..20 {
        assert_eq!(run(&mailbox, "word1", Some(FEW_STEPS)).unwrap(), 1);
    }
}
