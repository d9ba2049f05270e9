//! Phrases whose meaning depends on the words next to them, parsed on Wednesday, 4 March 2026, at
//! 10:00.

use crate::date_ranges::{civil, format_civil, reference_time};
use crate::sentences::check_sentences;
use larder_date_phrase::{Language, PointInTime};

/// Hours that are times only next to a date.
#[test]
fn hours_beside_dates_are_times() {
    check_sentences(
        "en_GB",
        &[
            ("Team tomorrow 14-15", "Team | 2026-03-05 14:00 .. 2026-03-05 15:00"),
            ("Team 14-15 tomorrow", "Team | 2026-03-05 14:00 .. 2026-03-05 15:00"),
            ("Team 14-15 on friday", "Team | 2026-03-06 14:00 .. 2026-03-06 15:00"),
            ("Team tomorrow 10 to 15", "Team | 2026-03-05 10:00 .. 2026-03-05 15:00"),
            ("Team tomorrow 14:00-15", "Team | 2026-03-05 14:00 .. 2026-03-05 15:00"),
            ("Team tomorrow 10:00 to 11", "Team | 2026-03-05 10:00 .. 2026-03-05 11:00"),
            ("Team tomorrow 14:00 until 3", "Team | 2026-03-05 14:00 .. 2026-03-05 15:00"),
            ("Team tomorrow noon-2pm", "Team | 2026-03-05 12:00 .. 2026-03-05 14:00"),
            ("Team noon-2 tomorrow", "Team | 2026-03-05 12:00 .. 2026-03-05 14:00"),
            ("Team tomorrow 10am-noon", "Team | 2026-03-05 10:00 .. 2026-03-05 12:00"),
            ("Team tomorrow 1400", "Team | 2026-03-05 14:00 .. 2026-03-05 15:00"),
            ("Team 1400 tomorrow", "Team | 2026-03-05 14:00 .. 2026-03-05 15:00"),
            ("Team at 1400", "Team | 2026-03-04 14:00 .. 2026-03-04 15:00"),
            (
                "Team every friday 14-16",
                "Team | 2026-03-06 14:00 .. 2026-03-06 16:00 | FREQ=WEEKLY;BYDAY=FR",
            ),
            ("Budget 2030 tomorrow", "Budget 2030 | all day 2026-03-05 .. 2026-03-06"),
            (
                "Read chapters 14-15 with Anna tomorrow",
                "Read chapters 14-15 with Anna | all day 2026-03-05 .. 2026-03-06",
            ),
            ("Fair friday \"2-3 days\"", "Fair 2-3 days | all day 2026-03-06 .. 2026-03-07"),
            ("Team tomorrow 10 to 11", "ambiguous time \"10 to 11\": write 10am, 10pm or 10:00"),
            (
                "Team tomorrow 25:00",
                "invalid time \"25:00\": write 14:30 or 2:30pm, or quote it to keep it in the summary",
            ),
            (
                "Team tomorrow 12:30-12:75",
                "invalid time \"12:30-12:75\": write 14:30 or 2:30pm, or quote it to keep it in the summary",
            ),
            (
                "Team 13pm",
                "invalid time \"13pm\": write 14:30 or 2:30pm, or quote it to keep it in the summary",
            ),
            ("Monitor 16:9 \"25:00\"", "Monitor 16:9 25:00"),
        ],
    );
    check_sentences(
        "de_DE",
        &[
            ("Team morgen 10 bis 11", "Team | 2026-03-05 10:00 .. 2026-03-05 11:00"),
            ("Team morgen 14.30", "Team | 2026-03-05 14:30 .. 2026-03-05 15:30"),
            (
                "Büro Mo-Fr 9-17 Uhr",
                "Büro | 2026-03-05 09:00 .. 2026-03-05 17:00 | FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
            ),
        ],
    );
}

