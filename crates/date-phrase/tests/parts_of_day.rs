//! Days and their parts, parsed on Wednesday, 4 March 2026, at 10:00: evenings, ranges of weekdays,
//! hours next to a day.

use crate::date_ranges::{civil, format_civil, reference_time};
use crate::sentences::check_sentences;
use crate::unconsumed_words::check_refused;
use larder_date_phrase::{Language, PointInTime, Sentence};

/// A part of the day is a time where no other is given.
#[test]
fn parts_of_the_day_without_a_time_are_times() {
    check_sentences(
        "en_GB",
        &[
            ("Dinner this evening", "Dinner | 2026-03-04 20:00 .. 2026-03-04 21:00"),
            (
                "Dinner tonight at Bistro",
                "Dinner | 2026-03-04 20:00 .. 2026-03-04 21:00 | at Bistro",
            ),
            ("Dinner tonight for 2h", "Dinner | 2026-03-04 20:00 .. 2026-03-04 22:00 | PT2H"),
            ("Dinner tonight with Anna", "Dinner with Anna | 2026-03-04 20:00 .. 2026-03-04 21:00"),
            ("Run tomorrow morning", "Run | 2026-03-05 09:00 .. 2026-03-05 10:00"),
            ("Tea friday afternoon in town", "Tea in town | 2026-03-06 15:00 .. 2026-03-06 16:00"),
            ("Tea wednesday morning", "Tea | 2026-03-11 09:00 .. 2026-03-11 10:00"),
            ("Run every morning", "Run | 2026-03-05 09:00 .. 2026-03-05 10:00 | FREQ=DAILY"),
            ("Party tonight all day", "Party tonight | all day 2026-03-04 .. 2026-03-05"),
            ("Gala friday evening show", "Gala evening show | all day 2026-03-06 .. 2026-03-07"),
            (
                "Party friday evening until saturday morning",
                "Party | 2026-03-06 20:00 .. 2026-03-07 09:00",
            ),
            ("Report by friday evening", "Report | .. 2026-03-06 20:00"),
            ("Party tonight until 23:00", "\"23:00\" needs a start time, such as 12:30"),
        ],
    );
    let is_due = |text: &str| {
        let sentence = Sentence::parse(text, reference_time(), &Language::from_locale("en_GB"));
        sentence.expect(text).is_due
    };
    assert!(is_due("Report by friday") && is_due("Report no later than friday 17:00"));
    assert!(!is_due("Meeting friday 9:00 by 10:00") && !is_due("Book by Anna friday"));
    check_sentences(
        "de_DE",
        &[
            ("Essen morgen Abend", "Essen | 2026-03-05 20:00 .. 2026-03-05 21:00"),
            ("Essen morgen Mittag", "Essen | 2026-03-05 12:00 .. 2026-03-05 13:00"),
            ("Essen morgen Mittag um 1", "Essen | 2026-03-05 13:00 .. 2026-03-05 14:00"),
            ("Essen morgen früh", "Essen | 2026-03-05 09:00 .. 2026-03-05 10:00"),
            ("Feuerwerk heute Nacht", "Feuerwerk Nacht | all day 2026-03-04 .. 2026-03-05"),
        ],
    );
    check_sentences(
        "cs_CZ",
        &[
            ("Kino v pátek večer s Annou", "Kino s Annou | 2026-03-06 20:00 .. 2026-03-06 21:00"),
            ("Kino zítra odpoledne", "Kino | 2026-03-05 15:00 .. 2026-03-05 16:00"),
        ],
    );
}

