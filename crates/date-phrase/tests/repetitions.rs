//! Common repetitions in sentences, parsed on Wednesday, 4 March 2026, at 10:00.

use crate::sentences::check_sentences;

#[test]
fn common_repetitions_are_parsed() {
    check_sentences(
        "en_GB",
        &[
            (
                "Class every second tuesday 10:00",
                "ambiguous \"second tuesday\": write \"second tuesday of the month\", or \"every 2 weeks\" and the day",
            ),
            (
                "Class every 3rd friday 10:00",
                "Class | 2026-03-20 10:00 .. 2026-03-20 11:00 | FREQ=MONTHLY;BYDAY=3FR",
            ),
            (
                "Daily standup every weekday 9:15",
                "Daily standup | 2026-03-05 09:15 .. 2026-03-05 10:15 | FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
            ),
            (
                "Weekly sync every other tuesday 10:00",
                "Weekly sync | 2026-03-10 10:00 .. 2026-03-10 11:00 | FREQ=WEEKLY;INTERVAL=2;BYDAY=TU",
            ),
            (
                "Monthly report every last friday of the month 15:00",
                "Monthly report | 2026-03-27 15:00 .. 2026-03-27 16:00 | FREQ=MONTHLY;BYDAY=-1FR",
            ),
            (
                "Yearly every 2 years on 5 march",
                "Yearly | all day 2026-03-05 .. 2026-03-06 | FREQ=YEARLY;INTERVAL=2",
            ),
            (
                "Bins fridays every two weeks 7:00",
                "Bins | 2026-03-06 07:00 .. 2026-03-06 08:00 | FREQ=WEEKLY;INTERVAL=2;BYDAY=FR",
            ),
            (
                "Class tuesdays 18:00",
                "Class | 2026-03-10 18:00 .. 2026-03-10 19:00 | FREQ=WEEKLY;BYDAY=TU",
            ),
            (
                "Gym mon/wed/fri 7am",
                "Gym | 2026-03-06 07:00 .. 2026-03-06 08:00 | FREQ=WEEKLY;BYDAY=MO,WE,FR",
            ),
            (
                "Standup weekdays except friday 9am",
                "Standup | 2026-03-05 09:00 .. 2026-03-05 10:00 | FREQ=WEEKLY;BYDAY=MO,TU,WE,TH",
            ),
            (
                "Yoga tue/thu at 19h for 1h30",
                "Yoga | 2026-03-05 19:00 .. 2026-03-05 20:30 | PT1H30M | FREQ=WEEKLY;BYDAY=TU,TH",
            ),
            (
                "Gym 7am Tue/Thu",
                "Gym | 2026-03-05 07:00 .. 2026-03-05 08:00 | FREQ=WEEKLY;BYDAY=TU,TH",
            ),
            (
                "Class mondays and thursdays 18:00",
                "Class | 2026-03-05 18:00 .. 2026-03-05 19:00 | FREQ=WEEKLY;BYDAY=MO,TH",
            ),
            (
                "Class every two weeks friday 7:00",
                "Class | 2026-03-06 07:00 .. 2026-03-06 08:00 | FREQ=WEEKLY;INTERVAL=2;BYDAY=FR",
            ),
            (
                "Sync biweekly 10:00",
                "Sync | 2026-03-04 10:00 .. 2026-03-04 11:00 | FREQ=WEEKLY;INTERVAL=2",
            ),
            (
                "Review every quarter 10:00",
                "Review | 2026-03-04 10:00 .. 2026-03-04 11:00 | FREQ=MONTHLY;INTERVAL=3",
            ),
            (
                "Run every day except sunday 7:00",
                "Run | 2026-03-05 07:00 .. 2026-03-05 08:00 | FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA",
            ),
            (
                "Pay every month on the last day 17:00",
                "Pay | 2026-03-31 17:00 .. 2026-03-31 18:00 | FREQ=MONTHLY;BYMONTHDAY=-1",
            ),
            (
                "Gym every mon wed fri 7am",
                "Gym | 2026-03-06 07:00 .. 2026-03-06 08:00 | FREQ=WEEKLY;BYDAY=MO,WE,FR",
            ),
        ],
    );
    let daily = |at: &str| format!("Run | 2026-03-{at} | FREQ=DAILY");
    let evening = daily("04 19:00 .. 2026-03-04 20:00");
    check_sentences(
        "en_GB",
        &[
            ("Run every evening at 7", &evening),
            ("Run every morning 7:00", &daily("05 07:00 .. 2026-03-05 08:00")),
            (
                "Run every sunday evening at 7",
                "Run | 2026-03-08 19:00 .. 2026-03-08 20:00 | FREQ=WEEKLY;BYDAY=SU",
            ),
            (
                "Run every weekday 8:15 except wednesday",
                "Run | 2026-03-05 08:15 .. 2026-03-05 09:15 | FREQ=WEEKLY;BYDAY=MO,TU,TH,FR",
            ),
        ],
    );
    check_sentences(
        "cs",
        &[(
            "Schůze první pondělí v měsíci 18:00",
            "Schůze | 2026-04-06 18:00 .. 2026-04-06 19:00 | FREQ=MONTHLY;BYDAY=1MO",
        )],
    );
    check_sentences(
        "de_DE",
        &[
            (
                "Kurs jeden 2. Dienstag 19 Uhr",
                "ambiguous \"2. Dienstag\": write \"2. Dienstag of the month\", or \"every 2 weeks\" and the day",
            ),
            (
                "Kurs jeden zweiten Dienstag 19 Uhr",
                "Kurs | 2026-03-10 19:00 .. 2026-03-10 20:00 | FREQ=WEEKLY;INTERVAL=2;BYDAY=TU",
            ),
            (
                "Müll alle zwei Wochen freitags um 7 Uhr",
                "Müll | 2026-03-06 07:00 .. 2026-03-06 08:00 | FREQ=WEEKLY;INTERVAL=2;BYDAY=FR",
            ),
            (
                "Müll täglich außer Sonntag 7 Uhr",
                "Müll | 2026-03-05 07:00 .. 2026-03-05 08:00 | FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA",
            ),
            (
                "Müll montags und mittwochs 7 Uhr",
                "Müll | 2026-03-09 07:00 .. 2026-03-09 08:00 | FREQ=WEEKLY;BYDAY=MO,WE",
            ),
        ],
    );
    check_sentences(
        "cs_CZ",
        &[(
            "Nájem každý měsíc 1.",
            "Nájem | all day 2026-04-01 .. 2026-04-02 | FREQ=MONTHLY;BYMONTHDAY=1",
        )],
    );
}

#[test]
fn first_days_of_months_are_parsed() {
    let rule = "2026-04-01 .. 2026-04-02 | FREQ=MONTHLY;BYMONTHDAY=1";
    check_sentences(
        "en_GB",
        &[
            ("Rent first of every month", &format!("Rent | all day {rule}")),
            ("Rent on the first of the month", &format!("Rent | all day {rule}")),
            ("First of every month rent", &format!("rent | all day {rule}")),
            (
                "First of the month report tomorrow 9:00",
                "First of the month report | 2026-03-05 09:00 .. 2026-03-05 10:00",
            ),
            (
                "Rent first monday of every month",
                "Rent | all day 2026-04-06 .. 2026-04-07 | FREQ=MONTHLY;BYDAY=1MO",
            ),
        ],
    );
    check_sentences(
        "de_DE",
        &[
            ("Miete am ersten jeden Monats", &format!("Miete | all day {rule}")),
            (
                "Yoga 14täglich montags 19 Uhr",
                "Yoga | 2026-03-09 19:00 .. 2026-03-09 20:00 | FREQ=WEEKLY;INTERVAL=2;BYDAY=MO",
            ),
        ],
    );
}