#[test]
fn occurrence_counts_are_parsed() {
    check_sentences(
        "en_GB",
        &[
            (
                "Pills daily 9:00 10 times",
                "Pills | 2026-03-05 09:00 .. 2026-03-05 10:00 | FREQ=DAILY;COUNT=10",
            ),
            (
                "Yoga every monday x5",
                "Yoga | all day 2026-03-09 .. 2026-03-10 | FREQ=WEEKLY;BYDAY=MO;COUNT=5",
            ),
            (
                "Yoga 5x every monday",
                "Yoga | all day 2026-03-09 .. 2026-03-10 | FREQ=WEEKLY;BYDAY=MO;COUNT=5",
            ),
            (
                "Yoga every monday for 5 times",
                "Yoga | all day 2026-03-09 .. 2026-03-10 | FREQ=WEEKLY;BYDAY=MO;COUNT=5",
            ),
            (
                "Pills daily 3 times a day",
                "Pills 3 times a day | all day 2026-03-04 .. 2026-03-05 | FREQ=DAILY",
            ),
            ("Call Anna 3 times tomorrow", "Call Anna 3 times | all day 2026-03-05 .. 2026-03-06"),
            (
                "Yoga every monday 5 times until june",
                "\"5 times\" contradicts \"june\"; remove one, or quote it to keep it in the summary",
            ),
        ],
    );
    check_sentences(
        "de_DE",
        &[(
            "Yoga jeden Montag 5 mal",
            "Yoga | all day 2026-03-09 .. 2026-03-10 | FREQ=WEEKLY;BYDAY=MO;COUNT=5",
        )],
    );
}

#[test]
fn weekdays_may_accompany_dates() {
    let weekdays = "| 2026-03-05 09:00 .. 2026-03-05 10:00 | FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR";
    for text in [
        "monday-friday 9:00",
        "9:00 mon-fri",
        "every monday-friday 9:00",
        "every monday to friday 9:00",
        "daily mon-fri 9:00",
        "daily on weekdays 9:00",
        "weekdays 9:00",
        "9:00 on weekdays",
    ] {
        check_sentences("en_GB", &[(&format!("Standup {text}"), &format!("Standup {weekdays}"))]);
    }
    check_sentences(
        "en_GB",
        &[
            ("Fair mon-fri", "Fair | all day 2026-03-09 .. 2026-03-14"),
            (
                "Gym every weekend 9:00",
                "Gym | 2026-03-07 09:00 .. 2026-03-07 10:00 | FREQ=WEEKLY;BYDAY=SA,SU",
            ),
            ("Anna 3/3 yearly", "Anna | all day 2027-03-03 .. 2027-03-04 | FREQ=YEARLY"),
            ("Lunch monday the 30th", "Lunch | all day 2026-03-30 .. 2026-03-31"),
            ("Lunch monday 30th 12:30", "Lunch | 2026-03-30 12:30 .. 2026-03-30 13:30"),
            (
                "Lunch tuesday the 30th",
                "wrong weekday in \"tuesday the 30th\": that date is Mon 30 Mar 2026",
            ),
        ],
    );
    check_sentences(
        "de_DE",
        &[
            ("Essen Montag, den 30.", "Essen | all day 2026-03-30 .. 2026-03-31"),
            ("Essen Montag, den 30. November um 8", "Essen | 2026-11-30 08:00 .. 2026-11-30 09:00"),
            ("Urlaub vom 3. bis 10. August", "Urlaub | all day 2026-08-03 .. 2026-08-11"),
        ],
    );
    check_sentences(
        "en_GB",
        &[
            ("Trip from 3 to 10 august 2027", "Trip | all day 2027-08-03 .. 2027-08-11"),
            ("Trip 3 to 10 august", "Trip | all day 2026-08-03 .. 2026-08-11"),
            (
                "Read pages 3 to 10 tomorrow in august",
                "ambiguous time \"3 to 10\": write 3am, 3pm or 03:00",
            ),
        ],
    );
}

