//! How a person writes dates: a language's words, and a place's order of day and month and first day of the week.
//!
//! Made from the name of a locale, which the caller has read from wherever it is; nothing is asked of the system.

use super::words::{ALL, Words, form};
use larder_time::civil::{Date, Weekday};

/// The language dates are read and printed in. English is understood besides.
#[derive(Debug, Clone, Copy)]
pub struct Language {
    words: &'static Words,
    month_first: bool,
    year_first: bool,
    week: Weekday,
}

/// Where English writes the month before the day (CLDR; POSIX for no place at all).
const MONTH_FIRST: &[&str] =
    &["", "US", "AS", "BI", "CA", "GU", "MH", "MP", "PH", "PR", "UM", "VI"];

/// Languages that write year, month and day in this order, and so the month before the day.
const YEAR_FIRST: &[&str] =
    &["af", "eo", "eu", "hu", "ja", "ko", "lt", "mn", "se", "si", "yue", "zh"];

/// Where weeks begin on Sunday (CLDR).
const SUNDAY: &[&str] = &[
    "", "AG", "AS", "BD", "BR", "BS", "BT", "BW", "BZ", "CA", "CO", "DM", "DO", "ET", "GT", "GU",
    "HK", "HN", "ID", "IL", "IN", "JM", "JP", "KE", "KH", "KR", "LA", "MH", "MM", "MO", "MT", "MX",
    "MZ", "NI", "NP", "PA", "PE", "PH", "PK", "PR", "PY", "SA", "SG", "SV", "TH", "TT", "TW", "UM",
    "US", "VE", "VI", "WS", "YE", "ZA", "ZW",
];

/// Where weeks begin on Saturday (CLDR).
const SATURDAY: &[&str] =
    &["AF", "BH", "DJ", "DZ", "EG", "IQ", "IR", "JO", "KW", "LY", "OM", "QA", "SD", "SY"];

impl Default for Language {
    fn default() -> Language {
        Language::of("C")
    }
}

impl Language {
    /// The language of a locale: `de_DE.UTF-8`, `en-GB`, `pt`, `C`. One whose words are not known has English ones, and its
    /// own order of day and month.
    #[must_use]
    pub fn of(locale: &str) -> Language {
        let name = locale.split(['.', '@']).next().unwrap_or_default();
        let mut parts = name.split(['_', '-']);
        let code = parts.next().unwrap_or_default().to_ascii_lowercase();
        // A script may stand between the two: `zh_Hant_TW`.
        let place = parts.find(|part| part.len() == 2).unwrap_or_default().to_ascii_uppercase();
        let code = match code.as_str() {
            "no" | "nn" => "nb",
            "" | "c" | "posix" => "en",
            code => code,
        };
        let known = ALL.into_iter().find(|words| words.code == code);
        let listed = |list: &[&str]| list.contains(&place.as_str());
        let week = match code {
            // A language alone is its largest place; of English and Portuguese those begin the week on Sunday.
            _ if place.is_empty() && !matches!(code, "en" | "pt" | "he" | "ja" | "ko") => {
                Weekday::Monday
            }
            _ if place.is_empty() || listed(SUNDAY) => Weekday::Sunday,
            _ if listed(SATURDAY) => Weekday::Saturday,
            _ => Weekday::Monday,
        };
        let year_first = YEAR_FIRST.contains(&code);
        Language {
            words: known.unwrap_or(Words::ENGLISH),
            month_first: (code == "en" && listed(MONTH_FIRST)) || year_first,
            year_first,
            week,
        }
    }

    /// Is `3/5` the fifth of March?
    #[must_use]
    pub fn month_first(&self) -> bool {
        self.month_first
    }

    /// Is `3.5.` the fifth of March? English writes no dots, so a date with them has the order of those who do.
    pub(crate) fn month_first_in_dots(&self) -> bool {
        self.year_first
    }

    /// The day weeks begin on. Weeks with numbers are those of ISO 8601, which begin on Monday everywhere.
    #[must_use]
    pub fn first_weekday(&self) -> Weekday {
        self.week
    }

    /// `Friday`
    #[must_use]
    pub fn weekday_long(&self, day: Weekday) -> &'static str {
        self.weekday(day, false)
    }

    /// `Fri`
    #[must_use]
    pub fn weekday_short(&self, day: Weekday) -> &'static str {
        self.weekday(day, true)
    }

    /// `March`, of 1 to 12, as it stands after a day: `5. března`. Nothing for another number.
    #[must_use]
    pub fn month_long(&self, month: u8) -> &'static str {
        self.month(month, false)
    }

    /// `Mar`, of 1 to 12.
    #[must_use]
    pub fn month_short(&self, month: u8) -> &'static str {
        self.month(month, true)
    }

    /// A date with its weekday: `Fri 6 Mar 2026`, `Fr 6. März 2026`.
    #[must_use]
    pub fn date(&self, date: Date) -> String {
        let weekday = self.weekday_short(Weekday::from_day_number(date.day_number()));
        let dot = if self.words.dotted { "." } else { "" };
        format!("{weekday} {}{dot} {} {}", date.day, self.month_short(date.month), date.year)
    }

    /// Its words, and then the English ones.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &'static Words> {
        let english = (self.words.code != "en").then_some(Words::ENGLISH);
        std::iter::once(self.words).chain(english)
    }

    /// Its own words.
    pub(crate) fn own(&self) -> &'static Words {
        self.words
    }

    fn weekday(&self, day: Weekday, short: bool) -> &'static str {
        let name = self.words.weekdays.get(usize::from(day.number_from_monday()));
        name.map_or("", |name| form(name, short))
    }

    fn month(&self, month: u8, short: bool) -> &'static str {
        let name = usize::from(month).checked_sub(1).and_then(|place| self.words.months.get(place));
        name.map_or("", |name| form(name, short))
    }
}

/// Two are the same if they read and print alike.
impl PartialEq for Language {
    fn eq(&self, other: &Language) -> bool {
        (self.words.code, self.month_first, self.week)
            == (other.words.code, other.month_first, other.week)
    }
}

impl Eq for Language {}
