//! Words of time that nothing was made of: they are refused, so that nothing is guessed around them.
//!
//! A title may have such words, too. So a name of a month or weekday alone counts only where something of a time was
//! understood, and a short one ("sun", "mar") only beside a number or a small word that goes before dates.

use super::PhraseError;
use super::clock::{clock, is_half_of_day, marked};
use super::date::{Unit, date, day_number, month_name, weekday};
use super::length::{M, packed, unit};
use super::near::near;
use super::reading::{Context, Word, after, first, number, shown, typed};
use super::vocabulary::{Vocabulary, WordMeaning};

/// What is looked at.
pub(crate) struct Left<'s, 'a> {
    pub(crate) words: &'s [Word<'a>],
    /// What was taken, and what stays on purpose.
    pub(crate) taken: &'s [bool],
    /// Is anything known of when it is?
    pub(crate) timed: bool,
    /// Is a day known?
    pub(crate) dated: bool,
    /// Is it known how often?
    pub(crate) repeated: bool,
    pub(crate) context: Context,
}

impl Left<'_, '_> {
    /// # Errors
    /// The first word of time that is left over.
    pub(crate) fn check(&self) -> Result<(), PhraseError> {
        for at in 0..self.words.len() {
            if !self.is_open(at) {
                continue;
            }
            if let Some(used) = self.zone(at) {
                return Err(PhraseError::ZoneLetters { text: self.text(at, used) });
            }
            let word = first(self.run(at)).unwrap_or_default();
            if self.timed
                && !self.dated
                && self.is_beside(at, 1)
                && let Some(meant) = near(word, &self.context.language)
            {
                return Err(PhraseError::Misspelt { text: self.text(at, 1), meant });
            }
            if let Some(used) = self.time(at) {
                return Err(PhraseError::LeftOver { text: self.text(at, used) });
            }
        }
        Ok(())
    }

    fn text(&self, at: usize, used: usize) -> String {
        let text = typed(after(self.words, at), used);
        shown(text.trim_end_matches([',', ';', ':', '!', '?']))
    }

    fn is_open(&self, at: usize) -> bool {
        self.taken.get(at) == Some(&false) && self.words.get(at).is_some_and(|word| !word.quoted)
    }

    /// The words from here to the next that is not open; no phrase has more than these.
    fn run(&self, at: usize) -> &[Word<'_>] {
        let end = self.words.len().min(at + 12);
        let count = (at..end).take_while(|at| self.is_open(*at)).count();
        self.words.get(at..at + count).unwrap_or_default()
    }

    /// Was this word taken for something of a time?
    fn is_said(&self, at: usize) -> bool {
        let mark = |word: &Word<'_>| word.quoted || word.text.starts_with(['#', '!']);
        self.taken.get(at) == Some(&true) && self.words.get(at).is_some_and(|word| !mark(word))
    }

    /// Do so many words stand beside something that was taken for a time?
    fn is_beside(&self, at: usize, used: usize) -> bool {
        let before = at.checked_sub(1).is_some_and(|at| self.is_said(at));
        before || self.is_said(at + used)
    }

    /// Is the word before one of these?
    fn follows(&self, at: usize, terms: &[WordMeaning]) -> bool {
        let Some(before) = at.checked_sub(1).filter(|at| self.is_open(*at)) else { return false };
        let words = self.words.get(before..at).unwrap_or_default();
        terms.iter().any(|term| self.context.term(words, *term) == Some(1))
    }

    /// How many words from here on say something of a time.
    fn time(&self, at: usize) -> Option<usize> {
        self.every(at)
            .or_else(|| self.digits(at))
            .or_else(|| self.name(at))
            .or_else(|| self.read(at))
            .or_else(|| self.amount(at))
            .or_else(|| self.until(at))
            .or_else(|| self.until_or_to(at))
            .or_else(|| self.movable(at))
            .or_else(|| self.weekend(at))
            .or_else(|| self.before(at))
            .or_else(|| self.small(at))
    }

