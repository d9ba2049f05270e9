//! Events in one sentence, parsed on Wednesday, 4 March 2026, at 10:00.

use crate::date_ranges::{any_fragment, any_locale, any_now, civil, format_civil, reference_time};
use larder_date_phrase::{DateRange, Language, Sentence};
use larder_time::civil::CivilTime;
use proptest::prelude::*;

/// Formats the meaning of a sentence: `summary | start .. end | ...`.
fn format_sentence(text: &str, locale: &str) -> String {
    let sentence = match Sentence::parse(text, reference_time(), &Language::from_locale(locale)) {
        Ok(sentence) => sentence,
        Err(error) => return error.to_string(),
    };
    let mut parts = vec![sentence.summary];
    let date = if sentence.is_all_day { "all day " } else { "" };
    match (sentence.start, sentence.end) {
        (Some(start), Some(end)) => {
            parts.push(format!("{date}{} .. {}", format_civil(start), format_civil(end)));
        }
        (None, Some(end)) => parts.push(format!("{date}.. {}", format_civil(end))),
        (Some(_), None) => parts.push("no end".to_owned()),
        (None, None) => {}
    }
    parts.extend(sentence.duration.map(|length| length.to_string()));
    parts.extend(sentence.location.map(|place| format!("at {place}")));
    parts.extend(sentence.zone.map(|zone| format!("in {zone}")));
    parts.extend(sentence.rule);
    parts.extend(sentence.until.map(|until| format!("until {}", format_civil(until))));
    parts.extend(sentence.categories.iter().map(|category| format!("#{category}")));
    parts.extend(sentence.priority.map(|level| format!("!{level}")));
    parts.extend(sentence.alarms.iter().map(|alarm| format!("alarm {alarm}")));
    parts.join(" | ")
}

/// A duration after the start is the length of the event.
#[test]
fn a_duration_follows_the_start() {
    check_sentences(
        "de_DE",
        &[
            (
                "Zahnarzt 15:30 eine Stunde",
                "Zahnarzt | 2026-03-04 15:30 .. 2026-03-04 16:30 | PT1H",
            ),
            (
                "Treffen morgen 15:30 zwei Stunden bei Anna",
                "Treffen | 2026-03-05 15:30 .. 2026-03-05 17:30 | PT2H | at Anna",
            ),
        ],
    );
    check_sentences(
        "en_GB",
        &[
            ("Break tomorrow 12:30 20min", "Break | 2026-03-05 12:30 .. 2026-03-05 12:50 | PT20M"),
            ("Call 15:30 1h tomorrow", "Call | 2026-03-05 15:30 .. 2026-03-05 16:30 | PT1H"),
            ("Run 7:00 10 km", "Run 10 km | 2026-03-05 07:00 .. 2026-03-05 08:00"),
        ],
    );
}

#[track_caller]
pub(crate) fn check_sentences(locale: &str, table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .map(|(text, expect)| (text, expect, format_sentence(text, locale)))
        .filter(|(_, expect, answer)| *expect != answer)
        .map(|(text, expect, answer)| format!("{text:?}:\n  {answer}\n  and not\n  {expect}"))
        .collect();
    assert!(wrong.is_empty(), "in {locale}:\n{}", wrong.join("\n"));
}

