//! Runs of queries without the engine's lock.
//!
//! A query takes long compared with the steps of the engine, so [`answer_query`] runs it with a
//! reader of the pool, in short transactions, applies the changes of the store during the run to
//! the answer, and takes the engine's lock again to publish it. Separate from the engine, whose
//! state it reaches through short calls.

use super::answer_update::apply_changes;
use super::change_budget::CHANGE_STEPS_PER_POLL;
use super::engine::{AnswerStart, QueryRun, RunState, ViewsEngine, update_engine};
use super::query_registry::PreparedQuery;
use super::reader_pool::ReaderPool;
use super::subscription_index::QueryId;
use super::view_query::ViewQuery;
use super::views_log::TracedResult;
use crate::error::Error;
use crate::result_set::ResultSet;
use crate::search_request::{QueryBudget, SearchRequest};
use larder_store::{Reader, StoreState};
use std::sync::Mutex;

/// A query is run this many times without the lock while others change collections or its meaning,
/// then under it.
const UNLOCKED_RUNS: usize = 3;
/// The changes of the store during a run are applied this many times before the answer is published
/// as an outdated one.
const MAX_UPDATES: usize = 3;

/// The state of [`answer_query`] between two locks.
enum AnswerStep<T, F> {
    Published(T),
    /// The query has to be run.
    Run(QueryRun, F),
}

/// The state of [`UnlockedAnswer::publish`] after a lock.
enum PublishStep<T, F> {
    Published(T),
    /// The store has changed since the answer.
    Update(F),
    /// The answer has no meaning any more.
    Invalid(F),
}

/// Registers a query at the time of the clock. It stays registered until it is released.
pub(super) fn register_query(
    engine: &Mutex<ViewsEngine>,
    view_query: ViewQuery,
) -> Result<QueryId, Error> {
    let known = update_engine(engine, |engine, reader| engine.register_known(reader, &view_query))?;
    let now = match known {
        Ok(id) => return Ok(id),
        Err(now) => now,
    };
    let prepared = PreparedQuery::new(view_query, now)?;
    update_engine(engine, |engine, reader| engine.register_prepared(reader, prepared))
}

/// Answers a registered query, from the cache if possible; otherwise `run` reads the answer without
/// the engine's lock. `publish` is called under the lock with the answer, while the change feed is
/// at the position of the answer. If the store changes during a run, the changes are applied to the
/// answer; if it changes each time meanwhile, the last answer is published as an outdated one: it
/// lacks the changes of the last batches. Only if collections or the meaning of the query change
/// during each run, the query is run under the lock, within the budget of changes.
///
/// If several threads answer equal queries at the same time, each runs the query; the cache keeps
/// the last answer.
pub(super) fn answer_query<T, F>(
    engine: &Mutex<ViewsEngine>,
    readers: &ReaderPool,
    id: QueryId,
    run: &dyn Fn(&Reader, &SearchRequest) -> Result<ResultSet, Error>,
    mut publish: F,
) -> Result<T, Error>
where
    F: FnOnce(&mut ViewsEngine, Result<TracedResult, Error>) -> Result<T, Error>,
{
    for _ in 0..UNLOCKED_RUNS {
        let step = update_engine(engine, |engine, reader| {
            Ok(match engine.begin_answer(reader, id)? {
                AnswerStart::Cached(answer) => AnswerStep::Published(publish(engine, Ok(answer))?),
                AnswerStart::Run(query_run) => AnswerStep::Run(query_run, publish),
            })
        })?;
        let (query_run, unpublished) = match step {
            AnswerStep::Published(published) => return Ok(published),
            AnswerStep::Run(query_run, publish) => (query_run, publish),
        };
        let step = readers.with_reader(|reader| {
            let answer = UnlockedAnswer::read(reader, query_run, run)?;
            answer.publish(engine, reader, unpublished)
        })?;
        publish = match step {
            AnswerStep::Published(published) => return Ok(published),
            AnswerStep::Run(_, publish) => publish,
        };
    }
    update_engine(engine, |engine, reader| match engine.begin_answer(reader, id)? {
        AnswerStart::Cached(answer) => publish(engine, Ok(answer)),
        AnswerStart::Run(mut query_run) => {
            query_run.request.max_steps = QueryBudget(CHANGE_STEPS_PER_POLL);
            let found =
                engine.in_current_transaction(reader, |_| Ok(run(reader, &query_run.request)))?;
            engine.publish_run(&query_run, found, None, publish)
        }
    })
}

/// The result of a run without the engine's lock.
struct UnlockedAnswer {
    query_run: QueryRun,
    found: Result<ResultSet, Error>,
    /// The state of the store at which `found` is the answer; `None`: it is of no single state.
    state: Option<StoreState>,
}

