//! News of a view before they are told: what became of which items.
//!
//! They are items as they were at a batch, or, where these would be too much to be held, or are read from an answer, rows of items that
//! are read when they are told. Where they wait is in `slot`, who finds them, `hub` and `clock`.

use super::view::Gone;
use larder_store::{Changed, Seq};
use std::collections::HashMap;
use std::sync::Arc;

/// What became of an item for a view, in the order in which it is told: what went and came back is there in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Removed,
    Added,
    Modified,
}

/// News of a view, before it is told.
#[derive(Debug, Clone)]
pub(super) enum News {
    /// What batches changed, as it was then.
    Items(Seq, Vec<(What, Arc<Changed>)>),
    /// Items that are read when they are told.
    Rows(Arc<Rows>),
}

/// Rows of items that are added, and modified, and what is removed.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    pub(super) seq: Seq,
    /// It is the clock that brought them: the log of the store knows nothing of it.
    pub(super) by_clock: bool,
    pub(super) added: Arc<[i64]>,
    pub(super) modified: Vec<i64>,
    pub(super) removed: Vec<Gone>,
}

impl News {
    pub(super) fn len(&self) -> usize {
        match self {
            News::Items(_, items) => items.len(),
            News::Rows(rows) => rows.added.len() + rows.modified.len() + rows.removed.len(),
        }
    }

    /// What they hold, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            News::Items(_, items) => items.iter().map(|(_, changed)| bytes_of(changed)).sum(),
            News::Rows(rows) => {
                let gone = |gone: &Gone| size_of::<Gone>() + gone.uid.len() + gone.recurrence.len();
                (rows.added.len() + rows.modified.len()) * size_of::<i64>()
                    + rows.removed.iter().map(gone).sum::<usize>()
            }
        }
    }

    pub(super) fn seq(&self) -> Seq {
        match self {
            News::Items(seq, _) => *seq,
            News::Rows(rows) => rows.seq,
        }
    }

    /// How many are added, modified and removed.
    pub(super) fn counts(&self) -> [usize; 3] {
        match self {
            News::Items(_, items) => {
                let count = |what| items.iter().filter(|(of, _)| *of == what).count();
                [count(What::Added), count(What::Modified), count(What::Removed)]
            }
            News::Rows(rows) => [rows.added.len(), rows.modified.len(), rows.removed.len()],
        }
    }
}

/// What of an item is held until it is told, in bytes.
fn bytes_of(changed: &Changed) -> usize {
    let versions = changed.was.iter().chain(&changed.is);
    size_of::<Changed>() + versions.map(|then| then.bytes.len()).sum::<usize>()
}

/// What one look at the store finds for each question, while it is found: items, up to so many bytes of them, and then rows.
pub(super) struct Gathering {
    most: usize,
    bytes: usize,
    items: HashMap<u32, Vec<(What, Arc<Changed>)>>,
    rows: HashMap<u32, Gathered>,
}

/// Rows while they are gathered.
#[derive(Default)]
pub(super) struct Gathered {
    added: Vec<i64>,
    modified: Vec<i64>,
    removed: Vec<Gone>,
}

impl Gathering {
    pub(super) fn new(most: usize) -> Gathering {
        Gathering { most, bytes: 0, items: HashMap::new(), rows: HashMap::new() }
    }

    /// This became of an item for the question of this number. What an item holds counts once: all who are told share it.
    pub(super) fn add(&mut self, number: u32, became: &'static [What], changed: &Arc<Changed>) {
        if self.bytes > self.most {
            self.rows.entry(number).or_default().add(became, changed);
            return;
        }
        if Arc::strong_count(changed) == 1 {
            self.bytes += bytes_of(changed);
        }
        self.bytes += size_of_val(became) + size_of::<Arc<Changed>>();
        let items = self.items.entry(number).or_default();
        items.extend(became.iter().map(|what| (*what, Arc::clone(changed))));
        if self.bytes > self.most {
            for (number, items) in self.items.drain() {
                let rows = self.rows.entry(number).or_default();
                items.iter().for_each(|(what, changed)| rows.add(&[*what], changed));
            }
        }
    }

    /// Nothing of it is told.
    pub(super) fn clear(&mut self) {
        (self.items, self.rows) = (HashMap::new(), HashMap::new());
    }

    /// The news of each question, as of this batch.
    pub(super) fn news(self, seq: Seq) -> impl Iterator<Item = (u32, News)> {
        let items = self.items.into_iter().map(move |(number, mut items)| {
            // Kinds of news are not mixed; of the same kind they stay in order.
            items.sort_by_key(|(what, _)| *what as u8);
            (number, News::Items(seq, items))
        });
        let rows = self.rows.into_iter();
        items.chain(rows.map(move |(number, rows)| (number, News::Rows(Arc::new(rows.rows(seq))))))
    }
}

impl Gathered {
    pub(super) fn add(&mut self, became: &[What], changed: &Changed) {
        for what in became {
            match (what, &changed.was, &changed.is) {
                (What::Removed, Some(was), _) => self.removed.push(Gone::of(&was.head)),
                (What::Added, _, Some(is)) => self.added.push(is.head.row),
                (What::Modified, _, Some(is)) => self.modified.push(is.head.row),
                _ => {}
            }
        }
    }

    pub(super) fn rows(self, seq: Seq) -> Rows {
        let (added, modified, removed) = (self.added.into(), self.modified, self.removed);
        Rows { seq, by_clock: false, added, modified, removed }
    }
}