#[test]
fn starts_are_parsed() {
    check_sentences(
        "en_GB",
        &[
            (
                "Lunch with Anna tomorrow 12:30 for 1h at Bistro",
                "Lunch with Anna | 2026-03-05 12:30 .. 2026-03-05 13:30 | PT1H | at Bistro",
            ),
            ("Lunch tomorrow", "Lunch | all day 2026-03-05 .. 2026-03-06"),
            ("Doctor on the 15th at 10:00", "Doctor | 2026-03-15 10:00 .. 2026-03-15 11:00"),
            ("Doctor on the 3rd", "Doctor | all day 2026-04-03 .. 2026-04-04"),
            ("Doctor on the 3rd floor", "Doctor on the 3rd floor"),
            ("Tomorrow: lunch with Anna", "lunch with Anna | all day 2026-03-05 .. 2026-03-06"),
            ("Lunch, tomorrow, 12:30", "Lunch | 2026-03-05 12:30 .. 2026-03-05 13:30"),
            ("tomorrow lunch 12:30", "lunch | 2026-03-05 12:30 .. 2026-03-05 13:30"),
            ("Lunch 12:30 tomorrow", "Lunch | 2026-03-05 12:30 .. 2026-03-05 13:30"),
            ("Lunch at 12:30", "Lunch | 2026-03-04 12:30 .. 2026-03-04 13:30"),
            ("Lunch at noon tomorrow", "Lunch | 2026-03-05 12:00 .. 2026-03-05 13:00"),
            ("Breakfast 9:00", "Breakfast | 2026-03-05 09:00 .. 2026-03-05 10:00"),
            ("Breakfast today 9:00", "Breakfast | 2026-03-04 09:00 .. 2026-03-04 10:00"),
            ("Call at 3pm", "Call | 2026-03-04 15:00 .. 2026-03-04 16:00"),
            ("Call 3:30pm friday", "Call | 2026-03-06 15:30 .. 2026-03-06 16:30"),
            ("Call 3 pm friday", "Call | 2026-03-06 15:00 .. 2026-03-06 16:00"),
            ("Call 15h", "Call | 2026-03-04 15:00 .. 2026-03-04 16:00"),
            ("Call at 15", "Call | 2026-03-04 15:00 .. 2026-03-04 16:00"),
            ("Call wednesday 9:00", "Call | 2026-03-11 09:00 .. 2026-03-11 10:00"),
            ("Call wednesday 12:00", "Call | 2026-03-04 12:00 .. 2026-03-04 13:00"),
            ("Call on next friday at 9:00", "Call | 2026-03-06 09:00 .. 2026-03-06 10:00"),
            ("Call now", "Call | 2026-03-04 10:00 .. 2026-03-04 11:00"),
            ("Tea in 20 minutes", "Tea | 2026-03-04 10:20 .. 2026-03-04 11:20"),
            ("Dentist in 2 weeks 9:00", "Dentist | 2026-03-18 09:00 .. 2026-03-18 10:00"),
            ("Pay the bill +2w", "Pay the bill | all day 2026-03-18 .. 2026-03-19"),
            ("Party 5 march", "Party | all day 2026-03-05 .. 2026-03-06"),
            ("Party 3 march", "Party | all day 2027-03-03 .. 2027-03-04"),
            ("Party March 5th, 2027 at 8pm", "Party | 2027-03-05 20:00 .. 2027-03-05 21:00"),
            ("Party 2026-03-05", "Party | all day 2026-03-05 .. 2026-03-06"),
            ("Party 20260305", "Party | all day 2026-03-05 .. 2026-03-06"),
            ("Party 2026-03-05T20:00", "Party | 2026-03-05 20:00 .. 2026-03-05 21:00"),
            ("Party 5/3/2026", "Party | all day 2026-03-05 .. 2026-03-06"),
            ("Party 5/3 20:00", "Party | 2026-03-05 20:00 .. 2026-03-05 21:00"),
            ("Party on 5/3", "Party | all day 2026-03-05 .. 2026-03-06"),
            ("Lunch Fri 12:30", "Lunch | 2026-03-06 12:30 .. 2026-03-06 13:30"),
            ("Lunch Fri 6 Mar 12:30", "Lunch | 2026-03-06 12:30 .. 2026-03-06 13:30"),
            ("Lunch on fri", "Lunch | all day 2026-03-06 .. 2026-03-07"),
            ("Party tomorrow all day", "Party | all day 2026-03-05 .. 2026-03-06"),
            ("Inventory all day", "Inventory | all day 2026-03-04 .. 2026-03-05"),
            ("Dinner tomorrow at midnight", "Dinner | 2026-03-05 .. 2026-03-05 01:00"),
            ("Dinner  with   Anna", "Dinner with Anna"),
            ("", ""),
        ],
    );
    check_sentences("en_US", &[("Party 3/5/2026", "Party | all day 2026-03-05 .. 2026-03-06")]);
}

