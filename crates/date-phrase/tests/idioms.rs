//! Idioms of Czech and German, parsed on Wednesday, 4 March 2026, at 10:00.

use crate::date_ranges::check_ranges;
use crate::sentences::check_sentences;
use crate::unconsumed_words::check_refused;

#[test]
fn czech_idioms_are_parsed() {
    let check = |text: &str, expect: &str| {
        check_sentences("cs_CZ", &[(&format!("schůzka {text}"), &format!("schůzka | {expect}"))]);
    };
    let noon = "2026-03-05 12:30 ..";
    for (text, expect) in [
        (
            "zítra ve 12:30 na hodinu v Bistru",
            &*format!("{noon} 2026-03-05 13:30 | PT1H | at Bistru"),
        ),
        ("zítra ve 12:30 na půl hodiny", &format!("{noon} 2026-03-05 13:00 | PT30M")),
        ("zítra ve 12:30 na hodinu a půl", &format!("{noon} 2026-03-05 14:00 | PT1H30M")),
        ("v pátek od 9 do 10", "2026-03-06 09:00 .. 2026-03-06 10:00"),
        ("každé pondělí v 8", "2026-03-09 08:00 .. 2026-03-09 09:00 | FREQ=WEEKLY;BYDAY=MO"),
        ("za týden", "all day 2026-03-11 .. 2026-03-12"),
        ("za půl hodiny", "2026-03-04 10:30 .. 2026-03-04 11:30"),
        ("pozítří v poledne", "2026-03-06 12:00 .. 2026-03-06 13:00"),
        ("dnes v 18 h", "2026-03-04 18:00 .. 2026-03-04 19:00"),
        ("dnes v 18 hodin", "2026-03-04 18:00 .. 2026-03-04 19:00"),
        ("zítra o půlnoci", "2026-03-05 .. 2026-03-05 01:00"),
        ("dnes v osm večer", "2026-03-04 20:00 .. 2026-03-04 21:00"),
        ("zítra ráno ve čtvrt na devět", "2026-03-05 08:15 .. 2026-03-05 09:15"),
        ("zítra ráno ve tři čtvrtě na devět", "2026-03-05 08:45 .. 2026-03-05 09:45"),
        ("od 1. do 14. července", "all day 2026-07-01 .. 2026-07-15"),
        ("každého 15.", "all day 2026-03-15 .. 2026-03-16 | FREQ=MONTHLY;BYMONTHDAY=15"),
        ("do pátku 17:00", ".. 2026-03-06 17:00"),
        ("do konce týdne", "all day .. 2026-03-09"),
        ("do konce měsíce", "all day .. 2026-04-01"),
        (
            "první pondělí v měsíci v 18",
            "2026-04-06 18:00 .. 2026-04-06 19:00 | FREQ=MONTHLY;BYDAY=1MO",
        ),
        (
            "každý den v 9:15 až do pátku",
            "2026-03-05 09:15 .. 2026-03-05 10:15 | FREQ=DAILY | until 2026-03-06 23:59:59",
        ),
    ] {
        check(text, expect);
    }
    let workdays = "2026-03-05 09:15 .. 2026-03-05 10:15 | FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR";
    for text in ["každý všední den v 9:15", "ve všední dny v 9:15", "každý pracovní den v 9:15"]
    {
        check(text, workdays);
    }
    check_refused("cs_CZ", &[("schůzka v úterý příští týden", "příští týden")]);
    let ambiguous = "ambiguous time \"ve čtvrt na devět\": write 8:15am, 8:15pm or 08:15";
    check_sentences("cs_CZ", &[("schůzka zítra ve čtvrt na devět", ambiguous)]);
    for text in ["plán na rok 2027", "dárek na den matek"] {
        let expect = format!("{text} | all day 2026-03-06 .. 2026-03-07");
        check_sentences("cs_CZ", &[(&format!("{text} v pátek"), &expect)]);
    }
    check_ranges(
        "cs_CZ",
        &[
            ("v březnu", "~ 2026-03-01 .. 2026-04-01"),
            ("následující týden", "~ 2026-03-09 .. 2026-03-16"),
            ("tohoto týdne", "~ 2026-03-02 .. 2026-03-09"),
            ("tento měsíc", "~ 2026-03-01 .. 2026-04-01"),
            ("příští měsíc", "~ 2026-04-01 .. 2026-05-01"),
            ("příštích 7 dní", "~ 2026-03-04 .. 2026-03-11"),
        ],
    );
}

#[test]
fn german_idioms_are_parsed() {
    let check = |text: &str, expect: &str| {
        check_sentences("de_DE", &[(&format!("Kino {text}"), &format!("Kino | {expect}"))]);
    };
    let evening = "2026-03-07 20:00 .. 2026-03-07 21:00";
    for text in ["Samstagabend", "am Samstagabend", "Samstagabend um 8", "Samstag Abend um 8"] {
        check(text, evening);
    }
    let every = format!("{evening} | FREQ=WEEKLY;BYDAY=SA");
    for text in ["jeden Samstagabend", "jeden Samstagabend um 8", "samstagabends um 8"] {
        check(text, &every);
    }
    for (text, expect) in [
        ("Samstagmorgen um 8", "2026-03-07 08:00 .. 2026-03-07 09:00"),
        ("heute um 18 h", "2026-03-04 18:00 .. 2026-03-04 19:00"),
        ("in einer halben Stunde", "2026-03-04 10:30 .. 2026-03-04 11:30"),
        ("morgen um 9 für anderthalb Stunden", "2026-03-05 09:00 .. 2026-03-05 10:30 | PT1H30M"),
        ("am Freitag von 9 bis 10 Uhr", "2026-03-06 09:00 .. 2026-03-06 10:00"),
        ("in 14 Tagen um 10", "2026-03-18 10:00 .. 2026-03-18 11:00"),
        ("am 1. jedes Monats", "all day 2026-04-01 .. 2026-04-02 | FREQ=MONTHLY;BYMONTHDAY=1"),
        ("bis Ende der Woche", "all day .. 2026-03-09"),
        ("um 12 in Berlin", "2026-03-04 12:00 .. 2026-03-04 13:00 | at Berlin"),
    ] {
        check(text, expect);
    }
    check_refused("de_DE", &[("Kino nächste Woche Dienstag um 9", "nächste Woche")]);
    check_sentences("sv_SE", &[("Bio lördagkväll", &format!("Bio | {evening}"))]);
}

#[test]
fn idioms_of_durations_are_parsed() {
    let at = "Lunch | 2026-03-05 12:30 .. 2026-03-05";
    let long = format!("{at} 14:00 | PT1H30M");
    check_sentences(
        "en_GB",
        &[
            ("Lunch tomorrow 12:30 for an hour and a half", &long),
            ("Lunch tomorrow 12:30 for one and a half hours", &long),
            ("Lunch tomorrow 12:30 for 2 hours and a half", &format!("{at} 15:00 | PT2H30M")),
        ],
    );
}
