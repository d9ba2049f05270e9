//! Words of date or time that do not combine with the others: they are refused.

use crate::date_ranges::{format_civil, reference_time};
use crate::sentences::check_sentences;
use larder_date_phrase::{Language, PointInTime, parse_duration};

/// Checks sentences, each with the words that are refused.
#[track_caller]
pub(crate) fn check_refused(locale: &str, table: &[(&str, &str)]) {
    for (text, word) in table {
        let expect = format!(
            "cannot combine {word:?} with the other date or time; rephrase it, or quote it to keep it in the summary"
        );
        check_sentences(locale, &[(text, &expect)]);
    }
}

#[test]
fn further_days_and_months_are_refused() {
    check_refused(
        "en_GB",
        &[
            ("Lunch tomorrow or friday", "friday"),
            ("Gym mon wed fri 7am", "mon"),
            ("Trip first monday of december 9:00", "first"),
            ("Interview second friday 10:00", "second"),
            ("Lunch a week from monday 12:00", "a week"),
            ("Lunch monday week 12:00", "week"),
            ("Lunch next week 12:00", "next week"),
            ("Class every monday from january to march 18:00", "january"),
            ("Class every monday in december 18:00", "december"),
            ("Class every monday starting next month 18:00", "next month"),
            ("Talk in Sept tomorrow 12:30", "Sept"),
            ("Pay the tax in december", "december"),
            ("Lunch with May tomorrow 12:30", "May"),
            ("March report tomorrow 12:30", "March"),
        ],
    );
    check_refused(
        "de_DE",
        &[
            ("Essen Mittwoch in einer Woche", "in einer Woche"),
            ("Essen heute in einer Woche", "in einer Woche"),
            ("Dienstag Morgen um 9 Arzt", "Morgen"),
            ("Steuer im Mai", "Mai"),
        ],
    );
}

#[test]
fn further_repetitions_are_refused() {
    check_refused(
        "en_GB",
        &[
            ("Pay bills every payday 9:00", "every payday"),
            ("Run every thursday except 2026-12-24 10:00", "except"),
            ("Pay every 1st and 15th", "15th"),
            ("Standup every other weekday 9:00", "every other"),
            ("Standup every 2 weekdays", "every 2"),
        ],
    );
    check_refused("de_DE", &[("Standup jeden zweiten Werktag 9 Uhr", "jeden zweiten")]);
}

/// Days of a month that no rule of the grammar selects.
#[test]
fn further_days_of_months_are_refused() {
    check_refused(
        "en_GB",
        &[
            ("Meeting first and third monday of the month 18:00", "first and"),
            ("Report last weekday of every month 9:00", "of every month"),
            ("Meeting the fifth friday of every month", "of every month"),
            ("Meeting second-last friday of every month", "of every month"),
            ("Meeting fifth friday of the month 18:00", "of the month"),
        ],
    );
    check_refused(
        "de_DE",
        &[
            ("Bericht am letzten Werktag des Monats 9 Uhr", "des Monats"),
            ("Treffen ersten und dritten Montag im Monat 18 Uhr", "ersten und"),
        ],
    );
    check_sentences(
        "en_GB",
        &[
            (
                "Second and last lap every friday 18:00",
                "Second and last lap | 2026-03-06 18:00 .. 2026-03-06 19:00 | FREQ=WEEKLY;BYDAY=FR",
            ),
            (
                "Review of every month",
                "Review of | all day 2026-03-04 .. 2026-03-05 | FREQ=MONTHLY",
            ),
        ],
    );
}