#[test]
fn ends_and_durations_are_parsed() {
    check_sentences(
        "en_GB",
        &[
            (
                "Lunch tomorrow 12:30 for 90min",
                "Lunch | 2026-03-05 12:30 .. 2026-03-05 14:00 | PT1H30M",
            ),
            (
                "Lunch tomorrow 12:30 for 1h30",
                "Lunch | 2026-03-05 12:30 .. 2026-03-05 14:00 | PT1H30M",
            ),
            (
                "Lunch tomorrow 12:30 for 1:30",
                "Lunch | 2026-03-05 12:30 .. 2026-03-05 14:00 | PT1H30M",
            ),
            (
                "Lunch tomorrow 12:30 for half an hour",
                "Lunch | 2026-03-05 12:30 .. 2026-03-05 13:00 | PT30M",
            ),
            (
                "Lunch tomorrow 12:30 for 1 hour and 15 minutes with Anna",
                "Lunch with Anna | 2026-03-05 12:30 .. 2026-03-05 13:45 | PT1H15M",
            ),
            ("Fair 5 march for 2 days", "Fair | all day 2026-03-05 .. 2026-03-07 | P2D"),
            ("Trip 5 march 9:00 for 2 days", "Trip | 2026-03-05 09:00 .. 2026-03-07 09:00 | P2D"),
            ("Course 5 march for 1 month", "Course | all day 2026-03-05 .. 2026-04-05 | P31D"),
            ("Write the report for 2h", "Write the report | PT2H"),
            ("Lunch 12:30-13:30", "Lunch | 2026-03-04 12:30 .. 2026-03-04 13:30"),
            ("Lunch 12:30–13:30 tomorrow", "Lunch | 2026-03-05 12:30 .. 2026-03-05 13:30"),
            ("Lunch tomorrow 12:30 - 13:30", "Lunch | 2026-03-05 12:30 .. 2026-03-05 13:30"),
            ("Lunch tomorrow 12:30 to 13:30", "Lunch | 2026-03-05 12:30 .. 2026-03-05 13:30"),
            ("Lunch tomorrow from 12:30 to 13:30", "Lunch | 2026-03-05 12:30 .. 2026-03-05 13:30"),
            (
                "Lunch from 12:30 to 13:30 tomorrow at Bistro",
                "Lunch | 2026-03-05 12:30 .. 2026-03-05 13:30 | at Bistro",
            ),
            ("Lunch tomorrow 12:30 until 13:30", "Lunch | 2026-03-05 12:30 .. 2026-03-05 13:30"),
            ("Lunch until 13:30 tomorrow 12:30", "Lunch | 2026-03-05 12:30 .. 2026-03-05 13:30"),
            ("Lunch 1-2pm", "Lunch | 2026-03-04 13:00 .. 2026-03-04 14:00"),
            ("Lunch 11-1pm", "Lunch | 2026-03-04 11:00 .. 2026-03-04 13:00"),
            ("Lunch 12-1:30pm", "Lunch | 2026-03-04 12:00 .. 2026-03-04 13:30"),
            ("Office 9-17h", "Office | 2026-03-05 09:00 .. 2026-03-05 17:00"),
            ("Office from 9 to 5pm tomorrow", "Office | 2026-03-05 09:00 .. 2026-03-05 17:00"),
            ("Party saturday 22:00 until 2:00", "Party | 2026-03-07 22:00 .. 2026-03-08 02:00"),
            ("Party saturday 22:00-02:00", "Party | 2026-03-07 22:00 .. 2026-03-08 02:00"),
            ("Shift friday 22:00-6:00", "Shift | 2026-03-06 22:00 .. 2026-03-07 06:00"),
            ("Shift friday 20:00 to 8:00", "Shift | 2026-03-06 20:00 .. 2026-03-07 08:00"),
            (
                "Shift every friday 20:00-4:00",
                "Shift | 2026-03-06 20:00 .. 2026-03-07 04:00 | FREQ=WEEKLY;BYDAY=FR",
            ),
            ("Shift friday 16:00-8:00", "Shift | 2026-03-06 16:00 .. 2026-03-07 08:00"),
            ("Shift friday 18:30-7:45", "Shift | 2026-03-06 18:30 .. 2026-03-07 07:45"),
            ("Shift friday 19:00-7:30", "Shift | 2026-03-06 19:00 .. 2026-03-07 07:30"),
            ("Shift friday 6pm-10am", "Shift | 2026-03-06 18:00 .. 2026-03-07 10:00"),
            ("Watch friday 8:00-8:00", "Watch | 2026-03-06 08:00 .. 2026-03-07 08:00"),
            ("Fair friday 0:00-0:00", "Fair | 2026-03-06 .. 2026-03-07"),
            ("Fair friday 10:00-0:00", "Fair | 2026-03-06 10:00 .. 2026-03-07"),
            ("Picnic saturday 11:00 until midnight", "Picnic | 2026-03-07 11:00 .. 2026-03-08"),
            ("Party saturday 20:00 until midnight", "Party | 2026-03-07 20:00 .. 2026-03-08"),
            ("Party saturday 20:00-24:00", "Party | 2026-03-07 20:00 .. 2026-03-08"),
            ("Fair from monday to friday", "Fair | all day 2026-03-09 .. 2026-03-14"),
            ("Fair 5 march to 8 march", "Fair | all day 2026-03-05 .. 2026-03-09"),
            ("Fair 5-8 march", "Fair | all day 2026-03-05 .. 2026-03-09"),
            ("Fair 5-8 march 2027", "Fair | all day 2027-03-05 .. 2027-03-09"),
            ("Fair Mar 5-8, 2027", "Fair | all day 2027-03-05 .. 2027-03-09"),
            ("Fair Mar 5-8", "Fair | all day 2026-03-05 .. 2026-03-09"),
            ("Fair 5.3.-8.3.", "Fair | all day 2026-03-05 .. 2026-03-09"),
            ("Fair 1/2-3/4", "Fair 1/2-3/4"),
            ("Fair 2026-03-05..2026-03-08", "Fair | all day 2026-03-05 .. 2026-03-09"),
            ("Fair 28 december until 3 january", "Fair | all day 2026-12-28 .. 2027-01-04"),
            ("Trip monday 9:00 until friday 17:00", "Trip | 2026-03-09 09:00 .. 2026-03-13 17:00"),
            ("Trip monday 9:00 until friday", "Trip | 2026-03-09 09:00 .. 2026-03-14"),
            ("Report until friday", "Report | all day .. 2026-03-07"),
        ],
    );
}

