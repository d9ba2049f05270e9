//! Merges of two cards: each kind of property, each version, and nothing lost.

mod card_values;

use crate::corpora::vcards;
use crate::split::split;
use card_values::{
    CardValue, card_values, comparable_params, is_refined_name, property_values, unparsed_lines,
};
use larder_format::contact::{Contact, ProblemKind, merge_cards};
use larder_format::field::CONTACT_FIELDS;
use larder_format::property::Property;
use proptest::prelude::*;

/// Returns a card of these lines.
fn card(version: &str, lines: &str) -> String {
    format!("BEGIN:VCARD\r\nVERSION:{version}\r\n{}END:VCARD\r\n", with_ends(lines))
}

fn with_ends(lines: &str) -> String {
    lines.lines().map(|line| format!("{}\r\n", line.trim_start_matches('|'))).collect()
}

/// Merges cards of these lines, and compares all lines except the first two and the last.
#[track_caller]
fn check(versions: [&str; 2], base: &str, other: &str, expect: &str) {
    let (base, other) = (card(versions[0], base), card(versions[1], other));
    let once = merge_cards(base.as_bytes(), other.as_bytes()).expect("cards that can be joined");
    let text = String::from_utf8(once.clone()).expect("UTF-8");
    assert_eq!(text, card(versions[0], expect), "\n{text}");
    let twice = merge_cards(&once, other.as_bytes()).expect("a card that can be joined again");
    assert_eq!(String::from_utf8_lossy(&twice), text, "joined again");
    let itself = merge_cards(&once, &once).expect("a card that can be joined with itself");
    assert_eq!(String::from_utf8_lossy(&itself), text, "joined with itself");
}

#[test]
fn equal_values_are_not_repeated() {
    let v3 = |base, other, expect| check(["3.0", "3.0"], base, other, expect);
    v3("FN:Anna", "FN:Anna\nTEL:123", "FN:Anna\nTEL:123");
    v3("TEL:030 12-34", "TEL:0301234", "TEL:030 12-34");
    v3("TEL:030 1234", "TEL:+49 30 1234", "TEL:030 1234\nTEL:+49 30 1234");
    v3("EMAIL:a@b.example", "EMAIL:A@B.example", "EMAIL:a@b.example");
    v3("NOTE:a\\, b", "NOTE:a, b", "NOTE:a\\, b");
    v3("NOTE:a", "NOTE:b\nNOTE:a", "NOTE:a\nNOTE:b");
    v3("NOTE:long text", "NOTE:long\n  text", "NOTE:long text");
    v3("ORG:Firm", "ORG:Firm;\nORG:Firm;Sales", "ORG:Firm\nORG:Firm;Sales");
    v3("ADR:;;Gasse 1;Wien;;1010;", "ADR:;;Gasse 1;Wien;;1010", "ADR:;;Gasse 1;Wien;;1010;");
    v3("FN:A\nNOTE:x", "NOTE:\nADR:;;;;;;\nTEL:", "FN:A\nNOTE:x");
    v3(
        "CATEGORIES:friends,club",
        "CATEGORIES:club,sea\\, sun,work",
        "CATEGORIES:friends,club\nCATEGORIES:sea\\, sun,work",
    );
    v3("FN:A", "X-ODD;X=1:as; it, is\\x", "FN:A\nX-ODD;X=1:as; it, is\\x");
}

#[test]
fn parameters_are_united() {
    let v3 = |base, other, expect| check(["3.0", "3.0"], base, other, expect);
    v3("TEL;TYPE=home:1", "TEL;TYPE=work,pref:1", "TEL;TYPE=work;TYPE=home:1");
    v3("TEL;TYPE=home:1", "TEL;TYPE=HOME:1", "TEL;TYPE=home:1");
    v3("EMAIL:a@b", "EMAIL;X-OWN=\"a:b\":a@b", "EMAIL;X-OWN=\"a:b\":a@b");
    // Values whose parameters contradict each other are two values.
    v3("NOTE;LANGUAGE=de:x", "NOTE;LANGUAGE=en:x", "NOTE;LANGUAGE=de:x\nNOTE;LANGUAGE=en:x");
    v3(
        "NOTE:x",
        "NOTE;LANGUAGE=de:x\nNOTE;LANGUAGE=en:x\nNOTE;X-A=1;LANGUAGE=de:x",
        "NOTE;LANGUAGE=de;X-A=1:x\nNOTE;LANGUAGE=en:x",
    );
    v3("ORG:X", "ORG;SORT-AS=a:X\nORG;SORT-AS=b:X", "ORG;SORT-AS=a:X\nORG;SORT-AS=b:X");
    v3("TEL:1", "TEL;TYPE=home:1\nTEL;TYPE=work:1", "TEL;TYPE=home,work:1");
    check(["4.0", "3.0"], "TEL:1", "TEL;TYPE=cell,pref:1", "TEL;TYPE=cell:1");
    check(["2.1", "3.0"], "TEL;HOME:1", "TEL;TYPE=cell:1", "TEL;CELL;HOME:1");
    check(["3.0", "4.0"], "TEL:+1-2", "TEL;VALUE=uri;PREF=1:tel:+1-2", "TEL:+1-2");
}

