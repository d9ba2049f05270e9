//! The vocabularies: which words of a language have which meaning.
//!
//! A vocabulary is a text file in `vocabularies/`, one for each language, named by its ISO 639
//! code; `common.txt` has the notation that every language shares. The files are compiled in, and
//! parsed when their language is first used.
//!
//! ```text
//! # A comment. Empty lines are ignored.
//! tomorrow: tomorrow | tmrw | tmr
//! numbers: two | three | four
//! property: dot-after-day
//! ```
//!
//! A line has a meaning, a colon, and the forms of it, separated by `|`. A form may have several
//! words. Letter case, accents and a dot at the end do not matter, as forms are compared by
//! [`folding`](crate::folding). Each meaning has at most one line, in any order; the names of days
//! and months are required. [`WordMeaning`] lists the meanings, and [`LanguageProperty`] the
//! properties, which tell the grammar how a language differs in more than words.
//!
//! To add a language, add its file and a line to `SOURCES`. Parsing never fails: a malformed line
//! is left out and reported as a [`VocabularyProblem`], and a unit test asserts that there are
//! none.

use std::fmt;
use std::sync::OnceLock;

macro_rules! named_variants {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All of them, in the order of their definition.
            pub(crate) const ALL: &[$name] = &[$($name::$variant,)*];

            /// Finds one by its name in a vocabulary file.
            fn from_name(name: &str) -> Option<$name> {
                match name {
                    $($text => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

named_variants! {
/// The meaning of a word or of a fixed group of words.
WordMeaning {
    // Names of days and months. The first form is the long one, the second the short one; both
    // are printed.
    Monday = "monday",
    Tuesday = "tuesday",
    Wednesday = "wednesday",
    Thursday = "thursday",
    Friday = "friday",
    Saturday = "saturday",
    Sunday = "sunday",
    January = "january",
    February = "february",
    March = "march",
    April = "april",
    May = "may",
    June = "june",
    July = "july",
    August = "august",
    September = "september",
    October = "october",
    November = "november",
    December = "december",
    // Days and times relative to the present.
    Now = "now",
    Today = "today",
    Tomorrow = "tomorrow",
    DayAfterTomorrow = "day-after-tomorrow",
    Yesterday = "yesterday",
    DayBeforeYesterday = "day-before-yesterday",
    /// "THIS week"
    This = "this",
    /// "NEXT week"
    Next = "next",
    /// "LAST week", "LAST friday of the month"
    Last = "last",
    /// After a duration in the past: "3 days AGO".
    Ago = "ago",
    /// Before a duration in the past: German "VOR 3 Tagen".
    AgoPrefix = "ago-prefix",
    /// Before a duration from now: "IN 2 weeks".
    WithinPrefix = "in",
    /// Before a month, week or year: its last day.
    EndOf = "end-of",
    // Words around dates, times and places.
    /// Before a date.
    OnDate = "on",
    /// Before a time.
    AtTime = "at",
    /// Before a place.
    AtPlace = "at-place",
    /// Before the start of a range.
    From = "from",
    /// Before the end of a range.
    To = "to",
    /// Before the end, without a start.
    Until = "until",
    /// Forms of `until` that mean nothing else.
    CertainUntil = "certain-until",
    /// As `certain-until`, if the language is the user's own.
    CertainUntilOwn = "certain-until-own",
    /// A form of `until` that also stands before places.
    UntilOrTo = "until-or-to",
    /// Holidays after `until-or-to`.
    HolidayAfterUntil = "holiday-after-until",
    /// Before a date that is not included: "BEFORE friday".
    BeforeDate = "before-date",
    /// Before a date, later than which is meant: "the monday AFTER christmas".
    AfterDate = "after-date",
    /// Before two times.
    Between = "between",
    /// Before the date at which a task is due.
    Due = "due",
    /// Before an end that is a deadline if there is no start: "BY friday".
    DueBy = "due-by",
    /// Before companions.
    With = "with",
    And = "and",
    /// Between a day and its month.
    Of = "of",
    /// Between a weekday and the number of its day.
    The = "the",
    /// An article before a unit that is followed by its adjective: French "LA semaine prochaine".
    UnitArticle = "unit-article",
    // Durations.
    /// Before a duration.
    For = "for",
    One = "one",
    /// "HALF AN hour"
    Half = "half",
    /// After an hour.
    AndAHalf = "and-a-half",
    /// Before an hour.
    OneAndAHalf = "one-and-a-half",
    /// Two to twelve, in this order; `/` separates forms of one number.
    Numbers = "numbers",
    Minute = "minute",
    Hour = "hour",
    Day = "day",
    Week = "week",
    Month = "month",
    /// Three months.
    Quarter = "quarter",
    Year = "year",
    /// A unit that means one of it without an article: Czech "za TÝDEN".
    UnitAlone = "unit-alone",
    Weekend = "weekend",
    /// Before the number of a week.
    WeekNumber = "week-number",
    // Repetitions.
    Every = "every",
    /// Forms of `every` that also mean "all" or "what".
    EveryOrAll = "every-or-all",
    /// "every OTHER week"
    Other = "other",
    First = "first",
    Second = "second",
    Third = "third",
    Fourth = "fourth",
    /// After a weekday: "the first monday OF THE MONTH".
    OfMonth = "of-the-month",
    Daily = "daily",
    Weekly = "weekly",
    /// Every two weeks.
    Biweekly = "biweekly",
    Monthly = "monthly",
    /// Every three months.
    Quarterly = "quarterly",
    Yearly = "yearly",
    /// Monday to Friday.
    Workday = "workday",
    /// The ending of a repeated weekday: "mondayS".
    WeekdayPlural = "weekday-plural",
    /// Further short forms, Monday first, understood in a range: "MO-FR".
    WeekdayInRange = "weekday-in-range",
    /// After the number of repetitions.
    Times = "times",
    /// Before the weekdays that a repetition omits.
    Except = "except",
    // Times of day.
    Noon = "noon",
    Midnight = "midnight",
    /// After an hour.
    OClock = "o-clock",
    /// The hour 1 if it differs from `one`.
    HourOne = "hour-one",
    /// Before an hour: 30 minutes after it.
    HalfPast = "half-past",
    /// Before an hour: 30 minutes before it.
    HalfTo = "half-to",
    QuarterPast = "quarter-past",
    QuarterTo = "quarter-to",
    /// 45 minutes before the hour.
    ThreeQuartersTo = "three-quarters-to",
    /// A part of the day, after the day or joined to it.
    Morning = "morning",
    /// A form of `morning` that is another word when it stands alone: German "SamstagMORGEN".
    MorningSuffix = "morning-suffix",
    /// Noon as a part of the day: German "MITTAG um 1".
    Midday = "midday",
    Afternoon = "afternoon",
    /// The evening and the early night.
    Evening = "evening",
    Night = "night",
    AllDay = "all-day",
    /// After a city whose time zone is meant: "Berlin TIME".
    LocalTime = "local-time",
    // Alarms and priorities.
    /// Before the duration between an alarm and the start.
    Alarm = "alarm",
    /// After that duration.
    BeforeStart = "before-start",
    HighPriority = "high-priority",
    MediumPriority = "medium-priority",
    LowPriority = "low-priority",
    // Holidays.
    ChristmasEve = "christmas-eve",
    Christmas = "christmas",
    DayAfterChristmas = "day-after-christmas",
    NewYearsEve = "new-years-eve",
    NewYearsDay = "new-years-day",
    /// Holidays whose date differs from year to year.
    MovableHoliday = "movable-holiday",
    // Spelling.
    /// Words whose misspellings are reported.
    SpellChecked = "spell-checked",
    /// Further misspellings, as `wrong = right`.
    Misspelled = "misspelled",
    /// Words similar to a `spell-checked` word that have their own meaning.
    NotMisspelled = "not-misspelled",
    /// Month names of three letters that count only with a capital letter.
    ShortMonth = "short-month",
    // Notation, in common.txt only.
    /// After an hour before noon.
    Am = "am",
    /// After an hour after noon.
    Pm = "pm",
    /// After the number of a day.
    OrdinalSuffix = "ordinal-suffix",
    /// Joined to the number of a week: "W12".
    WeekPrefix = "week-prefix",
    /// UTC itself.
    Utc = "utc",
    /// Abbreviations that several time zones share, or that hold for half a year.
    ZoneAbbreviation = "zone-abbreviation",
}
}

named_variants! {
/// How a language differs from others in more than its words.
LanguageProperty {
    /// Hours are counted to twelve twice a day, so "at 3" is ambiguous.
    TwelveHourClock = "twelve-hour-clock",
    /// The month stands before the day: "march 5".
    MonthBeforeDay = "month-before-day",
    /// The word for "at" before a number may begin a street address: "at 14 Main Street".
    NumberAfterAtIsStreet = "number-after-at-is-street",
    /// A plural weekday is a repetition only next to a time: "fridays" may be part of a title.
    WeekdayPluralNeedsTime = "weekday-plural-needs-time",
    /// A dot follows the number of a day: "5. März".
    DotAfterDay = "dot-after-day",
    /// "next" and "last" follow the noun: "semaine prochaine".
    AdjectiveAfterNoun = "adjective-after-noun",
    /// A number with `h` is a time of day: "demain 9h". Elsewhere it is a length up to `12h`.
    HourLetterIsTime = "hour-letter-is-time",
}
}

/// The files of the languages, English first.
const SOURCES: [(&str, &str); 13] = [
    ("en", include_str!("../vocabularies/en.txt")),
    ("de", include_str!("../vocabularies/de.txt")),
    ("fr", include_str!("../vocabularies/fr.txt")),
    ("es", include_str!("../vocabularies/es.txt")),
    ("it", include_str!("../vocabularies/it.txt")),
    ("nl", include_str!("../vocabularies/nl.txt")),
    ("pt", include_str!("../vocabularies/pt.txt")),
    ("sv", include_str!("../vocabularies/sv.txt")),
    ("da", include_str!("../vocabularies/da.txt")),
    ("nb", include_str!("../vocabularies/nb.txt")),
    ("fi", include_str!("../vocabularies/fi.txt")),
    ("pl", include_str!("../vocabularies/pl.txt")),
    ("cs", include_str!("../vocabularies/cs.txt")),
];

/// The file of the notation that every language shares.
const COMMON_SOURCE: &str = include_str!("../vocabularies/common.txt");

/// The words of one language.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    code: &'static str,
    /// The forms of all meanings; the forms of one meaning are together.
    forms: Vec<&'static str>,
    /// Where the forms of a meaning are, by its number.
    ranges: Vec<(u16, u16)>,
    /// Which properties the language has, by their number.
    properties: [bool; LanguageProperty::ALL.len()],
}

/// A line of a vocabulary file that is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VocabularyProblem {
    /// The number of the line, from 1.
    line: usize,
    reason: &'static str,
}

impl fmt::Display for VocabularyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl Vocabulary {
    /// The vocabulary of a language by its ISO 639 code, if there is one.
    pub(crate) fn for_language(code: &str) -> Option<&'static Vocabulary> {
        static PARSED: [OnceLock<Vocabulary>; SOURCES.len()] =
            [const { OnceLock::new() }; SOURCES.len()];
        let sources = SOURCES.iter().zip(&PARSED);
        let ((code, text), parsed) = sources.into_iter().find(|((known, _), _)| *known == code)?;
        Some(parsed.get_or_init(|| Vocabulary::parse(code, text).0))
    }

    /// The English vocabulary, which is understood in addition to the vocabulary of the user's
    /// language.
    pub(crate) fn english() -> &'static Vocabulary {
        static EMPTY: OnceLock<Vocabulary> = OnceLock::new();
        Vocabulary::for_language("en")
            .unwrap_or_else(|| EMPTY.get_or_init(|| Vocabulary::parse("en", "").0))
    }

    /// The vocabularies of all languages.
    pub(crate) fn all() -> impl Iterator<Item = &'static Vocabulary> {
        SOURCES.iter().filter_map(|(code, _)| Vocabulary::for_language(code))
    }

    /// The notation that every language shares.
    pub(crate) fn shared_notation() -> &'static Vocabulary {
        static PARSED: OnceLock<Vocabulary> = OnceLock::new();
        PARSED.get_or_init(|| Vocabulary::parse("", COMMON_SOURCE).0)
    }

    /// Parses a vocabulary file. A malformed line is left out and reported as a problem.
    fn parse(code: &'static str, text: &'static str) -> (Vocabulary, Vec<VocabularyProblem>) {
        let mut vocabulary = Vocabulary {
            code,
            forms: Vec::with_capacity(text.lines().count() * 3),
            ranges: vec![(0, 0); WordMeaning::ALL.len()],
            properties: [false; LanguageProperty::ALL.len()],
        };
        let mut problems = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Err(reason) = vocabulary.add_line(line) {
                problems.push(VocabularyProblem { line: number + 1, reason });
            }
        }
        (vocabulary, problems)
    }

    fn add_line(&mut self, line: &'static str) -> Result<(), &'static str> {
        let (name, forms) = line.split_once(':').ok_or("no colon after the meaning")?;
        let forms = forms.split('|').map(str::trim);
        if name == "property" {
            for form in forms {
                let property = LanguageProperty::from_name(form).ok_or("unknown property")?;
                let has = self.properties.get_mut(property as usize).ok_or("unknown property")?;
                *has = true;
            }
            return Ok(());
        }
        let meaning = WordMeaning::from_name(name).ok_or("unknown meaning")?;
        let range = self.ranges.get_mut(meaning as usize).ok_or("unknown meaning")?;
        if *range != (0, 0) {
            return Err("second line of this meaning");
        }
        let start = self.forms.len();
        self.forms.extend(forms.filter(|form| !form.is_empty()));
        let position = |at: usize| u16::try_from(at).map_err(|_| "too many forms");
        *range = (position(start)?, position(self.forms.len())?);
        if range.0 == range.1 { Err("no forms") } else { Ok(()) }
    }

    /// The ISO 639 code of the language.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// The forms of a meaning, of which a language may have none.
    pub(crate) fn forms(&self, meaning: WordMeaning) -> &[&'static str] {
        let (start, end) = self.ranges.get(meaning as usize).copied().unwrap_or_default();
        self.forms.get(usize::from(start)..usize::from(end)).unwrap_or_default()
    }

    /// Returns whether the language has a property.
    pub(crate) fn has_property(&self, property: LanguageProperty) -> bool {
        self.properties.get(property as usize) == Some(&true)
    }

    /// The name of a weekday or month as it is printed: its first form, or its second, short one.
    pub(crate) fn printed_name(&self, meaning: WordMeaning, short: bool) -> &'static str {
        let forms = self.forms(meaning);
        let long = forms.first().copied().unwrap_or_default();
        if short { forms.get(1).copied().unwrap_or(long) } else { long }
    }
}