#[test]
fn repetitions_are_parsed() {
    check_sentences(
        "en_GB",
        &[
            (
                "Yoga every monday 18:00",
                "Yoga | 2026-03-09 18:00 .. 2026-03-09 19:00 | FREQ=WEEKLY;BYDAY=MO",
            ),
            (
                "Yoga every wednesday 9:00",
                "Yoga | 2026-03-11 09:00 .. 2026-03-11 10:00 | FREQ=WEEKLY;BYDAY=WE",
            ),
            (
                "Yoga every wednesday 18:00",
                "Yoga | 2026-03-04 18:00 .. 2026-03-04 19:00 | FREQ=WEEKLY;BYDAY=WE",
            ),
            (
                "Yoga every monday and thursday 18:00 until 19:30",
                "Yoga | 2026-03-05 18:00 .. 2026-03-05 19:30 | FREQ=WEEKLY;BYDAY=MO,TH",
            ),
            (
                "Yoga every mon, wed, fri",
                "Yoga | all day 2026-03-04 .. 2026-03-05 | FREQ=WEEKLY;BYDAY=MO,WE,FR",
            ),
            (
                "Yoga on mondays 18:00",
                "Yoga | 2026-03-09 18:00 .. 2026-03-09 19:00 | FREQ=WEEKLY;BYDAY=MO",
            ),
            (
                "Standup every weekday 9:30",
                "Standup | 2026-03-05 09:30 .. 2026-03-05 10:30 | FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
            ),
            ("Standup daily 9:30", "Standup | 2026-03-05 09:30 .. 2026-03-05 10:30 | FREQ=DAILY"),
            (
                "Bins every 2 weeks",
                "Bins | all day 2026-03-04 .. 2026-03-05 | FREQ=WEEKLY;INTERVAL=2",
            ),
            (
                "Bins every other week on friday",
                "Bins | all day 2026-03-06 .. 2026-03-07 | FREQ=WEEKLY;INTERVAL=2;BYDAY=FR",
            ),
            (
                "Bins every other friday",
                "Bins | all day 2026-03-06 .. 2026-03-07 | FREQ=WEEKLY;INTERVAL=2;BYDAY=FR",
            ),
            ("Rent every month", "Rent | all day 2026-03-04 .. 2026-03-05 | FREQ=MONTHLY"),
            (
                "Rent every 1st",
                "Rent | all day 2026-04-01 .. 2026-04-02 | FREQ=MONTHLY;BYMONTHDAY=1",
            ),
            (
                "Rent every month on the 1st",
                "Rent | all day 2026-04-01 .. 2026-04-02 | FREQ=MONTHLY;BYMONTHDAY=1",
            ),
            (
                "Club first monday of the month 19:00",
                "Club | 2026-04-06 19:00 .. 2026-04-06 20:00 | FREQ=MONTHLY;BYDAY=1MO",
            ),
            (
                "Club on the last friday of the month",
                "Club | all day 2026-03-27 .. 2026-03-28 | FREQ=MONTHLY;BYDAY=-1FR",
            ),
            (
                "Club every first wednesday 9:00",
                "Club | 2026-04-01 09:00 .. 2026-04-01 10:00 | FREQ=MONTHLY;BYDAY=1WE",
            ),
            (
                "Club every 2nd tuesday of the month",
                "Club | all day 2026-03-10 .. 2026-03-11 | FREQ=MONTHLY;BYDAY=2TU",
            ),
            (
                "Tax every 15th from 20 april",
                "Tax | all day 2026-05-15 .. 2026-05-16 | FREQ=MONTHLY;BYMONTHDAY=15",
            ),
            (
                "Birthday of Anna every 5 march",
                "Birthday of Anna | all day 2026-03-05 .. 2026-03-06 | FREQ=YEARLY",
            ),
            (
                "Inspection yearly 2026-06-01",
                "Inspection | all day 2026-06-01 .. 2026-06-02 | FREQ=YEARLY",
            ),
            (
                "Review 6 march weekly until 2027-03",
                "Review | all day 2026-03-06 .. 2026-03-07 | FREQ=WEEKLY | until 2027-03-31",
            ),
            (
                "Review weekly until 2027-03 14:00",
                "Review | 2026-03-04 14:00 .. 2026-03-04 15:00 | FREQ=WEEKLY | until 2027-03-31 23:59:59",
            ),
            (
                "Yoga every monday 18:00 until 19:00 until 29 june",
                "Yoga | 2026-03-09 18:00 .. 2026-03-09 19:00 | FREQ=WEEKLY;BYDAY=MO | until 2026-06-29 23:59:59",
            ),
            (
                "Yoga every monday 18:00 for 1h for 10 weeks",
                "Yoga | 2026-03-09 18:00 .. 2026-03-09 19:00 | PT1H | FREQ=WEEKLY;BYDAY=MO | until 2026-05-17 23:59:59",
            ),
            (
                "Camp every day for 5 days",
                "Camp | all day 2026-03-04 .. 2026-03-05 | FREQ=DAILY | until 2026-03-08",
            ),
            (
                "Camp daily from 9 march to 13 march 8:00",
                "Camp | 2026-03-09 08:00 .. 2026-03-09 09:00 | FREQ=DAILY | until 2026-03-13 23:59:59",
            ),
            (
                "Yoga every monday from 2026-04-01 18:00",
                "Yoga | 2026-04-06 18:00 .. 2026-04-06 19:00 | FREQ=WEEKLY;BYDAY=MO",
            ),
        ],
    );
}

