//! Changes of single fields of contacts: the lines that change, in every version of vCard, and the
//! bytes that stay.

use larder_edit::contact_edit::{ContactEdit, ContactEditError};
use larder_format::contact::Contact;
use larder_format::field::find_contact_field;
use std::path::{Path, PathBuf};

/// Returns a card with these lines.
fn card(version: &str, lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("{line}\r\n")).collect();
    format!("BEGIN:VCARD\r\nVERSION:{version}\r\n{lines}END:VCARD\r\n")
}

/// Applies changes such as `mobile=123`, one after the other.
fn try_edit(card: &[u8], changes: &[&str]) -> Result<Vec<u8>, ContactEditError> {
    let mut edit = ContactEdit::default();
    for change in changes {
        let (name, text) = change.split_once('=').unwrap();
        edit.set_field(name, text)?;
    }
    edit.apply(card)
}

/// Checks the lines of a card after changes.
#[track_caller]
fn check(version: &str, before: &str, changes: &[&str], after: &str) {
    let result = try_edit(card(version, before).as_bytes(), changes).unwrap();
    assert_eq!(String::from_utf8(result).unwrap(), card(version, after));
}

#[track_caller]
fn refusal(version: &str, before: &str, change: &str) -> String {
    try_edit(card(version, before).as_bytes(), &[change]).unwrap_err().to_string()
}

fn values(card: &[u8], field: &str) -> Vec<String> {
    Contact::parse(card).values(find_contact_field(field).unwrap())
}

#[test]
fn a_label_selects_the_value() {
    let phones = "FN:A\nTEL;TYPE=CELL;X-A=1:1\nTEL;TYPE=WORK,VOICE:2\nTEL;TYPE=WORK,FAX:3";
    check("3.0", phones, &["mobile=99"], &phones.replace("X-A=1:1", "X-A=1:99"));
    check("3.0", phones, &["cell=99"], &phones.replace("X-A=1:1", "X-A=1:99"));
    check("3.0", phones, &["work.phone=99"], &phones.replace("VOICE:2", "VOICE:99"));
    check("3.0", phones, &["phone.work=99"], &phones.replace("VOICE:2", "VOICE:99"));
    check("3.0", phones, &["fax work.phone=99"], &phones.replace("FAX:3", "FAX:99"));
    check("3.0", phones, &["phone.2=99"], &phones.replace("VOICE:2", "VOICE:99"));
    check("3.0", phones, &["home.phone=4"], &format!("{phones}\nTEL;TYPE=HOME:4"));
    check("3.0", phones, &["phone+=4"], &format!("{phones}\nTEL:4"));
    check("3.0", phones, &["mobile+=4"], &format!("{phones}\nTEL;TYPE=CELL:4"));
    check("3.0", phones, &["work.phone="], &phones.replace("\nTEL;TYPE=WORK,VOICE:2", ""));
    check("3.0", phones, &["home.phone="], phones);
    check("4.0", "FN:A", &["home fax.phone=4"], "FN:A\nTEL;TYPE=home,fax:4");
    check("2.1", "FN:A\nTEL;WORK;FAX:3", &["work fax.phone=9"], "FN:A\nTEL;WORK;FAX:9");
    check("2.1", "FN:A", &["mobile=9", "work.email=a@b"], "FN:A\nTEL;CELL:9\nEMAIL;WORK:a@b");
}

/// No change of a command overwrites the value of another one, or a value that it moved.
#[test]
fn texts_for_one_name_are_several_values() {
    let phones = "FN:A\nTEL;TYPE=CELL:1\nTEL;TYPE=WORK:2";
    let replaced = phones.replace("CELL:1", "CELL:5");
    for [first, second] in
        [["mobile", "mobile"], ["mobile", "cell"], ["Cell.phone", "phone.mobile"]]
    {
        let changes = [&format!("{first}=5")[..], &format!("{second}=6")];
        check("3.0", phones, &changes, &format!("{replaced}\nTEL;TYPE=CELL:6"));
    }
    let added = format!("{phones}\nTEL;TYPE=HOME:5\nTEL;TYPE=HOME:6");
    check("3.0", phones, &["home.phone=5", "home.phone=6"], &added);
    let both = format!("{replaced}\nTEL;TYPE=CELL:6");
    check("3.0", phones, &["mobile+=6", "mobile=5"], &both);
    let one = "FN:A\nTEL;TYPE=CELL:1";
    check("3.0", one, &["phone=5", "mobile=6"], "FN:A\nTEL;TYPE=CELL:5\nTEL;TYPE=CELL:6");
    check("3.0", "FN:A", &["fburl=x:1", "fburl=x:2"], "FN:A\nFBURL:x:1\nFBURL:x:2");
    check("3.0", "FN:A\nCATEGORIES:z", &["categories=a", "categories=b"], "FN:A\nCATEGORIES:a,b");
    let three = "FN:A\nTEL:1\nTEL:2\nTEL:3";
    check("3.0", three, &["phone.1=", "phone.2="], "FN:A\nTEL:3");
    check("3.0", three, &["phone.1=", "phone.2=5"], "FN:A\nTEL:5\nTEL:3");
    check("3.0", "FN:A\nORG:a\nORG:b\nORG:c", &["org.1=", "org.2="], "FN:A\nORG:c");
}

