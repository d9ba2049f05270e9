//! The texts of calendars: summaries, locations, search words.
//!
//! `{}` in a summary is a given name.

/// Summaries of events in several languages; half are English.
pub(super) static SUMMARY_TEMPLATES: &[&str] = &[
    "Lunch with {}",
    "Weekly planning",
    "Dentist",
    "Quarterly budget review, part two",
    "Call {} about the contract",
    "Interview: {}",
    "Release 4.2; freeze",
    "Choir rehearsal",
    "Train to the coast",
    "Team meeting",
    "Parents' evening",
    "Onboarding {}",
    "Yoga",
    "Car inspection",
    "Farewell party for {}",
    "Board meeting",
    "Library books due",
    "Piano lesson ({})",
    "Retrospective",
    "Maintenance window",
    "Besprechung mit {}",
    "Zahnärztin",
    "Müllabfuhr: Gelber Sack",
    "Elternabend der Grundschule",
    "Mittagessen mit {}",
    "Übergabe Schlüssel",
    "Réunion d'équipe",
    "Déjeuner avec {}",
    "Rendez-vous chez le médecin",
    "Reunión con {}",
    "Cumpleaños de la abuela",
    "Spotkanie zarządu",
    "Wizyta u lekarza, {}",
    "Schůzka s týmem",
    "Möte på stan",
    "Doğum günü yemeği",
    "Họp nhóm",
    "Συνάντηση με {}",
    "Совещание по бюджету",
    "Обед с {}",
    "Зустріч випускників",
    "اجتماع الفريق",
    "פגישה עם {}",
    "टीम बैठक",
    "ประชุมทีม",
    "团队会议",
    "歯医者",
    "打ち合わせ ({})",
    "주간 회의",
    "生日聚会",
];

/// Words of the summaries, notes and locations, for queries.
pub(super) static SEARCH_WORDS: &[&str] = &[
    "budget",
    "dentist",
    "planning",
    "contract",
    "rehearsal",
    "train",
    "piano",
    "retrospective",
    "zahnarztin",
    "müll",
    "déjeuner",
    "spotkanie",
    "совещание",
    "会议",
    "회의",
    "room",
    "conference",
    "orchestra",
    "postcards",
    "accountant",
];

/// Locations of meetings; `#` is a digit.
pub(super) static ROOM_PATTERNS: &[&str] = &[
    "Room #.##",
    "Conference room B, floor #",
    "https://meet.example.com/room-###-####",
    "Besprechungsraum ##",
    "Salle ##",
    "会議室#",
    "Café am Markt",
    "Online",
];

/// Categories of events.
pub(super) static EVENT_CATEGORIES: &[&str] =
    &["Business", "Personal", "Birthday", "Holiday", "Travel", "Phone Calls", "Ideas", "Verein"];
