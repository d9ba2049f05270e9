//! All items of one UID: a master and its detached occurrences, and which of their occurrences is meant.

use super::Error;
use super::form::Form;
use super::part::{Part, Plan};
use larder_store::{Change, Deriver, Expect, Frame, Handle, ItemHead, Put, Reader, Seq};
use larder_time::civil::{Civil, Instant};
use larder_time::series::Start;
use larder_time::value::Stamp;
use larder_time::zone::Zone;
use std::sync::Arc;

/// All items of one UID, as they are.
#[derive(Debug)]
pub struct Whole<'d> {
    pub(crate) deriver: &'d Deriver,
    collection: Arc<str>,
    pub(crate) uid: String,
    derived_uid: bool,
    /// Where each is stored, by its recurrence id.
    stored: Vec<(String, Handle, Seq, Vec<u8>)>,
    pub(crate) master: Option<Part>,
    pub(crate) plan: Option<Plan>,
    pub(crate) detached: Vec<Detached>,
    /// What the items of detached occurrences stand for, by their recurrence ids.
    keys: Vec<(String, i64)>,
    old: bool,
}

/// A changed occurrence.
#[derive(Debug, Clone)]
pub(crate) struct Detached {
    /// Which it stands for; `None`: that is not known.
    pub(crate) key: Option<i64>,
    pub(crate) following: bool,
    pub(crate) part: Part,
}

/// An occurrence, as a person names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// By the RECURRENCE-ID: in UTC, or by the clock of the series.
    Id(Stamp),
    /// By the clock of whoever asks.
    Local(Civil),
    /// By its moment; of what floats, as the clock of whoever asks shows it.
    Moment(Instant),
    /// By its day, by the clock of whoever asks.
    Day(Civil),
}

