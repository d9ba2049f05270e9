//! Date ranges and points in time, parsed on Wednesday, 4 March 2026, at 10:00.

use larder_date_phrase::{DateRange, Language, PhraseError, PointInTime, parse_duration};
use larder_time::civil::{CivilTime, DAY_SECONDS, Date};
use proptest::prelude::*;

pub(crate) fn civil(year: i32, month: u8, day: u8, hour: i64, minute: i64) -> CivilTime {
    let date = Date::new(year, month, day).expect("a date");
    CivilTime::from_date(date, hour * 3600 + minute * 60).expect("a time")
}

pub(crate) fn reference_time() -> CivilTime {
    civil(2026, 3, 4, 10, 0)
}

/// Formats as `2026-03-04` or `2026-03-04 10:00`, with seconds if there are any.
pub(crate) fn format_civil(civil: CivilTime) -> String {
    let Date { year, month, day } = civil.date();
    let date = format!("{year:04}-{month:02}-{day:02}");
    let second = civil.second_of_day();
    let time = format!("{:02}:{:02}", second / 3600, second / 60 % 60);
    match (civil, second) {
        (CivilTime::MIN, _) => "first".to_owned(),
        (CivilTime::MAX, _) => "last".to_owned(),
        (_, 0) => date,
        (_, second) if second % 60 == 0 => format!("{date} {time}"),
        (_, second) => format!("{date} {time}:{:02}", second % 60),
    }
}

fn format_range(text: &str, locale: &str) -> String {
    match DateRange::parse(text, reference_time(), &Language::from_locale(locale)) {
        Ok(DateRange { from, to, is_relative: relative }) => {
            let kind = if relative { "~ " } else { "" };
            format!("{kind}{} .. {}", format_civil(from), format_civil(to))
        }
        Err(error) => error.to_string(),
    }
}

#[track_caller]
pub(crate) fn check_ranges(locale: &str, table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .map(|(text, expect)| (text, expect, format_range(text, locale)))
        .filter(|(_, expect, answer)| *expect != answer)
        .map(|(text, expect, answer)| format!("{text:?}: {answer}, and not {expect}"))
        .collect();
    assert!(wrong.is_empty(), "in {locale}:\n{}", wrong.join("\n"));
}

