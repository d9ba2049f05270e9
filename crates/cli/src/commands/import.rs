use crate::args::Format;
use crate::context::{Context, now};
use crate::failure::{Code, Failure, Kind};
use crate::output::{complain, count, grouped, plain, size};
use larder_store::{Directory, Kind as ItemKind};
use larder_sync::{Event, ImportOptions, Input, MAX_BATCH, MAX_ITEM, Packed, Summary, Taken};
use serde_json::json;
use std::path::PathBuf;

/// Take in address books and calendars: vCard files (2.1, 3.0, 4.0), iCalendar files, folders of them, or standard input
///
/// Contacts go to the collection contacts; a calendar to one of its own name, or
/// of its file's; a message about a meeting to the calendar that has it. What is
/// good is taken; what is not is named by file, line and reason, and kept with
/// --rejects. An item whose UID is known is updated; the same file again changes
/// nothing, unless items were edited or merged since: then they become again what
/// the file says. The whole import is one operation: one `larder undo` takes it
/// back.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// Files and folders; - is standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The collection they go to, made if there is none of that name
    #[arg(long, value_name = "NAME")]
    into: Option<String>,
    /// Keep what is not taken in this file, as it came
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Items written in one transaction, up to 4000 [default: as many as keep other writers out for a tenth
    /// of a second]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_BATCH as u64))]
    batch: Option<u64>,
    /// The largest item that is taken, in bytes (K, M and G are understood)
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = crate::size::parse_some)]
    max_item: u64,
}

/// Messages about single items that an import prints; what is left out is counted, and kept, all the same.
const MESSAGES: u64 = 1000;
const MESSAGES_AND_ONE: u64 = MESSAGES + 1;

impl Import {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let was_there = Directory::new(&context.dir).holds_store();
        let mut store = context.store_or_new()?;
        if !was_there {
            context.note(format!("a new store was made in {}", context.dir.display()));
        }
        let inputs = self.paths.iter().map(|path| match path.to_str() {
            Some("-") => Input::Stdin(Box::new(std::io::stdin())),
            _ => Input::Path(path.clone()),
        });
        let options = self.options();
        let bar = crate::progress::bytes(context.quiet, None);
        let quiet = context.quiet;
        let mut said = 0;
        let mut say = |kind: &str, notice: &dyn std::fmt::Display| {
            said += 1;
            match said {
                ..=MESSAGES => bar.suspend(|| complain(kind, plain(&notice.to_string()))),
                MESSAGES_AND_ONE => bar.suspend(|| complain("note", "... more are not shown")),
                _ => {}
            }
        };
        let mut events = |event: Event<'_>| match event {
            Event::Rejected(notice) => say("left out", &notice),
            Event::Warning(notice) if !quiet => say("warning", &notice),
            Event::Progress { bytes_done, bytes_total, items } => {
                if let Some(total) = bytes_total {
                    bar.set_length(total);
                }
                bar.set_position(bytes_done);
                bar.set_message(count(items, "item"));
            }
            _ => {}
        };
        let summary = larder_sync::import(&mut store, inputs.collect(), &options, &mut events)?;
        bar.finish_and_clear();
        self.print(context, &summary)?;
        self.advise(&summary);
        Ok(match &summary {
            summary if summary.interrupted => Code::Interrupted,
            summary if !summary.unreadable.is_empty() => Code::SourceMissing,
            summary if summary.rejected > 0 => Code::LeftOut,
            _ => Code::Done,
        })
    }

    fn options(&self) -> ImportOptions {
        ImportOptions {
            into: self.into.clone(),
            batch: self.batch.map(|batch| batch as usize),
            max_item: self.max_item as usize,
            rejects: self.rejects.clone(),
            threads: std::thread::available_parallelism().map_or(2, usize::from),
            at: now(),
            stop: crate::interrupt::flag(),
        }
    }

    /// What may help where something was left out, or nothing found.
    fn advise(&self, summary: &Summary) {
        if summary.rejected == 0 || summary.interrupted {
            return;
        }
        let mut any = false;
        for path in &self.paths {
            if let Some(Packed { with, unpack }) = larder_sync::packed(path) {
                any = true;
                let path = plain(&path.display().to_string());
                complain(
                    "hint",
                    format!("{path} is packed with {with}: {unpack} {path} | larder import -"),
                );
            }
        }
        if summary.collections.is_empty() && !any {
            complain("hint", "a card begins with BEGIN:VCARD, a calendar with BEGIN:VCALENDAR");
        }
    }

    /// How many were taken, and what of them is new: a line for each collection.
    fn taken(&self, summary: &Summary) -> Vec<String> {
        if summary.items() == 0 {
            let place = match self.paths.as_slice() {
                [path] if path.as_os_str() == "-" => "standard input".to_string(),
                [path] => plain(&path.display().to_string()),
                paths => count(paths.len() as u64, "input"),
            };
            return vec![format!("no item was found in {place}")];
        }
        summary.collections.iter().map(|name| taken(summary, name)).collect()
    }

    fn print(&self, context: &mut Context, summary: &Summary) -> Result<(), Failure> {
        for missing in &summary.unreadable {
            complain("error", plain(&missing.to_string()));
        }
        if !summary.unreadable.is_empty() {
            complain("hint", "check the name, and who may read it; what could be read was taken");
        }
        if context.format == Format::Json {
            context.out.json(&json!({
                "collection": summary.collections.first(), "collections": summary.collections,
                "added": summary.added, "updated": summary.updated, "cancelled": summary.cancelled,
                "unchanged": summary.unchanged, "beside": summary.beside, "rejected": summary.rejected,
                "warnings": summary.warnings, "files": summary.files, "bytes": summary.bytes,
                "operation": summary.operation, "taken": taken_json(summary),
                "zones_defined": summary.zones.0, "zones_kept": summary.zones.1,
            }))?;
            return Ok(());
        }
        if summary.interrupted && summary.items() == 0 {
            context.out.line("interrupted; nothing was taken yet")?;
            return Ok(());
        }
        let (files, bytes) = (count(summary.files, "file"), size(summary.bytes));
        match self.taken(summary).as_slice() {
            [one] => context.out.line(format!("{one} ({files}, {bytes})"))?,
            several => {
                for line in several {
                    context.out.line(line)?;
                }
                context.out.line(format!("{files}, {bytes}"))?;
            }
        }
        if summary.zones.0 > 0 {
            let (defined, kept) = (count(summary.zones.0, "time zone"), grouped(summary.zones.1));
            context.out.line(format!("{defined} defined, {kept} kept"))?;
        }
        if summary.rejected > 0 {
            let kept = match &self.rejects {
                Some(file) => format!("kept in {}", file.display()),
                None => "--rejects FILE keeps them".into(),
            };
            context.out.line(format!("{} left out; {kept}", grouped(summary.rejected)))?;
        }
        if let Some(id) = summary.operation {
            context.out.line(format!("larder undo {id} takes it back"))?;
        }
        if summary.interrupted {
            context
                .out
                .line("interrupted: what was committed is kept; the same command goes on")?;
        }
        Ok(())
    }
}

