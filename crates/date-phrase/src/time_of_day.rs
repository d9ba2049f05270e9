//! Times of day: `12:30`, `3pm`, `15h30`, `15 Uhr`, `noon`, and ranges of them in one word,
//! `12:30-13:30`.

use crate::context::{ParseResult, PhraseContext};
use crate::duration::{MLetter, match_duration};
use crate::error::PhraseError;
use crate::folding::{fold, is_form};
use crate::tokens::{PhraseToken, first_word, parse_number, skip_tokens, source_text};
use crate::vocabulary::{LanguageProperty, Vocabulary, WordMeaning};
use larder_time::civil::DAY_SECONDS;

/// A time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeOfDay {
    /// Seconds since midnight; a whole day for 24:00.
    pub(crate) second: i64,
    /// The time is given to the second.
    pub(crate) has_seconds: bool,
    /// The evidence for the half of the day.
    pub(crate) am_pm: AmPm,
}

/// The evidence whether a time is before or after noon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AmPm {
    /// It is stated: `3pm`, "noon".
    Stated,
    /// The 24-hour clock, unless a part of the day is named: `8:30`, "um 8".
    TwentyFourHour,
    /// None: "at 3".
    Ambiguous,
}

/// The half of a day of a 12-hour clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HalfDay {
    Am,
    Pm,
}

/// A part of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartOfDay {
    Morning,
    Midday,
    Afternoon,
    Evening,
    Night,
}

impl PartOfDay {
    /// Returns whether the part of the day lasts past midnight.
    pub(crate) fn is_night(self) -> bool {
        matches!(self, PartOfDay::Evening | PartOfDay::Night)
    }

    /// The time that the part of the day stands for if no time is given; the night stands for none.
    pub(crate) fn typical_time(self) -> Option<TimeOfDay> {
        let hour = match self {
            PartOfDay::Morning => 9,
            PartOfDay::Midday => 12,
            PartOfDay::Afternoon => 15,
            PartOfDay::Evening => 20,
            PartOfDay::Night => return None,
        };
        Some(TimeOfDay { am_pm: AmPm::Stated, ..full_hour(hour) })
    }
}

const PARTS_OF_DAY: [(WordMeaning, PartOfDay); 5] = [
    (WordMeaning::Morning, PartOfDay::Morning),
    (WordMeaning::Midday, PartOfDay::Midday),
    (WordMeaning::Afternoon, PartOfDay::Afternoon),
    (WordMeaning::Evening, PartOfDay::Evening),
    (WordMeaning::Night, PartOfDay::Night),
];

/// Matches "in the evening", "tonight", or the part in "Samstagabend".
pub(crate) fn match_part_of_day(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, PartOfDay)> {
    let found = PARTS_OF_DAY
        .iter()
        .filter_map(|(meaning, part)| Some((context.match_meaning(words, *meaning)?, *part)));
    let found = found.max_by_key(|(used, _)| *used);
    found.or_else(|| split_weekday_and_part(first_word(words)?, context).map(|(_, part)| (1, part)))
}

/// Splits a weekday and a part of the day in one word: "Samstagabend". In German, the word for
/// "morning" is that for "tomorrow" when it stands alone.
pub(crate) fn split_weekday_and_part<'t>(
    text: &'t str,
    context: &PhraseContext,
) -> Option<(&'t str, PartOfDay)> {
    let vocabulary = context.language.vocabulary();
    let named = |day: &str| {
        WordMeaning::WEEKDAYS.iter().any(|name| is_form(vocabulary.printed_name(*name, false), day))
    };
    let meanings = PARTS_OF_DAY.iter().chain(&[(WordMeaning::MorningSuffix, PartOfDay::Morning)]);
    let mut forms = meanings.flat_map(|(meaning, part)| {
        vocabulary.forms(*meaning).iter().map(move |form| (form, *part))
    });
    forms.find_map(|(ending, part)| {
        let day = text.strip_suffix(fold(ending).as_str())?;
        named(day).then_some((day, part))
    })
}

impl TimeOfDay {
    /// Adds minutes.
    fn add_minutes(self, minutes: i64) -> TimeOfDay {
        TimeOfDay { second: (self.second + minutes * 60).rem_euclid(DAY_SECONDS), ..self }
    }

