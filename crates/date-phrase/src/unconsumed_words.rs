//! Words of date or time that belong to no phrase. They are refused, so that no phrase is misread
//! silently.
//!
//! A title may contain such words, too. So the name of a month or weekday is refused only next to
//! an understood date or time, and a short one ("sun", "mar") only next to a number or a
//! preposition of dates.

use crate::calendar_names::{match_month_name, match_weekday, parse_day_number};
use crate::calendar_span::SpanUnit;
use crate::context::PhraseContext;
use crate::date::match_date;
use crate::duration::{MLetter, match_unit, parse_packed_duration};
use crate::error::{PhraseError, excerpt};
use crate::folding::is_form;
use crate::misspelling::find_misspelling;
use crate::repetition::match_weekday_range;
use crate::time_of_day::{is_am_pm, match_time, parse_explicit_time};
use crate::tokens::{PhraseToken, first_word, parse_number, skip_tokens, source_text};
use crate::vocabulary::{Vocabulary, WordMeaning};

/// The words of a sentence, and the parts of its meaning that have been parsed.
pub(crate) struct UnconsumedWords<'s, 'a> {
    pub(crate) words: &'s [PhraseToken<'a>],
    /// For each word, whether a phrase consumed it or it is kept on purpose.
    pub(crate) consumed: &'s [bool],
    /// The sentence has a date, time or repetition.
    pub(crate) has_when: bool,
    /// The sentence has a day.
    pub(crate) has_date: bool,
    /// The sentence has a repetition.
    pub(crate) has_repetition: bool,
    pub(crate) context: PhraseContext,
}

impl UnconsumedWords<'_, '_> {
    /// Looks for words of date or time that are not consumed.
    ///
    /// # Errors
    /// Names the first such words.
    pub(crate) fn check(&self) -> Result<(), PhraseError> {
        for at in 0..self.words.len() {
            if !self.is_unconsumed(at) {
                continue;
            }
            if let Some(used) = self.match_zone_abbreviation(at) {
                return Err(PhraseError::ZoneAbbreviation { text: self.word_text(at, used) });
            }
            let word = first_word(self.unconsumed_run(at)).unwrap_or_default();
            if self.has_when
                && !self.has_date
                && self.is_beside_consumed(at, 1)
                && let Some(meant) = find_misspelling(word, &self.context.language)
            {
                return Err(PhraseError::Misspelled {
                    text: self.word_text(at, 1),
                    suggestion: meant,
                });
            }
            if let Some(language) = self.find_foreign_language(at) {
                return Err(PhraseError::ForeignWord { text: self.word_text(at, 1), language });
            }
            if let Some(used) = self.match_time_words(at) {
                return Err(PhraseError::Unconsumed { text: self.word_text(at, used) });
            }
        }
        Ok(())
    }

    fn word_text(&self, at: usize, used: usize) -> String {
        let text = source_text(skip_tokens(self.words, at), used);
        excerpt(text.trim_end_matches([',', ';', ':', '!', '?']))
    }

    fn is_unconsumed(&self, at: usize) -> bool {
        self.consumed.get(at) == Some(&false)
            && self.words.get(at).is_some_and(|word| !word.is_quoted)
    }

    /// The words up to the next consumed one, which bound any phrase.
    fn unconsumed_run(&self, at: usize) -> &[PhraseToken<'_>] {
        let end = self.words.len().min(at + 12);
        let count = (at..end).take_while(|at| self.is_unconsumed(*at)).count();
        self.words.get(at..at + count).unwrap_or_default()
    }

    /// Returns whether a word is consumed by a date or time.
    fn is_consumed(&self, at: usize) -> bool {
        let mark = |word: &PhraseToken<'_>| word.is_quoted || word.text.starts_with(['#', '!']);
        self.consumed.get(at) == Some(&true) && self.words.get(at).is_some_and(|word| !mark(word))
    }

    /// Returns whether some words stand next to a consumed date or time.
    fn is_beside_consumed(&self, at: usize, used: usize) -> bool {
        let before = at.checked_sub(1).is_some_and(|at| self.is_consumed(at));
        before || self.is_consumed(at + used)
    }