/// A range of weekdays with a time is a repetition on each of them.
#[test]
fn ranges_of_weekdays_with_a_time_are_repetitions() {
    let rule = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR";
    let ranged = format!("Run | 2026-03-05 09:15 .. 2026-03-05 09:30 | {rule}");
    let timed = format!("Run | 2026-03-05 09:15 .. 2026-03-05 10:15 | {rule}");
    let check = |locale: &str, texts: &[&str], expect: &str| {
        let table: Vec<(&str, &str)> = texts.iter().map(|text| (*text, expect)).collect();
        check_sentences(locale, &table);
    };
    check(
        "en_GB",
        &[
            "Run mo-fr 9:15-9:30",
            "Run mon-fri 9:15-9:30",
            "Run mon to fri 9:15-9:30",
            "Run monday to friday 9:15-9:30",
            "Run from monday to friday 9:15 to 9:30",
            "Run monday through friday from 9:15am to 9:30am",
            "Run 9:15-9:30 monday to friday",
        ],
        &ranged,
    );
    check(
        "en_GB",
        &["Run monday to friday 9:15", "Run 9:15 mo-fr", "Run monday to friday at 9:15am"],
        &timed,
    );
    check(
        "de_DE",
        &["Run Mo bis Fr 9:15-9:30", "Run von Montag bis Freitag von 9:15 bis 9:30 Uhr"],
        &ranged,
    );
    check("cs_CZ", &["Run od pondělí do pátku 9:15-9:30", "Run po až pá 9:15-9:30"], &ranged);
    check("cs_CZ", &["Run pondělí až pátek v 9:15"], &timed);
    check_sentences(
        "en_GB",
        &[
            ("Fair monday to friday", "Fair | all day 2026-03-09 .. 2026-03-14"),
            ("Fair mo-fr", "Fair mo-fr"),
            ("Trip monday 9:00 to friday 17:00", "Trip | 2026-03-09 09:00 .. 2026-03-13 17:00"),
            (
                "Trip from monday to friday 17:00",
                "\"friday 17:00\" needs a start time, such as 12:30",
            ),
        ],
    );
}

/// A number after the name of a day, at the end of a phrase, is an hour like "at 14".
#[test]
fn numbers_after_a_day_are_hours() {
    let noon =
        |hour: u8| format!("ambiguous time \"{hour}\": write {hour}am, {hour}pm or {hour:02}:00");
    check_sentences(
        "en_GB",
        &[
            ("Call mum tomorrow 14", "Call mum | 2026-03-05 14:00 .. 2026-03-05 15:00"),
            (
                "Call mum tomorrow 14 for 2h",
                "Call mum | 2026-03-05 14:00 .. 2026-03-05 16:00 | PT2H",
            ),
            (
                "Call mum friday 14 with Anna",
                "Call mum with Anna | 2026-03-06 14:00 .. 2026-03-06 15:00",
            ),
            (
                "Call mum tomorrow 14 at Bistro",
                "Call mum | 2026-03-05 14:00 .. 2026-03-05 15:00 | at Bistro",
            ),
            ("Call mum tomorrow evening 8", "Call mum | 2026-03-05 20:00 .. 2026-03-05 21:00"),
            (
                "Gym every monday 18",
                "Gym | 2026-03-09 18:00 .. 2026-03-09 19:00 | FREQ=WEEKLY;BYDAY=MO",
            ),
            ("Call mum tomorrow 10", &noon(10)),
            ("Call mum friday 5 for 1h", &noon(5)),
            ("Call mum tomorrow room 10", "Call mum room 10 | all day 2026-03-05 .. 2026-03-06"),
            ("Feed tomorrow 10 people", "Feed 10 people | all day 2026-03-05 .. 2026-03-06"),
            ("Order tomorrow: 10", "Order 10 | all day 2026-03-05 .. 2026-03-06"),
            ("Party march 5", "Party | all day 2026-03-05 .. 2026-03-06"),
            ("Party 5 march 14", "Party 14 | all day 2026-03-05 .. 2026-03-06"),
            ("Room 10 tomorrow", "Room 10 | all day 2026-03-05 .. 2026-03-06"),
        ],
    );
    check_refused("en_GB", &[("Party friday 13", "friday 13")]);
    check_refused("fr_FR", &[("Anna mardi 14", "mardi 14")]);
    check_sentences(
        "pt_PT",
        &[("Levar amanhã as 10 caixas", "Levar as 10 caixas | all day 2026-03-05 .. 2026-03-06")],
    );
    check_sentences(
        "de_DE",
        &[
            ("Anruf morgen 10", "Anruf | 2026-03-05 10:00 .. 2026-03-05 11:00"),
            ("Anruf Freitag 14 bei Anna", "Anruf | 2026-03-06 14:00 .. 2026-03-06 15:00 | at Anna"),
            (
                "Morgen um 10 Anruf bei Anna",
                "Anruf | 2026-03-05 10:00 .. 2026-03-05 11:00 | at Anna",
            ),
        ],
    );
    check_sentences(
        "cs_CZ",
        &[
            ("Oběd zítra 12", "Oběd | 2026-03-05 12:00 .. 2026-03-05 13:00"),
            (
                "zítra v 10 schůzka s Petrem",
                "schůzka s Petrem | 2026-03-05 10:00 .. 2026-03-05 11:00",
            ),
            ("zítra ráno v 7 běh", "běh | 2026-03-05 07:00 .. 2026-03-05 08:00"),
        ],
    );
}

