//! `measure browse`: opens views and closes all of them.

use crate::test_home::Home;

#[test]
fn a_calendar_is_paged_back() {
    let home = Home::new();
    home.generate_calendar("calendar.ics", 200, 1);
    home.ok(&["import", "calendar.ics"]);
    let browse = ["measure", "browse", "--months", "3", "--reopen", "4", "--repeat", "2"];
    let output = home.ok(&[&browse[..], &["--html", "page.html"]].concat());
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(
        lines[0],
        "A calendar paged back 3 months in five kinds of views, and the current month opened and closed \
         4 times, each time by another client; 2 rounds"
    );
    assert!(lines[1].starts_with("38 views opened, "), "{output}");
    assert_eq!(lines[3], "at most 2 open at once, 0 left open");
    let page = std::fs::read_to_string(home.work("page.html")).unwrap();
    assert!(page.contains("Open views") && page.contains("Anonymous memory"));
    let object: serde_json::Value =
        serde_json::from_str(&home.ok(&[&browse[..], &["--format", "json"]].concat())).unwrap();
    assert_eq!(object["views"], 38);
    assert_eq!(object["left_open"], 0);
    assert_eq!(object["rounds"].as_array().unwrap().len(), 2);
    // One sample before, one after each view, and one after each round.
    let samples = object["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 1 + 38 + 2);
    assert!(samples.iter().all(|sample| sample["anonymous_bytes"].as_u64() > Some(0)));
}

/// The panel's views stay open during the eight simulated hours.
#[test]
fn a_working_day_is_simulated() {
    let home = Home::new();
    home.generate_calendar("calendar.ics", 200, 1);
    home.generate("cards.vcf", 50, 1);
    home.ok(&["import", "calendar.ics", "cards.vcf"]);
    let output = home.ok(&["measure", "browse", "--day"]);
    assert!(output.starts_with("A working day\n"), "{output}");
    assert!(
        output.contains(
            "
at most 4 open at once, 0 left open
"
        ),
        "{output}"
    );
}

#[test]
fn browsing_needs_a_store() {
    let home = Home::new();
    home.code(&["measure", "browse"], 1);
}
