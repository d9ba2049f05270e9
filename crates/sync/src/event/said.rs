//! What a person says of a new event, task or memo, in a sentence and in options, and what is understood.
//!
//! Options win over the sentence. Times are read by the clock of whoever speaks, or by that of the zone that is named. What is not
//! said to take any time takes an hour, or a day. A task that is said to be at a time is due then.

use super::draft::{Draft, later};
use larder_store::Kind;
use larder_time::civil::{Civil, DAY, Instant};
use larder_time::phrase::{self, Language, Moment, PhraseError, Sentence};
use larder_time::series::{Clock, Start};
use larder_time::value::Nominal;
use larder_time::zone::{Zone, Zones};

/// How long something takes of which only the beginning is said.
const HOUR: i64 = 3600;

/// Who speaks, when, and where.
#[derive(Debug, Clone, Copy)]
pub struct Speaker<'a> {
    /// The time.
    pub now: Instant,
    /// The clock of whoever speaks.
    pub local: &'a Zone,
    /// The zones that can be named.
    pub zones: &'a Zones,
    /// In which words.
    pub language: &'a Language,
}

/// What a person says, each as it was typed.
#[derive(Debug, Clone, Default)]
pub struct Said {
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
pub enum SaidError {
    /// A time or a length is none.
    #[error(transparent)]
    Phrase(#[from] PhraseError),
    /// There is no such zone.
    #[error("no time zone is called {0:?}")]
    Zone(String),
    /// It may be a task or a memo as well.
    #[error("no time was found in it, so it is not clear what it is")]
    Kind,
    /// Nothing was said.
    #[error("nothing says what it is about")]
    NoSummary,
    /// "--every" was given something that does not recur.
    #[error("{0:?} does not say how often: write monday, day, 2 weeks or month")]
    Every(String),
}

/// The clock of this zone.
///
/// # Errors
/// [`SaidError::Zone`]
pub fn clock(name: Option<&str>, speaker: &Speaker<'_>) -> Result<Clock, SaidError> {
    let zone = match name.map(str::trim) {
        None => speaker.local.clone(),
        Some(name) if name.eq_ignore_ascii_case("floating") => return Ok(Clock::Floating),
        Some(name) => {
            let resolved = speaker.zones.resolve(name, None, None, speaker.now, speaker.now);
            resolved.zone.ok_or_else(|| SaidError::Zone(name.to_string()))?
        }
    };
    Ok(if zone == Zone::UTC { Clock::Utc } else { Clock::Zone(zone) })
}

/// What the clock shows at a moment, or that of whoever speaks, where it floats.
pub(crate) fn shown(clock: &Clock, at: Instant, speaker: &Speaker<'_>) -> Civil {
    match clock {
        Clock::Utc => at.civil(0),
        Clock::Floating => speaker.local.civil(at),
        Clock::Zone(zone) => zone.civil(at),
    }
}

impl Said {
    /// What is understood.
    ///
    /// # Errors
    /// Why it is not.
    pub fn understand(&self, speaker: &Speaker<'_>) -> Result<Draft, SaidError> {
        let clock = clock(self.zone.as_deref(), speaker)?;
        let now = shown(&clock, speaker.now, speaker);
        let sentence = self.sentence(now, speaker)?;
        let (start, end) = self.times(&sentence, now, speaker)?;
        let kind = match self.kind {
            Some(kind) => kind,
            None if start.is_some() => Kind::Event,
            None => return Err(SaidError::Kind),
        };
        let summary = self.summary.clone().unwrap_or(sentence.summary);
        if summary.trim().is_empty() {
            return Err(SaidError::NoSummary);
        }
        let mut draft = Draft::new(kind, summary.trim());
        let at = |(civil, date): (Civil, bool)| match date {
            true => Start::date(civil),
            false => Start::at(civil, clock.clone()),
        };
        (draft.start, draft.end) = (start.map(at), end.map(at));
        draft.rule = self.rule.clone().or(sentence.rule);
        draft.until = sentence.until.filter(|_| self.rule.is_none());
        if kind == Kind::Task {
            let lasts = self.end.is_some() || self.length.is_some() || sentence.length.is_some();
            due(&mut draft, lasts);
        }
        draft.location = self.location.clone().or(sentence.location);
        draft.description.clone_from(&self.description);
        draft.categories = sentence.categories;
        draft.categories.extend(self.categories.iter().cloned());
        draft.priority = self.priority.or(sentence.priority);
        draft.alarms = sentence.alarms;
        for alarm in &self.alarms {
            draft.alarms.push(phrase::length(alarm, speaker.language)?);
        }
        Ok(draft)
    }

