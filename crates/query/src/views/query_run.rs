//! Runs of queries without the engine's lock.
//!
//! A query takes long compared with the steps of the engine, so [`answer_query`] runs it with a
//! reader of the pool, and takes the engine's lock again to publish the answer if the store has not
//! changed in the meantime. Separate from the engine, whose state it reaches through short calls.

use super::change_budget::CHANGE_STEPS_PER_POLL;
use super::engine::{AnswerStart, QueryRun, RunState, ViewsEngine, update_engine, wake_clients};
use super::mutex::lock_ignoring_poison;
use super::query_registry::PreparedQuery;
use super::reader_pool::ReaderPool;
use super::subscription_index::QueryId;
use super::view_query::ViewQuery;
use super::views_log::TracedResult;
use crate::error::Error;
use crate::result_set::ResultSet;
use crate::search_request::{QueryBudget, SearchRequest};
use larder_store::Reader;
use std::sync::Mutex;

/// A query is run this many times without the lock while others change the store, then under it.
const UNLOCKED_RUNS: usize = 3;

/// The state of [`answer_query`] between two locks.
enum AnswerStep<T, F> {
    Published(T),
    Run(QueryRun, F),
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
/// at the position of the answer. If the store changes during a run, the query is run again, and if
/// it changes during every run, the last answer is published as an outdated one: it lacks the
/// changes of the last batches. Only if collections or the meaning of the query change each time,
/// the query is run under the lock, within the budget of changes.
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
    for attempt in 1..=UNLOCKED_RUNS {
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
            let _transaction = reader.begin_read()?;
            let found = run(reader, &query_run.request);
            let mut locked = lock_ignoring_poison(engine);
            let outdated_at = match locked.check_run(reader, &query_run)? {
                RunState::Current => None,
                RunState::Outdated(seq) if attempt == UNLOCKED_RUNS => Some(seq),
                // A query that is too expensive is so at every batch.
                RunState::Outdated(seq) if matches!(found, Err(Error::StepLimit { .. })) => {
                    Some(seq)
                }
                _ => return Ok(AnswerStep::Run(query_run, unpublished)),
            };
            let published = locked.publish_run(&query_run, found, outdated_at, unpublished);
            wake_clients(locked);
            Ok(AnswerStep::Published(published?))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::find;
    use crate::query::QueryContext;
    use crate::views::options::ViewsOptions;
    use crate::views::view_query::QuerySyntax;
    use crate::views::views_log::ViewsLog;
    use larder_store::{BatchChange, Kind, Operation, Store, StoreOptions};
    use std::cell::Cell;
    use std::sync::Arc;

    struct Fixture {
        dir: tempfile::TempDir,
        store: Store,
        engine: Mutex<ViewsEngine>,
        readers: Arc<ReaderPool>,
        query: QueryId,
    }

    impl Fixture {
        fn new() -> Fixture {
            let dir = tempfile::tempdir().unwrap();
            let options = StoreOptions { create: true, ..StoreOptions::default() };
            let store = Store::open(dir.path(), &options).unwrap();
            let options = ViewsOptions::default();
            let pool = ReaderPool::open(dir.path(), Arc::clone(&options.zones)).unwrap();
            let (readers, log) = (Arc::new(pool), ViewsLog::new(None));
            let engine = ViewsEngine::new(Arc::clone(&readers), log, options).unwrap();
            let engine = Mutex::new(engine);
            let view_query =
                ViewQuery::new(QuerySyntax::Line, "anna", Arc::new(QueryContext::default()));
            let query = register_query(&engine, view_query);
            Fixture { dir, store, query: query.unwrap(), engine, readers }
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
}