impl<'d> Whole<'d> {
    /// Reads all items of the UID of one of them.
    ///
    /// # Errors
    /// What the store says.
    pub fn read(
        reader: &Reader,
        deriver: &'d Deriver,
        head: &ItemHead,
    ) -> Result<Whole<'d>, Error> {
        let mut whole = Whole {
            deriver,
            collection: Arc::clone(&head.collection),
            uid: head.uid.clone(),
            derived_uid: head.derived_uid,
            stored: Vec::new(),
            master: None,
            plan: None,
            detached: Vec::new(),
            keys: Vec::new(),
            old: false,
        };
        let _snapshot = reader.snapshot()?;
        let mut detached = Vec::new();
        for head in reader.series_of(head)? {
            let Some(bytes) = reader.source(head.row)? else { continue };
            let frame = head.frame.map(|row| reader.frame(row)).transpose()?.flatten();
            let frame = frame.map_or_else(Frame::default, |frame| Frame::clone(&frame));
            whole.old |= frame.version_1;
            whole.stored.push((head.recurrence.clone(), head.handle, head.seq, bytes.clone()));
            let part = Part { uid: head.uid, bytes, frame };
            match head.recurrence.is_empty() {
                true => whole.master = Some(part),
                false => detached.push((head.recurrence, part)),
            }
        }
        whole.plan = whole.master.as_ref().and_then(|master| master.plan(deriver));
        for (of, part) in detached {
            let original = part.original(deriver);
            let following = original.as_ref().is_some_and(|(_, following)| *following);
            let key = original.map(|(time, _)| whole.key_of_original(&time));
            whole.keys.extend(key.map(|key| (of, key)));
            whole.detached.push(Detached { key, following, part });
        }
        Ok(whole)
    }

    /// Are there several occurrences?
    #[must_use]
    pub fn recurs(&self) -> bool {
        self.plan.as_ref().is_some_and(Plan::recurs) || !self.detached.is_empty()
    }

    /// The number of items.
    #[must_use]
    pub fn items(&self) -> usize {
        self.stored.len()
    }

    /// What one of its items stands for.
    #[must_use]
    pub fn key_of(&self, head: &ItemHead) -> Option<i64> {
        self.named(&head.recurrence)
    }

    /// What a RECURRENCE-ID means here.
    pub(crate) fn key_of_original(&self, time: &Start) -> i64 {
        match &self.plan {
            Some(plan) => plan.key_of_original(time),
            None => Form::new(time.date, &time.clock).key(time.civil),
        }
    }

    fn named(&self, recurrence: &str) -> Option<i64> {
        self.keys.iter().find(|(name, _)| name == recurrence).map(|(_, key)| *key)
    }

    pub(crate) fn is_current(&self) -> Result<(), Error> {
        if self.old && self.recurs() { Err(Error::Old) } else { Ok(()) }
    }

    /// The occurrence that is meant: one that is planned, or was changed, for that time, else one that was moved there.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn find(&self, at: At, local: &Zone) -> Result<i64, Error> {
        let mut found = match at {
            // The RECURRENCE-ID of a series: by the clock of that.
            At::Id(Stamp { date: true, civil, .. }) => self.on(civil.day(), None),
            At::Day(civil) => self.on(civil.day(), Some(local)),
            _ => self.exactly(at, local),
        };
        found.sort_unstable();
        found.dedup();
        match found[..] {
            [key] => Ok(key),
            [] => Err(Error::NoOccurrence(match at {
                At::Id(stamp) => stamp.to_string(),
                At::Local(civil) => civil.to_string(),
                At::Moment(moment) => local.civil(moment).to_string(),
                At::Day(civil) => Stamp { civil, date: true, utc: false }.to_string(),
            })),
            _ => Err(Error::Several),
        }
    }

    /// What is on a day by this clock; without one, by that of the series.
    fn on(&self, day: i64, by: Option<&Zone>) -> Vec<i64> {
        let mut found: Vec<i64> = Vec::new();
        if let Some(plan) = &self.plan {
            found.extend(plan.on(day, by));
        }
        let is_on = |one: &&Detached| match (&self.plan, one.key) {
            (Some(plan), Some(key)) => plan.day(key, by) == day,
            (None, Some(key)) => Civil::clamped(key).day() == day,
            _ => false,
        };
        found.extend(self.detached.iter().filter(is_on).filter_map(|one| one.key));
        if found.is_empty() {
            let moved = self.detached.iter().filter(|one| {
                let plan = one.part.plan(self.deriver);
                plan.is_some_and(|plan| plan.day(plan.form.key(plan.start), by) == day)
            });
            found.extend(moved.filter_map(|one| one.key));
        }
        found
    }

    fn exactly(&self, at: At, local: &Zone) -> Vec<i64> {
        let key = |plan: &Plan| match at {
            At::Id(Stamp { utc: true, civil, .. }) if plan.form.zone().is_some() => civil.seconds(),
            At::Local(civil) if plan.form.zone().is_some() => local.instant(civil).seconds(),
            At::Moment(moment) if plan.form.zone().is_some() => moment.seconds(),
            At::Moment(moment) => plan.form.key(local.civil(moment)),
            At::Id(Stamp { civil, .. }) | At::Local(civil) | At::Day(civil) => plan.form.key(civil),
        };
        let known = |key: &i64| {
            let detached = self.detached.iter().any(|one| one.key == Some(*key));
            detached || self.plan.as_ref().is_some_and(|plan| plan.at(*key).is_some())
        };
        let item = match at {
            At::Id(stamp) => self.named(&stamp.to_string()),
            _ => None,
        };
        let planned = match (&self.plan, at) {
            (Some(plan), _) => Some(key(plan)),
            (None, At::Id(stamp)) => Some(stamp.civil.seconds()),
            (None, _) => None,
        };
        if let Some(key) = item.or(planned.filter(known)) {
            return vec![key];
        }
        let moved = self.detached.iter().filter(|one| {
            let plan = one.part.plan(self.deriver);
            plan.is_some_and(|plan| plan.form.key(plan.start) == key(&plan))
        });
        moved.filter_map(|one| one.key).collect()
    }

    /// What has to be written so that these parts are what is there.
    pub(crate) fn changes(&self, parts: Vec<Part>) -> Result<Vec<Change>, Error> {
        let (mut puts, mut hit) = (Vec::new(), vec![false; self.stored.len()]);
        for part in parts {
            let Part { uid, bytes, frame } = part;
            let (prepared, ..) = self
                .deriver
                .component(bytes, &frame)
                .map_err(|(_, problem)| Error::Refused(problem))?;
            let same = |stored: &(String, Handle, Seq, Vec<u8>)| {
                uid == self.uid && stored.0 == prepared.recurrence()
            };
            let mut expect = Expect::Nothing;
            if let Some(at) = self.stored.iter().position(same)
                && let (Some(stored), Some(hit)) = (self.stored.get(at), hit.get_mut(at))
            {
                *hit = true;
                if stored.3 == prepared.bytes() {
                    continue;
                }
                expect = Expect::At(stored.2);
            }
            let derived_uid = self.derived_uid && uid == self.uid;
            let collection = Arc::clone(&self.collection);
            puts.push(Change::Put(Put { collection, uid, derived_uid, prepared, expect }));
        }
        let gone = self.stored.iter().zip(hit).filter(|(_, hit)| !hit);
        let mut changes: Vec<Change> = gone
            .map(|((_, handle, seq, _), _)| Change::Remove(*handle, Expect::At(*seq)))
            .collect();
        changes.extend(puts);
        Ok(changes)
    }
}
