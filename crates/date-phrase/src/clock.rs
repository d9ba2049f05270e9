//! Times of day: `12:30`, `3pm`, `15h30`, `15 Uhr`, `noon`, and two of them in one word, `12:30-13:30`.

use super::PhraseError;
use super::folding::{fold, is_form};
use super::reading::{Context, Read, Word, after, first, number, typed};
use super::vocabulary::{LanguageProperty, Vocabulary, WordMeaning};
use larder_time::civil::DAY;

/// A time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Seconds since midnight; all of a day for 24:00.
    pub(crate) second: i64,
    /// Said to the second.
    pub(crate) exact: bool,
    /// How it says whether it is before or after noon.
    pub(crate) noon: Noon,
}

/// What a time says of noon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noon {
    /// Before it or after it: `3pm`, "noon".
    Said,
    /// As a clock of 24 hours, unless a part of the day says more: `8:30`, "um 8".
    Clock,
    /// Nothing: "at 3".
    Open,
}

/// Half of a day, as people say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Morning,
    Afternoon,
}

/// A part of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Morning,
    Noon,
    Afternoon,
    Evening,
    Night,
}

impl Part {
    /// Does it go on behind midnight?
    pub(crate) fn is_night(self) -> bool {
        matches!(self, Part::Evening | Part::Night)
    }

    /// The hour that is meant where no other is said; a night has none.
    pub(crate) fn hour(self) -> Option<Clock> {
        let hour = match self {
            Part::Morning => 9,
            Part::Noon => 12,
            Part::Afternoon => 15,
            Part::Evening => 20,
            Part::Night => return None,
        };
        Some(Clock { noon: Noon::Said, ..whole(hour) })
    }
}

const PARTS: [(WordMeaning, Part); 5] = [
    (WordMeaning::Morning, Part::Morning),
    (WordMeaning::Midday, Part::Noon),
    (WordMeaning::Afternoon, Part::Afternoon),
    (WordMeaning::Evening, Part::Evening),
    (WordMeaning::Night, Part::Night),
];

/// "in the evening", "tonight", and that of "Samstagabend".
pub(crate) fn part(words: &[Word], context: &Context) -> Option<(usize, Part)> {
    let found = PARTS.iter().filter_map(|(term, part)| Some((context.term(words, *term)?, *part)));
    let found = found.max_by_key(|(used, _)| *used);
    found.or_else(|| compound(first(words)?, context).map(|(_, part)| (1, part)))
}

/// A weekday and a part of the day in one word, as German and its kin write them: "Samstagabend". In German the morning
/// is the word for tomorrow then.
pub(crate) fn compound<'t>(text: &'t str, context: &Context) -> Option<(&'t str, Part)> {
    let own = context.language.own();
    let named = |day: &str| {
        WordMeaning::WEEKDAYS.iter().any(|name| is_form(own.printed_name(*name, false), day))
    };
    let terms = PARTS.iter().chain(&[(WordMeaning::MorningSuffix, Part::Morning)]);
    let mut forms =
        terms.flat_map(|(term, part)| own.forms(*term).iter().map(move |form| (form, *part)));
    forms.find_map(|(ending, part)| {
        let day = text.strip_suffix(fold(ending).as_str())?;
        named(day).then_some((day, part))
    })
}

impl Clock {
    /// So many minutes later.
    fn moved(self, minutes: i64) -> Clock {
        Clock { second: (self.second + minutes * 60).rem_euclid(DAY), ..self }
    }

    /// It could be before or after noon.
    fn half_of_day(self, text: &str) -> PhraseError {
        let (hour, minute) = ((self.second / 3600) as u8, (self.second / 60 % 60) as u8);
        PhraseError::HalfOfDay { text: text.to_string(), hour, minute }
    }

