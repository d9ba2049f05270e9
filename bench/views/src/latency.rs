//! How fast views are opened, told what changed, and how much the log adds.

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

/// So many questions in a turn of the log.
const QUERIES_PER_TURN: usize = 2000;
/// In the first rounds it is checked who is told, and no time is taken: a walk over ten thousand
/// views leaves nothing else in the near memory.
const CHECK_ROUNDS: usize = 3;
/// Views on words of two letters, to see what each costs.
const TWO_LETTER_VIEWS: usize = 100;
/// No news come later than this.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens a view on each question, and keeps all; in turns.
pub(crate) fn measure_opening(store: &Path, queries: &str, turns: usize) -> Result<()> {
    let text = fs::read_to_string(queries)?;
    let texts: Vec<&str> = text.lines().filter_map(|line| line.split('\t').nth(2)).collect();
    let client: Arc<str> = "bench".into();
    let idle = measure_overhead()?;
    let interests = [
        ("rows", ViewInterest::Rows),
        ("heads", ViewInterest::Heads),
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
                    let (view, told) =
                        open_view(&views, sexp_query(text), interest.clone(), &client)?;
                    kept.push(view);
                    hits += told;
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

/// Those who ask for what is planted.
struct AffectedViews {
    item: PlantedItem,
    views: Vec<View>,
    catch_up_timings: ViewTimings,
    delivery_timings: ViewTimings,
}

/// Opens what a desk has open, and those who ask for what is planted: so many in all.
fn open_desktop_views(
    store: &Path,
    views: &Views,
    number: usize,
) -> Result<(Vec<View>, Vec<AffectedViews>)> {
    let client: Arc<str> = "bench".into();
    let open = |question: ViewQuery| {
        Ok::<View, Box<dyn std::error::Error>>(
            open_view(views, question, ViewInterest::Heads, &client)?.0,
        )
    };
    let mut concerned = Vec::new();
    for planted in planted_items::planted_items() {
        let views = planted.matching_queries().into_iter().map(open).collect::<Result<Vec<_>>>()?;
        if views.len() != planted.affected_views {
            return Err(format!("{}: {} questions", planted.description(), views.len()).into());
        }
        concerned.push(AffectedViews {
            item: planted,
            views,
            catch_up_timings: ViewTimings::default(),
            delivery_timings: ViewTimings::default(),
        });
    }
    let planted: usize = concerned.iter().map(|of| of.views.len()).sum();
    let others = query_mix(store, number.saturating_sub(planted))?;
    let others = others.into_iter().map(open).collect::<Result<Vec<_>>>()?;
    Ok((others, concerned))
}

/// Takes all that a view is to be told. Returns how many items.
fn receive_events(view: &mut View) -> Result<usize> {
    let mut items = 0;
    while let Some(tell) = view.try_next()? {
        items += match tell {
            ViewEvent::Added(told) | ViewEvent::Modified(told) => told.len(),
            ViewEvent::Removed(gone) => gone.len(),
            ViewEvent::Reset | ViewEvent::Complete(_) => 0,
        };
    }
    Ok(items)
}

/// Those are told whom a change concerns, and nobody else.
fn check_notified_views(concerned: &[AffectedViews], others: &[View], at: usize) -> Result<()> {
    let all = concerned.iter().flat_map(|of| &of.views).chain(others);
    let heard: Vec<&str> = all.filter(|view| view.has_pending_events()).map(query_text).collect();
    match concerned.get(at) {
        Some(one) if one.item.affected_views != heard.len() => Err(format!(
            "{}: {} are told: {}",
            one.item.description(),
            heard.len(),
            heard.join(", ")
        )
        .into()),
        _ => Ok(()),
    }
}

/// What a change costs, where nobody asks and where many do. Of the same changes, in turns.
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
    let (mut others, mut concerned) = open_desktop_views(path, &views, number)?;
    println!("# {} views are open", views.count_open_views());
    let (mut beside, mut unasked) = (ViewTimings::default(), ViewTimings::default());
    for round in 0..CHECK_ROUNDS + rounds {
        for at in 0..concerned.len() {
            let Some(one) = concerned.get(at) else { continue };
            let change = one.item.item_put(&store, count)?;
            let (began, done) = planted_items::apply_change(&mut store, change)?;
            if round < CHECK_ROUNDS {
                views.catch_up()?;
                check_notified_views(&concerned, &others, at)?;
                if let Some(one) = concerned.get_mut(at) {
                    one.views.iter_mut().map(receive_events).sum::<Result<usize>>()?;
                }
                continue;
            }
            beside.add_time(done - began);
            let Some(one) = concerned.get_mut(at) else { continue };
            let catch_up = |views: &Views, spent: &mut ViewTimings| {
                spent.measure(|| {
                    black_box(views.catch_up()?);
                    Ok(0)
                })
            };
            // Whoever looks first reads what was written into its memory.
            if (round + at) % 2 == 0 {
                catch_up(&none, &mut unasked)?;
                catch_up(&views, &mut one.catch_up_timings)?;
            } else {
                catch_up(&views, &mut one.catch_up_timings)?;
                catch_up(&none, &mut unasked)?;
            }
            let AffectedViews { views, delivery_timings: spent, .. } = one;
            let mut heard = 0;
            spent.measure(|| {
                heard = views.iter_mut().map(receive_events).sum::<Result<usize>>()?;
                Ok(heard)
            })?;
            if heard != one.item.affected_views {
                return Err(format!("{}: {heard} are told", one.item.description()).into());
            }
        }
        count += 1;
    }
    alone.print("apply-alone", idle);
    beside.print("apply-beside", idle);
    unasked.print("look-none-open", idle);
    for one in &mut concerned {
        let name = format!("{}-{}", one.item.kind.name(), one.item.affected_views);
        one.catch_up_timings.print(&format!("look-{name}"), idle);
        one.delivery_timings.print(&format!("told-{name}"), idle);
    }
    measure_two_letter_views(path, &views, &mut store, (rounds, count), &mut others)
}

/// The same with more views on words of two letters, which are asked about each contact.
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
    for question in two_letter_queries(path, TWO_LETTER_VIEWS)? {
        others.push(open_view(views, question, ViewInterest::Heads, &client)?.0);
    }
    let more = views.count_open_views() - before;
    let planted = planted_items::planted_items();
    let one = planted.iter().find(|one| one.kind == Kind::Contact && one.affected_views == 10);
    let one = one.ok_or("nothing is planted")?;
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

/// A writer in a process of its own.
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

    /// When it began to write, and when it was done, in nanoseconds since 1970.
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

/// Changes what is planted for ten, each time it is told to.
pub(crate) fn run_writer(path: &Path) -> Result<()> {
    let mut store = planted_items::open_planted_store(path)?;
    let planted = planted_items::planted_items()
        .into_iter()
        .find(|one| one.kind == Kind::Event && one.affected_views == 10);
    let planted = planted.ok_or("nothing is planted")?;
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

/// How long it takes until a view is told what another process has written. With one view open, or
/// with as many as are asked for.
pub(crate) fn measure_delivery(path: &Path, number: usize, changes: usize) -> Result<()> {
    let mut writer = WriterProcess::spawn(path)?;
    let views =
        Views::open(path, ViewsOptions { watch: true, ..views_config(DEFAULT_CACHE_BYTES) })?;
    let (_others, mut view, mut rest) = if number > 1 {
        let (others, concerned) = open_desktop_views(path, &views, number)?;
        let is_it =
            |one: &AffectedViews| one.item.kind == Kind::Event && one.item.affected_views == 10;
        let mut rest = concerned.into_iter().find(is_it).ok_or("nothing is planted")?.views;
        (others, rest.pop().ok_or("no view")?, rest)
    } else {
        let question = line_query("uid:=planted-event-10@example.org");
        (
            Vec::new(),
            open_view(&views, question, ViewInterest::Bytes, &"bench".into())?.0,
            Vec::new(),
        )
    };
    println!("# {} views are open", views.count_open_views());
    let (mut since_begun, mut since_done, mut early) = (Vec::new(), Vec::new(), 0);
    for n in 0..changes {
        // Neither at a beat that a clock has, nor while the last one is still being told.
        thread::sleep(Duration::from_micros(5_000 + (n as u64 * 7_919) % 15_000));
        writer.request_write()?;
        let heard = loop {
            match view.next_timeout(Some(DELIVERY_TIMEOUT))? {
                Some(ViewEvent::Complete(_)) => {}
                Some(_) => break unix_nanos()?,
                None => return Err("nothing was told".into()),
            }
        };
        let [began, done] = writer.read_times()?;
        since_begun.push(Duration::from_nanos(u64::try_from(heard - began)?));
        early += usize::from(heard < done);
        since_done.push(Duration::from_nanos(u64::try_from(heard - done).unwrap_or(0)));
        for view in rest.iter_mut().chain([&mut view]) {
            receive_events(view)?;
        }
    }
    println!("# {early} of {changes} were told before the writer went on");
    for (row, times) in [("deliver", since_done), ("begun", since_begun)] {
        let mut spent = ViewTimings::default();
        times.into_iter().for_each(|time| spent.add_time(time));
        spent.print(&format!("{row}-{number}"), Duration::ZERO);
    }
    writer.finish()
}

/// What the log adds to a question: cheap ones, asked with it and without, in turns. In processor
/// time: of a difference that small, nothing is left in the time of a clock where others use the
/// machine.
pub(crate) fn measure_query_log(path: &Path, file: &Path, turns: usize) -> Result<()> {
    let reader = Reader::open_with_zones(path, system_zones())?;
    let collection = reader.collections()?.into_iter().find(|of| of.name == "contacts");
    let heads =
        reader.items_after_row(&collection.ok_or("no contacts")?, i64::MIN, QUERIES_PER_TURN)?;
    let uids: Vec<ViewQuery> =
        heads.iter().map(|head| line_query(&format!("uid:={}", head.uid))).collect();
    let again: Vec<ViewQuery> =
        uids.iter().take(1).cycle().take(QUERIES_PER_TURN).cloned().collect();
    for (name, cache, questions) in [("run", 0, &uids), ("cached", 1 << 20, &again)] {
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
                for question in questions {
                    let given = &mut |_: &ItemMeta, bytes: &[u8]| !bytes.is_empty();
                    black_box(views.find(question.clone(), "bench", given)?);
                }
                let processor = cpu_time()?.saturating_sub(before);
                if let (Some(taken), Some(spent)) = (taken.get_mut(at), spent.get_mut(at)) {
                    *taken = to_micros(processor) / questions.len() as f64;
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

fn median_and_least(mut of: Vec<f64>) -> (f64, f64) {
    of.sort_by(f64::total_cmp);
    (of.get(of.len() / 2).copied().unwrap_or_default(), of.first().copied().unwrap_or_default())
}