#[test]
fn ranges_are_understood_in_every_language() {
    let table = [
        ("2026", "2026-01-01 .. 2027-01-01"),
        ("2026-03", "2026-03-01 .. 2026-04-01"),
        ("2026-12", "2026-12-01 .. 2027-01-01"),
        ("2026-03-05", "2026-03-05 .. 2026-03-06"),
        ("20260305", "2026-03-05 .. 2026-03-06"),
        ("2026/03/05", "2026-03-05 .. 2026-03-06"),
        ("2026-W12", "2026-03-16 .. 2026-03-23"),
        ("2026W12", "2026-03-16 .. 2026-03-23"),
        ("2026-w12-3", "2026-03-18 .. 2026-03-19"),
        ("2026W123", "2026-03-18 .. 2026-03-19"),
        ("2026-W53", "2026-12-28 .. 2027-01-04"),
        ("2026-Q2", "2026-04-01 .. 2026-07-01"),
        ("2026q4", "2026-10-01 .. 2027-01-01"),
        ("2026-03-05T12:30", "2026-03-05 12:30 .. 2026-03-05 12:31"),
        ("2026-03-05 12:30", "2026-03-05 12:30 .. 2026-03-05 12:31"),
        ("20260305T1230", "2026-03-05 12:30 .. 2026-03-05 12:31"),
        ("20260305T123015", "2026-03-05 12:30:15 .. 2026-03-05 12:30:16"),
        ("12:30", "~ 2026-03-04 12:30 .. 2026-03-04 12:31"),
        ("9:00", "~ 2026-03-04 09:00 .. 2026-03-04 09:01"),
        ("24:00", "~ 2026-03-05 .. 2026-03-05 00:01"),
        ("+2w", "~ 2026-03-04 .. 2026-03-19"),
        ("today..+2w", "~ 2026-03-04 .. 2026-03-19"),
        ("-3d", "~ 2026-03-01 .. 2026-03-05"),
        ("+1m", "~ 2026-03-04 .. 2026-04-05"),
        ("+1y", "~ 2026-03-04 .. 2027-03-05"),
        ("+2w3d", "~ 2026-03-04 .. 2026-03-22"),
        ("+90min", "~ 2026-03-04 10:00 .. 2026-03-04 11:30"),
        ("-2h", "~ 2026-03-04 08:00 .. 2026-03-04 10:00"),
        ("W12", "~ 2026-03-16 .. 2026-03-23"),
        ("2026-03-01..2026-04-15", "2026-03-01 .. 2026-04-16"),
        ("2026-03-01 .. 2026-04-15", "2026-03-01 .. 2026-04-16"),
        ("2026-03..2026-04", "2026-03-01 .. 2026-05-01"),
        ("2026-03-05T12:30..2026-03-05T13:30", "2026-03-05 12:30 .. 2026-03-05 13:30"),
        ("2026-03-01..2026-03-05 12:00", "2026-03-01 .. 2026-03-05 12:00"),
        ("22:00..02:00", "~ 2026-03-04 22:00 .. 2026-03-05 02:00"),
        ("2026-03-01..", "2026-03-01 .. last"),
        ("..2026-03-01", "first .. 2026-03-02"),
        ("2026-03-01..+2w", "2026-03-01 .. 2026-03-16"),
        ("-1w..+1w", "~ 2026-02-25 .. 2026-03-12"),
        ("9999-12-31", "9999-12-31 .. last"),
        ("9999", "9999-01-01 .. last"),
        ("0001-01-01", "first .. 0001-01-02"),
        ("today..+7d", "~ 2026-03-04 .. 2026-03-12"),
        ("..today", "~ first .. 2026-03-05"),
        ("next friday", "~ 2026-03-06 .. 2026-03-07"),
        ("5 march 2027", "2027-03-05 .. 2027-03-06"),
    ];
    for locale in ["C", "en_GB", "de_DE", "fr_FR", "es", "it", "nl", "pt_BR", "sv", "da", "nb"] {
        check_ranges(locale, &table);
    }
    for locale in ["fi", "pl", "cs", "ja_JP", "xx", ""] {
        check_ranges(locale, &table);
    }
}