/// Values of the first card come first.
#[test]
fn a_second_preferred_value_is_not_added() {
    let v3 = |base: &str, other: &str, expect: &str| check(["3.0", "3.0"], base, other, expect);
    let slot = "TEL;X-EVOLUTION-UI-SLOT=1:1";
    v3(slot, "TEL;X-EVOLUTION-UI-SLOT=2:1", slot);
    v3(slot, "TEL;X-EVOLUTION-UI-SLOT=1;TYPE=home:2", &format!("{slot}\nTEL;TYPE=home:2"));
    v3("TEL:1", "TEL;TYPE=pref:1\nTEL;TYPE=\"home,PREF\":2", "TEL:1\nTEL;TYPE=home:2");
    // The preferences of values that the base lacks stay.
    let mails = "EMAIL;X-EVOLUTION-UI-SLOT=1:a@b\nEMAIL;TYPE=pref;X-EVOLUTION-UI-SLOT=2:c@d";
    v3(slot, mails, &format!("{slot}\n{mails}"));
    v3("FN:A\nEMAIL:", mails, &format!("FN:A\nEMAIL:\n{mails}"));
    v3("BDAY:1970", "BDAY;PREF=1:1971", "BDAY:1970\nX-LARDER-BDAY:1971");
    v3("NOTE:x", "NOTE;PREF=1:a\\, b\\n c\n  d", "NOTE:x\nNOTE:a\\, b\\n c d");
    check(["4.0", "4.0"], "TEL:1", "TEL;PREF=1:1\nTEL;PREF=2:1\nTEL;PID=1.1:2", "TEL:1\nTEL:2");
    check(["2.1", "2.1"], "TEL:1", "TEL;PREF;HOME:1\nTEL;PREF;CELL:2", "TEL;HOME:1\nTEL;CELL:2");
    check(["4.0", "3.0"], "TEL:1", "TEL;TYPE=pref:2", "TEL:1\nTEL:2");
    check(["4.0", "3.0"], "FN:A", "TEL;TYPE=pref:2", "FN:A\nTEL;TYPE=pref;PREF=1:2");
}

/// A line that is replaced takes no parameters over, either.
#[test]
fn one_line_changes_once() {
    let v3 = |base: &str, other: &str, expect: &str| check(["3.0", "3.0"], base, other, expect);
    for kept in ["X-LARDER-N;LANGUAGE=de:Berg", "X-LARDER-N:Berg"] {
        let other = format!("N:Berg;Anna;;;\n{kept}");
        v3("N:Berg;;;;\nNOTE:x", &other, &format!("N:Berg;Anna;;;\nNOTE:x\n{kept}"));
        let other = format!("{kept}\nN:Berg;Anna;;;");
        v3("N:Berg;;;;\nNOTE:x", &other, &format!("N:Berg;Anna;;;\nNOTE:x\n{kept}"));
    }
    v3(
        "BDAY:\nNOTE:x",
        "BDAY:1970-01-02\nX-LARDER-BDAY;X-A=1:",
        "BDAY:1970-01-02\nNOTE:x\nX-LARDER-BDAY;X-A=1:",
    );
}

