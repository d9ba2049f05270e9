//! The messages that `larder find --kind message` lists.
//!
//! Separate from `field_list`, because messages come from the index of mail, newest first, and may
//! be drawn as threads.

use super::explanation::print_mail_explanation;
use super::message_fields::{
    ListColumn, fields_line, message_json, parse_field_names, select_fields,
};
use super::message_rows::{list_cells, print_rows};
use super::print_heading;
use super::snippets::{SnippetReader, snippet_json};
use super::thread_list;
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::mail_store::{
    MailRoots, MessageOpener, list_sources, mail_roots, open_labelled_mail, parse_mail_query,
    parse_query_among_kinds, query_roots, require_mail_reader,
};
use crate::output::{OutputStream, format_count, format_grouped, print_message, sanitize_line};
use crate::output_path::OutputFolder;
use crate::source_names::print_index_notes;
use crate::table::aligned_groups;
use larder_query::{ListedMessage, MailListRequest, MailQuery, MailSearch, MailSort, MailSortKey};
use larder_store::Reader;
use larder_sync::{MessageFileFinder, SourceType};
use serde_json::json;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The number of messages or threads that a list has if the user sets no limit.
const DEFAULT_LIMIT: usize = 1000;

/// The number of messages among items of other kinds, if the user sets no limit.
const GROUP_LIMIT: usize = 20;

/// The options of a list of messages.
#[derive(Debug, Default)]
pub(super) struct MessageListOptions {
    pub(super) query: String,
    /// The source whose messages are listed.
    pub(super) source: Option<String>,
    pub(super) sort: Option<String>,
    pub(super) fields: Vec<String>,
    pub(super) limit: Option<usize>,
    pub(super) offset: usize,
    pub(super) is_count: bool,
    pub(super) is_explanation: bool,
    pub(super) is_threaded: bool,
    pub(super) is_summary: bool,
    pub(super) is_related: bool,
    pub(super) is_files: bool,
    pub(super) has_snippets: bool,
    /// Paths end with a zero byte.
    pub(super) is_null_separated: bool,
    /// The folder that gets links to the files.
    pub(super) links: Option<OutputFolder>,
    pub(super) is_clearing_links: bool,
}

impl MessageListOptions {
    /// Returns an option that lists of commits do not have.
    pub(super) fn option_without_commits(&self) -> Option<&'static str> {
        let options = [
            (self.is_summary, "--summary"),
            (self.is_threaded, "--threads"),
            (self.is_related, "--related"),
            (self.is_files, "--files"),
            (self.has_snippets, "--snippets"),
            (self.links.is_some(), "--links"),
        ];
        options.into_iter().find(|(is_used, _)| *is_used).map(|(_, option)| option)
    }

    fn parse_query(&self, context: &CommandContext) -> Result<MailQuery, CommandFailure> {
        let query = parse_mail_query(context, &self.query)?;
        Ok(match &self.source {
            Some(name) => query.in_source(name),
            None => query,
        })
    }

    /// Returns the order of the list.
    fn sort(&self) -> Result<MailSort, CommandFailure> {
        let Some(name) = &self.sort else { return Ok(MailSort::NEWEST_FIRST) };
        let sort = MailSort::parse(name).ok_or_else(|| {
            let message = format!("messages cannot be sorted by {:?}", sanitize_line(name));
            let names: Vec<&str> = MailSort::key_names().collect();
            let hint = match name.as_str() {
                "newest-first" => "--sort -date, which is the default".to_string(),
                "oldest-first" => "--sort date".to_string(),
                _ => format!("one of {}, or -date and the like", names.join(", ")),
            };
            CommandFailure::new(FailureKind::Usage, message).with_hint(hint)
        })?;
        if self.is_threaded && sort.key != MailSortKey::Date {
            let message = "threads are sorted by date only";
            return Err(CommandFailure::new(FailureKind::Usage, message)
                .with_hint("--sort date lists the oldest thread first"));
        }
        Ok(sort)
    }

    fn to_request<'q>(
        &self,
        query: &'q MailQuery,
        default_limit: usize,
    ) -> Result<MailListRequest<'q>, CommandFailure> {
        Ok(MailListRequest {
            query,
            sort: self.sort()?,
            limit: self.limit.unwrap_or(default_limit),
            offset: self.offset,
            is_related: self.is_related || self.is_summary,
        })
    }
}