#[test]
fn english_ranges_are_parsed() {
    check_ranges(
        "en_US.UTF-8",
        &[
            ("today", "~ 2026-03-04 .. 2026-03-05"),
            ("Today ", "~ 2026-03-04 .. 2026-03-05"),
            ("tomorrow", "~ 2026-03-05 .. 2026-03-06"),
            ("yesterday", "~ 2026-03-03 .. 2026-03-04"),
            ("the day after tomorrow", "~ 2026-03-06 .. 2026-03-07"),
            ("now", "~ 2026-03-04 10:00 .. 2026-03-04 10:00:01"),
            ("now..", "~ 2026-03-04 10:00 .. last"),
            ("now..+2h", "~ 2026-03-04 10:00 .. 2026-03-04 12:00"),
            ("now..now", "~ 2026-03-04 10:00 .. 2026-03-04 10:00"),
            ("wednesday", "~ 2026-03-04 .. 2026-03-05"),
            ("wed", "~ 2026-03-04 .. 2026-03-05"),
            ("Friday", "~ 2026-03-06 .. 2026-03-07"),
            ("on friday", "~ 2026-03-06 .. 2026-03-07"),
            ("tue", "~ 2026-03-10 .. 2026-03-11"),
            ("next wednesday", "~ 2026-03-11 .. 2026-03-12"),
            ("next friday", "~ 2026-03-06 .. 2026-03-07"),
            ("this wednesday", "~ 2026-03-04 .. 2026-03-05"),
            ("last monday", "~ 2026-03-02 .. 2026-03-03"),
            ("last wednesday", "~ 2026-02-25 .. 2026-02-26"),
            ("this week", "~ 2026-03-01 .. 2026-03-08"),
            ("week", "~ 2026-03-01 .. 2026-03-08"),
            ("month", "~ 2026-03-01 .. 2026-04-01"),
            ("weekend", "~ 2026-03-07 .. 2026-03-09"),
            ("this weekend", "~ 2026-03-07 .. 2026-03-09"),
            ("next weekend", "~ 2026-03-14 .. 2026-03-16"),
            ("last weekend", "~ 2026-02-28 .. 2026-03-02"),
            ("next week", "~ 2026-03-08 .. 2026-03-15"),
            ("last week", "~ 2026-02-22 .. 2026-03-01"),
            ("this month", "~ 2026-03-01 .. 2026-04-01"),
            ("next month", "~ 2026-04-01 .. 2026-05-01"),
            ("last month", "~ 2026-02-01 .. 2026-03-01"),
            ("this year", "~ 2026-01-01 .. 2027-01-01"),
            ("last year", "~ 2025-01-01 .. 2026-01-01"),
            ("next 3 days", "~ 2026-03-04 .. 2026-03-07"),
            ("next 2 weeks", "~ 2026-03-04 .. 2026-03-18"),
            ("last 3 days", "~ 2026-03-02 .. 2026-03-05"),
            ("last 2 months", "~ 2026-01-05 .. 2026-03-05"),
            ("in 2 weeks", "~ 2026-03-18 .. 2026-03-19"),
            ("in 1 month", "~ 2026-04-04 .. 2026-04-05"),
            ("in 20 minutes", "~ 2026-03-04 10:20 .. 2026-03-04 10:21"),
            ("in half an hour", "~ 2026-03-04 10:30 .. 2026-03-04 10:31"),
            ("in an hour", "~ 2026-03-04 11:00 .. 2026-03-04 11:01"),
            ("week 12", "~ 2026-03-16 .. 2026-03-23"),
            ("week 12 2027", "2027-03-22 .. 2027-03-29"),
            ("week 2", "~ 2027-01-11 .. 2027-01-18"),
            ("march", "~ 2026-03-01 .. 2026-04-01"),
            ("may", "~ 2026-05-01 .. 2026-06-01"),
            ("february", "~ 2027-02-01 .. 2027-03-01"),
            ("last february", "~ 2026-02-01 .. 2026-03-01"),
            ("next march", "~ 2027-03-01 .. 2027-04-01"),
            ("march 2027", "2027-03-01 .. 2027-04-01"),
            ("5 march", "~ 2026-03-05 .. 2026-03-06"),
            ("4 march", "~ 2026-03-04 .. 2026-03-05"),
            ("3 march", "~ 2027-03-03 .. 2027-03-04"),
            ("29 feb", "~ 2028-02-29 .. 2028-03-01"),
            ("march 5", "~ 2026-03-05 .. 2026-03-06"),
            ("march 5th", "~ 2026-03-05 .. 2026-03-06"),
            ("March 5th, 2027", "2027-03-05 .. 2027-03-06"),
            ("5th of march 2027", "2027-03-05 .. 2027-03-06"),
            ("5 march 2027 14:00", "2027-03-05 14:00 .. 2027-03-05 14:01"),
            ("5 march 2027 at 2pm", "2027-03-05 14:00 .. 2027-03-05 14:01"),
            ("Fri 6 Mar 2026", "2026-03-06 .. 2026-03-07"),
            ("friday, 6 march", "~ 2026-03-06 .. 2026-03-07"),
            ("3/5/2026", "2026-03-05 .. 2026-03-06"),
            ("3/5/26", "2026-03-05 .. 2026-03-06"),
            ("3/5", "~ 2026-03-05 .. 2026-03-06"),
            ("1/5", "~ 2027-01-05 .. 2027-01-06"),
            ("3pm", "~ 2026-03-04 15:00 .. 2026-03-04 15:01"),
            ("3 pm", "~ 2026-03-04 15:00 .. 2026-03-04 15:01"),
            ("3:30 p.m.", "~ 2026-03-04 15:30 .. 2026-03-04 15:31"),
            ("3:30pm", "~ 2026-03-04 15:30 .. 2026-03-04 15:31"),
            ("12am", "~ 2026-03-04 .. 2026-03-04 00:01"),
            ("12pm", "~ 2026-03-04 12:00 .. 2026-03-04 12:01"),
            ("noon", "~ 2026-03-04 12:00 .. 2026-03-04 12:01"),
            ("tomorrow noon", "~ 2026-03-05 12:00 .. 2026-03-05 12:01"),
            ("noon tomorrow", "~ 2026-03-05 12:00 .. 2026-03-05 12:01"),
            ("midnight", "~ 2026-03-04 .. 2026-03-04 00:01"),
            ("15h", "~ 2026-03-04 15:00 .. 2026-03-04 15:01"),
            ("15h30", "~ 2026-03-04 15:30 .. 2026-03-04 15:31"),
            ("at 15", "~ 2026-03-04 15:00 .. 2026-03-04 15:01"),
            ("3pm on friday", "~ 2026-03-06 15:00 .. 2026-03-06 15:01"),
            ("friday..monday", "~ 2026-03-06 .. 2026-03-10"),
            ("monday to friday", "~ 2026-03-09 .. 2026-03-14"),
            ("from monday to friday", "~ 2026-03-09 .. 2026-03-14"),
            ("from 5 march until 7 march", "~ 2026-03-05 .. 2026-03-08"),
            ("december..february", "~ 2026-12-01 .. 2027-03-01"),
            ("this week..next week", "~ 2026-03-01 .. 2026-03-15"),
        ],
    );
    check_ranges(
        "en_GB",
        &[("this week", "~ 2026-03-02 .. 2026-03-09"), ("3/5", "~ 2026-05-03 .. 2026-05-04")],
    );
}

