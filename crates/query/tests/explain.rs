//! What `--explain` says, and that SQLite searches where the plan says so.

use crate::book::{Book, Stale, ask, card, small};
use larder_query::{Explain, Find, Plan, Query, Sort, find};
use larder_store::{Reader, Value};

fn explained(reader: &Reader, line: &str, sort: Option<&str>) -> Explain {
    let sort = sort.map(|sort| Sort::parse(sort).unwrap());
    let asked = Find { sort, ..ask(Query::parse(line).unwrap()) };
    find(reader, &asked).unwrap().explain
}

#[test]
fn plans_in_words_and_what_they_cost() {
    let book = small();
    let reader = book.reader();
    // Visited by the index or the scan, tested by their bytes, matched.
    let check = |line: &str, plan: &str, numbers: [u64; 3]| {
        let explain = explained(&reader, line, None);
        assert_eq!(explain.plan.join("; "), plan, "{line:?}");
        assert_eq!([explain.visited, explain.tested, explain.matched], numbers, "{line:?}");
        assert_eq!(explain.order, "as they came");
        assert_eq!(explain.sql.is_some(), plan.starts_with("idx"));
        assert_eq!(explain.query, Query::parse(line).unwrap().to_string());
    };
    check("", "scan: test every item", [8, 0, 8]);
    check("anna", "idx_text: \"ann\" AND \"nna\"", [1, 1, 1]);
    check("b", "idx_value: a word begins with \"b\"", [2, 2, 2]);
    check("email:=bob@example.com", "idx_value: email is \"bob@example.com\"", [1, 1, 1]);
    check("email:bob*", "idx_value: email begins with \"bob\"", [1, 1, 1]);
    check("has:birthday", "idx_value: has birth_date", [1, 1, 1]);
    // Of what is kept as text only, the presence is kept beside; its text is looked for as text, and so is
    // what lies within another field.
    check("has:title", "idx_value: has title", [1, 1, 1]);
    check("title:join*", "idx_text: \"joi\" AND \"oin\"", [1, 1, 1]);
    check("mobile:=664", "idx_text: \"664\"", [3, 3, 0]);
    check("email_1:=nobody@x", "idx_value: email is \"nobody@x\"", [0, 0, 0]);
    check("has:email", "idx_value: has email", [4, 4, 4]);
    check("anna or bob", "idx_text: (\"ann\" AND \"nna\") OR (\"bob\")", [2, 2, 2]);
    check(
        "anna firma bergs",
        "idx_text: (\"ann\" AND \"nna\") AND (\"fir\" AND \"irm\" AND \"rma\") AND (\"ber\" AND \"erg\" AND \"rgs\")",
        [1, 1, 1],
    );
    // The narrowest part of a conjunction; text is asked for at once.
    check("anna email:=bob@example.com", "idx_value: email is \"bob@example.com\"", [1, 1, 0]);
    check("anna -bob", "idx_text: \"ann\" AND \"nna\"", [1, 1, 1]);
    check("-anna", "scan: test every item", [8, 8, 7]);
    check("photo:x", "scan: test every item", [8, 8, 0]);
    check("anna or -bob", "scan: test every item", [8, 8, 7]);
    check("小", "scan: test every item", [8, 8, 1]);
    let nothing =
        find(&reader, &ask(Query::parse_sexp("(exists \"no name\")").unwrap())).unwrap().explain;
    assert_eq!(
        (nothing.plan, nothing.visited, nothing.tested),
        (vec!["nothing can match".into()], 0, 0)
    );
}

#[test]
fn the_order_in_words() {
    let book = small();
    let reader = book.reader();
    let whole = explained(&reader, "", Some("full_name"));
    assert_eq!(
        (whole.plan.join("; ").as_str(), whole.order.as_str()),
        ("idx_sort: all by full_name", "as the index has it")
    );
    assert_eq!([whole.visited, whole.tested, whole.matched, whole.returned], [8, 0, 8, 8]);
    let some = explained(&reader, "anna", Some("full_name"));
    assert_eq!(some.order, "sort keys of full_name made for each match");
    let other = explained(&reader, "", Some("email"));
    assert_eq!((other.plan.join("; ").as_str(), other.tested), ("scan: test every item", 8));
}

