//! `measure browse`: a load of views, none of which stays open.

use crate::test_home::Home;

#[test]
fn a_calendar_is_paged_back() {
    let home = Home::new();
    home.generate_calendar("calendar.ics", 200, 1);
    home.ok(&["import", "calendar.ics"]);
    let browse = ["measure", "browse", "--months", "3", "--toggle", "4", "--repeat", "2"];
    let told = home.ok(&[&browse[..], &["--html", "page.html"]].concat());
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(
        lines[0],
        "A calendar paged back 3 months in five kinds of views, and the present month opened and closed \
         4 times by another client each; all that twice"
    );
    assert!(lines[1].starts_with("38 views opened, "), "{told}");
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

/// Eight hours are simulated; the panel's views stay open throughout.
#[test]
fn a_working_day() {
    let home = Home::new();
    home.generate_calendar("calendar.ics", 200, 1);
    home.generate("cards.vcf", 50, 1);
    home.ok(&["import", "calendar.ics", "cards.vcf"]);
    let told = home.ok(&["measure", "browse", "--day"]);
    assert!(told.starts_with("A working day\n"), "{told}");
    assert!(
        told.contains(
            "
at most 4 open at once, 0 left open
"
        ),
        "{told}"
    );
}

#[test]
fn without_a_store() {
    let home = Home::new();
    home.code(&["measure", "browse"], 1);
}