#[test]
fn german_ranges_are_parsed() {
    check_ranges(
        "de_DE.UTF-8",
        &[
            ("heute", "~ 2026-03-04 .. 2026-03-05"),
            ("morgen", "~ 2026-03-05 .. 2026-03-06"),
            ("übermorgen", "~ 2026-03-06 .. 2026-03-07"),
            ("UEBERMORGEN", "~ 2026-03-06 .. 2026-03-07"),
            ("gestern", "~ 2026-03-03 .. 2026-03-04"),
            ("Freitag", "~ 2026-03-06 .. 2026-03-07"),
            ("am Freitag", "~ 2026-03-06 .. 2026-03-07"),
            ("Fr", "~ 2026-03-06 .. 2026-03-07"),
            ("nächsten Freitag", "~ 2026-03-06 .. 2026-03-07"),
            ("letzten Montag", "~ 2026-03-02 .. 2026-03-03"),
            ("diese Woche", "~ 2026-03-02 .. 2026-03-09"),
            ("nächste Woche", "~ 2026-03-09 .. 2026-03-16"),
            ("diesen Monat", "~ 2026-03-01 .. 2026-04-01"),
            ("letztes Jahr", "~ 2025-01-01 .. 2026-01-01"),
            (
                "die nächsten 3 Tage",
                "unknown date \"die nächsten 3 Tage\"; try today, next friday, 2026-03, +2w or today..+7d",
            ),
            ("nächste 3 Tage", "~ 2026-03-04 .. 2026-03-07"),
            ("in 2 Wochen", "~ 2026-03-18 .. 2026-03-19"),
            ("in einer Stunde", "~ 2026-03-04 11:00 .. 2026-03-04 11:01"),
            ("in einer halben Stunde", "~ 2026-03-04 10:30 .. 2026-03-04 10:31"),
            ("KW 12", "~ 2026-03-16 .. 2026-03-23"),
            ("KW12", "~ 2026-03-16 .. 2026-03-23"),
            ("März", "~ 2026-03-01 .. 2026-04-01"),
            ("maerz 2027", "2027-03-01 .. 2027-04-01"),
            ("5. März", "~ 2026-03-05 .. 2026-03-06"),
            ("5. März 2027 14:00", "2027-03-05 14:00 .. 2027-03-05 14:01"),
            ("5. März 2027 um 14 Uhr", "2027-03-05 14:00 .. 2027-03-05 14:01"),
            ("5. März 2027 um 14.30 Uhr", "2027-03-05 14:30 .. 2027-03-05 14:31"),
            ("Fr 6. März 2026", "2026-03-06 .. 2026-03-07"),
            ("Freitag, den 6. März", "~ 2026-03-06 .. 2026-03-07"),
            ("5.3.2026", "2026-03-05 .. 2026-03-06"),
            ("05.03.2026", "2026-03-05 .. 2026-03-06"),
            ("5.3.26", "2026-03-05 .. 2026-03-06"),
            ("5.3.", "~ 2026-03-05 .. 2026-03-06"),
            ("5. 3. 2026", "2026-03-05 .. 2026-03-06"),
            ("5. 3.", "~ 2026-03-05 .. 2026-03-06"),
            ("3/5/2026", "2026-05-03 .. 2026-05-04"),
            ("5.3.2026 14:00", "2026-03-05 14:00 .. 2026-03-05 14:01"),
            ("5.3...9.3.", "~ 2026-03-05 .. 2026-03-10"),
            ("1.3.2026..15.4.2026", "2026-03-01 .. 2026-04-16"),
            ("15 Uhr", "~ 2026-03-04 15:00 .. 2026-03-04 15:01"),
            ("um 15", "~ 2026-03-04 15:00 .. 2026-03-04 15:01"),
            ("um 3", "~ 2026-03-04 03:00 .. 2026-03-04 03:01"),
            ("Montag bis Freitag", "~ 2026-03-09 .. 2026-03-14"),
            ("vom 5. März bis 7. März", "~ 2026-03-05 .. 2026-03-08"),
            ("heute..+7d", "~ 2026-03-04 .. 2026-03-12"),
        ],
    );
    check_ranges("de_AT", &[("Jänner", "~ 2027-01-01 .. 2027-02-01")]);
}

