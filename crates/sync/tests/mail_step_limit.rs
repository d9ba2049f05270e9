//! Searches for messages that would take too long: each ends within its budget, with an error that
//! names a term.

use crate::mailbox::Mailbox;
use larder_query::{Error, MailQuery, MailQueryContext, MailSearch, UserLocale};

/// The budget of the tests; the default is some ten seconds.
const FEW_STEPS: u64 = 8000;

fn run(mailbox: &Mailbox, line: &str, max_work: Option<u64>) -> Result<u64, Error> {
    let query = MailQuery::parse(line, &MailQueryContext::from(&UserLocale::default())).unwrap();
    let reader = mailbox.store.open_reader().unwrap();
    let mail = reader.mail().unwrap();
    let words = mail.words();
    let mut search = MailSearch::open(&mail, &words).unwrap();
    if let Some(max_work) = max_work {
        search = search.with_max_work(max_work);
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
        ("subject:/no[t]e/", "/no[t]e/", 40),
        ("msgid:/m1.*/", "/m1.*/", 11),
        ("header:message-id:/m1.*/", "/m1.*/", 11),
    ] {
        assert_eq!(run(&mailbox, line, None).unwrap(), count, "{line}");
        let few = if line.starts_with('*') { 2000 } else { FEW_STEPS };
        match run(&mailbox, line, Some(few)) {
            Err(Error::MailWorkLimit { term: found }) => {
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

/// Alternatives that are too short for trigrams are looked for in one reading of the dictionary.
#[test]
fn alternatives_of_a_pattern_take_no_further_reading() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..40);
    mailbox.sync();
    let absent = "zq|qj|jv|vk|kz|xj|bq|gz|hq|pj|yk|fv";
    for (pattern, count) in
        [("/zq/", 0), (&*format!("/{absent}/"), 0), (&*format!("/{absent}|d1/"), 11)]
    {
        assert_eq!(run(&mailbox, pattern, None).unwrap(), count, "{pattern}");
    }
    let few = 4000;
    for pattern in ["/zq/", &format!("/{absent}/")] {
        assert_eq!(run(&mailbox, pattern, Some(few)).unwrap(), 0, "{pattern}");
    }
}

/// A search for the newest message stops early; a plan counts the messages of each part.
#[test]
fn what_is_found_can_be_explained() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..40);
    mailbox.sync();
    let reader = mailbox.store.open_reader().unwrap();
    let mail = reader.mail().unwrap();
    let words = mail.words();
    let others: Vec<String> = (0..8).map(|number| format!("word{number}")).collect();
    let line = format!("(common or {}) (common or *d1*)", others.join(" or "));
    let query = MailQuery::parse(&line, &MailQueryContext::from(&UserLocale::default())).unwrap();
    let (mut explained, mut uncounted) = (0, 0);
    for max_work in (1000..120_000).step_by(2000) {
        let search = MailSearch::open(&mail, &words).unwrap().with_max_work(max_work);
        let found = search.find_newest(&query, 1);
        match search.explain(&query) {
            Ok(plan) => {
                explained += 1;
                let lines = plan.plan.iter().filter(|line| line.ends_with("to be counted"));
                uncounted += lines.count();
                assert_eq!(plan.plan.len(), 14, "{:#?}", plan.plan);
                assert_eq!(plan.matched.unwrap_or(40), 40, "{max_work}");
            }
            Err(error) => assert!(found.is_err(), "{max_work}: {error}"),
        }
    }
    assert!(explained > 10 && uncounted > 5, "{explained} {uncounted}");
}

/// Each part around an expensive one would look it up again.
#[test]
fn nothing_is_counted_after_the_end_of_the_budget() {
    let mut mailbox = Mailbox::new();
    mailbox.write_numbered("cur", 0..40);
    mailbox.sync();
    let reader = mailbox.store.open_reader().unwrap();
    let mail = reader.mail().unwrap();
    let words = mail.words();
    let line = format!("{}*d1*{} common", "(word1 or (common ".repeat(20), "))".repeat(20));
    let query = MailQuery::parse(&line, &MailQueryContext::from(&UserLocale::default())).unwrap();
    let mut ended = 0;
    for max_work in (10_000..400_000).step_by(10_000) {
        let search = MailSearch::open(&mail, &words).unwrap().with_max_work(max_work);
        let Ok(plan) = search.explain(&query) else { continue };
        let is_counted = |line: &&String| !line.ends_with("to be counted");
        // The first line is that of the query, which has a budget of its own.
        let parts = plan.plan.get(1..).unwrap();
        let counted = parts.iter().take_while(is_counted).count();
        assert_eq!(parts.iter().filter(is_counted).count(), counted, "{max_work}: {parts:#?}");
        ended += usize::from(counted > 0 && counted < parts.len());
    }
    assert!(ended > 3, "{ended}");
}

#[test]
fn values_of_headers_are_tested_within_the_budget() {
    let mut mailbox = Mailbox::new();
    for number in 0..20 {
        let text = crate::mailbox::message(&format!("m{number}"), "note", "text");
        let text = format!("X-Test: value {number}\n{text}");
        mailbox.write(format!("cur/{number}.host:2,"), text);
    }
    mailbox.sync();
    for (test, count) in [("value", 20), ("/^value.1/", 11), ("*lue*", 20)] {
        let line = format!("header:x-test:{test}");
        assert_eq!(run(&mailbox, &line, None).unwrap(), count, "{line}");
        match run(&mailbox, &line, Some(FEW_STEPS)) {
            Err(Error::MailWorkLimit { term }) => assert_eq!(term, "header:x-test", "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
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
