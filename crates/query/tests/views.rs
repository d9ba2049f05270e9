//! The property of live views: whatever happens, and whenever a client reads its events, they add
//! up to the answer of a new query.

use crate::agree_in_time;
use crate::book::Book;
use crate::foreign_zones;
use crate::random;
use crate::writer::{self, COLLECTIONS};
use larder_format::field::find_contact_field;
use larder_query::views::{
    QuerySyntax, View, ViewEvent, ViewInterest, ViewItem, ViewLimits, ViewOptions, ViewQuery,
    Views, ViewsOptions,
};
use larder_query::{Error, Query, QueryContext, SearchRequest, find, required_time_range};
use larder_store::{Handle, ItemOccurrence, ItemRow, Kind, Reader};
use larder_time::civil::{CivilTime, Instant};
use larder_time::value::IcalDateTime;
use larder_time::zone::ZoneDatabase;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const DAY_SECONDS: i64 = 86_400;

/// A query that can be opened and executed again.
#[derive(Debug, Clone)]
pub(crate) struct TestQuery {
    syntax: QuerySyntax,
    text: String,
    collection: Option<&'static str>,
    kind: Option<Kind>,
    occurrences: bool,
    /// The zone of the user.
    local_zone: &'static str,
}

#[derive(Debug, Clone)]
enum Action {
    Write(writer::StoreAction),
    /// Moves the clock by seconds.
    Wait(i64),
    Open(TestQuery, ClientPace),
    /// Executes a query once.
    Find(TestQuery),
    FindAgain(usize),
    Close(usize),
    Pause(usize),
    Resume(usize),
    /// For several actions the change feed is not read, and no client reads events.
    Silence(usize),
    /// A purge that a reader keeps from its end.
    Purge(usize),
}

/// How a client reads its events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientPace {
    interest: usize,
    items_per_event: usize,
    /// The number of actions from one reading of the events to the next.
    interval: usize,
}

/// A client, and the items that its events add up to.
pub(crate) struct Client {
    query: TestQuery,
    view: View,
    pace: ClientPace,
    items: BTreeMap<ItemRow, KnownItem>,
    /// Items may have changed before they were read: a removed item may not have been added.
    is_late: bool,
    is_paused: bool,
    seq: i64,
}

/// The handle, bytes, values and occurrences of an item.
type KnownItem = (Option<Handle>, Option<Vec<u8>>, Vec<Vec<String>>, Vec<ItemOccurrence>);

/// A store, views on it, and their clients.
struct ViewsScenario {
    book: Book,
    limits: ViewLimits,
    zones: Arc<ZoneDatabase>,
    views: Views,
    now: Arc<AtomicI64>,
    clients: Vec<Client>,
    /// The queries that were executed.
    executed: Vec<TestQuery>,
    action_count: usize,
    /// The actions until the views are read again.
    silence: usize,
}

pub(crate) fn start() -> i64 {
    IcalDateTime::parse("20260328T115930").unwrap().civil.seconds()
}

fn interest(n: usize) -> ViewInterest {
    match n {
        0 => ViewInterest::Rows,
        1 => ViewInterest::Meta,
        2 => ViewInterest::Bytes,
        3 => ViewInterest::Fields(
            [find_contact_field("full_name").unwrap(), find_contact_field("email").unwrap()].into(),
        ),
        _ => ViewInterest::MetaAndBytes,
    }
}

impl TestQuery {
    fn context(&self, now: i64) -> QueryContext {
        let mut context = QueryContext::default();
        context.user_locale.zone = ZoneDatabase::open_bundled().get(self.local_zone).unwrap();
        context.user_locale.now = Instant::from_seconds_clamped(now);
        context
    }

    fn view_query(&self, now: i64) -> ViewQuery {
        let mut query = ViewQuery::new(self.syntax, &self.text, Arc::new(self.context(now)));
        if let Some(collection) = self.collection {
            query = query.with_collection(collection);
        }
        if let Some(kind) = self.kind {
            query = query.with_kind(kind);
        }
        if self.occurrences { query.with_occurrences() } else { query }
    }

