//! All items of one UID: a master and its detached occurrences, and which of their occurrences is
//! meant.

use super::Error;
use super::date_time_form::DateTimeForm;
use super::editable_component::{ComponentSchedule, EditableComponent};
use larder_store::{
    BatchChange, CalendarContext, Extractor, Handle, ItemMeta, ItemPut, Precondition, Reader, Seq,
};
use larder_time::civil::{CivilTime, Instant};
use larder_time::series::CalendarDateTime;
use larder_time::value::IcalDateTime;
use larder_time::zone::Zone;
use std::sync::Arc;

/// All items of one UID, as they are.
#[derive(Debug)]
pub struct UidGroup<'d> {
    pub(crate) deriver: &'d Extractor,
    collection: Arc<str>,
    pub(crate) uid: String,
    derived_uid: bool,
    /// Where each is stored, by its recurrence id.
    stored: Vec<(String, Handle, Seq, Vec<u8>)>,
    pub(crate) master: Option<EditableComponent>,
    pub(crate) schedule: Option<ComponentSchedule>,
    pub(crate) overrides: Vec<OverrideComponent>,
    /// What the items of detached occurrences stand for, by their recurrence ids.
    override_keys: Vec<(String, i64)>,
    has_vcalendar_1: bool,
}

/// A changed occurrence.
#[derive(Debug, Clone)]
pub(crate) struct OverrideComponent {
    /// Which it stands for; `None`: that is not known.
    pub(crate) key: Option<i64>,
    pub(crate) following: bool,
    pub(crate) component: EditableComponent,
}

/// An occurrence, as a person names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OccurrenceRef {
    /// By the RECURRENCE-ID: in UTC, or by the clock of the series.
    RecurrenceId(IcalDateTime),
    /// By the clock of whoever asks.
    Local(CivilTime),
    /// By its moment; of what floats, as the clock of whoever asks shows it.
    Instant(Instant),
    /// By its day, by the clock of whoever asks.
    Day(CivilTime),
}