#[test]
fn single_values_are_kept_under_another_name() {
    let v3 = |base, other, expect| check(["3.0", "3.0"], base, other, expect);
    v3("UID:a\nFN:A", "UID:b\nFN:A", "UID:a\nFN:A\nX-LARDER-UID:b");
    v3("FN:A", "UID:b\nFN:A", "FN:A\nX-LARDER-UID:b");
    v3(
        "FN:Anna\nBDAY:1970-01-02",
        "FN:Anna S\nBDAY;X-A=b:1970-01-03",
        "FN:Anna\nBDAY:1970-01-02\nX-LARDER-FN:Anna S\nX-LARDER-BDAY;X-A=b:1970-01-03",
    );
    v3("FN:A\nBDAY:1970-01-02", "BDAY:19700102\nREV:x\nPRODID:y", "FN:A\nBDAY:1970-01-02");
    v3("FN:A\nREV:1", "REV:2\nBDAY:1970", "FN:A\nREV:1\nBDAY:1970");
    check(["4.0", "3.0"], "FN:Anna", "FN:Anna S", "FN:Anna\nFN:Anna S");
    check(["4.0", "4.0"], "FN:A\nGENDER:F", "GENDER:O", "FN:A\nGENDER:F\nX-LARDER-GENDER:O");
    // A name that is part of the other name is replaced by it.
    v3("FN:A\nN:Berg;;;;", "N:Berg;Anna;;Dr.;", "FN:A\nN:Berg;Anna;;Dr.;");
    v3("FN:A\nN:;;;;", "N:Berg;Anna;;;", "FN:A\nN:Berg;Anna;;;");
    v3("FN:A\nN:Berg;Anna;;;", "N:Berg;;;;", "FN:A\nN:Berg;Anna;;;\nX-LARDER-N:Berg;;;;");
    // A value kept from a third card is not kept twice.
    v3("FN:A\nBDAY:1970", "X-LARDER-BDAY:1970\nNOTE:x", "FN:A\nBDAY:1970\nNOTE:x");
}

#[test]
fn groups_stay_together() {
    let v3 = |base, other, expect| check(["3.0", "3.0"], base, other, expect);
    let boat = "item1.TEL:1\nitem1.X-ABLABEL:Boat";
    v3("FN:A", boat, "FN:A\nitem1.TEL:1\nitem1.X-ABLABEL:Boat");
    v3(boat, "item7.TEL:1\nitem7.X-ABLABEL:Boat", boat);
    v3(
        boat,
        "item1.TEL:1\nitem1.X-ABLABEL:Barn\nitem2.TEL:2",
        "item1.TEL:1\nitem1.X-ABLABEL:Boat\nitem3.TEL:1\nitem3.X-ABLABEL:Barn\nitem2.TEL:2",
    );
    v3("TEL:1", boat, "TEL:1\nitem1.TEL:1\nitem1.X-ABLABEL:Boat");
    v3(boat, "TEL:1", boat);
    v3(
        "item1.TEL:1\nitem1.BDAY:1970",
        "item1.NOTE:n\nitem1.BDAY:1971",
        "item1.TEL:1\nitem1.BDAY:1970\nitem2.NOTE:n\nitem2.X-LARDER-BDAY:1971",
    );
}

#[test]
fn versions_are_translated() {
    check(
        ["3.0", "2.1"],
        "FN:A",
        "NOTE;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:Gr=FC=DFe,=0D=0A=\n zwei;\nTEL;HOME;VOICE:1\nURL;URL:http://x.example/a,b;c",
        "FN:A\nNOTE:Grüße\\,\\n zwei\\;\nTEL;TYPE=HOME,VOICE:1\nURL;VALUE=uri:http://x.example/a,b;c",
    );
    check(
        ["2.1", "4.0"],
        "FN:A",
        "NOTE:Grüße\\, b\\nc\\;\nTITLE:Boss\\, too\nTEL;TYPE=\"cell,x y\";VALUE=uri:tel:+1-2\nGEO:geo:1.5,2\nNICKNAME:a\\,b,c",
        "FN:A\nNOTE;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Gr=C3=BC=C3=9Fe, b=0D=0Ac;\nTITLE:Boss, too\nTEL;TYPE=cell,x y:+1-2\nGEO:1.5,2\nNICKNAME:a\\,b,c",
    );
    check(["4.0", "2.1"], "FN:A", "GEO:1.5,2", "FN:A\nGEO:geo:1.5,2");
    // Components have lists since version 3.0 only.
    check(
        ["3.0", "2.1"],
        "FN:A",
        "N:Smith, Sr.;Bob\nADR:;;Gasse 1, Hof;Wien\\, Wieden\nORG:B, C;D\nCATEGORIES:a,b",
        "FN:A\nN:Smith\\, Sr.;Bob\nADR:;;Gasse 1\\, Hof;Wien\\, Wieden\nORG:B\\, C;D\nCATEGORIES:a,b",
    );
    check(
        ["3.0", "4.0"],
        "FN:A",
        "KIND:org\nTEL;TYPE=cell;PREF=1:1",
        "FN:A\nKIND:org\nTEL;TYPE=cell,pref:1",
    );
    let long = "Ä".repeat(60);
    let folded = format!("FN:A\nNOTE:{}\n| {}", "Ä".repeat(35), "Ä".repeat(25)).replace("| ", " ");
    check(["3.0", "2.1"], "FN:A", &format!("NOTE;CHARSET=UTF-8:{long}"), &folded);
}