    /// The answer of a new query. Views resolve relative times by the minute.
    fn execute(
        &self,
        reader: &Reader,
        now: i64,
        interest: &ViewInterest,
    ) -> BTreeMap<ItemRow, KnownItem> {
        let context = self.context(now.div_euclid(60) * 60);
        let query = match self.syntax {
            QuerySyntax::Line => Query::parse_with(&self.text, &context),
            QuerySyntax::Sexp => Query::parse_sexp_with(&self.text, &context),
        };
        let mut parts = vec![query.unwrap()];
        parts.extend(self.kind.map(Query::Kind));
        let query = Query::And(parts);
        let time_range = required_time_range(&query).filter(|_| self.occurrences).cloned();
        let collection = self.collection.map(str::to_string);
        let answer =
            match find(reader, &SearchRequest { query, collection, ..SearchRequest::default() }) {
                Err(Error::Store(larder_store::Error::NoCollection { .. })) => {
                    return BTreeMap::new();
                }
                answer => answer.unwrap(),
            };
        let mut items = BTreeMap::new();
        answer
            .for_each(reader, &mut |meta, bytes| {
                let mut occurrences = Vec::new();
                if let Some(time_range) = &time_range {
                    let collect = |_, schedule: &larder_store::Schedule| {
                        schedule.for_each_in(time_range, &mut |occurrence| {
                            occurrences.push(occurrence);
                            occurrences.len() < 1000
                        })
                    };
                    reader.items().for_each_schedule(&[meta.row], &mut { collect }).unwrap();
                }
                let values = match interest {
                    ViewInterest::Fields(fields) => {
                        fields.iter().map(|field| values(meta.kind, bytes, field)).collect()
                    }
                    _ => Vec::new(),
                };
                let (handle, bytes) = match interest {
                    ViewInterest::Rows => (None, None),
                    ViewInterest::Meta | ViewInterest::Fields(_) => (Some(meta.handle), None),
                    ViewInterest::Bytes => (None, Some(bytes.to_vec())),
                    ViewInterest::MetaAndBytes => (Some(meta.handle), Some(bytes.to_vec())),
                };
                items.insert(meta.row, (handle, bytes, values, occurrences));
                true
            })
            .unwrap();
        items
    }
}

fn values(kind: Kind, bytes: &[u8], field: &'static larder_query::Field) -> Vec<String> {
    match kind {
        Kind::Contact => larder_query::Contact::parse(bytes).values(field),
        _ => larder_format::component::Component::parse(bytes).values(field),
    }
}

impl Client {
    /// Opens a view; returns `None` if its collection does not exist.
    pub(crate) fn open(
        views: &Views,
        query: &TestQuery,
        now: i64,
        pace: ClientPace,
    ) -> Option<Client> {
        let options = ViewOptions {
            interest: interest(pace.interest),
            items_per_event: pace.items_per_event,
            ..ViewOptions::default()
        };
        let view = match views.open_view(query.view_query(now), options) {
            Err(Error::Store(larder_store::Error::NoCollection { .. })) => return None,
            view => view.unwrap_or_else(|error| panic!("{error}: {query:?}")),
        };
        let (query, items, is_late) = (query.clone(), BTreeMap::new(), pace.interval > 1);
        Some(Client { query, view, pace, items, is_late, is_paused: false, seq: 0 })
    }

    /// Asserts that the events add up to the answer of a new query.
    #[track_caller]
    pub(crate) fn check(&self, reader: &Reader, now: i64) {
        let answer = self.query.execute(reader, now, &interest(self.pace.interest));
        assert_eq!(self.items, answer, "{:?}", self.query);
    }

    /// Reads all events.
    pub(crate) fn read_events(&mut self) {
        while let Some(event) = self.view.try_next().unwrap() {
            self.apply(event);
        }
    }