#[test]
fn further_digits_and_times_are_refused() {
    check_refused(
        "en_GB",
        &[
            ("Lunch 12:30 and 15:00", "15:00"),
            ("Plumber between 8 and 10 tomorrow", "between 8"),
            ("24 hour race tomorrow 12:30", "24 hour"),
            ("Fair friday 2-3 days", "2-3 days"),
            ("Break tomorrow 12:30 20min walk", "20min"),
            ("Talk tomorrow 12:30 an hour long", "an hour"),
            ("Review mon/tue 2026-03-05 9:00", "mon/tue"),
        ],
    );
    check_refused("en_US", &[("Meeting 31/12 10:00", "31/12")]);
    let hint = "write Europe/Berlin or Berlin time, or quote it to keep it in the summary";
    for (locale, text, word) in [
        ("en_GB", "Ferry tomorrow 10:00 EST", "EST"),
        ("en_GB", "Ferry tomorrow 3pm PST", "PST"),
        ("en_GB", "Ferry tomorrow 10:00 Eastern time", "Eastern time"),
        ("de_DE", "Anruf morgen 15 Uhr New Yorker Zeit", "New Yorker Zeit"),
    ] {
        check_sentences(locale, &[(text, &format!("ambiguous time zone {word:?}: {hint}"))]);
    }
}

/// Rare formats of dates and times.
#[test]
fn rare_formats_are_refused() {
    check_sentences(
        "en_US",
        &[
            ("Talk 31.12. 10:00", "Talk | 2026-12-31 10:00 .. 2026-12-31 11:00"),
            ("Talk 5.3.2026", "Talk | all day 2026-03-05 .. 2026-03-06"),
            ("Talk 1-Dec-2026 10:00", "Talk | 2026-12-01 10:00 .. 2026-12-01 11:00"),
            ("Talk the 24th at 6pm", "Talk | 2026-03-24 18:00 .. 2026-03-24 19:00"),
            ("Talk in two weeks at 10:00", "Talk | 2026-03-18 10:00 .. 2026-03-18 11:00"),
            ("Talk tomorrow at seven", "ambiguous time \"at seven\": write 7am, 7pm or 07:00"),
            ("Talk 2 weeks ago", "Talk | all day 2026-02-18 .. 2026-02-19"),
            ("Talk tonight half past eight", "Talk | 2026-03-04 20:30 .. 2026-03-04 21:30"),
            ("Trip December 24 through January 2", "Trip | all day 2026-12-24 .. 2027-01-03"),
            ("Talk 2026-12-01T10:00:00Z", "Talk | 2026-12-01 10:00 .. 2026-12-01 11:00 | in UTC"),
            (
                "Talk tomorrow 10:00 +05:30",
                "offset from UTC in \"10:00 +05:30\"; name a time zone instead, such as 10:00 Europe/Berlin or 10:00 UTC",
            ),
            (
                "Talk 2026-12-01T10:00 UTC+2",
                "offset from UTC in \"2026-12-01T10:00 UTC+2\"; name a time zone instead, such as 10:00 Europe/Berlin or 10:00 UTC",
            ),
            (
                "Talk tomorrow 10:00 -11:00",
                "cannot combine \"10:00 -11:00\" with the other date or time; rephrase it, or quote it to keep it in the summary",
            ),
            ("Talk tomorrow 10:00 +2", "Talk +2 | 2026-03-05 10:00 .. 2026-03-05 11:00"),
            (
                "Talk tomorrow 10:00+05:30",
                "offset from UTC in \"10:00+05:30\"; name a time zone instead, such as 10:00 Europe/Berlin or 10:00 UTC",
            ),
        ],
    );
    check_sentences(
        "de_DE",
        &[
            (
                "Schule morgen halb neun",
                "ambiguous time \"halb neun\": write 8:30am, 8:30pm or 08:30",
            ),
            (
                "Treffen übermorgen halb drei in Wien",
                "ambiguous time \"halb drei\": write 2:30am, 2:30pm or 02:30",
            ),
            ("Treffen übermorgen 2:30pm", "Treffen | 2026-03-06 14:30 .. 2026-03-06 15:30"),
            (
                "Treffen übermorgen nachmittag halb drei",
                "Treffen | 2026-03-06 14:30 .. 2026-03-06 15:30",
            ),
            (
                "Schule morgen um viertel nach drei",
                "ambiguous time \"um viertel nach drei\": write 3:15am, 3:15pm or 03:15",
            ),
            (
                "Schule morgen früh dreiviertel acht",
                "Schule | 2026-03-05 07:45 .. 2026-03-05 08:45",
            ),
            ("Anruf vor 3 Tagen", "Anruf | all day 2026-03-01 .. 2026-03-02"),
        ],
    );
    check_refused("cs_CZ", &[("Škola zítra v půl deváté", "v půl deváté")]);
    let language = Language::from_locale("en");
    let past = PointInTime::parse("2 weeks ago", reference_time(), &language).unwrap();
    assert_eq!(format_civil(past.at), "2026-02-18");
    assert_eq!(parse_duration("0", &language).unwrap().to_string(), "PT0S");
}

