//! What a person says of a new event, task or memo, in a sentence and in options, and what is
//! understood.
//!
//! Options win over the sentence. Times are read by the clock of whoever speaks, or by that of the
//! zone that is named. What is not said to take any time takes an hour, or a day. A task that is
//! said to be at a time is due then. What recurs begins when its rule first has it.

use super::draft::{EventDraft, dedup_alarms, end_after, start_to_key};
use larder_date_phrase::{Language, PhraseError, PointInTime, Sentence, parse_duration};
use larder_store::Kind;
use larder_time::civil::{CivilTime, DAY_SECONDS, Instant};
use larder_time::rule::{Rule, RuleError};
use larder_time::series::{CalendarDateTime, ZoneReference};
use larder_time::value::IcalDuration;
use larder_time::zone::{Zone, ZoneDatabase};

/// How long something takes of which only the beginning is said.
const DEFAULT_DURATION_SECONDS: i64 = 3600;
/// Zones that do the same for so long, ten years, are taken for the same.
const ZONE_COMPARISON_SECONDS: i64 = 3_653 * DAY_SECONDS;

/// Who speaks, when, and where.
#[derive(Debug, Clone, Copy)]
pub struct InputContext<'a> {
    /// The time.
    pub now: Instant,
    /// The clock of whoever speaks.
    pub local: &'a Zone,
    /// The zones that can be named.
    pub zones: &'a ZoneDatabase,
    /// In which words.
    pub language: &'a Language,
}

/// What a person says, each as it was typed.
#[derive(Debug, Clone, Default)]
pub struct EventRequest {
    /// What it is to be; `None`: an event, if it has a time.
    pub kind: Option<Kind>,
    /// A sentence: "Lunch with Anna tomorrow 12:30 for 1h at Bistro".
    pub text: String,
    /// What it is about.
    pub summary: Option<String>,
    /// When it begins.
    pub start: Option<String>,
    /// When it ends, or is due; a day belongs to it.
    pub end: Option<String>,
    /// How long it takes.
    pub length: Option<String>,
    /// It is of whole days.
    pub all_day: bool,
    /// Where it is.
    pub location: Option<String>,
    /// What it is about, at length.
    pub description: Option<String>,
    /// How it recurs: a rule of RFC 5545.
    pub rule: Option<String>,
    /// How it recurs, in words: "monday until june".
    pub every: Option<String>,
    /// Its categories.
    pub categories: Vec<String>,
    /// 1, the highest, to 9.
    pub priority: Option<u8>,
    /// How long before its beginning there are alarms.
    pub alarms: Vec<String>,
    /// The zone of its clock: a name, `utc`, or `floating`.
    pub zone: Option<String>,
}

/// Why it is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventRequestError {
    /// A time or a length is none.
    #[error(transparent)]
    Phrase(#[from] PhraseError),
    /// There is no such zone.
    #[error("no time zone is called {0:?}")]
    UnknownZone(String),
    /// It may be a task or a memo as well.
    #[error("no time was found in it, so it is not clear what it is")]
    AmbiguousKind,
    /// Nothing was said.
    #[error("nothing says what it is about")]
    NoSummary,
    /// It takes time, and from when is not known.
    #[error("how long it takes is said, and not when it begins")]
    NoStart,
    /// A memo that ends, or is due.
    #[error("a memo has no end and is not due: make it a task or an event")]
    MemoWithEnd,
    /// It ends before it begins.
    #[error("it would end before it begins: {end} is before {start}")]
    EndBeforeStart {
        /// When it begins.
        start: String,
        /// When it ends.
        end: String,
    },
    /// The rule is none.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The rule has nothing from the beginning on.
    #[error("the rule {0} has no day on which it could begin")]
    NeverOccurs(String),
    /// "--every" was given something that does not recur.
    #[error("{0:?} does not say how often: write monday, day, 2 weeks or month")]
    NoFrequency(String),
}

/// The clock of this zone.
///
/// # Errors
/// [`EventRequestError::UnknownZone`]
pub fn resolve_clock(
    name: Option<&str>,
    speaker: &InputContext<'_>,
) -> Result<ZoneReference, EventRequestError> {
    // What no zone does stays what that clock shows.
    let zone = match name.map(str::trim) {
        None => match find_named_zone(speaker) {
            Some(zone) => zone,
            None => return Ok(ZoneReference::Floating),
        },
        Some(name) if name.eq_ignore_ascii_case("floating") => return Ok(ZoneReference::Floating),
        Some(name) => {
            let resolved = speaker.zones.resolve(name, None, None, speaker.now, speaker.now);
            resolved.zone.ok_or_else(|| EventRequestError::UnknownZone(name.to_string()))?
        }
    };
    Ok(if zone == Zone::UTC { ZoneReference::Utc } else { ZoneReference::Zone(zone) })
}

