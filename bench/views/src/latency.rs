//! The time to open views and to deliver changes to them, and the cost of the query log.

use crate::Result;
use crate::bench_queries::{
    line_query, open_view, query_mix, sexp_query, system_zones, two_letter_queries, views_config,
};
use crate::planted_items::{self, PlantedItem};
use crate::timing::{ViewTimings, cpu_time, measure_overhead, to_micros};
use larder_query::query_log::JsonLinesLog;
use larder_query::views::{
    DEFAULT_CACHE_BYTES, View, ViewEvent, ViewInterest, ViewQuery, Views, ViewsOptions,
};
use larder_store::{ItemMeta, Kind, Reader};
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The number of queries in a turn of the log.
const QUERIES_PER_TURN: usize = 2000;
/// The number of first rounds that check which views are notified. They are not timed: a pass over
/// ten thousand views empties the processor's caches.
const CHECK_ROUNDS: usize = 3;
/// The number of additional views on words of two letters.
const TWO_LETTER_VIEWS: usize = 100;
/// The longest wait for an event.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens a view on each query, and keeps all open; in turns by interest.
pub(crate) fn measure_opening(store: &Path, queries: &str, turns: usize) -> Result<()> {
    let text = fs::read_to_string(queries)?;
    let texts: Vec<&str> = text.lines().filter_map(|line| line.split('\t').nth(2)).collect();
    let client: Arc<str> = "bench".into();
    let idle = measure_overhead()?;
    let interests = [
        ("rows", ViewInterest::Rows),
        ("heads", ViewInterest::Meta),
        ("bytes", ViewInterest::Bytes),
    ];
    let mut spent: Vec<ViewTimings> = interests.iter().map(|_| ViewTimings::default()).collect();
    let mut ready = ViewTimings::default();
    for _ in 0..turns {
        for ((_, interest), spent) in interests.iter().zip(&mut spent) {
            let mut views = None;
            ready.measure(|| {
                views = Some(Views::open(store, ViewsOptions { watch: true, ..views_config(0) })?);
                Ok(1)
            })?;
            let views = views.ok_or("no views")?;
            let mut kept = Vec::with_capacity(texts.len());
            spent.measure(|| {
                let mut hits = 0;
                for text in &texts {
                    let (view, items) =
                        open_view(&views, sexp_query(text), interest.clone(), &client)?;
                    kept.push(view);
                    hits += items;
                }
                Ok(hits)
            })?;
        }
    }
    ready.print("ready", idle);
    for ((name, _), spent) in interests.iter().zip(&mut spent) {
        spent.print(&format!("open-{name}"), idle);
    }
    Ok(())
}

fn query_text(view: &View) -> &str {
    view.view_query().text()
}

/// A planted item, and the views that its changes concern.
struct AffectedViews {
    item: PlantedItem,
    views: Vec<View>,
    catch_up_timings: ViewTimings,
    delivery_timings: ViewTimings,
}

/// Opens the views on the planted items, and a mix of others; `number` in all.
fn open_desktop_views(
    store: &Path,
    views: &Views,
    number: usize,
) -> Result<(Vec<View>, Vec<AffectedViews>)> {
    let client: Arc<str> = "bench".into();
    let open = |query: ViewQuery| {
        Ok::<View, Box<dyn std::error::Error>>(
            open_view(views, query, ViewInterest::Meta, &client)?.0,
        )
    };
    let mut affected = Vec::new();
    for planted in planted_items::planted_items() {
        let views = planted.matching_queries().into_iter().map(open).collect::<Result<Vec<_>>>()?;
        if views.len() != planted.affected_views {
            return Err(format!("{}: {} queries", planted.description(), views.len()).into());
        }
        affected.push(AffectedViews {
            item: planted,
            views,
            catch_up_timings: ViewTimings::default(),
            delivery_timings: ViewTimings::default(),
        });
    }
    let planted: usize = affected.iter().map(|one| one.views.len()).sum();
    let others = query_mix(store, number.saturating_sub(planted))?;
    let others = others.into_iter().map(open).collect::<Result<Vec<_>>>()?;
    Ok((others, affected))
}