    /// The error of a time that may be before or after noon.
    fn ambiguity_error(self, text: &str) -> PhraseError {
        let (hour, minute) = ((self.second / 3600) as u8, (self.second / 60 % 60) as u8);
        PhraseError::AmbiguousHour { text: text.to_string(), hour, minute }
    }

    /// Resolves the half of the day by a part of the day: 8 in the evening is 20:00.
    ///
    /// # Errors
    /// When the time may be before or after noon.
    pub(crate) fn resolve_am_pm(
        self,
        part: Option<PartOfDay>,
        text: &str,
    ) -> Result<TimeOfDay, PhraseError> {
        let hour = self.second / 3600;
        if self.am_pm == AmPm::Stated || hour > 12 {
            return Ok(self);
        }
        match (part, hour) {
            (Some(PartOfDay::Midday), 1..4)
            | (Some(PartOfDay::Afternoon), 1..12)
            | (Some(PartOfDay::Evening | PartOfDay::Night), 4..12) => {
                Ok(TimeOfDay { second: self.second + DAY_SECONDS / 2, am_pm: AmPm::Stated, ..self })
            }
            (Some(PartOfDay::Morning), 1..12)
            | (Some(PartOfDay::Midday), 4..)
            | (Some(PartOfDay::Afternoon), 12) => Ok(self),
            // "heute Nacht um 12" is midnight.
            (Some(PartOfDay::Evening | PartOfDay::Night), 12)
                if self.am_pm == AmPm::TwentyFourHour =>
            {
                Ok(TimeOfDay { second: self.second - DAY_SECONDS / 2, am_pm: AmPm::Stated, ..self })
            }
            _ if self.am_pm == AmPm::TwentyFourHour => Ok(self),
            _ => Err(self.ambiguity_error(text)),
        }
    }
}

/// Matches a part of the day after a time; but not in "20:00 evening gala".
pub(crate) fn match_trailing_part_of_day(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, PartOfDay)> {
    match_part_of_day(words, context)
        .filter(|(used, _)| is_phrase_end(skip_tokens(words, *used), context))
}

/// Matches a time of day, with or without "at" before it and a part of the day after it.
///
/// # Errors
/// When the time may be before or after noon: "at 3".
pub(crate) fn match_time(words: &[PhraseToken], context: &PhraseContext) -> ParseResult<TimeOfDay> {
    let Some((used, time)) = match_time_or_ambiguous(words, context) else { return Ok(None) };
    let part = match_trailing_part_of_day(skip_tokens(words, used), context);
    let time = time.resolve_am_pm(part.map(|(_, part)| part), &source_text(words, used))?;
    Ok(Some((used + part.map_or(0, |(more, _)| more), time)))
}

/// Like [`match_time`], without resolving an ambiguous hour.
pub(crate) fn match_time_or_ambiguous(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, TimeOfDay)> {
    if let Some(found) = match_explicit_time(words, context) {
        return Some(found);
    }
    let at = context.match_meaning(words, WordMeaning::AtTime);
    let rest = skip_tokens(words, at.unwrap_or(0));
    if let Some((used, time)) = match_quarter_hour(rest, context) {
        return Some((at.unwrap_or(0) + used, time));
    }
    let text = first_word(rest)?;
    let next = skip_tokens(rest, 1);
    // "8 in the evening"
    let parted = match_trailing_part_of_day(next, context).is_some()
        && rest.first().is_some_and(|word| !word.has_stop);
    let at = at.or(parted.then_some(0))?;
    if let Some((used, time)) = match_explicit_time(rest, context) {
        return Some((at + used, time));
    }
    if let Some(time) = parse_dotted_time(text) {
        return Some((at + 1, time));
    }
    // "v 18 h". Without "at" this may be a duration.
    if let Some(time) = parse_explicit_time(&format!("{text}h"))
        && first_word(next) == Some("h")
        && !rest.first()?.has_stop
        && context.match_meaning(words, WordMeaning::AtTime).is_some()
    {
        return Some((at + 2, time));
    }
    if let Some(time) =
        parse_compact_time(text).filter(|_| text.len() == 4 && is_phrase_end(next, context))
    {
        return Some((at + 1, time));
    }
    // "um ein Uhr"
    let stopped = rest.first().is_some_and(|word| word.has_stop);
    let clock = context.match_meaning(next, WordMeaning::OClock).filter(|_| !stopped);
    let ones = if clock.is_some() { ONE_NAMES } else { CERTAIN_ONE_NAMES };
    let named = hour_by_name(rest, ones, context);
    let hour = parse_number(text, 2).filter(|hour| *hour <= 24).or(named)?;
    // A number without a unit is a time only if no street name can follow.
    let is_followed_by_length = || match_duration(next, context, MLetter::Minutes).is_some();
    let is_marked = parted || clock.is_some();
    if !is_marked && !is_phrase_end(next, context) && !is_followed_by_length() {
        return None;
    }
    let english = has_twelve_hour_clock(context)
        && (at == 0 || context.match_own_meaning(words, WordMeaning::AtTime).is_some());
    Some((at + 1 + clock.unwrap_or(0), hour_time(hour, english)))
}