#[test]
fn ranges_of_other_languages_are_parsed() {
    let friday = "~ 2026-03-06 .. 2026-03-07";
    let tomorrow = "~ 2026-03-05 .. 2026-03-06";
    let next_week = "~ 2026-03-09 .. 2026-03-16";
    let march = "2027-03-05 .. 2027-03-06";
    for (locale, words) in [
        (
            "fr_FR",
            ["demain", "vendredi", "vendredi prochain", "la semaine prochaine", "5 mars 2027"],
        ),
        (
            "es_ES",
            ["mañana", "viernes", "próximo viernes", "la semana que viene", "5 de marzo de 2027"],
        ),
        ("it_IT", ["domani", "venerdì", "venerdi prossimo", "prossima settimana", "5 marzo 2027"]),
        ("nl_NL", ["morgen", "vrijdag", "volgende vrijdag", "volgende week", "5 maart 2027"]),
        (
            "pt_PT",
            ["amanhã", "sexta-feira", "próxima sexta", "semana que vem", "5 de março de 2027"],
        ),
        ("sv_SE", ["i morgon", "fredag", "nästa fredag", "nästa vecka", "5 mars 2027"]),
        ("da_DK", ["i morgen", "fredag", "næste fredag", "næste uge", "5. marts 2027"]),
        ("nb_NO", ["i morgen", "fredag", "neste fredag", "neste uke", "5. mars 2027"]),
        (
            "fi_FI",
            ["huomenna", "perjantai", "ensi perjantaina", "ensi viikko", "5. maaliskuuta 2027"],
        ),
        ("pl_PL", ["jutro", "piątek", "następny piątek", "przyszły tydzień", "5 marca 2027"]),
        ("cs_CZ", ["zítra", "v pátek", "příští pátek", "příští týden", "5. března 2027"]),
    ] {
        let [a, b, c, d, e] = words;
        check_ranges(
            locale,
            &[(a, tomorrow), (b, friday), (c, friday), (d, next_week), (e, march)],
        );
    }
    check_ranges("pt_BR", &[("esta semana", "~ 2026-03-01 .. 2026-03-08")]);
    check_ranges("es", &[("pasado mañana", "~ 2026-03-06 .. 2026-03-07")]);
    check_ranges(
        "cs",
        &[
            ("6. 3. 2026", "2026-03-06 .. 2026-03-07"),
            ("ve středu", "~ 2026-03-04 .. 2026-03-05"),
            ("za týden", "~ 2026-03-11 .. 2026-03-12"),
            ("víkend", "~ 2026-03-07 .. 2026-03-09"),
        ],
    );
    check_ranges("fi", &[("klo 12.30", "~ 2026-03-04 12:30 .. 2026-03-04 12:31")]);
    check_ranges("fr", &[("à 12h30", "~ 2026-03-04 12:30 .. 2026-03-04 12:31")]);
    check_ranges("nl", &[("5-3-2026", "2026-03-05 .. 2026-03-06")]);
    check_ranges("hu_HU", &[("3/5", "~ 2026-03-05 .. 2026-03-06")]);
}

