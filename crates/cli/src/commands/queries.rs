use super::queries_json::report_json;
use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure, Kind};
use crate::output::{FAINT, GONE, STRONG, complain, count, grouped, plain};
use crate::table::{padded_by, shorten};
use larder_measure::queries::compare::{both, change};
use larder_measure::queries::lives::Lives;
use larder_measure::queries::log::Broken;
use larder_measure::queries::{Report, anonymise, page, read, words};
use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader, BufWriter, Seek as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Tell what a query log shows: which questions are asked and how often, how long views live, what answers
/// cost, whether the cache is worth its memory
///
/// A view that was never closed is named with its client and its question. With OTHER, the log from before a
/// change and the one from after it stand beside each other. --html writes a page with charts that needs nothing
/// else. The format of the log, and what is told of it, are documented in docs/queries.md.
#[derive(Debug, clap::Args)]
pub(crate) struct Queries {
    /// The log; `-` is standard input
    #[arg(value_name = "FILE")]
    log: PathBuf,
    /// Another log, to compare: FILE is from before, this one from after
    other: Option<PathBuf>,
    /// Write a page with charts to this file, too
    #[arg(long, value_name = "PAGE")]
    html: Option<PathBuf>,
    /// Try the cache with this budget, too: `300K`, `2M`
    #[arg(long, value_name = "BYTES", value_parser = crate::size::parse_some)]
    budget: Option<u64>,
    /// Write the log again with tokens for texts and names, so that it can be given away; tells nothing else
    #[arg(long, value_name = "OUT", conflicts_with_all = ["other", "html", "budget"])]
    anonymise: Option<PathBuf>,
}

impl Queries {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        if let Some(out) = &self.anonymise {
            return anonymised(context, &self.log, out);
        }
        let reports = self.reports(context)?;
        let offset = |at: i64| {
            let at = jiff::Timestamp::from_microsecond(at).unwrap_or_default();
            i64::from(jiff::tz::TimeZone::system().to_offset(at).seconds())
        };
        let mut named = reports.iter().map(|(name, report)| (name.as_str(), report));
        let Some(first) = named.next() else { return Ok(Code::NothingFound) };
        let second = named.next();
        if let Some(path) = &self.html {
            different(path, &self.logs())?;
            let text = page(first, second, &offset);
            std::fs::write(path, text).map_err(|error| Failure::file(path, &error))?;
        }
        let mut printer = Printer { width: context.out.width(), context, clock: &offset };
        match (printer.context.format, second) {
            (Format::Json, _) => {
                for (name, report) in &reports {
                    printer.context.out.json(&report_json(name, report))?;
                }
            }
            (_, None) => printer.report(first)?,
            (_, Some(second)) => printer.compared(first, second)?,
        }
        let broken = reports.iter().any(|(_, report)| report.broken.lines > 0);
        Ok(if broken { Code::LeftOut } else { Code::Done })
    }

    fn logs(&self) -> Vec<&Path> {
        [Some(&self.log), self.other.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect()
    }

    /// What each log shows, with its name.
    fn reports(&self, context: &Context) -> Result<Vec<(String, Report)>, Failure> {
        let logs = self.logs();
        let mut reports = Vec::new();
        for path in &logs {
            let report = read(&mut *source(path)?, self.budget)
                .map_err(|error| Failure::file(path, &error))?;
            left_out(context, path, &report.broken);
            if report.is_empty() {
                return Err(nothing(path));
            }
            reports.push((name(path), report));
        }
        // Two logs of one name are told apart by their folders.
        if matches!(reports.as_slice(), [(a, _), (b, _)] if a == b) {
            for ((name, _), path) in reports.iter_mut().zip(&logs) {
                *name = plain(&path.display().to_string());
            }
        }
        Ok(reports)
    }
}

fn name(path: &Path) -> String {
    match path.to_str() {
        Some("-") => "standard input".into(),
        _ => plain(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy()),
    }
}