/// The meanings of the names of one before a sign of a time; some forms are articles, too.
const ONE_NAMES: &[WordMeaning] = &[WordMeaning::HourOne, WordMeaning::One];
/// The meanings of the names of one that are certainly hours after "at".
const CERTAIN_ONE_NAMES: &[WordMeaning] = &[WordMeaning::HourOne];

/// Returns the hour that the first word names, "five"; `ones` are the meanings of the names of one.
fn hour_by_name(
    words: &[PhraseToken],
    ones: &[WordMeaning],
    context: &PhraseContext,
) -> Option<i64> {
    let one = || {
        ones.iter().any(|meaning| context.match_meaning(words, *meaning) == Some(1)).then_some(1)
    };
    context.match_number(words).map(|(_, hour)| hour).or_else(one)
}

/// Matches the hour of "14" at the end of a phrase, and of "um 14" anywhere in languages where the
/// word for "at" does not begin an address.
pub(crate) fn match_bare_hour(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, TimeOfDay)> {
    let street =
        context.language.vocabulary().has_property(LanguageProperty::NumberAfterAtIsStreet);
    let at = context.match_own_meaning(words, WordMeaning::AtTime).filter(|_| !street).unwrap_or(0);
    let rest = skip_tokens(words, at);
    let hour = parse_number(first_word(rest)?, 2).filter(|hour| *hour < 24)?;
    let ended = at > 0 || rest.first()?.has_stop || is_phrase_end(skip_tokens(rest, 1), context);
    ended.then(|| (at + 1, hour_time(hour, has_twelve_hour_clock(context))))
}

/// Matches "half past eight", "halb neun", "viertel nach drei". In every language, the hour is one
/// of twelve.
fn match_quarter_hour(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, TimeOfDay)> {
    const QUARTERS: [(WordMeaning, i64); 5] = [
        (WordMeaning::HalfPast, 30),
        (WordMeaning::HalfTo, -30),
        (WordMeaning::QuarterPast, 15),
        (WordMeaning::QuarterTo, -15),
        (WordMeaning::ThreeQuartersTo, -45),
    ];
    let (used, minutes) = QUARTERS
        .iter()
        .find_map(|(meaning, away)| Some((context.match_meaning(words, *meaning)?, *away)))?;
    let rest = skip_tokens(words, used);
    let text = first_word(rest)?;
    let named = hour_by_name(rest, ONE_NAMES, context);
    // "half past 3pm"
    if let Some(time) = parse_explicit_time(text).filter(|time| time.am_pm == AmPm::Stated) {
        return (time.second % 3600 == 0).then(|| (used + 1, time.add_minutes(minutes)));
    }
    let hour = parse_number(text, 2).or(named).filter(|hour| (1..=24).contains(hour))?;
    let following = skip_tokens(rest, 1);
    // "half past three pm"
    let half = first_word(following).and_then(parse_am_pm);
    if let Some(half) =
        half.filter(|_| context.match_own_meaning(following, WordMeaning::OnDate).is_none())
    {
        return Some((
            used + 2,
            parse_twelve_hour_time(&hour.to_string(), half)?.add_minutes(minutes),
        ));
    }
    let more = context.match_meaning(following, WordMeaning::OClock).unwrap_or(0);
    let ended = more > 0
        || rest.first().is_some_and(|word| word.has_stop)
        || is_phrase_end(following, context)
        || match_part_of_day(following, context).is_some();
    let time = hour_time(hour, true).add_minutes(minutes);
    ended.then_some((used + 1 + more, time))
}

/// Returns the time at this hour; with a 12-hour clock it is ambiguous.
fn hour_time(hour: i64, english: bool) -> TimeOfDay {
    let open = english && (1..=12).contains(&hour);
    TimeOfDay {
        am_pm: if open { AmPm::Ambiguous } else { AmPm::TwentyFourHour },
        ..full_hour(hour)
    }
}

