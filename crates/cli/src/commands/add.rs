use crate::args::OutputFormat;
use crate::context::{CommandContext, now_milliseconds, random_bytes};
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::name_from_bytes;
use crate::output::{format_count, print_message, sanitize_line};
use crate::time_display;
use larder_present::description;
use larder_store::{CollectionType, Operation, ParsedItem, Store};
use larder_sync::AddedItem;
use larder_sync::event::{EventDraft, EventDraftError, EventRequest, EventRequestError};
use larder_sync::item_text::{Error, MAX_TEXT_BYTES, ParsedText, SplitText, uid_from_random};
use larder_time::value::IcalDuration;
use serde_json::json;
use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

/// Add an event, a task or a memo in words; or contacts and events from a file or standard input
///
/// In words: larder add --kind event "Lunch with Anna tomorrow 12:30 for 1h at Bistro". Times, a
/// place and how it is repeated are taken out of the sentence, the rest is the summary, and what
/// was understood is printed. Options win over the sentence.
///
/// From a file: each item gets a UID if it has none. One whose UID is there already is left alone
/// (`larder edit` changes it, `larder import` takes the file's version).
#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    /// A file with vCards or a calendar (- is standard input), or what is to be added in words
    #[arg(value_name = "FILE|TEXT")]
    text: Vec<OsString>,
    /// The collection it goes to, made if there is none of that name [default: contacts, or
    /// calendar]
    #[arg(long, value_name = "NAME")]
    into: Option<String>,
    #[command(flatten)]
    options: ItemOptionsArgs,
}