#[test]
fn a_value_that_is_set_twice_is_refused() {
    let before = "FN:A\nTEL:1\nNOTE:n";
    for [first, second, name] in [
        ["note=x", "note=y", "note"],
        ["note=x", "note.1=y", "note.1"],
        ["name=x", "full_name=y", "full_name"],
        ["family_name=x", "family_name=y", "family_name"],
        ["org=x", "org=y", "org"],
        ["birthday=2000-01-01", "bday=2000-01-02", "birth_date"],
        ["phone.1=5", "phone.1=6", "phone.1"],
        ["phone=5", "phone.1=6", "phone.1"],
        ["phone=5", "phone=", "phone"],
        ["categories=a", "categories=", "categories"],
    ] {
        let error = try_edit(card("3.0", before).as_bytes(), &[first, second]).unwrap_err();
        assert_eq!(error, ContactEditError::SetTwice { name: name.into() }, "{first}, {second}");
    }
}

#[test]
fn one_value_needs_no_label_and_several_do() {
    check("3.0", "FN:A\nTEL;TYPE=CELL:1", &["phone=2"], "FN:A\nTEL;TYPE=CELL:2");
    check("3.0", "FN:A", &["phone=2"], "FN:A\nTEL:2");
    let two = "FN:A\nTEL;TYPE=CELL:1\nTEL:2";
    for change in ["phone=3", "phone="] {
        assert_eq!(refusal("3.0", two, change), "the contact has 2 values of phone: choose one");
    }
    let error = try_edit(card("3.0", two).as_bytes(), &["phone=3"]).unwrap_err();
    let ContactEditError::SeveralValues { choices, .. } = error else { panic!("{error}") };
    let choices: Vec<_> = choices.iter().map(|(name, value)| (&name[..], &value[..])).collect();
    assert_eq!(choices, [("mobile.phone", "1"), ("phone.2", "2")]);
    check("3.0", two, &["phone.2=3"], "FN:A\nTEL;TYPE=CELL:1\nTEL:3");
    for change in ["phone.3=4", "phone.0=4"] {
        let error = refusal("3.0", two, change);
        assert!(error.starts_with("the contact has 2 values of phone, so there is no"), "{error}");
    }
    assert_eq!(
        refusal("3.0", "FN:A\nTEL;TYPE=CELL:1\nTEL;TYPE=CELL:2", "mobile=3"),
        "the contact has 2 values of mobile.phone: choose one"
    );
}

/// A label of a person's own is a property in the same group.
#[test]
fn custom_labels_are_groups() {
    let labelled = "FN:A\nitem1.TEL:1\nitem1.X-ABLabel:Sommerhaus";
    check("3.0", labelled, &["sommerhaus.phone=2"], &labelled.replace("TEL:1", "TEL:2"));
    check("3.0", labelled, &["Sommerhaus.phone="], "FN:A");
    let added = "item2.EMAIL:a@b\nitem2.X-ABLabel:Büro Süd";
    check("3.0", labelled, &["Büro Süd.email=a@b"], &format!("{labelled}\n{added}"));
    // The label stays while another value of its group needs it.
    let shared = "FN:A\nitem1.TEL:1\nitem1.EMAIL:a@b\nitem1.X-ABLabel:Hof";
    check("3.0", shared, &["phone="], "FN:A\nitem1.EMAIL:a@b\nitem1.X-ABLabel:Hof");
}