#[test]
fn pictures_are_translated() {
    let both = |a: [&str; 2], b: [&str; 2]| {
        check([a[0], b[0]], "FN:A", b[1], &format!("FN:A\n{}", a[1]));
        // Both are the same picture.
        check([a[0], b[0]], a[1], b[1], a[1]);
    };
    both(
        ["2.1", "PHOTO;ENCODING=BASE64;JPEG:AAEC\n\n"],
        ["3.0", "PHOTO;ENCODING=b;TYPE=JPEG:AAEC"],
    );
    both(
        ["2.1", "PHOTO;ENCODING=BASE64;JPEG:AAEC\n\n"],
        ["4.0", "PHOTO:data:image/jpeg;base64,AAEC"],
    );
    both(["3.0", "PHOTO;ENCODING=b;TYPE=JPEG:AAEC"], ["2.1", "PHOTO;JPEG;BASE64:AA\n  EC\n"]);
    both(["3.0", "PHOTO;ENCODING=b;TYPE=PNG:AAE="], ["4.0", "PHOTO:data:image/png;base64,AAE="]);
    both(["4.0", "PHOTO:data:image/jpeg;base64,AAEC"], ["3.0", "PHOTO;ENCODING=b;TYPE=JPEG:AAEC"]);
    both(
        ["4.0", "KEY:data:application/pgp-keys;base64,AA=="],
        ["3.0", "KEY;ENCODING=B;TYPE=PGP:AA=="],
    );
    both(["3.0", "PHOTO;VALUE=uri:http://x/a.png"], ["4.0", "PHOTO:http://x/a.png"]);
    both(["3.0", "PHOTO;ENCODING=b:AAEC"], ["3.0", "PHOTO;ENCODING=b:AAEC"]);
    // Only vCard 2.1 has lines without the blank of a fold.
    let unfolded = "PHOTO;ENCODING=BASE64:AAEC\nAwQF\n BgcI";
    both(["3.0", "PHOTO;ENCODING=BASE64:AAEC\n AwQF\n BgcI"], ["3.0", unfolded]);
    both(["2.1", &format!("{unfolded}\n\n")], ["2.1", unfolded]);
}

#[test]
fn unparsed_lines_are_kept_as_text() {
    check(
        ["3.0", "3.0"],
        "FN:A",
        "NOTE:x\nlost, half\nand more",
        "FN:A\nNOTE:x\nX-LARDER-LINES:lost\\, half\\nand more",
    );
    check(
        ["3.0", "2.1"],
        "FN:A",
        "AGENT:\nBEGIN:VCARD\nFN:B\nEND:VCARD\nTEL:1",
        "FN:A\nTEL:1\nAGENT:BEGIN:VCARD\\nFN:B\\nEND:VCARD",
    );
    check(
        ["2.1", "2.1"],
        "FN:A",
        "AGENT:BEGIN:VCARD\nFN:B\nEND:VCARD",
        "FN:A\nAGENT;ENCODING=QUOTED-PRINTABLE:BEGIN=3AVCARD=0D=0AFN=3AB=0D=0AEN=\nD=3AVCARD",
    );
    check(
        ["2.1", "2.1"],
        "FN:A\nNOTE;ENCODING=QUOTED-PRINTABLE:a=",
        "TEL:1",
        "FN:A\nNOTE;ENCODING=QUOTED-PRINTABLE:a=\n\nTEL:1",
    );
}