/// Quarters of hours, which are ambiguous like "at 3".
#[test]
fn quarters_of_hours_are_parsed() {
    let at = |time: &str| format!("Tea | 2026-03-05 {time}");
    check_sentences(
        "en_GB",
        &[
            ("Tea tomorrow half past three pm", "Tea | 2026-03-05 15:30 .. 2026-03-05 16:30"),
            ("Tea tomorrow half past 3pm", &at("15:30 .. 2026-03-05 16:30")),
            ("Tea tomorrow at quarter to 9 pm", &at("20:45 .. 2026-03-05 21:45")),
            ("Tea tomorrow quarter past 15", &at("15:15 .. 2026-03-05 16:15")),
            ("Tea tomorrow afternoon quarter past three", &at("15:15 .. 2026-03-05 16:15")),
            (
                "Tea half past three",
                "ambiguous time \"half past three\": write 3:30am, 3:30pm or 03:30",
            ),
            (
                "Tea quarter to nine",
                "ambiguous time \"quarter to nine\": write 8:45am, 8:45pm or 08:45",
            ),
            (
                "Tea quarter past 9",
                "ambiguous time \"quarter past 9\": write 9:15am, 9:15pm or 09:15",
            ),
            (
                "Tea quarter to one",
                "ambiguous time \"quarter to one\": write 12:45am, 12:45pm or 00:45",
            ),
        ],
    );
}

/// Hours in words, with a sign of a time.
#[test]
fn hours_in_words_are_parsed() {
    let at = |hour: u8| format!("Tea | 2026-03-05 {hour:02}:00 .. 2026-03-05 {:02}:00", hour + 1);
    check_sentences(
        "en_GB",
        &[
            ("Tea tomorrow at ten am", &at(10)),
            ("Tea tomorrow at five pm", &at(17)),
            ("Tea tomorrow five pm", &at(17)),
            ("Tea tomorrow at one p.m.", &at(13)),
            ("Tea at five o'clock tomorrow afternoon", &at(17)),
            (
                "Tea tomorrow at five o'clock",
                "ambiguous time \"at five o'clock\": write 5am, 5pm or 05:00",
            ),
            ("Tea tomorrow at one", "ambiguous time \"at one\": write 1am, 1pm or 01:00"),
            ("Hire a PM tomorrow", "Hire a PM | all day 2026-03-05 .. 2026-03-06"),
        ],
    );
    check_sentences(
        "de_DE",
        &[
            ("Tea morgen um fünf Uhr", &at(5)),
            ("Tea morgen um ein Uhr", &at(1)),
            ("Tea morgen fünf Uhr nachmittags", &at(17)),
            ("Eine Uhr kaufen morgen", "Eine Uhr kaufen | all day 2026-03-05 .. 2026-03-06"),
        ],
    );
    check_sentences("fr_FR", &[("Tea demain à deux heures", &at(2))]);
    check_refused("fr_FR", &[("Film demain deux heures", "deux heures")]);
}

/// Deadlines of tasks, with "due" before them.
#[test]
fn deadlines_are_parsed() {
    check_sentences(
        "en_GB",
        &[
            ("Tax return due friday", "Tax return | all day 2026-03-06 .. 2026-03-07"),
            ("Tax return is due on 31 march", "Tax return | all day 2026-03-31 .. 2026-04-01"),
            ("Tax return due friday 17:00", "Tax return | 2026-03-06 17:00 .. 2026-03-06 18:00"),
            (
                "Tax return due at 17:00 on friday",
                "Tax return | 2026-03-06 17:00 .. 2026-03-06 18:00",
            ),
            ("Tax return due by friday", "Tax return | all day .. 2026-03-07"),
            ("Rent due every month", "Rent | all day 2026-03-04 .. 2026-03-05 | FREQ=MONTHLY"),
            ("Pay what is due", "Pay what is due"),
            ("Due diligence friday", "Due diligence | all day 2026-03-06 .. 2026-03-07"),
            ("Friday due diligence", "due diligence | all day 2026-03-06 .. 2026-03-07"),
        ],
    );
    check_sentences(
        "de_DE",
        &[
            ("Steuer bis Freitag", "Steuer | all day .. 2026-03-07"),
            ("Steuer bis spätestens Freitag", "Steuer | all day .. 2026-03-07"),
            ("Steuer fällig am Freitag", "Steuer | all day 2026-03-06 .. 2026-03-07"),
        ],
    );
    check_sentences(
        "cs_CZ",
        &[("Daně splatné v pátek", "Daně | all day 2026-03-06 .. 2026-03-07")],
    );
}