    /// Waits a moment for an event.
    pub(crate) fn wait(&mut self) {
        self.is_late = true;
        if let Some(event) = self.view.next_timeout(Some(Duration::from_millis(1))).unwrap() {
            self.apply(event);
        }
    }

    fn apply(&mut self, event: ViewEvent) {
        match event {
            ViewEvent::Reset => {
                self.items.clear();
                // The store may have been replaced by one with fewer batches.
                self.seq = 0;
            }
            ViewEvent::Added(items) => {
                for item in items {
                    let row = item.row;
                    let before = self.items.insert(row, known_item(item));
                    assert!(
                        self.is_late || before.is_none(),
                        "{row} was added before: {:?}",
                        self.query
                    );
                }
            }
            ViewEvent::Modified(items) => {
                for item in items {
                    let row = item.row;
                    let before = self.items.insert(row, known_item(item));
                    assert!(
                        self.is_late || before.is_some(),
                        "{row} was not added: {:?}",
                        self.query
                    );
                }
            }
            ViewEvent::Removed(items) => {
                for item in items {
                    let before = self.items.remove(&item.row);
                    assert!(self.is_late || before.is_some(), "{item:?}: {:?}", self.query);
                    if let Some((Some(handle), ..)) = before {
                        assert_eq!(handle, item.handle);
                    }
                }
            }
            ViewEvent::Complete(seq) => {
                assert!(seq >= self.seq, "batches come in order");
                self.seq = seq;
            }
        }
    }
}

fn known_item(item: ViewItem) -> KnownItem {
    let bytes = item.bytes.map(|bytes| bytes.to_vec());
    (item.meta.map(|meta| meta.handle), bytes, item.values, item.occurrences)
}

impl ViewsScenario {
    fn new(cache_bytes: usize, limits: ViewLimits, zones: Arc<ZoneDatabase>) -> ViewsScenario {
        let book = writer::book();
        let now = Arc::new(AtomicI64::new(start()));
        let clock = {
            let now = Arc::clone(&now);
            move || Instant::from_seconds_clamped(now.load(Ordering::Relaxed))
        };
        let options = ViewsOptions {
            zones: Arc::clone(&zones),
            cache_bytes,
            clock: Arc::new(clock),
            watch: false,
            limits,
            log: None,
        };
        let views = Views::open(&book.dir(), options).unwrap();
        ViewsScenario {
            book,
            limits,
            zones,
            views,
            now,
            clients: Vec::new(),
            executed: Vec::new(),
            action_count: 0,
            silence: 0,
        }
    }

    /// Returns a reader with the zones of the views.
    fn reader(&self) -> Reader {
        Reader::open_with_zones(&self.book.dir(), Arc::clone(&self.zones)).unwrap()
    }

    fn current_second(&self) -> i64 {
        self.now.load(Ordering::Relaxed)
    }

    fn act(&mut self, action: &Action) {
        self.action_count += 1;
        self.silence = self.silence.saturating_sub(1);
        match action {
            Action::Write(write) => writer::write(&mut self.book, write),
            Action::Wait(seconds) => drop(self.now.fetch_add(*seconds, Ordering::Relaxed)),
            Action::Open(query, pace) => self.open(query, *pace),
            Action::Find(query) => self.find(query),
            Action::FindAgain(n) => {
                if let Some(n) = n.checked_rem(self.executed.len()) {
                    self.find(&self.executed[n].clone());
                }
            }
            Action::Close(n) => {
                if let Some(n) = n.checked_rem(self.clients.len()) {
                    self.clients.remove(n);
                }
            }
            Action::Pause(n) => self.set_paused(*n, true),
            Action::Resume(n) => self.set_paused(*n, false),
            Action::Silence(actions) => self.silence = *actions,
            Action::Purge(n) => {
                let reader = self.reader();
                let _transaction = reader.begin_read().unwrap();
                reader.changes().last_seq().unwrap();
                writer::purge(&mut self.book, *n);
            }
        }
        if self.silence == 0 {
            self.views.catch_up().unwrap();
            self.read_events(false);
        }
    }

