//! What a sentence says, phrase by phrase: which words are taken, and for what.
//!
//! A walk from left to right. Each kind of phrase is taken once; what comes a second time stays a word of the
//! summary, where it is seen. What the phrases mean together is [`sentence`](super::sentence)'s matter.

use super::PhraseError;
use super::clock::{self, Clock, Part, clock, two_clocks};
use super::date::{Span, Unit, date, day_number, month_name, when};
use super::digits::has_offset;
use super::folding::{fold, is_form};
use super::length::{Amount, M, amount, one_unit};
use super::reading::{Context, Word, after, first, number, typed};
use super::repeat::{self, Repeat, repeat};
use super::vocabulary::{Vocabulary, WordMeaning};
use larder_time::value::Nominal;
use larder_time::zone::city;
use std::ops::Range;

mod start;

/// Something that was said, with the words that said it.
#[derive(Debug, Clone)]
pub(crate) struct Said<T> {
    pub(crate) what: T,
    pub(crate) text: String,
}

/// The phrases of a sentence.
#[derive(Debug, Default)]
pub(crate) struct Found<'a> {
    pub(crate) date: Option<Said<Span>>,
    pub(crate) time: Option<Said<Clock>>,
    pub(crate) all_day: Option<Said<()>>,
    /// The end, if it is a time alone.
    pub(crate) end_time: Option<Said<Clock>>,
    /// The words of another end, whose meaning depends on the start.
    pub(crate) end_date: Option<Vec<Word<'a>>>,
    pub(crate) amounts: Vec<Said<Amount>>,
    pub(crate) repeat: Option<Repeat>,
    /// How many of what is repeated.
    pub(crate) count: Option<Said<i64>>,
    /// The part of the day.
    part: Option<Part>,
    /// Beside the date stands that it is the night of it.
    pub(crate) night: bool,
    /// The zone that a time is of.
    pub(crate) zone: Option<String>,
    pub(crate) alarms: Vec<Nominal>,
    pub(crate) categories: Vec<String>,
    pub(crate) priority: Option<u8>,
    /// Something is said to be due.
    pub(crate) due: bool,
}

/// How many words are taken, if any.
type Taken = Result<Option<usize>, PhraseError>;

/// Words that were one word.
type Sides<'a> = Vec<Word<'a>>;

/// The walk.
pub(crate) struct Scan<'w, 'a> {
    words: &'w [Word<'a>],
    context: Context,
    pub(crate) taken: Vec<bool>,
    pub(crate) found: Found<'a>,
    /// The word behind the last date or time.
    behind: usize,
    /// Words for a part of the day.
    pub(crate) part: Range<usize>,
    /// The hour that they mean where no time is said.
    hour: Option<Clock>,
    /// The first word of a rule behind words like "daily", so that it is looked for once.
    rule: usize,
}