#[test]
fn places_and_marks_are_parsed() {
    check_sentences(
        "en_GB",
        &[
            ("Lunch at Bistro", "Lunch | at Bistro"),
            (
                "Lunch tomorrow at Bistro am Platz",
                "Lunch | all day 2026-03-05 .. 2026-03-06 | at Bistro am Platz",
            ),
            ("Lunch at 12 Oak Street", "Lunch | at 12 Oak Street"),
            (
                "Lunch tomorrow 12:30 @ Bistro",
                "Lunch | 2026-03-05 12:30 .. 2026-03-05 13:30 | at Bistro",
            ),
            (
                "Lunch at 12:30 at Bistro",
                "Lunch | 2026-03-04 12:30 .. 2026-03-04 13:30 | at Bistro",
            ),
            ("Lunch at Bistro tomorrow", "Lunch | all day 2026-03-05 .. 2026-03-06 | at Bistro"),
            ("Look at photos tomorrow", "Look at photos | all day 2026-03-05 .. 2026-03-06"),
            (
                "Lunch with Anna 2026-12-01 12:30 for 1h at Bistro alarm 10min #food",
                "Lunch with Anna | 2026-12-01 12:30 .. 2026-12-01 13:30 | PT1H | at Bistro | #food | alarm PT10M",
            ),
            ("Look at photos at Anna's", "Look at photos | at Anna's"),
            ("Lunch at \"Bistro at the Park\"", "Lunch | at Bistro at the Park"),
            ("At home", "At home"),
            ("tomorrow at home", "at home | all day 2026-03-05 .. 2026-03-06"),
            ("Lunch at", "Lunch at"),
            ("Lunch at Bistro #food !high", "Lunch | at Bistro | #food | !1"),
            (
                "Lunch #food, #friends #food tomorrow",
                "Lunch | all day 2026-03-05 .. 2026-03-06 | #food | #friends",
            ),
            ("Meeting #3 C#", "Meeting #3 C#"),
            ("Call !medium !3", "Call !3 | !5"),
            ("Call !3", "Call | !3"),
            ("Call !0 !foo Anna!", "Call !0 !foo Anna!"),
            (
                "Call tomorrow 9:00 alarm 15min",
                "Call | 2026-03-05 09:00 .. 2026-03-05 10:00 | alarm PT15M",
            ),
            (
                "Call tomorrow 9:00 remind me 1 hour before reminder 1 day",
                "Call | 2026-03-05 09:00 .. 2026-03-05 10:00 | alarm PT1H | alarm P1D",
            ),
        ],
    );
}

/// Words in quotes, and words that resemble phrases, remain in the summary.
#[test]
fn other_words_remain_in_the_summary() {
    check_sentences(
        "en_GB",
        &[
            (
                "Watch \"Tomorrow Never Dies\" tomorrow",
                "Watch Tomorrow Never Dies | all day 2026-03-05 .. 2026-03-06",
            ),
            ("\"Lunch at noon\" friday", "Lunch at noon | all day 2026-03-06 .. 2026-03-07"),
            ("\"Lunch at noon\", friday", "Lunch at noon | all day 2026-03-06 .. 2026-03-07"),
            ("\"a 6\"5 pipe\" friday", "a 6\"5 pipe | all day 2026-03-06 .. 2026-03-07"),
            ("6\" pipe", "6\" pipe"),
            ("\"open tomorrow", "\"open | all day 2026-03-05 .. 2026-03-06"),
            ("Sit in the sun", "Sit in the sun"),
            ("Buy sun cream", "Buy sun cream"),
            ("March report", "March report"),
            ("Budget 2026", "Budget 2026"),
            ("Budget 2026-Q2", "Budget 2026-Q2"),
            ("Ask may friend", "Ask may friend"),
            ("Conference next week", "Conference next week"),
            ("Take 1/2 pill", "Take 1/2 pill"),
            ("Release 1.2.3", "Release 1.2.3"),
            ("Ping 10.0.0.1", "Ping 10.0.0.1"),
            ("Weeklyish todayish untomorrow", "Weeklyish todayish untomorrow"),
            ("Last call for 20 people", "Last call for 20 people"),
            ("Read from cover to cover", "Read from cover to cover"),
            ("Every man for himself", "Every man for himself"),
            ("I hate mondays", "I hate mondays"),
        ],
    );
}

