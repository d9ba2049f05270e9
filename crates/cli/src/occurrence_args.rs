//! What a person types to name occurrences of a series: `--scope`, `--occurrence`, and
//! `ID/RECURRENCE-ID`.

use crate::context::CommandContext;
use crate::failure::{CommandFailure, FailureKind};
use crate::item_ids::resolve_item;
use larder_date_phrase::Moment;
use larder_edit::event::{EditOutcome, Error, OccurrenceRef, OccurrenceSelector, RecurrenceScope};
use larder_store::{CollectionType, ItemMeta, Reader};
use larder_time::civil::Instant;
use larder_time::value::{IcalDateTime, UtcOffset};

/// Which occurrences are meant.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "What recurs")]
pub(crate) struct OccurrenceArgs {
    /// One occurrence, it and all that follow, or all
    #[arg(long, value_enum, value_name = "SCOPE")]
    pub(crate) scope: Option<ScopeArg>,
    /// Which occurrence: by its time, or by its RECURRENCE-ID
    #[arg(long, value_name = "TIME")]
    pub(crate) occurrence: Option<String>,
}

/// How many occurrences are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ScopeArg {
    This,
    Future,
    All,
}

impl OccurrenceArgs {
    /// Was nothing said?
    pub(crate) fn is_empty(&self) -> bool {
        self.scope.is_none() && self.occurrence.is_none()
    }

    /// The item that a text names, and which of its occurrences are meant.
    pub(crate) fn resolve_item(
        &self,
        context: &CommandContext,
        reader: &Reader,
        id: &str,
    ) -> Result<(ItemMeta, OccurrenceSelector), CommandFailure> {
        let scope = self.scope.map(|scope| match scope {
            ScopeArg::This => RecurrenceScope::This,
            ScopeArg::Future => RecurrenceScope::ThisAndFuture,
            ScopeArg::All => RecurrenceScope::All,
        });
        let named = self
            .occurrence
            .as_deref()
            .map(|text| parse_occurrence_time(context, text))
            .transpose()?;
        match resolve_item(reader, id) {
            Ok(head) => Ok((head, OccurrenceSelector { scope, occurrence: named })),
            Err(failure) => {
                // COLLECTION/UID/RECURRENCE-ID
                let Some((before, stamp)) = id
                    .rsplit_once('/')
                    .and_then(|(before, id)| Some((before, parse_recurrence_id(id)?)))
                else {
                    return Err(failure);
                };
                let head = resolve_item(reader, before).map_err(|_| failure)?;
                Ok((
                    head,
                    OccurrenceSelector {
                        scope,
                        occurrence: named.or(Some(OccurrenceRef::RecurrenceId(stamp))),
                    },
                ))
            }
        }
    }
}

/// Is it of a calendar?
pub(crate) fn is_calendar_item(head: &ItemMeta) -> bool {
    head.kind.collection_type() == CollectionType::Calendar
}

fn parse_recurrence_id(text: &str) -> Option<IcalDateTime> {
    let digits = text.chars().all(|c| c.is_ascii_digit() || matches!(c, 'T' | 'Z'));
    IcalDateTime::parse(text).ok().filter(|_| digits)
}

fn parse_occurrence_time(
    context: &CommandContext,
    text: &str,
) -> Result<OccurrenceRef, CommandFailure> {
    if let Some(stamp) = parse_recurrence_id(text) {
        return Ok(if stamp.is_date {
            OccurrenceRef::Day(stamp.civil)
        } else {
            OccurrenceRef::RecurrenceId(stamp)
        });
    }
    if let Some(moment) = parse_instant(text) {
        return Ok(OccurrenceRef::Instant(moment));
    }
    let locale = &context.settings.user_locale;
    let now = locale.zone.to_civil(locale.now);
    let moment = Moment::parse(text, now, &locale.language)
        .map_err(|error| CommandFailure::new(FailureKind::Usage, error))?;
    Ok(if moment.date { OccurrenceRef::Day(moment.at) } else { OccurrenceRef::Local(moment.at) })
}

/// A time with its offset, as JSON has it: `2026-03-02T02:00:00+01:00`.
fn parse_instant(text: &str) -> Option<Instant> {
    let (clock, offset) = text.trim().split_at_checked("2026-03-02T02:00:00".len())?;
    let stamp =
        IcalDateTime::parse(&clock.replace(['-', ':'], "")).ok().filter(|stamp| !stamp.is_date)?;
    let offset = if offset == "Z" { UtcOffset::UTC } else { UtcOffset::parse(offset).ok()? };
    Some(Instant::from_seconds_clamped(stamp.civil.seconds() - i64::from(offset.seconds())))
}

/// Why occurrences could not be changed.
pub(crate) fn edit_failure(error: Error, verb: &str, id: &str) -> CommandFailure {
    let failure = |kind| CommandFailure::new(kind, &error);
    match error {
        Error::Store(error) => error.into(),
        Error::NeedsScope | Error::NeedsOccurrence => failure(FailureKind::Usage)
            .with_hint(format!("larder {verb} {id} --scope this --occurrence TIME: one of them"))
            .with_hint(format!(
                "larder {verb} {id} --scope future --occurrence TIME: it, and all that follow"
            ))
            .with_hint(format!("larder {verb} {id} --scope all: all of them")),
        Error::NoOccurrence(_) => failure(FailureKind::NotFound)
            .with_hint("larder agenda shows what is when")
            .with_hint("what was divided by --scope future goes on under letters of its own"),
        Error::CannotSplit => failure(FailureKind::Input)
            .with_hint("--scope this changes one occurrence, --scope all changes all"),
        Error::NeedsRule => failure(FailureKind::Usage)
            .with_hint("--rule RULE says how it recurs from then on: FREQ=WEEKLY;BYDAY=MO"),
        Error::NeedsStart => failure(FailureKind::Usage)
            .with_hint("--start TIME says when it begins: a time that the rule has"),
        Error::MixedDateAndTime => failure(FailureKind::Usage).with_hint(
            "give both --start and --end, as days or as times; --all-day makes days of times",
        ),
        Error::UnknownField(ref name)
            if ["done", "completed"].iter().any(|done| name.starts_with(done)) =>
        {
            failure(FailureKind::Usage).with_hint("a task is done by --set status=completed")
        }
        Error::UnknownField(_) => failure(FailureKind::Usage)
            .with_hint("it is written FIELD=TEXT: summary=Lunch")
            .with_hint("larder fields names the fields; times have options of their own"),
        Error::InvalidItem(_) | Error::UnsupportedVersion | Error::TooManyOccurrences => {
            failure(FailureKind::Input)
        }
        _ => failure(FailureKind::Usage),
    }
}

/// Somebody else was first.
pub(crate) fn check_not_outdated(done: &EditOutcome) -> Result<(), CommandFailure> {
    if !done.conflict {
        return Ok(());
    }
    Err(CommandFailure::new(FailureKind::Input, "it was changed by somebody else in the meantime")
        .with_hint("nothing was done; run the same command again"))
}