/// Returns whether hours are counted to twelve twice a day.
fn has_twelve_hour_clock(context: &PhraseContext) -> bool {
    context.language.vocabulary().has_property(LanguageProperty::TwelveHourClock)
}

/// Matches two hours without any sign of a time: `14-15`, "10 to 11".
pub(crate) fn match_hour_range(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, i64, i64)> {
    let hour = |text: &str| parse_number(text, 2).filter(|hour| *hour <= 24);
    let text = first_word(words)?;
    if let Some((from, to)) = text.split_once(['-', '–', '—']) {
        return Some((1, hour(from)?, hour(to)?));
    }
    let to = 1 + context.match_meaning(skip_tokens(words, 1), WordMeaning::To)?;
    Some((1 + to, hour(text)?, first_word(skip_tokens(words, to)).and_then(hour)?))
}

/// Converts two hours to times.
///
/// # Errors
/// When both may be before or after noon.
pub(crate) fn resolve_hour_range(
    text: &str,
    from: i64,
    to: i64,
    context: &PhraseContext,
) -> Result<(TimeOfDay, TimeOfDay), PhraseError> {
    let half = |hour| (1..=12).contains(&hour);
    if has_twelve_hour_clock(context) && half(from) && half(to) {
        return Err(full_hour(from).ambiguity_error(text));
    }
    Ok((full_hour(from), full_hour(to)))
}

/// Parses the hour after a start time, `11` of "10:00 to 11". With a 12-hour clock, the half of the
/// day is the one that makes the hour later than the start.
pub(crate) fn parse_end_hour(
    text: &str,
    from: TimeOfDay,
    context: &PhraseContext,
) -> Option<TimeOfDay> {
    let hour = parse_number(text, 2).filter(|hour| *hour <= 24)?;
    let both = [hour, hour + 12];
    let halves = if has_twelve_hour_clock(context) && (1..=12).contains(&hour) { 2 } else { 1 };
    let later = both.into_iter().take(halves).map(full_hour).find(|to| to.second > from.second);
    Some(later.unwrap_or(full_hour(hour)))
}

/// Parses a number that is a time only next to a date: `1400`, and outside of English `14.30`.
pub(crate) fn parse_contextual_time(text: &str, context: &PhraseContext) -> Option<TimeOfDay> {
    let plain = parse_compact_time(text).filter(|time| text.len() == 4 && time.second % 300 == 0);
    plain.or_else(|| parse_dotted_time(text).filter(|_| !has_twelve_hour_clock(context)))
}

/// Returns whether the text has the form of a time that does not exist: `25:00`, `13pm`,
/// `12:30-12:75`.
pub(crate) fn is_invalid_time(text: &str) -> bool {
    let shaped = |text: &str| {
        let bare = strip_am_pm(text).map(|(bare, _)| bare);
        let mut parts = bare.unwrap_or(text).split(':');
        let hour = parts.next().is_some_and(|hour| parse_number(hour, 2).is_some());
        let (mut rest, mut others) = (0, true);
        for part in parts {
            rest += 1;
            others &= parse_two_digits(part).is_some();
        }
        hour && others && rest <= 2 && (rest > 0 || bare.is_some())
    };
    text.split(['-', '–', '—']).all(|text| shaped(text) || parse_number(text, 2).is_some())
        && text
            .split(['-', '–', '—'])
            .any(|text| shaped(text) && parse_explicit_time(text).is_none())
}

/// Returns whether the words begin with hours that are a length and no time of day: the `1h` of
/// "Meet tomorrow 1h", but not `15h`, and nothing in languages that write times so.
pub(crate) fn is_hour_length(words: &[PhraseToken], context: &PhraseContext) -> bool {
    let hours = first_word(words).and_then(|text| text.strip_suffix('h'));
    let is_short = hours.and_then(|text| parse_number(text, 2)).is_some_and(|hours| hours <= 12);
    is_short
        && !context.language.vocabulary().has_property(LanguageProperty::HourLetterIsTime)
        && context.match_meaning(skip_tokens(words, 1), WordMeaning::To).is_none()
}

