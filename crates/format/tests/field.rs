//! The table of fields, and the values that a card has for each field.

use larder_format::component::{CalendarVersion, Component};
use larder_format::contact::Contact;
use larder_format::field::{
    CALENDAR_FIELDS, CONTACT_FIELDS, Field, FieldType, find_calendar_field, find_contact_field,
    suggest_contact_field, suggest_field,
};
use std::collections::HashSet;

/// Returns the values of a field in a card with these lines.
fn values(lines: &str, name: &str) -> Vec<String> {
    let card = format!("BEGIN:VCARD\n{lines}\nEND:VCARD\n");
    Contact::parse(card.as_bytes()).values(find_contact_field(name).expect(name))
}

#[track_caller]
fn check(lines: &str, name: &str, expect: &[&str]) {
    assert_eq!(values(lines, name), expect, "{name} of {lines:?}");
}

#[test]
fn the_tables_are_sound() {
    let mut ids = HashSet::new();
    table_is_sound(CONTACT_FIELDS, find_contact_field, &mut ids);
    table_is_sound(CALENDAR_FIELDS, find_calendar_field, &mut ids);
    let words = |table: &'static [Field]| {
        table.iter().filter(|row| row.is_default_search).map(|row| row.name)
    };
    let expect =
        ["summary", "description", "location", "comment", "category", "organizer", "attendee"];
    assert_eq!(words(CALENDAR_FIELDS).collect::<Vec<_>>(), expect);
    assert_eq!(suggest_field(CALENDAR_FIELDS, "sumary"), Some("summary"));
}

fn table_is_sound(
    table: &'static [Field],
    field: fn(&str) -> Option<&'static Field>,
    ids: &mut HashSet<u16>,
) {
    let mut names = HashSet::new();
    for row in table {
        assert!(row.id > 0 && ids.insert(row.id), "{} has the number of another", row.name);
        for name in row.aliases.iter().chain([&row.name]) {
            assert!(names.insert(*name), "{name} is the name of two");
            let found = field(name).expect("its own row");
            assert_eq!(found.id, row.id, "{name}");
        }
        assert!(!row.help.is_empty() && !row.help.ends_with('.'), "{}", row.name);
        assert!(
            !row.is_default_search || row.is_indexed,
            "{}: words are looked for in indexes",
            row.name
        );
        if let Some(within) = row.subset_of {
            let outer = field(within).expect("a row of the table");
            assert!(
                outer.is_indexed && !row.is_indexed && outer.field_type == row.field_type,
                "{}",
                row.name
            );
            assert!(outer.is_multi_valued || !row.is_multi_valued, "{}", row.name);
        }
        assert!(row.field_type != FieldType::Binary || !row.is_indexed, "{}", row.name);
    }
}

#[test]
fn contacts_have_words() {
    let words: Vec<_> =
        CONTACT_FIELDS.iter().filter(|row| row.is_default_search).map(|row| row.name).collect();
    let expect = [
        "file_as",
        "full_name",
        "given_name",
        "family_name",
        "nickname",
        "email",
        "phone",
        "org",
        "org_unit",
    ];
    assert_eq!(words, expect);
}

#[test]
fn fields_are_found_by_name() {
    for (name, expect) in [
        ("full_name", Some("full_name")),
        ("Full-Name", Some("full_name")),
        ("fn", Some("full_name")),
        ("ID", Some("uid")),
        ("Rev", Some("rev")),
        ("x509cert", Some("x509Cert")),
        ("x509Cert", Some("x509Cert")),
        ("tel", Some("phone")),
        ("", None),
        ("no_such", None),
    ] {
        assert_eq!(find_contact_field(name).map(|field| field.name), expect, "{name}");
    }
    for (name, expect) in [
        ("emial", Some("email")),
        ("full_nam", Some("full_name")),
        ("phnoe", Some("phone")),
        ("adress", Some("address")),
        ("Birth-Dtae", Some("birth_date")),
        ("birthdate", Some("birth_date")),
        ("xyzzyplugh", None),
        ("", None),
    ] {
        assert_eq!(suggest_contact_field(name), expect, "{name}");
    }
}

