//! Days and their parts, on Wednesday, 4 March 2026, at 10:00: evenings, ranges of weekdays, hours beside a day.

use crate::phrase_sentence::sentences;

/// Where no time is said, a part of the day is one.
#[test]
fn parts_alone() {
    sentences(
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
            ("Party tonight until 23:00", "\"23:00\" needs a time at which it begins, as 12:30"),
        ],
    );
    sentences(
        "de_DE",
        &[
            ("Essen morgen Abend", "Essen | 2026-03-05 20:00 .. 2026-03-05 21:00"),
            ("Essen morgen Mittag", "Essen | 2026-03-05 12:00 .. 2026-03-05 13:00"),
            ("Essen morgen Mittag um 1", "Essen | 2026-03-05 13:00 .. 2026-03-05 14:00"),
            ("Essen morgen früh", "Essen | 2026-03-05 09:00 .. 2026-03-05 10:00"),
            ("Feuerwerk heute Nacht", "Feuerwerk Nacht | all day 2026-03-04 .. 2026-03-05"),
        ],
    );
    sentences(
        "cs_CZ",
        &[
            ("Kino v pátek večer s Annou", "Kino s Annou | 2026-03-06 20:00 .. 2026-03-06 21:00"),
            ("Kino zítra odpoledne", "Kino | 2026-03-05 15:00 .. 2026-03-05 16:00"),
        ],
    );
}

/// Who comes along does not belong to the time.
#[test]
fn company() {
    sentences(
        "en_GB",
        &[
            (
                "Lunch tomorrow at 14 with Anna",
                "Lunch with Anna | 2026-03-05 14:00 .. 2026-03-05 15:00",
            ),
            ("Dinner on the 15th with Anna", "Dinner with Anna | all day 2026-03-15 .. 2026-03-16"),
        ],
    );
    sentences(
        "de_DE",
        &[(
            "Kino am Samstag um 20 mit Peter",
            "Kino mit Peter | 2026-03-07 20:00 .. 2026-03-07 21:00",
        )],
    );
}