/// A second adjective would change the day, or mean nothing.
#[test]
fn a_second_adjective_of_a_date_is_refused() {
    check_refused(
        "en_US",
        &[
            ("Doctor next next friday 9:00", "next"),
            ("Doctor this next friday 9:00", "this"),
            ("Doctor last next monday 9:00", "last"),
        ],
    );
    check_refused("fr_FR", &[("Docteur vendredi prochain prochain 9:00", "prochain")]);
    check_sentences(
        "en_US",
        &[(
            "See what is next tomorrow 9:00",
            "See what is next | 2026-03-05 09:00 .. 2026-03-05 10:00",
        )],
    );
}

/// Titles with words that only resemble a date or time.
#[test]
fn harmless_words_stay_in_the_title() {
    let at = "| 2026-03-05 12:30 .. 2026-03-05 13:30";
    for text in [
        "Lunch second floor",
        "Mark and Dec",
        "Sun cream",
        "Sit in the sun",
        "\"March report\"",
        "\"24 hour\" race",
        "Interview 2nd round",
        "We may meet",
        "3D movie",
        "Call Jan",
        "Budget 2026-Q2",
        "Take 1/2 pill",
        "Release 1.2.3",
    ] {
        let expect = format!("{} {at}", text.replace('"', ""));
        check_sentences("en_GB", &[(&format!("{text} tomorrow 12:30"), &expect)]);
    }
    for text in ["Alle Kollegen", "So geht es", "Mi casa"] {
        check_sentences("de_DE", &[(&format!("{text} morgen 12:30"), &format!("{text} {at}"))]);
    }
    check_sentences("en_GB", &[("Every man for himself", "Every man for himself")]);
}

/// The Czech "do" means "until" and "to".
#[test]
fn the_czech_until_is_recognised() {
    let series = |until: &str| {
        format!(
            "Porada | 2026-03-10 10:00 .. 2026-03-10 11:00 | FREQ=WEEKLY;BYDAY=TU | until {until} 23:59:59"
        )
    };
    let place =
        "Jízda do Prahy | 2026-03-06 08:00 .. 2026-03-06 09:00 | FREQ=WEEKLY;BYDAY=FR".to_owned();
    let daily = "2026-03-05 08:00 .. 2026-03-05 09:00 | FREQ=DAILY";
    check_sentences(
        "cs_CZ",
        &[
            ("Porada každé úterý v 10 do Vánoc", &series("2026-12-25")),
            ("Porada každé úterý v 10 do vánoc", &series("2026-12-25")),
            ("Porada každé úterý do konce roku v 10", &series("2026-12-31")),
            ("Jízda do Prahy každý pátek 8:00", &place),
            ("Jízda každý pátek do Prahy 8:00", &place),
            ("Cesta do práce každý den v 8", &format!("Cesta do práce | {daily}")),
            ("Cesta zítra do práce v 8", "Cesta do práce | 2026-03-05 08:00 .. 2026-03-05 09:00"),
        ],
    );
    check_refused(
        "cs_CZ",
        &[
            ("Porada každé úterý v 10 do Velikonoc", "do Velikonoc"),
            ("Porada každé úterý v 10 do prázdnin", "do prázdnin"),
            ("Porada každé úterý do prázdnin", "do prázdnin"),
            ("Porada každé úterý v 10 do konce školního roku", "do konce"),
            ("Lyže zítra do Velikonoc", "do Velikonoc"),
        ],
    );
}