impl WordMeaning {
    /// The names of weekdays, Monday first.
    pub(crate) const WEEKDAYS: [WordMeaning; 7] = [
        WordMeaning::Monday,
        WordMeaning::Tuesday,
        WordMeaning::Wednesday,
        WordMeaning::Thursday,
        WordMeaning::Friday,
        WordMeaning::Saturday,
        WordMeaning::Sunday,
    ];

    /// Holidays.
    pub(crate) const HOLIDAYS: [WordMeaning; 6] = [
        WordMeaning::ChristmasEve,
        WordMeaning::Christmas,
        WordMeaning::DayAfterChristmas,
        WordMeaning::NewYearsEve,
        WordMeaning::NewYearsDay,
        WordMeaning::MovableHoliday,
    ];

    /// The names of months, January first.
    pub(crate) const MONTHS: [WordMeaning; 12] = [
        WordMeaning::January,
        WordMeaning::February,
        WordMeaning::March,
        WordMeaning::April,
        WordMeaning::May,
        WordMeaning::June,
        WordMeaning::July,
        WordMeaning::August,
        WordMeaning::September,
        WordMeaning::October,
        WordMeaning::November,
        WordMeaning::December,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &'static str) -> Vec<String> {
        Vocabulary::parse("xx", text).1.iter().map(VocabularyProblem::to_string).collect()
    }

