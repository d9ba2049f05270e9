//! New events, tasks and memos in words: a sentence and options.
//!
//! Options take precedence over the sentence. Times are read in the zone of the user, or in the
//! zone that is named. Without a duration, an event takes an hour, or a day. The time of a task is
//! its due time. A recurring item starts at the first occurrence of its rule.

use super::draft::{EventDraft, dedup_alarms, end_after, start_to_key};
use larder_date_phrase::{
    Language, PhraseError, PointInTime, Sentence, UserLocale, parse_duration,
};
use larder_store::Kind;
use larder_time::civil::{CivilTime, DAY_SECONDS, Instant};
use larder_time::rule::{Rule, RuleError};
use larder_time::series::{CalendarDateTime, ZoneReference};
use larder_time::value::IcalDuration;
use larder_time::zone::Zone;

/// The duration of an event that has only a start.
const DEFAULT_DURATION_SECONDS: i64 = 3600;
/// Zones with the same offsets for ten years are treated as equal.
const ZONE_COMPARISON_SECONDS: i64 = 3_653 * DAY_SECONDS;

/// A new event, task or memo, as the user typed it.
#[derive(Debug, Clone, Default)]
pub struct EventRequest {
    /// The kind. `None`: a task if it is due, else an event.
    pub kind: Option<Kind>,
    /// A sentence: "Lunch with Anna tomorrow 12:30 for 1h at Bistro".
    pub text: String,
    /// The title.
    pub summary: Option<String>,
    /// The start.
    pub start: Option<String>,
    /// The end, or due time. A date is the last day.
    pub end: Option<String>,
    /// The duration.
    pub length: Option<String>,
    /// Whether it is an all-day item.
    pub all_day: bool,
    /// The place.
    pub location: Option<String>,
    /// A longer text.
    pub description: Option<String>,
    /// The recurrence rule (RFC 5545).
    pub rule: Option<String>,
    /// The recurrence rule in words: "monday until june".
    pub every: Option<String>,
    /// The categories.
    pub categories: Vec<String>,
    /// The priority, from 1, the highest, to 9.
    pub priority: Option<u8>,
    /// The times of the alarms before the start.
    pub alarms: Vec<String>,
    /// The time zone: a name, `utc`, or `floating`.
    pub zone: Option<String>,
}

/// The reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventRequestError {
    /// A date phrase is invalid.
    #[error(transparent)]
    Phrase(#[from] PhraseError),
    /// There is no such zone.
    #[error("unknown time zone {0:?}")]
    UnknownZone(String),
    /// Without a time it may be a task or a memo.
    #[error("found no date or time, so the kind is unclear: event, task or memo")]
    AmbiguousKind,
    /// An end alone may be the end of an event or the time when a task is due.
    #[error("found an end but no start, so the kind is unclear: event or task")]
    EndWithoutStart,
    /// The title is missing.
    #[error("missing summary")]
    NoSummary,
    /// A duration without a start.
    #[error("a duration needs a start time")]
    NoStart,
    /// A memo with an end or a due time.
    #[error("a memo cannot have an end or a due time: make it a task or an event")]
    MemoWithEnd,
    /// The end is before the start.
    #[error("the end ({end}) is before the start ({start})")]
    EndBeforeStart {
        /// The start.
        start: String,
        /// The end.
        end: String,
    },
    /// The rule is invalid.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The rule has no occurrence from the start on.
    #[error("the rule {0} has no occurrence after the start")]
    NeverOccurs(String),
    /// `every` is no repetition.
    #[error("{0:?} is not a recurrence; use for example monday, day, 2 weeks or month")]
    NoFrequency(String),
}

/// Resolves the name of a zone; without a name, the zone of the user.
///
/// # Errors
/// [`EventRequestError::UnknownZone`]
pub fn resolve_clock(
    name: Option<&str>,
    locale: &UserLocale,
) -> Result<ZoneReference, EventRequestError> {
    // If no known zone has the offsets of the user's clock, times are floating.
    let zone = match name.map(str::trim) {
        None => match find_named_zone(locale) {
            Some(zone) => zone,
            None => return Ok(ZoneReference::Floating),
        },
        Some(name) if name.eq_ignore_ascii_case("floating") => return Ok(ZoneReference::Floating),
        Some(name) => {
            let resolved = locale.zones.resolve(name, None, None, locale.now, locale.now);
            resolved.zone.ok_or_else(|| EventRequestError::UnknownZone(name.to_string()))?
        }
    };
    Ok(if zone == Zone::UTC { ZoneReference::Utc } else { ZoneReference::Zone(zone) })
}