/// The locale C names no country, so the order of day and month is not guessed.
#[test]
fn dates_without_an_order_are_ambiguous() {
    check_ranges(
        "C",
        &[
            ("5/12/2026", "ambiguous date \"5/12/2026\": write 2026-05-12 or 2026-12-05"),
            ("5/12", "ambiguous date \"5/12\": write 12 May or 5 December"),
            ("13/5/2026", "2026-05-13 .. 2026-05-14"),
            ("5/13/2026", "2026-05-13 .. 2026-05-14"),
            ("5/5/2026", "2026-05-05 .. 2026-05-06"),
            ("5.12.2026", "2026-12-05 .. 2026-12-06"),
        ],
    );
}

/// Messages name the error and a correct form.
#[test]
fn errors_name_a_correct_form() {
    let hint = "try today, next friday, 2026-03, +2w or today..+7d";
    check_ranges(
        "en_US",
        &[
            ("", &format!("missing date; {hint}")),
            (" ", &format!("missing date; {hint}")),
            ("..", &format!("missing date; {hint}")),
            ("tomorow", &format!("unknown date \"tomorow\" (did you mean tomorrow?); {hint}")),
            (
                "today..tomorow",
                &format!("unknown date \"tomorow\" (did you mean tomorrow?); {hint}"),
            ),
            ("today friday", &format!("unknown date \"today friday\"; {hint}")),
            ("2026-02-30", "the date \"2026-02-30\" does not exist"),
            ("2026-13", "the date \"2026-13\" does not exist"),
            ("20260230", "the date \"20260230\" does not exist"),
            ("2027-W53", "the date \"2027-W53\" does not exist"),
            ("2026-Q5", "the date \"2026-Q5\" does not exist"),
            ("30 february", "the date \"30 february\" does not exist"),
            ("29 february 2027", "the date \"29 february 2027\" does not exist"),
            ("2026-03-05T25:00", "the date \"2026-03-05T25:00\" does not exist"),
            (
                "13/5/2026",
                "invalid date \"13/5/2026\": the month comes first here; write it as YYYY-MM-DD",
            ),
            ("13/5", "invalid date \"13/5\": the month comes first here; write it as YYYY-MM-DD"),
            ("2/29/2027", "the date \"2/29/2027\" does not exist"),
            ("4/31/2027", "the date \"4/31/2027\" does not exist"),
            ("31.4.2027", "the date \"31.4.2027\" does not exist"),
            (
                "thu 6 march 2026",
                "wrong weekday in \"thu 6 march 2026\": that date is Fri 6 Mar 2026",
            ),
            ("2026-04-15..2026-03-01", "\"2026-04-15..2026-03-01\" ends before it begins"),
            ("today..yesterday", "\"today..yesterday\" ends before it begins"),
            ("at 3", "ambiguous time \"at 3\": write 3am, 3pm or 03:00"),
            ("25:00", &format!("unknown date \"25:00\"; {hint}")),
            ("13pm", &format!("unknown date \"13pm\"; {hint}")),
            ("0000", &format!("unknown date \"0000\"; {hint}")),
            ("10000", &format!("unknown date \"10000\"; {hint}")),
        ],
    );
    check_ranges(
        "de",
        &[(
            "3/15/2026",
            "invalid date \"3/15/2026\": the day comes first here; write it as YYYY-MM-DD",
        )],
    );
}