/// The result has the encoding and the line ends of the base, whose own bytes stay.
#[test]
fn bytes_of_the_base_stay() {
    let base = "BEGIN:VCARD\nVERSION:3.0\nFN:A\n B\nX:\n  odd\nEND:VCARD";
    let other = "BEGIN:VCARD\r\nVERSION:3.0\r\nNOTE:a\r\n  b\r\nTEL:1\r\nEND:VCARD\r\n";
    let expect = base.replace("END", "NOTE:a\n  b\nTEL:1\nEND");
    assert_eq!(merge_cards(base.as_bytes(), other.as_bytes()), Some(expect.into_bytes()));
    let mac = base.replace("\n ", "").replace('\n', "\r");
    let expect = mac.replace("END", "NOTE:a b\rTEL:1\rEND");
    assert_eq!(merge_cards(mac.as_bytes(), other.as_bytes()), Some(expect.into_bytes()));

    let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let base = "\u{feff}BEGIN:VCARD\nFN:😀\nTEL;HOME:1\nEND:VCARD\n";
    let other = "BEGIN:VCARD\nTEL;WORK:1\nNOTE:ä\nEND:VCARD\n";
    let latin: Vec<u8> = other.chars().map(|c| u8::try_from(c).unwrap()).collect();
    let quoted = "NOTE;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:=C3=A4\n";
    for (other, note) in [(wide(other), "NOTE:ä\n"), (latin, quoted)] {
        let expect = base.replace("TEL;HOME:1\n", &format!("TEL;WORK;HOME:1\n{note}"));
        assert_eq!(merge_cards(&wide(base), &other), Some(wide(&expect)));
    }
    let latin = b"BEGIN:VCARD\nFN:\xe4\nEND:VCARD\n";
    let expect = b"BEGIN:VCARD\nFN:\xe4\nTEL:1\nEND:VCARD\n";
    assert_eq!(merge_cards(latin, b"BEGIN:VCARD\nTEL:1\nEND:VCARD\n"), Some(expect.to_vec()));
    // Nothing can be added to half a card.
    assert_eq!(merge_cards(b"BEGIN:VCARD\nFN:A\n", other.as_bytes()), None);
    assert_eq!(
        merge_cards(b"BEGIN:VCARD\nFN:A\nAGENT:\nBEGIN:VCARD\nEND:VCARD\n", other.as_bytes()),
        None
    );
}

/// Checks that the result begins with the lines of the base, unchanged except for parameters after
/// the name; that the lines after them come from the other card; and that none of these is
/// preferred where the base has a preferred value.
#[track_caller]
fn check_nothing_invented(base: &Contact<'_>, other: &Contact<'_>, result: &Contact<'_>) {
    let shown = || {
        let text = |card: &Contact<'_>| -> String {
            card.properties().iter().map(|one| String::from_utf8_lossy(one.raw())).collect()
        };
        format!("\n{}\nof\n{}\nand\n{}", text(result), text(base), text(other))
    };
    let (known, now) = (base.properties(), result.properties());
    for (known, now) in known.iter().zip(now) {
        let raw = known.raw().trim_ascii_end();
        let name_end = raw.iter().position(|byte| b":;".contains(byte)).unwrap_or(raw.len());
        let line = now.raw().trim_ascii_end();
        let stays = line.starts_with(&raw[..name_end]) && line.ends_with(&raw[name_end..]);
        assert!(
            stays || is_refined_name(known, now),
            "{}{}",
            String::from_utf8_lossy(raw),
            shown()
        );
        let first = |one: &Property<'_>| comparable_params(one, "").1;
        let valued = !property_values(known).is_empty();
        assert!(!valued || first(known) || !first(now), "made a first{}", shown());
    }
    let (base, other) = (card_values(base), card_values(other));
    // Only types are united.
    for now in now.iter().take(known.len()).flat_map(property_values) {
        let same = base.iter().chain(&other).filter(|one| one.is(&now.name, &now.value));
        for (key, _) in now.params.iter().filter(|(key, _)| key != "TYPE") {
            let of_one = same.clone().any(|one| one.param(key) == now.param(key));
            assert!(of_one, "mixed {key}{}", shown());
        }
    }
    for one in now.iter().skip(known.len()).flat_map(property_values) {
        let of_other =
            |from: &CardValue| from.is(&one.name, &one.value) && from.has_all_params(&one);
        let text = ["LINES", "AGENT"].contains(&one.name.as_str());
        assert!(text || other.iter().any(of_other), "{}:{}{}", one.name, one.value, shown());
        let has_one = base.iter().any(|known| known.name == one.name);
        assert!(!has_one || !one.is_ranked, "a second first {}{}", one.value, shown());
    }
}