/// Returns the zone of the user under a name that other programs know. For a zone without a name (a
/// rule in TZ) that is a zone with the same offsets.
fn find_named_zone(locale: &UserLocale) -> Option<Zone> {
    let UserLocale { now, zone: local, zones, .. } = locale;
    if zones.get(local.name()).is_some() {
        return Some(local.clone());
    }
    if local.offset_bounds() == (0, 0) {
        return Some(Zone::UTC);
    }
    zones.find_equivalent(local, None, *now, now.saturating_add(ZONE_COMPARISON_SECONDS))
}

/// Returns the clock time at an instant. A floating time is in the user's zone.
pub(crate) fn civil_on_clock(clock: &ZoneReference, at: Instant, locale: &UserLocale) -> CivilTime {
    match clock {
        ZoneReference::Utc => at.to_civil(0),
        ZoneReference::Floating => locale.zone.to_civil(at),
        ZoneReference::Zone(zone) => zone.to_civil(at),
    }
}

impl EventRequest {
    /// Resolves the phrases of the request.
    ///
    /// # Errors
    /// The reason why the request is refused.
    pub fn to_draft(&self, locale: &UserLocale) -> Result<EventDraft, EventRequestError> {
        if self.text.trim().is_empty() && self.summary.is_none() {
            return Err(EventRequestError::NoSummary);
        }
        let (clock, sentence) = self.parse_on_clock(locale)?;
        let now = civil_on_clock(&clock, locale.now, locale);
        let (start, end) = self.resolve_times(&sentence, &clock, now, locale)?;
        let kind = match self.kind {
            Some(kind) => kind,
            None if sentence.is_due => Kind::Task,
            None if start.is_some() => Kind::Event,
            None if end.is_some() => return Err(EventRequestError::EndWithoutStart),
            None => return Err(EventRequestError::AmbiguousKind),
        };
        let summary = self.summary.clone().unwrap_or(sentence.summary);
        if summary.trim().is_empty() {
            return Err(EventRequestError::NoSummary);
        }
        let mut draft = EventDraft::new(kind, summary.trim());
        (draft.start, draft.end) = (start, end);
        draft.rule = self.rule.clone().or(sentence.rule);
        draft.until = sentence.until.filter(|_| self.rule.is_none());
        let has_length = self.length.is_some() || sentence.duration.is_some();
        let has_end = self.end.is_some() || has_length || sentence.has_stated_end;
        if kind == Kind::Task {
            convert_to_due(&mut draft, has_end);
        }
        if kind == Kind::Memo && has_end {
            return Err(EventRequestError::MemoWithEnd);
        }
        if draft.start.is_none() && has_length {
            return Err(EventRequestError::NoStart);
        }
        align_start_to_rule(&mut draft)?;
        check_draft_times(&draft, &locale.language)?;
        draft.location = self.location.clone().or(sentence.location);
        draft.description.clone_from(&self.description);
        draft.categories = sentence.categories;
        draft.categories.extend(self.categories.iter().cloned());
        draft.priority = self.priority.or(sentence.priority);
        draft.alarms = sentence.alarms;
        for alarm in &self.alarms {
            draft.alarms.push(parse_duration(alarm, &locale.language)?);
        }
        draft.alarms = dedup_alarms(draft.alarms);
        // A birthday or a holiday does not make the day busy.
        draft.is_transparent =
            kind == Kind::Event && draft.start.as_ref().is_some_and(|start| start.is_date);
        Ok(draft)
    }

    /// Returns the clock, and the sentence parsed by it: the clock decides when tomorrow begins.
    fn parse_on_clock(
        &self,
        locale: &UserLocale,
    ) -> Result<(ZoneReference, Sentence), EventRequestError> {
        let by = |name: Option<&str>| {
            let clock = resolve_clock(name, locale)?;
            let now = civil_on_clock(&clock, locale.now, locale);
            let sentence = self.parse_sentence(now, locale)?;
            Ok((clock, sentence))
        };
        let (clock, sentence) = by(self.zone.as_deref())?;
        match &sentence.zone {
            Some(zone) if self.zone.is_none() => by(Some(zone)),
            _ => Ok((clock, sentence)),
        }
    }

