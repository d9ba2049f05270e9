//! Windows and moments from a phrase that is nothing else.

use super::clock::clock;
use super::date::{Span, Unit, present, when};
use super::language::Language;
use super::reading::{Context, Word, after, shown, unknown};
use super::vocabulary::WordMeaning;
use super::{Expected, PhraseError};
use larder_time::civil::{Civil, DAY};

/// More words than this are no date, however long they are looked at.
const WORDS: usize = 40;

/// A stretch of clock time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its beginning.
    pub from: Civil,
    /// Its end, exclusive and never before its beginning; [`Civil::MAX`] if it is open.
    pub to: Civil,
    /// It depends on when it is said.
    pub relative: bool,
}

/// A point in time, or a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The point; midnight of a day.
    pub at: Civil,
    /// It is a day without a time.
    pub date: bool,
    /// It depends on when it is said.
    pub relative: bool,
    /// It is a time of day alone, of today.
    pub clock: bool,
}

impl Window {
    /// Reads a date, a stretch of the calendar, a moment (which lasts a minute), or a range of two of them, of which one may
    /// be missing: `2026-W12`, `next month`, `today..+7d`, `2026-03-01..`, `monday to friday`.
    ///
    /// The day, week or month that ends a range belongs to it; a moment that ends one does not. What has no year or date at
    /// the end of a range is the next after its beginning: `friday..monday`, `22:00..02:00`. Distances (`+2w`) count from
    /// now, or at the end of a range from its beginning, unless that is one, too: `friday..+2w`.
    ///
    /// # Errors
    /// When it is none of them, is not in the calendar, or ends before it begins.
    pub fn parse(text: &str, now: Civil, language: &Language) -> Result<Window, PhraseError> {
        let context = Context::new(now, *language);
        if let Some((from, to)) = divided(text) {
            return between(text, from.trim(), to.trim(), &context);
        }
        let words = Word::all(text);
        match whole(&words, &context) {
            Ok(Some(span)) => {
                Ok(Window::of(if is_distance(&words) { stretched(span, now) } else { span }))
            }
            failed => match in_words(text, &words, &context) {
                Some(window) => window,
                None => Err(failed.err().unwrap_or_else(|| wrong(text, Expected::Window))),
            },
        }
    }

    fn of(span: Span) -> Window {
        Window { from: span.from, to: span.to, relative: span.relative }
    }
}

impl Moment {
    /// Reads a day or a point in time: `tomorrow 12:30`, `5 march`, `+90min`, `2026-03-05`.
    ///
    /// # Errors
    /// When it is neither, is longer than a day, or is not in the calendar.
    pub fn parse(text: &str, now: Civil, language: &Language) -> Result<Moment, PhraseError> {
        let context = Context::new(now, *language);
        let span = whole(&Word::all(text), &context)?;
        let span = span.ok_or_else(|| wrong(text, Expected::Moment))?;
        if span.unit == Unit::Longer {
            return Err(PhraseError::NotOneDay { text: shown(text) });
        }
        let clock = matches!(clock(&Word::all(text), &context), Ok(Some((used, _))) if used == text.split_whitespace().count());
        let (at, relative) = (span.from, span.relative);
        Ok(Moment { at, date: span.unit == Unit::Day, relative, clock })
    }

    /// Reads when something ends that begins at `start`: a time alone is on the day of the start, or in the night that follows; a
    /// weekday alone is the first that is not before it. Everything else counts from now, and may be before the start.
    ///
    /// # Errors
    /// As [`Moment::parse`].
    pub fn end_of(
        text: &str,
        start: Civil,
        now: Civil,
        language: &Language,
    ) -> Result<Moment, PhraseError> {
        let moment = Moment::parse(text, now, language)?;
        if moment.clock {
            let on = |day: i64| {
                Civil::midnight(day)
                    .plus(moment.at.seconds() - Civil::midnight(now.day()).seconds())
            };
            let (same, next) = (on(start.day()), on(start.day() + 1));
            let night = same < start && next.seconds() - start.seconds() <= DAY / 2;
            return Ok(Moment { at: if night { next } else { same }, ..moment });
        }
        let context = Context::new(now, *language);
        let weekly = whole(&Word::all(text), &context)?.is_some_and(|span| span.weekly);
        let weeks = (start.day() - moment.at.day() + 6).div_euclid(7).max(0);
        Ok(if weekly { Moment { at: moment.at.plus(weeks * 7 * DAY), ..moment } } else { moment })
    }
}