#[test]
fn a_replaced_value_loses_what_described_the_former_one() {
    let address = "FN:A\nADR;TYPE=HOME;LABEL=\"Old St 1\";GEO=\"geo:1,2\":;;Old St 1;;;;";
    check("4.0", address, &["home.address=New St 2"], "FN:A\nADR;TYPE=HOME:;;New St 2;;;;");
    check("4.0", "FN:A\nTEL;VALUE=uri:tel:+1", &["phone=+2"], "FN:A\nTEL:+2");
    let apple = "FN:A\nBDAY;X-APPLE-OMIT-YEAR=1604:1604-11-27";
    check("3.0", apple, &["birthday=1980-05-03"], "FN:A\nBDAY:1980-05-03");
    check("3.0", "FN:A\nBDAY:1980-05-03", &["bday=--11-27"], apple);
    check("4.0", "FN:A", &["birthday=--11-27"], "FN:A\nBDAY:--1127");
    check("4.0", "FN:A", &["anniversary=2001-02-03"], "FN:A\nANNIVERSARY:20010203");
    check("3.0", "FN:A", &["anniversary=2001-02-03"], "FN:A\nX-ANNIVERSARY:2001-02-03");
    check("3.0", "FN:A\nBDAY:1980", &["birthday="], "FN:A");
    check(
        "4.0",
        "FN:A",
        &["address=;;Gasse 1;Wien;;1010;Austria"],
        "FN:A\nADR:;;Gasse 1;Wien;;1010;Austria",
    );
    check("4.0", "FN:A", &["address=Gasse 1;Wien"], "FN:A\nADR:;;Gasse 1;Wien;;;");
}

#[test]
fn the_name_and_its_parts_follow_each_other() {
    let name = "FN:Anna Berger\nN:Berger;Anna;;;";
    check("3.0", name, &["family_name=Huber"], "FN:Anna Huber\nN:Huber;Anna;;;");
    check("3.0", name, &["name=Eva Maria Huber"], "FN:Eva Maria Huber\nN:Huber;Eva Maria;;;");
    check("3.0", "FN:Annie\nN:Berger;Anna;;;", &["family=Huber"], "FN:Annie\nN:Huber;Anna;;;");
    check("3.0", "FN:Annie\nN:Berger;Anna;;;", &["name=Ann"], "FN:Ann\nN:Berger;Anna;;;");
    check("4.0", "FN:Anna", &["name=Cher"], "FN:Cher\nN:;Cher;;;");
    check("3.0", "FN:A\nORG:ACME;IT;7", &["department=R;D"], "FN:A\nORG:ACME;R\\;D;7");
    check("3.0", "FN:A\nORG:ACME;IT", &["organization=B, C"], "FN:A\nORG:B\\, C;IT");
    check("3.0", "FN:A\nORG:ACME", &["org="], "FN:A");
    let sorted = "FN:Berger\\, Anna\nN:Berger;Anna;;;";
    check("3.0", sorted, &["family_name=Huber"], "FN:Huber\\, Anna\nN:Huber;Anna;;;");
    check("3.0", sorted, &["given_name="], "FN:Berger\nN:Berger;;;;");
    check("3.0", sorted, &["name=Huber, Eva"], "FN:Huber\\, Eva\nN:Huber;Eva;;;");
    assert!(refusal("3.0", name, "full_name=").contains("cannot be empty"));
    // A full name without the other parts of N.
    let short = "FN:Anna Berger\nN:Berger;Anna;Maria;Dr.;";
    check("3.0", short, &["family_name=Huber"], &short.replace("Berger", "Huber"));
    check("3.0", short, &["given_name="], "FN:Berger\nN:Berger;;Maria;Dr.;");
    check("3.0", short, &["name=Eva Huber"], "FN:Eva Huber\nN:Huber;Eva;Maria;Dr.;");
    let whole = short.replace("FN:Anna", "FN:Dr. Anna Maria");
    check("3.0", &whole, &["family_name=Huber"], &whole.replace("Berger", "Huber"));
    check("3.0", &whole, &["name=Eva Huber"], "FN:Eva Huber\nN:Huber;Eva;;;");
}

