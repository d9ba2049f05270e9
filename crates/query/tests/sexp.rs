//! S-expressions as evolution-data-server's clients send them.

use crate::book::{ask, small, uids};
use larder_query::Query;

#[test]
fn expressions_and_what_they_mean() {
    let check = |text: &str, expect: &str| {
        let query = Query::parse_sexp(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(query.to_string(), expect, "{text:?}");
    };
    check("", "#t");
    check("  ", "#t");
    check("#t", "#t");
    check("#f", "(or)");
    check("(and)", "(and)");
    check("( contains \"full_name\"\n\"anna\" )", r#"(contains "full_name" "anna")"#);
    check(r#"(is "id" "x")"#, r#"(is "uid" "x")"#);
    check(r#"(beginswith "file_as" "a")"#, r#"(beginswith "file_as" "a")"#);
    check(r#"(endswith "email" "a")"#, r#"(endswith "email" "a")"#);
    check(r#"(exists "phone")"#, r#"(exists "phone")"#);
    check(r#"(exists "x-evolution-any-field")"#, r#"(exists "x-evolution-any-field")"#);
    check(r#"(contains "nonsense" "x")"#, r#"(contains "x-larder-no-field" "x")"#);
    check(r#"(contains "Full_Name" "x")"#, r#"(contains "x-larder-no-field" "x")"#);
    check(r#"(not (or (word "a") #f))"#, r#"(not (or (word "a") (or)))"#);
    check(r#"(and #t (not #t))"#, "(and #t (not #t))");
    check(r#"(word "a\"\\\n\r\t\x")"#, r#"(word "a\"\\\n\r\tx")"#);
    check(r#"(word "a") and more"#, r#"(word "a")"#);
}

#[test]
fn expressions_that_mean_nothing() {
    let check = |text: &str, expect: &str| {
        let error = Query::parse_sexp(text).expect_err(text);
        assert_eq!(error.to_string(), format!("{expect} of the query)"), "{text:?}");
    };
    check("anna", "a \"(\" is missing (at character 1");
    check("(", "there is no function \"\" (at character 2");
    check("(like \"a\" \"b\")", "there is no function \"like\" (at character 2");
    check("(AND)", "there is no function \"AND\" (at character 2");
    check("(and", "a \"(\" that is not closed (at character 1");
    check("(not)", "a \"(\" is missing (at character 5");
    check("(not #t #t)", "a \"(\" that is not closed (at character 1");
    check("(contains \"a\")", "a string in double quotes is missing (at character 14");
    check("(contains a b)", "a string in double quotes is missing (at character 11");
    check("(word \"ä", "a string that is not closed (at character 7");
    check("(word \"ä\\", "a string that is not closed (at character 7");
    check(&"(not ".repeat(300), "nested too deeply (at character 1286");
    let hint = Query::parse_sexp("(like)").expect_err("no function").hint.unwrap_or_default();
    assert!(hint.contains("contains") && hint.contains("endswith"), "{hint:?}");
}

#[test]
fn whom_expressions_find() {
    let book = small();
    let reader = book.reader();
    let check = |text: &str, expect: &[&str]| {
        assert_eq!(uids(&reader, &ask(Query::parse_sexp(text).unwrap())), expect, "{text:?}");
    };
    check(r#"(and (contains "full_name" "anna") (exists "email"))"#, &["anna"]);
    check(r#"(contains "x-evolution-any-field" "jabber")"#, &["Straße"]);
    check(r#"(contains "x-evolution-any-field" "大学")"#, &["wang"]);
    check(r#"(exists "nonsense")"#, &[]);
    check(
        r#"(not (exists "nonsense"))"#,
        &["anna", "bob", "wang", "ivan", "ali", "istanbul", "Straße", "club"],
    );
    check("(or)", &[]);
    check(r#"(is "full_name" "BOB O'BRIEN")"#, &["bob"]);
    check(r#"(is "full_name" "")"#, &[]);
    check(r#"(contains "title" "")"#, &["bob"]);
    check(r#"(beginswith "family_name" "stra")"#, &["Straße"]);
    check(r#"(endswith "url" "/~ivan")"#, &["ivan"]);
}