/// Ends on holidays, and ends that are not dates.
#[test]
fn repetitions_may_end_on_holidays() {
    let daily = "2026-03-05 09:00 .. 2026-03-05 10:00 | FREQ=DAILY | until";
    check_sentences(
        "en_GB",
        &[
            ("Run every day until christmas 9:00", &format!("Run | {daily} 2026-12-25 23:59:59")),
            (
                "Run every day 9:00 till Christmas Eve",
                &format!("Run | {daily} 2026-12-24 23:59:59"),
            ),
            ("Run daily 9:00 until new year's eve", &format!("Run | {daily} 2026-12-31 23:59:59")),
            ("Trip from christmas until new year", "Trip | all day 2026-12-25 .. 2027-01-02"),
            ("Trip tomorrow until christmas", "Trip | all day 2026-03-05 .. 2026-12-26"),
            ("Lunch on christmas at noon", "Lunch | 2026-12-25 12:00 .. 2026-12-25 13:00"),
            ("Cards by christmas", "Cards | all day .. 2026-12-26"),
            ("Christmas party 18:00", "Christmas party | 2026-03-04 18:00 .. 2026-03-04 19:00"),
            ("Plan Christmas 18:00", "Plan | 2026-12-25 18:00 .. 2026-12-25 19:00"),
            ("Plan Christmas", "Plan Christmas"),
            ("Wait until done", "Wait until done"),
            (
                "Read by candlelight every friday",
                "Read by candlelight | all day 2026-03-06 .. 2026-03-07 | FREQ=WEEKLY;BYDAY=FR",
            ),
        ],
    );
    check_refused(
        "en_GB",
        &[
            ("Run every day until the race 9:00", "until the"),
            ("Run every day 9:00 until christmas party", "until christmas"),
            ("Lunch tomorrow 12:30 until done", "until done"),
        ],
    );
    check_sentences(
        "de_DE",
        &[("Lauf täglich bis Weihnachten 9:00", &format!("Lauf | {daily} 2026-12-25 23:59:59"))],
    );
    check_refused("de_DE", &[("Lauf täglich bis Saisonende 9:00", "bis Saisonende")]);
    check_sentences(
        "cs_CZ",
        &[(
            "Bruslení každou sobotu do Prahy 9:00",
            "Bruslení do Prahy | 2026-03-07 09:00 .. 2026-03-07 10:00 | FREQ=WEEKLY;BYDAY=SA",
        )],
    );
}

/// Companions do not belong to the time.
#[test]
fn companions_stay_in_the_title() {
    check_sentences(
        "en_GB",
        &[
            (
                "Lunch tomorrow at 14 with Anna",
                "Lunch with Anna | 2026-03-05 14:00 .. 2026-03-05 15:00",
            ),
            ("Dinner on the 15th with Anna", "Dinner with Anna | all day 2026-03-15 .. 2026-03-16"),
        ],
    );
    check_sentences(
        "de_DE",
        &[(
            "Kino am Samstag um 20 mit Peter",
            "Kino mit Peter | 2026-03-07 20:00 .. 2026-03-07 21:00",
        )],
    );
}