/// Lists are sorted by this name.
#[test]
fn the_name_for_sorting_follows() {
    let filed = "FN:Noël Baptiste\nN:Baptiste;Noël;;;\nX-EVOLUTION-FILE-AS:Baptiste\\, Noël";
    let renamed = filed.replace("Baptiste", "Zweig");
    check("3.0", filed, &["name=Noël Zweig"], &renamed);
    check("3.0", filed, &["family_name=Zweig"], &renamed);
    let both = ["family_name=Zweig", "given_name=Eva"];
    check("3.0", filed, &both, &renamed.replace("Noël", "Eva"));
    let set = renamed.replace("Zweig\\, Noël", "N. Z.");
    check("3.0", filed, &["name=Noël Zweig", "file_as=N. Z."], &set);
    let company = "FN:ACME\nN:;;;;\nORG:A\nX-EVOLUTION-FILE-AS:ACME";
    let other = company.replace("ACME", "Labs").replace("N:;;;;", "N:;Labs;;;");
    check("3.0", company, &["name=Labs"], &other);
    let own = filed.replace("Baptiste\\, Noël", "Boss");
    check("3.0", &own, &["name=Noël Zweig"], &own.replace("Baptiste", "Zweig"));
    check("3.0", filed, &["note=x"], &format!("{filed}\nNOTE:x"));
}

/// A property that a card has once is not added beside an empty one.
#[test]
fn an_empty_property_gets_the_value() {
    let company = "FN:ACME Support\nN:;;;;\nORG:ACME";
    let renamed = "FN:ACME Helpdesk\nN:Helpdesk;ACME;;;\nORG:ACME";
    check("3.0", company, &["name=ACME Helpdesk"], renamed);
    check("3.0", company, &["family_name=B"], &company.replace("N:;;;;", "N:B;;;;"));
    check(
        "2.1",
        "FN:\nN:\nTEL:1",
        &["name=Anna Berger"],
        "FN:Anna Berger\nN:Berger;Anna;;;\nTEL:1",
    );
    let empty = "FN:A\nBDAY:\nNOTE:\nORG:;\nTITLE:\nNICKNAME:";
    let changes = ["bday=2000-01-02", "note=n", "org=O", "title=T", "nickname=a,b"];
    let filled = "FN:A\nBDAY:2000-01-02\nNOTE:n\nORG:O\nTITLE:T\nNICKNAME:a,b";
    check("3.0", empty, &changes, filled);
    check("3.0", "FN:A\nTEL;TYPE=HOME:", &["phone=1"], "FN:A\nTEL;TYPE=HOME:\nTEL:1");
    check("3.0", "FN:A\nTITLE:", &["title+=T"], "FN:A\nTITLE:\nTITLE:T");
}

/// The name of a list of contacts has no parts.
#[test]
fn the_name_of_a_group_is_one() {
    check("4.0", "KIND:group\nFN:Crew", &["name=Crew 2"], "KIND:group\nFN:Crew 2");
    let apple = "X-ADDRESSBOOKSERVER-KIND:group\nFN:Crew\nN:Crew;;;;";
    check("3.0", apple, &["name=Crew 2"], &apple.replace("Crew", "Crew 2"));
    let evolution = "FN:Crew\nX-EVOLUTION-LIST:TRUE";
    check("3.0", evolution, &["name=Crew 2"], &evolution.replace("Crew", "Crew 2"));
}

#[test]
fn lists_are_replaced_as_a_whole() {
    let lists = "FN:A\nCATEGORIES:a,b\nNOTE:x\nCATEGORIES:c";
    check("3.0", lists, &["categories=d, e"], "FN:A\nCATEGORIES:d,e\nNOTE:x");
    check("3.0", lists, &["category+=c,d"], "FN:A\nCATEGORIES:a,b,c,d\nNOTE:x");
    check("3.0", lists, &["categories="], "FN:A\nNOTE:x");
    check("3.0", "FN:A", &["nickname=Jojo"], "FN:A\nNICKNAME:Jojo");
    let grouped = "item1.X-ABLabel:L\nCATEGORIES:a\nitem1.CATEGORIES:b\nNOTE:x\nFN:A";
    check("3.0", grouped, &["categories=c"], "CATEGORIES:c\nNOTE:x\nFN:A");
    check("3.0", grouped, &["categories="], "NOTE:x\nFN:A");
    let mut edit = ContactEdit::default();
    edit.set_members("categories", &["a,b".into(), "c\\d".into()]).unwrap();
    let result = edit.apply(card("3.0", lists).as_bytes()).unwrap();
    assert_eq!(values(&result, "categories"), ["a,b", "c\\d"]);
}

/// A component may have a line feed, which is an escape except in vCard 2.1.
#[test]
fn a_line_feed_in_a_component_divides_no_line() {
    let company = "FN:A\nORG;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:Foo=0ABar;Dept";
    check("3.0", company, &["org_unit=Labs"], "FN:A\nORG:Foo\\nBar;Labs");
    check(
        "2.1",
        &company.replace("=0A", "=0D=0A"),
        &["org_unit=Labs"],
        "FN:A\nORG;ENCODING=QUOTED-PRINTABLE:Foo=0D=0ABar;Labs",
    );
    // Lines that are not properties are no obstacle.
    check("3.0", "FN:A\nlost\nNOTE:x\nhalf", &["note=", "title=T"], "FN:A\nlost\nhalf\nTITLE:T");
}

