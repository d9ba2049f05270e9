//! The items of one UID: a master and its overrides.
//!
//! Separate from [`scope`](super::scope) because cancellations change the same items, and because
//! only this module reads the store: it finds the occurrence that a user names, and turns changed
//! components into a batch.

use super::Error;
use super::date_time_form::DateTimeForm;
use super::editable_component::{ComponentSchedule, EditableComponent};
use larder_store::{
    BatchChange, CalendarContext, Extractor, Handle, ItemMeta, ItemPut, ParsedItem, Precondition,
    Reader, Seq,
};
use larder_time::civil::{CivilTime, Date, Instant};
use larder_time::series::CalendarDateTime;
use larder_time::value::IcalDateTime;
use larder_time::zone::Zone;
use std::collections::HashMap;
use std::sync::Arc;

/// The items of one UID as they are stored.
#[derive(Debug)]
pub struct UidGroup<'d> {
    pub(crate) extractor: &'d Extractor,
    collection: Arc<str>,
    pub(crate) uid: String,
    derived_uid: bool,
    stored: Vec<StoredComponent>,
    pub(crate) master: Option<EditableComponent>,
    /// The schedule of the master.
    pub(crate) schedule: Option<ComponentSchedule>,
    pub(crate) overrides: Vec<OverrideComponent>,
    has_vcalendar_1: bool,
}

/// An item of the group in the store.
#[derive(Debug)]
struct StoredComponent {
    recurrence_id: String,
    handle: Handle,
    seq: Seq,
    bytes: Vec<u8>,
    /// The key of the occurrence that the item overrides.
    override_key: Option<i64>,
    /// Whether it overrides all following ones, too (RANGE=THISANDFUTURE).
    following: bool,
}

/// An override.
#[derive(Debug, Clone)]
pub(crate) struct OverrideComponent {
    /// The key of the overridden occurrence. `None` if RECURRENCE-ID cannot be resolved.
    pub(crate) key: Option<i64>,
    /// Whether the override applies to all following occurrences (RANGE=THISANDFUTURE).
    pub(crate) following: bool,
    pub(crate) component: EditableComponent,
}

/// The stored overrides of a UID by the occurrences that they replace.
#[derive(Debug)]
pub struct OverrideIndex {
    /// The schedule of the master.
    schedule: Option<ComponentSchedule>,
    /// By the key of the occurrence, and whether the override applies to all following ones, too.
    handles: HashMap<(i64, bool), Handle>,
}

impl OverrideIndex {
    /// Returns the stored override of the occurrence that an item replaces.
    #[must_use]
    pub fn find(&self, extractor: &Extractor, item: &ParsedItem) -> Option<Handle> {
        let recurrence_id = EditableComponent::from_parsed(item).recurrence_id(extractor)?;
        let key = recurrence_id_key(self.schedule.as_ref(), &recurrence_id.time);
        self.handles.get(&(key, recurrence_id.following)).copied()
    }
}

/// Returns the key of the occurrence of a series that a RECURRENCE-ID refers to; without a series,
/// that of the time itself.
fn recurrence_id_key(schedule: Option<&ComponentSchedule>, time: &CalendarDateTime) -> i64 {
    match schedule {
        Some(schedule) => schedule.recurrence_id_key(time),
        None => DateTimeForm::from_date_time(time).civil_to_key(time.civil),
    }
}

/// An occurrence as a user names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OccurrenceRef {
    /// By RECURRENCE-ID: in UTC, or by the clock of the series.
    RecurrenceId(IcalDateTime),
    /// By the time in the zone of the user.
    Local(CivilTime),
    /// By its instant; a floating time is read in the zone of the user.
    Instant(Instant),
    /// By its day in the zone of the user.
    Day(CivilTime),
}