/// Prints the messages that match.
pub(super) fn print_messages(
    context: &mut CommandContext,
    options: &MessageListOptions,
) -> Result<CommandStatus, CommandFailure> {
    let query = options.parse_query(context)?;
    let fields = parse_field_names(&options.fields)?;
    options.sort()?;
    if let Some(folder) = &options.links {
        folder.checked_path(&context.dir)?;
    }
    let reader = require_mail_reader(context)?;
    let (sources, name) = (list_sources(context)?, options.source.as_deref());
    print_index_notes(context, SourceType::Mail, &sources, Some(&reader), name)?;
    // A person reads the beginning of a list; programs, and links, are to have all of it.
    let is_for_reading = context.format == OutputFormat::Text
        && options.fields.is_empty()
        && !options.is_files
        && options.links.is_none();
    let default_limit = if is_for_reading { DEFAULT_LIMIT } else { usize::MAX };
    let request = options.to_request(&query, default_limit)?;
    let roots = query_roots(context, &query)?;
    if options.is_explanation {
        let explained = with_search(&reader, &roots, &query, |search| search.explain(&query))?;
        return print_mail_explanation(context, &explained, request.sort.key == MailSortKey::Date);
    }
    if options.is_count {
        let count = with_search(&reader, &roots, &query, |search| match options.is_threaded {
            true => search.count_threads(&query),
            false if options.is_files => search.count_files(&query),
            false => search.count(&query),
        })?;
        super::print_count(context, count)?;
        return Ok(if count > 0 { CommandStatus::Done } else { CommandStatus::NothingFound });
    }
    let mut status = CommandStatus::Done;
    let is_raw = matches!(context.format, OutputFormat::Raw | OutputFormat::Mbox);
    let count = if options.is_threaded {
        let threads = with_search(&reader, &roots, &query, |search| search.list_threads(&request))?;
        match options.is_summary {
            _ if is_raw => {
                status = print_raw(context, &reader, thread_list::listed_messages(&threads))?;
            }
            true => thread_list::print_summaries(context, &threads)?,
            false => {
                let query = options.has_snippets.then_some(&query);
                thread_list::print_threads(context, &reader, &threads, &fields, query)?;
            }
        }
        threads.len()
    } else {
        let listed = with_search(&reader, &roots, &query, |search| search.list_messages(&request))?;
        if let Some(folder) = &options.links {
            make_links(context, &reader, &listed, folder, options.is_clearing_links)?;
        } else if is_raw {
            status = print_raw(context, &reader, listed.iter())?;
        } else if options.is_files {
            print_files(context, &reader, &listed, options.is_null_separated)?;
        } else {
            let query = options.has_snippets.then_some(&query);
            print_list(context, &reader, &listed, &fields, query)?;
        }
        listed.iter().filter(|one| one.is_match).count()
    };
    if count == 0 {
        if context.format == OutputFormat::Text {
            context.print_note("no results");
            let find = |search: &MailSearch<'_>| search.missing_name_hints(&query);
            print_missing_names(context, &with_search(&reader, &roots, &query, find)?);
        }
        return Ok(CommandStatus::NothingFound);
    }
    if is_for_reading && options.limit.is_none() && count == DEFAULT_LIMIT && !context.quiet {
        let all = with_search(&reader, &roots, &query, |search| match options.is_threaded {
            true => search.count_threads(&query),
            false => search.count(&query),
        });
        print_limit_note(context, options, all.ok());
    }
    Ok(status)
}

/// Says that a list has the first ones of a number of messages or threads; `None`: to count them
/// takes too long.
fn print_limit_note(context: &CommandContext, options: &MessageListOptions, all: Option<u64>) {
    let things = if options.is_threaded { "threads" } else { "messages" };
    let (first, last) = (options.offset as u64 + 1, (options.offset + DEFAULT_LIMIT) as u64);
    let shown = match first {
        1 => format!("the first {}", format_grouped(last)),
        _ => format!("{} to {}", format_grouped(first), format_grouped(last)),
    };
    match all {
        Some(all) if all <= last => {}
        Some(all) => {
            let all = format_grouped(all);
            context.print_note(format!("{shown} of {all} {things}; -n N lists more"));
        }
        None => context.print_note(format!("{shown} {things}; -n N lists more")),
    }
}

/// Names what a query that found nothing requires and no message has.
fn print_missing_names(context: &CommandContext, hints: &[String]) {
    for hint in hints.iter().filter(|_| !context.quiet) {
        print_message("hint", sanitize_line(hint));
    }
}