/// Everything else stays byte for byte, whatever the encoding of the card.
#[test]
fn other_bytes_stay() {
    let quoted = "FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Chlo=C3=A9\nNOTE:a\n b\nX-ODD;;=:z";
    check("2.1", quoted, &["mobile=1"], &format!("{quoted}\nTEL;CELL:1"));
    let windows = b"BEGIN:VCARD\nVERSION:2.1\nFN:H\xf6lzl\nTEL;HOME:1\nEND:VCARD\n";
    let result = try_edit(windows, &["phone=2", "note=Süd; C:\\new\nx"]).unwrap();
    assert!(
        result.starts_with(b"BEGIN:VCARD\nVERSION:2.1\nFN:H\xf6lzl\nTEL;HOME:2\nNOTE;CHARSET=")
    );
    assert_eq!(values(&result, "note"), ["Süd; C:\\new\nx"]);
    assert_eq!(values(&result, "full_name"), ["Hölzl"]);
    let text = card("3.0", "FN:Ä\nTEL:1");
    let wide: Vec<u8> =
        [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let expected = card("3.0", "FN:Ä\nTEL:2\nNICKNAME:Ö");
    let expected: Vec<u8> =
        [0xfeff].into_iter().chain(expected.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    assert_eq!(try_edit(&wide, &["phone=2", "nickname=Ö"]).unwrap(), expected);
    for text in ["x", "", "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:A\r\n"] {
        assert_eq!(try_edit(text.as_bytes(), &["phone=2"]), Err(ContactEditError::DamagedCard));
    }
}

#[test]
fn wrong_values_and_fields_are_refused() {
    for (change, message) in [
        ("phone=anna@b", "not a valid phone"),
        ("mobile=soon", "not a valid phone"),
        ("email=anna", "not a valid email"),
        ("email=a b@c", "not a valid email"),
        ("url=example", "not a valid url"),
        ("birthday=1980-02-30", "not a valid birth_date"),
        ("birthday=3 May", "not a valid birth_date"),
        ("birthday=--02-30", "not a valid birth_date"),
        ("photo=x", "cannot be set"),
        ("uid=x", "cannot be set"),
        ("work=1", "is a label of several fields"),
        ("mobil=1", "unknown field \"mobil\""),
        ("work.title=CEO", "unknown field \"work.title\""),
    ] {
        let error = refusal("3.0", "FN:A", change);
        assert!(error.contains(message), "{change}: {error}");
    }
    check("3.0", "FN:A", &["birthday=20000229"], "FN:A\nBDAY:2000-02-29");
}

#[test]
fn a_new_contact_has_the_values() {
    let mut edit = ContactEdit::default();
    edit.set_field("org", "ACME, Inc.").unwrap();
    edit.set_labelled("phone", "mobile=+43 1").unwrap();
    edit.set_labelled("phone", "Sommerhaus=+43 2").unwrap();
    edit.set_labelled("url", "https://example.org/?a=b").unwrap();
    assert_eq!(
        String::from_utf8(edit.to_card("u").unwrap()).unwrap(),
        card(
            "3.0",
            "UID:u\nFN:ACME\\, Inc.\nORG:ACME\\, Inc.\nTEL;TYPE=CELL:+43 1\nitem1.TEL:+43 2\n\
             item1.X-ABLabel:Sommerhaus\nURL:https://example.org/?a=b"
        )
    );
    edit.set_field("full_name", "Anna Berger").unwrap();
    let named = edit.to_card("u").unwrap();
    assert_eq!(values(&named, "full_name"), ["Anna Berger"]);
    assert_eq!(values(&named, "family_name"), ["Berger"]);
    let mut edit = ContactEdit::default();
    edit.set_field("phone", "1").unwrap();
    assert_eq!(edit.to_card("u"), Err(ContactEditError::EmptyName));
}

/// Every card of other programs takes new values and gives them up again; all other bytes stay.
#[test]
fn cards_of_other_programs_are_edited() {
    let cards = corpus_cards();
    let mut refused = Vec::new();
    for card in &cards {
        let marker = "+43 999 5550007";
        let change = format!("Zweitbuero.phone+={marker}");
        let Ok(added) = try_edit(card, &[&change]) else {
            refused.push(String::from_utf8_lossy(card).into_owned());
            continue;
        };
        assert!(values(&added, "phone").iter().any(|phone| phone == marker));
        let removed = try_edit(&added, &["Zweitbuero.phone="]).unwrap();
        assert_eq!(String::from_utf8_lossy(&removed), String::from_utf8_lossy(card));
        let noted = try_edit(card, &["title+=Zimmerer; Ö"]).unwrap();
        assert!(values(&noted, "title").iter().any(|title| title == "Zimmerer; Ö"));
        let count = values(&noted, "title").len();
        let again = try_edit(&noted, &[&format!("title.{count}=")]).unwrap();
        assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(card));
    }
    assert_eq!(refused, [""; 0]);
    assert!(cards.len() > 300, "{}", cards.len());
}

/// Returns the intact cards of the corpora.
fn corpus_cards() -> Vec<Vec<u8>> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let folder = std::env::var_os("LARDER_CORPORA").map_or_else(beside, PathBuf::from).join("vcf");
    let mut files: Vec<PathBuf> = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let texts = files.iter().map(|file| std::fs::read(file).unwrap());
    let mut cards = Vec::new();
    for text in texts {
        let mut rest = &text[..];
        let end = b"\nEND:VCARD";
        while let Some(at) = rest.windows(end.len()).position(|bytes| bytes == end) {
            let (card, after) = rest.split_at(at + end.len());
            let card = card.trim_ascii_start();
            let is_one =
                card.starts_with(b"BEGIN:VCARD") && Contact::parse(card).fatal_problem().is_none();
            if is_one {
                cards.push(card.to_vec());
            }
            rest = after;
        }
    }
    cards
}