#[test]
fn names_have_parts() {
    check("FN: Anna Berg ", "full_name", &["Anna Berg"]);
    check("FN:Anna\\, Dr.", "full_name", &["Anna, Dr."]);
    check("FN;LANGUAGE=ja:王\nFN;LANGUAGE=en:Wang", "full_name", &["王", "Wang"]);
    check("FN:\nN:Berg;Anna;Maria,Lena;Dr.;MSc", "full_name", &["Dr. Anna Maria Lena Berg MSc"]);
    check("ORG:Acme;Sales", "full_name", &["Acme"]);
    check("EMAIL:mailto:a@example.org\nTEL:1", "full_name", &["a@example.org"]);
    check("TEL:1", "full_name", &[]);
    check("N:Berg;Anna", "given_name", &["Anna"]);
    check("N:Berg;Anna", "family_name", &["Berg"]);
    check("N:;Anna", "family_name", &[]);
    check("N:Berg\\;Tal;Anna", "family_name", &["Berg;Tal"]);
    check("N;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg", "given_name", &["Jörg"]);
    check("NICKNAME:Anni,Nanni\\, die", "nickname", &["Anni", "Nanni, die"]);
    check("FN:Anna Berg\nN:Berg;Anna", "file_as", &["Berg, Anna"]);
    check("FN:Anna\nN:;Anna", "file_as", &["Anna"]);
    check("SORT-STRING:Berg\nX-EVOLUTION-FILE-AS:Berg\\, A.", "file_as", &["Berg, A."]);
    check("N;SORT-AS=\"Harten,Rene\":van der Harten;Rene", "file_as", &["Harten, Rene"]);
    check("ORG:Acme", "name_or_org", &["Acme"]);
}

#[test]
fn phones_and_addresses_have_types() {
    check(
        "EMAIL:a@example.org\nEMAIL;X=y:MAILTO:b@example.org",
        "email",
        &["a@example.org", "b@example.org"],
    );
    check("EMAIL: \nEMAIL:a@example.org\nEMAIL:b@example.org", "email_2", &["b@example.org"]);
    check("EMAIL:a@example.org", "email_2", &[]);
    check("TEL;VALUE=uri:tel:+43-1-2", "phone", &["+43-1-2"]);
    let phones = "TEL;HOME:1\nTEL;TYPE=home,fax:2\nTEL;TYPE=\"work,voice\":3\nTEL;TYPE=CELL;TYPE=HOME:4\nTEL:5\n\
        TEL;TYPE=fax:6\nTEL;TYPE=pref:7\nTEL;TYPE=X-EVOLUTION-ASSISTANT:8\nTEL;HOME:9\nTEL;TYPE=voice:10";
    for (name, expect) in [
        ("home_phone", &["1", "9"][..]),
        ("home_phone_2", &["9"]),
        ("home_fax", &["2"]),
        ("business_phone", &["3"]),
        ("mobile", &["4"]),
        ("other_phone", &["5", "10"]),
        ("other_fax", &["6"]),
        ("primary_phone", &["7"]),
        ("assistant_phone", &["8"]),
        ("pager", &[]),
    ] {
        check(phones, name, expect);
    }
    let addresses = "ADR;TYPE=home:;;Weg 1\\, links;Ort;;1010;AT\nADR;TYPE=work;LABEL=\"Gasse 2\\nStadt\":;;Gasse 2;Stadt\nADR:;;Platz 3\nLABEL;HOME:Weg 1\\nOrt";
    check(addresses, "address", &["Weg 1, links, Ort, 1010, AT", "Gasse 2, Stadt", "Platz 3"]);
    check(addresses, "address_work", &["Gasse 2, Stadt"]);
    check(addresses, "address_other", &["Platz 3"]);
    check(addresses, "address_label_home", &["Weg 1\nOrt"]);
    check(addresses, "address_label_work", &["Gasse 2\nStadt"]);
}

#[test]
fn messengers_have_fields() {
    let lines = "X-JABBER:a@example.org\nIMPP:xmpp:b@example.org\nIMPP;X-SERVICE-TYPE=Skype:x-apple:carl\n\
        IMPP:irc://example.org/room\nX-messaging/aim-All:dora\nIMPP;X-SERVICE-TYPE=GoogleTalk:xmpp:e@example.org";
    check(lines, "im_jabber", &["a@example.org", "b@example.org", "e@example.org"]);
    check(lines, "im_skype", &["carl"]);
    check(lines, "im_aim", &["dora"]);
    check(lines, "im_google_talk", &["e@example.org"]);
    let all = values(lines, "im");
    for name in [
        "a@example.org",
        "b@example.org",
        "carl",
        "irc://example.org/room",
        "dora",
        "e@example.org",
    ] {
        assert_eq!(all.iter().filter(|value| *value == name).count(), 1, "{name}");
    }
}