/// Checks that every value of the two cards is in the result, with its parameters, and nothing
/// else.
fn check_nothing_lost(base: &[u8], other: &[u8]) {
    let Some(once) = merge_cards(base, other) else {
        // A lone CR ends a line only before the name of a property, so a soft break there has no
        // end; and a line before two breaks in a row changes with any line that follows.
        let text = String::from_utf8_lossy(base);
        assert!(!text.contains('\n') || text.contains("==\n") || text.contains("==\r"), "{text}");
        return;
    };
    let cards = [base, other, &once].map(Contact::parse);
    check_nothing_invented(&cards[0], &cards[1], &cards[2]);
    let wide = base.contains(&0);
    assert!(
        wide || unparsed_lines(base) == unparsed_lines(&once),
        "{:?} {:?}",
        unparsed_lines(base),
        unparsed_lines(&once)
    );
    let there = card_values(&cards[2]);
    // The values of the base were compared by their lines.
    for one in card_values(&cards[1]) {
        let found =
            |known: &CardValue| known.is(&one.name, &one.value) && known.has_all_params(&one);
        assert!(
            there.iter().any(found),
            "{}:{} {:?} is lost in\n{}\nof\n{}",
            one.name,
            one.value,
            one.params,
            String::from_utf8_lossy(&once),
            String::from_utf8_lossy(other)
        );
    }
    let twice = merge_cards(&once, other).expect("a card that was joined can be joined again");
    assert_eq!(String::from_utf8_lossy(&once), String::from_utf8_lossy(&twice), "joined again");
    // The result has the phone numbers and addresses of both.
    for field in CONTACT_FIELDS.iter().filter(|field| ["phone", "email"].contains(&field.name)) {
        let key = |value: &String| value.to_lowercase().replace(['-', ' '], "");
        let found: Vec<String> = Contact::parse(&once).values(field).iter().map(key).collect();
        for card in [base, other] {
            for value in Contact::parse(card).values(field).iter().map(key) {
                let empty = value.trim_matches([';', ',']).is_empty();
                assert!(empty || found.contains(&value), "{value}");
            }
        }
    }
}

fn line() -> impl Strategy<Value = String> {
    let group = prop_oneof![4 => Just(""), 1 => Just("item1."), 1 => Just("item2.")];
    let name = prop::sample::select(vec![
        "FN",
        "N",
        "TEL",
        "EMAIL",
        "NOTE",
        "ADR",
        "ORG",
        "BDAY",
        "UID",
        "CATEGORIES",
        "NICKNAME",
        "X-ABLABEL",
        "X-Some",
        "URL",
        "TITLE",
        "GEO",
        "GENDER",
        "KIND",
        "REV",
        "X-LARDER-BDAY",
        "X-LARDER-N",
        "AGENT",
    ]);
    let params = prop::sample::select(vec![
        "",
        "",
        "",
        ";TYPE=home",
        ";TYPE=work,pref",
        ";HOME;CELL",
        ";PREF=1",
        ";PREF=2",
        ";LANGUAGE=de",
        ";LANGUAGE=en",
        ";X-EVOLUTION-UI-SLOT=1",
        ";X-A=\"b:c\"",
        ";X-A=b^nc",
        ";VALUE=uri",
        ";ENCODING=QUOTED-PRINTABLE",
        ";CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE",
        ";TYPE=\"a b\"",
    ]);
    let value = prop_oneof![
        prop::sample::select(vec![
            "1",
            "030 12-34",
            "0301234",
            "a@b.example",
            "A@b.example",
            "Berg;Anna;;;",
            "Berg;;;;",
            "x\\, y",
            "x, y",
            "a\\nb",
            "a\\\\nb",
            "\\",
            "=C3=A4=0D=0Ab",
            "1970-01-02",
            "19700102",
            "tel:+1-2",
            "1.5,2",
            "geo:1.5,2",
            "friends,club",
            "ä ö ü",
            "",
            ";;",
            "BEGIN:x",
        ])
        .prop_map(str::to_string),
        "[a-zA-Zäß€ ,;:=\\\\^\"]{0,90}",
    ];
    (group, name, params, value)
        .prop_map(|(group, name, params, value)| format!("{group}{name}{params}:{value}"))
}