#[test]
fn two_arguments_make_a_range() {
    let read = |from: &str, to: Option<&str>| {
        let date_range =
            DateRange::parse_bounds(from, to, reference_time(), &Language::from_locale("en_GB"));
        date_range.map(|date_range| {
            format!("{} .. {}", format_civil(date_range.from), format_civil(date_range.to))
        })
    };
    for (from, to, expect) in [
        ("today", None, "2026-03-04 .. 2026-03-05"),
        ("2026-03", None, "2026-03-01 .. 2026-04-01"),
        ("today..friday", None, "2026-03-04 .. 2026-03-07"),
        ("today", Some("+7d"), "2026-03-04 .. 2026-03-12"),
        ("2026-03-01", Some("2026-04-15"), "2026-03-01 .. 2026-04-16"),
        ("friday", Some("monday"), "2026-03-06 .. 2026-03-10"),
        ("today..", Some("friday"), "2026-03-04 .. 2026-03-07"),
        ("friday", Some("+1w"), "2026-03-06 .. 2026-03-14"),
        ("2026-03-06", Some("+1w"), "2026-03-06 .. 2026-03-14"),
        ("5 march", Some("+1w"), "2026-03-05 .. 2026-03-13"),
        ("-1w", Some("+1w"), "2026-02-25 .. 2026-03-12"),
        ("now", Some("2026-03-04 12:00"), "2026-03-04 10:00 .. 2026-03-04 12:00"),
    ] {
        assert_eq!(read(from, to).as_deref(), Ok(expect), "{from} {to:?}");
    }
    let backwards = PhraseError::EndBeforeStart { text: "2026-04-15..2026-03-01".to_owned() };
    assert_eq!(read("2026-04-15", Some("2026-03-01")), Err(backwards));
}

#[test]
fn points_in_time_are_parsed() {
    let read = |text: &str| {
        let moment = PointInTime::parse(text, reference_time(), &Language::from_locale("en_GB"))
            .map_err(|e| e.to_string())?;
        let PointInTime { at, is_date: date, is_relative: relative, .. } = moment;
        Ok::<_, String>(format!("{} {date} {relative}", format_civil(at)))
    };
    for (text, expect) in [
        ("2026-03-05", Ok("2026-03-05 true false")),
        ("tomorrow", Ok("2026-03-05 true true")),
        ("tomorrow 12:30", Ok("2026-03-05 12:30 false true")),
        ("12:30 tomorrow", Ok("2026-03-05 12:30 false true")),
        ("2026-03-05T12:30", Ok("2026-03-05 12:30 false false")),
        ("now", Ok("2026-03-04 10:00 false true")),
        ("+90min", Ok("2026-03-04 11:30 false true")),
        (
            "2026-W12",
            Err(
                "\"2026-W12\" is longer than a day; give one day, such as 2026-03-05 or next friday",
            ),
        ),
        (
            "soon",
            Err(
                "unknown date or time \"soon\"; try today, next friday, 2026-03-05, 5 march 14:00 or 12:30",
            ),
        ),
        (
            "",
            Err("missing date or time; try today, next friday, 2026-03-05, 5 march 14:00 or 12:30"),
        ),
    ] {
        let answer = read(text);
        assert_eq!(answer.as_deref().map_err(String::as_str), expect, "{text}");
    }
}

#[test]
fn durations_are_parsed() {
    for (text, expect) in [
        ("1h", Some("PT1H")),
        ("90min", Some("PT1H30M")),
        ("90 min", Some("PT1H30M")),
        ("30m", Some("PT30M")),
        ("1h30", Some("PT1H30M")),
        ("1h30m", Some("PT1H30M")),
        ("1h 30m", Some("PT1H30M")),
        ("1 hour and 30 minutes", Some("PT1H30M")),
        ("1.5h", Some("PT1H30M")),
        ("1,25 hours", Some("PT1H15M")),
        ("2 days", Some("P2D")),
        ("2d", Some("P2D")),
        ("1w", Some("P1W")),
        ("1w2d", Some("P9D")),
        ("an hour", Some("PT1H")),
        ("half an hour", Some("PT30M")),
        ("a day", Some("P1D")),
        ("2 Stunden", Some("PT2H")),
        ("eine halbe Stunde", Some("PT30M")),
        ("2 months", None),
        ("1h and", None),
        ("1.5 days", None),
        ("h", None),
        ("", None),
        ("99999999h", None),
    ] {
        let read = parse_duration(text, &Language::from_locale("de"))
            .ok()
            .map(|length| length.to_string());
        assert_eq!(read.as_deref(), expect, "{text}");
    }
}

