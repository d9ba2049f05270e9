//! `larder find` and `larder show` with contacts: queries and output formats.

use crate::test_home::{ANNA, BRUNO, CHLOE, Home};
use insta::assert_snapshot;

#[test]
fn several_short_options_are_no_negated_term() {
    let home = Home::with_book();
    assert_eq!(home.ok(&["find", "-qn2"]).lines().count(), 2);
    assert_eq!(home.ok(&["find", "-qn", "1", "-anna"]).lines().count(), 1);
    let run = home.code(&["find", "--in", "-foo"], 2);
    assert!(!run.stderr().contains("\"not\""), "{}", run.stderr());
}

/// A limit is that of a list.
#[test]
fn a_count_is_that_of_all_items() {
    let home = Home::with_book();
    assert_eq!(home.ok(&["find", "--count", "-n", "1"]), "3\n");
    assert_eq!(home.ok(&["find", "example", "--count", "-n", "1"]), "2\n");
    assert_eq!(home.ok(&["find", "--kind", "contact", "--count", "-n", "0"]), "3\n");
}

#[test]
fn a_list_has_columns() {
    let home = Home::with_book();
    assert_snapshot!(home.run(&["find"]).masked_output(), @"
    kc7xst8t  Bruno Álvarez                      030 765-43-21 (home)
    fhbw2pvt  Chloé Dupont    chloe@example.com
    xdnskgpk  Anna Hölderlin  anna@example.org   +49 30 1234567 (mobile)  Orchard Works
    ");
    assert_snapshot!(home.run(&["find", "anna"]).masked_output(), @"xdnskgpk  Anna Hölderlin  anna@example.org  +49 30 1234567 (mobile)  Orchard Works");
    assert_snapshot!(home.run(&["find", "hoelderlin", "or", "alvarez"]).masked_output(), @"kc7xst8t  Bruno Álvarez  030 765-43-21 (home)");
    assert_snapshot!(home.run(&["find", "--sort", "-full_name", "--limit", "2"]).masked_output(), @"
    fhbw2pvt  Chloé Dupont   chloe@example.com
    kc7xst8t  Bruno Álvarez                     030 765-43-21 (home)
    ");
    assert_snapshot!(home.run(&["find", "--fields", "phone,org", "--sort", "none"]).masked_output(), @r"
    xdnskgpk	+49 30 1234567	Orchard Works
    kc7xst8t	030 765-43-21	
    fhbw2pvt
    ");
    assert_snapshot!(home.run(&["find", "--sort", "full_name", "--from", "b", "--limit", "1"]).masked_output(), @"kc7xst8t  Bruno Álvarez  030 765-43-21 (home)");
    assert_snapshot!(home.run(&["find", "has:email", "--sort", "-full_name", "--from", "BR"]).masked_output(), @"xdnskgpk  Anna Hölderlin  anna@example.org  +49 30 1234567 (mobile)  Orchard Works");
    assert_snapshot!(home.run(&["find", "--from", "é", "--count"]).masked_output(), @"1");
    assert_snapshot!(home.run(&["find", "--from", "b", "--sort", "none"]).masked_output(), @"
    ! error: --from cannot be used with --sort none
    ! hint: --from TEXT needs an order: --sort FIELD, or the default file_as
    exit 2
    ");
    assert_snapshot!(home.run(&["find", "nobody at all"]).masked_output(), @"
    ! note: no results
    ! note: any:WORD searches further fields; `larder fields` lists them
    exit 1
    ");
}

/// Each search line finds the items whose names begin with these letters.
#[test]
fn search_lines_find_items() {
    let home = Home::with_book();
    let check = |line: &str, expect: &str| {
        let run = home.run(&["find", line, "--format", "json", "--sort", "full_name"]);
        let names: String = run
            .stdout()
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["full_name"][0].to_string()
            })
            .filter_map(|name| name.chars().nth(1))
            .collect();
        assert_eq!(names, expect, "{line}: {}", run.masked_output());
        assert_eq!(run.code, i32::from(expect.is_empty()), "{line}");
    };
    check("", "ABC");
    check("ANNA", "A");
    check("hölderlin", "A");
    check("holderlin", "A");
    check("orchard", "A");
    check("example", "AC");
    check("example -anna", "C");
    check("not example", "B");
    check("anna or bruno", "AB");
    check("(anna or bruno) has:email", "A");
    check("-has:email", "B");
    check("7654321", "B");
    check("1234567", "A");
    check("full_name:chlo*", "C");
    check("email:*@example.org", "A");
    check("full_name:=\"bruno alvarez\"", "B");
    check("\"anna hölderlin\"", "A");
    check("uid:anna-1", "A");
    check("anna bruno", "");
    check("%", "");
}

#[test]
fn json_and_raw_output() {
    let home = Home::with_book();
    assert_snapshot!(home.run(&["find", "anna", "--format", "json"]).masked_output(), @r#"{"id":"xdnskgpk7xp6c","kind":"contact","collection":"contacts","uid":"anna-1","seq":1,"file_as":"Hölderlin, Anna","full_name":["Anna Hölderlin"],"name":["Anna Hölderlin"],"given_name":["Anna"],"family_name":["Hölderlin"],"name_or_org":["Anna Hölderlin"],"email":["anna@example.org"],"email_type":["home"],"phone":["+49 30 1234567"],"mobile_phone":["+49 30 1234567"],"phone_type":["mobile"],"org":["Orchard Works"],"version":"3.0"}"#);
    assert_snapshot!(home.run(&["find", "--format", "json", "--fields", "email"]).masked_output(), @r#"
    {"id":"kc7xst8tez2at","kind":"contact","collection":"contacts","uid":"bruno-2","seq":1}
    {"id":"fhbw2pvtn38cm","kind":"contact","collection":"contacts","uid":"larder-12fef25c8ec729db7a4d373859f15c8c","seq":1,"email":["chloe@example.com"]}
    {"id":"xdnskgpk7xp6c","kind":"contact","collection":"contacts","uid":"anna-1","seq":1,"email":["anna@example.org"]}
    "#);
    assert_snapshot!(home.run(&["find", "--count"]).masked_output(), @"3");
    assert_snapshot!(home.run(&["find", "--count", "--format", "json", "anna"]).masked_output(), @r#"{"count":1}"#);
    assert_snapshot!(home.run(&["find", "--count", "nobody"]).masked_output(), @r"
    0
    exit 1
    ");
    assert_snapshot!(home.run(&["find", "--sexp", "(contains \"full_name\" \"anna\")", "--count"]).masked_output(), @"1");
    let raw = home.run(&["find", "--format", "raw", "--sort", "none"]);
    assert_eq!(raw.out, [ANNA, BRUNO, CHLOE].concat().as_bytes());
}

#[test]
fn the_plan_is_explained() {
    let home = Home::with_book();
    assert_snapshot!(home.run(&["find", "--explain", "anna"]).masked_output(), @r#"
    query     (word "anna")
    plan      index: trigrams "ann", "nna"
    order     sort keys of file_as, computed for each match
    read      1 row of the index, or of the full scan
    verified  1 item
    matched   1 item
    returned  1 item
    "#);
    assert_snapshot!(home.run(&["find", "--explain", "-has:email", "--sort", "none"]).masked_output(), @r#"
    query     (and (kind "contact") (not (exists "email")))
    plan      scan: test every contact
    order     insertion order
    read      3 rows of the index, or of the full scan
    verified  3 items
    matched   1 item
    returned  1 item
    "#);
    let explained = &home.json(&["find", "--explain", "anna"])[0];
    assert_eq!(explained["returned"], 1, "{explained}");
}

#[test]
fn one_collection_is_searched() {
    let home = Home::with_book();
    home.write("other.vcf", ANNA);
    home.ok(&["import", "other.vcf", "--into", "other"]);
    assert_eq!(home.ok(&["find", "anna", "--count"]), "2\n");
    assert_eq!(home.ok(&["find", "anna", "--in", "other", "--count"]), "1\n");
    assert_eq!(home.ok(&["find", "--kind", "contact", "--count"]), "4\n");
}

#[test]
fn an_item_is_shown() {
    let home = Home::with_book();
    let found = home.json(&["find", "anna"]);
    let id = found[0]["id"].as_str().unwrap();
    let page = home.run(&["show", &id[..8]]).masked_output();
    assert_snapshot!(page, @"
    Anna Hölderlin
    id          xdnskgpk
    collection  contacts
    uid         anna-1
    file_as     Hölderlin, Anna
    full_name   Anna Hölderlin
    email       anna@example.org (home)
    phone       +49 30 1234567 (mobile)
    org         Orchard Works
    ");
    for name in [id, &id[..9], "uid:anna-1", "contacts/anna-1", &id.to_uppercase()] {
        assert_eq!(home.run(&["show", name]).masked_output(), page, "{name}");
        assert_eq!(home.run(&["show", name, "--format", "raw"]).out, ANNA.as_bytes(), "{name}");
    }
    assert_snapshot!(home.run(&["show", "uid:bruno-2", "--format", "json"]).masked_output(), @r#"{"id":"kc7xst8tez2at","kind":"contact","collection":"contacts","uid":"bruno-2","seq":1,"file_as":"Álvarez, Bruno","full_name":["Bruno Álvarez"],"name":["Bruno Álvarez"],"given_name":["Bruno"],"family_name":["Álvarez"],"name_or_org":["Bruno Álvarez"],"phone":["030 765-43-21"],"home_phone":["030 765-43-21"],"phone_type":["home"],"version":"4.0","source_bytes":"BEGIN:VCARD\r\nVERSION:4.0\r\nUID:bruno-2\r\nFN:Bruno Álvarez\r\nN:Álvarez;Bruno;;;\r\nTEL;TYPE=home:030 765-43-21\r\nEND:VCARD\r\n"}"#);
    assert_snapshot!(home.run(&["show", "uid:bruno-2", "uid:anna-1", "--quiet"]).masked_output(), @"
    Bruno Álvarez
    id          kc7xst8t
    collection  contacts
    uid         bruno-2
    file_as     Álvarez, Bruno
    full_name   Bruno Álvarez
    phone       030 765-43-21 (home)

    Anna Hölderlin
    id          xdnskgpk
    collection  contacts
    uid         anna-1
    file_as     Hölderlin, Anna
    full_name   Anna Hölderlin
    email       anna@example.org (home)
    phone       +49 30 1234567 (mobile)
    org         Orchard Works
    ");
    let both = home.run(&["show", "uid:bruno-2", "uid:anna-1", "--format", "raw"]);
    assert_eq!(both.out, [BRUNO, ANNA].concat().as_bytes());
    // The item without a UID has only its ID.
    let chloe = home.json(&["find", "chloe"]);
    assert_eq!(
        home.run(&["show", chloe[0]["id"].as_str().unwrap(), "--format", "raw"]).out,
        CHLOE.as_bytes()
    );
}

#[test]
fn missing_items_are_explained() {
    let home = Home::with_book();
    home.write("other.vcf", ANNA);
    home.ok(&["import", "other.vcf", "--into", "other"]);
    assert_snapshot!(home.run(&["show", "zzzzzzzz"]).masked_output(), @r#"
    ! error: no item has the ID "zzzzzzzz"
    ! hint: `larder find` shows IDs; uid:TEXT and COLLECTION/UID work too
    exit 1
    "#);
    assert_snapshot!(home.run(&["show", "uid:nobody"]).masked_output(), @r#"
    ! error: no item has the ID "uid:nobody"
    ! hint: `larder find` shows IDs; uid:TEXT and COLLECTION/UID work too
    exit 1
    "#);
    assert_snapshot!(home.run(&["show", "nowhere/anna-1"]).masked_output(), @r#"
    ! error: no item has the ID "nowhere/anna-1"
    ! hint: `larder find` shows IDs; uid:TEXT and COLLECTION/UID work too
    exit 1
    "#);
    assert_snapshot!(home.run(&["show", "uid:anna-1"]).masked_output(), @r#"
    ! error: the ID "uid:anna-1" matches several items
    ! hint: xdnskgpk7xp6c  Anna Hölderlin  (in contacts)
    ! hint: bd4hdzjjcpesa  Anna Hölderlin  (in other)
    ! hint: use one of the listed IDs (for example xdnskgpk7xp6c), or COLLECTION/UID
    exit 2
    "#);
    let id = home.json(&["find", "bruno"])[0]["id"].as_str().unwrap().to_string();
    home.ok(&["remove", &id]);
    // An undo without a number would undo this operation.
    home.write("anna.vcf", ANNA.replace("Orchard", "Meadow"));
    home.ok(&["edit", "contacts/anna-1", "--from", "anna.vcf"]);
    assert_snapshot!(home.run(&["show", &id]).masked_output(), @r#"
    ! error: no item has the ID "kc7xst8tez2at"
    ! hint: the item with this ID was removed; `larder log kc7xst8tez2at` shows its versions; to restore it: larder undo 3
    exit 1
    "#);
}

/// A card with labels in each notation, a list of which it is a member, and a picture.
const LABELS: &str = "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:eva-1\r\nFN:Eva Lang\r\nN:Lang;Eva;;;\r\n\
    TEL;TYPE=CELL:+43 664 1234567\r\nTEL;TYPE=WORK,FAX:+43 1 234567\r\n\
    item1.TEL:+43 2256 111\r\nitem1.X-ABLabel:Sommerhaus\r\n\
    EMAIL;TYPE=INTERNET,HOME:eva@example.org\r\nEMAIL;TYPE=WORK:lang@example.com\r\n\
    item2.ADR:;;Weg 1;Wien;;1010;Austria\r\nitem2.X-ABLabel:_$!<Home>!$_\r\n\
    item3.X-ABRELATEDNAMES:Peter\r\nitem3.X-ABLabel:_$!<Spouse>!$_\r\n\
    X-SOCIALPROFILE;TYPE=twitter:https://twitter.com/eva\r\n\
    PHOTO;ENCODING=b;TYPE=PNG:iVBORw0KGgoAAAANSUhEUgAAAGAAAABgCAYAAAAf\r\n FcSJ\r\nORG:Acme Works\r\nEND:VCARD\r\n\
    BEGIN:VCARD\r\nVERSION:4.0\r\nUID:list-1\r\nKIND:group\r\nFN:Choir\r\nMEMBER:urn:uuid:eva-1\r\n\
    MEMBER:mailto:x@example.org\r\nEND:VCARD\r\n";

#[test]
fn labels_and_members_are_shown() {
    let home = Home::new();
    home.write("labels.vcf", LABELS);
    home.ok(&["import", "labels.vcf"]);
    assert_snapshot!(home.run(&["show", "uid:eva-1", "uid:list-1"]).masked_output(), @"
    Eva Lang
    id              7d3nebdp
    collection      contacts
    uid             eva-1
    file_as         Lang, Eva
    full_name       Eva Lang
    email           eva@example.org (home)
                    lang@example.com (work)
    phone           +43 664 1234567 (mobile)
                    +43 1 234567 (work fax)
                    +43 2256 111 (Sommerhaus)
    org             Acme Works
    related         Peter (spouse)
    social_profile  https://twitter.com/eva (twitter)
    address         Weg 1, Wien, 1010, Austria (home)
    photo           (photo, PNG 96x96, 33 bytes)

    Choir
    id          pam56gh7
    collection  contacts
    uid         list-1
    file_as     Choir
    full_name   Choir
    list        1
    member      Eva Lang
                mailto:x@example.org
    ");
    assert_snapshot!(home.run(&["find", "lang"]).masked_output(), @"7d3nebdp  Eva Lang  eva@example.org (home), lang@example.com (work)  +43 664 1234567 (mobile), +43 1 234567 (work fax), +43 2256 111 (Sommerhaus)  Acme Works");
    let json = home.json(&["show", "uid:eva-1"]).remove(0);
    assert_eq!(json["phone_type"], serde_json::json!(["mobile", "work fax", "Sommerhaus"]));
    assert!(json.get("photo").is_none(), "{json}");
}

/// Pictures are one line wherever a person reads.
#[test]
fn pictures_are_described() {
    let home = Home::new();
    home.write("labels.vcf", LABELS);
    home.write("other.vcf", "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:eva-2\r\nFN:Eva\r\nEND:VCARD\r\n");
    home.ok(&["import", "labels.vcf", "other.vcf"]);
    let photo = "PHOTO:(photo, PNG 96x96, 33 bytes)";
    for args in [&["merge", "-n", "uid:eva-1", "uid:eva-2"][..], &["log", "uid:eva-1"]] {
        let text = home.ok(args);
        assert!(text.contains(photo) && !text.contains("iVBOR"), "{text}");
    }
    // Another picture of the same size is a change.
    home.write(
        "new.vcf",
        LABELS.replace("FcSJ", "FcSK").split("BEGIN:VCARD\r\nVERSION:4").next().unwrap(),
    );
    home.ok(&["edit", "uid:eva-1", "--from", "new.vcf"]);
    assert_eq!(home.ok(&["log", "uid:eva-1"]).matches(photo).count(), 3);
}
