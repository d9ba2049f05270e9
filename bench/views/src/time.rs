//! How fast views are opened, told what changed, and how much the log adds.

use crate::Outcome;
use crate::clock::{Spent, idle, processor_time, us};
use crate::plant::{self, Planted};
use crate::questions::{line, mix, opened, options, sexp, short, zones};
use larder_query::log::Lines;
use larder_query::views::{CACHE, Interest, Question, Tell, View, Views, ViewsOptions};
use larder_store::{ItemHead, Kind, Reader};
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// So many questions in a turn of the log.
const ASKED: usize = 2000;
/// In the first rounds it is checked who is told, and no time is taken: a walk over ten thousand views leaves nothing else in the near
/// memory.
const CHECKED: usize = 3;
/// Views on words of two letters, to see what each costs.
const SHORT: usize = 100;
/// No news come later than this.
const PATIENCE: Duration = Duration::from_secs(10);

/// Opens a view on each question, and keeps all; in turns.
pub(crate) fn open(store: &Path, queries: &str, turns: usize) -> Outcome<()> {
    let text = fs::read_to_string(queries)?;
    let texts: Vec<&str> = text.lines().filter_map(|line| line.split('\t').nth(2)).collect();
    let client: Arc<str> = "bench".into();
    let idle = idle()?;
    let interests =
        [("rows", Interest::Rows), ("heads", Interest::Heads), ("bytes", Interest::Bytes)];
    let mut spent: Vec<Spent> = interests.iter().map(|_| Spent::default()).collect();
    let mut ready = Spent::default();
    for _ in 0..turns {
        for ((_, interest), spent) in interests.iter().zip(&mut spent) {
            let mut views = None;
            ready.on(|| {
                views = Some(Views::open(store, ViewsOptions { watch: true, ..options(0) })?);
                Ok(1)
            })?;
            let views = views.ok_or("no views")?;
            let mut kept = Vec::with_capacity(texts.len());
            spent.on(|| {
                let mut hits = 0;
                for text in &texts {
                    let (view, told) = opened(&views, sexp(text), interest.clone(), &client)?;
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

fn text(view: &View) -> &str {
    view.question().text()
}

/// Those who ask for what is planted.
struct Concerned {
    planted: Planted,
    views: Vec<View>,
    found: Spent,
    told: Spent,
}

/// Opens what a desk has open, and those who ask for what is planted: so many in all.
fn desk(store: &Path, views: &Views, number: usize) -> Outcome<(Vec<View>, Vec<Concerned>)> {
    let client: Arc<str> = "bench".into();
    let open = |question: Question| {
        Ok::<View, Box<dyn std::error::Error>>(opened(views, question, Interest::Heads, &client)?.0)
    };
    let mut concerned = Vec::new();
    for planted in plant::all() {
        let views = planted.questions().into_iter().map(open).collect::<Outcome<Vec<_>>>()?;
        if views.len() != planted.concerned {
            return Err(format!("{}: {} questions", planted.name(), views.len()).into());
        }
        concerned.push(Concerned {
            planted,
            views,
            found: Spent::default(),
            told: Spent::default(),
        });
    }
    let planted: usize = concerned.iter().map(|of| of.views.len()).sum();
    let others = mix(store, number.saturating_sub(planted))?;
    let others = others.into_iter().map(open).collect::<Outcome<Vec<_>>>()?;
    Ok((others, concerned))
}

/// Takes all that a view is to be told. Returns how many items.
fn told(view: &mut View) -> Outcome<usize> {
    let mut items = 0;
    while let Some(tell) = view.tell()? {
        items += match tell {
            Tell::Added(told) | Tell::Modified(told) => told.len(),
            Tell::Removed(gone) => gone.len(),
            Tell::Fresh | Tell::Complete(_) => 0,
        };
    }
    Ok(items)
}

/// Those are told whom a change concerns, and nobody else.
fn check(concerned: &[Concerned], others: &[View], at: usize) -> Outcome<()> {
    let all = concerned.iter().flat_map(|of| &of.views).chain(others);
    let heard: Vec<&str> = all.filter(|view| view.has_news()).map(text).collect();
    match concerned.get(at) {
        Some(one) if one.planted.concerned != heard.len() => {
            Err(format!("{}: {} are told: {}", one.planted.name(), heard.len(), heard.join(", "))
                .into())
        }
        _ => Ok(()),
    }
}

/// What a change costs, where nobody asks and where many do. Of the same changes, in turns.
pub(crate) fn commits(path: &Path, number: usize, rounds: usize) -> Outcome<()> {
    let mut store = plant::store(path)?;
    let idle = idle()?;
    let mut count = 1;
    let mut alone = Spent::default();
    for _ in 0..rounds {
        for planted in plant::all() {
            let change = planted.change(&store, count)?;
            let (began, done) = plant::apply(&mut store, change)?;
            alone.add(done - began);
        }
        count += 1;
    }
    let (none, views) = (Views::open(path, options(0))?, Views::open(path, options(CACHE))?);
    let (mut others, mut concerned) = desk(path, &views, number)?;
    println!("# {} views are open", views.open_views());
    let (mut beside, mut unasked) = (Spent::default(), Spent::default());
    for round in 0..CHECKED + rounds {
        for at in 0..concerned.len() {
            let Some(one) = concerned.get(at) else { continue };
            let change = one.planted.change(&store, count)?;
            let (began, done) = plant::apply(&mut store, change)?;
            if round < CHECKED {
                views.catch_up()?;
                check(&concerned, &others, at)?;
                if let Some(one) = concerned.get_mut(at) {
                    one.views.iter_mut().map(told).sum::<Outcome<usize>>()?;
                }
                continue;
            }
            beside.add(done - began);
            let Some(one) = concerned.get_mut(at) else { continue };
            let catch_up = |views: &Views, spent: &mut Spent| {
                spent.on(|| {
                    black_box(views.catch_up()?);
                    Ok(0)
                })
            };
            // Whoever looks first reads what was written into its memory.
            if (round + at) % 2 == 0 {
                catch_up(&none, &mut unasked)?;
                catch_up(&views, &mut one.found)?;
            } else {
                catch_up(&views, &mut one.found)?;
                catch_up(&none, &mut unasked)?;
            }
            let Concerned { views, told: spent, .. } = one;
            let mut heard = 0;
            spent.on(|| {
                heard = views.iter_mut().map(told).sum::<Outcome<usize>>()?;
                Ok(heard)
            })?;
            if heard != one.planted.concerned {
                return Err(format!("{}: {heard} are told", one.planted.name()).into());
            }
        }
        count += 1;
    }
    alone.print("apply-alone", idle);
    beside.print("apply-beside", idle);
    unasked.print("look-none-open", idle);
    for one in &mut concerned {
        let name = format!("{}-{}", one.planted.kind.name(), one.planted.concerned);
        one.found.print(&format!("look-{name}"), idle);
        one.told.print(&format!("told-{name}"), idle);
    }
    with_short(path, &views, &mut store, (rounds, count), &mut others)
}

/// The same with more views on words of two letters, which are asked about each contact.
fn with_short(
    path: &Path,
    views: &Views,
    store: &mut larder_store::Store,
    (rounds, count): (usize, usize),
    others: &mut Vec<View>,
) -> Outcome<()> {
    let client: Arc<str> = "bench".into();
    let idle = idle()?;
    let before = views.open_views();
    for question in short(path, SHORT)? {
        others.push(opened(views, question, Interest::Heads, &client)?.0);
    }
    let more = views.open_views() - before;
    let planted = plant::all();
    let one = planted.iter().find(|one| one.kind == Kind::Contact && one.concerned == 10);
    let one = one.ok_or("nothing is planted")?;
    let mut spent = Spent::default();
    for count in count..count + rounds {
        let change = one.change(store, count)?;
        plant::apply(store, change)?;
        spent.on(|| {
            views.catch_up()?;
            Ok(0)
        })?;
    }
    println!("# {more} more views, on words of two letters");
    spent.print("look-contact-10-short", idle);
    Ok(())
}

/// A writer in a process of its own.
struct Writer {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Writer {
    fn new(store: &Path) -> Outcome<Writer> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("write").arg(store).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (to, from) =
            (child.stdin.take().ok_or("no input")?, child.stdout.take().ok_or("no output")?);
        let mut writer = Writer { child, to, from: BufReader::new(from) };
        writer.answer()?;
        Ok(writer)
    }

    fn write(&mut self) -> Outcome<()> {
        Ok(self.to.write_all(b"\n")?)
    }

    /// When it began to write, and when it was done, in nanoseconds since 1970.
    fn answer(&mut self) -> Outcome<[i64; 2]> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        let mut times = line.split_whitespace().map(str::parse);
        Ok([times.next().ok_or("no answer")??, times.next().ok_or("no answer")??])
    }

    fn end(self) -> Outcome<()> {
        let Writer { mut child, to, from } = self;
        drop((to, from));
        child.wait()?;
        Ok(())
    }
}

fn since_1970() -> Outcome<i64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos().try_into()?)
}

/// Changes what is planted for ten, each time it is told to.
pub(crate) fn write(path: &Path) -> Outcome<()> {
    let mut store = plant::store(path)?;
    let planted =
        plant::all().into_iter().find(|one| one.kind == Kind::Event && one.concerned == 10);
    let planted = planted.ok_or("nothing is planted")?;
    println!("0 0");
    for (count, line) in std::io::stdin().lines().enumerate() {
        line?;
        let change = planted.change(&store, 1_000_000 + count)?;
        let began = since_1970()?;
        plant::apply(&mut store, change)?;
        println!("{began} {}", since_1970()?);
    }
    Ok(())
}

/// How long it takes until a view is told what another process has written. With one view open, or with as many as are asked for.
pub(crate) fn deliver(path: &Path, number: usize, changes: usize) -> Outcome<()> {
    let mut writer = Writer::new(path)?;
    let views = Views::open(path, ViewsOptions { watch: true, ..options(CACHE) })?;
    let (_others, mut view, mut rest) = if number > 1 {
        let (others, concerned) = desk(path, &views, number)?;
        let is_it =
            |one: &Concerned| one.planted.kind == Kind::Event && one.planted.concerned == 10;
        let mut rest = concerned.into_iter().find(is_it).ok_or("nothing is planted")?.views;
        (others, rest.pop().ok_or("no view")?, rest)
    } else {
        let question = line("uid:=planted-event-10@example.org");
        (Vec::new(), opened(&views, question, Interest::Bytes, &"bench".into())?.0, Vec::new())
    };
    println!("# {} views are open", views.open_views());
    let (mut since_begun, mut since_done, mut early) = (Vec::new(), Vec::new(), 0);
    for n in 0..changes {
        // Neither at a beat that a clock has, nor while the last one is still being told.
        thread::sleep(Duration::from_micros(5_000 + (n as u64 * 7_919) % 15_000));
        writer.write()?;
        let heard = loop {
            match view.wait(Some(PATIENCE))? {
                Some(Tell::Complete(_)) => {}
                Some(_) => break since_1970()?,
                None => return Err("nothing was told".into()),
            }
        };
        let [began, done] = writer.answer()?;
        since_begun.push(Duration::from_nanos(u64::try_from(heard - began)?));
        early += usize::from(heard < done);
        since_done.push(Duration::from_nanos(u64::try_from(heard - done).unwrap_or(0)));
        for view in rest.iter_mut().chain([&mut view]) {
            told(view)?;
        }
    }
    println!("# {early} of {changes} were told before the writer went on");
    for (row, times) in [("deliver", since_done), ("begun", since_begun)] {
        let mut spent = Spent::default();
        times.into_iter().for_each(|time| spent.add(time));
        spent.print(&format!("{row}-{number}"), Duration::ZERO);
    }
    writer.end()
}

/// What the log adds to a question: cheap ones, asked with it and without, in turns. In processor time: of a difference that small,
/// nothing is left in the time of a clock where others use the machine.
pub(crate) fn log(path: &Path, file: &Path, turns: usize) -> Outcome<()> {
    let reader = Reader::open_with(path, zones())?;
    let collection = reader.collections()?.into_iter().find(|of| of.name == "contacts");
    let heads = reader.page(&collection.ok_or("no contacts")?, i64::MIN, ASKED)?;
    let uids: Vec<Question> =
        heads.iter().map(|head| line(&format!("uid:={}", head.uid))).collect();
    let again: Vec<Question> = uids.iter().take(1).cycle().take(ASKED).cloned().collect();
    for (name, cache, questions) in [("run", 0, &uids), ("cached", 1 << 20, &again)] {
        let logged =
            Some(Arc::new(Lines::new(File::create(file)?)) as Arc<dyn larder_query::log::Sink>);
        let without = Views::open(path, options(cache))?;
        let with = Views::open(path, ViewsOptions { log: logged, ..options(cache) })?;
        let (mut differences, mut spent) = (Vec::new(), [Vec::new(), Vec::new()]);
        for turn in 0..turns {
            let mut taken = [0.0; 2];
            for at in [turn % 2, 1 - turn % 2] {
                let views = if at == 0 { &without } else { &with };
                let before = processor_time()?;
                for question in questions {
                    let given = &mut |_: &ItemHead, bytes: &[u8]| !bytes.is_empty();
                    black_box(views.find(question.clone(), "bench", given)?);
                }
                let processor = processor_time()?.saturating_sub(before);
                if let (Some(taken), Some(spent)) = (taken.get_mut(at), spent.get_mut(at)) {
                    *taken = us(processor) / questions.len() as f64;
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