fn any_card() -> impl Strategy<Value = String> {
    let version = prop::sample::select(vec!["2.1", "3.0", "4.0"]);
    let end = prop::sample::select(vec!["\n", "\r\n", "\r"]);
    let photo = prop::sample::select(vec![
        "",
        "",
        "PHOTO;ENCODING=b;TYPE=JPEG:AAECAwQF",
        "PHOTO:data:image/png;base64,AAECAwQF",
        "KEY;BASE64;PGP:AAEC",
        "half a line",
    ]);
    (version, end, prop::collection::vec(line(), 0..8), photo).prop_map(
        |(version, end, lines, photo)| {
            let lines: String = lines.iter().map(|line| format!("{line}{end}")).collect();
            let photo = if photo.is_empty() { String::new() } else { format!("{photo}{end}") };
            format!(
                "BEGIN:VCARD{end}VERSION:{version}{end}FN:Anna{end}{lines}{photo}END:VCARD{end}"
            )
        },
    )
}

/// Generates a card of few names and values, so that many lines differ only in their parameters.
fn similar_card() -> impl Strategy<Value = String> {
    let names = vec!["N", "X-LARDER-N", "BDAY", "X-LARDER-BDAY", "NOTE", "item1.NOTE", "NICKNAME"];
    let params = vec!["", "", ";TYPE=home", ";TYPE=pref", ";LANGUAGE=de", ";LANGUAGE=en", ";X-A=1"];
    let values = vec!["", "Berg", "Berg;Anna", "Otto", "1970-01-02"];
    let line = [names, params, values].map(prop::sample::select);
    prop::collection::vec(line, 0..6).prop_map(|lines| {
        let line = |[name, params, value]: &[&str; 3]| format!("{name}{params}:{value}\n");
        card("3.0", &format!("FN:A\n{}", lines.iter().map(line).collect::<String>()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merges_of_any_cards_lose_nothing(base in any_card(), other in any_card()) {
        check_nothing_lost(base.as_bytes(), other.as_bytes());
    }

    #[test]
    fn merges_of_similar_cards_lose_nothing(base in similar_card(), other in similar_card()) {
        check_nothing_lost(base.as_bytes(), other.as_bytes());
    }

    #[test]
    fn merges_of_any_bytes_lose_nothing(base in prop::collection::vec(any::<u8>(), 0..200), other in any_card()) {
        let wrapped = [b"BEGIN:VCARD\nFN:x\n".as_slice(), &base, b"\nEND:VCARD\n"].concat();
        for base in [&base, &wrapped] {
            let _may_be_none = merge_cards(base, other.as_bytes());
            if let Some(result) = merge_cards(other.as_bytes(), base) {
                prop_assert!(Contact::parse(&result).fatal_problem().is_none());
            }
        }
    }
}

/// Cards of all programs are merged with their neighbours, which other programs wrote in other
/// versions.
#[test]
fn merges_of_corpora_cards_lose_nothing() {
    let files = vcards("merges_of_corpora_cards_lose_nothing");
    let mut cards = Vec::new();
    for (_, bytes) in files.iter().filter(|(_, bytes)| bytes.len() < 200_000) {
        let pieces = split([&bytes[..]], 32 << 20).into_iter();
        let whole = pieces.filter(|piece| {
            let card = Contact::parse(&piece.bytes);
            let no_end =
                card.problems().iter().any(|problem| problem.kind == ProblemKind::MissingCardEnd);
            piece.name == "VCARD" && card.fatal_problem().is_none() && !no_end
        });
        cards.extend(whole.take(5).map(|piece| piece.bytes));
    }
    let step = cards.len() / 3;
    for (at, base) in cards.iter().enumerate() {
        for other in [1, step, 2 * step].iter().map(|far| &cards[(at + far) % cards.len()]) {
            check_nothing_lost(base, other);
        }
    }
}
