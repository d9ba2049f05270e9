//! `larder export`: existing files, and damaged stores.

use crate::test_home::{ANNA, BRUNO, CHLOE, Home, left_out};
use insta::assert_snapshot;

/// Devices and pipes are written directly, links are followed, and files are replaced when the
/// export is complete.
#[test]
fn existing_targets_are_respected() {
    let home = Home::with_book();
    let book = [ANNA, BRUNO, CHLOE].concat();
    home.write("old.vcf", "old");
    let run = home.shell(
        "ln -s old.vcf link; ln -s new.vcf dangling; ln -s dangling chain; ln -s round round; mkfifo pipe
         for out in link chain; do larder export contacts -o $out; done
         cat pipe >got & larder export contacts -o pipe; wait
         larder export contacts -o /dev/null
         larder export contacts -o /dev/stdout --quiet | cat >through
         ls -ld link chain pipe /dev/null | cut -c 1",
    );
    assert_snapshot!(run.masked_output(), @r"
    3 items written to link
    3 items written to chain
    c
    l
    l
    p
    ! note: 3 items written to pipe
    ! note: 3 items written to /dev/null
    ");
    for name in ["old.vcf", "new.vcf", "got", "through"] {
        assert_eq!(std::fs::read_to_string(home.work(name)).unwrap(), book, "{name}");
    }
    let check =
        |args: &[&str]| home.run(&[&["export", "contacts", "-o"], args].concat()).masked_output();
    assert_snapshot!(check(&["round"]), @"
    ! error: round: too many symbolic links
    ! hint: check the file and its directory
    exit 5
    ");
    assert_snapshot!(check(&["."]), @"
    ! error: .: is a directory
    ! hint: name a file
    exit 5
    ");
    assert_snapshot!(check(&["raw.vcf", "--format", "raw"]), @"! note: 3 items written to raw.vcf");
    assert_eq!(std::fs::read_to_string(home.work("raw.vcf")).unwrap(), book);
}

/// Returns the leaf page of a table that holds this text, if there is one.
fn leaf<'a>(store: &'a mut [u8], text: &str) -> Option<&'a mut [u8]> {
    const LEAF: u8 = 0x0d;
    let holds = |page: &[u8]| page.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    store.chunks_mut(4096).find(|page| page[0] == LEAF && holds(page))
}

/// Imports 326 cards, so that most tables have several pages.
fn import_people(home: &Home) {
    let card = |n: usize| {
        format!("BEGIN:VCARD\nVERSION:4.0\nUID:n-{n}\nFN:N {n}\nX-TEXT:some text {n}.\nEND:VCARD\n")
    };
    home.write("book.vcf", (0..326).map(card).collect::<String>());
    home.ok(&["import", "book.vcf", "--into", "people"]);
}

/// Readable items are written to a partial file, unreadable ones are named, and an existing file
/// stays.
#[test]
fn a_damaged_store_gives_a_partial_file() {
    type Damage = fn(&mut [u8]);
    let destroy: Damage = |page| page.fill(0x5a);
    // SQLite does not notice a page whose header counts one row less.
    let shorten: Damage = |page| page[4] -= 1;
    for (name, damage) in [("a page is destroyed", destroy), ("a row is not there", shorten)] {
        let home = Home::new();
        import_people(&home);
        let data = home.data().join("data.db");
        let mut store = std::fs::read(&data).unwrap();
        let Some(page) = leaf(&mut store, "X-TEXT:some text 200.") else {
            return left_out("a damaged store", "its pages are not as expected");
        };
        damage(page);
        std::fs::write(&data, store).unwrap();
        home.write("out.vcf", "of before");
        let run = home.code(&["export", "people", "-o", "out.vcf"], 4);
        assert_eq!(run.stdout(), "", "{name}");
        let text = std::fs::read_to_string(home.work("out.vcf.partial")).expect(name);
        let written = text.matches("END:VCARD").count();
        let said = run.stderr();
        let (named, failure) = said.split_once("error: cannot read ").unwrap();
        let (unread, rest) = failure.split_once(' ').unwrap();
        assert_eq!(named.matches("missing: item ").count().to_string(), unread, "{name}: {said}");
        assert_eq!(written + unread.parse::<usize>().unwrap(), 326, "{name}: {said}");
        assert!(written > 250 && written < 326, "{name}: {written}");
        assert!(rest.contains(&format!(" of people; exported {written}")), "{name}: {said}");
        for hint in [
            "the items that could be read are in out.vcf.partial",
            "`larder check` shows the damage",
        ] {
            assert!(said.contains(&format!("hint: {hint}\n")), "{name}: {said}");
        }
        assert_eq!(std::fs::read_to_string(home.work("out.vcf")).unwrap(), "of before");
        let run = home.code(&["export", "people"], 4);
        assert_eq!(run.stdout(), text, "{name}");
        home.code(&["check"], 4);
        // The partial file is a valid file of cards.
        let run = home.ok(&["import", "out.vcf.partial", "--data-dir", "other"]);
        assert!(run.starts_with(&format!("{written} contacts added")), "{name}: {run}");
    }
}

/// An older state of the store beside the record of a later commit: an export of it replaces no
/// file, also if its warnings are not printed.
#[test]
fn a_store_that_lacks_batches_gives_a_partial_file() {
    let home = Home::with_book();
    let data = home.data().join("data.db");
    let old = std::fs::read(&data).unwrap();
    let card = ANNA.replace("anna-1", "dana");
    assert_eq!(home.run_with(&["add"], card.as_bytes()).code, 0);
    std::fs::write(&data, old).unwrap();
    home.write("out.vcf", "of before");
    let run = home.run(&["-q", "export", "contacts", "-o", "out.vcf"]);
    assert_snapshot!(run.masked_output(), @r#"
    ! error: cannot read all of contacts; exported 3: 1 committed batch is missing from [HOME]/home/.local/share/larder/data.db: its write-ahead log was deleted or replaced
    ! hint: the items that could be read are in out.vcf.partial
    ! hint: `larder check` shows the damage
    ! hint: see "Recovery" in docs/backup.md
    exit 4
    "#);
    let book = [ANNA, BRUNO, CHLOE].concat();
    assert_eq!(std::fs::read_to_string(home.work("out.vcf.partial")).unwrap(), book);
    assert_eq!(std::fs::read_to_string(home.work("out.vcf")).unwrap(), "of before");
    assert_eq!(home.code(&["export", "contacts"], 4).stdout(), book);
}

/// Whatever page is damaged, each item is exported or named.
#[test]
fn each_damaged_page_loses_only_named_items() {
    let home = Home::new();
    import_people(&home);
    let data = home.data().join("data.db");
    let sound = std::fs::read(&data).unwrap();
    let mut unopened = 0;
    for page in 1..sound.len() / 4096 {
        let mut damaged = sound.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0);
        std::fs::write(&data, damaged).unwrap();
        let run = home.run(&["export", "people"]);
        let (text, said) = (run.stdout(), run.stderr());
        let written = text.matches("END:VCARD").count();
        let named = said.matches("missing: item ").count();
        if run.code == 4 && written == 0 && named == 0 {
            unopened += 1;
            continue;
        }
        assert_eq!(written + named, 326, "page {page}: {said}");
        assert_eq!(run.code, if named == 0 { 0 } else { 4 }, "page {page}: {said}");
    }
    // The schema has two further pages; `meta` and `collection` have one each.
    assert!(unopened <= 4, "{unopened}");
}

/// Whatever bit of the store changes, an export with exit code 0 has every byte.
#[test]
fn a_changed_bit_is_never_exported_in_silence() {
    let home = Home::new();
    import_people(&home);
    let zone = "BEGIN:VTIMEZONE\r\nTZID:Own\r\nBEGIN:STANDARD\r\nDTSTART:19700101T000000\r\n\
                RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=2TH\r\nTZOFFSETFROM:+0645\r\n\
                TZOFFSETTO:+0545\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n";
    let event = |n: usize| {
        format!(
            "BEGIN:VEVENT\r\nUID:e{n}\r\nDTSTART;TZID=Own:202603{:02}T090000\r\nSUMMARY:x{n}\r\n\
             END:VEVENT\r\n",
            n % 28 + 1
        )
    };
    let events: String = (0..60).map(event).collect();
    let calendar =
        format!("BEGIN:VCALENDAR\r\nX-WR-CALNAME:Work\r\n{zone}{events}END:VCALENDAR\r\n");
    home.write("cal.ics", calendar);
    home.ok(&["import", "cal.ics", "--into", "cal"]);
    let whole = ["people", "cal"].map(|name| home.ok(&["export", name]));
    let data = home.data().join("data.db");
    let sound = std::fs::read(&data).unwrap();
    // Mixed congruential generator (Knuth): the same bits in each run.
    let mut seed = 1_u64;
    let mut reported = 0;
    for _ in 0..150 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bit = (seed >> 16) as usize % (sound.len() * 8);
        let mut damaged = sound.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&data, damaged).unwrap();
        for (name, whole) in ["people", "cal"].iter().zip(&whole) {
            let run = home.run(&["export", name]);
            reported += usize::from(run.code != 0);
            assert!(run.code != 0 || run.stdout() == *whole, "bit {bit}, {name}: {}", run.stderr());
        }
    }
    assert!(reported >= 10, "{reported}");
}
