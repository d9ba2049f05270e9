//! What a person types to name occurrences of a series: `--scope`, `--occurrence`, and `ID/RECURRENCE-ID`.

use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::ids::resolve;
use larder_date_phrase::Moment;
use larder_store::{Family, ItemHead, Reader};
use larder_sync::event::{At, Done, Error, Scope, Which};
use larder_time::civil::Instant;
use larder_time::value::{Offset, Stamp};

/// Which occurrences are meant.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "What recurs")]
pub(crate) struct Occurrences {
    /// One occurrence, it and all that follow, or all
    #[arg(long, value_enum, value_name = "SCOPE")]
    pub(crate) scope: Option<Scoped>,
    /// Which occurrence: by its time, or by its RECURRENCE-ID
    #[arg(long, value_name = "TIME")]
    pub(crate) occurrence: Option<String>,
}

/// How many occurrences are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scoped {
    This,
    Future,
    All,
}

impl Occurrences {
    /// Was nothing said?
    pub(crate) fn is_empty(&self) -> bool {
        self.scope.is_none() && self.occurrence.is_none()
    }

    /// The item that a text names, and which of its occurrences are meant.
    pub(crate) fn of(
        &self,
        context: &Context,
        reader: &Reader,
        id: &str,
    ) -> Result<(ItemHead, Which), Failure> {
        let scope = self.scope.map(|scope| match scope {
            Scoped::This => Scope::This,
            Scoped::Future => Scope::Future,
            Scoped::All => Scope::All,
        });
        let named = self.occurrence.as_deref().map(|text| at(context, text)).transpose()?;
        match resolve(reader, id) {
            Ok(head) => Ok((head, Which { scope, at: named })),
            Err(failure) => {
                // COLLECTION/UID/RECURRENCE-ID
                let Some((before, stamp)) =
                    id.rsplit_once('/').and_then(|(before, id)| Some((before, recurrence_id(id)?)))
                else {
                    return Err(failure);
                };
                let head = resolve(reader, before).map_err(|_| failure)?;
                Ok((head, Which { scope, at: named.or(Some(At::Id(stamp))) }))
            }
        }
    }
}

/// Is it of a calendar?
pub(crate) fn is_of_calendar(head: &ItemHead) -> bool {
    head.kind.family() == Family::Calendar
}

fn recurrence_id(text: &str) -> Option<Stamp> {
    let digits = text.chars().all(|c| c.is_ascii_digit() || matches!(c, 'T' | 'Z'));
    Stamp::parse(text).ok().filter(|_| digits)
}

fn at(context: &Context, text: &str) -> Result<At, Failure> {
    if let Some(stamp) = recurrence_id(text) {
        return Ok(if stamp.date { At::Day(stamp.civil) } else { At::Id(stamp) });
    }
    if let Some(moment) = moment(text) {
        return Ok(At::Moment(moment));
    }
    let speaker = context.speaker();
    let now = speaker.local.civil(speaker.now);
    let moment = Moment::parse(text, now, speaker.language)
        .map_err(|error| Failure::new(Kind::Usage, error))?;
    Ok(if moment.date { At::Day(moment.at) } else { At::Local(moment.at) })
}

/// A time with its offset, as JSON has it: `2026-03-02T02:00:00+01:00`.
fn moment(text: &str) -> Option<Instant> {
    let (clock, offset) = text.trim().split_at_checked("2026-03-02T02:00:00".len())?;
    let stamp = Stamp::parse(&clock.replace(['-', ':'], "")).ok().filter(|stamp| !stamp.date)?;
    let offset = if offset == "Z" { Offset::UTC } else { Offset::parse(offset).ok()? };
    Some(Instant::clamped(stamp.civil.seconds() - i64::from(offset.seconds())))
}

/// Why occurrences could not be changed.
pub(crate) fn failed(error: Error, verb: &str, id: &str) -> Failure {
    let failure = |kind| Failure::new(kind, &error);
    match error {
        Error::Store(error) => error.into(),
        Error::NeedsScope | Error::NeedsOccurrence => failure(Kind::Usage)
            .hint(format!("larder {verb} {id} --scope this --occurrence TIME: one of them"))
            .hint(format!(
                "larder {verb} {id} --scope future --occurrence TIME: it, and all that follow"
            ))
            .hint(format!("larder {verb} {id} --scope all: all of them")),
        Error::NoOccurrence(_) => failure(Kind::NotFound)
            .hint("larder agenda shows what is when")
            .hint("what was divided by --scope future goes on under letters of its own"),
        Error::Indivisible => failure(Kind::Input)
            .hint("--scope this changes one occurrence, --scope all changes all"),
        Error::NeedsRule => failure(Kind::Usage)
            .hint("--rule RULE says how it recurs from then on: FREQ=WEEKLY;BYDAY=MO"),
        Error::NeedsStart => {
            failure(Kind::Usage).hint("--start TIME says when it begins: a time that the rule has")
        }
        Error::Mixed => failure(Kind::Usage).hint(
            "give both --start and --end, as days or as times; --all-day makes days of times",
        ),
        Error::NoProperty(ref name)
            if ["done", "completed"].iter().any(|done| name.starts_with(done)) =>
        {
            failure(Kind::Usage).hint("a task is done by --set status=completed")
        }
        Error::NoProperty(_) => failure(Kind::Usage)
            .hint("it is written FIELD=TEXT: summary=Lunch")
            .hint("larder fields names the fields; times have options of their own"),
        Error::Refused(_) | Error::Old | Error::TooMany => failure(Kind::Input),
        _ => failure(Kind::Usage),
    }
}

/// Somebody else was first.
pub(crate) fn late(done: &Done) -> Result<(), Failure> {
    if !done.late {
        return Ok(());
    }
    Err(Failure::new(Kind::Input, "it was changed by somebody else in the meantime")
        .hint("nothing was done; run the same command again"))
}