impl<'d> UidGroup<'d> {
    /// Reads all items of the UID of one of them.
    ///
    /// # Errors
    /// What the store says.
    pub fn read(
        reader: &Reader,
        deriver: &'d Extractor,
        head: &ItemMeta,
    ) -> Result<UidGroup<'d>, Error> {
        let mut whole = UidGroup {
            deriver,
            collection: Arc::clone(&head.collection),
            uid: head.uid.clone(),
            derived_uid: head.derived_uid,
            stored: Vec::new(),
            master: None,
            schedule: None,
            overrides: Vec::new(),
            override_keys: Vec::new(),
            has_vcalendar_1: false,
        };
        let _snapshot = reader.begin_read()?;
        let mut detached = Vec::new();
        for head in reader.find_series_of_item(head)? {
            let Some(bytes) = reader.source_bytes(head.row)? else { continue };
            let frame = head
                .calendar_context
                .map(|row| reader.calendar_context(row))
                .transpose()?
                .flatten();
            let frame =
                frame.map_or_else(CalendarContext::default, |frame| CalendarContext::clone(&frame));
            whole.has_vcalendar_1 |= frame.is_vcalendar_1;
            whole.stored.push((head.recurrence_id.clone(), head.handle, head.seq, bytes.clone()));
            let part = EditableComponent { uid: head.uid, bytes, context: frame };
            match head.recurrence_id.is_empty() {
                true => whole.master = Some(part),
                false => detached.push((head.recurrence_id, part)),
            }
        }
        whole.schedule = whole.master.as_ref().and_then(|master| master.schedule(deriver));
        for (of, part) in detached {
            let original = part.recurrence_id(deriver);
            let following = original.as_ref().is_some_and(|(_, following)| *following);
            let key = original.map(|(time, _)| whole.recurrence_id_key(&time));
            whole.override_keys.extend(key.map(|key| (of, key)));
            whole.overrides.push(OverrideComponent { key, following, component: part });
        }
        Ok(whole)
    }

    /// Are there several occurrences?
    #[must_use]
    pub fn is_recurring(&self) -> bool {
        self.schedule.as_ref().is_some_and(ComponentSchedule::is_recurring)
            || !self.overrides.is_empty()
    }

    /// The number of items.
    #[must_use]
    pub fn item_count(&self) -> usize {
        self.stored.len()
    }

    /// What one of its items stands for.
    #[must_use]
    pub fn item_key(&self, head: &ItemMeta) -> Option<i64> {
        self.find_override_key(&head.recurrence_id)
    }

    /// What a RECURRENCE-ID means here.
    pub(crate) fn recurrence_id_key(&self, time: &CalendarDateTime) -> i64 {
        match &self.schedule {
            Some(plan) => plan.recurrence_id_key(time),
            None => DateTimeForm::new(time.is_date, &time.zone_reference).civil_to_key(time.civil),
        }
    }

    fn find_override_key(&self, recurrence: &str) -> Option<i64> {
        self.override_keys.iter().find(|(name, _)| name == recurrence).map(|(_, key)| *key)
    }

    pub(crate) fn check_format_version(&self) -> Result<(), Error> {
        if self.has_vcalendar_1 && self.is_recurring() {
            Err(Error::UnsupportedVersion)
        } else {
            Ok(())
        }
    }

    /// The occurrence that is meant: one that is planned, or was changed, for that time, else one
    /// that was moved there.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn find_occurrence(&self, at: OccurrenceRef, local: &Zone) -> Result<i64, Error> {
        let mut found = match at {
            // The RECURRENCE-ID of a series: by the clock of that.
            OccurrenceRef::RecurrenceId(IcalDateTime { is_date: true, civil, .. }) => {
                self.keys_on_day(civil.day_number(), None)
            }
            OccurrenceRef::Day(civil) => self.keys_on_day(civil.day_number(), Some(local)),
            _ => self.keys_at_time(at, local),
        };
        found.sort_unstable();
        found.dedup();
        match found[..] {
            [key] => Ok(key),
            [] => Err(Error::NoOccurrence(match at {
                OccurrenceRef::RecurrenceId(stamp) => stamp.to_string(),
                OccurrenceRef::Local(civil) => civil.to_string(),
                OccurrenceRef::Instant(moment) => local.to_civil(moment).to_string(),
                OccurrenceRef::Day(civil) => {
                    IcalDateTime { civil, is_date: true, is_utc: false }.to_string()
                }
            })),
            _ => Err(Error::AmbiguousOccurrence),
        }
    }

    /// What is on a day by this clock; without one, by that of the series.
    fn keys_on_day(&self, day: i64, by: Option<&Zone>) -> Vec<i64> {
        let mut found: Vec<i64> = Vec::new();
        if let Some(plan) = &self.schedule {
            found.extend(plan.keys_on_day(day, by));
        }
        let is_on = |one: &&OverrideComponent| match (&self.schedule, one.key) {
            (Some(plan), Some(key)) => plan.day_of_key(key, by) == day,
            (None, Some(key)) => CivilTime::from_seconds_clamped(key).day_number() == day,
            _ => false,
        };
        found.extend(self.overrides.iter().filter(is_on).filter_map(|one| one.key));
        if found.is_empty() {
            let moved = self.overrides.iter().filter(|one| {
                let plan = one.component.schedule(self.deriver);
                plan.is_some_and(|plan| {
                    plan.day_of_key(plan.form.civil_to_key(plan.start), by) == day
                })
            });
            found.extend(moved.filter_map(|one| one.key));
        }
        found
    }

    fn keys_at_time(&self, at: OccurrenceRef, local: &Zone) -> Vec<i64> {
        let key = |plan: &ComponentSchedule| match at {
            OccurrenceRef::RecurrenceId(IcalDateTime { is_utc: true, civil, .. })
                if plan.form.zone().is_some() =>
            {
                civil.seconds()
            }
            OccurrenceRef::Local(civil) if plan.form.zone().is_some() => {
                local.to_instant(civil).seconds()
            }
            OccurrenceRef::Instant(moment) if plan.form.zone().is_some() => moment.seconds(),
            OccurrenceRef::Instant(moment) => plan.form.civil_to_key(local.to_civil(moment)),
            OccurrenceRef::RecurrenceId(IcalDateTime { civil, .. })
            | OccurrenceRef::Local(civil)
            | OccurrenceRef::Day(civil) => plan.form.civil_to_key(civil),
        };
        let known = |key: &i64| {
            let detached = self.overrides.iter().any(|one| one.key == Some(*key));
            detached
                || self.schedule.as_ref().is_some_and(|plan| plan.occurrence_at(*key).is_some())
        };
        let item = match at {
            OccurrenceRef::RecurrenceId(stamp) => self.find_override_key(&stamp.to_string()),
            _ => None,
        };
        let planned = match (&self.schedule, at) {
            (Some(plan), _) => Some(key(plan)),
            (None, OccurrenceRef::RecurrenceId(stamp)) => Some(stamp.civil.seconds()),
            (None, _) => None,
        };
        if let Some(key) = item.or(planned.filter(known)) {
            return vec![key];
        }
        let moved = self.overrides.iter().filter(|one| {
            let plan = one.component.schedule(self.deriver);
            plan.is_some_and(|plan| plan.form.civil_to_key(plan.start) == key(&plan))
        });
        moved.filter_map(|one| one.key).collect()
    }

    /// What has to be written so that these parts are what is there.
    pub(crate) fn compute_changes(
        &self,
        parts: Vec<EditableComponent>,
    ) -> Result<Vec<BatchChange>, Error> {
        let (mut puts, mut hit) = (Vec::new(), vec![false; self.stored.len()]);
        for part in parts {
            let EditableComponent { uid, bytes, context: frame } = part;
            let (prepared, ..) = self
                .deriver
                .parse_component(bytes, &frame)
                .map_err(|(_, problem)| Error::InvalidItem(problem))?;
            let same = |stored: &(String, Handle, Seq, Vec<u8>)| {
                uid == self.uid && stored.0 == prepared.recurrence_id()
            };
            let mut expect = Precondition::Absent;
            if let Some(at) = self.stored.iter().position(same)
                && let (Some(stored), Some(hit)) = (self.stored.get(at), hit.get_mut(at))
            {
                *hit = true;
                if stored.3 == prepared.bytes() {
                    continue;
                }
                expect = Precondition::UnchangedSince(stored.2);
            }
            let derived_uid = self.derived_uid && uid == self.uid;
            let collection = Arc::clone(&self.collection);
            puts.push(BatchChange::Put(ItemPut {
                collection,
                uid,
                derived_uid,
                parsed: prepared,
                precondition: expect,
            }));
        }
        let gone = self.stored.iter().zip(hit).filter(|(_, hit)| !hit);
        let mut changes: Vec<BatchChange> = gone
            .map(|((_, handle, seq, _), _)| {
                BatchChange::Remove(*handle, Precondition::UnchangedSince(*seq))
            })
            .collect();
        changes.extend(puts);
        Ok(changes)
    }
}
