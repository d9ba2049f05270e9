//! The property of live views: whatever happens, and in whatever order a client asks for its news,
//! what it was told adds up to what a fresh question answers.

use crate::agree_in_time;
use crate::book::Book;
use crate::elsewhere;
use crate::random;
use crate::writer::{self, COLLECTIONS};
use larder_format::field::find_contact_field;
use larder_query::views::{
    QuerySyntax, View, ViewEvent, ViewInterest, ViewItem, ViewLimits, ViewOptions, ViewQuery,
    Views, ViewsOptions,
};
use larder_query::{Error, Query, QueryContext, SearchRequest, find, required_time_range};
use larder_store::{Handle, ItemOccurrence, Kind, Reader};
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

const DAY: i64 = 86_400;
/// What is asked, in a form that can be asked again.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    form: QuerySyntax,
    text: String,
    collection: Option<&'static str>,
    kind: Option<Kind>,
    occurrences: bool,
    local: &'static str,
}

#[derive(Debug, Clone)]
enum Deed {
    Write(writer::Deed),
    /// Seconds.
    Wait(i64),
    Open(Asked, Following),
    /// Something is asked once, perhaps not for the first time.
    Ask(Asked),
    AskAgain(usize),
    Close(usize),
    Pause(usize),
    Resume(usize),
    /// Nothing is told to any client until several other things have happened.
    Silence(usize),
    /// A purge that cannot end, as somebody reads.
    Purge(usize),
}

/// How a client follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Following {
    interest: usize,
    chunk: usize,
    /// It asks for its news each so many deeds.
    each: usize,
}

/// A client, and what it knows.
pub(crate) struct Client {
    asked: Asked,
    view: View,
    following: Following,
    knows: BTreeMap<i64, Knows>,
    /// Its first answer came after something had happened, or items are read only when they are
    /// told: one that has gone meanwhile is told as removed and nothing else.
    late: bool,
    paused: bool,
    seq: i64,
}

type Knows = (Option<Handle>, Option<Vec<u8>>, Vec<Vec<String>>, Vec<ItemOccurrence>);

struct Run {
    book: Book,
    limits: ViewLimits,
    zones: Arc<ZoneDatabase>,
    views: Views,
    now: Arc<AtomicI64>,
    clients: Vec<Client>,
    asked: Vec<Asked>,
    deeds: usize,
    silent: usize,
}

pub(crate) fn start() -> i64 {
    IcalDateTime::parse("20260328T115930").unwrap().civil.seconds()
}

fn interest(n: usize) -> ViewInterest {
    match n {
        0 => ViewInterest::Rows,
        1 => ViewInterest::Heads,
        2 => ViewInterest::Bytes,
        3 => ViewInterest::Fields(
            [find_contact_field("full_name").unwrap(), find_contact_field("email").unwrap()].into(),
        ),
        _ => ViewInterest::HeadsAndBytes,
    }
}

impl Asked {
    fn settings(&self, now: i64) -> QueryContext {
        let mut settings = QueryContext::default();
        settings.user_locale.zone = ZoneDatabase::open_bundled().get(self.local).unwrap();
        settings.user_locale.now = Instant::from_seconds_clamped(now);
        settings
    }

    fn question(&self, now: i64) -> ViewQuery {
        let mut question = ViewQuery::new(self.form, &self.text, Arc::new(self.settings(now)));
        if let Some(collection) = self.collection {
            question = question.with_collection(collection);
        }
        if let Some(kind) = self.kind {
            question = question.with_kind(kind);
        }
        if self.occurrences { question.with_occurrences() } else { question }
    }

