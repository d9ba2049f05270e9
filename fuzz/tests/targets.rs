//! Runs every target over every input: each parser also gets the inputs of the others.

use larder_fuzz::TARGETS;
use std::fs;
use std::path::Path;

/// Bytes that often break parsers of these formats.
const ADVERSARIAL_INPUTS: &[&[u8]] = &[
    b"",
    b"\0",
    b"\r",
    b"\r\r\n\r",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xff\xfe\x42",
    b"#((()-------------------------------------------------------------------------------------a)))",
    b"\xff\xfeB\0E\0G\0I\0N\0:\0V\0C\0A\0R\0D\0\n\0F\0N\0:\0A\0\n\0E\0N\0D\0:\0V\0C\0A\0R\0D\0\n\0",
    b"\0B\0E\0G\0I\0N\0:\0V\0C\0A\0R\0D\0\r\0\n\0F\0N\0:\0A",
    b"BEGIN:VCARD",
    b"BEGIN:VCARD\nBEGIN:VCARD\nFN:A\nEND:VCARD\nEND:VCARD\n",
    b"begin : vcard \r\nfn;x=\"a:b\r\n :c\r\nend:vcard",
    b"BEGIN:VCARD\rVERSION:2.1\rN:A;B\rAGENT:\rBEGIN:VCARD\rN:C\rEND:VCARD\rEND:VCARD\r",
    b"BEGIN:VCARD\nN;ENCODING=QUOTED-PRINTABLE;CHARSET=utf-7:=\n=\n=4\n=41=\nEND:VCARD\n",
    b"BEGIN:VCARD\nPHOTO;ENCODING=b:A=A=\n AAA\nUID:\nUID: \nUID:\\n\nEND:VCARD\nEND:VCARD\n",
    b"BEGIN:VCARD\n.FN:a\na..b.FN:c\n;:\n::\nFN;:\nTEL;TYPE=\"a,^n\",b;=;;:^'\nEND:VCARD\n",
    b"BEGIN:VEVENT\nUID:a\nBEGIN:VALARM\nBEGIN:VALARM\nEND:VEVENT\nEND:VALARM\nDTSTART;TZID=:1\n",
    b"BEGIN:VCALENDAR\nVERSION:1.0\nBEGIN:VTIMEZONE\nBEGIN:VEVENT\nDTSTART;TZID=\"a\n ,b:x\rUID:\nEND:VEVENT",
    b"BEGIN:VCALENDAR\nBEGIN:VCARD\nFN:A\nEND:VCALENDAR\nEND:VCARD\nBEGIN:\nBEGIN\n",
    b" BEGIN:VCARD\n\tFN:A\n \n\t\nEND:VCARD \n",
    b"Subject:\n\n",
    b"Content-Type: multipart/mixed; boundary=\"\"\n\n--\n\n--\n----\n",
    b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\nU3ViamVjdDogeA0KDQo=\n",
    b"Content-Type: text/html\n\n<p <!-- &#x110000; &#0; <pre>\r\n\r<li></blockquote>",
    b"From a\rFrom b\r>From c\rSubject: \xff\r\r\x1b$B\x80",
    b"=",
    b"==\n=0=",
    b"\\",
    b"\\;\\\\,\\",
    b"iso-2022-jp\n\x1b$B\x1b(\x80",
    b"utf-16le\n\x00\xd8\x00",
    "İıẞſŉΐΰﬃᾳ\u{345}\u{387}\u{1f71}".as_bytes(),
    "가각힣か\u{3099}\u{5b0}ا\u{64b}٣४๓".as_bytes(),
    "\u{0f73}\u{0344}\u{2126}\u{212b}\u{1e9b}\u{323}".as_bytes(),
    b"( -( not or and",
    b"full_name:\"a\\\"b\"* -email:=x (phone:*12 or has:note)",
    b"any:* has: :a a:b x-larder-no-field:1 http://a",
    b"(and (or) (not #t) (contains \"full_name\" \"\\n\\\"\") (exists \"x\") (word \"\"))rest",
    b"(is \"uid\" \"\\",
    b"((((((((((((((((((((",
    b"0123456789abc",
    b"ZZZZZZZZZZZZZ",
    b"data-0123456789abcdef--1-9223372036854775807",
    b"data--1-1",
    "\0\x01lunch \"at noon\" on fri 6 mar 2026 12:30-13:30 for 999999w every 2nd mon, tue at Bistro #a !9".as_bytes(),
    "\x02\x03tous les lundis à 12h30 jusqu'au 30 février, la semaine prochaine...5.3...".as_bytes(),
    b"data-0123456789abcdef-7-+3",
    b"\nFREQ=SECONDLY",
    b"20240229\nFREQ=YEARLY;INTERVAL=4294967295;BYMONTH=2;BYMONTHDAY=30;COUNT=18446744073709551615",
    b"99991231T235960Z\nRSCALE=GREGORIAN;SKIP=FORWARD;FREQ=MONTHLY;BYMONTHDAY=31,-31;BYSETPOS=-1",
    b"00010101\nFREQ=YEARLY;BYWEEKNO=-53,53;WKST=SA;UNTIL=00010101",
    b"-P4000000DT345600000000S\nMP4294967295 5- SU #0",
    b"+235959\nFREQ=HOURLY;BYYEARDAY=-366;BYHOUR=23;BYMINUTE=59;BYSETPOS=2147483647",
    b"\0\x01\x05\0\0\0\0\x04\x01\0\0",
    b"\x01\x01\x0a\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"#notmuch-dump batch-tag:3 tags\n+a%2 -- id:x\n+%0a -- id:\"\"\n +b -- id:\"a\"\"\n-- id:a\0b\n+c\n",
    b";; version:0\n\nlabels:x\nmessage-id: \x0b\nlabels:a,,-b\r\nmessage-id:m\xe2\x80\xa8\nlabels: a\n",
    b"tree 1\nparent \nauthor <> 99999999999999999999 -9999\nencoding utf-16\n\n\r\n \n\n\x85a",
    b"\0\0\0\0\0\0\0\0\0\0\0\0",
    b"HG10GZx\x9cc`",
    b"HG20\0\0\0\x0eCompression=ZS(\xb5/\xfd\x04X",
    b"HG20\0\0\0\0\x7f\xff\xff\xff",
    b"HG20\0\0\0\0\0\0\0\x1d\x0bCHANGEGROUP\0\0\0\0\x01\0\x07\x02version02\0\0\0\x09\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\x0d\x06output\0\0\0\0\0\0\0\0\0\x02hi\0\0\0\0\0\0\0\x0c\0\0\x05f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
];