#[test]
fn without_indexes_it_is_a_scan_and_says_so() {
    let (_scratch, reader) = small().with_stale(Stale::ALL);
    let explain = explained(&reader, "anna", Some("full_name"));
    assert_eq!((explain.plan.join("; ").as_str(), explain.tested), ("scan: test every item", 8));
    assert_eq!(explained(&reader, "", Some("full_name")).plan.join("; "), "scan: test every item");
}

#[test]
fn a_large_item_is_always_a_candidate() {
    let long = card(&format!("UID:long\nFN:Long\nNOTE:{}", "word ".repeat(20_000)));
    let book = Book::of([card("UID:anna\nFN:Anna").as_str(), &long]);
    let reader = book.reader();
    let explain = explained(&reader, "anna", None);
    assert_eq!([explain.visited, explain.tested, explain.matched], [2, 2, 1]);
    assert_eq!(explained(&reader, "note:word", None).matched, 1);
}

#[test]
fn sqlite_searches_the_indexes() {
    let book = small();
    let reader = book.reader();
    let check = |line: &str| {
        let query = Query::parse(line).unwrap();
        let Plan::Index { sql, args, steps } = Plan::of(&query, true) else {
            panic!("{line:?}: no index")
        };
        let mut plan = Vec::new();
        reader
            .rows(&format!("EXPLAIN QUERY PLAN {sql}"), &args, &mut |row| {
                plan.push(row.text(3));
                true
            })
            .unwrap();
        let plan = plan.join("\n");
        // The virtual table is always "scanned", by the expression given to it; idx_large holds few rows.
        let scans = plan.lines().filter(|line| {
            line.contains("SCAN") && !line.contains("VIRTUAL TABLE") && !line.contains("idx_large")
        });
        assert_eq!(scans.count(), 0, "{line:?} ({steps:?}):\n{plan}");
        let by_key = plan.contains("SEARCH idx_value USING PRIMARY KEY (field=?");
        assert!(by_key || plan.contains("VIRTUAL TABLE INDEX"), "{line:?}:\n{plan}");
    };
    for line in [
        "a",
        "anna",
        "email:=x",
        "email:x*",
        "has:phone",
        "anna or b",
        "anna bergstrom",
        "a or email:=b",
    ] {
        check(line);
    }
    // By the primary key, the value too.
    let Plan::Index { sql, args, .. } = Plan::of(&Query::parse("email:x*").unwrap(), true) else {
        panic!("no index")
    };
    assert_eq!(args[1..], [Value::Text("x".into()), Value::Text("y".into())]);
    let mut found = false;
    reader
        .rows(&format!("EXPLAIN QUERY PLAN {sql}"), &args, &mut |row| {
            found |= row.text(3).contains("value>? AND value<?");
            true
        })
        .unwrap();
    assert!(found, "{sql}");
    assert_eq!(Plan::of(&Query::All, true), Plan::Scan);
}

#[test]
fn a_sorted_book_is_read_in_the_order_of_its_index() {
    let book = small();
    let reader = book.reader();
    for sort in ["full_name", "-full_name", "file_as"] {
        let sql = explained(&reader, "", Some(sort)).sql.unwrap();
        let mut plan = String::new();
        reader
            .rows(&format!("EXPLAIN QUERY PLAN {sql}"), &[Value::Integer(4)], &mut |row| {
                plan += &row.text(3);
                plan += "\n";
                true
            })
            .unwrap();
        assert!(plan.contains("SEARCH s USING PRIMARY KEY (field=?)"), "{sort}:\n{plan}");
        assert!(!plan.contains("SCAN"), "{sort}:\n{plan}");
    }
}
