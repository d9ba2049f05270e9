//! The language of a person: a vocabulary, the order of day and month, and the first day of the
//! week.
//!
//! Made from the name of a locale, which the caller passes in; nothing is read from the system.

use crate::folding::{fold, is_form};
use crate::vocabulary::{LanguageProperty, Vocabulary, WordMeaning};
use larder_time::civil::{Date, Weekday};
use std::sync::LazyLock;

/// The language that dates are parsed and printed in. English is always understood as well.
#[derive(Debug, Clone, Copy)]
pub struct Language {
    vocabulary: &'static Vocabulary,
    month_first: bool,
    /// The locale has no language, so `3/5` may be 3 May or 5 March.
    has_no_order: bool,
    year_first: bool,
    first_weekday: Weekday,
}

/// The conventions of countries and languages.
const REGIONS: &str = include_str!("../vocabularies/regions.txt");

/// Returns whether a convention lists the code of a country or language.
fn is_listed(convention: &str, code: &str) -> bool {
    let mut lines = REGIONS.lines().filter_map(|line| line.split_once(':'));
    let list = lines.find(|(name, _)| *name == convention).map_or("", |(_, list)| list);
    list.split_whitespace().any(|known| known == code)
}

impl Default for Language {
    /// The language of the locale `C`.
    fn default() -> Language {
        // Each search request has one.
        static WITHOUT_LOCALE: LazyLock<Language> = LazyLock::new(|| Language::from_locale("C"));
        *WITHOUT_LOCALE
    }
}

impl Language {
    /// Returns the language of a locale: `de_DE.UTF-8`, `en-GB`, `pt`, `C`. A language without a
    /// vocabulary gets the English one, and keeps its own order of day and month. `C` is English
    /// without the conventions of any country: the week begins on Monday, and `3/5` is ambiguous.
    #[must_use]
    pub fn from_locale(locale: &str) -> Language {
        let name = locale.split(['.', '@']).next().unwrap_or_default();
        let mut parts = name.split(['_', '-']);
        let code = parts.next().unwrap_or_default().to_ascii_lowercase();
        // A script may stand between language and country: `zh_Hant_TW`.
        let place = parts.find(|part| part.len() == 2).unwrap_or_default().to_ascii_uppercase();
        let has_no_order = matches!(code.as_str(), "" | "c" | "posix");
        let code = match code.as_str() {
            "no" | "nn" => "nb",
            _ if has_no_order => "en",
            code => code,
        };
        let place = if place.is_empty() { "-" } else { &place };
        let first_weekday = match code {
            _ if has_no_order => Weekday::Monday,
            // A language without a country has the convention of its largest country.
            _ if place == "-" && !is_listed("sunday-language", code) => Weekday::Monday,
            _ if is_listed("sunday", place) => Weekday::Sunday,
            _ if is_listed("saturday", place) => Weekday::Saturday,
            _ => Weekday::Monday,
        };
        let year_first = is_listed("year-month-day", code);
        Language {
            vocabulary: Vocabulary::for_language(code).unwrap_or_else(Vocabulary::english),
            month_first: (code == "en" && is_listed("month-before-day", place)) || year_first,
            has_no_order,
            year_first,
            first_weekday,
        }
    }

    /// Returns whether `3/5` is 5 March.
    #[must_use]
    pub fn is_month_first(&self) -> bool {
        self.month_first
    }

    /// Returns whether `3/5` may be 3 May or 5 March.
    pub(crate) fn has_no_date_order(&self) -> bool {
        self.has_no_order
    }

    /// Returns whether `3.5.` is 5 March. English has no dates with dots, so these have the order
    /// of the languages that do.
    pub(crate) fn is_month_first_with_dots(&self) -> bool {
        self.year_first
    }

    /// The first day of the week. Numbered weeks are ISO 8601 weeks, which begin on Monday
    /// everywhere.
    #[must_use]
    pub fn first_weekday(&self) -> Weekday {
        self.first_weekday
    }