/// The zone of whoever speaks, by a name that other programs know. One that has none (a rule in TZ)
/// is a zone that does the same.
fn find_named_zone(speaker: &InputContext<'_>) -> Option<Zone> {
    let InputContext { now, local, zones, .. } = speaker;
    if zones.get(local.name()).is_some() {
        return Some((*local).clone());
    }
    if local.offset_bounds() == (0, 0) {
        return Some(Zone::UTC);
    }
    zones.find_equivalent(local, None, *now, now.saturating_add(ZONE_COMPARISON_SECONDS))
}

/// What the clock shows at a moment, or that of whoever speaks, where it floats.
pub(crate) fn civil_on_clock(
    clock: &ZoneReference,
    at: Instant,
    speaker: &InputContext<'_>,
) -> CivilTime {
    match clock {
        ZoneReference::Utc => at.to_civil(0),
        ZoneReference::Floating => speaker.local.to_civil(at),
        ZoneReference::Zone(zone) => zone.to_civil(at),
    }
}

impl EventRequest {
    /// What is understood.
    ///
    /// # Errors
    /// Why it is not.
    pub fn to_draft(&self, speaker: &InputContext<'_>) -> Result<EventDraft, EventRequestError> {
        if self.text.trim().is_empty() && self.summary.is_none() {
            return Err(EventRequestError::NoSummary);
        }
        let (clock, sentence) = self.parse_on_clock(speaker)?;
        let now = civil_on_clock(&clock, speaker.now, speaker);
        let (start, end) = self.resolve_times(&sentence, &clock, now, speaker)?;
        let kind = match self.kind {
            Some(kind) => kind,
            None if sentence.is_due => Kind::Task,
            None if start.is_some() => Kind::Event,
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
        let length = self.length.is_some() || sentence.duration.is_some();
        if kind == Kind::Task {
            convert_to_due(&mut draft, self.end.is_some() || length || sentence.has_stated_end);
        }
        if kind == Kind::Memo && (self.end.is_some() || length || sentence.has_stated_end) {
            return Err(EventRequestError::MemoWithEnd);
        }
        if draft.start.is_none() && length {
            return Err(EventRequestError::NoStart);
        }
        align_start_to_rule(&mut draft)?;
        check_end_not_before_start(&draft, speaker.language)?;
        draft.location = self.location.clone().or(sentence.location);
        draft.description.clone_from(&self.description);
        draft.categories = sentence.categories;
        draft.categories.extend(self.categories.iter().cloned());
        draft.priority = self.priority.or(sentence.priority);
        draft.alarms = sentence.alarms;
        for alarm in &self.alarms {
            draft.alarms.push(parse_duration(alarm, speaker.language)?);
        }
        draft.alarms = dedup_alarms(draft.alarms);
        Ok(draft)
    }

    /// The clock that is meant, and the sentence by it: tomorrow begins where that clock says so.
    fn parse_on_clock(
        &self,
        speaker: &InputContext<'_>,
    ) -> Result<(ZoneReference, Sentence), EventRequestError> {
        let by = |name: Option<&str>| {
            let clock = resolve_clock(name, speaker)?;
            let now = civil_on_clock(&clock, speaker.now, speaker);
            let sentence = self.parse_sentence(now, speaker)?;
            Ok((clock, sentence))
        };
        let (clock, sentence) = by(self.zone.as_deref())?;
        match &sentence.zone {
            Some(zone) if self.zone.is_none() => by(Some(zone)),
            _ => Ok((clock, sentence)),
        }
    }

    /// The sentence, with what is said of how it recurs.
    fn parse_sentence(
        &self,
        now: CivilTime,
        speaker: &InputContext<'_>,
    ) -> Result<Sentence, EventRequestError> {
        let sentence = Sentence::parse(&self.text, now, speaker.language)?;
        let due = self.kind == Some(Kind::Task) && self.end.is_some() && self.start.is_none();
        let Some(every) = &self.every else {
            // What is only said to recur begins when it is due.
            let start = sentence.start.filter(|_| !due || sentence.rule.is_none());
            return Ok(Sentence { start, ..sentence });
        };
        // From when it recurs is said elsewhere; here it may be said how it does, and until when.
        let from = match &self.start {
            Some(start) => PointInTime::parse(start, now, speaker.language)?.at,
            None => sentence.start.unwrap_or(now),
        };
        let (repeated, rule) = parse_recurrence(every, from, speaker.language)?;
        let begun = self.start.is_some() || sentence.start.is_some() || due;
        if begun && !repeated.is_all_day {
            return Err(EventRequestError::NoFrequency(every.clone()));
        }
        let (start, date, end, ended) = match begun {
            true => (sentence.start, sentence.is_all_day, sentence.end, sentence.has_stated_end),
            false => (repeated.start, repeated.is_all_day, repeated.end, repeated.has_stated_end),
        };
        let (rule, until) = (Some(rule), repeated.until);
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

    /// When it begins and ends. What of that is not said takes an hour, or a day.
    fn resolve_times(
        &self,
        sentence: &Sentence,
        clock: &ZoneReference,
        now: CivilTime,
        speaker: &InputContext<'_>,
    ) -> Result<(Option<CalendarDateTime>, Option<CalendarDateTime>), EventRequestError> {
        let language = speaker.language;
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
                    // The day belongs to it.
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

    /// How long it takes, unless it is said when it ends.
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

/// What is said of how something recurs, and the rule; nothing else may be said there.
pub(super) fn parse_recurrence(
    every: &str,
    from: CivilTime,
    language: &Language,
) -> Result<(Sentence, String), EventRequestError> {
    let every = every.trim();
    let unknown = || EventRequestError::NoFrequency(every.to_string());
    let (mut found, mut failed) = (None, None);
    // "daily" and "jeden Montag" say it themselves.
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

/// Makes of the times of an event those of a task: it is due when it is said to be, and begins only
/// where it takes time.
fn convert_to_due(draft: &mut EventDraft, lasts: bool) {
    // A day that it is due is the day itself.
    if let Some(end) = draft.end.as_mut().filter(|end| end.is_date) {
        end.civil = end.civil.saturating_add(-DAY_SECONDS);
    }
    if !lasts && let Some(start) = draft.start.take() {
        draft.end = Some(start);
    }
    // What recurs needs a beginning.
    if draft.rule.is_some() && draft.start.is_none() {
        draft.start.clone_from(&draft.end);
    }
}

/// Sees to it that what recurs begins when its rule first has it.
fn align_start_to_rule(draft: &mut EventDraft) -> Result<(), EventRequestError> {
    let (Some(text), Some(start)) = (&draft.rule, &mut draft.start) else { return Ok(()) };
    let rule = Rule::parse(text)?;
    let first = rule.occurrences_from(start.civil, start.civil).next();
    let first = first.filter(|first| draft.until.is_none_or(|until| *first <= until));
    let first = first.ok_or_else(|| EventRequestError::NeverOccurs(text.clone()))?;
    let away = first.seconds() - start.civil.seconds();
    let seconds =
        draft.end.as_ref().map_or(0, |end| start_to_key(end).saturating_sub(start_to_key(start)));
    start.civil = first;
    match &mut draft.end {
        // By its clock it could not be said when it ends.
        Some(end) if end.zone_reference != start.zone_reference => {
            *end = end_after(start, IcalDuration { days: 0, seconds });
        }
        Some(end) => end.civil = end.civil.saturating_add(away),
        None => {}
    }
    Ok(())
}

fn check_end_not_before_start(
    draft: &EventDraft,
    language: &Language,
) -> Result<(), EventRequestError> {
    let (Some(start), Some(end)) = (&draft.start, &draft.end) else { return Ok(()) };
    let mut last = end.clone();
    if end.is_date && draft.kind != Kind::Task {
        last.civil = end.civil.saturating_add(-DAY_SECONDS);
    }
    if start.is_date != end.is_date || start_to_key(start) <= start_to_key(&last) {
        return Ok(());
    }
    let (start, end) = (
        format_civil(start.civil, start.is_date, language),
        format_civil(last.civil, last.is_date, language),
    );
    Err(EventRequestError::EndBeforeStart { start, end })
}

/// A time in words, for messages: `Fri 6 Mar 2026, 09:30`.
pub(super) fn format_civil(civil: CivilTime, date: bool, language: &Language) -> String {
    let (day, second) = (language.date(civil.date()), civil.second_of_day());
    match date {
        true => day,
        false => format!("{day}, {:02}:{:02}", second / 3600, second / 60 % 60),
    }
}