/// Words of phrases, and random text.
pub(crate) fn any_fragment() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "today",
        "tomorrow",
        "now",
        "next",
        "last",
        "this",
        "friday",
        "sun",
        "march",
        "mar",
        "5",
        "31",
        "2027",
        "9999",
        "0001",
        "2026-03-05",
        "2026-02-30",
        "2026-W53",
        "2026-Q1",
        "12:30",
        "24:00",
        "12:30-13:30",
        "3pm",
        "3",
        "at",
        "on",
        "for",
        "until",
        "to",
        "from",
        "every",
        "other",
        "2",
        "weeks",
        "week",
        "year",
        "years",
        "+999999y",
        "-999999y",
        "+2w",
        "..",
        "in",
        "an",
        "hour",
        "half",
        "1h30",
        "1.5h",
        "5.3.",
        "3/5",
        "3/5/2026",
        "#a",
        "!high",
        "\"",
        "\"quoted",
        "all",
        "day",
        "daily",
        "mondays",
        "alarm",
        "15min",
        "and",
        "of",
        ",",
        "-",
        "5-7",
        "9-17h",
        "noon",
        "heute",
        "Uhr",
        "la",
        "semaine",
        "prochaine",
        "KW",
        "999999w",
        "o'clock",
        "am",
        "W01",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => "\\PC{0,6}"]
}

pub(crate) fn any_locale() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "C", "en_GB", "de_DE", "fr", "es", "it", "nl", "pt", "sv", "da", "nb", "fi", "pl", "cs",
    ])
}

pub(crate) fn any_now() -> impl Strategy<Value = CivilTime> {
    prop_oneof![
        Just(CivilTime::MIN),
        Just(CivilTime::MAX),
        (CivilTime::MIN.seconds()..=CivilTime::MAX.seconds())
            .prop_map(CivilTime::from_seconds_clamped),
        Just(reference_time()),
    ]
}

proptest! {
    #[test]
    fn any_range_ends_after_it_begins(
        words in prop::collection::vec(any_fragment(), 0..6),
        gap in prop::sample::select(vec![" ", "..", ""]),
        locale in any_locale(),
        now in any_now(),
    ) {
        let text = words.join(gap);
        let language = Language::from_locale(locale);
        if let Ok(date_range) = DateRange::parse(&text, now, &language) {
            prop_assert!(date_range.from <= date_range.to, "{text:?}: {date_range:?}");
            if !date_range.is_relative {
                let later = DateRange::parse(&text, CivilTime::from_seconds_clamped(0), &language);
                prop_assert_eq!(later, Ok(date_range), "{} says that it is the same always", text);
            }
        }
        drop(PointInTime::parse(&text, now, &language));
        drop(parse_duration(&text, &language));
        drop(DateRange::parse_bounds(&text, Some("today"), now, &language));
    }

    #[test]
    fn printed_dates_are_parsed(
        // Parsed years have four digits.
        day in civil(1000, 1, 1, 0, 0).day_number()..=larder_time::civil::LAST_DAY_NUMBER,
        second in 0..DAY_SECONDS / 60,
        locale in any_locale(),
        now in any_now(),
    ) {
        let language = Language::from_locale(locale);
        let printed = language.date(Date::from_day_number(day));
        let date_range = DateRange::parse(&printed, now, &language);
        let read = date_range.map(|date_range| (date_range.from, date_range.is_relative));
        prop_assert_eq!(read, Ok((CivilTime::midnight(day), false)), "{} in {}", printed, locale);
        let at = CivilTime::midnight(day).saturating_add(second * 60);
        let text = format!("{printed} {:02}:{:02}", second / 60, second % 60);
        let moment = PointInTime::parse(&text, now, &language).map(|moment| moment.at);
        prop_assert_eq!(moment, Ok(at), "{} in {}", text, locale);
    }
}