/// Holidays next to a time.
#[test]
fn holidays_may_have_a_time() {
    let at = |date: &str, hour: u8| format!("{date} {hour}:00 .. {date} {}:00", hour + 1);
    let eve = at("2026-12-24", 18);
    check_sentences(
        "en_GB",
        &[
            ("Christmas dinner christmas eve 18:00", &format!("Christmas dinner | {eve}")),
            ("Party new year's eve 20:00", &format!("Party | {}", at("2026-12-31", 20))),
            ("Party 20:00 new year's eve", &format!("Party | {}", at("2026-12-31", 20))),
            ("Party boxing day 20:00-21:00", &format!("Party | {}", at("2026-12-26", 20))),
            ("Dinner at christmas 19:00", &format!("Dinner | {}", at("2026-12-25", 19))),
            (
                "Christmas dinner tomorrow 19:00",
                "Christmas dinner | 2026-03-05 19:00 .. 2026-03-05 20:00",
            ),
            (
                "Plan Christmas 19:00 tomorrow",
                "Plan Christmas | 2026-03-05 19:00 .. 2026-03-05 20:00",
            ),
            ("Easter plans 19:00", "Easter plans | 2026-03-04 19:00 .. 2026-03-04 20:00"),
            ("Easter tomorrow 19:00", "Easter | 2026-03-05 19:00 .. 2026-03-05 20:00"),
        ],
    );
    check_refused(
        "en_GB",
        &[
            ("Dinner easter 19:00", "easter"),
            ("Dinner easter monday 19:00", "easter monday"),
            ("Fish good friday", "good friday"),
        ],
    );
    check_sentences(
        "de_DE",
        &[
            ("Heiligabend 18 Uhr Essen", &format!("Essen | {eve}")),
            ("Essen am 1. Weihnachtstag 12 Uhr", &format!("Essen | {}", at("2026-12-25", 12))),
        ],
    );
    check_refused("de_DE", &[("Essen Ostermontag 12 Uhr", "Ostermontag")]);
    check_sentences(
        "cs_CZ",
        &[
            ("Štědrý den 18:00 večeře", &format!("večeře | {eve}")),
            ("Oslava na Silvestra ve 20:00", &format!("Oslava | {}", at("2026-12-31", 20))),
        ],
    );
    check_refused("cs_CZ", &[("Oběd Velikonoční pondělí ve 12:00", "Velikonoční pondělí")]);
}

/// The hours after midnight of a night are on the next day.
#[test]
fn hours_after_midnight_are_on_the_next_day() {
    let next = "2026-03-05 01:00 .. 2026-03-05 02:00";
    check_sentences(
        "en_GB",
        &[
            ("party tonight 1:00", &format!("party | {next}")),
            ("party 1:00 tonight", &format!("party | {next}")),
            ("party tonight at midnight", "party | 2026-03-05 .. 2026-03-05 01:00"),
            ("party tonight 23:00-1:00", "party | 2026-03-04 23:00 .. 2026-03-05 01:00"),
            ("party friday night 1:00", "party | 2026-03-07 01:00 .. 2026-03-07 02:00"),
            ("flight friday 3:00", "flight | 2026-03-06 03:00 .. 2026-03-06 04:00"),
        ],
    );
    check_sentences(
        "de_DE",
        &[
            ("Treffen heute Nacht 1 Uhr", &format!("Treffen | {next}")),
            ("Treffen Samstag 3 Uhr nachts", "Treffen | 2026-03-07 03:00 .. 2026-03-07 04:00"),
        ],
    );
    check_sentences("cs_CZ", &[("Sbor dnes v noci v 1", &format!("Sbor | {next}"))]);
    let language = Language::from_locale("en");
    let at = |text: &str, now| format_civil(PointInTime::parse(text, now, &language).unwrap().at);
    assert_eq!(at("tonight 1:00", reference_time()), "2026-03-05 01:00");
    assert_eq!(at("tonight 1:00", civil(2026, 3, 4, 0, 30)), "2026-03-04 01:00");
}

/// Twelve in the evening or at night is midnight.
#[test]
fn twelve_at_night_is_midnight() {
    check_sentences(
        "en_GB",
        &[
            ("Party tonight 12:30", "Party | 2026-03-05 00:30 .. 2026-03-05 01:30"),
            ("Party 12:30 tonight", "Party | 2026-03-05 00:30 .. 2026-03-05 01:30"),
            ("Party tonight 12pm", "Party | 2026-03-04 12:00 .. 2026-03-04 13:00"),
            ("Party tonight at 12", "ambiguous time \"at 12\": write 12am, 12pm or 12:00"),
        ],
    );
    let midnight = "Party | 2026-03-05 .. 2026-03-05 01:00";
    check_sentences(
        "de_DE",
        &[
            ("Party heute Nacht um 12 Uhr", midnight),
            ("Party heute Abend um 12", midnight),
            ("Party morgen Mittag um 12", "Party | 2026-03-05 12:00 .. 2026-03-05 13:00"),
        ],
    );
}
