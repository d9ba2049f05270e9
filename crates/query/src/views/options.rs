//! The options of [`Views`](super::Views) and of a [`View`](super::View).
//!
//! Plain data, kept separate from the code that uses it so that every part can read its own
//! options.

use crate::query_log::QueryLogSink;
use larder_format::field::Field;
use larder_time::civil::Instant;
use larder_time::zone::ZoneDatabase;
use std::fmt;
use std::sync::Arc;

/// The default budget of the answer cache; `docs/queries.md` has the measurements on which it is
/// based.
pub const DEFAULT_CACHE_BYTES: usize = 384 << 10;

/// The number of items in one event, unless the client wants fewer.
const DEFAULT_ITEMS_PER_EVENT: usize = 64;

/// The options of all views of a process.
#[derive(Clone)]
pub struct ViewsOptions {
    /// The time-zone database.
    pub zones: Arc<ZoneDatabase>,
    /// The budget of the answer cache in bytes; 0 disables the cache.
    pub cache_bytes: usize,
    /// The query log, if one is written.
    pub log: Option<Arc<dyn QueryLogSink>>,
    /// Returns the current time.
    pub clock: Arc<dyn Fn() -> Instant + Send + Sync>,
    /// Whether a thread waits for commits. Without it the program calls
    /// [`Views::catch_up`](super::Views::catch_up).
    pub watch: bool,
    /// The bounds of the queues.
    pub limits: ViewLimits,
}

/// Bounds on the changes that are held for clients that have not fetched them. Beyond a bound the
/// changes are dropped, and the client gets the net effect from the store when it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewLimits {
    /// Items held for one view.
    pub items: usize,
    /// Bytes of items held for one view, and bytes of items found by one poll. Beyond it a poll
    /// holds rows only, and the items are read when they are delivered.
    pub bytes: usize,
    /// Changed items that one poll reads. With more, every view is reset, which reads less.
    pub changes: usize,
}

impl Default for ViewLimits {
    fn default() -> ViewLimits {
        ViewLimits { items: 1024, bytes: 4 << 20, changes: 50_000 }
    }
}

impl Default for ViewsOptions {
    fn default() -> ViewsOptions {
        ViewsOptions {
            zones: ZoneDatabase::open_bundled(),
            cache_bytes: DEFAULT_CACHE_BYTES,
            log: None,
            clock: Arc::new(system_now),
            watch: true,
            limits: ViewLimits::default(),
        }
    }
}

fn system_now() -> Instant {
    let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Instant::from_seconds_clamped(elapsed.map_or(0, |elapsed| elapsed.as_secs() as i64))
}

impl fmt::Debug for ViewsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewsOptions")
            .field("cache_bytes", &self.cache_bytes)
            .finish_non_exhaustive()
    }
}

/// The parts of an item that a view delivers.
#[derive(Debug, Clone, Default)]
pub enum ViewInterest {
    /// The row alone.
    Rows,
    /// The metadata, without the source bytes.
    #[default]
    Meta,
    /// The metadata and the values of these fields.
    Fields(Arc<[&'static Field]>),
    /// The row and the source bytes.
    Bytes,
    /// The metadata and the source bytes.
    MetaAndBytes,
}

/// The options of one view.
#[derive(Clone)]
pub struct ViewOptions {
    /// The name of the client, for the query log.
    pub client: Arc<str>,
    /// The parts of an item to deliver.
    pub interest: ViewInterest,
    /// Whether the view begins with the current answer. Otherwise it delivers changes only.
    pub initial: bool,
    /// The largest number of items in one event.
    pub items_per_event: usize,
    /// Called when events become available. It runs without any lock on the thread that found the
    /// change, and should return soon.
    pub wake: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Default for ViewOptions {
    fn default() -> ViewOptions {
        ViewOptions {
            client: "".into(),
            interest: ViewInterest::default(),
            initial: true,
            items_per_event: DEFAULT_ITEMS_PER_EVENT,
            wake: None,
        }
    }
}

impl fmt::Debug for ViewOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewOptions")
            .field("client", &self.client)
            .field("interest", &self.interest)
            .field("initial", &self.initial)
            .field("items_per_event", &self.items_per_event)
            .finish_non_exhaustive()
    }
}