/// Searches in one read transaction, which ends before anything is printed.
fn with_search<T>(
    reader: &Reader,
    roots: &MailRoots,
    query: &MailQuery,
    run: impl FnOnce(&MailSearch<'_>) -> Result<T, larder_query::Error>,
) -> Result<T, larder_query::Error> {
    let mail = reader.mail()?;
    let words = mail.words();
    let search = MailSearch::open(&mail, &words)?.with_roots(roots);
    search.check_names(query)?;
    run(&search)
}

/// The messages that match, among items of other kinds: the newest ones.
pub(super) struct MessageGroup {
    reader: Reader,
    listed: Vec<ListedMessage>,
    count: u64,
    /// Whether there may be more than those of the list.
    is_cut: bool,
    /// The names that the query requires and that no message has, if nothing else was found.
    hints: Vec<String>,
}

impl MessageGroup {
    /// Finds the messages; `None`: no mail is indexed. A query that has no meaning for messages
    /// matches none, unless it has a meaning for messages only; if no other item matches, a note
    /// says so. An order that messages do not have is by date.
    pub(super) fn find(
        context: &CommandContext,
        data: &Reader,
        options: &MessageListOptions,
        is_only_of_mail: bool,
        is_alone: bool,
    ) -> Result<Option<MessageGroup>, CommandFailure> {
        let leave_out = |reason: &dyn std::fmt::Display| {
            if is_alone {
                context.print_note(format!("messages are not searched: {reason}"));
                if options.query.contains("in:") {
                    context
                        .print_note("a collection of contacts or events is searched by --in NAME");
                }
            }
            Ok(None)
        };
        let query = match parse_query_among_kinds(context, &options.query) {
            Ok(query) => query,
            Err(failure) if is_only_of_mail => return Err(failure),
            Err(failure) => return leave_out(&failure.message()),
        };
        let index = open_labelled_mail(context)?;
        let sources = larder_sync::list_mail_sources(data)?;
        print_index_notes(context, SourceType::Mail, &sources, index.as_ref(), None)?;
        let Some(reader) = index else { return Ok(None) };
        let limit = options.limit.unwrap_or(GROUP_LIMIT);
        let sort = options.sort.as_deref().and_then(MailSort::parse);
        let request = MailListRequest {
            query: &query,
            sort: sort.unwrap_or(MailSort::NEWEST_FIRST),
            limit,
            offset: 0,
            is_related: false,
        };
        let roots = query_roots(context, &query)?;
        let found = with_search(&reader, &roots, &query, |search| match options.is_count {
            true => Ok((Vec::new(), search.count(&query)?, Vec::new())),
            false => {
                let listed = search.list_messages(&request)?;
                let count = listed.len() as u64;
                let hints = match count {
                    0 if is_alone => search.missing_name_hints(&query)?,
                    _ => Vec::new(),
                };
                Ok((listed, count, hints))
            }
        });
        match found {
            Ok((listed, count, hints)) => {
                let is_cut = options.limit.is_none() && listed.len() == limit;
                Ok(Some(MessageGroup { reader, listed, count, is_cut, hints }))
            }
            // Messages may match: this is not the answer that there are none.
            Err(error @ larder_query::Error::MailWorkLimit { .. }) => {
                context.print_warning(format!("no messages are listed: {error}"));
                Ok(None)
            }
            Err(error) if error.is_of_query() && !is_only_of_mail => leave_out(&error),
            Err(error) => Err(error.into()),
        }
    }

    /// Names what the query requires and no message has, if nothing at all was found.
    pub(super) fn print_missing_names(&self, context: &CommandContext) {
        print_missing_names(context, &self.hints);
    }

    /// Returns the number of messages that match, or that are listed.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Prints the messages, or these fields of them. Beside other groups they have a heading.
    pub(super) fn print(
        &self,
        context: &mut CommandContext,
        place: GroupPlace,
        fields: &[ListColumn],
    ) -> Result<CommandStatus, CommandFailure> {
        if self.listed.is_empty() {
            return Ok(CommandStatus::Done);
        }
        if context.format == OutputFormat::Raw {
            return print_raw(context, &self.reader, self.listed.iter());
        }
        let has_heading = place != GroupPlace::Alone && fields.is_empty();
        if has_heading && context.format == OutputFormat::Text {
            print_heading(&mut context.out, "messages", place == GroupPlace::Later)?;
        }
        print_list(context, &self.reader, &self.listed, fields, None)?;
        if self.is_cut && context.format == OutputFormat::Text {
            context.print_note(format!(
                "the newest {GROUP_LIMIT} messages; all of them: larder find --kind message"
            ));
        }
        Ok(CommandStatus::Done)
    }
}

/// The place of a group among those of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupPlace {
    Alone,
    First,
    Later,
}

impl GroupPlace {
    pub(super) fn new(has_earlier: bool, has_later: bool) -> GroupPlace {
        match (has_earlier, has_later) {
            (true, _) => GroupPlace::Later,
            (false, true) => GroupPlace::First,
            (false, false) => GroupPlace::Alone,
        }
    }
}