    #[test]
    fn every_vocabulary_is_well_formed() {
        for (code, text) in SOURCES {
            let (vocabulary, problems) = Vocabulary::parse(code, text);
            assert!(problems.is_empty(), "{code}.txt: {problems:?}");
            for name in WordMeaning::WEEKDAYS.iter().chain(&WordMeaning::MONTHS) {
                assert!(!vocabulary.forms(*name).is_empty(), "{code}.txt has no {name:?}");
            }
            let numbers = vocabulary.forms(WordMeaning::Numbers).len();
            assert!((9..=11).contains(&numbers), "{code}.txt has {numbers} numbers");
            let ranges = vocabulary.forms(WordMeaning::WeekdayInRange).len();
            assert!(matches!(ranges, 0 | 7), "{code}.txt has {ranges} weekdays in ranges");
            for pair in vocabulary.forms(WordMeaning::Misspelled) {
                assert!(pair.contains(" = "), "{code}.txt: misspelled: {pair:?} has no \" = \"");
            }
        }
        let (_, problems) = Vocabulary::parse("", COMMON_SOURCE);
        assert!(problems.is_empty(), "common.txt: {problems:?}");
    }

    #[test]
    fn every_file_is_used() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/vocabularies");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let code = name.strip_suffix(".txt").unwrap();
            let is_used = SOURCES.iter().any(|(known, _)| *known == code);
            assert!(is_used || matches!(code, "common" | "regions"), "{name} is not used");
        }
    }

    #[test]
    fn every_meaning_and_property_is_used() {
        let parsed = SOURCES.iter().chain(&[("", COMMON_SOURCE)]);
        let parsed: Vec<Vocabulary> =
            parsed.map(|(code, text)| Vocabulary::parse(code, text).0).collect();
        for meaning in WordMeaning::ALL {
            let is_used = parsed.iter().any(|words| !words.forms(*meaning).is_empty());
            assert!(is_used, "no vocabulary has {meaning:?}");
        }
        for property in LanguageProperty::ALL {
            assert!(parsed.iter().any(|words| words.has_property(*property)), "{property:?}");
        }
    }

    #[test]
    fn malformed_lines_are_reported_and_left_out() {
        let text = "# heading\n\nmonday Monday\ntomorow: x\nnow:\nnow: now\nnow: nu\nproperty: x\n";
        let expected = [
            "line 3: no colon after the meaning",
            "line 4: unknown meaning",
            "line 5: no forms",
            "line 7: second line of this meaning",
            "line 8: unknown property",
        ];
        assert_eq!(problems(text), expected);
        let (vocabulary, _) = Vocabulary::parse("xx", text);
        assert_eq!(vocabulary.forms(WordMeaning::Now), ["now"]);
        assert!(vocabulary.forms(WordMeaning::Monday).is_empty());
    }
}
