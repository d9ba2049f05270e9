//! An anonymous copy of a log contains none of its texts and has the same figures.

use crate::generated_log;
use crate::query_log::{log, report};
use larder_measure::query_log::{QueryLogReport, anonymise, render_html};
use larder_query::Kind;
use proptest::prelude::*;

fn anonymous(log: &str) -> String {
    let mut out = Vec::new();
    anonymise(&mut log.as_bytes(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the queries of one log after anonymisation, in order.
fn anonymous_queries(queries: &[&str]) -> Vec<String> {
    let line = |query: &&str| {
        let query = serde_json::Value::from(*query);
        log("1 2 query client=tool collection=null").replace("\"(word)\"", &query.to_string())
    };
    let log: String = queries.iter().map(line).collect();
    let line = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["query"].as_str().unwrap().to_string()
    };
    anonymous(&log).lines().map(line).collect()
}

#[test]
fn the_names_of_kinds_are_kept() {
    for kind in Kind::all() {
        let query = format!("(kind \"{}\")", kind.name());
        assert_eq!(anonymous_queries(&[&query]), [query.as_str()]);
    }
}

#[test]
fn the_form_of_a_query_is_kept() {
    // The client is the first text of the log, so its token is `client1`.
    let check = |query: &str, expect: &str| assert_eq!(anonymous_queries(&[query]), [expect]);
    check(r#"(contains "any" "anna")"#, r#"(contains "any" "t2")"#);
    check(
        r#"(contains "x-evolution-any-field" "anna")"#,
        r#"(contains "x-evolution-any-field" "t2")"#,
    );
    check(r#"(exists "X-SECRET-PLAN")"#, r#"(exists "t2")"#);
    check(r#"(is "my own words" "x")"#, r#"(is "t2" "t3")"#);
    check(r#"(is "t1" "x")"#, r#"(is "t2" "t3")"#);
    check(r#"(is "email" "email")"#, r#"(is "email" "t2")"#);
    check(
        r#"(and (is "full_name" "a b") (not (word "a b")) (uids "a b" "c"))"#,
        r#"(and (is "full_name" "t2") (not (word "t2")) (uids "t2" "t3"))"#,
    );
    check(
        r#"(occur-in-time-range? (make-time "20260301T000000Z") (time-add-day (time-now) 12) "Europe/Prague")"#,
        r#"(occur-in-time-range? (make-time "20260301T000000Z") (time-add-day (time-now) 12) "t2")"#,
    );
    check(r#"(make-time "Anna's birthday")"#, r#"(make-time "t2")"#);
    check(r#"(= (number "priority") 5)"#, r#"(= (number "priority") 5)"#);
    check(r#"(= (number "priority") 420123456789)"#, r#"(= (number "priority") t2)"#);
    check(r#"(kind "event")"#, r#"(kind "event")"#);
    check(r#"(eqphone "phone" "+43 1 5861210" "AT")"#, r#"(eqphone "phone" "t2" "t3")"#);
    check(r#"(has-categories? #t "Private")"#, r#"(has-categories? #t "t2")"#);
    check(r#"(is "calendar:summary" "")"#, r#"(is "calendar:summary" "t2")"#);
    check("#t", "#t");
    check("", "t2");
    check("anna schmidt", "t2");
    check("(anna", "t2");
    check("anna)", "t2");
    check(r#"(is "email" "anna"#, "t2");
    check("(anna schmidt)", "(t2 t3)");
    check(r#"(word "a\"b\\")"#, r#"(word "t2")"#);
    check(r#"(word "a")word "anna""#, r#"(word "t2")t3 "t4""#);
    check("(word\u{a0}\"żółć\")", "(word\u{a0}\"t2\")");
}

#[test]
fn equal_texts_have_equal_tokens() {
    let same =
        [r#"(word "a\"b")"#, "a\"b", r#"(uids "x" "a\"b")"#, r#"(word "a\b")"#, r#"(word "ab")"#];
    assert_eq!(
        anonymous_queries(&same),
        [r#"(word "t2")"#, "t2", r#"(uids "t3" "t2")"#, r#"(word "t4")"#, r#"(word "t5")"#]
    );
}

#[test]
fn only_known_fields_are_kept() {
    let check = |line: &str, expect: &str| assert_eq!(anonymous(line).trim_end(), expect, "{line}");
    check(
        r#"{"at_us":1,"pid":2,"event":"open","view":5,"client":"Anna's tool","query":"(word \"x\")","kind":"event","collection":"Divorce","backend":"local","origin":"executed","answer":17,"rows_read":2000,"verified":40,"returned":31,"us":134,"bytes":496,"host":"annas-laptop"}"#,
        r#"{"at_us":1,"pid":2,"event":"open","view":5,"client":"client1","query":"(word \"t2\")","kind":"event","collection":"collection3","backend":"local","origin":"executed","answer":17,"rows_read":2000,"verified":40,"returned":31,"us":134,"bytes":496}"#,
    );
    check(
        r#"{"at_us":1,"pid":2,"event":"change","seq":812,"batches":1,"items":3,"kinds":[["Divorce","event"],["Divorce","secret"],[null,null]],"tested":4,"notified":2,"us":80}"#,
        r#"{"at_us":1,"pid":2,"event":"change","seq":812,"batches":1,"items":3,"kinds":[["collection1","event"],["collection1","kind2"],[null,null]],"tested":4,"notified":2,"us":80}"#,
    );
    check(
        r#"{"at_us":1,"pid":2,"event":"start","version":"0.6.0","budget":7,"path":"/home/anna"}"#,
        r#"{"at_us":1,"pid":2,"event":"start","version":"0.6.0","budget":7}"#,
    );
    check(
        r#"{"at_us":1,"pid":2,"event":"start","version":"of Anna","budget":7}"#,
        r#"{"at_us":1,"pid":2,"event":"start","budget":7}"#,
    );
    check(
        r#"{"at_us":1,"pid":2,"event":"reset","client":"a","view":5,"seq":8,"reason":"zones","returned":31,"us":200}"#,
        r#"{"at_us":1,"pid":2,"event":"reset","client":"client1","view":5,"seq":8,"reason":"zones","returned":31,"us":200}"#,
    );
    check(
        r#"{"at_us":1,"pid":2,"event":"close","client":"a","view":5}"#,
        r#"{"at_us":1,"pid":2,"event":"close","client":"client1","view":5}"#,
    );
    check(
        r#"{"at_us":1,"pid":2,"event":"evict","answer":17,"reason":"stale","bytes":496}"#,
        r#"{"at_us":1,"pid":2,"event":"evict","answer":17,"reason":"stale","bytes":496}"#,
    );
    check(r#"{"at_us":1,"pid":2,"event":"end"}"#, r#"{"at_us":1,"pid":2,"event":"end"}"#);
    check(r#"{"at_us":1,"pid":2,"event":"said","text":"Anna"}"#, "");
    check("Anna", "");
}

/// Returns the report without its texts.
fn figures(it: &QueryLogReport) -> QueryLogReport {
    let mut it = it.clone();
    let clear_text = |text: &mut String| text.clear();
    let clear_query = |it: &mut larder_measure::query_log::LoggedQuery| {
        it.query.clear();
        it.collection = it.collection.as_ref().map(|_| String::new());
    };
    it.reuse.most_frequent.iter_mut().for_each(|it| clear_query(&mut it.query));
    it.reuse.clients.iter_mut().for_each(|it| clear_text(&mut it.client));
    let lifetimes = &mut it.lifetimes;
    for life in lifetimes.unclosed.iter_mut().chain(&mut lifetimes.longest) {
        clear_text(&mut life.client);
        clear_query(&mut life.query);
    }
    lifetimes.clients.iter_mut().for_each(|it| clear_text(&mut it.client));
    for cost in &mut it.cost.collections {
        cost.collection = cost.collection.as_ref().map(|_| String::new());
        clear_query(&mut cost.group.slowest_query);
    }
    it.cost.backends.iter_mut().for_each(|group| clear_query(&mut group.slowest_query));
    it.cost.costliest.iter_mut().for_each(|it| clear_query(&mut it.query));
    for group in &mut it.fan_out.collections {
        group.collection = group.collection.as_ref().map(|_| String::new());
    }
    it
}

#[test]
fn every_figure_is_unchanged() {
    let day = generated_log::day();
    let copy = anonymous(&day);
    assert_eq!(figures(&report(&copy)), figures(&report(&day)));
    // Neither the copy nor its HTML report contains a text of the log.
    let html = render_html(("x", &report(&copy)), None, &|_| 0);
    for text in [copy, html] {
        for word in
            ["panel-clock", "phone-sync", "Archive", "Friends", "schmidt", "novak", "greeter"]
        {
            assert!(!text.contains(word), "{word}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Different queries have different copies, and no copy contains a text of its query.
    #[test]
    fn different_queries_stay_different(
        queries in prop::collection::btree_set(r#"\(?(word|is|kind|uids|x)? ?"?[tx"\\]{0,3}[0-9]?"? ?\)?"#, 2..12),
        secret in "[a-z]{12}",
    ) {
        let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
        let mut copies = anonymous_queries(&queries);
        copies.sort_unstable();
        copies.dedup();
        prop_assert_eq!(copies.len(), queries.len(), "{:?}", queries);
        for form in ["(word \"S\")", "(S)", "S", "(is \"email\" \"S\")", "(word \"S", "#t S", "(and S)"] {
            let query = form.replace('S', &secret);
            prop_assert!(!anonymous_queries(&[&query])[0].contains(&secret), "{}", query);
        }
    }
}