/// Reads all events of a view. Returns the number of items.
fn receive_events(view: &mut View) -> Result<usize> {
    let mut items = 0;
    while let Some(event) = view.try_next()? {
        items += match event {
            ViewEvent::Added(items) | ViewEvent::Modified(items) => items.len(),
            ViewEvent::Removed(items) => items.len(),
            ViewEvent::Reset | ViewEvent::Complete(_) => 0,
        };
    }
    Ok(items)
}

/// Checks that a change of the planted item `at` has notified the views that it concerns, and no
/// other.
fn check_notified_views(affected: &[AffectedViews], others: &[View], at: usize) -> Result<()> {
    let all = affected.iter().flat_map(|one| &one.views).chain(others);
    let notified: Vec<&str> =
        all.filter(|view| view.has_pending_events()).map(query_text).collect();
    match affected.get(at) {
        Some(one) if one.item.affected_views != notified.len() => Err(format!(
            "{}: {} views are notified: {}",
            one.item.description(),
            notified.len(),
            notified.join(", ")
        )
        .into()),
        _ => Ok(()),
    }
}

/// Measures the cost of the same changes, in turns: with no process that has views, with views of
/// which none is open, and with many open views.
pub(crate) fn measure_commits(path: &Path, number: usize, rounds: usize) -> Result<()> {
    let mut store = planted_items::open_planted_store(path)?;
    let idle = measure_overhead()?;
    let mut count = 1;
    let mut alone = ViewTimings::default();
    for _ in 0..rounds {
        for planted in planted_items::planted_items() {
            let change = planted.item_put(&store, count)?;
            let (began, done) = planted_items::apply_change(&mut store, change)?;
            alone.add_time(done - began);
        }
        count += 1;
    }
    let (none, views) = (
        Views::open(path, views_config(0))?,
        Views::open(path, views_config(DEFAULT_CACHE_BYTES))?,
    );
    let (mut others, mut affected) = open_desktop_views(path, &views, number)?;
    println!("# {} views are open", views.count_open_views());
    let (mut with_views_open, mut with_none_open) =
        (ViewTimings::default(), ViewTimings::default());
    for round in 0..CHECK_ROUNDS + rounds {
        for at in 0..affected.len() {
            let Some(one) = affected.get(at) else { continue };
            let change = one.item.item_put(&store, count)?;
            let (began, done) = planted_items::apply_change(&mut store, change)?;
            if round < CHECK_ROUNDS {
                views.catch_up()?;
                check_notified_views(&affected, &others, at)?;
                if let Some(one) = affected.get_mut(at) {
                    one.views.iter_mut().map(receive_events).sum::<Result<usize>>()?;
                }
                continue;
            }
            with_views_open.add_time(done - began);
            let Some(one) = affected.get_mut(at) else { continue };
            let catch_up = |views: &Views, spent: &mut ViewTimings| {
                spent.measure(|| {
                    black_box(views.catch_up()?);
                    Ok(0)
                })
            };
            // The first poll after a change reads the written pages into memory, so they alternate.
            if (round + at) % 2 == 0 {
                catch_up(&none, &mut with_none_open)?;
                catch_up(&views, &mut one.catch_up_timings)?;
            } else {
                catch_up(&views, &mut one.catch_up_timings)?;
                catch_up(&none, &mut with_none_open)?;
            }
            let AffectedViews { views, delivery_timings: spent, .. } = one;
            let mut received = 0;
            spent.measure(|| {
                received = views.iter_mut().map(receive_events).sum::<Result<usize>>()?;
                Ok(received)
            })?;
            if received != one.item.affected_views {
                return Err(
                    format!("{}: {received} items are delivered", one.item.description()).into()
                );
            }
        }
        count += 1;
    }
    alone.print("apply-alone", idle);
    with_views_open.print("apply-beside", idle);
    with_none_open.print("look-none-open", idle);
    for one in &mut affected {
        let name = format!("{}-{}", one.item.kind.name(), one.item.affected_views);
        one.catch_up_timings.print(&format!("look-{name}"), idle);
        one.delivery_timings.print(&format!("told-{name}"), idle);
    }
    measure_two_letter_views(path, &views, &mut store, (rounds, count), &mut others)
}