#[test]
fn dates_are_normalised() {
    for (value, expect) in [
        ("1990-02-28", "1990-02-28"),
        ("19900228", "1990-02-28"),
        ("1990-02-28T00:00:00Z", "1990-02-28"),
        ("19900228T120000", "1990-02-28"),
        ("--0228", "--02-28"),
        ("--02-28", "--02-28"),
        ("---28", "---28"),
        ("1990", "1990"),
        ("1990-13-01", "1990-13-01"),
        ("1990-2-1", "1990-2-1"),
        ("circa 1800", "circa 1800"),
        ("émile", "émile"),
        ("199é-01-01", "199é-01-01"),
    ] {
        check(&format!("BDAY:{value}"), "birth_date", &[expect]);
    }
    check("BDAY;X-APPLE-OMIT-YEAR=1604:1604-02-28", "birth_date", &["--02-28"]);
    check("X-ANNIVERSARY:20010203", "anniversary", &["2001-02-03"]);
}

#[test]
fn other_fields_have_values() {
    check("ORG:Acme\\, Inc.;Sales;Room 5", "org", &["Acme, Inc."]);
    check("ORG:Acme;Sales;Room 5", "department", &["Sales"]);
    // Only N and ADR have lists in their components, and not in vCard 2.1.
    for version in ["2.1", "3.0", "4.0"] {
        let card = |line: &str| format!("VERSION:{version}\n{line}");
        check(&card("ORG:Acme, Inc.;Research, Sales"), "org", &["Acme, Inc."]);
        check(&card("ORG:Acme, Inc.;Research, Sales"), "org_unit", &["Research, Sales"]);
        check(&card("ORG:Acme, Inc."), "full_name", &["Acme, Inc."]);
        let is_old = version == "2.1";
        let name = |old, new| if is_old { [old] } else { [new] };
        check(&card("N:Berg, jr.;Anna"), "family_name", &name("Berg, jr.", "Berg jr."));
        check(&card("N:Berg, jr.;Anna"), "full_name", &name("Anna Berg, jr.", "Anna Berg jr."));
        check(&card("N:Berg, jr.;Anna"), "file_as", &name("Berg, jr., Anna", "Berg jr., Anna"));
        check(
            &card("ADR:;;Hauptstr. 1,2. Stock"),
            "address",
            &name("Hauptstr. 1,2. Stock", "Hauptstr. 1, 2. Stock"),
        );
    }
    check("ORG:Acme;Sales;Room 5", "office", &["Room 5"]);
    check("CATEGORIES:Friends,Chess\nCATEGORIES:Work", "tag", &["Friends", "Chess", "Work"]);
    check("NOTE:one\\ntwo", "note", &["one\ntwo"]);
    check("NOTE;ENCODING=QUOTED-PRINTABLE:one=0D=0Atwo", "note", &["one\ntwo"]);
    check("URL:https://example.org/a?b=c\\,d", "url", &["https://example.org/a?b=c,d"]);
    check("GEO:48.2;16.3", "geo", &["48.2,16.3"]);
    check("GEO:geo:48.2\\,16.3", "geo", &["48.2,16.3"]);
    check("X-EVOLUTION-LIST:TRUE", "list", &["1"]);
    check("X-EVOLUTION-LIST:FALSE", "list", &["0"]);
    check("KIND:group", "list", &["1"]);
    check("KIND:individual", "list", &[]);
    check("X-MOZILLA-HTML:FALSE", "wants_html", &["0"]);
    check("PHOTO;ENCODING=b:aGk=", "photo", &["aGk="]);
    check(
        "KEY;ENCODING=b;TYPE=X509:AA==\nKEY;MEDIATYPE=application/pgp-keys:http://x",
        "x509",
        &["AA=="],
    );
    check(
        "KEY;ENCODING=b;TYPE=X509:AA==\nKEY;MEDIATYPE=application/pgp-keys:http://x",
        "pgp",
        &["http://x"],
    );
    check("TEL;HOME:1", "version", &["2.1"]);
    check("UID: urn:uuid:1 ", "uid", &["urn:uuid:1"]);
    check("REV:20260101T000000Z", "rev", &["20260101T000000Z"]);
}