impl UnlockedAnswer {
    fn read(
        reader: &Reader,
        query_run: QueryRun,
        run: &dyn Fn(&Reader, &SearchRequest) -> Result<ResultSet, Error>,
    ) -> Result<UnlockedAnswer, Error> {
        let state = Some(reader.changes().stamp()?);
        let found = run(reader, &query_run.request);
        let mut answer = UnlockedAnswer { query_run, found, state };
        answer.update(reader);
        Ok(answer)
    }

    /// Applies the changes of the store since the state of the answer.
    fn update(&mut self, reader: &Reader) {
        // An error is published as the answer: a query that is too expensive is so at every batch.
        let (Ok(found), Some(since)) = (&mut self.found, &self.state) else { return };
        match apply_changes(reader, &self.query_run.request, found, since) {
            Ok(state) => self.state = state,
            Err(error) => self.found = Err(error),
        }
    }

    /// Publishes the answer, unless the query has to be run again.
    fn publish<T, F>(
        mut self,
        engine: &Mutex<ViewsEngine>,
        reader: &Reader,
        mut publish: F,
    ) -> Result<AnswerStep<T, F>, Error>
    where
        F: FnOnce(&mut ViewsEngine, Result<TracedResult, Error>) -> Result<T, Error>,
    {
        for updates in 0..=MAX_UPDATES {
            let Some(state) = self.state.clone() else { break };
            let step = update_engine(engine, |engine, feed_reader| {
                let outdated_at = match engine.check_run(feed_reader, &self.query_run, &state)? {
                    RunState::Current => None,
                    RunState::Outdated(seq) if updates == MAX_UPDATES || self.found.is_err() => {
                        Some(seq)
                    }
                    RunState::Outdated(_) => return Ok(PublishStep::Update(publish)),
                    RunState::Invalid => return Ok(PublishStep::Invalid(publish)),
                };
                let found = std::mem::replace(&mut self.found, Ok(ResultSet::from_rows(&[])));
                let published = engine.publish_run(&self.query_run, found, outdated_at, publish)?;
                Ok(PublishStep::Published(published))
            })?;
            publish = match step {
                PublishStep::Published(published) => return Ok(AnswerStep::Published(published)),
                PublishStep::Update(publish) => publish,
                PublishStep::Invalid(publish) => {
                    return Ok(AnswerStep::Run(self.query_run, publish));
                }
            };
            self.update(reader);
        }
        Ok(AnswerStep::Run(self.query_run, publish))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::{find, full_scan};
    use crate::pattern::tests::count_compilations;
    use crate::query::{Query, QueryContext};
    use crate::result_set::PAGE_ROWS;
    use crate::search_request::SortSpec;
    use crate::views::options::{ViewOptions, ViewsOptions};
    use crate::views::view_query::QuerySyntax;
    use crate::views::views_log::ViewsLog;
    use larder_store::{
        BatchChange, ChangeOutcome, Handle, ItemPut, Kind, Operation, Precondition, Store,
        StoreOptions,
    };
    use larder_time::civil::Instant;
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    struct Fixture {
        dir: tempfile::TempDir,
        store: Store,
        engine: Mutex<ViewsEngine>,
        readers: Arc<ReaderPool>,
        query: QueryId,
        /// The clock of the views, in seconds.
        now: Arc<AtomicI64>,
    }

    impl Fixture {
        fn new() -> Fixture {
            let dir = tempfile::tempdir().unwrap();
            let options = StoreOptions { create: true, ..StoreOptions::default() };
            let store = Store::open(dir.path(), &options).unwrap();
            let now = Arc::new(AtomicI64::new(1_700_000_000));
            let clock = Arc::clone(&now);
            let options = ViewsOptions {
                clock: Arc::new(move || {
                    Instant::from_seconds_clamped(clock.load(Ordering::Relaxed))
                }),
                ..ViewsOptions::default()
            };
            let pool = ReaderPool::open(dir.path(), Arc::clone(&options.zones)).unwrap();
            let (readers, log) = (Arc::new(pool), ViewsLog::new(None));
            let engine = ViewsEngine::new(Arc::clone(&readers), log, options).unwrap();
            let engine = Mutex::new(engine);
            let view_query =
                ViewQuery::new(QuerySyntax::Line, "anna", Arc::new(QueryContext::default()));
            let query = register_query(&engine, view_query);
            Fixture { dir, store, query: query.unwrap(), engine, readers, now }
        }
    }

    #[test]
    fn the_engine_is_unlocked_while_a_query_runs() {
        let fixture = Fixture::new();
        let runs = Cell::new(0);
        let run = |reader: &Reader, request: &SearchRequest| {
            runs.set(runs.get() + 1);
            assert!(fixture.engine.try_lock().is_ok());
            find(reader, request)
        };
        for expected_runs in [1, 1] {
            let publish =
                |_: &mut ViewsEngine, answer: Result<TracedResult, Error>| Ok(answer?.rows.len());
            let (engine, readers) = (&fixture.engine, &fixture.readers);
            let count = answer_query(engine, readers, fixture.query, &run, publish).unwrap();
            assert_eq!((count, runs.get()), (0, expected_runs), "the second answer is cached");
        }
    }

    #[test]
    fn a_query_runs_again_if_the_store_changes_meanwhile() {
        let mut fixture = Fixture::new();
        let dir = fixture.dir.path().to_path_buf();
        let (names, runs) = (["a", "b", "c", "d", "e"], Cell::new(0));
        let store = Mutex::new(&mut fixture.store);
        let run = |reader: &Reader, request: &SearchRequest| {
            let found = find(reader, request);
            // Another thread writes, and polls.
            let change = BatchChange::CreateCollection(names[runs.get()].into(), Kind::Contact);
            runs.set(runs.get() + 1);
            let batch = vec![change];
            store.lock().unwrap().apply(&mut Operation::new("test", "", 0), batch).unwrap();
            if let Ok(mut engine) = fixture.engine.try_lock() {
                engine.poll(&Reader::open(&dir).unwrap()).unwrap();
            }
            found
        };
        let publish = |engine: &mut ViewsEngine, _| Ok(engine.state().seq);
        let seq = answer_query(&fixture.engine, &fixture.readers, fixture.query, &run, publish);
        // The last run is under the lock, and so has the position before its own batch.
        assert_eq!((seq.unwrap(), runs.get()), (3, UNLOCKED_RUNS + 1));
    }

    /// Returns the changes that put contacts with these UIDs and names.
    fn put_contacts(store: &Store, contacts: &[(String, &str)]) -> Vec<BatchChange> {
        let put = |(uid, name): &(String, &str)| {
            let text =
                format!("BEGIN:VCARD\r\nVERSION:3.0\r\nUID:{uid}\r\nFN:{name}\r\nEND:VCARD\r\n");
            let parsed = store.extractor().parse_contact(text.into_bytes()).unwrap();
            BatchChange::Put(ItemPut {
                collection: "contacts".into(),
                uid: uid.clone(),
                derived_uid: false,
                parsed,
                precondition: Precondition::Any,
            })
        };
        contacts.iter().map(put).collect()
    }

    #[test]
    fn changes_during_a_run_are_in_the_answer() {
        for sort in [None, Some(SortSpec::parse("-full_name").unwrap())] {
            let mut fixture = Fixture::new();
            let query = ViewQuery::new(QuerySyntax::Line, "anna", Arc::default());
            let query = sort.into_iter().fold(query, ViewQuery::with_sort);
            let query = register_query(&fixture.engine, query).unwrap();
            let (reader, runs) = (Reader::open(fixture.dir.path()).unwrap(), Cell::new(0));
            let mut apply = |contacts: &[(String, &str)]| {
                let changes = put_contacts(&fixture.store, contacts);
                fixture.store.apply(&mut Operation::new("test", "", 0), changes).unwrap();
            };
            apply(&["stays", "leaves"].map(|uid| (uid.into(), "Anna")));
            apply(&[("joins".into(), "Bob")]);
            let apply = std::cell::RefCell::new(apply);
            let run = |reader: &Reader, request: &SearchRequest| {
                runs.set(runs.get() + 1);
                let found = find(reader, request);
                // More than one page, and then a few.
                let many = (0..PAGE_ROWS + 10).map(|n| (format!("new{n}"), "Anna New"));
                apply.borrow_mut()(&many.collect::<Vec<_>>());
                for _ in 0..20 {
                    apply.borrow_mut()(&[("leaves".into(), "Zoe"), ("joins".into(), "Anna Later")]);
                }
                found
            };
            let publish = |_: &mut ViewsEngine, answer: Result<TracedResult, Error>| {
                let answer = answer?;
                Ok((answer.rows, answer.outdated_at))
            };
            let (rows, outdated_at) =
                answer_query(&fixture.engine, &fixture.readers, query, &run, publish).unwrap();
            let query = Query::parse("anna").unwrap();
            let request = SearchRequest { query, sort, ..SearchRequest::default() };
            assert_eq!(rows.to_vec(), full_scan(&reader, &request).unwrap().rows());
            assert_eq!((rows.len(), outdated_at, runs.get()), (PAGE_ROWS + 12, None, 1));
        }
    }

    /// An override of a series and the rule of its master, which moves the override's occurrences.
    fn put_series(store: &Store, last_day: &str) -> Vec<BatchChange> {
        let master = format!("RRULE:FREQ=DAILY;UNTIL={last_day}T120000Z\r\n");
        let change = "RECURRENCE-ID;RANGE=THISANDFUTURE:20260312T120000Z\r\n";
        let components = [("20260310", master.as_str()), ("20260312", change)];
        let put = |(day, lines)| {
            let text = format!(
                "BEGIN:VEVENT\r\nUID:series\r\nDTSTART:{day}T120000Z\r\n{lines}END:VEVENT\r\n"
            );
            let context = larder_store::CalendarContext::default();
            let parsed = store.extractor().parse_component(text.into_bytes(), &context).unwrap();
            BatchChange::Put(ItemPut {
                collection: "calendar".into(),
                uid: "series".into(),
                derived_uid: false,
                parsed,
                precondition: Precondition::Any,
            })
        };
        components.into_iter().map(put).collect()
    }

    /// A store with a series, whose schedules are of other time zones, and a contact.
    fn fixture_with_unknown_schedules() -> (Fixture, Handle) {
        let mut fixture = Fixture::new();
        let create = BatchChange::CreateCollection("calendar".into(), Kind::Event);
        fixture.store.apply(&mut Operation::new("test", "", 0), vec![create]).unwrap();
        let changes = put_series(&fixture.store, "20260331");
        fixture.store.apply(&mut Operation::new("test", "", 0), changes).unwrap();
        let database = jiff::tz::TimeZoneDatabase::bundled();
        let zones = larder_time::zone::ZoneDatabase::with_version(database, "other".to_string());
        let options = StoreOptions { zones: Arc::new(zones), ..StoreOptions::default() };
        drop(Store::open(fixture.dir.path(), &options).unwrap());
        let changes = put_contacts(&fixture.store, &[("gone".into(), "Anna")]);
        let added = fixture.store.apply(&mut Operation::new("test", "", 0), changes).unwrap();
        let [ChangeOutcome::Added(contact)] = added.outcomes[..] else { panic!("{added:?}") };
        (fixture, contact)
    }

    /// While the schedules in the store are of other time zones, and after a purge, the change feed
    /// names the items whose schedules changed, and a view that reads changes later is reset.
    #[test]
    fn changes_of_a_series_are_in_the_answer_while_schedules_are_unknown() {
        for has_purge in [false, true] {
            let (mut fixture, contact) = fixture_with_unknown_schedules();
            let view_query = ViewQuery::new(QuerySyntax::Line, "when:2026-03-20", Arc::default());
            let query = register_query(&fixture.engine, view_query).unwrap();
            let store = Mutex::new(&mut fixture.store);
            let run = |reader: &Reader, request: &SearchRequest| {
                let found = find(reader, request)?;
                assert_eq!(found.rows().len(), 1);
                let mut store = store.lock().unwrap();
                let changes = put_series(&store, "20260315").drain(..1).collect();
                store.apply(&mut Operation::new("test", "", 0), changes).unwrap();
                if has_purge {
                    store.purge(&mut Operation::new("purge", "", 0), &[contact]).unwrap();
                }
                Ok(found)
            };
            let publish = |_: &mut ViewsEngine, answer: Result<TracedResult, Error>| {
                answer.map(|answer| (answer.rows, answer.outdated_at))
            };
            let (rows, outdated_at) =
                answer_query(&fixture.engine, &fixture.readers, query, &run, publish).unwrap();
            assert_eq!((rows.len(), outdated_at), (0, None), "with a purge: {has_purge}");
        }
    }

    /// Polls hold the engine's lock, and so does a query that is resolved again.
    #[test]
    fn no_pattern_is_compiled_under_the_lock() {
        let mut fixture = Fixture::new();
        let text = "note:~zq{9} or when:today";
        let query = ViewQuery::new(QuerySyntax::Line, text, Arc::default());
        let query = register_query(&fixture.engine, query).unwrap();
        let compiled = count_compilations();
        let note = format!("Anna\r\nNOTE:{}", "z".repeat(100_000));
        let changes = put_contacts(&fixture.store, &[("long".into(), &note)]);
        fixture.store.apply(&mut Operation::new("test", "", 0), changes).unwrap();
        update_engine(&fixture.engine, |engine, reader| {
            engine.open_view_without_answer(reader, query, &ViewOptions::default())?;
            fixture.now.fetch_add(86_400, Ordering::Relaxed);
            engine.catch_up(reader)
        })
        .unwrap();
        assert_eq!(count_compilations(), compiled);
    }
}
