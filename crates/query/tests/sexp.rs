//! S-expressions as evolution-data-server's clients send them.

use crate::book::{search_request, small, uids};
use larder_query::Query;

#[test]
fn expressions_are_parsed_into_queries() {
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
    check(r#"(contains "no name" "x")"#, r#"(contains "x-larder-no-field" "x")"#);
    check(r#"(contains "" "x")"#, r#"(contains "x-larder-no-field" "x")"#);
    // A name that is not a field is a property.
    check(r#"(contains "Full_Name" "x")"#, r#"(contains "Full_Name" "x")"#);
    check(r#"(contains "X-FOO" "x")"#, r#"(contains "X-FOO" "x")"#);
    check(r#"(exists_vcard "full_name")"#, r#"(exists_vcard "full_name")"#);
    check(r#"(is "book_uid" "x")"#, r#"(is "X-EVOLUTION-BOOK-UID" "x")"#);
    check(r#"(is "im_aim_home_2" "x")"#, r#"(is "im_aim" "x")"#);
    check(r#"(eqphone "phone" "1" "AT")"#, r#"(eqphone "phone" "1" "AT")"#);
    check(r#"(eqphone "phone" "1" "at_AT")"#, r#"(eqphone "phone" "1")"#);
    check(r#"(is "email" "a" "AT")"#, r#"(is "email" "a")"#);
    check(r#"(regex_raw "email" "a\\.b")"#, r#"(regex_raw "email" "a\\.b")"#);
    check(r#"(is "list" "1")"#, r#"(is "list" "1")"#);
    check(r#"(is "list" "0")"#, r#"(and (kind "contact") (not (is "list" "1")))"#);
    check(r#"(uids)"#, "(uids)");
    check(r#"(uids "b" "a" "b")"#, r#"(uids "a" "b")"#);
    // The outermost call without its parentheses.
    check(r#"exists "email""#, r#"(exists "email")"#);
    check(r#"and (exists "email") #t"#, r#"(and (exists "email") #t)"#);
    check(r#"(not (or (word "a") #f))"#, r#"(not (or (word "a") (or)))"#);
    check(r#"(and #t (not #t))"#, "(and #t (not #t))");
    check(r#"(word "a\"\\\n\r\t\x")"#, r#"(word "a\"\\\n\r\tx")"#);
    check(r#"(word "a") and more"#, r#"(word "a")"#);
}

#[test]
fn invalid_expressions_are_refused() {
    let check = |text: &str, expect: &str| {
        let error = Query::parse_sexp(text).expect_err(text);
        assert_eq!(error.to_string(), format!("{expect} of the query)"), "{text:?}");
    };
    check("anna", "a \"(\" is missing (at character 1");
    check("(", "unknown function \"\" (at character 2");
    check("(like \"a\" \"b\")", "unknown function \"like\" (at character 2");
    check("(AND)", "unknown function \"AND\" (at character 2");
    check("(and", "unclosed \"(\" (at character 1");
    check("(not)", "a \"(\" is missing (at character 5");
    check("(not #t #t)", "unclosed \"(\" (at character 1");
    check("(contains \"a\")", "expected a string in double quotes (at character 14");
    check("(contains a b)", "expected a string in double quotes (at character 11");
    check("(word \"ä", "unclosed string (at character 7");
    check("(word \"ä\\", "unclosed string (at character 7");
    check(
        r#"(or #t (regex_normal "note" "a{2"))"#,
        "the regular expression \"a{2\" cannot be used: unclosed counted repetition (at character 29",
    );
    check(
        r#"(regex_raw "note" "(?=a)b")"#,
        "the regular expression \"(?=a)b\" cannot be used: look-around, including look-ahead and look-behind, is not supported (at character 19",
    );
    check(
        r#"(regex_raw "note" "(a{999}){999}")"#,
        "the regular expression \"(a{999}){999}\" cannot be used: it is too large when compiled (at character 19",
    );
    check(
        &format!("(or{})", " (and)".repeat(70_000)),
        "more than 65536 functions in one query (at character 393216",
    );
    check(
        &format!("(uids {})", "\"\"".repeat(300_000)),
        "more than 262144 UIDs in one query (at character 524295",
    );
    check(&"(not ".repeat(300), "the parentheses are nested too deeply (at character 1286");
    let hint = Query::parse_sexp("(like)").expect_err("no function").hint.unwrap_or_default();
    assert!(hint.contains("contains") && hint.contains("endswith"), "{hint:?}");
}

#[test]
fn expressions_find_contacts() {
    let book = small();
    let reader = book.reader();
    let check = |text: &str, expect: &[&str]| {
        assert_eq!(
            uids(&reader, &search_request(Query::parse_sexp(text).unwrap())),
            expect,
            "{text:?}"
        );
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
    check(r#"(beginswith "family_name" "stra")"#, &["Straße"]);
    check(r#"(endswith "url" "/~ivan")"#, &["ivan"]);
}

#[test]
fn many_uids_are_parsed_as_one_set() {
    let book = small();
    let reader = book.reader();
    let some: Vec<String> = (0..30_000).map(|n| format!("(is \"id\" \"u{n}\")")).collect();
    let check = |text: &str, shape: &str, expect: &[&str]| {
        let request = search_request(Query::parse_sexp(text).unwrap());
        assert!(request.query.to_string().starts_with(shape), "{:.80}", request.query.to_string());
        assert_eq!(uids(&reader, &request), expect);
        let explain = larder_query::find(&reader, &request).unwrap().explain;
        assert!(explain.verified <= 3, "{:?}", explain.plan);
    };
    let some = some.join(" ");
    check(&format!("(or {some} (is \"id\" \"bob\"))"), "(uids \"bob\" \"u0\"", &["bob"]);
    check(&format!("(or {some} (is \"id\" \"Straße\"))"), "(uids", &["Straße"]);
    check(
        &format!("(or {some} (contains \"nickname\" \"annie\") (is \"id\" \"bob\"))"),
        "(or (contains \"nickname\" \"annie\") (uids \"bob\"",
        &["anna", "bob"],
    );
    check(r#"(uids "bob" "no\"body" "strasse")"#, "(uids", &["bob"]);
    check("(uids)", "(uids)", &[]);
}