#[test]
fn contradictions_are_errors() {
    check_sentences(
        "en_GB",
        &[
            ("Call at 3", "ambiguous time \"at 3\": write 3am, 3pm or 03:00"),
            ("Call at 3 tomorrow", "ambiguous time \"at 3\": write 3am, 3pm or 03:00"),
            ("Call 30 february", "the date \"30 february\" does not exist"),
            ("Call 2026-02-30", "the date \"2026-02-30\" does not exist"),
            (
                "Call thu 6 march 2026",
                "wrong weekday in \"thu 6 march 2026\": that date is Fri 6 Mar 2026",
            ),
            ("Call tomorrow for 2h", "\"for 2h\" needs a start time, such as 12:30"),
            ("Call tomorrow until 15:00", "\"15:00\" needs a start time, such as 12:30"),
            (
                "Call tomorrow 12:30 until 14:00 for 1h",
                "\"for 1h\" contradicts \"14:00\"; remove one, or quote it to keep it in the summary",
            ),
            (
                "Call tomorrow all day 12:30",
                "\"all day\" contradicts \"12:30\"; remove one, or quote it to keep it in the summary",
            ),
            ("Fair 2026-03-05 until 2026-03-01", "\"2026-03-01\" ends before it begins"),
            ("Call daily until 2026-03-01", "\"2026-03-01\" ends before it begins"),
            ("Back 2026-05-05 14:00-13:00", "\"14:00-13:00\" ends before it begins"),
            ("Back friday 10:00 until 9:00", "\"9:00\" ends before it begins"),
            ("Back every friday 10:00-9:30", "\"10:00-9:30\" ends before it begins"),
            ("Back friday 16:00-8:30", "\"16:00-8:30\" ends before it begins"),
            (
                "Fair 2026-03-05 10:00 until 2026-03-05 9:00",
                "\"2026-03-05 9:00\" ends before it begins",
            ),
        ],
    );
}

#[test]
fn german_sentences_are_parsed() {
    check_sentences(
        "de_DE.UTF-8",
        &[
            (
                "Mittagessen mit Anna morgen 12:30 für 1h bei Mario",
                "Mittagessen mit Anna | 2026-03-05 12:30 .. 2026-03-05 13:30 | PT1H | at Mario",
            ),
            (
                "Mittagessen morgen um 12 Uhr im Bistro",
                "Mittagessen | 2026-03-05 12:00 .. 2026-03-05 13:00 | at Bistro",
            ),
            (
                "Mittagessen morgen um 12.30 Uhr",
                "Mittagessen | 2026-03-05 12:30 .. 2026-03-05 13:30",
            ),
            ("Arzt am Freitag um 9", "Arzt | 2026-03-06 09:00 .. 2026-03-06 10:00"),
            ("Arzt Fr 9:00", "Arzt | 2026-03-06 09:00 .. 2026-03-06 10:00"),
            ("Arzt um 15 Uhr am Freitag", "Arzt | 2026-03-06 15:00 .. 2026-03-06 16:00"),
            ("Arzt 5.3. 9:00", "Arzt | 2026-03-05 09:00 .. 2026-03-05 10:00"),
            ("Arzt am 5.3.2027", "Arzt | all day 2027-03-05 .. 2027-03-06"),
            ("Arzt 5. März 9 Uhr", "Arzt | 2026-03-05 09:00 .. 2026-03-05 10:00"),
            ("Messe von Montag bis Freitag", "Messe | all day 2026-03-09 .. 2026-03-14"),
            ("Messe 5.-8. März", "Messe | all day 2026-03-05 .. 2026-03-09"),
            ("Büro morgen von 9 bis 17 Uhr", "Büro | 2026-03-05 09:00 .. 2026-03-05 17:00"),
            ("Büro morgen 9-17 Uhr", "Büro | 2026-03-05 09:00 .. 2026-03-05 17:00"),
            (
                "Yoga jeden Montag 18:00 bis 19:30",
                "Yoga | 2026-03-09 18:00 .. 2026-03-09 19:30 | FREQ=WEEKLY;BYDAY=MO",
            ),
            (
                "Yoga montags 18 Uhr",
                "Yoga | 2026-03-09 18:00 .. 2026-03-09 19:00 | FREQ=WEEKLY;BYDAY=MO",
            ),
            ("Urlaub 1.8.-15.8.", "Urlaub | all day 2026-08-01 .. 2026-08-16"),
            ("Kino heute Abend 20 Uhr", "Kino | 2026-03-04 20:00 .. 2026-03-04 21:00"),
            (
                "Chor jeden ersten Montag im Monat 19 Uhr",
                "Chor | 2026-04-06 19:00 .. 2026-04-06 20:00 | FREQ=MONTHLY;BYDAY=1MO",
            ),
            (
                "Müll alle 2 Wochen",
                "Müll | all day 2026-03-04 .. 2026-03-05 | FREQ=WEEKLY;INTERVAL=2",
            ),
            ("Müll jede Woche", "Müll | all day 2026-03-04 .. 2026-03-05 | FREQ=WEEKLY"),
            (
                "Tabletten täglich 8:00",
                "Tabletten | 2026-03-05 08:00 .. 2026-03-05 09:00 | FREQ=DAILY",
            ),
            ("Urlaub morgen ganztägig", "Urlaub | all day 2026-03-05 .. 2026-03-06"),
            (
                "Urlaub ab morgen für 2 Wochen #privat !hoch",
                "Urlaub | all day 2026-03-05 .. 2026-03-19 | P2W | #privat | !1",
            ),
            ("Mi casa", "Mi casa"),
            (
                "Lunch tomorrow 12:30 for 1h at Bistro",
                "Lunch | 2026-03-05 12:30 .. 2026-03-05 13:30 | PT1H | at Bistro",
            ),
        ],
    );
}