    /// Parses the sentence, and the repetition in `every`.
    fn parse_sentence(
        &self,
        now: CivilTime,
        locale: &UserLocale,
    ) -> Result<Sentence, EventRequestError> {
        let sentence = Sentence::parse(&self.text, now, &locale.language)?;
        let due = self.kind == Some(Kind::Task) && self.end.is_some() && self.start.is_none();
        let Some(every) = &self.every else {
            // The due time of a recurring task takes precedence over the first day of its rule.
            let start = sentence.start.filter(|_| !due || sentence.rule.is_none());
            return Ok(Sentence { start, ..sentence });
        };
        // `every` may set the rule and its end; the start is read from the other parts first.
        let from = match &self.start {
            Some(start) => PointInTime::parse(start, now, &locale.language)?.at,
            None => sentence.start.unwrap_or(now),
        };
        let (repeated, rule) = parse_recurrence(every, from, &locale.language)?;
        let has_start = self.start.is_some() || sentence.start.is_some() || due;
        if has_start && !repeated.is_all_day {
            return Err(EventRequestError::NoFrequency(every.clone()));
        }
        let (start, date, end, ended) = match has_start {
            true => (sentence.start, sentence.is_all_day, sentence.end, sentence.has_stated_end),
            false => (repeated.start, repeated.is_all_day, repeated.end, repeated.has_stated_end),
        };
        // A rule that is read without a time ends on a day, and the occurrence on it is one.
        let last_second = if repeated.is_all_day { DAY_SECONDS - 1 } else { 0 };
        let until = repeated.until.map(|until| until.saturating_add(last_second));
        let rule = Some(rule);
        Ok(Sentence {
            rule,
            until,
            start,
            is_all_day: date,
            end,
            has_stated_end: ended,
            ..sentence
        })
    }

    /// Returns the start and the end, with the default duration if there is none.
    fn resolve_times(
        &self,
        sentence: &Sentence,
        clock: &ZoneReference,
        now: CivilTime,
        locale: &UserLocale,
    ) -> Result<(Option<CalendarDateTime>, Option<CalendarDateTime>), EventRequestError> {
        let language = &locale.language;
        let day = |civil: CivilTime| CivilTime::midnight(civil.day_number());
        let at = |civil: CivilTime, date: bool| match date || self.all_day {
            true => CalendarDateTime::from_date(day(civil)),
            false => CalendarDateTime::from_civil(civil, clock.clone()),
        };
        let start = match &self.start {
            Some(start) => {
                let moment = PointInTime::parse(start, now, language)?;
                Some(at(moment.at, moment.is_date))
            }
            None => sentence.start.map(|start| at(start, sentence.is_all_day)),
        };
        let end = match (&self.end, &start) {
            (Some(end), start) => {
                let from = start.as_ref().map_or(now, |start| start.civil);
                let moment = PointInTime::parse_end(end, from, now, language)?;
                let timed = start.as_ref().is_some_and(|start| !start.is_date);
                Some(match moment.is_date || self.all_day {
                    // The date is the last day.
                    true if timed => CalendarDateTime::from_civil(
                        day(moment.at).saturating_add(DAY_SECONDS),
                        clock.clone(),
                    ),
                    true => CalendarDateTime::from_date(day(moment.at).saturating_add(DAY_SECONDS)),
                    false => at(moment.at, false),
                })
            }
            (None, Some(start)) => match self.resolve_duration(sentence, start, language)? {
                Some(length) => Some(end_after(start, length)),
                None => sentence.end.map(|end| match self.all_day && !sentence.is_all_day {
                    true => CalendarDateTime::from_date(
                        day(end.saturating_add(-1)).saturating_add(DAY_SECONDS),
                    ),
                    false => at(end, sentence.is_all_day),
                }),
            },
            (None, None) => sentence.end.map(|end| at(end, sentence.is_all_day)),
        };
        Ok((start, end))
    }

    /// Returns the duration, unless the sentence has an end.
    fn resolve_duration(
        &self,
        sentence: &Sentence,
        start: &CalendarDateTime,
        language: &Language,
    ) -> Result<Option<IcalDuration>, PhraseError> {
        if let Some(text) = &self.length {
            let length = parse_duration(text, language)?;
            return match start.is_date && length.seconds != 0 {
                true => Err(PhraseError::MissingStart { text: text.clone() }),
                false => Ok(Some(length)),
            };
        }
        Ok(match sentence.duration {
            None if sentence.has_stated_end => None,
            None if start.is_date => Some(IcalDuration { days: 1, seconds: 0 }),
            None => Some(IcalDuration { days: 0, seconds: DEFAULT_DURATION_SECONDS }),
            length => length,
        })
    }
}