/// Returns whether a phrase ends here: no word, a mark, or a word that begins a phrase follows.
pub(crate) fn is_phrase_end(words: &[PhraseToken], context: &PhraseContext) -> bool {
    const FOLLOWING_MEANINGS: &[WordMeaning] = &[
        WordMeaning::OnDate,
        WordMeaning::For,
        WordMeaning::WithinPrefix,
        WordMeaning::With,
        WordMeaning::Until,
        WordMeaning::To,
        WordMeaning::Every,
        WordMeaning::AtPlace,
        WordMeaning::From,
        WordMeaning::Today,
        WordMeaning::Tomorrow,
        WordMeaning::Daily,
        WordMeaning::Weekly,
        WordMeaning::Next,
        WordMeaning::Alarm,
    ];
    let Some(text) = first_word(words) else { return words.is_empty() };
    text.starts_with(['#', '!'])
        || FOLLOWING_MEANINGS.iter().any(|meaning| context.match_meaning(words, *meaning).is_some())
}

/// Matches a time of day without "at" before it.
fn match_explicit_time(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, TimeOfDay)> {
    let text = first_word(words)?;
    for (meaning, second) in [(WordMeaning::Noon, DAY_SECONDS / 2), (WordMeaning::Midnight, 0)] {
        if let Some(used) = context.match_meaning(words, meaning) {
            return Some((used, TimeOfDay { second, has_seconds: false, am_pm: AmPm::Stated }));
        }
    }
    let named = hour_by_name(words, CERTAIN_ONE_NAMES, context);
    let named_text = named.map(|hour| hour.to_string());
    let text = named_text.as_deref().unwrap_or(text);
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let rest = skip_tokens(words, 1);
    let alone = !words.first()?.has_stop;
    // "um 3 am Freitag": where "am" means "on", it does not mean the morning.
    if alone
        && context.match_own_meaning(rest, WordMeaning::OnDate).is_none()
        && let Some(half) = first_word(rest).and_then(parse_am_pm)
    {
        return Some((2, parse_twelve_hour_time(text, half)?));
    }
    // "deux heures" may be a duration.
    let is_length = named.is_some() && context.match_meaning(rest, WordMeaning::Hour).is_some();
    let clock = context.match_meaning(rest, WordMeaning::OClock).filter(|_| alone && !is_length);
    if let Some(used) = clock {
        let english = has_twelve_hour_clock(context);
        let hour =
            parse_number(text, 2).filter(|hour| *hour <= 24).map(|hour| hour_time(hour, english));
        let time = hour.or_else(|| parse_colon_time(text)).or_else(|| parse_dotted_time(text))?;
        return Some((1 + used, time));
    }
    Some((1, parse_explicit_time(text)?))
}

/// Matches two times in one word, `12:30-13:30`, `9-17h`, `3-4pm`, `noon-2pm`. The second may
/// include the next word: `9-17 Uhr`.
pub(crate) fn match_time_range(
    words: &[PhraseToken],
    context: &PhraseContext,
) -> Option<(usize, TimeOfDay, TimeOfDay)> {
    let text = first_word(words)?;
    let (from, to) = text.split_once(['-', '–', '—'])?;
    let mut rest = vec![PhraseToken::new(to)];
    rest.extend(skip_tokens(words, 1).iter().take(2).cloned());
    rest.first_mut()?.has_stop = words.first()?.has_stop;
    let start = match_explicit_time(&[PhraseToken::new(from)], context).map(|(_, time)| time);
    let hour = || Some((1, parse_end_hour(to, start?, context)?));
    let (used, to) = match_explicit_time(&rest, context).or_else(hour)?;
    let from = match (start, parse_number(from, 2)) {
        (Some(from), _) => from,
        (None, Some(hour)) => start_hour_before(hour, to, &source_text(&rest, used))?,
        (None, None) => return None,
    };
    Some((used, from, to))
}

/// Returns the hour at the start of a range, `9` of `9-17h`, `11` of `11-1pm`: in the same half of
/// the day if that is before the end.
fn start_hour_before(hour: i64, to: TimeOfDay, written: &str) -> Option<TimeOfDay> {
    let halves = written.to_ascii_lowercase().replace('.', "");
    if !halves.ends_with("pm") && !halves.ends_with("am") {
        return (hour <= 24).then(|| full_hour(hour));
    }
    let base = (1..=12).contains(&hour).then_some(hour % 12 * 3600)?;
    let later = base + DAY_SECONDS / 2;
    let second = if later < to.second { later } else { base };
    Some(TimeOfDay { second, has_seconds: false, am_pm: AmPm::Stated })
}