    /// Returns whether the word before has one of these meanings.
    fn is_preceded_by(&self, at: usize, meanings: &[WordMeaning]) -> bool {
        let Some(before) = at.checked_sub(1).filter(|at| self.is_unconsumed(*at)) else {
            return false;
        };
        let words = self.words.get(before..at).unwrap_or_default();
        meanings.iter().any(|meaning| self.context.match_meaning(words, *meaning) == Some(1))
    }

    /// Returns the language in which a word is a day or a unit of time, if it has no such meaning
    /// in the user's own. Short words are too often something else.
    fn find_foreign_language(&self, at: usize) -> Option<&'static str> {
        const MIN_DAY_LETTERS: usize = 5;
        const MIN_UNIT_LETTERS: usize = 6;
        const DAYS: [WordMeaning; 3] =
            [WordMeaning::Today, WordMeaning::Tomorrow, WordMeaning::DayAfterTomorrow];
        const UNITS: [WordMeaning; 2] = [WordMeaning::Hour, WordMeaning::Week];
        let word = self.words.get(at).filter(|_| self.has_when)?;
        let letters = word.folded.chars().count();
        let days = WordMeaning::WEEKDAYS.iter().chain(&DAYS).map(|day| (day, MIN_DAY_LETTERS));
        let meanings = days.chain(UNITS.iter().map(|unit| (unit, MIN_UNIT_LETTERS)));
        let has_form = |vocabulary: &Vocabulary| {
            let mut long = meanings.clone().filter(|(_, least)| letters >= *least);
            long.any(|(meaning, _)| {
                vocabulary.forms(*meaning).iter().any(|form| is_form(form, &word.folded))
            })
        };
        let is_own = self.context.language.vocabularies().any(has_form);
        let foreign = || Vocabulary::all().find(|vocabulary| has_form(vocabulary));
        (!is_own).then(foreign).flatten().map(Vocabulary::code)
    }

    /// Returns how many words from here on belong to a date or time.
    fn match_time_words(&self, at: usize) -> Option<usize> {
        self.match_every(at)
            .or_else(|| self.match_date_digits(at))
            .or_else(|| self.match_day_or_month_name(at))
            .or_else(|| self.match_several_weekdays(at))
            .or_else(|| self.match_date_or_time(at))
            .or_else(|| self.match_duration_words(at))
            .or_else(|| self.match_until(at))
            .or_else(|| self.match_until_or_to(at))
            .or_else(|| self.match_movable_holiday(at))
            .or_else(|| self.match_weekend(at))
            .or_else(|| self.match_excluded_date(at))
            .or_else(|| self.match_second_adjective(at))
            .or_else(|| self.match_of_month(at))
            .or_else(|| self.match_function_words(at))
    }

    /// Matches the first word of "next next friday", the last of "vendredi prochain prochain".
    fn match_second_adjective(&self, at: usize) -> Option<usize> {
        const ADJECTIVES: [WordMeaning; 3] =
            [WordMeaning::This, WordMeaning::Next, WordMeaning::Last];
        let is_adjective = |at: usize| {
            let words = self.words.get(at..=at).unwrap_or_default();
            ADJECTIVES.iter().any(|one| self.context.match_meaning(words, *one) == Some(1))
        };
        let is_date_adjective = |at: usize| self.is_consumed(at) && is_adjective(at);
        let is_second = is_adjective(at)
            && (is_date_adjective(at + 1) || at.checked_sub(1).is_some_and(is_date_adjective));
        is_second.then_some(1)
    }

    /// Matches "of the month" and "of every month" after a day that a rule does not select there:
    /// "last weekday of every month", "fifth friday of the month".
    fn match_of_month(&self, at: usize) -> Option<usize> {
        let before = self.words.get(at.checked_sub(1)?..at)?;
        let days = [WordMeaning::Workday, WordMeaning::Day];
        let is_day = match_weekday(before, &self.context).is_some()
            || days.iter().any(|day| self.context.match_meaning(before, *day) == Some(1));
        let run = self.unconsumed_run(at);
        let of_every = || {
            let of = self.context.match_meaning(run, WordMeaning::Of)?;
            let following = skip_tokens(self.words, at + of);
            let every = self.context.match_meaning(following, WordMeaning::Every)?;
            let unit = match_unit(skip_tokens(following, every), &self.context, MLetter::Months);
            unit.filter(|(_, unit)| *unit == WordMeaning::Month).map(|(used, _)| of + every + used)
        };
        let of_month = self.context.match_meaning(run, WordMeaning::OfMonth);
        of_month.or_else(of_every).filter(|_| is_day && self.has_when)
    }

    /// Matches "every quarter", "each week"; "every man" only in a sentence with a date or time.
    fn match_every(&self, at: usize) -> Option<usize> {
        let run = self.unconsumed_run(at);
        let used = self.context.match_meaning(run, WordMeaning::Every)?;
        let following = skip_tokens(run, used);
        let meanings = [
            WordMeaning::Other,
            WordMeaning::Weekend,
            WordMeaning::Workday,
            WordMeaning::Morning,
            WordMeaning::Evening,
        ];
        let unit = match_unit(following, &self.context, MLetter::Months)
            .filter(|_| first_word(following) != Some("d"));
        let named = unit.is_some()
            || match_weekday(following, &self.context).is_some()
            || match_month_name(following, &self.context).is_some()
            || self.context.match_number(following).is_some()
            || first_word(following)
                .is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit()))
            || meanings
                .iter()
                .any(|meaning| self.context.match_meaning(following, *meaning).is_some());
        let plain = self.context.match_meaning(run, WordMeaning::EveryOrAll).is_none();
        (named || (self.has_when && plain)).then_some(used + usize::from(!following.is_empty()))
    }

    /// Matches `31/12`, `31.12.`, `10.30`, "the 24th".
    fn match_date_digits(&self, at: usize) -> Option<usize> {
        let run = self.unconsumed_run(at);
        let text = first_word(run)?;
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let close = self.is_beside_consumed(at, 1) && self.has_when;
        if let Some(is_certain) = classify_digits(text) {
            return (is_certain || close).then_some(1);
        }
        let ordinal =
            parse_day_number(text).filter(|day| parse_number(text, 2).is_none() && *day <= 31);
        let led =
            self.is_preceded_by(at, &[WordMeaning::OnDate, WordMeaning::Until, WordMeaning::And]);
        ordinal.filter(|_| close || (self.has_repetition && led)).map(|_| 1)
    }

    /// Matches the name of a weekday or of a month.
    fn match_day_or_month_name(&self, at: usize) -> Option<usize> {
        const PRECEDING_MEANINGS: &[WordMeaning] = &[
            WordMeaning::OnDate,
            WordMeaning::WithinPrefix,
            WordMeaning::AtPlace,
            WordMeaning::Until,
            WordMeaning::Every,
            WordMeaning::Next,
        ];
        let one = self.words.get(at..=at)?;
        let is_name = |words: &[PhraseToken<'_>]| {
            match_weekday(words, &self.context).is_some()
                || match_month_name(words, &self.context).is_some()
        };
        let day =
            match_weekday(one, &self.context).map(|(_, name)| name.is_short && !name.is_plural);
        let short = match (day, match_month_name(one, &self.context)) {
            (Some(short), _) => short,
            (None, Some(_)) => {
                let capital = one.first()?.text.starts_with(char::is_uppercase);
                let letters = first_word(one)?.chars().count();
                let may = self.context.match_meaning(one, WordMeaning::ShortMonth).is_some();
                (letters < 4 && !(may && capital)) || (!capital && letters < 6)
            }
            (None, None) => return None,
        };
        let next = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        let mut next = next.filter_map(|at| self.words.get(at..=at));
        let counted = next
            .any(|words| first_word(words).and_then(parse_day_number).is_some() || is_name(words));
        // "tue and thu"
        let following =
            self.context.skip_meaning(skip_tokens(self.words, at + 1), WordMeaning::And);
        let joined =
            self.has_when && day.is_some() && match_weekday(following, &self.context).is_some();
        let long = !short && self.has_when;
        let full = !short || first_word(one)?.chars().count() > 3;
        let month = day.is_none() && full && self.has_when && self.is_beside_consumed(at, 1);
        let led = self.is_preceded_by(at, PRECEDING_MEANINGS)
            || (full && self.is_preceded_by(at, &[WordMeaning::Of, WordMeaning::To]));
        (long || month || counted || joined || (led && (full || self.has_when))).then_some(1)
    }

    /// Matches `mon/wed` in a sentence with a date or time.
    fn match_several_weekdays(&self, at: usize) -> Option<usize> {
        let (used, _) = match_weekday_range(self.words.get(at..=at)?, &self.context)?;
        self.has_when.then_some(used)
    }

    /// Matches a date or time that would be understood alone.
    fn match_date_or_time(&self, at: usize) -> Option<usize> {
        if !self.has_when {
            return None;
        }
        let run = self.unconsumed_run(at);
        let timed = match_time(run, &self.context).ok().flatten().map(|(used, _)| used);
        let dated = || {
            let (used, span) = match_date(run, &self.context).ok().flatten()?;
            let digits = run.first()?.text.starts_with(|c: char| c.is_ascii_digit());
            let year = span.unit == SpanUnit::Longer && digits;
            let name = used == 1 && match_month_name(run, &self.context).is_some();
            (!span.is_weak && !year && !name).then_some(used)
        };
        timed.or_else(dated)
    }

    /// Matches "2 weeks", `90min`; "a week" next to a time.
    fn match_duration_words(&self, at: usize) -> Option<usize> {
        let run = self.unconsumed_run(at);
        let text = first_word(run)?;
        if !self.has_when {
            return None;
        }
        // `2-3 days`
        let counted = text.split(['-', '–']).all(|text| parse_number(text, 3).is_some());
        if counted || self.context.match_number(run).is_some() {
            let used = match_unit(skip_tokens(run, 1), &self.context, MLetter::Months)?.0;
            return first_word(skip_tokens(run, 1)).filter(|unit| unit.len() > 1).map(|_| 1 + used);
        }
        if parse_packed_duration(text, &self.context, MLetter::Months)
            .is_some_and(|amount| amount.seconds != 0)
        {
            return Some(1);
        }
        let counts = [WordMeaning::One, WordMeaning::Half, WordMeaning::OneAndAHalf];
        let one = counts.iter().find_map(|count| self.context.match_meaning(run, *count));
        let one = one.unwrap_or(0);
        let (used, unit) = match_unit(skip_tokens(run, one), &self.context, MLetter::Months)?;
        let long = matches!(unit, WordMeaning::Week | WordMeaning::Month | WordMeaning::Year)
            || (one > 0 && matches!(unit, WordMeaning::Hour | WordMeaning::Minute));
        let used = one + used;
        let word = first_word(skip_tokens(run, one)).is_some_and(|unit| unit.len() > 1);
        let close = self.is_beside_consumed(at, used);
        (long && word && close && (one > 0 || run.len() == used)).then_some(used)
    }

    /// Matches "until the project is done" after a time or in a repetition, which would have no
    /// end.
    fn match_until(&self, at: usize) -> Option<usize> {
        let run = self.unconsumed_run(at);
        let used =
            self.context.match_meaning(run, WordMeaning::Until).filter(|used| *used < run.len())?;
        let is_certain = self.context.match_meaning(run, WordMeaning::CertainUntil).is_some()
            || self.context.match_own_meaning(run, WordMeaning::CertainUntilOwn).is_some();
        let following = at.checked_sub(1).is_some_and(|at| self.is_consumed(at));
        (is_certain && (self.has_repetition || (self.has_when && following))).then_some(used + 1)
    }

    /// Matches "do prázdnin" after a date, time or repetition. The Czech word also stands before
    /// places, which have a capital letter, as some holidays do: "každou sobotu do Prahy".
    fn match_until_or_to(&self, at: usize) -> Option<usize> {
        let run = self.unconsumed_run(at);
        let following = at.checked_sub(1).is_some_and(|at| self.is_consumed(at));
        let until =
            self.context.match_own_meaning(run, WordMeaning::UntilOrTo).filter(|_| following)?;
        let word = run.get(until)?;
        let feast = self
            .context
            .match_own_meaning(skip_tokens(run, until), WordMeaning::HolidayAfterUntil)
            .is_some();
        let small = self.has_repetition && !word.text.starts_with(char::is_uppercase);
        (feast || small).then_some(until + 1)
    }

    /// Matches "easter" next to a time, if no other date is given, and "easter monday".
    fn match_movable_holiday(&self, at: usize) -> Option<usize> {
        let words = skip_tokens(self.words, at);
        let used = self.context.match_meaning(words, WordMeaning::MovableHoliday)?;
        let weekday = (at..at + used).any(|at| self.is_consumed(at));
        let close = self.has_when && !self.has_date && self.is_beside_consumed(at, used);
        (weekday || close).then_some(used)
    }

    /// Matches "am Wochenende", "o víkendu", or a weekend next to a time, if no day is given.
    fn match_weekend(&self, at: usize) -> Option<usize> {
        if !self.has_when || self.has_date {
            return None;
        }
        let run = self.unconsumed_run(at);
        let on = run.len() - self.context.skip_meaning(run, WordMeaning::OnDate).len();
        let used = on + self.context.match_meaning(skip_tokens(run, on), WordMeaning::Weekend)?;
        (used > 1 || self.is_beside_consumed(at, used)).then_some(used)
    }

    /// Matches "before friday" and "after friday", which exclude friday; "before easter" and "after
    /// next" behind a weekday or unit. "After work" and "after 18:00" are no dates.
    fn match_excluded_date(&self, at: usize) -> Option<usize> {
        // The date may have consumed the last word of the preposition: "después del 5 de marzo".
        let words = skip_tokens(self.words, at);
        let before = self.context.match_meaning(words, WordMeaning::BeforeDate);
        let after = self.context.match_meaning(words, WordMeaning::AfterDate);
        if let Some(used) = before.filter(|used| self.is_consumed(at + used)) {
            return Some(used + 1);
        }
        let used = after.or(before)?;
        if let Some(date) = self.match_consumed_date(at + used) {
            return Some(used + date);
        }
        let following = skip_tokens(words, used);
        let meaning = |meaning| self.context.match_meaning(following, meaning);
        let holiday = || WordMeaning::HOLIDAYS.iter().filter_map(|one| meaning(*one)).max();
        let is_beside_day = self.has_when && self.is_preceded_by_day_or_unit(at);
        // "friday after next release" is refused, too, because of "monday after next dentist".
        let next = meaning(WordMeaning::Next).filter(|_| after.is_some() && is_beside_day);
        next.or_else(|| holiday().filter(|_| is_beside_day || self.has_due_before(at)))
            .map(|more| used + more)
    }

    /// Matches a consumed date, also behind an article that is not part of it, if the date is no
    /// adjective: "the 5 december", but not "the friday meeting".
    fn match_consumed_date(&self, at: usize) -> Option<usize> {
        let article = match self.is_consumed(at) {
            true => 0,
            false => self.context.match_meaning(self.unconsumed_run(at), WordMeaning::The)?,
        };
        let date_at = at + article;
        let (used, span) =
            match_date(skip_tokens(self.words, date_at), &self.context).ok().flatten()?;
        let is_adjective = article > 0 && span.is_weekly && self.is_noun_possible(date_at + used);
        (self.is_consumed(date_at) && !is_adjective).then_some(article + used)
    }

    /// Returns whether a word of the summary is none of those that begin another phrase.
    fn is_noun_possible(&self, at: usize) -> bool {
        const PREPOSITIONS: [WordMeaning; 3] =
            [WordMeaning::With, WordMeaning::AtPlace, WordMeaning::And];
        let run = self.unconsumed_run(at);
        !run.is_empty()
            && PREPOSITIONS.iter().all(|one| self.context.match_meaning(run, *one).is_none())
    }

    /// Returns whether the word before is a weekday or a unit: "the week after".
    fn is_preceded_by_day_or_unit(&self, at: usize) -> bool {
        const UNITS: [WordMeaning; 4] =
            [WordMeaning::Day, WordMeaning::Week, WordMeaning::Month, WordMeaning::Year];
        let word = at.checked_sub(1).and_then(|before| self.words.get(before..at));
        let Some(word) = word.filter(|word| word.iter().all(|word| !word.is_quoted)) else {
            return false;
        };
        match_weekday(word, &self.context).is_some()
            || UNITS.iter().any(|unit| self.context.match_meaning(word, *unit) == Some(1))
    }

    /// Returns whether "due" stands before, or before a weekday or unit: "due on the day after". It
    /// means that a task is due, and belongs to no date.
    fn has_due_before(&self, at: usize) -> bool {
        let end = at - usize::from(self.is_preceded_by_day_or_unit(at));
        let end = end - usize::from(self.is_preceded_by(end, &[WordMeaning::The]));
        let end = end - usize::from(self.is_preceded_by(end, &[WordMeaning::OnDate]));
        self.is_preceded_by(end, &[WordMeaning::Due])
    }

    /// Matches function words: "except" in a repetition; "between 8 and 10"; "v půl deváté";
    /// "first" before a weekday, and "first and" before a repetition.
    fn match_function_words(&self, at: usize) -> Option<usize> {
        const ORDINALS: [WordMeaning; 5] = [
            WordMeaning::First,
            WordMeaning::Second,
            WordMeaning::Third,
            WordMeaning::Fourth,
            WordMeaning::Last,
        ];
        const QUARTERS: [WordMeaning; 5] = [
            WordMeaning::HalfPast,
            WordMeaning::HalfTo,
            WordMeaning::QuarterPast,
            WordMeaning::QuarterTo,
            WordMeaning::ThreeQuartersTo,
        ];
        let run = self.unconsumed_run(at);
        let meaning = |meaning| self.context.match_meaning(run, meaning);
        let any = |meanings: &[WordMeaning]| meanings.iter().find_map(|one| meaning(*one));
        if let Some(used) = meaning(WordMeaning::Except).filter(|_| self.has_repetition) {
            return Some(used);
        }
        if let Some(used) = meaning(WordMeaning::Between).filter(|_| self.has_when)
            && first_word(skip_tokens(run, used))?.starts_with(|c: char| c.is_ascii_digit())
        {
            return Some(used + 1);
        }
        if let Some(used) = any(&QUARTERS).filter(|used| *used > 1 && *used < run.len()) {
            return Some(used + 1);
        }
        let used = any(&ORDINALS)?;
        // "first and third monday of the month"
        let and = self.context.match_meaning(skip_tokens(run, used), WordMeaning::And);
        if let Some(and) = and.filter(|_| self.has_repetition)
            && self.is_consumed(at + used + and)
        {
            return Some(used + and);
        }
        let day = match_weekday(skip_tokens(self.words, at + used), &self.context).is_some();
        (day && self.is_consumed(at + used)).then_some(used)
    }

    /// Matches `EST` after a time, and "Eastern time".
    fn match_zone_abbreviation(&self, at: usize) -> Option<usize> {
        let before = at.checked_sub(1).filter(|at| self.is_consumed(*at))?;
        let words = self.words.get(before..at).unwrap_or_default();
        let clocked = first_word(words).is_some_and(|text| {
            is_am_pm(text) || parse_explicit_time(text).is_some() || parse_number(text, 2).is_some()
        }) || self.context.match_meaning(words, WordMeaning::OClock).is_some()
            || self.context.match_meaning(words, WordMeaning::Noon).is_some();
        let run = self.unconsumed_run(at);
        let word = run.first().filter(|_| clocked)?;
        let letters = word.text.trim_end_matches([',', ';', '.']);
        if Vocabulary::shared_notation().forms(WordMeaning::ZoneAbbreviation).contains(&letters) {
            return Some(1);
        }
        let capital = |word: &&PhraseToken<'_>| word.text.starts_with(char::is_uppercase);
        let named = run.iter().take(3).take_while(capital).count();
        let end = (1..=named).find(|used| {
            self.context.match_meaning(skip_tokens(run, *used), WordMeaning::LocalTime).is_some()
        })?;
        Some(end + 1)
    }
}

/// Returns `Some` if the digits may be a date or time, and `Some(true)` if another meaning is
/// unlikely: `31/12`, `31.12.`, `10.30`.
fn classify_digits(text: &str) -> Option<bool> {
    let closed = text.ends_with('.');
    let parts: Vec<&str> = text.trim_end_matches('.').split(['/', '.']).collect();
    let (one, other) = match *parts.as_slice() {
        [one, other] => (one, other),
        [one, other, year] if parse_number(year, 4).is_some() && year.len() == 4 => (one, other),
        _ => return None,
    };
    let (one, other) = (parse_number(one, 2)?, parse_number(other, 2)?);
    let date = (1..=12).contains(&one.min(other)) && (1..=31).contains(&one.max(other));
    let time = !closed && text.contains('.') && one <= 24 && other < 60;
    // The numerator of a fraction is the smaller number; a number with a dot has many meanings.
    let is_certain = if text.contains('/') { one > other } else { closed };
    (date || time).then_some(date && (is_certain || parts.len() > 2))
}