impl<'w, 'a> Scan<'w, 'a> {
    /// Walks over the words.
    ///
    /// # Errors
    /// Where words say a date or time that cannot be.
    pub(crate) fn of(words: &'w [Word<'a>], context: Context) -> Result<Scan<'w, 'a>, PhraseError> {
        let taken = vec![false; words.len()];
        let (found, behind, part) = (Found::default(), usize::MAX, 0..0);
        let mut scan = Scan { words, context, taken, found, behind, part, hour: None, rule: 0 };
        let mut at = 0;
        while at < words.len() {
            let used = if scan.quoted(at) { None } else { scan.phrase(at)? };
            let used = used.unwrap_or(0);
            for taken in scan.taken.iter_mut().skip(at).take(used) {
                *taken = true;
            }
            at += used.max(1);
        }
        scan.count();
        scan.feast();
        scan.settle()?;
        if scan.found.time.is_none() {
            scan.hour();
        }
        Ok(scan)
    }

    fn mark_words(&mut self, words: Range<usize>, taken: bool) {
        for of in self.taken.iter_mut().take(words.end).skip(words.start) {
            *of = taken;
        }
    }

    /// "Dinner tonight" is at an hour of its own, unless something else says how long it goes on.
    fn hour(&mut self) {
        let Found { date, end_time, all_day, .. } = &self.found;
        let moment = date.as_ref().is_some_and(|date| date.what.unit == Unit::Moment);
        let free = !moment && end_time.is_none() && all_day.is_none();
        match self.hour.filter(|_| free) {
            Some(what) => {
                let text = typed(self.rest(self.part.start), self.part.len());
                self.found.time = Some(Said { what, text });
            }
            None => self.mark_words(self.part.clone(), false),
        }
    }

    /// What the part of the day says of the time, wherever it stands: "at 8 tonight".
    fn settle(&mut self) -> Result<(), PhraseError> {
        let Found { time: Some(time), end_time, part, .. } = &mut self.found else { return Ok(()) };
        let before = time.what;
        time.what = before.within(*part, &time.text)?;
        if let Some(end) = end_time.as_mut().filter(|_| time.what != before) {
            end.what = end.what.within(*part, &end.text)?;
        }
        Ok(())
    }

    /// "10 times", wherever it stands: without a repetition it would be the words of something else.
    fn count(&mut self) {
        if self.found.repeat.is_none() {
            return;
        }
        let free = (0..self.words.len()).filter(|at| self.taken.get(*at) == Some(&false));
        let mut found = free.filter_map(|at| {
            let (used, count) = repeat::times(self.rest(at), &self.context)?;
            let open = self.taken.iter().skip(at).take(used).all(|taken| !taken);
            open.then_some((at, used, count))
        });
        let Some((at, used, what)) = found.next() else { return };
        drop(found);
        self.found.count = Some(Said { what, text: typed(self.rest(at), used) });
        self.mark_words(at..at + used, true);
    }

    fn quoted(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(|word| word.quoted)
    }

    /// How many words from here on are a phrase, which is noted.
    fn phrase(&mut self, at: usize) -> Taken {
        let readers: [fn(&mut Self, usize) -> Taken; 11] = [
            Self::mark,
            Self::zone,
            Self::due,
            Self::repetition,
            Self::all_day,
            Self::alarm,
            Self::length,
            Self::ending,
            Self::two_times,
            Self::two_dates,
            Self::start,
        ];
        for reader in readers {
            if let Some(used) = reader(self, at)? {
                return Ok(Some(used));
            }
        }
        let offset = |text: &&str| !text.contains(['-', '−']) && has_offset(text);
        if first(self.rest(at)).filter(offset).is_some() {
            return Err(PhraseError::Offset { text: typed(self.rest(at), 1) });
        }
        if self.behind == at
            && (self.found.time.is_some() || self.is_moment())
            && first(self.rest(at)).is_some_and(is_offset)
        {
            let text = typed(self.rest(at - 1), 2);
            // `-11:00` may be an end, too.
            let end = first(self.rest(at)).is_some_and(|text| text.starts_with('-'));
            return Err(if end {
                PhraseError::LeftOver { text }
            } else {
                PhraseError::Offset { text }
            });
        }
        match first(self.rest(at)).filter(|text| clock::is_broken(text)) {
            Some(_) => Err(PhraseError::NoSuchTime { text: typed(self.rest(at), 1) }),
            None => Ok(None),
        }
    }

    fn rest(&self, at: usize) -> &'w [Word<'a>] {
        after(self.words, at)
    }

    /// `#category`, `!high`, `!3`.
    fn mark(&mut self, at: usize) -> Taken {
        let Some(word) = self.words.get(at) else { return Ok(None) };
        let bare = word.text.trim_end_matches([',', ';', ':', '!', '?', '.']);
        if let Some(name) =
            bare.strip_prefix('#').filter(|name| name.starts_with(char::is_alphabetic))
        {
            if !self.found.categories.iter().any(|known| known == name) {
                self.found.categories.push(name.to_owned());
            }
            return Ok(Some(1));
        }
        let Some(name) = word.folded.strip_prefix('!') else { return Ok(None) };
        const LEVELS: [(WordMeaning, u8); 3] = [
            (WordMeaning::HighPriority, 1),
            (WordMeaning::MediumPriority, 5),
            (WordMeaning::LowPriority, 9),
        ];
        let tables = || self.context.language.tables();
        let named = LEVELS.iter().find(|(term, _)| {
            tables().any(|table| table.forms(*term).iter().any(|form| is_form(form, name)))
        });
        let digit = number(name, 1).filter(|level| *level > 0).map(|level| level as u8);
        let level = named.map(|(_, level)| *level).or(digit);
        if level.is_none() || self.found.priority.is_some() {
            return Ok(None);
        }
        self.found.priority = level;
        Ok(Some(1))
    }

    /// "due friday", "due by 17:00", "due every month": the word goes with what it stands before.
    fn due(&mut self, at: usize) -> Taken {
        let Some(used) = self.context.term(self.rest(at), WordMeaning::Due) else {
            return Ok(None);
        };
        let readers = [Self::repetition, Self::ending, Self::start];
        for reader in readers {
            if let Some(more) = reader(self, at + used)? {
                self.found.due = true;
                return Ok(Some(used + more));
            }
        }
        Ok(None)
    }

    /// "every monday"
    fn repetition(&mut self, at: usize) -> Taken {
        if let Some(repeat) = &self.found.repeat {
            // "every weekday 8:15 except wednesday"
            let found = repeat::without(self.rest(at), repeat, &self.context);
            let Some((used, repeat)) = found else { return Ok(None) };
            self.found.repeat = Some(repeat);
            return Ok(Some(used));
        }
        let Some((mut used, mut repeat)) = self.repeated(at)? else { return Ok(None) };
        // "Daily standup every weekday": the rule itself wins over a word of the title.
        if repeat::adverb(self.rest(at), &self.context).is_some() && self.rule_from(at + used)? {
            return Ok(None);
        }
        if let Some((more, without)) = repeat::without(self.rest(at + used), &repeat, &self.context)
        {
            (used, repeat) = (used + more, without);
        }
        self.found.repeat = Some(repeat);
        // "every evening", "every sunday evening"
        used += self.part_of_day(self.rest(at), used, at);
        self.behind = at + used;
        Ok(Some(used))
    }

    /// A repetition that begins here.
    fn repeated(&self, at: usize) -> Result<Option<(usize, Repeat)>, PhraseError> {
        let rest = self.rest(at);
        if let Some(found) = repeat(rest, &self.context)? {
            return Ok(Some(found));
        }
        let timed = self.behind == at && self.found.time.is_some();
        let found = repeat::from_to(rest, &self.context);
        if found.is_some() {
            return Ok(found.filter(|(used, _)| timed || self.is_clock(after(rest, *used))));
        }
        // "monday to friday 9:15-9:30"
        let ranged = timed && self.found.end_time.is_some();
        Ok(repeat::spoken_range(rest, &self.context).and_then(|(used, repeat, sure)| {
            let behind = after(rest, used);
            let once = sure && (timed || self.is_clock(behind));
            (once || ranged || self.is_two_times(behind)).then_some((used, repeat))
        }))
    }

    /// Are there two times of day, one to begin and one to end at?
    fn is_two_times(&self, words: &[Word<'a>]) -> bool {
        let skipped = self.context.term(words, WordMeaning::From);
        let skipped =
            skipped.or_else(|| self.context.term(words, WordMeaning::AtTime)).unwrap_or(0);
        let words = after(words, skipped);
        let spoken = || {
            let (used, _) = clock::open(words, &self.context)?;
            let to = self.context.term(after(words, used), WordMeaning::To)?;
            let rest = after(words, used + to);
            first(rest).filter(|text| number(text, 2).is_some() || self.is_clock(rest))
        };
        two_clocks(words, &self.context).is_some()
            || clock::two_hours(words, &self.context).is_some()
            || self.two_hours(words).is_some()
            || spoken().is_some()
    }

    /// Is there a repetition from here on that is more than a word like "daily"?
    fn rule_from(&mut self, from: usize) -> Result<bool, PhraseError> {
        for at in from.max(self.rule)..self.words.len() {
            let adverb = repeat::adverb(self.rest(at), &self.context).is_some();
            if !adverb && !self.quoted(at) && self.repeated(at)?.is_some() {
                self.rule = at;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Is there a time of day?
    fn is_clock(&self, words: &[Word<'a>]) -> bool {
        clock::open(words, &self.context).is_some() || two_clocks(words, &self.context).is_some()
    }

    /// Does the date say a time, as `2026-03-05T20:00`?
    fn is_moment(&self) -> bool {
        self.found.date.as_ref().is_some_and(|date| date.what.unit == Unit::Moment)
    }

    /// "Europe/Berlin", "UTC", "New York time" and "New York" behind a time. A city alone may be a place as well, so it stays in
    /// the text.
    fn zone(&mut self, at: usize) -> Taken {
        let timed = self.behind == at && (self.found.time.is_some() || self.is_moment());
        let rest = self.rest(at);
        let Some(text) = first(rest).filter(|_| timed && self.found.zone.is_none()) else {
            return Ok(None);
        };
        let written = rest.first().map_or("", |word| word.text.trim_end_matches([',', ';', '.']));
        if Vocabulary::common().forms(WordMeaning::Utc).contains(&written)
            || (text.contains('/') && larder_time::zone::is_area(written))
        {
            self.found.zone = Some(written.to_owned());
            return Ok(Some(1));
        }
        let texts = |used: usize| rest.get(..used).unwrap_or_default().iter().map(|word| word.text);
        let Some((used, zone)) = (1..=3).rev().find_map(|used| {
            let name = texts(used).collect::<Vec<_>>().join(" ");
            let capital = name.starts_with(char::is_uppercase) && used <= rest.len();
            Some((used, city(name.trim_end_matches([',', ';'])).filter(|_| capital)?))
        }) else {
            return Ok(None);
        };
        let behind = after(rest, used);
        let time = self.context.term(behind, WordMeaning::LocalTime);
        if time.is_some() || clock::ends(behind, &self.context) {
            self.found.zone = Some(zone.to_owned());
        }
        Ok(time.map(|time| used + time))
    }

    fn all_day(&mut self, at: usize) -> Taken {
        let Some(used) = self.context.term(self.rest(at), WordMeaning::AllDay) else {
            return Ok(None);
        };
        self.found.all_day = Some(Said { what: (), text: typed(self.rest(at), used) });
        Ok(Some(used))
    }

    /// "alarm 15min"
    fn alarm(&mut self, at: usize) -> Taken {
        let rest = self.rest(at);
        let Some(used) = self.context.term(rest, WordMeaning::Alarm) else { return Ok(None) };
        let Some((more, amount)) = amount(after(rest, used), &self.context, M::Minutes) else {
            return Ok(None);
        };
        if amount.months != 0 {
            return Ok(None);
        }
        let used = used + more;
        let before = self.context.term(after(rest, used), WordMeaning::BeforeStart).unwrap_or(0);
        self.found.alarms.push(Nominal { days: amount.days, seconds: amount.seconds });
        Ok(Some(used + before))
    }

    /// "for 1h": once, and a second time where one of them may be how long it is repeated.
    fn length(&mut self, at: usize) -> Taken {
        let rest = self.rest(at);
        let Some(used) = self.context.term(rest, WordMeaning::For) else { return Ok(None) };
        let clock = first(after(rest, used)).and_then(super::clock::colons);
        let read = match clock {
            Some(clock) => Some((1, Amount { seconds: clock.second, ..Amount::default() })),
            None => {
                let words = after(rest, used);
                let alone =
                    |(used, _): &(usize, Amount)| clock::ends(after(words, *used), &self.context);
                amount(words, &self.context, M::Minutes)
                    .or_else(|| one_unit(words, &self.context).filter(alone))
            }
        };
        let Some((more, what)) = read else { return Ok(None) };
        let most = 1 + usize::from(self.found.repeat.is_some());
        if self.found.amounts.len() >= most {
            return Ok(None);
        }
        self.found.amounts.push(Said { what, text: typed(rest, used + more) });
        Ok(Some(used + more))
    }

    /// "until friday", and behind a date or time "to 13:30".
    fn ending(&mut self, at: usize) -> Taken {
        let rest = self.rest(at);
        let until = self.context.term(rest, WordMeaning::Until);
        let to = self.context.term(rest, WordMeaning::To).filter(|_| self.behind == at);
        let Some(used) = until.max(to) else { return Ok(None) };
        let sure = until.is_some() || self.found.time.is_some();
        let Some(more) = self.end_words(after(rest, used), sure)? else { return Ok(None) };
        let words = rest.get(used..used + more).unwrap_or_default();
        Ok(self.ends(words)?.then_some(used + more))
    }

    /// How many words say the end. What may be the start's date or time is left to it: "until 13:30 tomorrow",
    /// "daily from 9 march to 13 march 8:00". Where the end is not `sure`, a time is a start: "demain à 12h30".
    fn end_words(&self, words: &[Word<'a>], sure: bool) -> Taken {
        let found = &self.found;
        if let Some((used, _)) = clock(words, &self.context)?
            && (found.date.is_none() || !sure)
        {
            return Ok(sure.then_some(used));
        }
        if self.end_hour(words).is_some() {
            return Ok(Some(1));
        }
        let read =
            if found.repeat.is_some() && found.time.is_none() { date } else { super::date::end };
        Ok(read(words, &self.context)?.map(|(used, _)| used))
    }

    /// "10:00 to 11"
    fn end_hour(&self, words: &[Word<'a>]) -> Option<Clock> {
        let from = self.found.time.as_ref()?.what;
        let ended = clock::ends(after(words, 1), &self.context);
        clock::ending_hour(first(words).filter(|_| ended)?, from, &self.context)
    }

    /// Notes an end, if there is none of its kind.
    fn ends(&mut self, words: &[Word<'a>]) -> Result<bool, PhraseError> {
        let hour = self.end_hour(words).filter(|_| words.len() == 1).map(|hour| (1, hour));
        if let Some((used, what)) = clock(words, &self.context)?.or(hour)
            && used == words.len()
        {
            let free = self.found.end_time.is_none();
            self.found.end_time.get_or_insert(Said { what, text: typed(words, used) });
            return Ok(free);
        }
        let free = self.found.end_date.is_none();
        self.found.end_date.get_or_insert_with(|| words.to_vec());
        Ok(free)
    }

    /// `12:30-13:30`, "9 to 5pm", "from 9 to 5pm".
    fn two_times(&mut self, at: usize) -> Taken {
        if self.found.time.is_some() || self.found.end_time.is_some() {
            return Ok(None);
        }
        let rest = self.rest(at);
        let from = self.context.term(rest, WordMeaning::From);
        let from = from.or_else(|| self.context.term(rest, WordMeaning::AtTime)).unwrap_or(0);
        let words = after(rest, from);
        let found = two_clocks(words, &self.context).or_else(|| self.two_hours(words));
        let found = match found {
            None => self.bare_hours(at, words)?,
            found => found,
        };
        let Some((used, start, end)) = found else { return Ok(None) };
        let text = typed(rest, from + used);
        self.found.time = Some(Said { what: start, text: text.clone() });
        self.found.end_time = Some(Said { what: end, text });
        self.behind = at + from + used;
        Ok(Some(from + used))
    }

    /// `14-15`, "10 to 11": beside a date, and not where a month or a unit follows.
    fn bare_hours(
        &self,
        at: usize,
        words: &[Word<'a>],
    ) -> Result<Option<(usize, Clock, Clock)>, PhraseError> {
        let Some((used, from, to)) = clock::two_hours(words, &self.context) else {
            return Ok(None);
        };
        let behind = after(words, used);
        let counted = month_name(behind, &self.context).is_some()
            || super::length::unit(behind, &self.context, M::Minutes).is_some();
        if counted || !self.is_beside(at, behind) {
            return Ok(None);
        }
        let (start, end) = clock::hours(&typed(words, used), from, to, &self.context)?;
        Ok(Some((used, start, end)))
    }

    /// Is there a date or a repetition before this word, or do the words begin with one?
    fn is_beside(&self, at: usize, behind: &[Word<'a>]) -> bool {
        let dated = || match date(behind, &self.context) {
            Ok(Some((_, span))) => span.unit == Unit::Day && !span.weak,
            _ => false,
        };
        self.behind == at || dated() || matches!(repeat(behind, &self.context), Ok(Some(_)))
    }

    /// "9 to 5pm", as if it were one word.
    fn two_hours(&self, words: &[Word<'a>]) -> Option<(usize, Clock, Clock)> {
        let hour = first(words).filter(|text| number(text, 2).is_some())?;
        let to = 1 + self.context.term(after(words, 1), WordMeaning::To)?;
        // A time and what may belong to it.
        let mut joined: Vec<Word> = after(words, to).iter().take(3).cloned().collect();
        let last = joined.first_mut().filter(|word| !word.quoted)?;
        last.folded = format!("{hour}-{}", last.folded);
        let (used, start, end) = two_clocks(&joined, &self.context)?;
        Some((to + used, start, end))
    }

    /// `2026-03-01..2026-03-05`, "5-7 march".
    fn two_dates(&mut self, at: usize) -> Taken {
        let (rest, context) = (self.rest(at), &self.context);
        let Some(word) = rest.first() else { return Ok(None) };
        if self.found.date.is_some() || self.found.end_date.is_some() {
            return Ok(None);
        }
        let sides = self.two_sides(rest, word).or_else(|| self.two_days(rest));
        let Some((from, to, used)) = sides else { return Ok(None) };
        let (Some((_, start)), Some(_)) = (when(&from, context)?, when(&to, context)?) else {
            return Ok(None);
        };
        let names = |words: &[Word]| super::date::weekday(words, context).is_some();
        if start.unit == Unit::Longer || (start.weak && !(names(&from) && names(&to))) {
            return Ok(None);
        }
        self.found.date = Some(Said { what: start, text: typed(rest, used) });
        self.found.end_date = Some(to);
        self.behind = at + used;
        Ok(Some(used))
    }

    /// "from 3 to 10 august", "3. bis 10. August".
    fn two_days(&self, rest: &[Word<'a>]) -> Option<(Sides<'a>, Sides<'a>, usize)> {
        let from = self.context.term(rest, WordMeaning::From).unwrap_or(0);
        let day = |at: usize| rest.get(at).filter(|word| day_number(&word.folded).is_some());
        let first = day(from)?;
        let to = from + 1 + self.context.term(after(rest, from + 1), WordMeaning::To)?;
        let named = after(rest, to + 1);
        let (day, (month, _)) = (day(to)?, month_name(named, &self.context)?);
        let year = named.get(month).filter(|word| super::digits::year(&word.folded).is_some());
        let behind = named.iter().take(month + usize::from(year.is_some()));
        let side = |day: &Word<'a>| {
            std::iter::once(day.clone()).chain(behind.clone().cloned()).collect::<Vec<_>>()
        };
        Some((side(first), side(day), to + 1 + behind.len()))
    }

    /// The words of both dates, and how many words they were.
    fn two_sides(
        &self,
        rest: &[Word<'a>],
        word: &Word<'a>,
    ) -> Option<(Sides<'a>, Sides<'a>, usize)> {
        const DASHES: [char; 2] = ['-', '–'];
        if let Some((from, to)) = word.text.split_once("..") {
            return Some((vec![Word::new(from)], vec![Word::new(to)], 1));
        }
        let is_month = |word: Option<&Word<'a>>| {
            word.is_some_and(|word| month_name(std::slice::from_ref(word), &self.context).is_some())
        };
        // "aug 1-15" and "1-15 aug", of this year or another.
        let month_first = is_month(Some(word));
        let (days, month) = if month_first { (rest.get(1)?, 0) } else { (word, 1) };
        let (from, to) = days.text.trim_end_matches(',').split_once(DASHES)?;
        if day_number(from).is_some() && day_number(to).is_some() && is_month(rest.get(month)) {
            let year = rest.get(2).filter(|word| super::digits::year(&word.folded).is_some());
            let side = |day| {
                let named = rest.get(month).cloned().into_iter();
                std::iter::once(Word::new(day)).chain(named).chain(year.cloned()).collect()
            };
            return Some((side(from), side(to), 2 + usize::from(year.is_some())));
        }
        // `mon-fri`
        let weekday = |text| super::date::weekday(&[Word::new(text)], &self.context).is_some();
        if !month_first && weekday(from) && weekday(to) {
            return Some((vec![Word::new(from)], vec![Word::new(to)], 1));
        }
        // `1.8.-15.8.`
        let numeric = |text: &str| text.contains(['.', '/']) && !text.contains(DASHES);
        (numeric(from) && numeric(to) && !month_first)
            .then(|| (vec![Word::new(from)], vec![Word::new(to)], 1))
    }
}

/// `+05:30`, `UTC+2`: behind a time and a blank.
fn is_offset(text: &str) -> bool {
    let utc = Vocabulary::common().forms(WordMeaning::Utc).iter();
    let named = utc.map(|name| fold(name)).find_map(|name| text.strip_prefix(name.as_str()));
    let Some(digits) = named.unwrap_or(text).strip_prefix(['+', '-', '−']) else { return false };
    let plain = number(digits, 4).is_some_and(|_| named.is_some() || digits.len() == 4);
    clock::colons(digits).is_some() || plain
}