/// A weekend is two days, so it is not a date.
#[test]
fn weekends_are_refused_as_dates() {
    check_refused(
        "en_GB",
        &[
            ("Trip this weekend 10:00", "this weekend"),
            ("Trip at the weekend 10:00", "weekend"),
            ("On the weekend trip 10:00", "On the weekend"),
        ],
    );
    check_refused(
        "de_DE",
        &[
            ("Ausflug am Wochenende 10 Uhr", "am Wochenende"),
            ("Am Wochenende Ausflug 10 Uhr", "Am Wochenende"),
        ],
    );
    check_refused("cs_CZ", &[("Výlet o víkendu v 10", "o víkendu")]);
    check_sentences(
        "en_GB",
        &[
            ("Weekend plans 12:30", "Weekend plans | 2026-03-04 12:30 .. 2026-03-04 13:30"),
            ("Weekend trip saturday 10:00", "Weekend trip | 2026-03-07 10:00 .. 2026-03-07 11:00"),
        ],
    );
}

/// Two weekdays, which may or may not be a repetition.
#[test]
fn two_weekdays_are_refused() {
    check_refused(
        "en_GB",
        &[
            ("Yoga tue and thu 18:00-19:00", "tue"),
            ("Yoga tue, thu 18:00", "tue"),
            ("Yoga tuesday and thursday 18:00", "thursday"),
        ],
    );
    check_refused("de_DE", &[("Yoga Di und Do 18 Uhr", "Di")]);
    check_refused("cs_CZ", &[("Jóga út a čt v 18", "út")]);
}

/// "before friday" excludes friday.
#[test]
fn dates_after_before_are_refused() {
    check_refused(
        "en_GB",
        &[
            ("Pay invoice before friday", "before friday"),
            ("Call Anna before 18:00", "before 18:00"),
        ],
    );
    check_refused("de_DE", &[("Rechnung vor Freitag zahlen", "vor Freitag")]);
    check_sentences(
        "en_GB",
        &[
            ("Read before sleep tomorrow", "Read before sleep | all day 2026-03-05 .. 2026-03-06"),
            ("Look before you leap", "Look before you leap"),
        ],
    );
}