#[track_caller]
fn check_event(lines: &str, version: CalendarVersion, name: &str, expect: &[&str]) {
    let event =
        format!("BEGIN:VEVENT\n{lines}\nBEGIN:VALARM\nDESCRIPTION:no\nEND:VALARM\nEND:VEVENT\n");
    let field = find_calendar_field(name).expect(name);
    let event = Component::parse_with_version(event.as_bytes(), version);
    assert_eq!(event.values(field), expect, "{name} of {lines:?}");
    assert_eq!(event.first_value(field).as_deref(), expect.first().copied());
}

#[test]
fn events_have_fields() {
    let check = |lines: &str, name: &str, expect: &[&str]| {
        check_event(lines, CalendarVersion::V2_0, name, expect);
    };
    check("SUMMARY:Lunch\\, with\\nAnna \nSUMMARY:x", "summary", &["Lunch, with\nAnna"]);
    check("DESCRIPTION:a\nDESCRIPTION;LANGUAGE=en:b\\;", "description", &["a", "b;"]);
    check("CATEGORIES:a,b\\,c\nCATEGORIES:,d", "categories", &["a", "b,c", "d"]);
    check("COMMENT:a\nCOMMENT:\nCOMMENT:b", "comment", &["a", "b"]);
    check(
        "ORGANIZER;CN=\"Berg, Anna ^'A^'\":MAILTO:a@b",
        "organizer",
        &["a@b", "Berg, Anna \"A\""],
    );
    check(
        "ATTENDEE;CN=Bo:mailto:b@c\nATTENDEE;EMAIL=d@e;CN=d@e:urn:uuid:1\nATTENDEE;CN=f@g:mailto:f@g",
        "attendee",
        &["b@c", "Bo", "urn:uuid:1", "d@e", "d@e", "f@g"],
    );
    check("PERCENT-COMPLETE:50", "percent-complete", &["50"]);
    check("GEO:48.2;16.3", "geo", &["48.2,16.3"]);
    check(
        "ATTACH;ENCODING=BASE64;VALUE=BINARY:eA==\nATTACH:http://a;b\\,c",
        "attachment",
        &["eA==", "http://a;b\\,c"],
    );
    check("CLASS:PRIVATE\nTRANSP:OPAQUE\nPRIORITY:1", "classification", &["PRIVATE"]);
    check("LAST-MODIFIED:20260101T000000Z", "modified", &["20260101T000000Z"]);
    check("X:1", "status", &[]);
}

#[test]
fn vcalendar_1_events_have_fields() {
    let check = |lines: &str, name: &str, expect: &[&str]| {
        check_event(lines, CalendarVersion::V1_0, name, expect);
    };
    check("SUMMARY;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:=C3=BC=\n=0D=0Ax", "summary", &["ü\nx"]);
    check("CATEGORIES:APPOINTMENT;MEETING", "category", &["APPOINTMENT", "MEETING"]);
    check("ATTENDEE;ROLE=OWNER:Anna Berg <a@b>", "attendee", &["a@b", "Anna Berg"]);
    check("DCREATED:20260101T000000", "created", &["20260101T000000"]);
}