    /// What a fresh question answers; views know the time by the minute.
    fn fresh(&self, reader: &Reader, now: i64, interest: &ViewInterest) -> BTreeMap<i64, Knows> {
        let settings = self.settings(now.div_euclid(60) * 60);
        let query = match self.form {
            QuerySyntax::Line => Query::parse_with(&self.text, &settings),
            QuerySyntax::Sexp => Query::parse_sexp_with(&self.text, &settings),
        };
        let mut all = vec![query.unwrap()];
        all.extend(self.kind.map(Query::Kind));
        let query = Query::And(all);
        let window = required_time_range(&query).filter(|_| self.occurrences).cloned();
        let collection = self.collection.map(str::to_string);
        let answer =
            match find(reader, &SearchRequest { query, collection, ..SearchRequest::default() }) {
                Err(Error::Store(larder_store::Error::NoCollection { .. })) => {
                    return BTreeMap::new();
                }
                answer => answer.unwrap(),
            };
        let mut fresh = BTreeMap::new();
        answer
            .for_each(reader, &mut |head, bytes| {
                let mut occurrences = Vec::new();
                if let Some(window) = &window {
                    let times = |_, times: &larder_store::Schedule| {
                        times.for_each_in(window, &mut |occurring| {
                            occurrences.push(occurring);
                            occurrences.len() < 1000
                        })
                    };
                    reader.for_each_schedule(&[head.row], &mut { times }).unwrap();
                }
                let values = match interest {
                    ViewInterest::Fields(fields) => {
                        fields.iter().map(|field| values(head.kind, bytes, field)).collect()
                    }
                    _ => Vec::new(),
                };
                let (handle, bytes) = match interest {
                    ViewInterest::Rows => (None, None),
                    ViewInterest::Heads | ViewInterest::Fields(_) => (Some(head.handle), None),
                    ViewInterest::Bytes => (None, Some(bytes.to_vec())),
                    ViewInterest::HeadsAndBytes => (Some(head.handle), Some(bytes.to_vec())),
                };
                fresh.insert(head.row, (handle, bytes, values, occurrences));
                true
            })
            .unwrap();
        fresh
    }
}

fn values(kind: Kind, bytes: &[u8], field: &'static larder_query::Field) -> Vec<String> {
    match kind {
        Kind::Contact => larder_query::Contact::parse(bytes).values(field),
        _ => larder_format::component::Component::parse(bytes).values(field),
    }
}

impl Client {
    /// Opens a view on this; `None`: there is no such collection.
    pub(crate) fn open(
        views: &Views,
        asked: &Asked,
        now: i64,
        following: Following,
    ) -> Option<Client> {
        let options = ViewOptions {
            interest: interest(following.interest),
            items_per_event: following.chunk,
            ..ViewOptions::default()
        };
        let view = match views.open_view(asked.question(now), options) {
            Err(Error::Store(larder_store::Error::NoCollection { .. })) => return None,
            view => view.unwrap_or_else(|error| panic!("{error}: {asked:?}")),
        };
        let (asked, knows, late) = (asked.clone(), BTreeMap::new(), following.each > 1);
        Some(Client { asked, view, following, knows, late, paused: false, seq: 0 })
    }

    /// It knows what a fresh question answers.
    #[track_caller]
    pub(crate) fn check(&self, reader: &Reader, now: i64) {
        let fresh = self.asked.fresh(reader, now, &interest(self.following.interest));
        assert_eq!(self.knows, fresh, "{:?}", self.asked);
    }

    /// Takes all that there is to be told.
    pub(crate) fn listen(&mut self) {
        while let Some(tell) = self.view.try_next().unwrap() {
            self.hear(tell);
        }
    }

    /// Waits a moment for something to be told.
    pub(crate) fn wait(&mut self) {
        self.late = true;
        if let Some(tell) = self.view.next_timeout(Some(Duration::from_millis(1))).unwrap() {
            self.hear(tell);
        }
    }

    fn hear(&mut self, tell: ViewEvent) {
        match tell {
            ViewEvent::Reset => {
                self.knows.clear();
                // It may be a store that was put in the place of this one.
                self.seq = 0;
            }
            ViewEvent::Added(items) => {
                for told in items {
                    let row = told.row;
                    let before = self.knows.insert(row, knows(told));
                    assert!(self.late || before.is_none(), "{row} again: {:?}", self.asked);
                }
            }
            ViewEvent::Modified(items) => {
                for told in items {
                    let row = told.row;
                    let before = self.knows.insert(row, knows(told));
                    assert!(self.late || before.is_some(), "{row} is new: {:?}", self.asked);
                }
            }
            ViewEvent::Removed(items) => {
                for gone in items {
                    let before = self.knows.remove(&gone.row);
                    assert!(self.late || before.is_some(), "{gone:?}: {:?}", self.asked);
                    if let Some((Some(handle), ..)) = before {
                        assert_eq!(handle, gone.handle);
                    }
                }
            }
            ViewEvent::Complete(seq) => {
                assert!(seq >= self.seq, "in order");
                self.seq = seq;
            }
        }
    }
}