    fn open(&mut self, query: &TestQuery, pace: ClientPace) {
        let Some(mut client) = Client::open(&self.views, query, self.current_second(), pace) else {
            return;
        };
        if !client.is_late {
            client.read_events();
        }
        client.is_late |= self.limits.bytes < ViewLimits::default().bytes;
        self.clients.push(client);
    }

    /// Executes a query by the views, perhaps from the cache, and without them.
    fn find(&mut self, query: &TestQuery) {
        let mut found = Vec::new();
        let answer =
            self.views.find(query.view_query(self.current_second()), "test", &mut |meta, bytes| {
                found.push((meta.row, (Some(meta.handle), Some(bytes.to_vec()))));
                true
            });
        match answer {
            Err(Error::Store(larder_store::Error::NoCollection { .. })) => return,
            answer => assert_eq!(answer.unwrap(), found.len()),
        }
        let query = TestQuery { occurrences: false, ..query.clone() };
        let answer =
            query.execute(&self.reader(), self.current_second(), &ViewInterest::MetaAndBytes);
        let answer = answer.into_iter().map(|(row, (handle, bytes, ..))| (row, (handle, bytes)));
        assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), answer.collect(), "{query:?}");
        self.executed.push(query);
    }

    fn set_paused(&mut self, n: usize, is_paused: bool) {
        let Some(n) = n.checked_rem(self.clients.len()) else { return };
        let client = &mut self.clients[n];
        client.is_paused = is_paused;
        if is_paused { client.view.pause() } else { client.view.resume() }
    }

    /// Has the clients read their events whose turn it is, or all, and checks them.
    fn read_events(&mut self, all: bool) {
        let (reader, now, actions) = (self.reader(), self.current_second(), self.action_count);
        for client in &mut self.clients {
            if client.is_paused || !(all || actions.is_multiple_of(client.pace.interval)) {
                continue;
            }
            client.read_events();
            client.check(&reader, now);
        }
    }
}

fn lines() -> impl Strategy<Value = String> {
    let lines = &[
        "",
        "anna",
        "an",
        "email:anna",
        "name:Müller*",
        "-anna",
        "when:today",
        "when:today..+7d",
        "when:now..+2h",
        "when:\"this week\"",
        "alarm:now..+1h",
        "is:overdue",
        "due:today",
        "start:yesterday..tomorrow zahn",
        "when:2026",
        "is:recurring",
    ];
    select(&lines[..]).prop_map(str::to_string)
}

pub(crate) fn test_query() -> impl Strategy<Value = TestQuery> {
    let sexp = prop_oneof![
        3 => agree_in_time::question().prop_map(|query| query.to_string()),
        3 => random::query().prop_map(|query| query.to_string()),
        1 => select(&[
            "(occur-in-time-range? (time-now) (time-add-day (time-now) 7))",
            "(has-alarms-in-range? (time-day-begin (time-now)) (time-day-end (time-now)))",
            "(due-in-time-range? (time-add-day (time-now) -30) (time-now))",
            "#t",
        ][..]).prop_map(str::to_string),
    ];
    let text = prop_oneof![
        3 => sexp.prop_map(|text| (QuerySyntax::Sexp, text)),
        2 => lines().prop_map(|text| (QuerySyntax::Line, text)),
    ];
    let collection = option::weighted(0.3, select(&COLLECTIONS[..]));
    let kind = option::weighted(0.2, select(&[Kind::Contact, Kind::Event, Kind::Task][..]));
    let local_zone = select(&["UTC", "Europe/Berlin", "Pacific/Kiritimati"][..]);
    (text, collection, kind, any::<bool>(), local_zone).prop_map(
        |((syntax, text), collection, kind, occurrences, local_zone)| TestQuery {
            syntax,
            text,
            collection,
            kind,
            occurrences,
            local_zone,
        },
    )
}

pub(crate) fn pace() -> impl Strategy<Value = ClientPace> {
    (0..5usize, select(&[1, 2, 256][..]), select(&[1, 1, 1, 2, 5][..])).prop_map(
        |(interest, items_per_event, interval)| ClientPace { interest, items_per_event, interval },
    )
}