fn run(name: &str, bytes: &[u8]) {
    for (target, check) in TARGETS {
        let shown = bytes[..bytes.len().min(200)].escape_ascii();
        if std::panic::catch_unwind(|| check(bytes)).is_err() {
            panic!("target {target}, input {name}: {shown}");
        }
    }
}

#[test]
fn every_target_accepts_adversarial_inputs() {
    for bytes in ADVERSARIAL_INPUTS {
        run("from the table", bytes);
        // The splitter reads the size of its chunks and its limit from the first two bytes.
        for front in [[0, 0], [2, 0], [66, 200], [6, 255]] {
            run("from the table, as a stream", &[&front[..], bytes].concat());
        }
    }
}

#[test]
fn deep_nesting_is_bounded() {
    for text in ["(", "-", "(not ", "not ", "(and (or ", "BEGIN:A\n"] {
        run("nested", text.repeat(20_000).as_bytes());
    }
}

#[test]
fn every_target_accepts_whole_and_truncated_samples() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
    let folders = ["contacts", "mail"].map(|folder| fs::read_dir(samples.join(folder)));
    for entry in folders.into_iter().flat_map(|folder| folder.expect("the samples")) {
        let path = entry.expect("an entry").path();
        let name = path.display().to_string();
        let bytes = fs::read(&path).expect("a sample");
        run(&name, &bytes);
        for step in 1..20 {
            run(&name, &bytes[..bytes.len() * step / 20]);
            run(&name, &bytes[bytes.len() * step / 20..]);
        }
    }
}

#[test]
fn targets_of_mercurial_accept_whole_and_truncated_seeds() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let mut count = 0;
    for folder in fs::read_dir(seeds).expect("the seeds").flatten() {
        let name = folder.file_name().into_string().expect("a name");
        assert!(TARGETS.iter().any(|(target, _)| *target == name), "no target {name}");
        for entry in fs::read_dir(folder.path()).expect("a folder").flatten() {
            let bytes = fs::read(entry.path()).expect("a seed");
            let name = entry.path().display().to_string();
            run(&name, &bytes);
            for step in 1..20 {
                run(&name, &bytes[..bytes.len() * step / 20]);
            }
            count += 1;
        }
    }
    assert!(count > 10, "{count} seeds");
}
