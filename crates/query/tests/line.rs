//! Search lines: the query of each line, the errors of invalid lines, and the contacts that they
//! find.

use crate::book::{Book, card, search_request, small, uids};
use crate::calendar::component;
use larder_query::Query;

#[test]
fn lines_are_parsed_into_queries() {
    let check = |line: &str, expect: &str| {
        let query = Query::parse(line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        assert_eq!(query.to_string(), expect, "{line:?}");
        assert_eq!(Query::parse_sexp(expect), Ok(query), "{line:?}");
    };
    check("", "#t");
    check("  \t ", "#t");
    check("anna", r#"(word "anna")"#);
    check("anna berg", r#"(and (word "anna") (word "berg"))"#);
    check("anna AND berg", r#"(and (word "anna") (word "berg"))"#);
    check("anna or berg Or c", r#"(or (word "anna") (word "berg") (word "c"))"#);
    check("a b or c", r#"(or (and (word "a") (word "b")) (word "c"))"#);
    check("a (b or c)", r#"(and (word "a") (or (word "b") (word "c")))"#);
    check("(a)", r#"(word "a")"#);
    check("()", "#t");
    check("-anna", r#"(not (word "anna"))"#);
    check("not anna", r#"(not (word "anna"))"#);
    check("not -anna", r#"(not (not (word "anna")))"#);
    check("-(a b)", r#"(not (and (word "a") (word "b")))"#);
    check("-", r#"(word "-")"#);
    check("a - b", r#"(and (word "a") (word "-") (word "b"))"#);
    check("o'brien-smith", r#"(word "o'brien-smith")"#);
    check(r#""or""#, r#"(word "or")"#);
    check(r#""not anna""#, r#"(word "not anna")"#);
    check(r#""a \"b\" \\ \c""#, r#"(word "a \"b\" \\ \\c")"#);
    check(r#""a"b"#, r#"(and (word "a") (word "b"))"#);
    check("12:30", r#"(word "12:30")"#);
    check("https://example.org/?a:b", r#"(word "https://example.org/?a:b")"#);
    check(":x", r#"(word ":x")"#);
    check("émail:x", r#"(word "émail:x")"#);
    check("list:=0", r#"(and (kind "contact") (not (is "list" "1")))"#);
    check("email:anna", r#"(contains "email" "anna")"#);
    check("E-Mail:anna", r#"(contains "email" "anna")"#);
    check("email:=a@b.example", r#"(is "email" "a@b.example")"#);
    check("email:anna*", r#"(beginswith "email" "anna")"#);
    check("email:*.org", r#"(endswith "email" ".org")"#);
    check("email:*", r#"(exists "email")"#);
    check("email:", r#"(exists "email")"#);
    check("email:\"\"*", r#"(exists "email")"#);
    check("note:=", r#"(is "note" "")"#);
    check("note:~^b.d$", r#"(regex_normal "note" "^b.d$")"#);
    check(r#"note:~"a (b|c)""#, r#"(regex_normal "note" "a (b|c)")"#);
    check("note:\"~a\"", r#"(contains "note" "~a")"#);
    check("X-Foo:bar", r#"(contains "X-Foo" "bar")"#);
    check("x-foo:=bar", r#"(is "x-foo" "bar")"#);
    check("has:X-FOO", r#"(exists "X-FOO")"#);
    check("uid:a", r#"(contains "uid" "a")"#);
    check("uid:b,a,b,", r#"(uids "a" "b")"#);
    check("uid:=a,b", r#"(is "uid" "a,b")"#);
    check("uid:\"a,b\"", r#"(contains "uid" "a,b")"#);
    check("uid:,", "(uids)");
    let many: Vec<String> = (10..40).map(|n| format!("uid:={n}")).collect();
    check(
        &many.join(" or "),
        &format!("(uids{})", (10..40).map(|n| format!(" \"{n}\"")).collect::<String>()),
    );
    // Seven or more digits are a phone number.
    check(
        "0664/1234567",
        r#"(or (word "0664/1234567") (eqphone_national "phone" "0664/1234567"))"#,
    );
    check(
        "-+436641234567",
        r#"(not (or (word "+436641234567") (eqphone_national "phone" "+436641234567")))"#,
    );
    check(
        "mobile:=1234567",
        r#"(or (is "mobile_phone" "1234567") (eqphone_national "mobile_phone" "1234567"))"#,
    );
    check(
        "anna 0664 123 45",
        r#"(and (word "anna") (or (and (word "0664") (word "123") (word "45")) (eqphone_national "phone" "0664 123 45")))"#,
    );
    // Punctuation between the digits may stand alone.
    for line in ["0664 / 1234567", "0664 - 123 - 4567"] {
        let words = line.split(' ').filter(|word| word.contains(char::is_numeric));
        let words: String = words.map(|word| format!(r#" (word "{word}")"#)).collect();
        check(line, &format!(r#"(or (and{words}) (eqphone_national "phone" "{line}"))"#));
    }
    check(
        "0664 1234567 / anna",
        r#"(and (or (and (word "0664") (word "1234567")) (eqphone_national "phone" "0664 1234567")) (word "/") (word "anna"))"#,
    );
    check(
        "/ 1234567",
        r#"(and (word "/") (or (word "1234567") (eqphone_national "phone" "1234567")))"#,
    );
    check("0664 \"123\" 45", r#"(and (word "0664") (word "123") (word "45"))"#);
    check("0664 12", r#"(and (word "0664") (word "12"))"#);
    check("12 / 12", r#"(and (word "12") (word "/") (word "12"))"#);
    check("123456", r#"(word "123456")"#);
    check("1970-02-28", r#"(word "1970-02-28")"#);
    check("note:1234567", r#"(contains "note" "1234567")"#);
    check("phone:1234567*", r#"(beginswith "phone" "1234567")"#);
    check(r#"note:"100% wool""#, r#"(contains "note" "100% wool")"#);
    check(r#"note:="blue""#, r#"(is "note" "blue")"#);
    check(r#"note:"blue"*"#, r#"(beginswith "note" "blue")"#);
    check(r#"note:*"blue""#, r#"(endswith "note" "blue")"#);
    // A month of a date, by name or number.
    for month in ["november", "Nov", "11"] {
        check(&format!("birthday:{month}"), r#"(contains "birth_date" "-11-")"#);
    }
    check("birthday:3", r#"(contains "birth_date" "-03-")"#);
    check("birthday:13", r#"(contains "birth_date" "13")"#);
    check("birthday:1980", r#"(contains "birth_date" "1980")"#);
    check("note:november", r#"(contains "note" "november")"#);
    check("has:phone", r#"(exists "phone")"#);
    check("HAS:tel", r#"(exists "phone")"#);
    check("-has:email", r#"(and (kind "contact") (not (exists "email")))"#);
    check("any:anna", r#"(contains "x-evolution-any-field" "anna")"#);
    check("has:any", r#"(exists "x-evolution-any-field")"#);
    check("url:https://example.org", r#"(contains "url" "https://example.org")"#);
}

#[test]
fn invalid_lines_are_refused() {
    let check = |line: &str, expect: &str, hint: &str| {
        let error = Query::parse(line).expect_err(line);
        assert_eq!(error.to_string(), expect, "{line:?}");
        let found = error.hint.unwrap_or_default();
        assert!(found.contains(hint) && found.is_empty() == hint.is_empty(), "{line:?}: {found:?}");
    };
    check("\"anna", "unclosed quote (at character 1 of the query)", "add a \"");
    check("änne \"anna\\", "unclosed quote (at character 6 of the query)", "add a \"");
    check("note:\"anna", "unclosed quote (at character 6 of the query)", "add a \"");
    check("nme:x", "unknown field \"nme\" (at character 1 of the query)", "did you mean name:?");
    check(
        "a has:emial",
        "unknown field \"emial\" (at character 3 of the query)",
        "did you mean email:?",
    );
    check(
        "zzzzzzzz:x",
        "unknown field \"zzzzzzzz\" (at character 1 of the query)",
        "larder fields",
    );
    check("has:x-foo:", "unknown field \"x-foo:\" (at character 1 of the query)", "larder fields");
    check("(a", "unclosed \"(\" (at character 1 of the query)", "add a \")\"");
    check("a)", "unmatched \")\" (at character 2 of the query)", "remove it");
    check(")", "unmatched \")\" (at character 1 of the query)", "remove it");
    check("-)", "a term is missing after the negation (at character 1 of the query)", "add a term");
    check(
        "not",
        "a term is missing after the negation (at character 1 of the query)",
        "add a term",
    );
    check("a or", "\"or\" needs a term on both sides (at character 3 of the query)", "quote it");
    check("or a", "\"or\" needs a term on both sides (at character 1 of the query)", "quote it");
    for line in ["a and", "b and and a", "c and or a", "d AND"] {
        let error = "\"and\" needs a term on both sides (at character 3 of the query)";
        check(line, error, "quote it: \"and\"");
    }
    for line in ["and", "and a", "(and)", "(and) or a", "and and"] {
        let at = 1 + usize::from(line.starts_with('('));
        let error = format!("\"and\" needs a term on both sides (at character {at} of the query)");
        check(line, &error, "quote it");
    }
    for (line, hint) in [("a not or", "quote it: -\"or\""), ("a -AND b", "quote it: -\"and\"")] {
        let error = "a term is missing after the negation (at character 3 of the query)";
        check(line, error, hint);
    }
    check(
        "anna note:~[a",
        "the regular expression \"[a\" cannot be used: unclosed character class (at character 6 of the query)",
        "quote it",
    );
    check(
        &"a ".repeat(20_000),
        "the query has more than 16384 words (at character 32769 of the query)",
        "",
    );
    check(
        &"(".repeat(200),
        "the parentheses are nested too deeply (at character 101 of the query)",
        "",
    );
    check(
        &"not ".repeat(200),
        "the parentheses are nested too deeply (at character 401 of the query)",
        "",
    );
}

#[test]
fn lines_find_contacts() {
    let book = small();
    let reader = book.reader();
    let check = |line: &str, expect: &[&str]| {
        assert_eq!(uids(&reader, &search_request(Query::parse(line).unwrap())), expect, "{line:?}");
    };
    check("", &["anna", "bob", "wang", "ivan", "ali", "istanbul", "Straße", "club"]);
    // Case and accents are ignored.
    check("bergstrom", &["anna"]);
    check("BERGSTRÖM", &["anna"]);
    check("muller", &["anna"]);
    check("ёлкин", &["ivan"]);
    check("елкин", &["ivan"]);
    check("istanbul", &["istanbul"]);
    check("ISIK", &["istanbul"]);
    check("strauss", &["Straße"]);
    // One or two letters match the beginning of a word; Chinese characters match anywhere.
    check("b", &["anna", "bob"]);
    check("o", &["anna", "bob"]);
    check("br", &["bob"]);
    check("小", &["wang"]);
    check("明", &["wang"]);
    check("大学", &["wang"]);
    check("علي", &["ali"]);
    // Three and more letters match anywhere.
    check("rie", &["bob"]);
    check("gstr", &["anna"]);
    // Phone numbers match by their digits, in any notation.
    check("0664", &["bob", "ali"]);
    check("6641234567", &["anna", "bob"]);
    check("\"664 123 45 67\"", &["anna", "bob"]);
    check("+43664", &["anna"]);
    check("٠٦٦٤", &["bob", "ali"]);
    check("phone:6275", &["wang"]);
    check("mobile:664", &["anna"]);
    check("business_phone:10", &["wang"]);
    // Phrases, and characters with a meaning elsewhere.
    check("\"anna berg\"", &["anna"]);
    check("\"anna  berg\"", &[]);
    check("note:100%", &["anna"]);
    check("note:\"\\\"blue\\\"\"", &["anna"]);
    check("o'brien", &["bob"]);
    check("note:wool", &["anna"]);
    // A note; two letters are looked up in names only.
    check("wool", &["anna"]);
    check("wo", &[]);
    check("any:wool", &["anna"]);
    check("any:maxine", &["Straße"]);
    // Whole values, prefixes and suffixes.
    check("email:=anna@example.org", &["anna"]);
    check("email:=anna@example", &[]);
    check("email:bob*", &["bob"]);
    check("email:*.org", &["anna"]);
    check("email:*", &["anna", "bob", "ivan", "club"]);
    check("nickname:=nan", &["anna"]);
    check("category:=arbeit", &["anna"]);
    check("birthday:1970*", &["anna"]);
    check("org_unit:verkauf", &["anna"]);
    check("address:wien", &["Straße"]);
    check("xmpp:jabber", &["Straße"]);
    check("list:=1", &["club"]);
    // A UID is compared exactly.
    check("uid:=Straße", &["Straße"]);
    check("uid:=straße", &[]);
    check("uid:=strasse", &[]);
    check("uid:an*", &["anna"]);
    check("uid:AN*", &[]);
    // An empty value counts as missing.
    check("has:email", &["anna", "bob", "ivan", "club"]);
    check("-has:email", &["wang", "ali", "istanbul", "Straße"]);
    check("has:note", &["anna"]);
    check("has:title or has:birthday", &["anna", "bob"]);
    // Combinations.
    check("example -anna", &["bob", "ivan", "Straße", "club"]);
    check("(bob or 王) has:org", &["wang"]);
    check("bob 王", &[]);
    check("-(example or has:phone)", &["istanbul"]);
}

/// A negated field matches only items of kinds that have the field, also in a negated group.
#[test]
fn negated_fields_are_about_the_kinds_that_have_them() {
    let mut book = Book::with_contacts([card("UID:c\nFN:Anna").as_str()]);
    let event = component("VEVENT\nUID:e\nSUMMARY:Trip\nDTSTART:20260301T100000Z");
    book.put_components("calendar", [event.as_str()]);
    let reader = book.reader();
    let check = |line: &str, expect: &[&str]| {
        let mut found = uids(&reader, &search_request(Query::parse(line).unwrap()));
        found.sort();
        assert_eq!(found, expect, "{line}");
    };
    for line in ["not from:x", "-author:bob", "-path:a", "not date:2026", "-body:x", "not due:"] {
        check(line, &[]);
    }
    for line in ["not org:acme", "-has:nickname", "not not has:full_name", "-(org:acme and org:x)"]
    {
        check(line, &["c"]);
    }
    for line in [
        "not when:2027",
        "not summary:x",
        "not subject:x",
        "not is:recurring",
        "not priority:high",
        "not not summary:trip",
        "-(summary:x or is:recurring)",
    ] {
        check(line, &["e"]);
    }
    check("-(org:acme or trip)", &["c"]);
    check("-(org:acme and summary:x)", &["c", "e"]);
    check("-(org:acme or summary:x)", &[]);
    check("-(from:x and org:acme)", &["c"]);
    check("-(-org:acme or trip)", &[]);
    for line in ["not nothing", "-uid:x", "not is:task", "has:uid or -has:uid", "-(x or y)"] {
        check(line, &["c", "e"]);
    }
}

/// Events and memos have no due time and cannot be done, so a negated test of these is about tasks.
#[test]
fn negated_tests_of_due_times_are_about_tasks() {
    let mut book = Book::with_contacts([card("UID:c\nFN:Anna").as_str()]);
    let event = component("VEVENT\nUID:e\nSUMMARY:Trip\nDTSTART:20260301T100000Z");
    let memo = component("VJOURNAL\nUID:m\nSUMMARY:Notes");
    let open = component("VTODO\nUID:t\nSUMMARY:Paint");
    let done = component("VTODO\nUID:u\nSTATUS:COMPLETED\nDUE:20250301T100000Z");
    book.put_components("calendar", [&event, &memo, &open, &done].map(String::as_str));
    let reader = book.reader();
    let check = |line: &str, expect: &[&str]| {
        let mut found = uids(&reader, &search_request(Query::parse(line).unwrap()));
        found.sort();
        assert_eq!(found, expect, "{line}");
    };
    for line in [
        "not is:done",
        "not is:completed",
        "-due:..2026-12-31",
        "not due:",
        "-has:due",
        "-has:done",
        "-due:=20250301T100000Z",
        "-(is:done or trip)",
    ] {
        check(line, &["t"]);
    }
    for line in ["not is:overdue", "-completed:2026", "not completed:", "-has:percent"] {
        check(line, &["t", "u"]);
    }
    for line in ["not start:2027", "-is:cancelled", "not priority:high"] {
        check(line, &["e", "m", "t", "u"]);
    }
    check("is:done or not is:done", &["t", "u"]);
}
