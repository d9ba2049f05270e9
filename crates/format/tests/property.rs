//! Properties: group, name, parameters, value.

use larder_format::content_line::content_lines;
use larder_format::property::Property;
use proptest::prelude::*;

fn parse(line: &[u8]) -> Property<'_> {
    Property::parse(content_lines(line).next().expect("a line"))
}

/// Formats as `group|name|param=value,value|...|text`, with `!` for an open quote and `?` for an
/// unknown line.
fn show(property: &Property<'_>) -> String {
    let mut shown = property.group().map(|group| format!("{group}|")).unwrap_or_default();
    shown += property.name();
    for param in property.params() {
        shown += &format!("|{}={}", param.name, param.values.join(","));
    }
    let marks = [(property.has_open_quote(), "!"), (!property.is_property(), "?")];
    shown += &marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect::<String>();
    format!("{shown}|{}", property.text())
}

#[test]
fn properties_have_parts() {
    for (input, expect) in [
        ("FN:Anna", "FN|Anna"),
        ("fn:Anna", "fn|Anna"),
        ("FN:", "FN|"),
        ("FN : Anna", "FN| Anna"),
        ("item1.TEL:1", "item1|TEL|1"),
        ("a.b.TEL:1", "a.b|TEL|1"),
        (".TEL:1", "TEL|1"),
        ("TEL;TYPE=home,voice:1", "TEL|TYPE=home,voice|1"),
        ("TEL;TYPE=\"home,voice\":1", "TEL|TYPE=home,voice|1"),
        ("TEL;HOME;VOICE:1", "TEL|TYPE=HOME|TYPE=VOICE|1"),
        ("A;;X=1;:1", "A|X=1|1"),
        ("A;X=\"a:b;c\":1", "A|X=a:b;c|1"),
        ("A;X=\"a,b\",c:1", "A|X=a,b,c|1"),
        ("A;X=a^nb^'c^^d^e:1", "A|X=a\nb\"c^d^e|1"),
        ("A;URL:http://x", "A|VALUE=URL|http://x"),
        ("A;X=\"open:1;2", "A|X=\"open!|1;2"),
        ("A;X=5\":\"quoted\"", "A|X=5\"!|\"quoted\""),
        ("A;X=a\0b,\"c\0\":1", "A|X=ab,c|1"),
        ("X_UNDER:1", "X_UNDER|1"),
        ("X-messaging/aim-All:1", "X-messaging/aim-All|1"),
        ("no colon", "?|no colon"),
        ("A;B", "?|A;B"),
        ("***bad:1", "?|***bad:1"),
        (":1", "?|:1"),
        ("bad name:1", "?|bad name:1"),
        ("Grün:1", "?|Grün:1"),
    ] {
        assert_eq!(show(&parse(input.as_bytes())), expect, "{input:?}");
    }
}

#[test]
fn texts_are_decoded() {
    for (input, expect) in [
        (&b"N;ENCODING=QUOTED-PRINTABLE:M=C3=BCller"[..], "Müller"),
        (b"N;QUOTED-PRINTABLE;CHARSET=ISO-8859-1:M=FCller", "Müller"),
        (b"N;CHARSET=windows-1251:\xc8\xe2\xe0\xed", "Иван"),
        (b"N;CHARSET=\"iso-8859-1\":M\xfcller", "Müller"),
        (b"N:M\xfcller", "Müller"),
        (b"N:M\0ller", "Mller"),
        (b"NOTE;ENCODING=b:aGVsbG8=", "hello"),
        (b"NOTE;BASE64;CHARSET=ISO-8859-1:TfxsbGVy", "Müller"),
        (b"NOTE;BASE64://///w==", "/////w=="),
        (b"NOTE;ENCODING=b:no base64!", "no base64!"),
        (b"PHOTO;ENCODING=b:aGVsbG8=", "aGVsbG8="),
        (b"N;ENCODING=QUOTED-PRINTABLE:a=\nb=3D\n", "ab="),
        (b"NOTE:a\\nb\\,c", "a\\nb\\,c"),
    ] {
        assert_eq!(parse(input).text(), expect, "{}", String::from_utf8_lossy(input));
    }
}

#[test]
fn types_are_found() {
    for (input, wanted, expect) in [
        ("TEL;TYPE=home:1", "HOME", true),
        ("TEL;TYPE=\"cell,voice\":1", "voice", true),
        ("TEL;TYPE=cell, voice :1", "voice", true),
        ("TEL;HOME;VOICE:1", "voice", true),
        ("TEL;type=CELL;type=pref:1", "PREF", true),
        ("TEL;TYPE=homework:1", "home", false),
        ("TEL;X=home:1", "home", false),
        ("TEL:home", "home", false),
        ("TEL;TYPE=\":1", "home", false),
        ("TEL;TYPE=:1", "home", false),
    ] {
        assert_eq!(parse(input.as_bytes()).has_type(wanted), expect, "{input:?}");
    }
}

/// A property may have millions of parameters, and every test of its type would read them all.
#[test]
fn only_the_first_of_very_many_parameters_are_read() {
    for (between, values) in [(";", 1), (",", 256)] {
        for (before, found) in [(0, true), (200, true), (300, false)] {
            let before = format!("X{between}").repeat(before);
            let line = format!("TEL;TYPE={before}CELL{between}{}:1", "Y,".repeat(300));
            let property = parse(line.as_bytes());
            assert_eq!(property.has_type("cell"), found, "{line}");
            let params: Vec<_> = property.params().collect();
            assert!(params.len() <= 256 && params[0].values.len() == values, "{line}");
            assert_eq!(property.text(), "1");
        }
    }
}

#[test]
fn names_compare_in_any_case() {
    let property = parse(b"item1.x-Foo;a=B:1");
    assert!(property.has_name("X-FOO") && !property.has_name("FOO") && !property.has_name(""));
    assert_eq!(property.param("A").as_deref(), Some("B"));
    assert_eq!(property.param("B"), None);
}

proptest! {
    #[test]
    fn nothing_panics(bytes in any::<Vec<u8>>(), text in "[A-Z.:;=,\"^\\\\ \t=]{0,30}") {
        for input in [&bytes[..], text.as_bytes()] {
            for line in content_lines(input) {
                let property = Property::parse(line);
                let _ = (show(&property), property.has_type("x"), property.has_bare_param());
                prop_assert_eq!(property.is_property(), !property.name().is_empty());
            }
        }
    }
}