fn action() -> impl Strategy<Value = Action> {
    let waits =
        &[1, 29, 31, 60, 3600, 12 * 3600, DAY_SECONDS, 30 * DAY_SECONDS, -7200, -DAY_SECONDS];
    prop_oneof![
        50 => writer::store_action().prop_map(Action::Write),
        8 => select(&waits[..]).prop_map(Action::Wait),
        16 => (test_query(), pace()).prop_map(|(query, pace)| Action::Open(query, pace)),
        4 => test_query().prop_map(Action::Find),
        8 => (0..50usize).prop_map(Action::FindAgain),
        4 => (0..50usize).prop_map(Action::Close),
        2 => (0..50usize).prop_map(Action::Pause),
        4 => (0..50usize).prop_map(Action::Resume),
        4 => (2..6usize).prop_map(Action::Silence),
        1 => (0..50usize).prop_map(Action::Purge),
    ]
}

/// The number of cases: `make torture` has more than `make test`.
fn cases() -> u32 {
    std::env::var("LARDER_TEST_CASES").map_or(64, |cases| cases.parse().unwrap())
}

/// The default limits, and limits that are always exceeded.
const LIMITS: [ViewLimits; 4] = [
    ViewLimits { items: 1024, bytes: 4 << 20, changes: 50_000 },
    ViewLimits { items: 2, bytes: 4 << 20, changes: 50_000 },
    ViewLimits { items: 1024, bytes: 500, changes: 50_000 },
    ViewLimits { items: 3, bytes: 2000, changes: 4 },
];

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_add_up_to_the_answer(
        first in vec((test_query(), pace()), 1..8),
        actions in vec(action(), 1..30),
        cache_bytes in select(&[0, 3000, 1 << 20][..]),
        limits in select(&LIMITS[..]),
        elsewhere in any::<bool>(),
    ) {
        let zones = if elsewhere { foreign_zones::foreign_zones() } else { ZoneDatabase::open_bundled() };
        let mut scenario = ViewsScenario::new(cache_bytes, limits, zones);
        for (query, pace) in &first {
            scenario.open(query, *pace);
        }
        for action in &actions {
            scenario.act(action);
        }
        for n in 0..scenario.clients.len() {
            scenario.set_paused(n, false);
        }
        scenario.views.catch_up().unwrap();
        scenario.read_events(true);
        scenario.clients.clear();
        prop_assert_eq!(scenario.views.count_open_views(), 0);
    }
}

/// The day of the query's zone ends when the clock says so.
#[test]
fn a_relative_query_follows_the_day_of_its_zone() {
    let mut scenario = ViewsScenario::new(0, ViewLimits::default(), ZoneDatabase::open_bundled());
    let query = TestQuery {
        syntax: QuerySyntax::Line,
        text: "when:today".into(),
        collection: None,
        kind: None,
        occurrences: true,
        local_zone: "Europe/Berlin",
    };
    scenario.book.put_components("calendar", [
        "BEGIN:VEVENT\r\nUID:a\r\nDTSTART:20260329T090000Z\r\nDTEND:20260329T100000Z\r\nEND:VEVENT\r\n",
    ]);
    scenario.open(&query, ClientPace { interest: 4, items_per_event: 9, interval: 1 });
    assert_eq!(scenario.clients[0].items.len(), 0);
    let midnight = CivilTime::midnight(start().div_euclid(DAY_SECONDS) + 1);
    let midnight =
        ZoneDatabase::open_bundled().get("Europe/Berlin").unwrap().to_instant(midnight).seconds();
    for (now, count) in [(midnight - 1, 0), (midnight, 1), (midnight + 23 * 3600, 0)] {
        scenario.now.store(now, Ordering::Relaxed);
        scenario.views.catch_up().unwrap();
        scenario.read_events(true);
        assert_eq!(scenario.clients[0].items.len(), count, "{now}");
    }
}