#[test]
fn sentences_of_other_languages_are_parsed() {
    let expect = "Anna | 2026-03-05 12:30 .. 2026-03-05 14:30 | PT2H";
    for (locale, text) in [
        ("fr_FR", "Anna demain à 12h30 pendant 2 heures"),
        ("es_ES", "Anna mañana a las 12:30 durante 2 horas"),
        ("it_IT", "Anna domani alle 12:30 per 2 ore"),
        ("nl_NL", "Anna morgen om 12:30 uur gedurende 2 uur"),
        ("pt_PT", "Anna amanhã às 12h30 por 2 horas"),
        ("sv_SE", "Anna i morgon kl 12:30 i 2 timmar"),
        ("da_DK", "Anna i morgen kl. 12:30 i 2 timer"),
        ("nb_NO", "Anna i morgen kl. 12.30 i 2 timer"),
        ("fi_FI", "Anna huomenna klo 12.30 for 2 tuntia"),
        ("pl_PL", "Anna jutro o 12:30 przez 2 godziny"),
        ("cs_CZ", "Anna zítra v 12:30 na 2 hodiny"),
    ] {
        check_sentences(locale, &[(text, expect)]);
    }
    let expect = "Yoga | 2026-03-09 18:00 .. 2026-03-09 19:00 | FREQ=WEEKLY;BYDAY=MO";
    for (locale, text) in [
        ("fr_FR", "Yoga tous les lundis 18h"),
        ("es_ES", "Yoga todos los lunes 18:00"),
        ("it_IT", "Yoga ogni lunedì 18:00"),
        ("nl_NL", "Yoga elke maandag 18:00"),
        ("pt_PT", "Yoga toda segunda 18:00"),
        ("sv_SE", "Yoga varje måndag 18:00"),
        ("da_DK", "Yoga hver mandag 18:00"),
        ("nb_NO", "Yoga hver mandag 18:00"),
        ("fi_FI", "Yoga joka maanantai 18:00"),
        ("pl_PL", "Yoga co poniedziałek 18:00"),
        ("cs_CZ", "Yoga každé pondělí 18:00"),
    ] {
        check_sentences(locale, &[(text, expect)]);
    }
}

/// Repetitive texts are parsed in bounded time.
#[test]
fn repetitive_texts_are_parsed_in_bounded_time() {
    let (now, language) = (reference_time(), Language::from_locale("de"));
    for piece in [
        "9 to ",
        "in 1h ",
        "for 1h ",
        "every mon, ",
        "\"",
        "\"a ",
        "at ",
        "1h to ",
        "fri 6 ",
        "daily ",
        "daily every x mon ",
    ] {
        let text = piece.repeat(100);
        drop(Sentence::parse(&text, now, &language));
        drop(Sentence::parse(&format!("in 1h for {text}"), now, &language));
        drop(DateRange::parse(&text, now, &language));
        drop(DateRange::parse(&format!("in {}", "1h ".repeat(100)), now, &language));
    }
}

