//! `larder add`.

mod contact;

use crate::args::OutputFormat;
use crate::contact_args::ContactArgs;
use crate::context::{CommandContext, random_bytes};
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::item_ids::name_from_bytes;
use crate::machine_time::now_milliseconds;
use crate::output::{print_message, sanitize_line};
use crate::time_display;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use larder_edit::AddedItem;
use larder_edit::event::{self, EventDraft, EventDraftError, EventRequest, EventRequestError};
use larder_edit::item_text::{Error, MAX_TEXT_BYTES, ParsedText, SplitText, uid_from_random};
use larder_format::kind::SourceFormat;
use larder_present::description;
use larder_store::{CollectionType, Kind, Operation, ParsedItem, Store};
use larder_time::value::IcalDuration;
use serde_json::json;
use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

/// Add an event, a task or a memo in words, a contact, or items from a file
///
///   larder add "Lunch with Anna tomorrow 12:30 for 1h at Bistro"
///   larder add --kind task "Tax return due friday"
///   larder add --kind contact "Anna Berger" --phone mobile="+43 664 1234567"
///   larder add card.vcf
///
/// Larder takes times, a place and a recurrence from the sentence; the rest becomes
/// the summary. It prints the result. Options override the sentence.
///
/// Items from a file get a UID if they have none. If an item with the same UID
/// already exists, the new item is not added: change the existing item with
/// `larder edit`, or replace it with `larder import`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AddArgs {
    /// A vCard or iCalendar file (- for standard input), a sentence, or the name of a contact
    #[arg(value_name = "FILE|TEXT")]
    text: Vec<OsString>,
    /// Add to this collection, created if needed [default: contacts or calendar]
    #[arg(long, value_name = "NAME")]
    into: Option<String>,
    /// The kind of item
    #[arg(long, value_parser = draft_kind_parser())]
    kind: Option<Kind>,
    #[command(flatten)]
    options: ItemOptionsArgs,
    #[command(flatten)]
    contact: ContactArgs,
}

/// The options that describe an event, a task or a memo.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Events, tasks and memos")]
struct ItemOptionsArgs {
    /// The summary
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// The start
    #[arg(long, value_name = "TIME")]
    start: Option<String>,
    /// The end; for a task, when it is due
    #[arg(long, visible_alias = "due", value_name = "TIME")]
    end: Option<String>,
    /// The duration: 90min, "2 days"
    #[arg(
        long = "for",
        value_name = "DURATION",
        conflicts_with = "end",
        allow_hyphen_values = true
    )]
    length: Option<String>,
    /// Make it an all-day event
    #[arg(long)]
    all_day: bool,
    /// The place
    #[arg(long, value_name = "TEXT")]
    location: Option<String>,
    /// A longer description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The recurrence rule (RRULE): FREQ=WEEKLY;BYDAY=MO
    #[arg(long, value_name = "RULE", conflicts_with = "every")]
    rule: Option<String>,
    /// The recurrence in words: monday, "2 weeks", "day until june"
    #[arg(long, value_name = "TEXT")]
    every: Option<String>,
    /// A category (repeatable)
    #[arg(long = "category", value_name = "TEXT")]
    categories: Vec<String>,
    /// The priority: 1 (highest) to 9, or high, medium or low
    #[arg(long, value_name = "NUMBER", value_parser = parse_priority)]
    priority: Option<u8>,
    /// An alarm this long before the start: 15min (repeatable)
    #[arg(long = "alarm", value_name = "DURATION")]
    alarms: Vec<String>,
    /// The time zone: Europe/Prague, utc or floating [default: the local zone]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
}

impl ItemOptionsArgs {
    /// Returns the first option that contacts lack; they have categories.
    fn first_event_option(&self) -> Option<&'static str> {
        let texts = [
            ("--summary", &self.summary),
            ("--start", &self.start),
            ("--end", &self.end),
            ("--for", &self.length),
            ("--location", &self.location),
            ("--description", &self.description),
            ("--rule", &self.rule),
            ("--every", &self.every),
            ("--zone", &self.zone),
        ];
        let text = texts.iter().find(|(_, value)| value.is_some()).map(|(option, _)| *option);
        let flags = [
            ("--all-day", self.all_day),
            ("--priority", self.priority.is_some()),
            ("--alarm", !self.alarms.is_empty()),
        ];
        text.or(flags.iter().find(|(_, is_given)| *is_given).map(|(option, _)| *option))
    }
}

