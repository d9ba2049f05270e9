//! `add --kind contact`, and `edit` of contacts with options.

use crate::test_home::{ANNA, Home};
use insta::assert_snapshot;

fn anna(home: &Home) -> String {
    home.run(&["show", "uid:anna-1", "--raw"]).stdout()
}

#[test]
fn fields_of_a_contact_are_set() {
    let home = Home::with_book();
    assert_snapshot!(home.run(&["edit", "uid:anna-1", "--set", "mobile=+49 30 5550007"]).masked_output(), @"
    xdnskgpk  Anna Hölderlin  changed
      phone: +49 30 5550007 (mobile)
    ");
    assert_eq!(anna(&home), ANNA.replace("1234567", "5550007"));
    assert_eq!(home.ok(&["find", "--count", "5550007"]), "1\n");
    home.ok(&["undo"]);
    assert_eq!(anna(&home), ANNA);
    assert_snapshot!(home.run(&["edit", "uid:anna-1", "--phone", "work=5", "--birthday=--11-27", "--org", "Meadow", "--category", "friends"]).masked_output(), @"
    xdnskgpk  Anna Hölderlin  changed
      org: Meadow
      birth_date: --11-27
      phone: +49 30 1234567 (mobile)
      phone: 5 (work)
      categories: friends
    ");
    assert_snapshot!(home.run(&["edit", "uid:anna-1", "--set", "phone=6"]).masked_output(), @r#"
    ! error: the contact has 2 values of phone: choose one
    ! hint: --set "mobile.phone=TEXT" replaces +49 30 1234567
    ! hint: --set "work.phone=TEXT" replaces 5
    exit 2
    "#);
    assert_snapshot!(home.run(&["edit", "uid:anna-1", "--set", "work.phone="]).masked_output(), @"
    xdnskgpk  Anna Hölderlin  changed
      phone: +49 30 1234567 (mobile)
    ");
    assert_snapshot!(home.run(&["edit", "uid:anna-1", "--set", "work.phone="]).masked_output(), @"! note: no changes");
    home.assert_store_is_sound();
}

/// An import finds a changed contact again, although its UID was derived from its former bytes.
#[test]
fn a_changed_contact_without_a_uid_is_not_added_again() {
    let home = Home::with_book();
    let item = &home.json(&["find", "chloe"])[0];
    let (id, uid) = (item["id"].as_str().unwrap(), item["uid"].as_str().unwrap());
    home.ok(&["edit", id, "--phone", "5550007"]);
    let card = home.run(&["show", id, "--raw"]).stdout();
    assert!(card.starts_with(&format!("BEGIN:VCARD\r\nVERSION:2.1\r\nUID:{uid}\r\nN;")), "{card}");
    home.ok(&["export", "contacts", "-o", "all.vcf"]);
    home.ok(&["import", "all.vcf"]);
    assert_eq!(home.ok(&["find", "--count"]), "3\n");
    home.assert_store_is_sound();
}

#[test]
fn wrong_changes_of_a_contact_are_refused() {
    let home = Home::with_book();
    home.ok(&["add", "Lunch 2026-03-05 12:30"]);
    let edit = |option: &str, value: &str| {
        home.run(&["edit", "uid:anna-1", option, value]).masked_output()
    };
    assert_snapshot!(edit("--set", "phoen=1"), @r#"
    ! error: unknown field "phoen"
    ! hint: did you mean phone?
    exit 2
    "#);
    assert_snapshot!(edit("--set", "photo=x"), @r#"
    ! error: field "photo" of a contact cannot be set
    ! hint: to change the card in an editor: larder edit uid:anna-1
    exit 2
    "#);
    assert_snapshot!(edit("--set", "work=1"), @r#"
    ! error: "work" is a label of several fields
    ! hint: write work.phone, work.email, work.address or work.url
    exit 2
    "#);
    assert_snapshot!(edit("--email", "anna"), @r#"
    ! error: "anna" is not a valid email: use an address such as anna@example.org
    exit 2
    "#);
    assert_snapshot!(edit("--start", "tomorrow"), @r#"
    ! error: the options for events, tasks and memos cannot change contacts
    ! hint: use --set FIELD=TEXT, for example --set mobile=NUMBER, or the options under "Contacts" of `larder edit --help`
    exit 2
    "#);
    assert_eq!(anna(&home), ANNA);
    let id = home.json(&["find", "lunch"])[0]["id"].as_str().unwrap().to_string();
    assert_snapshot!(home.run(&["edit", &id, "--phone", "1"]).masked_output(), @r#"
    ! error: --phone cannot change events
    ! hint: the options under "Contacts" of `larder edit --help` change contacts
    exit 2
    "#);
}

#[test]
fn a_contact_is_added_with_options() {
    let home = Home::new();
    let added = home.run(&[
        "add",
        "--kind",
        "contact",
        "Anna Berger",
        "--phone",
        "mobile=+43 664 1234567",
        "--email",
        "anna@example.org",
        "--org",
        "ACME, Inc.",
        "--birthday",
        "1980-05-03",
        "--category",
        "a",
    ]);
    let output = added.masked_output();
    let rows: Vec<&str> = output.lines().skip(1).map(str::trim).collect();
    assert_eq!(
        rows,
        [
            "org: ACME, Inc.",
            "birth_date: 1980-05-03",
            "phone: +43 664 1234567 (mobile)",
            "email: anna@example.org",
            "categories: a",
        ],
        "{output}"
    );
    let item = &home.json(&["find", "berger"])[0];
    assert_eq!(item["collection"], "contacts");
    let card = home.run(&["show", "--raw", item["id"].as_str().unwrap()]).stdout();
    assert!(card.contains("\r\nFN:Anna Berger\r\nN:Berger;Anna;;;\r\n"), "{card}");
    assert!(card.contains("\r\nTEL;TYPE=CELL:+43 664 1234567\r\n"), "{card}");
    home.ok(&["undo"]);
    assert_eq!(home.run(&["find", "--count"]).stdout(), "0\n");
    home.assert_store_is_sound();
}

/// An option that does not fit the kind is never ignored.
#[test]
fn options_of_another_kind_are_refused() {
    let home = Home::new();
    assert_snapshot!(home.run(&["add", "Lunch tomorrow 12:30", "--phone", "1"]).masked_output(), @"
    ! error: --phone is an option of contacts
    ! hint: to add a contact: larder add --kind contact NAME
    exit 2
    ");
    assert_snapshot!(home.run(&["add", "--kind", "contact", "Anna", "--location", "Wien"]).masked_output(), @"
    ! error: --location is an option of events, tasks and memos
    ! hint: `larder add --help` lists the options of contacts
    exit 2
    ");
    assert_snapshot!(home.run(&["add", "--kind", "contact", "--phone", "1"]).masked_output(), @r#"
    ! error: a contact needs a name: full_name cannot be empty
    ! hint: for example: larder add --kind contact "Anna Berger"
    exit 2
    "#);
}

/// Neither a repeated option nor the same field in `--set` overwrites the other text.
#[test]
fn a_repeated_option_adds_a_value() {
    let home = Home::with_book();
    assert_snapshot!(home.run(&["edit", "uid:anna-1", "--phone", "mobile=111111", "--phone", "mobile=222222", "--set", "cell=333333"]).masked_output(), @"
    xdnskgpk  Anna Hölderlin  changed
      phone: 333333 (mobile)
      phone: 111111 (mobile)
      phone: 222222 (mobile)
    ");
    assert_snapshot!(home.run(&["edit", "uid:anna-1", "--set", "note=x", "--set", "note=y", "--note", "z"]).masked_output(), @"
    ! error: note is set twice: leave out one of the values
    exit 2
    ");
    assert_snapshot!(home.run(&["edit", "uid:anna-1", "--category", "a,b", "--category", "c"]).masked_output(), @"
    xdnskgpk  Anna Hölderlin  changed
      categories: a,b
      categories: c
    ");
    assert!(anna(&home).contains("\r\nCATEGORIES:a\\,b,c\r\n"));
    home.assert_store_is_sound();
}

#[test]
fn a_new_contact_has_the_categories_of_the_options() {
    let home = Home::new();
    home.ok(&["add", "--kind", "contact", "Berger, Anna", "--category", "a,b", "--category", "c"]);
    let raw = home.run(&["find", "anna", "--format", "raw"]).stdout();
    assert!(raw.contains("\r\nCATEGORIES:a\\,b,c\r\n"), "{raw}");
    let id = home.json(&["find", "anna"])[0]["id"].as_str().unwrap().to_string();
    home.ok(&["edit", &id, "--set", "family_name=Huber"]);
    assert!(home.ok(&["find", "anna"]).contains("Huber, Anna"));
    assert_snapshot!(home.run(&["add", "--kind", "contact", "Anna", "--name", "Berta"]).masked_output(), @"
    ! error: full_name is set twice: leave out one of the values
    exit 2
    ");
}