proptest! {
    #[test]
    fn any_sentence_is_sound(
        words in prop::collection::vec(any_fragment(), 0..10),
        locale in any_locale(),
        now in any_now(),
    ) {
        let text = words.join(" ");
        let Ok(sentence) = Sentence::parse(&text, now, &Language::from_locale(locale)) else { return Ok(()) };
        if let Some(start) = sentence.start {
            let end = sentence.end.expect("an end where there is a start");
            prop_assert!(start <= end, "{text:?}: {sentence:?}");
            let midnight = |civil: CivilTime| civil.second_of_day() == 0 || civil == CivilTime::MAX;
            prop_assert!(!sentence.is_all_day || (midnight(start) && midnight(end)), "{text:?}: {sentence:?}");
            prop_assert!(sentence.until.is_none_or(|until| until >= start), "{text:?}: {sentence:?}");
        }
        prop_assert!(sentence.until.is_none() || sentence.rule.is_some());
        let mut rest = words.iter().flat_map(|word| word.split_whitespace());
        for word in sentence.summary.split_whitespace() {
            let word = word.trim_matches(['"', ',', ';']);
            prop_assert!(rest.any(|typed| typed.contains(word)), "{text:?}: {word:?} of {sentence:?}");
        }
    }

    /// Words that belong to no phrase remain in their order, wherever the phrases stand.
    #[test]
    fn remaining_words_keep_their_order(
        words in prop::collection::vec("(x|Z|q)[a-z]{3,6}x", 1..6),
        places in prop::collection::vec(0usize..6, 4),
        locale in any_locale(),
    ) {
        let mut parts: Vec<&str> = words.iter().map(String::as_str).collect();
        let phrases = ["2026-03-06", "12:30", "#work", "!high"];
        for (place, phrase) in places.into_iter().zip(phrases) {
            parts.insert(place.min(parts.len()), phrase);
        }
        let sentence = Sentence::parse(&parts.join(" "), reference_time(), &Language::from_locale(locale));
        let sentence = sentence.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(sentence.summary, words.join(" "));
        prop_assert_eq!(sentence.start, Some(civil(2026, 3, 6, 12, 30)));
        prop_assert_eq!((sentence.categories.len(), sentence.priority), (1, Some(1)));
        // Words in quotes always remain.
        let quoted = format!("\"{}\"", parts.join(" "));
        let quoted = Sentence::parse(&quoted, reference_time(), &Language::from_locale(locale));
        prop_assert_eq!(quoted.map(|quoted| (quoted.summary, quoted.start)), Ok((parts.join(" "), None)));
    }
}

#[test]
fn lengths_follow_times() {
    let hour = "2026-03-05 15:30 .. 2026-03-05 16:30 | PT1H";
    check_sentences(
        "en_GB",
        &[
            ("Study tomorrow 15:30 one hour", &format!("Study | {hour}")),
            ("Study tomorrow 15:30 1h with Anna", &format!("Study with Anna | {hour}")),
            ("Break tomorrow 12:30 20min", "Break | 2026-03-05 12:30 .. 2026-03-05 12:50 | PT20M"),
            ("Study 15:30 an hour tomorrow", &format!("Study | {hour}")),
            (
                "Study tomorrow 15:30 half an hour at Bistro",
                "Study | 2026-03-05 15:30 .. 2026-03-05 16:00 | PT30M | at Bistro",
            ),
            ("15:30 one hour study tomorrow", &format!("study | {hour}")),
            (
                "Talk tomorrow 15:30 an hour about birds",
                "cannot combine \"an hour\" with the other date or time; rephrase it, or quote it to \
                 keep it in the summary",
            ),
        ],
    );
    check_sentences(
        "de",
        &[
            ("Lernen morgen 15:30 eine Stunde", &format!("Lernen | {hour}")),
            ("Morgen 15:30 eine Stunde lernen", &format!("lernen | {hour}")),
            (
                "Lernen morgen 15:30 anderthalb Stunden mit Anna",
                "Lernen mit Anna | 2026-03-05 15:30 .. 2026-03-05 17:00 | PT1H30M",
            ),
        ],
    );
}

/// Up to 12 hours with `h` alone are a length, except in languages that write times of day so.
#[test]
fn hours_with_a_letter_are_lengths_or_times() {
    check_sentences(
        "en_GB",
        &[
            ("Meet tomorrow 1h", "\"1h\" needs a start time, such as 12:30"),
            ("Walk 2h tomorrow", "\"2h\" needs a start time, such as 12:30"),
            ("Walk 2h tomorrow 9:00", "Walk | 2026-03-05 09:00 .. 2026-03-05 11:00 | PT2H"),
            ("Gym every day 1h", "\"1h\" needs a start time, such as 12:30"),
            ("Meet at 9 1h", "ambiguous time \"at 9\": write 9am, 9pm or 09:00"),
            ("Dinner friday at 8 2h", "ambiguous time \"at 8\": write 8am, 8pm or 08:00"),
            ("Office 9h to 11h tomorrow", "Office | 2026-03-05 09:00 .. 2026-03-05 11:00"),
            ("Call tomorrow at 9h", "Call | 2026-03-05 09:00 .. 2026-03-05 10:00"),
            ("Call tomorrow 15h", "Call | 2026-03-05 15:00 .. 2026-03-05 16:00"),
        ],
    );
    check_sentences(
        "de",
        &[
            ("Treffen morgen 9h", "\"9h\" needs a start time, such as 12:30"),
            ("Treffen morgen 9 Uhr 1h", "Treffen | 2026-03-05 09:00 .. 2026-03-05 10:00 | PT1H"),
        ],
    );
    check_sentences("fr", &[("Cours demain 9h", "Cours | 2026-03-05 09:00 .. 2026-03-05 10:00")]);
}
