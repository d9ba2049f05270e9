use crate::args::Format;
use crate::context::{Context, now, random};
use crate::failure::{Code, Failure, Kind};
use crate::ids::name_in;
use crate::output::{complain, count, plain};
use crate::when;
use larder_query::describe;
use larder_store::{Family, Operation, Prepared, Store};
use larder_sync::Added;
use larder_sync::card::{Error, LARGEST, Pieces, Typed, fresh_uid};
use larder_sync::event::{Draft, DraftError, Said, SaidError};
use larder_time::value::Nominal;
use serde_json::json;
use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

/// Add an event, a task or a memo in words; or contacts and events from a file or standard input
///
/// In words: larder add --kind event "Lunch with Anna tomorrow 12:30 for 1h at Bistro". Times, a place and how it is
/// repeated are taken out of the sentence, the rest is the summary, and what was understood is printed. Options win
/// over the sentence.
///
/// From a file: each item gets a UID if it has none. One whose UID is there already is left alone (`larder edit` changes
/// it, `larder import` takes the file's version).
#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    /// A file with vCards or a calendar (- is standard input), or what is to be added in words
    #[arg(value_name = "FILE|TEXT")]
    text: Vec<OsString>,
    /// The collection it goes to, made if there is none of that name [default: contacts, or calendar]
    #[arg(long, value_name = "NAME")]
    into: Option<String>,
    #[command(flatten)]
    options: Options,
}

/// What is said in options.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Events, tasks and memos")]
struct Options {
    /// What it is
    #[arg(long, value_enum)]
    kind: Option<What>,
    /// What it is about
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// When it begins
    #[arg(long, value_name = "TIME")]
    start: Option<String>,
    /// When it ends; of a task, when it is due
    #[arg(long, visible_alias = "due", value_name = "TIME")]
    end: Option<String>,
    /// How long it takes: 90min, 2 days
    #[arg(long = "for", value_name = "LENGTH", conflicts_with = "end", allow_hyphen_values = true)]
    length: Option<String>,
    /// It is of whole days
    #[arg(long)]
    all_day: bool,
    /// Where it is
    #[arg(long, value_name = "TEXT")]
    location: Option<String>,
    /// What it is about, at length
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// How it recurs, as RFC 5545 writes it: FREQ=WEEKLY;BYDAY=MO
    #[arg(long, value_name = "RULE", conflicts_with = "every")]
    rule: Option<String>,
    /// How it recurs, in words: monday, "2 weeks", "day until june"
    #[arg(long, value_name = "TEXT")]
    every: Option<String>,
    /// A category; may be given several times
    #[arg(long = "category", value_name = "TEXT")]
    categories: Vec<String>,
    /// 1, the highest, to 9; or high, medium or low
    #[arg(long, value_name = "NUMBER", value_parser = priority)]
    priority: Option<u8>,
    /// An alarm so long before it begins: 15min; may be given several times
    #[arg(long = "alarm", value_name = "LENGTH")]
    alarms: Vec<String>,
    /// The zone of its clock: Europe/Prague, utc, or floating [default: that of this machine]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
}

/// What can be said in words.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    Event,
    Task,
    Memo,
}

/// A priority, as a number or a word.
fn priority(text: &str) -> Result<u8, &'static str> {
    match text {
        "high" => Ok(1),
        "medium" => Ok(5),
        "low" => Ok(9),
        _ => text
            .parse()
            .ok()
            .filter(|level| (1..=9).contains(level))
            .ok_or("write 1, the highest, to 9; or high, medium or low"),
    }
}

/// The least that is a card, as a command.
const EXAMPLE: &str =
    r"printf 'BEGIN:VCARD\nVERSION:4.0\nFN:Anna Example\nEND:VCARD\n' | larder add";

