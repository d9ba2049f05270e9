//! Selecting occurrences of a series on the command line: `--scope`, `--occurrence`, and
//! `ID/RECURRENCE-ID`.

use crate::context::CommandContext;
use crate::failure::{CommandFailure, FailureKind};
use crate::item_ids::resolve_item;
use crate::suggestion::find_nearest;
use larder_date_phrase::PointInTime;
use larder_edit::event::{
    self, EditOutcome, Error, OccurrenceRef, OccurrenceSelector, RecurrenceScope,
};
use larder_store::{ItemMeta, Reader};
use larder_time::civil::Instant;
use larder_time::value::{IcalDateTime, UtcOffset};

/// The options that select occurrences.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Recurring events and tasks")]
pub(crate) struct OccurrenceArgs {
    /// Apply to one occurrence, to this and future occurrences, or to all
    #[arg(long, value_enum, value_name = "SCOPE")]
    pub(crate) scope: Option<ScopeArg>,
    /// The occurrence, given by its time or its RECURRENCE-ID
    #[arg(long, value_name = "TIME")]
    pub(crate) occurrence: Option<String>,
}

/// The scope of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ScopeArg {
    This,
    Future,
    All,
}

impl OccurrenceArgs {
    /// Returns whether neither option was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.scope.is_none() && self.occurrence.is_none()
    }

    /// Returns the item with this ID, and the selected occurrences.
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
            Ok(meta) => Ok((meta, OccurrenceSelector { scope, occurrence: named })),
            Err(failure) => {
                // COLLECTION/UID/RECURRENCE-ID
                let Some((before, stamp)) = id
                    .rsplit_once('/')
                    .and_then(|(before, id)| Some((before, parse_recurrence_id(id)?)))
                else {
                    return Err(failure);
                };
                let meta = resolve_item(reader, before).map_err(|_| failure)?;
                Ok((
                    meta,
                    OccurrenceSelector {
                        scope,
                        occurrence: named.or(Some(OccurrenceRef::RecurrenceId(stamp))),
                    },
                ))
            }
        }
    }
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
    let moment = PointInTime::parse(text, now, &locale.language)
        .map_err(|error| CommandFailure::new(FailureKind::Usage, error))?;
    Ok(if moment.is_date { OccurrenceRef::Day(moment.at) } else { OccurrenceRef::Local(moment.at) })
}

/// Parses a time with an offset, as in JSON output: `2026-03-02T02:00:00+01:00`.
fn parse_instant(text: &str) -> Option<Instant> {
    let (clock, offset) = text.trim().split_at_checked("2026-03-02T02:00:00".len())?;
    let stamp =
        IcalDateTime::parse(&clock.replace(['-', ':'], "")).ok().filter(|stamp| !stamp.is_date)?;
    let offset = if offset == "Z" { UtcOffset::UTC } else { UtcOffset::parse(offset).ok()? };
    Some(Instant::from_seconds_clamped(stamp.civil.seconds() - i64::from(offset.seconds())))
}

/// Converts an error of editing into a failure with hints.
pub(crate) fn edit_failure(error: Error, verb: &str, id: &str) -> CommandFailure {
    let failure = |kind| CommandFailure::new(kind, &error);
    match error {
        Error::Store(error) => error.into(),
        Error::NeedsScope | Error::NeedsOccurrence => failure(FailureKind::Usage)
            .with_hint(format!("for one occurrence: larder {verb} {id} --scope this --occurrence TIME"))
            .with_hint(format!(
                "for this and future occurrences: larder {verb} {id} --scope future --occurrence TIME"
            ))
            .with_hint(format!("for all occurrences: larder {verb} {id} --scope all")),
        Error::FollowingOverride => failure(FailureKind::Input)
            .with_hint(format!("for this and future occurrences: larder {verb} {id} --scope future --occurrence TIME"))
            .with_hint(format!("for all occurrences: larder {verb} {id} --scope all")),
        Error::NoOccurrence(_) => failure(FailureKind::NotFound)
            .with_hint("`larder agenda` shows the occurrences")
            .with_hint("after --scope future, the later occurrences have their own ID"),
        Error::CannotSplit => failure(FailureKind::Input)
            .with_hint("use --scope this for one occurrence, or --scope all for all of them"),
        Error::NeedsRule | Error::CannotMove => failure(FailureKind::Usage)
            .with_hint("give the new rule with --rule RULE, for example FREQ=WEEKLY;BYDAY=MO"),
        Error::NeedsStart => failure(FailureKind::Usage)
            .with_hint("give the start with --start TIME; it must be a time of the rule"),
        Error::MixedDateAndTime => failure(FailureKind::Usage).with_hint(
            "give both --start and --end as dates, or both as times; --all-day turns times into days",
        ),
        Error::UnknownField(ref name)
            if ["done", "completed"].iter().any(|done| name.starts_with(done)) =>
        {
            failure(FailureKind::Usage).with_hint("mark a task as done with --set status=completed")
        }
        Error::UnknownField(ref name)
            if let Some(near) = find_nearest(name, event::editable_field_names()) =>
        {
            failure(FailureKind::Usage).with_hint(format!("did you mean {near}?"))
        }
        Error::UnknownField(_) => failure(FailureKind::Usage)
            .with_hint("write --set FIELD=TEXT, for example --set summary=Lunch")
            .with_hint("`larder fields` lists the fields; times have options such as --start"),
        Error::InvalidItem(_) | Error::UnsupportedVersion | Error::TooManyOccurrences => {
            failure(FailureKind::Input)
        }
        _ => failure(FailureKind::Usage),
    }
}

/// Fails if another program modified the item.
pub(crate) fn check_not_outdated(done: &EditOutcome) -> Result<(), CommandFailure> {
    if done.conflict { Err(conflict_failure()) } else { Ok(()) }
}

/// The failure for an item that another program modified.
pub(crate) fn conflict_failure() -> CommandFailure {
    CommandFailure::new(FailureKind::Input, "conflict: another program modified the item")
        .with_hint("nothing was changed; run the command again")
}