#[test]
fn days_of_months_are_parsed() {
    let check = |text: &str, expect: &str| {
        check_sentences("en_GB", &[(&format!("Rent {text}"), &format!("Rent | {expect}"))]);
    };
    let first = "all day 2026-04-01 .. 2026-04-02 | FREQ=MONTHLY;BYMONTHDAY=1";
    for text in [
        "on the 1st of every month",
        "every month on the 1st",
        "monthly on the 1st",
        "every 1st",
        "every 1st of the month",
    ] {
        check(text, first);
    }
    let last = "all day 2026-03-27 .. 2026-03-28 | FREQ=MONTHLY;BYDAY=-1FR";
    for text in
        ["every month on the last friday", "monthly on the last friday", "every last friday"]
    {
        check(text, last);
    }
    check(
        "every 2 months on the first monday 9:00",
        "2026-04-06 09:00 .. 2026-04-06 10:00 | FREQ=MONTHLY;INTERVAL=2;BYDAY=1MO",
    );
    check("end of june", "all day 2026-06-30 .. 2026-07-01");
    check("at the end of the month", "all day 2026-03-31 .. 2026-04-01");
    check("by the end of next month 12:00", ".. 2026-04-30 12:00");
    check(
        "every friday until the end of the year",
        "all day 2026-03-06 .. 2026-03-07 | FREQ=WEEKLY;BYDAY=FR | until 2026-12-31",
    );
    check_sentences(
        "cs_CZ",
        &[
            (
                "Sauna každé úterý 18:00 do konce června",
                "Sauna | 2026-03-10 18:00 .. 2026-03-10 19:00 | FREQ=WEEKLY;BYDAY=TU | until 2026-06-30 23:59:59",
            ),
            ("Kurz od zítřka 9:00", "Kurz | 2026-03-05 09:00 .. 2026-03-05 10:00"),
        ],
    );
    check_sentences(
        "fr_FR",
        &[(
            "Sport chaque lundi jusqu'à fin juin",
            "Sport | all day 2026-03-09 .. 2026-03-10 | FREQ=WEEKLY;BYDAY=MO | until 2026-06-30",
        )],
    );
}

#[test]
fn zones_are_parsed() {
    let lunch = "2026-03-05 15:00 .. 2026-03-05 16:00 | in";
    check_sentences(
        "en_GB",
        &[
            ("Call tomorrow 15:00 Europe/Berlin", &format!("Call | {lunch} Europe/Berlin")),
            ("Call 15:00 Europe/Berlin tomorrow", &format!("Call | {lunch} Europe/Berlin")),
            ("Call tomorrow 3pm New York time", &format!("Call | {lunch} America/New_York")),
            ("Call tomorrow 3pm New York", &format!("Call New York | {lunch} America/New_York")),
            ("Call tomorrow 15:00 UTC", &format!("Call | {lunch} UTC")),
            (
                "Call tomorrow 15:00 New York office",
                "Call New York office | 2026-03-05 15:00 .. 2026-03-05 16:00",
            ),
            (
                "Visit Europe/Berlin tomorrow",
                "Visit Europe/Berlin | all day 2026-03-05 .. 2026-03-06",
            ),
        ],
    );
}

/// A part of the day is a time where no other is given; prepositions before a date belong to it.
#[test]
fn prepositions_belong_to_dates() {
    check_sentences(
        "en_GB",
        &[
            ("Dinner tonight", "Dinner | 2026-03-04 20:00 .. 2026-03-04 21:00"),
            ("Dinner tonight 20:00", "Dinner | 2026-03-04 20:00 .. 2026-03-04 21:00"),
            ("Dinner 20:00 tonight", "Dinner | 2026-03-04 20:00 .. 2026-03-04 21:00"),
            ("Dinner friday evening", "Dinner | 2026-03-06 20:00 .. 2026-03-06 21:00"),
            ("Dinner friday evening 20:00", "Dinner | 2026-03-06 20:00 .. 2026-03-06 21:00"),
            ("Report by friday", "Report | all day .. 2026-03-07"),
            ("Report by friday 17:00", "Report | .. 2026-03-06 17:00"),
            ("Report by 17:00", "Report | .. 2026-03-04 17:00"),
            ("Book by Anna", "Book by Anna"),
            (
                "Yoga every monday starting tomorrow",
                "Yoga | all day 2026-03-09 .. 2026-03-10 | FREQ=WEEKLY;BYDAY=MO",
            ),
            ("Yoga starting 9 march", "Yoga | all day 2026-03-09 .. 2026-03-10"),
        ],
    );
    check_sentences(
        "cs",
        &[
            ("Kino dnes večer", "Kino | 2026-03-04 20:00 .. 2026-03-04 21:00"),
            ("Kino dnes večer 20:00", "Kino | 2026-03-04 20:00 .. 2026-03-04 21:00"),
            ("Zpráva do pátku", "Zpráva | all day .. 2026-03-07"),
        ],
    );
    check_sentences("de", &[("Kino heute Abend", "Kino | 2026-03-04 20:00 .. 2026-03-04 21:00")]);
}