impl Add {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        match self.file() {
            Some(file) => self.take_file(context, &file),
            None => self.in_words(context),
        }
    }

    /// The file that is meant, if none is meant in words.
    fn file(&self) -> Option<PathBuf> {
        let Options { kind, summary, start, .. } = &self.options;
        if kind.is_some() || summary.is_some() || start.is_some() {
            return None;
        }
        match &self.text[..] {
            [] => Some(PathBuf::from("-")),
            [one] => {
                let said = one.to_str().is_some_and(|text| text.is_empty() || text.contains(' '));
                (!said || Path::new(one).exists()).then(|| PathBuf::from(one))
            }
            _ => None,
        }
    }

    fn in_words(&self, context: &mut Context) -> Result<Code, Failure> {
        let draft =
            self.said().understand(&context.speaker()).map_err(|error| misunderstood(&error))?;
        let failed = |error: std::io::Error| refused("a new UID", &Error::Random(error));
        let uid = fresh_uid(random().map_err(failed)?);
        let (bytes, frame) =
            draft.item(&uid, context.settings.asker.now).map_err(|error| impossible(&error))?;
        let mut store = context.store_or_new()?;
        let into = self.into(Family::Calendar);
        let (prepared, ..) = store
            .deriver_for(into, Family::Calendar)?
            .component(bytes, &frame)
            .map_err(|(_, problem)| {
                Failure::new(Kind::Input, format!("line {}: {problem}", problem.line))
            })?;
        let mut operation =
            Operation::new("add", format!("{} into {into}", draft.kind.name()), now());
        let mut told = |store: &Store, added: Added| {
            self.told(context, store, into, &added)?;
            understood(context, &draft)
        };
        larder_sync::add(&mut store, &mut operation, into, vec![prepared], &mut told)?;
        Ok(Code::Done)
    }

    fn said(&self) -> Said {
        let words: Vec<_> = self.text.iter().map(|word| word.to_string_lossy()).collect();
        let options = &self.options;
        Said {
            kind: options.kind.map(|kind| match kind {
                What::Event => larder_store::Kind::Event,
                What::Task => larder_store::Kind::Task,
                What::Memo => larder_store::Kind::Memo,
            }),
            text: words.join(" "),
            summary: options.summary.clone(),
            start: options.start.clone(),
            end: options.end.clone(),
            length: options.length.clone(),
            all_day: options.all_day,
            location: options.location.clone(),
            description: options.description.clone(),
            rule: options.rule.clone(),
            every: options.every.clone(),
            categories: options.categories.clone(),
            priority: options.priority,
            alarms: options.alarms.clone(),
            zone: options.zone.clone(),
        }
    }

    /// Where items of this family go.
    fn into(&self, family: Family) -> &str {
        match family {
            Family::Calendar => self.into.as_deref().unwrap_or("calendar"),
            _ => self.into.as_deref().unwrap_or("contacts"),
        }
    }

    fn take_file(&self, context: &mut Context, file: &Path) -> Result<Code, Failure> {
        let (name, bytes) = read(context, file)?;
        let refused = |error: Error| refused(&name, &error);
        let pieces = Pieces::of(&bytes).map_err(refused)?;
        let mut store = context.store_or_new()?;
        let deriver = store.deriver_for(self.into(Family::Contacts), Family::Contacts)?;
        let typed = pieces.typed(&deriver, &mut random).map_err(refused)?;
        let mut left_out = remark(context, &name, &typed);
        let of = |family: Family| move |item: &Prepared| item.kind().family() == family;
        let (cards, components): (Vec<_>, Vec<_>) =
            typed.cards.into_iter().partition(of(Family::Contacts));
        let what = match (cards.len(), components.len()) {
            (cards, 0) => count(cards as u64, "card"),
            (cards, others) => count((cards + others) as u64, "item"),
        };
        let families = [(Family::Contacts, cards), (Family::Calendar, components)];
        let families = families.into_iter().filter(|(_, items)| !items.is_empty());
        let families: Vec<_> = families.collect();
        let names: Vec<_> = families.iter().map(|(family, _)| self.into(*family)).collect();
        let detail = format!("{what} into {}", names.join(" and "));
        let mut operation = Operation::new("add", detail, now());
        for (family, items) in families {
            let into = self.into(family);
            let mut told = |store: &Store, added: Added| self.told(context, store, into, &added);
            left_out += larder_sync::add(&mut store, &mut operation, into, items, &mut told)?;
        }
        Ok(if left_out > 0 { Code::LeftOut } else { Code::Done })
    }

    /// Says what became of one item.
    fn told(
        &self,
        context: &mut Context,
        store: &Store,
        into: &str,
        added: &Added,
    ) -> Result<(), Failure> {
        let (name, uid) = (name_in(&added.bytes), &added.uid);
        let Some(handle) = added.handle else {
            let uid = plain(uid);
            complain("left out", format!("{name}: there is an item with UID {uid:?} already"));
            complain("hint", format!("larder edit 'uid:{uid}' changes it"));
            return Ok(());
        };
        if context.format == Format::Json {
            let id = handle.to_string();
            let object = json!({ "id": id, "uid": uid, "collection": into });
            return Ok(context.out.json(&object)?);
        }
        let letters = store.reader()?.letters(handle)?;
        Ok(context.out.line(format!("{handle:.letters$}  {name}  added to {}", plain(into)))?)
    }
}