/// A value that another program wrote under a name of its own is replaced, and no second one added.
#[test]
fn values_under_the_names_of_other_programs_are_set() {
    let before = "FN:A\nX-KADDRESSBOOK-X-SpousesName:Eva\nX-NICKNAME:Rob\nX-MANAGER:M";
    let after = before.replace("Eva", "Maria").replace("Rob", "Bob");
    check("3.0", before, &["spouse=Maria", "nickname=Bob"], &after);
    let both = format!("{before}\nX-EVOLUTION-SPOUSE:Maria");
    check("3.0", &both, &["spouse=", "nickname="], "FN:A\nX-MANAGER:M");
    let one = before.replace("Eva", "Zoe");
    check("3.0", &both, &["spouse=Zoe"], &one);
    check("3.0", "FN:A", &["assistant=B"], "FN:A\nX-EVOLUTION-ASSISTANT:B");
    assert_eq!(refusal("3.0", before, "manager+=B"), "a contact has one manager: leave out \"+\"");
}

#[test]
fn a_change_replaces_no_value_that_it_does_not_name() {
    let lines = "FN:Quentin Test\nN:Test;Quentin;;;\nORG:Acme;Sales\nBDAY:1980-01-02\nNICKNAME:Q";
    let added = format!("{lines}\nORG:Second Inc");
    check("3.0", lines, &["org+=Second Inc"], &added);
    check("3.0", &added, &["org.2=Third"], &added.replace("Second Inc", "Third"));
    check("3.0", &added, &["org_unit.1=Labs"], &added.replace("Sales", "Labs"));
    check(
        "3.0",
        lines,
        &["nickname+=Quen"],
        &lines.replace(":Q", ":Q,Quen").replace("FN:Q,Quen", "FN:Q"),
    );
    let twins = format!("FN:Quentin\n{lines}");
    check("4.0", &twins, &["full_name.2=Other"], &twins.replace("Quentin Test", "Other"));
    for (change, expected) in [
        ("org.0=X", "the contact has 1 value of org, so there is no number 0"),
        ("org.5=X", "the contact has 1 value of org, so there is no number 5"),
        ("full_name+=Other", "a contact has one full_name: leave out \"+\""),
        ("full_name.2=Other", "the contact has 1 value of full_name, so there is no number 2"),
        ("family_name+=X", "a contact has one family_name: leave out \"+\""),
        ("given_name.2=X", "a contact has one given_name: leave out \".2\""),
        ("birth_date.3=1999-01-01", "a contact has one birth_date: leave out \".3\""),
        ("birth_date+=1999-01-01", "a contact has one birth_date: leave out \"+\""),
        ("nickname.4=X", "a contact has one nickname: leave out \".4\""),
    ] {
        assert_eq!(refusal("3.0", lines, change), expected, "{change}");
    }
}