    /// The sentence, with what is said of how it recurs.
    fn sentence(&self, now: Civil, speaker: &Speaker<'_>) -> Result<Sentence, SaidError> {
        let sentence = Sentence::parse(&self.text, now, speaker.language)?;
        let Some(every) = &self.every else { return Ok(sentence) };
        // From when it recurs is said elsewhere; here it may be said how it does, and until when.
        let from = match &self.start {
            Some(start) => Moment::parse(start, now, speaker.language)?.at,
            None => sentence.start.unwrap_or(now),
        };
        let every_text = match every.trim().strip_prefix("every ") {
            Some(_) => every.trim().to_string(),
            None => format!("every {}", every.trim()),
        };
        let repeated = Sentence::parse(&every_text, from, speaker.language)?;
        let rule = repeated.rule.ok_or_else(|| SaidError::Every(every.clone()))?;
        let (start, date, end) = match sentence.start {
            Some(start) => (Some(start), sentence.date, sentence.end),
            None => (repeated.start, repeated.date, repeated.end),
        };
        Ok(Sentence { rule: Some(rule), until: repeated.until, start, date, end, ..sentence })
    }

    /// How long it takes, where that does not follow from the end of the sentence.
    fn lasts(
        &self,
        sentence: &Sentence,
        language: &Language,
    ) -> Result<Option<Nominal>, PhraseError> {
        match &self.length {
            Some(length) => phrase::length(length, language).map(Some),
            None => Ok(sentence.length.filter(|_| self.start.is_some())),
        }
    }

    /// When it begins and ends, and whether these are days; a time that ends it is the next such time.
    #[allow(clippy::type_complexity, reason = "two times, each perhaps, each perhaps a day")]
    fn times(
        &self,
        sentence: &Sentence,
        now: Civil,
        speaker: &Speaker<'_>,
    ) -> Result<(Option<(Civil, bool)>, Option<(Civil, bool)>), SaidError> {
        let language = speaker.language;
        let said = match &self.start {
            Some(start) => {
                let moment = Moment::parse(start, now, language)?;
                Some((moment.at, moment.date))
            }
            None => sentence.start.map(|start| (start, sentence.date)),
        };
        let day = |civil: Civil| Civil::midnight(civil.day());
        let start = said.map(|(at, date)| match self.all_day {
            true => (day(at), true),
            false => (at, date),
        });
        let end = if let Some(end) = &self.end {
            let from = start.map_or(now, |(at, _)| at);
            let moment = Moment::parse(end, from, language)?;
            match moment.date || self.all_day {
                // The day belongs to it.
                true => Some((day(moment.at).plus(DAY), true)),
                false => Some((moment.at, false)),
            }
        } else if let (Some(length), Some((at, date))) = (self.lasts(sentence, language)?, start) {
            let from = Start { civil: at, date, clock: clock(self.zone.as_deref(), speaker)? };
            Some((later(&from, length), date))
        } else if let (Some(end), None) = (sentence.end, &self.start) {
            match self.all_day && !sentence.date {
                true => Some((day(end.plus(-1)).plus(DAY), true)),
                false => Some((end, sentence.date)),
            }
        } else {
            start.map(|(at, date)| (at.plus(if date { DAY } else { HOUR }), date))
        };
        Ok((start, end))
    }
}

/// Makes of the times of an event those of a task: it is due when it is said to be, and begins only where it takes time.
fn due(draft: &mut Draft, lasts: bool) {
    // A day that it is due is the day itself.
    if let Some(end) = draft.end.as_mut().filter(|end| end.date) {
        end.civil = end.civil.plus(-DAY);
    }
    if lasts {
        return;
    }
    match draft.rule {
        // What recurs needs a beginning.
        Some(_) if draft.start.is_some() => draft.end = None,
        _ => {
            if let Some(start) = draft.start.take() {
                draft.end = Some(start);
            }
        }
    }
}