    /// The long name of a weekday: `Friday`.
    #[must_use]
    pub fn weekday_long(&self, day: Weekday) -> &'static str {
        self.weekday_name(day, false)
    }

    /// The short name of a weekday: `Fri`.
    #[must_use]
    pub fn weekday_short(&self, day: Weekday) -> &'static str {
        self.weekday_name(day, true)
    }

    /// The long name of a month (1 to 12) as it follows a day: `5. března`. Empty for another
    /// number.
    #[must_use]
    pub fn month_long(&self, month: u8) -> &'static str {
        self.month_name(month, false)
    }

    /// The short name of a month: `Mar`.
    #[must_use]
    pub fn month_short(&self, month: u8) -> &'static str {
        self.month_name(month, true)
    }

    /// Formats a date with its weekday: `Fri 6 Mar 2026`, `Fr 6. März 2026`.
    #[must_use]
    pub fn date(&self, date: Date) -> String {
        let weekday = self.weekday_short(Weekday::from_day_number(date.day_number()));
        let dot =
            if self.vocabulary.has_property(LanguageProperty::DotAfterDay) { "." } else { "" };
        format!("{weekday} {}{dot} {} {}", date.day, self.month_short(date.month), date.year)
    }

    /// The vocabulary of the language, followed by the English one.
    /// Returns the number, 1 to 12, of a month by its name in the language or in English.
    #[must_use]
    pub fn month_number(&self, name: &str) -> Option<u8> {
        let name = fold(name);
        let has_name = |vocabulary: &Vocabulary, month: &WordMeaning| {
            vocabulary.forms(*month).iter().any(|form| is_form(form, &name))
        };
        let place = self.vocabularies().find_map(|vocabulary| {
            WordMeaning::MONTHS.iter().position(|month| has_name(vocabulary, month))
        });
        place.map(|place| place as u8 + 1)
    }

    pub(crate) fn vocabularies(&self) -> impl Iterator<Item = &'static Vocabulary> {
        let english = (self.vocabulary.code() != "en").then_some(Vocabulary::english());
        std::iter::once(self.vocabulary).chain(english)
    }

    /// The vocabulary of the language.
    pub(crate) fn vocabulary(&self) -> &'static Vocabulary {
        self.vocabulary
    }

    fn weekday_name(&self, day: Weekday, short: bool) -> &'static str {
        let name = WordMeaning::WEEKDAYS.get(usize::from(day.number_from_monday()));
        name.map_or("", |name| self.vocabulary.printed_name(*name, short))
    }

    fn month_name(&self, month: u8, short: bool) -> &'static str {
        let place = usize::from(month).checked_sub(1);
        let name = place.and_then(|place| WordMeaning::MONTHS.get(place));
        name.map_or("", |name| self.vocabulary.printed_name(*name, short))
    }
}

/// Languages are equal if they parse and print alike.
impl PartialEq for Language {
    fn eq(&self, other: &Language) -> bool {
        (self.vocabulary.code(), self.month_first, self.has_no_order, self.first_weekday)
            == (other.vocabulary.code(), other.month_first, other.has_no_order, other.first_weekday)
    }
}

impl Eq for Language {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_well_formed() {
        let names = ["month-before-day", "year-month-day", "sunday", "saturday", "sunday-language"];
        let lines = REGIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let lines: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
        assert_eq!(lines.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
        for (name, codes) in lines {
            let is_language = matches!(name, "year-month-day" | "sunday-language");
            for code in codes.split_whitespace().filter(|code| *code != "-") {
                let letters = code.chars().all(|c| match is_language {
                    true => c.is_ascii_lowercase(),
                    false => c.is_ascii_uppercase(),
                });
                let length = if is_language { 2..=3 } else { 2..=2 };
                assert!(letters && length.contains(&code.len()), "{name}: {code}");
            }
        }
    }
}