/// Prints a line for each message: ID, date, sender, flags and subject; or these fields. With a
/// query, each has a snippet.
fn print_list(
    context: &mut CommandContext,
    reader: &Reader,
    listed: &[ListedMessage],
    fields: &[ListColumn],
    snippet_query: Option<&MailQuery>,
) -> Result<(), CommandFailure> {
    let needs_files = context.format == OutputFormat::Json || !fields.is_empty();
    // Lists of text read nothing but the index.
    let roots = match needs_files || snippet_query.is_some() {
        true => mail_roots(context)?,
        false => MailRoots::default(),
    };
    let snippets = snippet_query.map(|query| SnippetReader::new(context, query, reader, &roots));
    if needs_files {
        for one in listed {
            let mut object = message_json(reader, &roots, one)?;
            if let Some(snippets) = &snippets {
                object["snippet"] = json!(snippets.read(context, one).as_ref().map(snippet_json));
            }
            if context.format == OutputFormat::Text {
                context.out.print_line(fields_line(reader, one, &object, fields)?)?;
            } else {
                context.out.print_json(&select_fields(object, fields))?;
            }
        }
        return Ok(());
    }
    for group in aligned_groups(listed) {
        let mut rows = Vec::with_capacity(group.len());
        let mut lines = Vec::new();
        for one in group {
            rows.push(list_cells(context, reader, one, "")?);
            lines.extend(snippets.as_ref().map(|snippets| snippets.read(context, one)));
        }
        print_rows(context, &rows, &lines)?;
    }
    Ok(())
}

/// Prints the paths of the files of each message.
fn print_files(
    context: &mut CommandContext,
    reader: &Reader,
    listed: &[ListedMessage],
    is_null_separated: bool,
) -> Result<(), CommandFailure> {
    let roots = mail_roots(context)?;
    let mut files = MessageFileFinder::new(&roots);
    for one in listed {
        for path in files.find(&reader.mail()?, one.message.row)?.paths {
            if context.format == OutputFormat::Json {
                let mut object = message_json(reader, &roots, one)?;
                object["file"] = json!(path.to_string_lossy());
                context.out.print_json(&object)?;
            } else if is_null_separated || !OutputStream::is_terminal() {
                // For programs: the bytes of the name.
                let end: &[u8] = if is_null_separated { b"\0" } else { b"\n" };
                context.out.print_bytes(&[path.as_os_str().as_bytes(), end].concat())?;
            } else {
                context.out.print_line(sanitize_line(&path.display().to_string()))?;
            }
        }
    }
    Ok(())
}

/// Makes links to the files of each message in a folder.
fn make_links(
    context: &mut CommandContext,
    reader: &Reader,
    listed: &[ListedMessage],
    folder: &OutputFolder,
    is_clearing: bool,
) -> Result<(), CommandFailure> {
    let roots = mail_roots(context)?;
    let (mut paths, mut files) = (Vec::new(), MessageFileFinder::new(&roots));
    for one in listed {
        paths.extend(files.find(&reader.mail()?, one.message.row)?.paths);
    }
    let path = folder.checked_path(&context.dir)?;
    let sources = list_sources(context)?;
    let roots: Vec<&Path> = sources.iter().map(|source| source.path.as_path()).collect();
    let report = larder_sync::link_messages(path, &roots, &paths, is_clearing)?;
    if report.left_out > 0 {
        let messages = format_count(report.left_out as u64, "message");
        context.print_warning(format!("{messages} in mbox files: there is no file to link to"));
    }
    if context.format == OutputFormat::Json {
        let object = json!({
            "added": report.added, "kept": report.kept, "removed": report.removed,
            "left_out": report.left_out,
        });
        return Ok(context.out.print_json(&object)?);
    }
    let made = format_count(report.added as u64, "link");
    context.print_note(format!("{made} made, {} kept, {} removed", report.kept, report.removed));
    Ok(())
}

/// Prints the bytes of each message, one after the other. A message whose file cannot be read is
/// named.
fn print_raw<'l>(
    context: &mut CommandContext,
    reader: &Reader,
    listed: impl Iterator<Item = &'l ListedMessage>,
) -> Result<CommandStatus, CommandFailure> {
    let roots = mail_roots(context)?;
    let opener = MessageOpener::new(&roots);
    let mut status = CommandStatus::Done;
    for one in listed {
        match opener.open_listed(reader, &one.message)? {
            Some(file) if context.format == OutputFormat::Mbox => {
                context.out.print_bytes(&file.to_mbox())?;
            }
            Some(file) => context.out.print_item_bytes(&file.bytes)?,
            None => status = CommandStatus::SourceMissing,
        }
    }
    Ok(status)
}