/// Parses a repetition. Returns its sentence and its rule. Any other phrase in it is an error.
pub(super) fn parse_recurrence(
    every: &str,
    from: CivilTime,
    language: &Language,
) -> Result<(Sentence, String), EventRequestError> {
    let every = every.trim();
    let unknown = || EventRequestError::NoFrequency(every.to_string());
    let (mut found, mut failed) = (None, None);
    // "daily" and "jeden Montag" are repetitions without the word "every".
    for text in [every.to_string(), format!("every {every}")] {
        let sentence = match Sentence::parse(&text, from, language) {
            Ok(sentence) => sentence,
            Err(error) => {
                failed = Some(error);
                continue;
            }
        };
        let Some(rule) = sentence.rule.clone() else { continue };
        let plain = sentence.summary.is_empty()
            && sentence.location.is_none()
            && sentence.zone.is_none()
            && sentence.categories.is_empty()
            && sentence.alarms.is_empty()
            && sentence.priority.is_none();
        found = found.or(plain.then_some((sentence, rule)));
    }
    found.ok_or_else(|| failed.map_or_else(unknown, EventRequestError::Phrase))
}

/// Converts the times of an event to the times of a task: the start becomes the due time, unless
/// the request has an end, too.
fn convert_to_due(draft: &mut EventDraft, has_end: bool) {
    // A due date is the day itself, and not the day after it.
    if let Some(end) = draft.end.as_mut().filter(|end| end.is_date) {
        end.civil = end.civil.saturating_add(-DAY_SECONDS);
    }
    if !has_end && let Some(start) = draft.start.take() {
        draft.end = Some(start);
    }
    // A rule needs a start.
    if draft.rule.is_some() && draft.start.is_none() {
        draft.start.clone_from(&draft.end);
    }
}

/// Moves the start of a recurring item to the first occurrence of its rule.
fn align_start_to_rule(draft: &mut EventDraft) -> Result<(), EventRequestError> {
    let (Some(text), Some(start)) = (&draft.rule, &mut draft.start) else { return Ok(()) };
    let rule = Rule::parse(text)?;
    let first = rule.occurrences_from(start.civil, start.civil).next();
    let first = first.filter(|first| draft.until.is_none_or(|until| *first <= until));
    let first = first.ok_or_else(|| EventRequestError::NeverOccurs(text.clone()))?;
    let shift_seconds = first.seconds() - start.civil.seconds();
    let seconds =
        draft.end.as_ref().map_or(0, |end| start_to_key(end).saturating_sub(start_to_key(start)));
    start.civil = first;
    match &mut draft.end {
        // The end is in UTC because the clock of the start could not represent it.
        Some(end) if end.zone_reference != start.zone_reference => {
            *end = end_after(start, IcalDuration { days: 0, seconds });
        }
        Some(end) => end.civil = end.civil.saturating_add(shift_seconds),
        None => {}
    }
    Ok(())
}

/// Fails if the end of a draft is before its start.
fn check_draft_times(draft: &EventDraft, language: &Language) -> Result<(), EventRequestError> {
    let (Some(start), Some(end)) = (&draft.start, &draft.end) else { return Ok(()) };
    if start.is_date != end.is_date {
        return Ok(());
    }
    let mut last = end.clone();
    if end.is_date && draft.kind != Kind::Task {
        last.civil = end.civil.saturating_add(-DAY_SECONDS);
    }
    check_end_not_before_start(start, &last, language)
}

/// Fails if an end is before its start. `last` is the end; of an all-day item, the last day.
pub(super) fn check_end_not_before_start(
    start: &CalendarDateTime,
    last: &CalendarDateTime,
    language: &Language,
) -> Result<(), EventRequestError> {
    if start_to_key(start) <= start_to_key(last) {
        return Ok(());
    }
    let format = |time: &CalendarDateTime| format_civil(time.civil, time.is_date, language);
    Err(EventRequestError::EndBeforeStart { start: format(start), end: format(last) })
}

/// Formats a time for messages: `Fri 6 Mar 2026, 09:30`.
fn format_civil(civil: CivilTime, date: bool, language: &Language) -> String {
    let (day, second) = (language.date(civil.date()), civil.second_of_day());
    match date {
        true => day,
        false => format!("{day}, {:02}:{:02}", second / 3600, second / 60 % 60),
    }
}