    /// The time in a part of the day, if one is said: 8 in the evening is 20.
    ///
    /// # Errors
    /// When it could be before or after noon.
    pub(crate) fn within(self, part: Option<Part>, text: &str) -> Result<Clock, PhraseError> {
        let hour = self.second / 3600;
        if self.noon == Noon::Said || hour > 12 {
            return Ok(self);
        }
        match (part, hour) {
            (Some(Part::Noon), 1..4)
            | (Some(Part::Afternoon), 1..12)
            | (Some(Part::Evening | Part::Night), 4..12) => {
                Ok(Clock { second: self.second + DAY / 2, noon: Noon::Said, ..self })
            }
            (Some(Part::Morning), 1..12)
            | (Some(Part::Noon), 4..)
            | (Some(Part::Afternoon), 12) => Ok(self),
            _ if self.noon == Noon::Clock => Ok(self),
            _ => Err(self.half_of_day(text)),
        }
    }
}

/// A part of the day behind a time; not that of "20:00 evening gala".
pub(crate) fn part_behind(words: &[Word], context: &Context) -> Option<(usize, Part)> {
    part(words, context).filter(|(used, _)| ends(after(words, *used), context))
}

/// A time of day, with "at" before it or without, and a part of the day behind it.
///
/// # Errors
/// When it could be before or after noon: "at 3".
pub(crate) fn clock(words: &[Word], context: &Context) -> Read<Clock> {
    let Some((used, clock)) = open(words, context) else { return Ok(None) };
    let part = part_behind(after(words, used), context);
    let clock = clock.within(part.map(|(_, part)| part), &typed(words, used))?;
    Ok(Some((used + part.map_or(0, |(more, _)| more), clock)))
}

/// The same, of which may not be known whether it is before or after noon.
pub(crate) fn open(words: &[Word], context: &Context) -> Option<(usize, Clock)> {
    if let Some(found) = plain(words, context) {
        return Some(found);
    }
    let at = context.term(words, WordMeaning::AtTime);
    let rest = after(words, at.unwrap_or(0));
    if let Some((used, clock)) = quarters(rest, context) {
        return Some((at.unwrap_or(0) + used, clock));
    }
    let text = first(rest)?;
    let next = after(rest, 1);
    // "8 in the evening"
    let parted =
        part_behind(next, context).is_some() && rest.first().is_some_and(|word| !word.stop);
    let at = at.or(parted.then_some(0))?;
    if let Some((used, clock)) = plain(rest, context) {
        return Some((at + used, clock));
    }
    if let Some(clock) = dotted(text) {
        return Some((at + 1, clock));
    }
    // "v 18 h"; without "at" that may be how long it takes.
    if let Some(clock) = marked(&format!("{text}h"))
        && first(next) == Some("h")
        && !rest.first()?.stop
        && context.term(words, WordMeaning::AtTime).is_some()
    {
        return Some((at + 2, clock));
    }
    if let Some(clock) = compact(text).filter(|_| text.len() == 4 && ends(next, context)) {
        return Some((at + 1, clock));
    }
    let named = context.count(rest).map(|(_, hour)| hour);
    let hour = number(text, 2).filter(|hour| *hour <= 24).or(named)?;
    // A number alone is a time only where no name of a street can follow.
    if !parted && !ends(next, context) {
        return None;
    }
    let english =
        is_english(context) && (at == 0 || context.own_term(words, WordMeaning::AtTime).is_some());
    Some((at + 1, hour_of(hour, english)))
}

/// The hour of "14" where a phrase ends, and of "um 14" wherever it stands, where such a word goes before no street.
pub(crate) fn hour_alone(words: &[Word], context: &Context) -> Option<(usize, Clock)> {
    let street = context.language.own().has_property(LanguageProperty::NumberAfterAtIsStreet);
    let at = context.own_term(words, WordMeaning::AtTime).filter(|_| !street).unwrap_or(0);
    let rest = after(words, at);
    let hour = number(first(rest)?, 2).filter(|hour| *hour < 24)?;
    let ended = at > 0 || rest.first()?.stop || ends(after(rest, 1), context);
    ended.then(|| (at + 1, hour_of(hour, is_english(context))))
}