/// A part of the day decides whether an hour is before or after noon.
#[test]
fn parts_of_the_day_decide_the_half_of_an_hour() {
    check_sentences(
        "en_GB",
        &[
            ("Tea tonight 8:30", "Tea | 2026-03-04 20:30 .. 2026-03-04 21:30"),
            ("Tea tonight at 8", "Tea | 2026-03-04 20:00 .. 2026-03-04 21:00"),
            ("Tea at 8 tonight", "Tea | 2026-03-04 20:00 .. 2026-03-04 21:00"),
            ("Tea tonight 8:30-9:45", "Tea | 2026-03-04 20:30 .. 2026-03-04 21:45"),
            ("Tea tomorrow evening at 7:45", "Tea | 2026-03-05 19:45 .. 2026-03-05 20:45"),
            ("Tea tomorrow afternoon at 3:30", "Tea | 2026-03-05 15:30 .. 2026-03-05 16:30"),
            ("Tea tomorrow 8 in the evening", "Tea | 2026-03-05 20:00 .. 2026-03-05 21:00"),
            ("Tea tomorrow morning at 9", "Tea | 2026-03-05 09:00 .. 2026-03-05 10:00"),
            ("Tea tomorrow evening 7am", "Tea | 2026-03-05 07:00 .. 2026-03-05 08:00"),
            ("Tea tonight at 12", "ambiguous time \"at 12\": write 12am, 12pm or 12:00"),
            ("Tea 5 o'clock", "ambiguous time \"5 o'clock\": write 5am, 5pm or 05:00"),
            (
                "Book 5 evening classes tomorrow",
                "Book 5 evening classes | all day 2026-03-05 .. 2026-03-06",
            ),
            (
                "Tea tomorrow 20:00 evening gala",
                "Tea evening gala | 2026-03-05 20:00 .. 2026-03-05 21:00",
            ),
            ("Talk 10.30am tomorrow", "Talk | 2026-03-05 10:30 .. 2026-03-05 11:30"),
        ],
    );
    check_sentences(
        "de_DE",
        &[
            ("Treffen heute Abend um 8", "Treffen | 2026-03-04 20:00 .. 2026-03-04 21:00"),
            ("Treffen morgen Nachmittag 3 Uhr", "Treffen | 2026-03-05 15:00 .. 2026-03-05 16:00"),
            ("Treffen morgen 8 Uhr abends", "Treffen | 2026-03-05 20:00 .. 2026-03-05 21:00"),
        ],
    );
    check_sentences(
        "cs",
        &[("Kino dnes večer v 8", "Kino | 2026-03-04 20:00 .. 2026-03-04 21:00")],
    );
    let moment = |text: &str| {
        format_civil(
            PointInTime::parse(text, reference_time(), &Language::from_locale("en")).unwrap().at,
        )
    };
    assert_eq!(moment("tonight at 8"), "2026-03-04 20:00");
    assert_eq!(moment("friday evening 8:30"), "2026-03-06 20:30");
}

/// Ends of an event that begins on Friday, 6 March, at 22:00.
#[test]
fn relative_ends_are_parsed() {
    let check = |text: &str, expect: &str| {
        let start = civil(2026, 3, 6, 22, 0);
        let end =
            PointInTime::parse_end(text, start, reference_time(), &Language::from_locale("en_GB"))
                .unwrap();
        assert_eq!(
            (format_civil(end.at), end.at < start),
            (expect.to_owned(), expect < "2026-03-06 22"),
            "{text}"
        );
    };
    check("23:30", "2026-03-06 23:30");
    check("2:00", "2026-03-07 02:00");
    check("10:00", "2026-03-07 10:00");
    check("21:00", "2026-03-06 21:00");
    check("24:00", "2026-03-07");
    check("tomorrow", "2026-03-05");
    check("tomorrow 9:00", "2026-03-05 09:00");
    check("saturday", "2026-03-07");
    check("thursday", "2026-03-12");
    check("2026-03-01", "2026-03-01");
    check("+3d", "2026-03-07");
}