/// The window of two phrases, as two arguments give them; without the second one, of the first.
///
/// # Errors
/// As [`Window::parse`].
pub fn range(
    from: &str,
    to: Option<&str>,
    now: Civil,
    language: &Language,
) -> Result<Window, PhraseError> {
    let Some(to) = to else { return Window::parse(from, now, language) };
    let text = format!("{from}..{to}");
    let context = Context::new(now, *language);
    // `agenda today.. friday` has its dots already.
    let from = from.trim().trim_end_matches("..");
    between(&text, from, to.trim().trim_start_matches(".."), &context)
}

/// The two sides of `..`, of which the first may end with a dot of its own: `5.3...9.3.`
fn divided(text: &str) -> Option<(&str, &str)> {
    let at = text.find("..")?;
    let at = if text.get(at..)?.starts_with("...") { at + 1 } else { at };
    Some((text.get(..at)?, text.get(at + 2..)?))
}

/// What a distance alone means as a window: from now to there, with the day that ends it.
fn stretched(span: Span, now: Civil) -> Span {
    let here =
        if span.unit == Unit::Moment { Span::moment(now, false) } else { Span::day(now.day()) };
    let moment = span.unit == Unit::Moment;
    let end = |last: Span| if moment { last.from } else { last.to };
    match span.from < here.from {
        true => Span { to: end(here), ..span },
        false => Span { from: here.from, to: end(span), ..span },
    }
}

/// A text that is a phrase as a whole.
fn whole(words: &[Word], context: &Context) -> Result<Option<Span>, PhraseError> {
    if words.len() > WORDS {
        return Ok(None);
    }
    let all = |found: Option<(usize, Span)>| found.filter(|(used, _)| *used == words.len());
    let found = all(when(words, context)?).or_else(|| all(present(words, context)));
    Ok(found.map(|(_, span)| span))
}

/// A range whose sides are divided by a word: "monday to friday".
fn in_words(text: &str, words: &[Word], context: &Context) -> Option<Result<Window, PhraseError>> {
    let rest = context.skip(words, WordMeaning::From);
    for at in 0..rest.len().min(WORDS) {
        for term in [WordMeaning::To, WordMeaning::Until] {
            let Some(used) = context.term(after(rest, at), term) else { continue };
            let (before, behind) = (rest.get(..at)?, after(rest, at + used));
            let Ok(Some(from)) = whole(before, context) else { continue };
            return Some(ended(text, before, from, behind, context));
        }
    }
    None
}

fn between(text: &str, from: &str, to: &str, context: &Context) -> Result<Window, PhraseError> {
    let words = Word::all(to);
    if from.is_empty() {
        let to = whole(&words, context)?.ok_or_else(|| wrong(to, Expected::Window))?;
        return Ok(Window { from: Civil::MIN, to: end(to), relative: to.relative });
    }
    let begins = Word::all(from);
    let start = whole(&begins, context)?;
    let start = start.ok_or_else(|| wrong(from, Expected::Window))?;
    if to.is_empty() {
        return Ok(Window { to: Civil::MAX, ..Window::of(start) });
    }
    ended(text, &begins, start, &words, context)
}

/// Is it a distance: `+2w`?
fn is_distance(words: &[Word]) -> bool {
    words.first().is_some_and(|word| word.text.starts_with(['+', '-', '−']))
}

/// The window from a beginning, in these words, to what the others say.
fn ended(
    text: &str,
    begins: &[Word],
    start: Span,
    words: &[Word],
    context: &Context,
) -> Result<Window, PhraseError> {
    // From a week ago until a week from now: both count from now.
    let offset = if is_distance(begins) { context.offset } else { start.from };
    let later = Context { base: start.from, offset, fixed: !start.relative, ..*context };
    let mut last = whole(words, &later)?;
    if let Some(span) = last
        && span.unit == Unit::Moment
        && span.from < start.from
        && is_time(words, &later)
    {
        last = Some(Span { from: span.from.plus(larder_time::civil::DAY), ..span });
    }
    let last = last.ok_or_else(|| {
        let typed: Vec<&str> = words.iter().map(|word| word.text).collect();
        wrong(&typed.join(" "), Expected::Window)
    })?;
    let (from, to) = (start.from, end(last));
    // The day before ends where it begins.
    if to < from || (to == from && last.unit != Unit::Moment) {
        return Err(PhraseError::Backwards { text: shown(text) });
    }
    Ok(Window { from, to, relative: start.relative || last.relative })
}

/// Do the words say a time of day and no date?
pub(crate) fn is_time(words: &[Word], context: &Context) -> bool {
    let read = super::clock::clock(words, context);
    matches!(read, Ok(Some((used, _))) if used == words.len())
}

/// Where a range ends whose last part is this: behind a day, at a moment.
fn end(last: Span) -> Civil {
    if last.unit == Unit::Moment { last.from } else { last.to }
}

fn wrong(text: &str, expected: Expected) -> PhraseError {
    match text.trim() {
        "" => PhraseError::Empty { expected },
        text => unknown(text, expected),
    }
}