/// "half past eight", "halb neun", "viertel nach drei".
fn quarters(words: &[Word], context: &Context) -> Option<(usize, Clock)> {
    const QUARTERS: [(WordMeaning, i64); 5] = [
        (WordMeaning::HalfPast, 30),
        (WordMeaning::HalfTo, -30),
        (WordMeaning::QuarterPast, 15),
        (WordMeaning::QuarterTo, -15),
        (WordMeaning::ThreeQuartersTo, -45),
    ];
    let (used, minutes) =
        QUARTERS.iter().find_map(|(term, away)| Some((context.term(words, *term)?, *away)))?;
    let rest = after(words, used);
    let text = first(rest)?;
    let one = || {
        let one = [WordMeaning::HourOne, WordMeaning::One];
        one.iter().any(|term| context.term(rest, *term) == Some(1)).then_some(1)
    };
    let named = context.count(rest).map(|(_, hour)| hour).or_else(one);
    // "half past 3pm"
    if let Some(clock) = marked(text).filter(|clock| clock.noon == Noon::Said) {
        return (clock.second % 3600 == 0).then(|| (used + 1, clock.moved(minutes)));
    }
    let hour = number(text, 2).or(named).filter(|hour| (1..=24).contains(hour))?;
    let behind = after(rest, 1);
    // "half past three pm"
    let half = first(behind).and_then(half_of_day);
    if let Some(half) = half.filter(|_| context.own_term(behind, WordMeaning::OnDate).is_none()) {
        return Some((used + 2, halved(&hour.to_string(), half)?.moved(minutes)));
    }
    let more = context.term(behind, WordMeaning::OClock).unwrap_or(0);
    let ended = more > 0
        || rest.first().is_some_and(|word| word.stop)
        || ends(behind, context)
        || part(behind, context).is_some();
    let clock = hour_of(hour, is_english(context)).moved(minutes);
    ended.then_some((used + 1 + more, clock))
}

/// An hour, which people who count to twelve twice a day may mean in both halves of it.
fn hour_of(hour: i64, english: bool) -> Clock {
    let open = english && (1..=12).contains(&hour);
    Clock { noon: if open { Noon::Open } else { Noon::Clock }, ..whole(hour) }
}

/// Do people count to twelve twice a day?
fn is_english(context: &Context) -> bool {
    context.language.own().has_property(LanguageProperty::TwelveHourClock)
}

/// Two hours with nothing that says that they are, `14-15`, "10 to 11".
pub(crate) fn two_hours(words: &[Word], context: &Context) -> Option<(usize, i64, i64)> {
    let hour = |text: &str| number(text, 2).filter(|hour| *hour <= 24);
    let text = first(words)?;
    if let Some((from, to)) = text.split_once(['-', '–', '—']) {
        return Some((1, hour(from)?, hour(to)?));
    }
    let to = 1 + context.term(after(words, 1), WordMeaning::To)?;
    Some((1 + to, hour(text)?, first(after(words, to)).and_then(hour)?))
}

/// Two hours as times.
///
/// # Errors
/// When both could be before or after noon.
pub(crate) fn hours(
    text: &str,
    from: i64,
    to: i64,
    context: &Context,
) -> Result<(Clock, Clock), PhraseError> {
    let half = |hour| (1..=12).contains(&hour);
    if is_english(context) && half(from) && half(to) {
        return Err(whole(from).half_of_day(text));
    }
    Ok((whole(from), whole(to)))
}

/// The hour that ends what begins at a time, `11` of "10:00 to 11": in English in the half of the day in which it is later.
pub(crate) fn ending_hour(text: &str, from: Clock, context: &Context) -> Option<Clock> {
    let hour = number(text, 2).filter(|hour| *hour <= 24)?;
    let both = [hour, hour + 12];
    let halves = if is_english(context) && (1..=12).contains(&hour) { 2 } else { 1 };
    let later = both.into_iter().take(halves).map(whole).find(|to| to.second > from.second);
    Some(later.unwrap_or(whole(hour)))
}