#[test]
fn values_have_labels() {
    let check = |lines: &str, name: &str, expect: &[&str]| {
        let card = format!("BEGIN:VCARD\n{lines}\nEND:VCARD\n");
        let card = Contact::parse(card.as_bytes());
        let field = find_contact_field(name).expect(name);
        let labels = card.value_labels(field);
        assert_eq!(labels.len(), card.values(field).len(), "{lines}");
        let labels: Vec<String> = labels.into_iter().map(Option::unwrap_or_default).collect();
        assert_eq!(labels, expect, "{name} of {lines:?}");
    };
    check("TEL;TYPE=CELL:1\nTEL;FAX;WORK:2\nTEL:3", "phone", &["mobile", "work fax", ""]);
    check("TEL;TYPE=\"voice,cell\":1\nTEL;TYPE=voice,pref:2", "phone", &["mobile", ""]);
    check("TEL;TYPE=X-Car,home:\nTEL;TYPE=X-Car,home:4", "phone", &["home car"]);
    check("item1.TEL:1\nITEM1.X-ABLabel:Sommer\\, Haus", "phone", &["Sommer, Haus"]);
    check("item1.TEL;TYPE=work:1\nitem1.X-ABLabel:_$!<Mobile>!$_", "phone", &["mobile"]);
    check("item1.TEL:1\nitem2.X-ABLabel:other", "phone", &[""]);
    check("EMAIL;TYPE=INTERNET,HOME:a@b", "email", &["home"]);
    check("ADR;TYPE=work:;;a\nADR;TYPE=home:;;b", "address", &["work", "home"]);
    check("ADR;TYPE=work:;;a\nADR;TYPE=home:;;b", "address_home", &["home"]);
    check("RELATED;TYPE=spouse:Peter", "related", &["spouse"]);
    check("X-SOCIALPROFILE;TYPE=twitter:https://x.example", "social_profile", &["twitter"]);
    check("item3.X-ABDATE:20010506\nitem3.X-ABLabel:Hochzeit", "other_date", &["Hochzeit"]);
}

#[test]
fn labels_are_values_too() {
    check("TEL;TYPE=CELL:1\nTEL:\nTEL:2", "phone_type", &["mobile", "-"]);
    check("TEL:1\nTEL:2", "phone_type", &[]);
    check("EMAIL;TYPE=work:a@b", "email_type", &["work"]);
    let labels = "item1.TEL:1\nitem1.X-ABLabel:Sommerhaus\nitem2.X-ABLabel:_$!<Home>!$_";
    check(labels, "custom_label", &["Sommerhaus"]);
    check("RELATED;TYPE=spouse:P\nRELATED:Q", "related_type", &["spouse", "-"]);
    check("MEMBER:urn:uuid:a\nX-ADDRESSBOOKSERVER-MEMBER:b", "member", &["urn:uuid:a", "b"]);
}

#[test]
fn binary_values_are_described() {
    use larder_format::binary_description::{describe_binaries, describe_binary};
    let check = |line: &str, expect: Option<&str>| {
        let card = format!("BEGIN:VCARD\n{line}\nEND:VCARD\n");
        let contact = Contact::parse(card.as_bytes());
        let found = contact.properties().first().and_then(describe_binary);
        assert_eq!(found.as_deref(), expect, "{line}");
    };
    let png = "iVBORw0KGgoAAAANSUhEUgAAAGAAAABgCAYAAAAfFcSJ";
    check(&format!("PHOTO;ENCODING=b:{png}"), Some("(photo, PNG 96x96, 33 bytes)"));
    check(&format!("LOGO;BASE64:{png}"), Some("(logo, PNG 96x96, 33 bytes)"));
    check(&format!("PHOTO:data:image/png;base64,{png}"), Some("(photo, PNG 96x96, 33 bytes)"));
    check("PHOTO;ENCODING=b:R0lGODlhAgABAA==", Some("(photo, GIF 2x1, 10 bytes)"));
    check("PHOTO;ENCODING=b:/9j/4AAC/8AACwgAAgADAQ==", Some("(photo, JPEG 3x2, 16 bytes)"));
    check("PHOTO;ENCODING=b:/9j/4A==", Some("(photo, JPEG, 4 bytes)"));
    check("KEY;ENCODING=b:AAEC", Some("(key, 3 bytes)"));
    let large = "QUFB".repeat(9000);
    check(&format!("SOUND;ENCODING=b:{large}"), Some("(sound, 27 KB)"));
    check("PHOTO;VALUE=uri:https://example.org/a.png", None);
    check("PHOTO:data:text/plain,abc", None);
    check("NOTE;ENCODING=b:QUFB", None);
    let card =
        format!("BEGIN:VCARD\r\nitem1.PHOTO;ENCODING=b:iVBO\r\n {}\r\nNOTE:a\r\n b\r\n", &png[4..]);
    assert_eq!(
        String::from_utf8(describe_binaries(card.as_bytes())).unwrap(),
        "BEGIN:VCARD\r\nPHOTO:(photo, PNG 96x96, 33 bytes)\r\nNOTE:a\r\n b\r\n"
    );
}