impl<'d> UidGroup<'d> {
    /// Reads all items with the UID of an item.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn read(
        reader: &Reader,
        extractor: &'d Extractor,
        item: &ItemMeta,
    ) -> Result<UidGroup<'d>, Error> {
        let mut group = UidGroup {
            extractor,
            collection: Arc::clone(&item.collection),
            uid: item.uid.clone(),
            derived_uid: item.derived_uid,
            stored: Vec::new(),
            master: None,
            schedule: None,
            overrides: Vec::new(),
            has_vcalendar_1: false,
        };
        let _transaction = reader.begin_read()?;
        // Overrides are resolved by the schedule of the master, which may be read after them.
        let mut overrides = Vec::new();
        for item in reader.items().find_series_of_item(item)? {
            let Some(bytes) = reader.items().source_bytes(item.row)? else { continue };
            let context = item
                .calendar_context
                .map(|row| reader.items().calendar_context(row))
                .transpose()?
                .flatten()
                .map_or_else(CalendarContext::default, |context| (*context).clone());
            group.has_vcalendar_1 |= context.is_vcalendar_1;
            let component = EditableComponent { uid: item.uid, bytes: bytes.clone(), context };
            match item.recurrence_id.is_empty() {
                true => group.master = Some(component),
                false => overrides.push((group.stored.len(), component)),
            }
            group.stored.push(StoredComponent {
                recurrence_id: item.recurrence_id,
                handle: item.handle,
                seq: item.seq,
                bytes,
                override_key: None,
                following: false,
            });
        }
        group.schedule = group.master.as_ref().and_then(|master| master.schedule(extractor));
        for (at, component) in overrides {
            let recurrence_id = component.recurrence_id(extractor);
            let following = recurrence_id.as_ref().is_some_and(|id| id.following);
            let key = recurrence_id.map(|id| group.recurrence_id_key(&id.time));
            if let Some(stored) = group.stored.get_mut(at) {
                (stored.override_key, stored.following) = (key, following);
            }
            group.overrides.push(OverrideComponent { key, following, component });
        }
        Ok(group)
    }

    /// Returns whether the UID can have several occurrences.
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

    /// Returns the batch that last changed an item of the group.
    pub(super) fn stored_seq(&self, handle: Handle) -> Option<Seq> {
        self.stored.iter().find(|stored| stored.handle == handle).map(|stored| stored.seq)
    }

    /// Returns whether an override of the occurrence with this key applies to all following ones.
    pub(super) fn is_following_override(&self, key: i64) -> bool {
        self.overrides.iter().any(|one| one.following && one.key == Some(key))
    }

    /// Returns the key of the occurrence that an item overrides.
    #[must_use]
    pub fn item_key(&self, item: &ItemMeta) -> Option<i64> {
        self.find_override_key(&item.recurrence_id)
    }

    /// Returns the key of the occurrence that a RECURRENCE-ID refers to.
    pub(crate) fn recurrence_id_key(&self, time: &CalendarDateTime) -> i64 {
        recurrence_id_key(self.schedule.as_ref(), time)
    }

    /// Returns its overrides by the occurrences that they replace.
    #[must_use]
    pub fn into_override_index(self) -> OverrideIndex {
        let keyed = |stored: &StoredComponent| {
            Some(((stored.override_key?, stored.following), stored.handle))
        };
        let handles = self.stored.iter().filter_map(keyed).collect();
        OverrideIndex { schedule: self.schedule, handles }
    }

    fn find_override_key(&self, recurrence_id: &str) -> Option<i64> {
        let stored = self.stored.iter().find(|stored| stored.recurrence_id == recurrence_id)?;
        stored.override_key
    }

    pub(crate) fn check_format_version(&self) -> Result<(), Error> {
        if self.has_vcalendar_1 && self.is_recurring() {
            Err(Error::UnsupportedVersion)
        } else {
            Ok(())
        }
    }

    /// Finds the key of an occurrence: one that is planned or overridden for this time, else one
    /// that was moved to this time.
    ///
    /// # Errors
    /// [`Error::NoOccurrence`] and [`Error::AmbiguousOccurrence`].
    pub fn find_occurrence(&self, at: OccurrenceRef, local: &Zone) -> Result<i64, Error> {
        let mut keys = match at {
            // A date as RECURRENCE-ID is a day by the clock of the series.
            OccurrenceRef::RecurrenceId(IcalDateTime { is_date: true, civil, .. }) => {
                self.keys_on_day(civil.day_number(), None)
            }
            OccurrenceRef::Day(civil) => self.keys_on_day(civil.day_number(), Some(local)),
            _ => self.keys_at_time(at, local),
        };
        keys.sort_unstable();
        keys.dedup();
        match keys[..] {
            [key] => Ok(key),
            [] => Err(Error::NoOccurrence(match at {
                OccurrenceRef::RecurrenceId(stamp) => stamp.to_string(),
                OccurrenceRef::Local(civil) => format_minute(civil),
                OccurrenceRef::Instant(instant) => format_minute(local.to_civil(instant)),
                OccurrenceRef::Day(civil) => format_day(civil),
            })),
            _ => Err(Error::AmbiguousOccurrence),
        }
    }

    /// Returns the keys of the occurrences on a day, in `zone` or by the clock of the series.
    fn keys_on_day(&self, day: i64, zone: Option<&Zone>) -> Vec<i64> {
        let mut keys: Vec<i64> = Vec::new();
        if let Some(schedule) = &self.schedule {
            keys.extend(schedule.keys_on_day(day, zone));
        }
        let is_on_day = |one: &&OverrideComponent| match (&self.schedule, one.key) {
            (Some(schedule), Some(key)) => schedule.day_of_key(key, zone) == day,
            (None, Some(key)) => CivilTime::from_seconds_clamped(key).day_number() == day,
            _ => false,
        };
        keys.extend(self.overrides.iter().filter(is_on_day).filter_map(|one| one.key));
        if keys.is_empty() {
            let is_moved_to_day = |one: &&OverrideComponent| {
                one.component.schedule(self.extractor).is_some_and(|own| {
                    own.day_of_key(own.form.civil_to_key(own.start), zone) == day
                })
            };
            keys.extend(self.overrides.iter().filter(is_moved_to_day).filter_map(|one| one.key));
        }
        keys
    }

    fn keys_at_time(&self, at: OccurrenceRef, local: &Zone) -> Vec<i64> {
        let to_key = |schedule: &ComponentSchedule| match at {
            OccurrenceRef::RecurrenceId(IcalDateTime { is_utc: true, civil, .. })
                if schedule.form.zone().is_some() =>
            {
                civil.seconds()
            }
            OccurrenceRef::Local(civil) if schedule.form.zone().is_some() => {
                local.to_instant(civil).seconds()
            }
            OccurrenceRef::Instant(instant) if schedule.form.zone().is_some() => instant.seconds(),
            OccurrenceRef::Instant(instant) => schedule.form.civil_to_key(local.to_civil(instant)),
            OccurrenceRef::RecurrenceId(IcalDateTime { civil, .. })
            | OccurrenceRef::Local(civil)
            | OccurrenceRef::Day(civil) => schedule.form.civil_to_key(civil),
        };
        let has_occurrence = |key: &i64| {
            let is_overridden = self.overrides.iter().any(|one| one.key == Some(*key));
            is_overridden
                || self
                    .schedule
                    .as_ref()
                    .is_some_and(|schedule| schedule.occurrence_at(*key).is_some())
        };
        let override_key = match at {
            OccurrenceRef::RecurrenceId(stamp) => self.find_override_key(&stamp.to_string()),
            _ => None,
        };
        let planned_key = match (&self.schedule, at) {
            (Some(schedule), _) => Some(to_key(schedule)),
            (None, OccurrenceRef::RecurrenceId(stamp)) => Some(stamp.civil.seconds()),
            (None, _) => None,
        };
        if let Some(key) = override_key.or(planned_key.filter(has_occurrence)) {
            return vec![key];
        }
        let moved = self.overrides.iter().filter(|one| {
            let own = one.component.schedule(self.extractor);
            own.is_some_and(|own| own.form.civil_to_key(own.start) == to_key(&own))
        });
        moved.filter_map(|one| one.key).collect()
    }

    /// Computes the changes that make the stored items of the UID equal to these components.
    pub(crate) fn compute_changes(
        &self,
        components: Vec<EditableComponent>,
    ) -> Result<Vec<BatchChange>, Error> {
        let (mut puts, mut is_kept) = (Vec::new(), vec![false; self.stored.len()]);
        for EditableComponent { uid, bytes, context } in components {
            let parsed = self
                .extractor
                .parse_component(bytes, &context)
                .map_err(|rejected| Error::InvalidItem(rejected.problem))?;
            let is_same = |stored: &StoredComponent| {
                uid == self.uid && stored.recurrence_id == parsed.recurrence_id()
            };
            let mut precondition = Precondition::Absent;
            if let Some(at) = self.stored.iter().position(is_same)
                && let (Some(stored), Some(is_kept)) = (self.stored.get(at), is_kept.get_mut(at))
            {
                *is_kept = true;
                if stored.bytes == parsed.bytes() {
                    continue;
                }
                precondition = Precondition::UnchangedSince(stored.seq);
            }
            let derived_uid = self.derived_uid && uid == self.uid;
            let collection = Arc::clone(&self.collection);
            let put = ItemPut { collection, uid, derived_uid, parsed, precondition };
            puts.push(BatchChange::Put(put));
        }
        let removed = self.stored.iter().zip(is_kept).filter(|(_, is_kept)| !is_kept);
        let mut changes: Vec<BatchChange> = removed
            .map(|(stored, _)| {
                BatchChange::Remove(stored.handle, Precondition::UnchangedSince(stored.seq))
            })
            .collect();
        changes.extend(puts);
        Ok(changes)
    }
}

/// Formats a day for messages: `2026-03-05`.
fn format_day(civil: CivilTime) -> String {
    let Date { year, month, day } = civil.date();
    format!("{year:04}-{month:02}-{day:02}")
}

/// Formats a time for messages: `2026-03-05 12:30`.
fn format_minute(civil: CivilTime) -> String {
    let minutes = civil.second_of_day() / 60;
    format!("{} {:02}:{:02}", format_day(civil), minutes / 60, minutes % 60)
}