/// "the day after christmas" is not christmas, nor "monday after next" the next monday.
#[test]
fn dates_after_after_are_refused() {
    check_refused(
        "en_GB",
        &[
            ("Brunch day after christmas 10:00", "after christmas"),
            ("Meeting the monday after christmas", "after christmas"),
            ("Brunch the week after christmas 10:00", "after christmas"),
            ("Brunch the day after 5 december", "after 5 december"),
            ("Standup every monday after christmas 9:00", "after christmas"),
            ("Standup every day after 2027-01-10 9:00", "after 2027-01-10"),
            ("Sales meeting monday after next", "after next"),
            ("Lunch monday after easter", "after easter"),
            ("Lunch monday before easter", "before easter"),
            ("Report due the day after christmas", "after christmas"),
        ],
    );
    check_refused(
        "de_DE",
        &[
            ("Essen am Tag nach Weihnachten 10 Uhr", "nach Weihnachten"),
            ("Essen am Montag nach Ostern", "nach Ostern"),
        ],
    );
    check_refused("fr_FR", &[("Repas après vendredi 10h", "après vendredi")]);
    check_sentences(
        "en_GB",
        &[
            (
                "After work drinks friday 18:00",
                "After work drinks | 2026-03-06 18:00 .. 2026-03-06 19:00",
            ),
            ("Drinks after work friday", "Drinks after work | all day 2026-03-06 .. 2026-03-07"),
            (
                "Drinks friday after work 18:00",
                "Drinks after work | 2026-03-06 18:00 .. 2026-03-06 19:00",
            ),
            ("Call Bob after 17:00", "Call Bob after | 2026-03-04 17:00 .. 2026-03-04 18:00"),
            ("Lunch day after tomorrow", "Lunch | all day 2026-03-06 .. 2026-03-07"),
            ("Sales after christmas", "Sales after christmas"),
        ],
    );
    check_sentences(
        "de_DE",
        &[
            ("Fahrt nach Berlin Freitag", "Fahrt nach Berlin | all day 2026-03-06 .. 2026-03-07"),
            ("Essen vorgestern", "Essen | all day 2026-03-02 .. 2026-03-03"),
        ],
    );
    for (locale, text) in [
        ("en_GB", "Ran the day before yesterday"),
        ("fr_FR", "Ran avant-hier"),
        ("es_ES", "Ran anteayer"),
        ("it_IT", "Ran l'altro ieri"),
        ("sv_SE", "Ran i förrgår"),
        ("pl_PL", "Ran przedwczoraj"),
    ] {
        check_sentences(locale, &[(text, "Ran | all day 2026-03-02 .. 2026-03-03")]);
    }
    for (locale, text, refused) in [
        ("da_DK", "Frokost efter 5. marts", "efter 5. marts"),
        ("es_ES", "Comida después del 5 de marzo", "después del 5 de marzo"),
        ("es_ES", "Comida tras el 5 de marzo", "tras el 5 de marzo"),
        ("it_IT", "Pranzo dopo il 5 marzo", "dopo il 5 marzo"),
        ("nl_NL", "Lunch na 5 maart", "na 5 maart"),
        ("pl_PL", "Obiad po 5 marca", "po 5 marca"),
        ("pt_PT", "Almoço depois de 5 de março", "depois de 5 de março"),
        ("pt_PT", "Almoço depois do dia 5 de março", "depois do dia 5 de março"),
        ("fr_FR", "Repas le lendemain du 5 mars", "lendemain du 5 mars"),
        ("sv_SE", "Lunch efter 5 mars", "efter 5 mars"),
    ] {
        check_refused(locale, &[(text, refused)]);
    }
}

/// An article between "before" or "after" and the date does not hide the date. One before an
/// adjective does: "after the friday meeting".
#[test]
fn articles_before_excluded_dates_are_skipped() {
    check_refused(
        "en_GB",
        &[
            ("Brunch the day after the 5 december", "after the 5 december"),
            ("Brunch day after the 5 december with Anna", "after the 5 december"),
            ("Pay the invoice before the 5 december", "before the 5 december"),
            ("Party the day after the 5th of december 10:00", "after the 5th of december"),
        ],
    );
    check_refused(
        "de_DE",
        &[
            ("Essen nach dem 5. März 10 Uhr", "nach dem 5. März"),
            ("Essen am Tag nach dem 5. März", "nach dem 5. März"),
            ("Essen vor dem 5. März", "vor dem 5. März"),
            ("Essen nach dem Freitag", "nach dem Freitag"),
        ],
    );
    check_refused("fr_FR", &[("Repas après le 5 mars", "après le 5 mars")]);
    check_sentences(
        "en_GB",
        &[(
            "Drinks after the friday meeting 18:00",
            "Drinks after the meeting | 2026-03-06 18:00 .. 2026-03-06 19:00",
        )],
    );
}