/// Measures the cost with more views on words of two letters, which every contact may concern.
fn measure_two_letter_views(
    path: &Path,
    views: &Views,
    store: &mut larder_store::Store,
    (rounds, count): (usize, usize),
    others: &mut Vec<View>,
) -> Result<()> {
    let client: Arc<str> = "bench".into();
    let idle = measure_overhead()?;
    let before = views.count_open_views();
    for query in two_letter_queries(path, TWO_LETTER_VIEWS)? {
        others.push(open_view(views, query, ViewInterest::Meta, &client)?.0);
    }
    let more = views.count_open_views() - before;
    let planted = planted_items::planted_items();
    let one = planted.iter().find(|one| one.kind == Kind::Contact && one.affected_views == 10);
    let one = one.ok_or("no item is planted")?;
    let mut spent = ViewTimings::default();
    for count in count..count + rounds {
        let change = one.item_put(store, count)?;
        planted_items::apply_change(store, change)?;
        spent.measure(|| {
            views.catch_up()?;
            Ok(0)
        })?;
    }
    println!("# {more} more views, on words of two letters");
    spent.print("look-contact-10-short", idle);
    Ok(())
}

/// A process that writes on request.
struct WriterProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl WriterProcess {
    fn spawn(store: &Path) -> Result<WriterProcess> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("write").arg(store).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (to, from) =
            (child.stdin.take().ok_or("no input")?, child.stdout.take().ok_or("no output")?);
        let mut writer = WriterProcess { child, input: to, output: BufReader::new(from) };
        writer.read_times()?;
        Ok(writer)
    }

    fn request_write(&mut self) -> Result<()> {
        Ok(self.input.write_all(b"\n")?)
    }

    /// Reads when the writer began and ended, in nanoseconds since 1970.
    fn read_times(&mut self) -> Result<[i64; 2]> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let mut times = line.split_whitespace().map(str::parse);
        Ok([times.next().ok_or("no answer")??, times.next().ok_or("no answer")??])
    }

    fn finish(self) -> Result<()> {
        let WriterProcess { mut child, input: to, output: from } = self;
        drop((to, from));
        child.wait()?;
        Ok(())
    }
}

fn unix_nanos() -> Result<i64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos().try_into()?)
}

/// Runs as the writer: changes the planted event that concerns ten views for each line of input.
pub(crate) fn run_writer(path: &Path) -> Result<()> {
    let mut store = planted_items::open_planted_store(path)?;
    let planted = planted_items::planted_items()
        .into_iter()
        .find(|one| one.kind == Kind::Event && one.affected_views == 10);
    let planted = planted.ok_or("no item is planted")?;
    println!("0 0");
    for (count, line) in std::io::stdin().lines().enumerate() {
        line?;
        let change = planted.item_put(&store, 1_000_000 + count)?;
        let began = unix_nanos()?;
        planted_items::apply_change(&mut store, change)?;
        println!("{began} {}", unix_nanos()?);
    }
    Ok(())
}