/// Says what was understood of a sentence.
fn understood(context: &mut Context, draft: &Draft) -> Result<(), Failure> {
    if context.format == Format::Json {
        return Ok(());
    }
    let mut said: Vec<(&str, String)> = Vec::new();
    let asker = &context.settings.asker;
    let when = when::shown(draft.kind, draft.start.as_ref(), draft.end.as_ref(), asker);
    said.extend(when.map(|when| ("when", when)));
    let rule = draft.recurrence().ok().flatten();
    said.extend(rule.map(|rule| ("repeated", when::repeated(&rule, draft.start.as_ref(), asker))));
    said.extend(draft.location.clone().map(|place| ("at", place)));
    if !draft.categories.is_empty() {
        said.push(("categories", draft.categories.join(", ")));
    }
    said.extend(draft.priority.map(|priority| ("priority", priority.to_string())));
    let event = if draft.start.is_none() { "is due" } else { "begins" };
    let before = |alarm: &Nominal| Nominal { days: -alarm.days, seconds: -alarm.seconds };
    let alarms = draft.alarms.iter().map(before);
    said.extend(alarms.map(|alarm| ("alarm", describe::relative(alarm, event))));
    for (what, text) in said {
        context.out.line(format!("  {what}: {}", plain(&text)))?;
    }
    Ok(())
}

/// The file's name, for messages, and its bytes: one more than is taken, at most.
fn read(context: &Context, file: &Path) -> Result<(String, Vec<u8>), Failure> {
    let mut bytes = Vec::new();
    let most = LARGEST as u64 + 1;
    let (name, read) = match file.to_str() {
        Some("-") => {
            if std::io::stdin().is_terminal() {
                context.note("type or paste a vCard, and end it with Control-D");
            }
            let read = std::io::stdin().take(most).read_to_end(&mut bytes);
            ("standard input".to_string(), read)
        }
        _ => {
            let opened = std::fs::File::open(file);
            let read = opened.and_then(|file| file.take(most).read_to_end(&mut bytes));
            (plain(&file.display().to_string()), read)
        }
    };
    match read {
        Ok(_) => Ok((name, bytes)),
        Err(error) => {
            let failure = Failure::file(file, &error);
            let is_said =
                error.kind() == std::io::ErrorKind::NotFound && file.extension().is_none();
            let words = plain(&file.display().to_string());
            let hint = format!(
                "what is to happen is said behind --kind: larder add --kind event {words:?}"
            );
            Err(if is_said { failure.hint(hint) } else { failure })
        }
    }
}

/// Words that cannot become an item.
fn misunderstood(error: &SaidError) -> Failure {
    let failure = Failure::new(Kind::Usage, error);
    match error {
        SaidError::Kind => failure
            .hint("an event needs a time: tomorrow 12:30, friday, 2026-03-05")
            .hint("what has none is a task or a memo: say --kind task or --kind memo"),
        SaidError::NoSummary => failure.hint("larder add --kind event \"Lunch tomorrow 12:30\""),
        SaidError::Zone(_) => failure.hint("a zone is called Europe/Prague, utc, or floating"),
        _ => failure,
    }
}

fn impossible(error: &DraftError) -> Failure {
    let failure = Failure::new(Kind::Usage, error);
    match error {
        DraftError::NoStart | DraftError::NoFirst => {
            failure.hint("say when: tomorrow 12:30, friday, 2026-03-05; or --start TIME")
        }
        DraftError::Mixed => failure.hint("give both --start and --end, as days or as times"),
        _ => failure,
    }
}

/// A text that holds nothing to add.
fn refused(name: &str, error: &Error) -> Failure {
    let failure = |kind| Failure::new(kind, format!("{name}: {error}"));
    match error {
        Error::NoCard => failure(Kind::Input)
            .hint("a vCard is expected: it begins with BEGIN:VCARD and ends with END:VCARD")
            .hint(format!("a small one: {EXAMPLE}"))
            .hint(
                "an event can be said in words: larder add --kind event \"Lunch tomorrow 12:30\"",
            ),
        Error::TooLarge => {
            failure(Kind::Input).hint("nothing was added; larder import takes files of any size")
        }
        _ => failure(Kind::Store),
    }
}

/// Says what there is to say about the text; gives the number of things left out.
fn remark(context: &Context, name: &str, typed: &Typed) -> u64 {
    for remark in &typed.remarks {
        let text = plain(&format!("{name}:{}: {}", remark.line, remark.what));
        match remark.what.left_out() {
            true => complain("left out", text),
            false => context.warn(text),
        }
    }
    typed.remarks.iter().filter(|remark| remark.what.left_out()).count() as u64
}