/// Parses a text that is certainly a time: `12:30`, `12:30:15`, `3pm`, `15h30`.
pub(crate) fn parse_explicit_time(text: &str) -> Option<TimeOfDay> {
    if let Some(time) = parse_colon_time(text) {
        return Some(time);
    }
    let text = text.strip_suffix('.').unwrap_or(text);
    if let Some((bare, half)) = strip_am_pm(text) {
        return parse_twelve_hour_time(bare, half);
    }
    let (hour, minute) = text.split_once('h')?;
    let minute = if minute.is_empty() { 0 } else { parse_two_digits(minute)? };
    time_from_parts(parse_number(hour, 2)?, minute, 0, false)
}

/// Splits off "am" or "pm" at the end.
fn strip_am_pm(text: &str) -> Option<(&str, HalfDay)> {
    let halves = [(WordMeaning::Am, HalfDay::Am), (WordMeaning::Pm, HalfDay::Pm)].into_iter();
    halves
        .flat_map(|(meaning, half)| {
            Vocabulary::shared_notation().forms(meaning).iter().map(move |e| (e, half))
        })
        .find_map(|(ending, half)| Some((text.strip_suffix(ending)?, half)))
}

pub(crate) fn is_am_pm(text: &str) -> bool {
    parse_am_pm(text).is_some()
}

fn parse_am_pm(text: &str) -> Option<HalfDay> {
    let text = text.strip_suffix('.').unwrap_or(text);
    strip_am_pm(text).filter(|(bare, _)| bare.is_empty()).map(|(_, half)| half)
}

/// Parses the hour, or hour and minute, of a 12-hour clock: `3`, `3:30`.
fn parse_twelve_hour_time(text: &str, half: HalfDay) -> Option<TimeOfDay> {
    let (hour, rest) = text.split_once([':', '.']).unwrap_or((text, ""));
    let minute = if rest.is_empty() { 0 } else { parse_two_digits(rest)? };
    let hour = parse_number(hour, 2).filter(|hour| (1..=12).contains(hour))? % 12;
    let hour = if half == HalfDay::Pm { hour + 12 } else { hour };
    time_from_parts(hour, minute, 0, false).map(|time| TimeOfDay { am_pm: AmPm::Stated, ..time })
}

/// Parses `12:30`, `12:30:15`.
pub(crate) fn parse_colon_time(text: &str) -> Option<TimeOfDay> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let mut parts = text.split(':');
    let hour = parse_number(parts.next()?, 2)?;
    let minute = parse_two_digits(parts.next()?)?;
    let second = parts.next().map(parse_two_digits);
    if parts.next().is_some() || second == Some(None) {
        return None;
    }
    time_from_parts(hour, minute, second.flatten().unwrap_or(0), second.is_some())
}

/// Parses `12.30`, where a time is expected.
fn parse_dotted_time(text: &str) -> Option<TimeOfDay> {
    let (hour, minute) = text.split_once('.')?;
    time_from_parts(parse_number(hour, 2)?, parse_two_digits(minute)?, 0, false)
}

/// Parses `1230`, `123015`, after the T of a date and where a time is expected.
pub(crate) fn parse_compact_time(text: &str) -> Option<TimeOfDay> {
    let pair = |at: usize| text.get(at..at + 2).and_then(parse_two_digits);
    match text.len() {
        4 => time_from_parts(pair(0)?, pair(2)?, 0, false),
        6 => time_from_parts(pair(0)?, pair(2)?, pair(4)?, true),
        _ => None,
    }
}

fn parse_two_digits(text: &str) -> Option<i64> {
    parse_number(text, 2).filter(|_| text.len() == 2)
}

fn full_hour(hour: i64) -> TimeOfDay {
    TimeOfDay { second: hour * 3600, has_seconds: false, am_pm: AmPm::TwentyFourHour }
}

/// The time of an hour, minute and second, up to 24:00.
fn time_from_parts(hour: i64, minute: i64, second: i64, exact: bool) -> Option<TimeOfDay> {
    let sum = hour * 3600 + minute * 60 + second;
    (minute < 60 && second < 60 && sum <= DAY_SECONDS).then_some(TimeOfDay {
        second: sum,
        has_seconds: exact,
        am_pm: AmPm::TwentyFourHour,
    })
}