/// A time that only what stands beside it makes one: `1400`, and outside of English `14.30`.
pub(crate) fn beside(text: &str, context: &Context) -> Option<Clock> {
    let plain = compact(text).filter(|clock| text.len() == 4 && clock.second % 300 == 0);
    plain.or_else(|| dotted(text).filter(|_| !is_english(context)))
}

/// Has it the shape of a time, and is none? `25:00`, `13pm`, `12:30-12:75`.
pub(crate) fn is_broken(text: &str) -> bool {
    let shaped = |text: &str| {
        let bare = strip_half(text).map(|(bare, _)| bare);
        let mut parts = bare.unwrap_or(text).split(':');
        let hour = parts.next().is_some_and(|hour| number(hour, 2).is_some());
        let (mut rest, mut others) = (0, true);
        for part in parts {
            rest += 1;
            others &= two_digits(part).is_some();
        }
        hour && others && rest <= 2 && (rest > 0 || bare.is_some())
    };
    text.split(['-', '–', '—']).all(|text| shaped(text) || number(text, 2).is_some())
        && text.split(['-', '–', '—']).any(|text| shaped(text) && marked(text).is_none())
}

/// Does a phrase end here? What follows is nothing, a mark, or begins with a small word.
pub(crate) fn ends(words: &[Word], context: &Context) -> bool {
    const FOLLOW: &[WordMeaning] = &[
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
    let Some(text) = first(words) else { return words.is_empty() };
    text.starts_with(['#', '!']) || FOLLOW.iter().any(|term| context.term(words, *term).is_some())
}

/// A time of day without anything before it.
fn plain(words: &[Word], context: &Context) -> Option<(usize, Clock)> {
    let text = first(words)?;
    for (term, second) in [(WordMeaning::Noon, DAY / 2), (WordMeaning::Midnight, 0)] {
        if let Some(used) = context.term(words, term) {
            return Some((used, Clock { second, exact: false, noon: Noon::Said }));
        }
    }
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let rest = after(words, 1);
    let alone = !words.first()?.stop;
    // "um 3 am Freitag": where "am" means "on", it does not mean the morning.
    if alone
        && context.own_term(rest, WordMeaning::OnDate).is_none()
        && let Some(half) = first(rest).and_then(half_of_day)
    {
        return Some((2, halved(text, half)?));
    }
    if alone && let Some(used) = context.term(rest, WordMeaning::OClock) {
        let english = is_english(context);
        let hour = number(text, 2).filter(|hour| *hour <= 24).map(|hour| hour_of(hour, english));
        let clock = hour.or_else(|| colons(text)).or_else(|| dotted(text))?;
        return Some((1 + used, clock));
    }
    Some((1, marked(text)?))
}

/// Two times of day in one word, `12:30-13:30`, `9-17h`, `3-4pm`, of which the second may take what follows: `9-17 Uhr`.
pub(crate) fn two_clocks(words: &[Word], context: &Context) -> Option<(usize, Clock, Clock)> {
    let text = first(words)?;
    let (from, to) = text.split_once(['-', '–', '—'])?;
    let mut rest = vec![Word::new(to)];
    rest.extend(after(words, 1).iter().take(2).cloned());
    rest.first_mut()?.stop = words.first()?.stop;
    let hour = || Some((1, ending_hour(to, marked(from)?, context)?));
    let (used, to) = plain(&rest, context).or_else(hour)?;
    let from = match (marked(from), number(from, 2)) {
        (Some(from), _) => from,
        (None, Some(hour)) => before(hour, to, &typed(&rest, used))?,
        (None, None) => return None,
    };
    Some((used, from, to))
}

/// The hour before a time, `9` of `9-17h`, `11` of `11-1pm`: in the same half of the day if that is before it.
fn before(hour: i64, to: Clock, written: &str) -> Option<Clock> {
    let halves = written.to_ascii_lowercase().replace('.', "");
    if !halves.ends_with("pm") && !halves.ends_with("am") {
        return (hour <= 24).then(|| whole(hour));
    }
    let base = (1..=12).contains(&hour).then_some(hour % 12 * 3600)?;
    let later = base + DAY / 2;
    let second = if later < to.second { later } else { base };
    Some(Clock { second, exact: false, noon: Noon::Said })
}

/// A time that says of itself that it is one: `12:30`, `12:30:15`, `3pm`, `15h30`.
pub(crate) fn marked(text: &str) -> Option<Clock> {
    if let Some(clock) = colons(text) {
        return Some(clock);
    }
    let text = text.strip_suffix('.').unwrap_or(text);
    if let Some((bare, half)) = strip_half(text) {
        return halved(bare, half);
    }
    let (hour, minute) = text.split_once('h')?;
    let minute = if minute.is_empty() { 0 } else { two_digits(minute)? };
    valid(number(hour, 2)?, minute, 0, false)
}

/// A text without "am" or "pm" at its end, and which of them it is.
fn strip_half(text: &str) -> Option<(&str, Half)> {
    let halves = [(WordMeaning::Am, Half::Morning), (WordMeaning::Pm, Half::Afternoon)].into_iter();
    halves
        .flat_map(|(term, half)| Vocabulary::common().forms(term).iter().map(move |e| (e, half)))
        .find_map(|(ending, half)| Some((text.strip_suffix(ending)?, half)))
}

pub(crate) fn is_half_of_day(text: &str) -> bool {
    half_of_day(text).is_some()
}

fn half_of_day(text: &str) -> Option<Half> {
    let text = text.strip_suffix('.').unwrap_or(text);
    strip_half(text).filter(|(bare, _)| bare.is_empty()).map(|(_, half)| half)
}

/// `3` or `3:30`, and the half of the day.
fn halved(text: &str, half: Half) -> Option<Clock> {
    let (hour, rest) = text.split_once([':', '.']).unwrap_or((text, ""));
    let minute = if rest.is_empty() { 0 } else { two_digits(rest)? };
    let hour = number(hour, 2).filter(|hour| (1..=12).contains(hour))? % 12;
    let hour = if half == Half::Afternoon { hour + 12 } else { hour };
    valid(hour, minute, 0, false).map(|clock| Clock { noon: Noon::Said, ..clock })
}

/// `12:30`, `12:30:15`
pub(crate) fn colons(text: &str) -> Option<Clock> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let mut parts = text.split(':');
    let hour = number(parts.next()?, 2)?;
    let minute = two_digits(parts.next()?)?;
    let second = parts.next().map(two_digits);
    if parts.next().is_some() || second == Some(None) {
        return None;
    }
    valid(hour, minute, second.flatten().unwrap_or(0), second.is_some())
}

/// `12.30`, where it is known to be a time.
fn dotted(text: &str) -> Option<Clock> {
    let (hour, minute) = text.split_once('.')?;
    valid(number(hour, 2)?, two_digits(minute)?, 0, false)
}

/// `1230`, `123015`: behind the T of a date, and where a time is expected.
pub(crate) fn compact(text: &str) -> Option<Clock> {
    let pair = |at: usize| text.get(at..at + 2).and_then(two_digits);
    match text.len() {
        4 => valid(pair(0)?, pair(2)?, 0, false),
        6 => valid(pair(0)?, pair(2)?, pair(4)?, true),
        _ => None,
    }
}

fn two_digits(text: &str) -> Option<i64> {
    number(text, 2).filter(|_| text.len() == 2)
}

fn whole(hour: i64) -> Clock {
    Clock { second: hour * 3600, exact: false, noon: Noon::Clock }
}

/// A time that a clock shows, or 24:00.
fn valid(hour: i64, minute: i64, second: i64, exact: bool) -> Option<Clock> {
    let sum = hour * 3600 + minute * 60 + second;
    (minute < 60 && second < 60 && sum <= DAY).then_some(Clock {
        second: sum,
        exact,
        noon: Noon::Clock,
    })
}
