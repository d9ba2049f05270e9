//! Where the news of a view wait: a bounded queue, and what became of the view where there was no room.
//!
//! It is what the hub and the view have of each other: the one puts news here, the other takes them (`view`). What the
//! news are is found in `hub`.

use super::Limits;
use super::hub::lock;
use super::news::{News, Rows};
use super::view::ViewOptions;
use crate::log::Anew;
use larder_store::Seq;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};

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
    pub(super) bytes: usize,
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
    pub(super) fn put(&self, news: News, before: Seq, limits: Limits) {
        let mut waiting = lock(&self.waiting);
        waiting.keep_up(before);
        let keeps = waiting.state == Standing::Keeping && !waiting.paused;
        let (items, bytes) = (waiting.items + news.len(), waiting.bytes + news.bytes());
        if keeps && items <= limits.items && bytes <= limits.bytes {
            (waiting.items, waiting.bytes) = (items, bytes);
            waiting.news.push_back(news);
            return;
        }
        // What comes to the same is read from the store; but what the clock has changed is not in its log.
        let of_clock = |news: &News| matches!(news, News::Rows(rows) if rows.by_clock);
        let by_log = !of_clock(&news) && !waiting.news.iter().any(of_clock);
        waiting.state = match waiting.state {
            Standing::Lost(why) => Standing::Lost(why),
            _ if by_log => Standing::Lagging,
            _ => Standing::Lost(Anew::Expired),
        };
        waiting.forget();
    }

    /// The question says something else from now on. Who has missed news of what it said before cannot be told by the log; nor could who
    /// has them waiting and is going to miss them, so the turn waits behind them.
    pub(super) fn turn(&self) {
        let mut waiting = lock(&self.waiting);
        if waiting.state == Standing::Lagging {
            waiting.state = Standing::Lost(Anew::Expired);
        } else if let Some(seq) = waiting.news.back().map(News::seq) {
            let turn = Rows { seq, by_clock: true, ..Rows::default() };
            waiting.news.push_back(News::Rows(Arc::new(turn)));
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
        (self.news, self.items, self.bytes) = (VecDeque::new(), 0, 0);
    }

    /// The next news, which are told from now on.
    pub(super) fn take(&mut self) -> Option<News> {
        let news = self.news.pop_front()?;
        (self.items, self.bytes) = (self.items - news.len(), self.bytes - news.bytes());
        self.told = news.seq();
        Some(news)
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
