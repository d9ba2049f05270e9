//! Where something begins, in the walk of [`Scan`]: a date, a time, and a part of the day beside them.

use super::{Found, Said, Scan, Taken};
use crate::PhraseError;
use crate::clock::{self, Clock};
use crate::date::{Unit, date, next_of_month, weekday};
use crate::feast::feast;
use crate::reading::{Word, after, first, number, typed};
use crate::repeat::repeat;
use crate::vocabulary::{LanguageProperty, WordMeaning};
use larder_time::civil::Weekday;

impl<'w, 'a> Scan<'w, 'a> {
    /// A date or a time, with "from" before it or without.
    pub(super) fn start(&mut self, at: usize) -> Taken {
        let rest = self.rest(at);
        let from = self.context.term(rest, WordMeaning::From).unwrap_or(0);
        let words = after(rest, from);
        // "4pm" in "at 4pm" is found from "at" on, and a date from "on" on.
        let used = match self.start_date(words, at)? {
            Some(used) => Some(used),
            None => self.start_time(words, at)?,
        };
        let Some(used) = used else { return Ok(None) };
        self.behind = at + from + used;
        Ok(Some(from + used))
    }

    fn start_date(&mut self, words: &[Word<'a>], at: usize) -> Taken {
        if self.found.date.is_some() {
            return Ok(None);
        }
        let Some((used, what)) = date(words, &self.context)? else { return Ok(None) };
        let timed = what.unit == Unit::Moment;
        if what.unit == Unit::Longer || (timed && self.found.time.is_some()) {
            return Ok(None);
        }
        if feast(words, &self.context).is_some() {
            // "from christmas on", and not "Christmas 18:00".
            if words.len() == self.rest(at).len() {
                return Ok(None);
            }
        } else if what.weak && self.behind != at {
            let next = after(words, used);
            let repeated = || matches!(repeat(next, &self.context), Ok(Some(_)));
            if !self.is_clock(next) && !repeated() {
                return Ok(None);
            }
        }
        self.found.date = Some(Said { what, text: typed(words, used) });
        Ok(Some(used + self.part_of_day(words, used, at)))
    }

    /// "evening" behind a date, or in it, as in "tonight": how many words more that is.
    pub(super) fn part_of_day(&mut self, words: &[Word<'a>], used: usize, at: usize) -> usize {
        // The first word of the sentence that these are.
        let skipped = self.rest(at).len() - words.len();
        let part = |from: usize| clock::part(after(words, from), &self.context);
        let behind = part(used);
        let more = behind.map_or(0, |(more, _)| more);
        let inside = || {
            let mut found = (0..used).filter_map(|from| Some((from, part(from)?)));
            found.find(|(from, (more, _))| from + more == used)
        };
        let found = behind.map(|found| (used, found)).or_else(inside);
        let Some((from, (_, part))) = found else { return 0 };
        self.found.part = Some(part);
        self.found.night = part.is_night();
        // "friday evening" is an hour, and "friday evening gala" has a name.
        let next = after(words, used + more);
        let stop = words.get(used + more - 1).is_some_and(|word| word.stop);
        let ended = more == 0 || stop || clock::ends(next, &self.context);
        self.hour = part.hour().filter(|_| ended);
        self.part = at + skipped + from..at + skipped + used + more;
        more
    }

    fn start_time(&mut self, words: &[Word<'a>], at: usize) -> Taken {
        let timed = self.found.date.as_ref().is_some_and(|date| date.what.unit == Unit::Moment);
        if timed || self.found.time.is_some() {
            return Ok(None);
        }
        let found = clock::open(words, &self.context);
        let found = found.or_else(|| self.beside(words, at).map(|clock| (1, clock)));
        let found = match found {
            None if words.len() == self.rest(at).len() => self.hour_alone(at)?,
            found => found,
        };
        let Some((used, what)) = found else { return Ok(None) };
        let text = typed(words, used);
        let part = clock::part_behind(after(words, used), &self.context);
        let more = part.map_or(0, |(more, _)| more);
        self.found.part = part.map(|(_, part)| part).or(self.found.part);
        let what =
            if self.found.part.is_some() { what.within(self.found.part, &text)? } else { what };
        self.found.time = Some(Said { what, text });
        Ok(Some(used + more))
    }

    /// "tomorrow 14", "tomorrow at 14 dinner": behind the name of a day, which is no number that counts something. What it
    /// says of noon is as with "at 14".
    fn hour_alone(&self, at: usize) -> Result<Option<(usize, Clock)>, PhraseError> {
        let rest = self.rest(at);
        if self.behind != at || !self.follows_day(at) {
            return Ok(None);
        }
        let Some((used, clock)) = clock::hour_alone(rest, &self.context) else { return Ok(None) };
        // "friday 13" may be the 13th, and "mardi 14" is.
        let dated = self.context.language.own().has_property(LanguageProperty::AdjectiveAfterNoun);
        let day = number(first(rest).unwrap_or_default(), 2);
        let day = day.and_then(|day| next_of_month(day, self.context.base));
        let named = self.words.get(at - 1..at).and_then(|words| weekday(words, &self.context));
        let (Some((_, name)), Some(day)) = (named, day) else { return Ok(Some((used, clock))) };
        match dated || Weekday::of_day(day) == name.day {
            true => Err(PhraseError::LeftOver { text: typed(self.rest(at - 1), 2) }),
            false => Ok(Some((used, clock))),
        }
    }

    /// "Christmas eve 19:00", where no other date is said.
    pub(super) fn feast(&mut self) {
        let Found { date, time, all_day, end_date, repeat, .. } = &self.found;
        let dated = date.is_some() || all_day.is_some() || end_date.is_some() || repeat.is_some();
        if dated || time.is_none() {
            return;
        }
        let said = |at: usize| {
            let mark = |word: &Word| word.quoted || word.text.starts_with(['#', '!']);
            self.taken.get(at) == Some(&true) && self.words.get(at).is_some_and(|word| !mark(word))
        };
        let mut found = (0..self.words.len()).filter_map(|at| {
            let (used, what) = feast(self.rest(at), &self.context)?;
            let open = self.taken.iter().skip(at).take(used).all(|taken| !taken);
            let close = said(at + used) || at.checked_sub(1).is_some_and(said);
            (open && close).then_some((at, used, what))
        });
        let Some((at, used, what)) = found.next() else { return };
        drop(found);
        self.found.date = Some(Said { what, text: typed(self.rest(at), used) });
        self.mark_words(at..at + used, true);
    }

    /// Does the name of a day, or of a part of it, stand before this word?
    fn follows_day(&self, at: usize) -> bool {
        const NAMES: [WordMeaning; 3] =
            [WordMeaning::Today, WordMeaning::Tomorrow, WordMeaning::DayAfterTomorrow];
        if at.checked_sub(1).and_then(|at| self.words.get(at)).is_none_or(|word| word.stop) {
            return false;
        }
        (at.saturating_sub(4)..at).any(|from| {
            let words = self.words.get(from..at).unwrap_or_default();
            let whole = |used: Option<usize>| used == Some(words.len());
            whole(weekday(words, &self.context).map(|(used, _)| used))
                || whole(clock::part(words, &self.context).map(|(used, _)| used))
                || NAMES.iter().any(|term| whole(self.context.term(words, *term)))
        })
    }

    /// "tomorrow 1400", "1400 tomorrow"; but "budget 2030 tomorrow".
    fn beside(&self, words: &[Word<'a>], at: usize) -> Option<Clock> {
        let text = first(words)?;
        let clock = clock::beside(text, &self.context)?;
        let year = text.starts_with("19") || text.starts_with("20");
        let before = self.behind == at;
        (before || (!year && self.is_beside(at, after(words, 1)))).then_some(clock)
    }
}