impl From<larder_sync::Error> for Failure {
    fn from(error: larder_sync::Error) -> Failure {
        match error {
            larder_sync::Error::Store(error) => error.into(),
            error @ larder_sync::Error::RejectsIsInput { .. } => {
                Failure::new(Kind::Usage, error).hint("name another file with --rejects")
            }
            larder_sync::Error::Write(error) => error.into(),
            larder_sync::Error::Rejects { path, source } => Failure::file(&path, &source),
            error => Failure::new(Kind::Source, error),
        }
    }
}

/// One of the numbers of what was taken.
type Number = fn(&Taken) -> u64;

/// What went to a collection: `214 events, 3 tasks added to Work, 2 updated`.
fn taken(summary: &Summary, name: &str) -> String {
    let here = || summary.taken.iter().filter(|taken| *taken.collection == *name);
    let of = |number: Number| {
        let kinds = here().filter(|taken| number(taken) > 0);
        kinds.map(|taken| count(number(taken), noun(taken.kind))).collect::<Vec<_>>().join(", ")
    };
    let sum = |number: Number| here().map(number).sum::<u64>();
    let name = plain(name);
    let told: [(Number, &str, &str); 4] = [
        (|taken| taken.added, "added", "to"),
        (|taken| taken.updated, "updated", "in"),
        (|taken| taken.cancelled, "cancelled", "in"),
        (|taken| taken.unchanged, "unchanged", "in"),
    ];
    let mut parts: Vec<String> = Vec::new();
    for (number, what, place) in told.into_iter().filter(|(number, ..)| sum(*number) > 0) {
        parts.push(match parts.is_empty() {
            true => format!("{} {what} {place} {name}", of(number)),
            false => format!("{} {what}", grouped(sum(number))),
        });
    }
    let is_new = here().any(|taken| taken.added + taken.updated + taken.cancelled > 0);
    format!("{}{}", if is_new { "" } else { "nothing new: " }, parts.join(", "))
}

fn noun(kind: ItemKind) -> &'static str {
    if kind == ItemKind::Other { "other item" } else { kind.name() }
}

fn taken_json(summary: &Summary) -> Vec<serde_json::Value> {
    let taken = summary.taken.iter().map(|taken| {
        json!({
            "collection": *taken.collection, "kind": taken.kind.name(), "added": taken.added,
            "updated": taken.updated, "cancelled": taken.cancelled, "unchanged": taken.unchanged,
        })
    });
    taken.collect()
}

const _: () = assert!(MAX_ITEM == 32 << 20, "the help says 32M");