fn source(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if path.to_str() == Some("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
    Ok(Box::new(BufReader::with_capacity(256 << 10, file)))
}

/// What is written must not be what is read, by whatever name.
fn different(target: &Path, logs: &[&Path]) -> Result<(), Failure> {
    let of = |file: std::io::Result<Metadata>| file.ok().map(|file| (file.dev(), file.ino()));
    let Some(there) = of(std::fs::metadata(target)) else { return Ok(()) };
    let is_it = |log: &&Path| match log.to_str() {
        Some("-") => {
            let input = std::io::stdin().as_fd().try_clone_to_owned();
            of(input.and_then(|input| File::from(input).metadata())) == Some(there)
        }
        _ => of(std::fs::metadata(log)) == Some(there),
    };
    if logs.iter().any(is_it) {
        let what = format!("{} is the log itself", plain(&target.display().to_string()));
        return Err(Failure::new(Kind::Usage, what).hint("name another file to write to"));
    }
    Ok(())
}

fn nothing(path: &Path) -> Failure {
    Failure::new(Kind::NotFound, format!("{}: no line of it is that of a query log", name(path)))
        .hint("docs/queries.md describes the format")
}

fn left_out(context: &Context, path: &Path, broken: &Broken) {
    if context.quiet {
        return;
    }
    let name = name(path);
    for (number, why) in &broken.named {
        complain("left out", format!("{name}:{number}: {}", plain(why)));
    }
    let more = broken.lines - broken.named.len() as u64;
    if more > 0 {
        complain("left out", format!("{name}: {}", count(more, "more line")));
    }
}

fn anonymised(context: &mut Context, log: &Path, out: &Path) -> Result<Code, Failure> {
    different(out, &[log])?;
    let mut source = source(log)?;
    let failure = |error: std::io::Error| Failure::file(out, &error);
    // It is written when it is whole: a log in which there is nothing to write takes nothing away. What stands there may be a link or a
    // pipe, so nothing is put in its place.
    let mut whole = BufWriter::new(tempfile::tempfile().map_err(failure)?);
    let told = anonymise(&mut *source, &mut whole).map_err(failure)?;
    left_out(context, log, &told.broken);
    if told.lines == 0 {
        return Err(nothing(log));
    }
    let mut whole = whole.into_inner().map_err(|error| failure(error.into_error()))?;
    whole.rewind().map_err(failure)?;
    let mut target = File::create(out).map_err(failure)?;
    std::io::copy(&mut whole, &mut target).map_err(failure)?;
    if context.format == Format::Json {
        context.out.json(&serde_json::json!({
            "lines": told.lines, "unknown": told.unknown, "broken": told.broken.lines, "texts": told.texts,
        }))?;
    } else {
        let (lines, texts) = (count(told.lines, "line"), count(told.texts, "text"));
        context.out.line(format!("{lines} written, {texts} and names replaced"))?;
        if told.unknown > 0 {
            let unknown = count(told.unknown, "line");
            context.out.line(format!("{unknown} left out, of events that are not known here"))?;
        }
    }
    Ok(if told.broken.lines > 0 { Code::LeftOut } else { Code::Done })
}

/// Rows of a table that are printed.
const ROWS: usize = 8;
/// How wide a bar of characters is.
const BAR: f64 = 24.0;

struct Printer<'a> {
    context: &'a mut Context,
    width: Option<usize>,
    clock: &'a dyn Fn(i64) -> i64,
}

