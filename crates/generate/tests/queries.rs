//! The generated queries: their kinds, and the agreement of both syntaxes.

use larder_generate::{write_calendar, write_queries};
use std::collections::HashMap;

fn lines(n: u64, component_count: u64, seed: u64) -> String {
    let mut bytes = Vec::new();
    write_queries(n, component_count, seed, false, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn equal_arguments_give_equal_queries() {
    assert_eq!(lines(423, 1_275, 1), lines(423, 1_275, 1));
    assert_ne!(lines(423, 1_275, 1), lines(423, 1_275, 2));
    assert!(lines(423, 1_275, 1).starts_with(&lines(40, 1_275, 1)));
    assert_eq!(lines(0, 0, 1), "");
}

#[test]
fn the_kinds_are_as_documented() {
    let (n, text) = (10_000, lines(10_000, 500, 3));
    let mut kinds: HashMap<&str, u64> = HashMap::new();
    for line in text.lines() {
        let [kind, line, sexp] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        *kinds.entry(kind).or_default() += 1;
        assert!(!line.is_empty() && sexp.starts_with('(') && sexp.ends_with(')'), "{line} {sexp}");
    }
    for (kind, share) in [
        ("day", 25),
        ("week", 20),
        ("month", 20),
        ("list", 10),
        ("alarms", 10),
        ("words", 10),
        ("uid", 5),
    ] {
        assert!(kinds[kind].abs_diff(n * share / 100) < n / 100, "{} {kind}", kinds[kind]);
    }
}

#[test]
fn both_syntaxes_have_the_same_time_range() {
    for line in lines(2_000, 1_275, 4).lines() {
        let [kind, line, sexp] = line.split('\t').collect::<Vec<_>>()[..] else { panic!() };
        let times: Vec<&str> = sexp.split('"').skip(1).step_by(2).collect();
        let days = line.trim_start_matches("when:").replace('-', "");
        match (kind, &times[..]) {
            ("day" | "alarms" | "week" | "list" | "month", [from, to]) => {
                assert!(from.starts_with(&days[..6]) && from < to, "{line} {sexp}");
                assert!(from.ends_with("T000000Z") && to.ends_with("T000000Z"), "{sexp}");
                assert!(line.starts_with("when:") != (kind == "alarms"), "{line}");
            }
            ("words", [field, word]) => assert_eq!((*field, *word), ("any", line)),
            ("uid", [uid]) => assert_eq!(line, format!("uid:={uid}")),
            _ => panic!("{kind} {line} {sexp}"),
        }
    }
}

#[test]
fn uids_are_in_the_calendar() {
    let mut text = Vec::new();
    write_calendar(300, 5, false, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut number = 0;
    for line in lines(2_000, 300, 5).lines().filter(|line| line.starts_with("uid\t")) {
        let uid = line.rsplit('"').nth(1).unwrap();
        assert!(text.contains(&format!("\r\nUID:{uid}\r\n")), "{line}");
        number += 1;
    }
    assert!(number > 50);
}