fn knows(told: ViewItem) -> Knows {
    let bytes = told.bytes.map(|bytes| bytes.to_vec());
    (told.head.map(|head| head.handle), bytes, told.values, told.occurrences)
}

impl Run {
    fn new(cache: usize, limits: ViewLimits, zones: Arc<ZoneDatabase>) -> Run {
        let book = writer::book();
        let now = Arc::new(AtomicI64::new(start()));
        let clock = {
            let now = Arc::clone(&now);
            move || Instant::from_seconds_clamped(now.load(Ordering::Relaxed))
        };
        let (clock, known) = (Arc::new(clock), Arc::clone(&zones));
        let options = ViewsOptions {
            zones: known,
            cache_bytes: cache,
            clock,
            watch: false,
            limits,
            log: None,
        };
        let views = Views::open(&book.dir(), options).unwrap();
        Run {
            book,
            limits,
            zones,
            views,
            now,
            clients: Vec::new(),
            asked: Vec::new(),
            deeds: 0,
            silent: 0,
        }
    }

    /// Somebody who knows no other zones than the views.
    fn reader(&self) -> Reader {
        Reader::open_with_zones(&self.book.dir(), Arc::clone(&self.zones)).unwrap()
    }

    fn now(&self) -> i64 {
        self.now.load(Ordering::Relaxed)
    }

    fn act(&mut self, deed: &Deed) {
        self.deeds += 1;
        self.silent = self.silent.saturating_sub(1);
        match deed {
            Deed::Write(deed) => writer::write(&mut self.book, deed),
            Deed::Wait(seconds) => drop(self.now.fetch_add(*seconds, Ordering::Relaxed)),
            Deed::Open(asked, following) => self.open(asked, *following),
            Deed::Ask(asked) => self.ask(asked),
            Deed::AskAgain(n) => {
                if let Some(n) = n.checked_rem(self.asked.len()) {
                    self.ask(&self.asked[n].clone());
                }
            }
            Deed::Close(n) => {
                if let Some(n) = n.checked_rem(self.clients.len()) {
                    self.clients.remove(n);
                }
            }
            Deed::Pause(n) => self.pause(*n, true),
            Deed::Resume(n) => self.pause(*n, false),
            Deed::Silence(deeds) => self.silent = *deeds,
            Deed::Purge(n) => {
                let reader = self.reader();
                let _held = reader.begin_read().unwrap();
                reader.last_seq().unwrap();
                writer::purge(&mut self.book, *n);
            }
        }
        // Who is not asked, and who asks by himself.
        if self.silent == 0 {
            self.views.catch_up().unwrap();
            self.listen(false);
        }
    }

    fn open(&mut self, asked: &Asked, following: Following) {
        let Some(mut client) = Client::open(&self.views, asked, self.now(), following) else {
            return;
        };
        if !client.late {
            client.listen();
        }
        client.late |= self.limits.bytes < ViewLimits::default().bytes;
        self.clients.push(client);
    }