impl Printer<'_> {
    fn line(&mut self, text: impl std::fmt::Display) -> Result<(), Failure> {
        Ok(self.context.out.line(text)?)
    }

    fn heading(&mut self, title: &str, text: &str) -> Result<(), Failure> {
        self.line("")?;
        self.line(format!("{STRONG}{title}{STRONG:#}"))?;
        self.line(plain(text))
    }

    /// A table with a faint head. Its last column gives way first where there is no room.
    fn table<const N: usize>(
        &mut self,
        head: [&str; N],
        rows: Vec<[String; N]>,
    ) -> Result<(), Failure> {
        if rows.is_empty() {
            return Ok(());
        }
        let head = head.map(String::from);
        let rows: Vec<[String; N]> =
            rows.into_iter().map(|row| row.map(|cell| plain(&cell))).collect();
        let all: Vec<[String; N]> = [head].into_iter().chain(rows).collect();
        let width = self.width.map(|width| width.saturating_sub(2));
        for (number, cells) in padded_by(&all, [60; N], width, N - 1).iter().enumerate() {
            let line = cells.concat();
            let line = line.trim_end();
            match number {
                0 => self.line(format!("  {FAINT}{line}{FAINT:#}"))?,
                _ => self.line(format!("  {line}"))?,
            }
        }
        Ok(())
    }

    /// Is there room for the most important columns alone?
    fn is_narrow(&self) -> bool {
        self.width.is_some_and(|width| width < 80)
    }

    /// A bar, as long as the share says.
    fn bar(&self, share: f64) -> String {
        const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        let most = if self.is_narrow() { BAR / 2.0 } else { BAR };
        let eighths = (share.clamp(0.0, 1.0) * most * 8.0).ceil() as usize;
        let part = PARTS.get(eighths % 8).copied().unwrap_or_default();
        format!("{}{part}", "█".repeat(eighths / 8))
    }

    fn report(&mut self, (name, report): (&str, &Report)) -> Result<(), Failure> {
        self.line(format!("{STRONG}{name}{STRONG:#}: {}", words::log(report, self.clock)))?;
        self.reuse(report)?;
        self.lives(report)?;
        self.cost(report)?;
        self.worth(report)?;
        self.informed(report)
    }

    fn reuse(&mut self, Report { reuse, .. }: &Report) -> Result<(), Failure> {
        self.heading("Which questions are asked, and how often?", &words::reuse(reuse))?;
        let most = reuse.times.iter().map(|times| times.answers).max().unwrap_or(1) as f64;
        let rows = reuse.times.iter().map(|times| {
            [
                words::span(times.least, times.most),
                grouped(times.questions),
                grouped(times.answers),
                self.bar(times.answers as f64 / most),
            ]
        });
        let rows = rows.collect();
        self.table(["asked so often", "questions", "answers", ""], rows)?;
        let most = reuse.most.iter().take(ROWS);
        if self.is_narrow() {
            let rows = most.map(|often| {
                [grouped(often.answers.all()), words::question(&often.question.query)]
            });
            return self.table(["asked", "question"], rows.collect());
        }
        let rows = most.map(|often| {
            [
                grouped(often.answers.all()),
                grouped(often.answers.cache),
                grouped(often.answers.shared),
                words::about(&often.question),
                words::question(&often.question.query),
            ]
        });
        self.table(["asked", "from cache", "from a view", "of", "question"], rows.collect())
    }

    fn lives(&mut self, report: &Report) -> Result<(), Failure> {
        let lives = &report.lives;
        self.heading("How long do views and kept answers live?", &words::lives(lives))?;
        self.never(lives)?;
        self.line(words::kept(lives))?;
        let rows = lives.clients.iter().take(ROWS).map(|client| {
            let lived = |us: u64| match client.lives.number {
                0 => "-".to_string(),
                _ => words::time(us as f64),
            };
            [
                client.client.clone(),
                grouped(client.opened),
                grouped(client.leaked + client.broken_off + client.open),
                lived(client.lives.quantile(0.5)),
                lived(client.lives.most),
            ]
        });
        self.table(["client", "opened", "never closed", "median life", "longest"], rows.collect())
    }

    /// Each view that was never closed, by name; leaks first.
    fn never(&mut self, lives: &Lives) -> Result<(), Failure> {
        for life in lives.never.iter().take(2 * ROWS) {
            let text = plain(&words::life(life, lives.time, self.clock));
            let width = self.width.unwrap_or(usize::MAX).saturating_sub(2);
            self.line(format!("  {GONE}{}{GONE:#}", shorten(&text, width)))?;
        }
        match lives.never.len().saturating_sub(2 * ROWS) as u64 {
            0 => Ok(()),
            more => self.line(format!("  ... and {}", count(more, "more view"))),
        }
    }

    fn cost(&mut self, Report { cost, .. }: &Report) -> Result<(), Failure> {
        self.heading("How long do answers take?", &words::cost(cost))?;
        let narrow = self.is_narrow();
        let rows = cost.collections.iter().take(2 * ROWS).map(|group| {
            [
                words::group(group),
                grouped(group.work.us.number),
                words::time(group.work.us.mean()),
                words::time(group.work.us.most as f64),
                words::ratio(&group.work),
                match narrow {
                    true => String::new(),
                    false => words::question(&group.worst.query),
                },
            ]
        });
        let last = if narrow { "" } else { "the worst" };
        let head = ["collection", "answers", "mean", "worst", "visited per given", last];
        self.table(head, rows.collect())?;
        if cost.sources.len() > 1 {
            let rows = cost.sources.iter().take(ROWS).map(|group| {
                [
                    group.source.clone(),
                    grouped(group.work.us.number),
                    words::time(group.work.us.mean()),
                    words::time(group.work.us.most as f64),
                    words::ratio(&group.work),
                ]
            });
            let head = ["kind of source", "answers", "mean", "worst", "visited per given"];
            self.table(head, rows.collect())?;
        }
        Ok(())
    }

    fn worth(&mut self, Report { worth, .. }: &Report) -> Result<(), Failure> {
        self.heading("Is the cache worth its memory?", &words::worth(worth))?;
        if worth.askings == 0 {
            return Ok(());
        }
        let own = worth.recorded.map(|trial| (trial, "as in the log".to_string()));
        let trials = worth.trials.iter().map(|trial| (*trial, words::budget(trial.budget)));
        let rows = trials.chain(own).map(|(trial, name)| {
            [
                name,
                words::share(trial.hits, worth.askings),
                larder_measure::chart::Unit::Bytes.write(trial.peak as f64),
                words::time(trial.saved_us as f64),
                self.bar(worth.rate(trial.hits)),
            ]
        });
        let rows = rows.collect();
        self.table(["budget", "had been kept", "in memory", "time saved", ""], rows)?;
        match words::honesty(worth) {
            Some(text) => self.line(text),
            None => Ok(()),
        }
    }

    fn informed(&mut self, Report { informed, .. }: &Report) -> Result<(), Failure> {
        self.heading("How many views does a change inform?", &words::informed(informed))?;
        let most = informed.views.iter().map(|(.., changes)| *changes).max().unwrap_or(1) as f64;
        let rows = informed.views.iter().map(|(least, to, changes)| {
            [words::views(*least, *to), grouped(*changes), self.bar(*changes as f64 / most)]
        });
        let rows = rows.collect();
        self.table(["informed", "changes", ""], rows)
    }

    /// Two logs: the figures, the cost by collection, and the views that either left open.
    fn compared(
        &mut self,
        (before, a): (&str, &Report),
        (after, b): (&str, &Report),
    ) -> Result<(), Failure> {
        for (name, report) in [(before, a), (after, b)] {
            self.line(format!("{STRONG}{name}{STRONG:#}: {}", words::log(report, self.clock)))?;
        }
        self.line("")?;
        self.table(["", "before", "after", "change"], both(a, b))?;
        self.heading("How long do answers take?", "Means, by collection and kind of source.")?;
        let mut rows = Vec::new();
        for group in a.cost.collections.iter().take(2 * ROWS) {
            let key = (&group.collection, &group.source);
            let mut others = b.cost.collections.iter();
            let Some(other) = others.find(|it| (&it.collection, &it.source) == key) else {
                continue;
            };
            let [from, to] = [group, other].map(|it| it.work.us.mean());
            rows.push([
                words::group(group),
                words::time(from),
                words::time(to),
                change(from, to),
                format!("{} > {}", words::ratio(&group.work), words::ratio(&other.work)),
            ]);
        }
        self.table(["collection", "before", "after", "change", "visited per given"], rows)?;
        let lives = |name: &str, of: &Report| format!("{name}: {}", words::lives(&of.lives));
        self.heading("How long do views live?", &lives(before, a))?;
        self.never(&a.lives)?;
        self.line(plain(&lives(after, b)))?;
        self.never(&b.lives)?;
        Ok(())
    }
}