/// Adverbs, and "after" before other words, stay in the title.
#[test]
fn titles_with_after_are_accepted() {
    check_sentences(
        "en_GB",
        &[("Chase due invoices after christmas", "Chase due invoices after christmas")],
    );
    check_refused(
        "en_GB",
        &[
            ("Meeting monday after next 10:00", "after next"),
            ("Meeting monday after next with Bob", "after next"),
            ("Monday after next dentist 10:00", "after next"),
            ("Report due on the day after christmas", "after christmas"),
            ("Report due after christmas", "after christmas"),
            ("Report is due the week before easter", "before easter"),
        ],
    );
    for (locale, text, expect) in [
        (
            "de_DE",
            "Kaffee nach der 10 Uhr Sitzung",
            "Kaffee nach der Sitzung | 2026-03-04 10:00 .. 2026-03-04 11:00",
        ),
        (
            "es_ES",
            "Cena y copas después viernes 20:00",
            "Cena y copas después | 2026-03-06 20:00 .. 2026-03-06 21:00",
        ),
        (
            "fr_FR",
            "Brunch du lendemain dimanche 11h",
            "Brunch du lendemain | 2026-03-08 11:00 .. 2026-03-08 12:00",
        ),
        (
            "pt_PT",
            "Jantar, cinema depois sexta 20h",
            "Jantar, cinema depois | 2026-03-06 20:00 .. 2026-03-06 21:00",
        ),
    ] {
        check_sentences(locale, &[(text, expect)]);
    }
}

/// Words one letter away from the name of a day, next to a time.
#[test]
fn misspelled_days_are_refused() {
    for (locale, text, word, meant) in [
        ("en_GB", "Call wednsday 10:00", "wednsday", "Wednesday"),
        ("en_GB", "Call saturdy 10:00", "saturdy", "Saturday"),
        ("en_GB", "Call 10:00 firday", "firday", "Friday"),
        ("en_GB", "Call tommorow 10:00", "tommorow", "tomorrow"),
        ("en_GB", "Call tomorow 10:00", "tomorow", "tomorrow"),
        ("en_GB", "Call tonigth 20:00", "tonigth", "tonight"),
        ("de_DE", "Anruf Donerstag 10 Uhr", "Donerstag", "Donnerstag"),
    ] {
        let expect = format!(
            "unknown word {word:?} (did you mean {meant}?); correct it, or quote it to keep it in the summary"
        );
        check_sentences(locale, &[(text, &expect)]);
    }
    check_sentences(
        "en_GB",
        &[
            ("Call tmrw 10:00", "Call | 2026-03-05 10:00 .. 2026-03-05 11:00"),
            ("Call tonite at 8", "Call | 2026-03-04 20:00 .. 2026-03-04 21:00"),
            ("Call mum 12:30", "Call mum | 2026-03-04 12:30 .. 2026-03-04 13:30"),
            ("Eat sundae 12:30", "Eat sundae | 2026-03-04 12:30 .. 2026-03-04 13:30"),
            ("Saturdy club friday 12:30", "Saturdy club | 2026-03-06 12:30 .. 2026-03-06 13:30"),
            ("\"saturdy\" 12:30", "saturdy | 2026-03-04 12:30 .. 2026-03-04 13:30"),
        ],
    );
    check_sentences(
        "de_DE",
        &[("Montage 12:30", "Montage | 2026-03-04 12:30 .. 2026-03-04 13:30")],
    );
}

/// A day in another language would remain in the summary, and the event would be today.
#[test]
fn days_of_other_languages_are_refused() {
    let error = |word: &str, language: &str| {
        format!(
            "\"{word}\" is a word of date or time in another language ({language}): set LC_TIME to \
             that language, or quote it to keep it in the summary"
        )
    };
    check_sentences(
        "C",
        &[
            ("Treffen nächste Woche Freitag 10:00", &error("Freitag", "de")),
            ("Lernen morgen 15:30", &error("morgen", "de")),
            ("Réunion vendredi 10:00", &error("vendredi", "fr")),
            ("Lernen 15:30 zwei Stunden", &error("Stunden", "de")),
            ("\"Lernen morgen\" 15:30", "Lernen morgen | 2026-03-04 15:30 .. 2026-03-04 16:30"),
            (
                "Dinner with Mårten 19:00",
                "Dinner with Mårten | 2026-03-04 19:00 .. 2026-03-04 20:00",
            ),
        ],
    );
    check_sentences("fr", &[("Treffen Freitag 10:00", &error("Freitag", "de"))]);
}