    /// "every quarter", "each week"; "every man" only where something is known of a time.
    fn every(&self, at: usize) -> Option<usize> {
        let run = self.run(at);
        let used = self.context.term(run, WordMeaning::Every)?;
        let behind = after(run, used);
        let terms = [
            WordMeaning::Other,
            WordMeaning::Weekend,
            WordMeaning::Workday,
            WordMeaning::Morning,
            WordMeaning::Evening,
        ];
        let unit = unit(behind, &self.context, M::Months).filter(|_| first(behind) != Some("d"));
        let named = unit.is_some()
            || weekday(behind, &self.context).is_some()
            || month_name(behind, &self.context).is_some()
            || self.context.count(behind).is_some()
            || first(behind).is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit()))
            || terms.iter().any(|term| self.context.term(behind, *term).is_some());
        let plain = self.context.term(run, WordMeaning::EveryOrAll).is_none();
        (named || (self.timed && plain)).then_some(used + usize::from(!behind.is_empty()))
    }

    /// `31/12`, `31.12.`, `10.30`, "the 24th".
    fn digits(&self, at: usize) -> Option<usize> {
        let run = self.run(at);
        let text = first(run)?;
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let close = self.is_beside(at, 1) && self.timed;
        if let Some(sure) = numeric(text) {
            return (sure || close).then_some(1);
        }
        let ordinal = day_number(text).filter(|day| number(text, 2).is_none() && *day <= 31);
        let led = self.follows(at, &[WordMeaning::OnDate, WordMeaning::Until, WordMeaning::And]);
        ordinal.filter(|_| close || (self.repeated && led)).map(|_| 1)
    }

    /// The name of a weekday or of a month.
    fn name(&self, at: usize) -> Option<usize> {
        const BEFORE: &[WordMeaning] = &[
            WordMeaning::OnDate,
            WordMeaning::WithinPrefix,
            WordMeaning::AtPlace,
            WordMeaning::Until,
            WordMeaning::Every,
            WordMeaning::Next,
        ];
        let one = self.words.get(at..=at)?;
        let is_name = |words: &[Word<'_>]| {
            weekday(words, &self.context).is_some() || month_name(words, &self.context).is_some()
        };
        let day = weekday(one, &self.context).map(|(_, name)| name.short && !name.repeated);
        let short = match (day, month_name(one, &self.context)) {
            (Some(short), _) => short,
            (None, Some(_)) => {
                let capital = one.first()?.text.starts_with(char::is_uppercase);
                let letters = first(one)?.chars().count();
                let may = self.context.term(one, WordMeaning::ShortMonth).is_some();
                (letters < 4 && !(may && capital)) || (!capital && letters < 6)
            }
            (None, None) => return None,
        };
        let next = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        let mut next = next.filter_map(|at| self.words.get(at..=at));
        let counted =
            next.any(|words| first(words).and_then(day_number).is_some() || is_name(words));
        // "tue and thu"
        let behind = self.context.skip(after(self.words, at + 1), WordMeaning::And);
        let joined = self.timed && day.is_some() && weekday(behind, &self.context).is_some();
        let long = !short && self.timed;
        let full = !short || first(one)?.chars().count() > 3;
        let month = day.is_none() && full && self.timed && self.is_beside(at, 1);
        let led = self.follows(at, BEFORE)
            || (full && self.follows(at, &[WordMeaning::Of, WordMeaning::To]));
        (long || month || counted || joined || (led && (full || self.timed))).then_some(1)
    }

    /// What would have been understood if it stood alone.
    fn read(&self, at: usize) -> Option<usize> {
        if !self.timed {
            return None;
        }
        let run = self.run(at);
        let timed = clock(run, &self.context).ok().flatten().map(|(used, _)| used);
        let dated = || {
            let (used, span) = date(run, &self.context).ok().flatten()?;
            let digits = run.first()?.text.starts_with(|c: char| c.is_ascii_digit());
            let year = span.unit == Unit::Longer && digits;
            let name = used == 1 && month_name(run, &self.context).is_some();
            (!span.weak && !year && !name).then_some(used)
        };
        timed.or_else(dated)
    }

    /// "2 weeks", `90min`; "a week" beside a time.
    fn amount(&self, at: usize) -> Option<usize> {
        let run = self.run(at);
        let text = first(run)?;
        if !self.timed {
            return None;
        }
        // `2-3 days`
        let counted = text.split(['-', '–']).all(|text| number(text, 3).is_some());
        if counted || self.context.count(run).is_some() {
            let used = unit(after(run, 1), &self.context, M::Months)?.0;
            return first(after(run, 1)).filter(|unit| unit.len() > 1).map(|_| 1 + used);
        }
        if packed(text, &self.context, M::Months).is_some_and(|amount| amount.seconds != 0) {
            return Some(1);
        }
        let one = self.context.term(run, WordMeaning::One).unwrap_or(0);
        let (used, unit) = unit(after(run, one), &self.context, M::Months)?;
        let long = matches!(unit, WordMeaning::Week | WordMeaning::Month | WordMeaning::Year);
        let used = one + used;
        let word = first(after(run, one)).is_some_and(|unit| unit.len() > 1);
        let close = self.is_beside(at, used);
        (long && word && close && (one > 0 || run.len() == used)).then_some(used)
    }

    /// "until the project is done" behind a time, or where something recurs: it would not end.
    fn until(&self, at: usize) -> Option<usize> {
        let run = self.run(at);
        let used = self.context.term(run, WordMeaning::Until).filter(|used| *used < run.len())?;
        let sure = self.context.term(run, WordMeaning::CertainUntil).is_some()
            || self.context.own_term(run, WordMeaning::CertainUntilOwn).is_some();
        let behind = at.checked_sub(1).is_some_and(|at| self.is_said(at));
        (sure && (self.repeated || (self.timed && behind))).then_some(used + 1)
    }

    /// "do prázdnin" behind a date, a time or a repetition. The Czech word means "to" a place as well, which a capital
    /// letter tells, but for feasts: "každou sobotu do Prahy".
    fn until_or_to(&self, at: usize) -> Option<usize> {
        let run = self.run(at);
        let behind = at.checked_sub(1).is_some_and(|at| self.is_said(at));
        let until = self.context.own_term(run, WordMeaning::UntilOrTo).filter(|_| behind)?;
        let word = run.get(until)?;
        let feast =
            self.context.own_term(after(run, until), WordMeaning::HolidayAfterUntil).is_some();
        let small = self.repeated && !word.text.starts_with(char::is_uppercase);
        (feast || small).then_some(until + 1)
    }

    /// "easter" beside a time, where no other date is said, and "easter monday".
    fn movable(&self, at: usize) -> Option<usize> {
        let words = after(self.words, at);
        let used = self.context.term(words, WordMeaning::MovableHoliday)?;
        let weekday = (at..at + used).any(|at| self.is_said(at));
        let close = self.timed && !self.dated && self.is_beside(at, used);
        (weekday || close).then_some(used)
    }

    /// "am Wochenende", "o víkendu" or a weekend beside a time, where no day is said.
    fn weekend(&self, at: usize) -> Option<usize> {
        if !self.timed || self.dated {
            return None;
        }
        let run = self.run(at);
        let on = run.len() - self.context.skip(run, WordMeaning::OnDate).len();
        let used = on + self.context.term(after(run, on), WordMeaning::Weekend)?;
        (used > 1 || self.is_beside(at, used)).then_some(used)
    }

    /// "before friday": not on it.
    fn before(&self, at: usize) -> Option<usize> {
        let used = self.context.term(self.run(at), WordMeaning::BeforeDate)?;
        self.is_said(at + used).then_some(used + 1)
    }

    /// "except", where something recurs; "between 8 and 10"; "v půl deváté"; "first" before a weekday.
    fn small(&self, at: usize) -> Option<usize> {
        const PLACES: [WordMeaning; 5] = [
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
        let run = self.run(at);
        let term = |term| self.context.term(run, term);
        let any = |terms: &[WordMeaning]| terms.iter().find_map(|of| term(*of));
        if let Some(used) = term(WordMeaning::Except).filter(|_| self.repeated) {
            return Some(used);
        }
        if let Some(used) = term(WordMeaning::Between).filter(|_| self.timed)
            && first(after(run, used))?.starts_with(|c: char| c.is_ascii_digit())
        {
            return Some(used + 1);
        }
        if let Some(used) = any(&QUARTERS).filter(|used| *used > 1 && *used < run.len()) {
            return Some(used + 1);
        }
        let used = any(&PLACES)?;
        let day = weekday(after(self.words, at + used), &self.context).is_some();
        (day && self.is_said(at + used)).then_some(used)
    }

    /// `EST` behind a time, "Eastern time".
    fn zone(&self, at: usize) -> Option<usize> {
        let before = at.checked_sub(1).filter(|at| self.is_said(*at))?;
        let words = self.words.get(before..at).unwrap_or_default();
        let clocked = first(words).is_some_and(|text| {
            is_half_of_day(text) || marked(text).is_some() || number(text, 2).is_some()
        }) || self.context.term(words, WordMeaning::OClock).is_some()
            || self.context.term(words, WordMeaning::Noon).is_some();
        let run = self.run(at);
        let word = run.first().filter(|_| clocked)?;
        let letters = word.text.trim_end_matches([',', ';', '.']);
        if Vocabulary::common().forms(WordMeaning::ZoneAbbreviation).contains(&letters) {
            return Some(1);
        }
        let capital = |word: &&Word<'_>| word.text.starts_with(char::is_uppercase);
        let named = run.iter().take(3).take_while(capital).count();
        let end = (1..=named)
            .find(|used| self.context.term(after(run, *used), WordMeaning::LocalTime).is_some())?;
        Some(end + 1)
    }
}

/// Could these digits be a date or a time, and if so, can they hardly be anything else? `31/12`, `31.12.`, `10.30`.
fn numeric(text: &str) -> Option<bool> {
    let closed = text.ends_with('.');
    let parts: Vec<&str> = text.trim_end_matches('.').split(['/', '.']).collect();
    let (one, other) = match *parts.as_slice() {
        [one, other] => (one, other),
        [one, other, year] if number(year, 4).is_some() && year.len() == 4 => (one, other),
        _ => return None,
    };
    let (one, other) = (number(one, 2)?, number(other, 2)?);
    let date = (1..=12).contains(&one.min(other)) && (1..=31).contains(&one.max(other));
    let time = !closed && text.contains('.') && one <= 24 && other < 60;
    // A fraction has the less above; a number with a dot is one of many things.
    let sure = if text.contains('/') { one > other } else { closed };
    (date || time).then_some(date && (sure || parts.len() > 2))
}