/// What is said in options.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Events, tasks and memos")]
struct ItemOptionsArgs {
    /// What it is
    #[arg(long, value_enum)]
    kind: Option<AddKindArg>,
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
    #[arg(long, value_name = "NUMBER", value_parser = parse_priority)]
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
enum AddKindArg {
    Event,
    Task,
    Memo,
}

/// A priority, as a number or a word.
fn parse_priority(text: &str) -> Result<u8, &'static str> {
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
const EXAMPLE_COMMAND: &str =
    r"printf 'BEGIN:VCARD\nVERSION:4.0\nFN:Anna Example\nEND:VCARD\n' | larder add";

impl AddArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        match self.input_file() {
            Some(file) => self.add_from_file(context, &file),
            None => self.add_from_words(context),
        }
    }

    /// The file that is meant, if none is meant in words.
    fn input_file(&self) -> Option<PathBuf> {
        let ItemOptionsArgs { kind, summary, start, .. } = &self.options;
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

    fn add_from_words(
        &self,
        context: &mut CommandContext,
    ) -> Result<CommandStatus, CommandFailure> {
        let draft = self
            .to_event_text()
            .to_draft(&context.speaker())
            .map_err(|error| text_failure(&error))?;
        let failed = |error: std::io::Error| input_failure("a new UID", &Error::Random(error));
        let uid = uid_from_random(random_bytes().map_err(failed)?);
        let (bytes, frame) = draft
            .to_component(&uid, context.settings.user_locale.now)
            .map_err(|error| draft_failure(&error))?;
        let mut store = context.open_or_create_store()?;
        let into = self.target_collection(CollectionType::Calendar);
        let (prepared, ..) = store
            .extractor_for_collection(into, CollectionType::Calendar)?
            .parse_component(bytes, &frame)
            .map_err(|(_, problem)| {
                CommandFailure::new(FailureKind::Input, format!("line {}: {problem}", problem.line))
            })?;
        let mut operation =
            Operation::new("add", format!("{} into {into}", draft.kind.name()), now_milliseconds());
        let mut told = |store: &Store, added: AddedItem| {
            self.print_added(context, store, into, &added)?;
            print_draft(context, &draft)
        };
        larder_sync::add_items(&mut store, &mut operation, into, vec![prepared], &mut told)?;
        Ok(CommandStatus::Done)
    }

    fn to_event_text(&self) -> EventRequest {
        let words: Vec<_> = self.text.iter().map(|word| word.to_string_lossy()).collect();
        let options = &self.options;
        EventRequest {
            kind: options.kind.map(|kind| match kind {
                AddKindArg::Event => larder_store::Kind::Event,
                AddKindArg::Task => larder_store::Kind::Task,
                AddKindArg::Memo => larder_store::Kind::Memo,
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
    fn target_collection(&self, family: CollectionType) -> &str {
        match family {
            CollectionType::Calendar => self.into.as_deref().unwrap_or("calendar"),
            _ => self.into.as_deref().unwrap_or("contacts"),
        }
    }

    fn add_from_file(
        &self,
        context: &mut CommandContext,
        file: &Path,
    ) -> Result<CommandStatus, CommandFailure> {
        let (name, bytes) = read_input(context, file)?;
        let refused = |error: Error| input_failure(&name, &error);
        let pieces = SplitText::from_bytes(&bytes).map_err(refused)?;
        let mut store = context.open_or_create_store()?;
        let deriver = store.extractor_for_collection(
            self.target_collection(CollectionType::AddressBook),
            CollectionType::AddressBook,
        )?;
        let typed = pieces.parse_items(&deriver, &mut random_bytes).map_err(refused)?;
        let mut left_out = print_remarks(context, &name, &typed);
        let of = |family: CollectionType| {
            move |item: &ParsedItem| item.kind().collection_type() == family
        };
        let (cards, components): (Vec<_>, Vec<_>) =
            typed.items.into_iter().partition(of(CollectionType::AddressBook));
        let what = match (cards.len(), components.len()) {
            (cards, 0) => format_count(cards as u64, "card"),
            (cards, others) => format_count((cards + others) as u64, "item"),
        };
        let families =
            [(CollectionType::AddressBook, cards), (CollectionType::Calendar, components)];
        let families = families.into_iter().filter(|(_, items)| !items.is_empty());
        let families: Vec<_> = families.collect();
        let names: Vec<_> =
            families.iter().map(|(family, _)| self.target_collection(*family)).collect();
        let detail = format!("{what} into {}", names.join(" and "));
        let mut operation = Operation::new("add", detail, now_milliseconds());
        for (family, items) in families {
            let into = self.target_collection(family);
            let mut told =
                |store: &Store, added: AddedItem| self.print_added(context, store, into, &added);
            left_out += larder_sync::add_items(&mut store, &mut operation, into, items, &mut told)?;
        }
        Ok(if left_out > 0 { CommandStatus::LeftOut } else { CommandStatus::Done })
    }

    /// Says what became of one item.
    fn print_added(
        &self,
        context: &mut CommandContext,
        store: &Store,
        into: &str,
        added: &AddedItem,
    ) -> Result<(), CommandFailure> {
        let (name, uid) = (name_from_bytes(&added.bytes), &added.uid);
        let Some(handle) = added.handle else {
            let uid = sanitize_line(uid);
            print_message("left out", format!("{name}: there is an item with UID {uid:?} already"));
            print_message("hint", format!("larder edit 'uid:{uid}' changes it"));
            return Ok(());
        };
        if context.format == OutputFormat::Json {
            let id = handle.to_string();
            let object = json!({ "id": id, "uid": uid, "collection": into });
            return Ok(context.out.print_json(&object)?);
        }
        let letters = store.open_reader()?.unique_prefix_len(handle)?;
        Ok(context
            .out
            .print_line(format!("{handle:.letters$}  {name}  added to {}", sanitize_line(into)))?)
    }
}

/// Says what was understood of a sentence.
fn print_draft(context: &mut CommandContext, draft: &EventDraft) -> Result<(), CommandFailure> {
    if context.format == OutputFormat::Json {
        return Ok(());
    }
    let mut said: Vec<(&str, String)> = Vec::new();
    let asker = &context.settings.user_locale;
    let when =
        time_display::format_times(draft.kind, draft.start.as_ref(), draft.end.as_ref(), asker);
    said.extend(when.map(|when| ("when", when)));
    let rule = draft.rrule().ok().flatten();
    said.extend(
        rule.map(|rule| {
            ("repeated", time_display::format_rule(&rule, draft.start.as_ref(), asker))
        }),
    );
    said.extend(draft.location.clone().map(|place| ("at", place)));
    if !draft.categories.is_empty() {
        said.push(("categories", draft.categories.join(", ")));
    }
    said.extend(draft.priority.map(|priority| ("priority", priority.to_string())));
    let event = if draft.start.is_none() { "is due" } else { "begins" };
    let before = |alarm: &IcalDuration| IcalDuration { days: -alarm.days, seconds: -alarm.seconds };
    let alarms = draft.alarms.iter().map(before);
    said.extend(alarms.map(|alarm| ("alarm", description::describe_offset(alarm, event))));
    for (what, text) in said {
        context.out.print_line(format!("  {what}: {}", sanitize_line(&text)))?;
    }
    Ok(())
}

/// The file's name, for messages, and its bytes: one more than is taken, at most.
fn read_input(context: &CommandContext, file: &Path) -> Result<(String, Vec<u8>), CommandFailure> {
    let mut bytes = Vec::new();
    let most = MAX_TEXT_BYTES as u64 + 1;
    let (name, read) = match file.to_str() {
        Some("-") => {
            if std::io::stdin().is_terminal() {
                context.print_note("type or paste a vCard, and end it with Control-D");
            }
            let read = std::io::stdin().take(most).read_to_end(&mut bytes);
            ("standard input".to_string(), read)
        }
        _ => {
            let opened = std::fs::File::open(file);
            let read = opened.and_then(|file| file.take(most).read_to_end(&mut bytes));
            (sanitize_line(&file.display().to_string()), read)
        }
    };
    match read {
        Ok(_) => Ok((name, bytes)),
        Err(error) => {
            let failure = CommandFailure::from_file_error(file, &error);
            let is_said =
                error.kind() == std::io::ErrorKind::NotFound && file.extension().is_none();
            let words = sanitize_line(&file.display().to_string());
            let hint = format!(
                "what is to happen is said behind --kind: larder add --kind event {words:?}"
            );
            Err(if is_said { failure.with_hint(hint) } else { failure })
        }
    }
}

/// Words that cannot become an item.
fn text_failure(error: &EventRequestError) -> CommandFailure {
    let failure = CommandFailure::new(FailureKind::Usage, error);
    match error {
        EventRequestError::AmbiguousKind => failure
            .with_hint("an event needs a time: tomorrow 12:30, friday, 2026-03-05")
            .with_hint("what has none is a task or a memo: say --kind task or --kind memo"),
        EventRequestError::NoSummary => {
            failure.with_hint("larder add --kind event \"Lunch tomorrow 12:30\"")
        }
        EventRequestError::UnknownZone(_) => {
            failure.with_hint("a zone is called Europe/Prague, utc, or floating")
        }
        _ => failure,
    }
}

fn draft_failure(error: &EventDraftError) -> CommandFailure {
    let failure = CommandFailure::new(FailureKind::Usage, error);
    match error {
        EventDraftError::NoStart | EventDraftError::RecurringWithoutStart => {
            failure.with_hint("say when: tomorrow 12:30, friday, 2026-03-05; or --start TIME")
        }
        EventDraftError::MixedDateAndTime => {
            failure.with_hint("give both --start and --end, as days or as times")
        }
        _ => failure,
    }
}

/// A text that holds nothing to add.
fn input_failure(name: &str, error: &Error) -> CommandFailure {
    let failure = |kind| CommandFailure::new(kind, format!("{name}: {error}"));
    match error {
        Error::NoItem => failure(FailureKind::Input)
            .with_hint("a vCard is expected: it begins with BEGIN:VCARD and ends with END:VCARD")
            .with_hint(format!("a small one: {EXAMPLE_COMMAND}"))
            .with_hint(
                "an event can be said in words: larder add --kind event \"Lunch tomorrow 12:30\"",
            ),
        Error::TooLarge => failure(FailureKind::Input)
            .with_hint("nothing was added; larder import takes files of any size"),
        _ => failure(FailureKind::Store),
    }
}

/// Says what there is to say about the text; gives the number of things left out.
fn print_remarks(context: &CommandContext, name: &str, typed: &ParsedText) -> u64 {
    for remark in &typed.diagnostics {
        let text = sanitize_line(&format!("{name}:{}: {}", remark.line, remark.kind));
        match remark.kind.is_skipped() {
            true => print_message("left out", text),
            false => context.print_warning(text),
        }
    }
    typed.diagnostics.iter().filter(|remark| remark.kind.is_skipped()).count() as u64
}