    /// An answer that was kept is the answer.
    fn ask(&mut self, asked: &Asked) {
        let mut found = Vec::new();
        let answer = self.views.find(asked.question(self.now()), "test", &mut |head, bytes| {
            found.push((head.row, (Some(head.handle), Some(bytes.to_vec()))));
            true
        });
        match answer {
            Err(Error::Store(larder_store::Error::NoCollection { .. })) => return,
            answer => assert_eq!(answer.unwrap(), found.len()),
        }
        let asked = Asked { occurrences: false, ..asked.clone() };
        let fresh = asked.fresh(&self.reader(), self.now(), &ViewInterest::HeadsAndBytes);
        let fresh = fresh.into_iter().map(|(row, (handle, bytes, ..))| (row, (handle, bytes)));
        assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), fresh.collect(), "{asked:?}");
        self.asked.push(asked);
    }

    fn pause(&mut self, n: usize, pause: bool) {
        let Some(n) = n.checked_rem(self.clients.len()) else { return };
        let client = &mut self.clients[n];
        client.paused = pause;
        if pause { client.view.pause() } else { client.view.resume() }
    }

    /// Those whose turn it is listen, and know then what a fresh question answers.
    fn listen(&mut self, all: bool) {
        let (reader, now, deeds) = (self.reader(), self.now(), self.deeds);
        for client in &mut self.clients {
            if client.paused || !(all || deeds.is_multiple_of(client.following.each)) {
                continue;
            }
            client.listen();
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

pub(crate) fn asked() -> impl Strategy<Value = Asked> {
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
    let local = select(&["UTC", "Europe/Berlin", "Pacific/Kiritimati"][..]);
    (text, collection, kind, any::<bool>(), local).prop_map(
        |((form, text), collection, kind, occurrences, local)| Asked {
            form,
            text,
            collection,
            kind,
            occurrences,
            local,
        },
    )
}

pub(crate) fn following() -> impl Strategy<Value = Following> {
    (0..5usize, select(&[1, 2, 256][..]), select(&[1, 1, 1, 2, 5][..]))
        .prop_map(|(interest, chunk, each)| Following { interest, chunk, each })
}

fn deed() -> impl Strategy<Value = Deed> {
    let waits = &[1, 29, 31, 60, 3600, 12 * 3600, DAY, 30 * DAY, -7200, -DAY];
    prop_oneof![
        50 => writer::deed().prop_map(Deed::Write),
        8 => select(&waits[..]).prop_map(Deed::Wait),
        16 => (asked(), following()).prop_map(|(asked, following)| Deed::Open(asked, following)),
        4 => asked().prop_map(Deed::Ask),
        8 => (0..50usize).prop_map(Deed::AskAgain),
        4 => (0..50usize).prop_map(Deed::Close),
        2 => (0..50usize).prop_map(Deed::Pause),
        4 => (0..50usize).prop_map(Deed::Resume),
        4 => (2..6usize).prop_map(Deed::Silence),
        1 => (0..50usize).prop_map(Deed::Purge),
    ]
}

/// `make torture` has more of them than `make test`.
fn cases() -> u32 {
    std::env::var("LARDER_TEST_CASES").map_or(64, |cases| cases.parse().unwrap())
}

/// What is there, and so little that it never suffices.
const LIMITS: [ViewLimits; 4] = [
    ViewLimits { items: 1024, bytes: 4 << 20, changes: 50_000 },
    ViewLimits { items: 2, bytes: 4 << 20, changes: 50_000 },
    ViewLimits { items: 1024, bytes: 500, changes: 50_000 },
    ViewLimits { items: 3, bytes: 2000, changes: 4 },
];

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_told_adds_up(
        first in vec((asked(), following()), 1..8),
        deeds in vec(deed(), 1..30),
        cache in select(&[0, 3000, 1 << 20][..]),
        limits in select(&LIMITS[..]),
        elsewhere in any::<bool>(),
    ) {
        let zones = if elsewhere { elsewhere::zones() } else { ZoneDatabase::open_bundled() };
        let mut run = Run::new(cache, limits, zones);
        for (asked, following) in &first {
            run.open(asked, *following);
        }
        for deed in &deeds {
            run.act(deed);
        }
        for n in 0..run.clients.len() {
            run.pause(n, false);
        }
        run.views.catch_up().unwrap();
        run.listen(true);
        run.clients.clear();
        prop_assert_eq!(run.views.count_open_views(), 0);
    }
}

/// Midnight of the day that has begun, by a clock.
#[test]
fn the_day_turns() {
    let mut run = Run::new(0, ViewLimits::default(), ZoneDatabase::open_bundled());
    let asked = Asked {
        form: QuerySyntax::Line,
        text: "when:today".into(),
        collection: None,
        kind: None,
        occurrences: true,
        local: "Europe/Berlin",
    };
    run.book.put_components("calendar", [
        "BEGIN:VEVENT\r\nUID:a\r\nDTSTART:20260329T090000Z\r\nDTEND:20260329T100000Z\r\nEND:VEVENT\r\n",
    ]);
    run.open(&asked, Following { interest: 4, chunk: 9, each: 1 });
    assert_eq!(run.clients[0].knows.len(), 0);
    let midnight = CivilTime::midnight(start().div_euclid(DAY) + 1);
    let midnight =
        ZoneDatabase::open_bundled().get("Europe/Berlin").unwrap().to_instant(midnight).seconds();
    for (now, count) in [(midnight - 1, 0), (midnight, 1), (midnight + 23 * 3600, 0)] {
        run.now.store(now, Ordering::Relaxed);
        run.views.catch_up().unwrap();
        run.listen(true);
        assert_eq!(run.clients[0].knows.len(), count, "{now}");
    }
}
