//! Where the news of a view wait: a bounded queue, and what became of the view where there was no room.
//!
//! It is what the hub and the view have of each other: the one puts news here, the other takes them (`view`). What the
//! news are is found in `hub`.

use super::hub::lock;
use super::view::{Gone, ViewOptions};
use crate::log::Anew;
use larder_store::{Changed, Seq};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};

/// So many items may wait for a client; with more it lags.
const WAITING: usize = 1024;

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

/// What of a view others see: where its news are put.
pub(super) struct Slot {
    pub(super) number: u64,
    pub(super) client: Arc<str>,
    wake: Option<Arc<dyn Fn() + Send + Sync>>,
    pub(super) waiting: Mutex<Waiting>,
    pub(super) heard: Condvar,
}

#[derive(Default)]
pub(super) struct Waiting {
    pub(super) news: VecDeque<News>,
    pub(super) items: usize,
    pub(super) state: Standing,
    /// Told up to this batch.
    pub(super) told: Seq,
    pub(super) paused: bool,
}

/// How a view stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Standing {
    #[default]
    Keeping,
    /// It has missed news since what it was told last.
    Lagging,
    /// It has to be told everything anew.
    Lost(Anew),
}

impl Slot {
    pub(super) fn new(number: u64, options: &ViewOptions, told: Seq) -> Slot {
        Slot {
            number,
            client: Arc::clone(&options.client),
            wake: options.wake.clone(),
            waiting: Mutex::new(Waiting { told, ..Waiting::default() }),
            heard: Condvar::new(),
        }
    }

    /// Puts news into the queue, or forgets them where there is no room. `before`: the last batch that is not among them.
    pub(super) fn put(&self, news: &News, before: Seq) {
        let mut waiting = lock(&self.waiting);
        waiting.keep_up(before);
        let keeps = waiting.state == Standing::Keeping && !waiting.paused;
        if keeps && waiting.items + news.len() <= WAITING {
            waiting.items += news.len();
            waiting.news.push_back(news.clone());
            return;
        }
        // What comes to the same is read from the store; but what the clock has changed is not in its log.
        let of_clock = |news: &News| matches!(news, News::Rows(_));
        let by_log = !of_clock(news) && !waiting.news.iter().any(of_clock);
        waiting.state = match waiting.state {
            Standing::Lost(why) => Standing::Lost(why),
            _ if by_log => Standing::Lagging,
            _ => Standing::Lost(Anew::Expired),
        };
        waiting.forget();
    }

    /// The question says something else from now on. Who has missed news of what it said before cannot be told by the log.
    pub(super) fn turn(&self) {
        let mut waiting = lock(&self.waiting);
        if waiting.state == Standing::Lagging {
            waiting.state = Standing::Lost(Anew::Expired);
        }
    }

    /// All has to be told anew.
    pub(super) fn lose(&self, why: Anew) {
        let mut waiting = lock(&self.waiting);
        waiting.forget();
        waiting.state = Standing::Lost(why);
    }

    pub(super) fn wake(&self) {
        self.heard.notify_all();
        if let Some(wake) = &self.wake {
            wake();
        }
    }

    pub(super) fn has_news(&self) -> bool {
        lock(&self.waiting).is_ready()
    }
}

impl Waiting {
    /// Nothing that it has to be told happened up to this batch.
    pub(super) fn keep_up(&mut self, seq: Seq) {
        if self.state == Standing::Keeping && self.news.is_empty() && !self.paused {
            self.told = self.told.max(seq);
        }
    }

    pub(super) fn forget(&mut self) {
        (self.news, self.items) = (VecDeque::new(), 0);
    }

    pub(super) fn is_ready(&self) -> bool {
        !self.paused && (self.state != Standing::Keeping || !self.news.is_empty())
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("number", &self.number).finish_non_exhaustive()
    }
}