/// Returns a parser for the kinds that can be added in words or with options.
fn draft_kind_parser() -> impl TypedValueParser<Value = Kind> {
    let kinds = Kind::all()
        .filter(|kind| kind.has_schedule() || kind.source_format() == SourceFormat::Vcard);
    PossibleValuesParser::new(kinds.map(Kind::name))
        .try_map(|name| Kind::from_name(&name).ok_or("no such kind"))
}

/// Parses a priority, a number or a word.
fn parse_priority(text: &str) -> Result<u8, &'static str> {
    event::parse_priority(text)
        .filter(|level| *level > 0)
        .ok_or("use 1 (highest) to 9, or high, medium or low")
}

/// A command that adds a minimal vCard.
const EXAMPLE_COMMAND: &str =
    r"printf 'BEGIN:VCARD\nVERSION:4.0\nFN:Anna Example\nEND:VCARD\n' | larder add";

impl AddArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        if self.kind.is_some_and(|kind| kind.source_format() == SourceFormat::Vcard) {
            return self.add_contact(context);
        }
        if let Some(option) = self.contact.given_options().first() {
            return Err(CommandFailure::new(
                FailureKind::Usage,
                format!("{option} is an option of contacts"),
            )
            .with_hint("to add a contact: larder add --kind contact NAME"));
        }
        let is_file = |arg: &OsString| Path::new(arg).is_file();
        if let ([first, _, ..], true) = (&self.text[..], self.text.iter().all(is_file)) {
            return Err(CommandFailure::new(FailureKind::Usage, "add takes one file").with_hint(
                format!("larder import takes several; or: larder add {}", first.display()),
            ));
        }
        match self.input_file() {
            Some(file) => self.add_from_file(context, &file),
            None => self.add_from_words(context),
        }
    }

    /// Returns the file to add from, or `None` for a sentence.
    fn input_file(&self) -> Option<PathBuf> {
        let ItemOptionsArgs { summary, start, .. } = &self.options;
        if self.kind.is_some() || summary.is_some() || start.is_some() {
            return None;
        }
        match &self.text[..] {
            [] => Some(PathBuf::from("-")),
            [one] => {
                let is_sentence =
                    one.to_str().is_some_and(|text| text.is_empty() || text.contains(' '));
                (!is_sentence || Path::new(one).exists()).then(|| PathBuf::from(one))
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
            .to_draft(&context.settings.user_locale)
            .map_err(|error| text_failure(&error))?;
        let failed = |error: std::io::Error| input_failure("a new UID", &Error::Random(error));
        let uid = uid_from_random(random_bytes().map_err(failed)?);
        let (bytes, calendar_context) = draft
            .to_component(&uid, context.settings.user_locale.now)
            .map_err(|error| draft_failure(&error))?;
        let mut store = context.open_or_create_store()?;
        let into = self.target_collection(draft.kind.collection_type());
        let prepared = store
            .extractor_for_collection(into, draft.kind.collection_type())?
            .parse_item(draft.kind, bytes, &calendar_context)
            .map_err(|rejected| {
                let problem = rejected.problem;
                CommandFailure::new(FailureKind::Input, format!("line {}: {problem}", problem.line))
            })?;
        let mut operation =
            Operation::new("add", format!("{} into {into}", draft.kind.name()), now_milliseconds());
        let mut print = |store: &Store, added: AddedItem| {
            self.print_added(context, store, into, &added)?;
            print_draft(context, &draft)
        };
        larder_edit::add_items(&mut store, &mut operation, into, vec![prepared], &mut print)?;
        Ok(CommandStatus::Done)
    }

    fn to_event_text(&self) -> EventRequest {
        let words: Vec<_> = self.text.iter().map(|word| word.to_string_lossy()).collect();
        let options = &self.options;
        EventRequest {
            kind: self.kind,
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

    /// Returns the target collection for items of this kind.
    fn target_collection(&self, collection_type: CollectionType) -> &str {
        self.into.as_deref().unwrap_or(collection_type.default_collection())
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
        // The store extracts an item again if its collection has another index configuration.
        let extractor = store.extractor().clone();
        let typed = pieces.parse_items(&extractor, &mut random_bytes).map_err(refused)?;
        let mut left_out = print_remarks(context, &name, &typed);
        let mut by_type: Vec<(CollectionType, Vec<ParsedItem>)> =
            CollectionType::all().map(|collection_type| (collection_type, Vec::new())).collect();
        for item in typed.items {
            by_type[item.kind().collection_type().index()].1.push(item);
        }
        by_type.retain(|(_, items)| !items.is_empty());
        let names = by_type.iter().map(|(one, _)| self.target_collection(*one));
        let names: Vec<&str> = names.collect();
        // The counts of the operation say how many were added; some may be rejected.
        let detail = format!("{} into {}", input_name(file), names.join(" and "));
        let mut operation = Operation::new("add", detail, now_milliseconds());
        let mut taken_uid = None;
        for (collection_type, items) in by_type {
            let into = self.target_collection(collection_type);
            let mut print = |store: &Store, added: AddedItem| {
                self.print_added(context, store, into, &added)?;
                if added.handle.is_none() {
                    taken_uid.get_or_insert(added.uid);
                }
                Ok::<_, CommandFailure>(())
            };
            left_out +=
                larder_edit::add_items(&mut store, &mut operation, into, items, &mut print)?;
        }
        if let Some(uid) = taken_uid.as_deref().map(sanitize_line) {
            print_message("hint", format!("change it with: larder edit 'uid:{uid}'"));
        }
        Ok(if left_out > 0 { CommandStatus::Rejected } else { CommandStatus::Done })
    }

    /// Prints the result for one item.
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
            print_message(
                "error",
                format!("rejected {name}: an item with UID {uid:?} already exists"),
            );
            return Ok(());
        };
        if context.format == OutputFormat::Json {
            let id = handle.to_string();
            let object = json!({ "id": id, "uid": uid, "collection": into });
            return Ok(context.out.print_json(&object)?);
        }
        let mut show = || {
            let letters = store.open_reader()?.items().unique_prefix_len(handle)?;
            let into = sanitize_line(into);
            context.out.print_line(format!("{handle:.letters$}  {name}  added to {into}"))?;
            Ok(CommandStatus::Done)
        };
        CommandFailure::after_commit(show()).map(drop)
    }
}

/// Prints the interpretation of a sentence.
fn print_draft(context: &mut CommandContext, draft: &EventDraft) -> Result<(), CommandFailure> {
    if context.format == OutputFormat::Json {
        return Ok(());
    }
    let mut rows: Vec<(&str, String)> = Vec::new();
    let user_locale = &context.settings.user_locale;
    let when = time_display::format_times(
        draft.kind,
        draft.start.as_ref(),
        draft.end.as_ref(),
        user_locale,
    );
    rows.extend(when.map(|when| ("when", when)));
    let rule = draft.rrule().ok().flatten();
    let own_time = draft.start.as_ref().or(draft.end.as_ref());
    rows.extend(
        rule.map(|rule| ("repeats", time_display::format_rule(&rule, own_time, user_locale))),
    );
    rows.extend(draft.location.clone().map(|place| ("location", place)));
    if !draft.categories.is_empty() {
        rows.push(("categories", draft.categories.join(", ")));
    }
    rows.extend(draft.priority.map(|priority| ("priority", priority.to_string())));
    let event = if draft.start.is_none() { "is due" } else { "begins" };
    let before = |alarm: &IcalDuration| IcalDuration { days: -alarm.days, seconds: -alarm.seconds };
    let alarms = draft.alarms.iter().map(before);
    rows.extend(alarms.map(|alarm| ("alarm", description::describe_offset(alarm, event))));
    for (label, text) in rows {
        context.out.print_line(format!("  {label}: {}", sanitize_line(&text)))?;
    }
    Ok(())
}

/// Returns the file's name for messages, and its bytes: at most one more than the limit.
fn read_input(context: &CommandContext, file: &Path) -> Result<(String, Vec<u8>), CommandFailure> {
    let mut bytes = Vec::new();
    let most = MAX_TEXT_BYTES as u64 + 1;
    let (name, read) = match file.to_str() {
        Some("-") => {
            if std::io::stdin().is_terminal() {
                context.print_note("type or paste a vCard, then press Control-D");
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
            let is_word =
                error.kind() == std::io::ErrorKind::NotFound && file.extension().is_none();
            let words = sanitize_line(&file.display().to_string());
            let hint = format!("to add an event in words: larder add --kind event {words:?}");
            Err(if is_word { failure.with_hint(hint) } else { failure })
        }
    }
}

/// Returns the name of an input in the log, which names no folders.
fn input_name(file: &Path) -> String {
    match file.file_name() {
        Some(name) if file.as_os_str() != "-" => sanitize_line(&name.to_string_lossy()),
        _ => "standard input".into(),
    }
}

/// The failure for a sentence that does not describe an item.
fn text_failure(error: &EventRequestError) -> CommandFailure {
    let failure = CommandFailure::new(FailureKind::Usage, error);
    match error {
        EventRequestError::AmbiguousKind => failure
            .with_hint("an event needs a time: tomorrow 12:30, friday, 2026-03-05")
            .with_hint("for an item without a time, add --kind task or --kind memo"),
        EventRequestError::EndWithoutStart => failure
            .with_hint("a task is due: write \"due friday\" or \"by friday\", or add --kind task")
            .with_hint("an event needs a start: \"from today until friday\", or --start TIME"),
        EventRequestError::NoSummary => {
            failure.with_hint("for example: larder add --kind event \"Lunch tomorrow 12:30\"")
        }
        EventRequestError::UnknownZone(_) => {
            failure.with_hint("use a name such as Europe/Prague, or utc or floating")
        }
        _ => failure,
    }
}

fn draft_failure(error: &EventDraftError) -> CommandFailure {
    let failure = CommandFailure::new(FailureKind::Usage, error);
    match error {
        EventDraftError::NoStart | EventDraftError::RecurringWithoutStart => {
            failure.with_hint("add a time: tomorrow 12:30, friday, 2026-03-05; or --start TIME")
        }
        EventDraftError::MixedDateAndTime => {
            failure.with_hint("give both --start and --end as dates, or both as times")
        }
        _ => failure,
    }
}

/// The failure for a file with nothing to add.
fn input_failure(name: &str, error: &Error) -> CommandFailure {
    let failure = |kind| CommandFailure::new(kind, format!("{name}: {error}"));
    match error {
        Error::NoItem => failure(FailureKind::Input)
            .with_hint("a vCard begins with BEGIN:VCARD and ends with END:VCARD")
            .with_hint(format!("for example: {EXAMPLE_COMMAND}"))
            .with_hint(
                "to add an event in words: larder add --kind event \"Lunch tomorrow 12:30\"",
            ),
        Error::TooLarge => failure(FailureKind::Input)
            .with_hint("nothing was added; `larder import` accepts files of any size"),
        _ => failure(FailureKind::Store),
    }
}

/// Prints diagnostics and returns the number of rejected items.
fn print_remarks(context: &CommandContext, name: &str, typed: &ParsedText) -> u64 {
    for remark in &typed.diagnostics {
        let text = sanitize_line(&format!("{name}:{}: {}", remark.line, remark.kind));
        match remark.kind.is_skipped() {
            true => print_message("error", format!("rejected {text}")),
            false => context.print_warning(text),
        }
    }
    typed.diagnostics.iter().filter(|remark| remark.kind.is_skipped()).count() as u64
}