/// Measures the time from a commit of another process to the event of a view, with `number` views
/// open.
pub(crate) fn measure_delivery(path: &Path, number: usize, changes: usize) -> Result<()> {
    let mut writer = WriterProcess::spawn(path)?;
    let views =
        Views::open(path, ViewsOptions { watch: true, ..views_config(DEFAULT_CACHE_BYTES) })?;
    let (_others, mut view, mut rest) = if number > 1 {
        let (others, affected) = open_desktop_views(path, &views, number)?;
        let is_it =
            |one: &AffectedViews| one.item.kind == Kind::Event && one.item.affected_views == 10;
        let mut rest = affected.into_iter().find(is_it).ok_or("no item is planted")?.views;
        (others, rest.pop().ok_or("no view")?, rest)
    } else {
        let query = line_query("uid:=planted-event-10@example.org");
        (Vec::new(), open_view(&views, query, ViewInterest::Bytes, &"bench".into())?.0, Vec::new())
    };
    println!("# {} views are open", views.count_open_views());
    let (mut since_begun, mut since_done, mut early) = (Vec::new(), Vec::new(), 0);
    for n in 0..changes {
        // Not in step with a timer, and not before the last events have been delivered.
        thread::sleep(Duration::from_micros(5_000 + (n as u64 * 7_919) % 15_000));
        writer.request_write()?;
        let received = loop {
            match view.next_timeout(Some(DELIVERY_TIMEOUT))? {
                Some(ViewEvent::Complete(_)) => {}
                Some(_) => break unix_nanos()?,
                None => return Err("no event came".into()),
            }
        };
        let [began, done] = writer.read_times()?;
        since_begun.push(Duration::from_nanos(u64::try_from(received - began)?));
        early += usize::from(received < done);
        since_done.push(Duration::from_nanos(u64::try_from(received - done).unwrap_or(0)));
        for view in rest.iter_mut().chain([&mut view]) {
            receive_events(view)?;
        }
    }
    println!("# {early} of {changes} events came before the writer went on");
    for (row, times) in [("deliver", since_done), ("begun", since_begun)] {
        let mut spent = ViewTimings::default();
        times.into_iter().for_each(|time| spent.add_time(time));
        spent.print(&format!("{row}-{number}"), Duration::ZERO);
    }
    writer.finish()
}

/// Measures the cost of the log for cheap queries, with it and without, in turns. In CPU time: the
/// difference is smaller than the noise in wall-clock time.
pub(crate) fn measure_query_log(path: &Path, file: &Path, turns: usize) -> Result<()> {
    let reader = Reader::open_with_zones(path, system_zones())?;
    let collection = reader.collections().list()?.into_iter().find(|of| of.name == "contacts");
    let metas =
        reader.items().list_after(&collection.ok_or("no contacts")?, None, QUERIES_PER_TURN)?;
    let uids: Vec<ViewQuery> =
        metas.iter().map(|meta| line_query(&format!("uid:={}", meta.uid))).collect();
    let again: Vec<ViewQuery> =
        uids.iter().take(1).cycle().take(QUERIES_PER_TURN).cloned().collect();
    for (name, cache, queries) in [("run", 0, &uids), ("cached", 1 << 20, &again)] {
        let logged = Some(Arc::new(JsonLinesLog::new(File::create(file)?))
            as Arc<dyn larder_query::query_log::QueryLogSink>);
        let without = Views::open(path, views_config(cache))?;
        let with = Views::open(path, ViewsOptions { log: logged, ..views_config(cache) })?;
        let (mut differences, mut spent) = (Vec::new(), [Vec::new(), Vec::new()]);
        for turn in 0..turns {
            let mut taken = [0.0; 2];
            for at in [turn % 2, 1 - turn % 2] {
                let views = if at == 0 { &without } else { &with };
                let before = cpu_time()?;
                for query in queries {
                    let given = &mut |_: &ItemMeta, bytes: &[u8]| !bytes.is_empty();
                    black_box(views.find(query.clone(), "bench", given)?);
                }
                let cpu = cpu_time()?.saturating_sub(before);
                if let (Some(taken), Some(spent)) = (taken.get_mut(at), spent.get_mut(at)) {
                    *taken = to_micros(cpu) / queries.len() as f64;
                    spent.push(*taken);
                }
            }
            differences.push(taken[1] - taken[0]);
        }
        let [without, with] = spent.map(median_and_least);
        let more = (median_and_least(differences).0, with.1 - without.1);
        for (what, (median, least)) in [("without", without), ("with", with), ("more", more)] {
            println!("log-{name}-{what}\t{median:.2}\t{least:.2}\t0\t1\t{turns}\t0");
        }
    }
    Ok(())
}

fn median_and_least(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let median = values.get(values.len() / 2).copied().unwrap_or_default();
    (median, values.first().copied().unwrap_or_default())
}
