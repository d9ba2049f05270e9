//! The store of mail, `index.db`, beside the one that most commands use.
//!
//! Separate from `context`, because a data directory without mail has no such store.

use crate::context::CommandContext;
use crate::failure::{CommandFailure, FailureKind};
use crate::item_ids::{describe_items_with_id, display_title};
use crate::machine_time::now_milliseconds;
use crate::message_file::{MessageFile, path_flags};
use crate::output::{print_message, sanitize_line};
use crate::source_names::{follow_source_names, print_index_notes, print_left_out_sources};
use larder_edit::labels::are_labels_outdated;
use larder_format::maildir_name::MaildirFlags;
use larder_format::message::trim_message_id;
pub(crate) use larder_query::MailRoots;
use larder_query::{MailQuery, MailQueryContext, MailSearch, NamedMessage, ThreadMember};
use larder_store::{
    DataDirectory, Error, HandlePrefix, Kind, MessageRow, PendingWork, Reader, Store, StoreFile,
};
use larder_sync::{
    MessageFileFinder, RegisteredSource, SourceStores, SourceType, leave_out_departed_mail,
};
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

pub(crate) fn mail_directory(context: &CommandContext) -> DataDirectory {
    DataDirectory::new(&context.dir).with_store_file(StoreFile::Index)
}

/// Opens the index of mail for reading; `None`: there is none, or its creation was interrupted.
pub(crate) fn open_mail_reader(context: &CommandContext) -> Result<Option<Reader>, CommandFailure> {
    let directory = mail_directory(context);
    if directory.has_pending_replacement() {
        // It was interrupted, and is finished by opening the store.
        drop(open_mail_store(context)?);
    }
    if !directory.has_store() {
        return Ok(None);
    }
    let zones = Arc::clone(&context.settings.user_locale.zones);
    let reader = match Reader::open_with_zones(directory, zones) {
        // The file has no tables: the next synchronisation makes them.
        Err(Error::NoStore { .. }) => return Ok(None),
        reader => reader?,
    };
    let mut pending = reader.pending_work()?;
    pending.retain(|work| *work == PendingWork::Purge);
    context.warn_of_pending_work(&pending);
    Ok(Some(reader))
}

/// Opens the index of mail for searches, without the messages of sources that are registered no
/// more, with the labels that the messages have now, and the names
/// that the sources have now; `None`: there is none. If the index cannot be written, a warning
/// says that its labels are out of date.
pub(crate) fn open_labelled_mail(
    context: &CommandContext,
) -> Result<Option<Reader>, CommandFailure> {
    let Some(mut reader) = open_mail_reader(context)? else { return Ok(None) };
    let follow = || -> Result<(), CommandFailure> {
        if !DataDirectory::new(&context.dir).has_store() {
            context.warn_of_missing_store();
            return Ok(());
        }
        let data = context.open_reader()?;
        if data.lost_commits().is_some() {
            // The index may know labels and names that the store lacks.
            return Ok(());
        }
        if are_labels_outdated(&data, &reader)? {
            let options = context.index_options(true);
            let mut store = Store::open_for_change(mail_directory(context), &options)?;
            follow_labels(context, &mut store)?;
        }
        follow_source_names(context, SourceType::Mail, &data, &mail_stores(context), &reader)
    };
    if let Err(failure) = follow() {
        let reason = failure.message();
        context.print_warning(format!("the labels of messages are out of date: {reason}"));
    }
    // Without the store, no source is known.
    if DataDirectory::new(&context.dir).has_store() {
        leave_out_departed_mail(&mut reader, &context.open_reader()?)?;
    }
    Ok(Some(reader))
}

/// Brings the labels in the index of mail up to date with those in the store, unless commits are
/// missing from that.
pub(crate) fn follow_labels(
    context: &CommandContext,
    store: &mut Store,
) -> Result<(), CommandFailure> {
    if !DataDirectory::new(&context.dir).has_store() {
        return Ok(());
    }
    let data = context.open_reader()?;
    if data.lost_commits().is_none() {
        larder_edit::labels::follow_labels(&data, store, now_milliseconds())?;
    }
    Ok(())
}

/// Brings the labels in the index of mail up to date, if there is one, after a change that was
/// committed. Long work on the index holds its write lock most of the time, so it is not waited
/// for: a synchronisation follows between its transactions, other work when it has ended, and the
/// next search after work that was killed. A failure is a warning: the next search or
/// synchronisation tries again.
pub(crate) fn follow_committed_labels(context: &CommandContext) -> Result<(), CommandFailure> {
    if mail_directory(context).has_running_work() {
        return Ok(());
    }
    CommandFailure::after_commit(open_labelled_mail(context)).map(drop)
}

/// Parses a query for messages, and leaves out those with a label that hides them.
pub(crate) fn parse_mail_query(
    context: &CommandContext,
    line: &str,
) -> Result<MailQuery, CommandFailure> {
    let query_context = MailQueryContext::from(&context.settings);
    Ok(MailQuery::parse(line, &query_context)?.without_labels(&context.excluded_labels))
}

/// Parses a query for messages that is searched in items of all kinds.
pub(crate) fn parse_query_among_kinds(
    context: &CommandContext,
    line: &str,
) -> Result<MailQuery, CommandFailure> {
    let query_context = MailQueryContext::from(&context.settings.among_kinds());
    Ok(MailQuery::parse(line, &query_context)?.without_labels(&context.excluded_labels))
}

/// Opens the index of mail for searches.
pub(crate) fn require_mail_reader(context: &CommandContext) -> Result<Reader, CommandFailure> {
    match open_labelled_mail(context)? {
        Some(reader) => Ok(reader),
        None => Err(no_mail_failure(context)?),
    }
}

/// Opens the index of mail, with labels that may be out of date.
pub(crate) fn require_mail_index(context: &CommandContext) -> Result<Reader, CommandFailure> {
    match open_mail_reader(context)? {
        Some(reader) => Ok(reader),
        None => Err(no_mail_failure(context)?),
    }
}

fn no_mail_failure(context: &CommandContext) -> Result<CommandFailure, CommandFailure> {
    let hint = match list_sources(context)?.is_empty() {
        true => "register a maildir: larder sources add MAILDIR; then: larder sync",
        false => "run: larder sync",
    };
    Ok(CommandFailure::new(FailureKind::Store, "no mail is indexed").with_hint(hint))
}

/// Names the sources of mail that are not indexed after a failure to find an item with an ID: it
/// may be a message of them. A failure of the note is a warning, because the first failure is the
/// answer.
pub(crate) fn print_unindexed_mail_after(context: &CommandContext, failure: &CommandFailure) {
    if !failure.is_not_found() {
        return;
    }
    let print = || -> Result<(), CommandFailure> {
        let (sources, index) = (list_sources(context)?, open_mail_reader(context)?);
        print_index_notes(context, SourceType::Mail, &sources, index.as_ref(), None)
    };
    if let Err(problem) = print() {
        problem.print_as_warning(context.quiet);
    }
}

/// Opens the index of mail for writing, and creates it if there is none.
pub(crate) fn open_mail_store(context: &CommandContext) -> Result<Store, CommandFailure> {
    Ok(Store::open(mail_directory(context), &context.index_options(true))?)
}

/// Returns the number of messages of a collection in the index.
pub(crate) fn count_messages(
    context: &CommandContext,
    collection: &str,
) -> Result<u64, CommandFailure> {
    let Some(reader) = open_labelled_mail(context)? else { return Ok(0) };
    Ok(reader.collections().count_items_of(collection)?.unwrap_or(0))
}

/// Returns the registered maildirs.
pub(crate) fn list_sources(
    context: &CommandContext,
) -> Result<Vec<RegisteredSource>, CommandFailure> {
    if !DataDirectory::new(&context.dir).has_store() {
        return Ok(Vec::new());
    }
    Ok(larder_sync::list_mail_sources(&context.open_reader()?)?)
}

/// Fails if `data.db` is missing or lacks commits: it does not know all sources and labels, and an
/// index that is made from it would lose those.
pub(crate) fn require_registrations(context: &CommandContext) -> Result<(), CommandFailure> {
    context.open_complete_reader().map(drop)
}

/// Returns the two stores of mail for a synchronisation.
pub(crate) fn mail_stores(context: &CommandContext) -> SourceStores {
    SourceStores {
        data: DataDirectory::new(&context.dir),
        index: mail_directory(context),
        options: context.index_options(true),
    }
}

/// Returns the paths of the registered maildirs, by the names of their collections in the index.
pub(crate) fn mail_roots(context: &CommandContext) -> Result<MailRoots, CommandFailure> {
    let sources = list_sources(context)?;
    match open_mail_reader(context)? {
        Some(reader) => Ok(larder_sync::map_mail_roots(&reader, &sources)?),
        None => Ok(sources.into_iter().map(|source| (source.name, source.path)).collect()),
    }
}

/// Returns the paths of the maildirs that a query needs: none, unless it names a file.
pub(crate) fn query_roots(
    context: &CommandContext,
    query: &MailQuery,
) -> Result<MailRoots, CommandFailure> {
    if query.has_file_path() { mail_roots(context) } else { Ok(MailRoots::new()) }
}

/// Messages that an error about an ambiguous ID lists.
const MAX_LISTED_MESSAGES: usize = 20;

/// Returns the Message-ID without the name of a field in front, and without the angle brackets that
/// it has in a header.
pub(crate) fn message_id(id: &str) -> Cow<'_, str> {
    let fields = ["mid:", "id:", "msgid:"];
    let id = fields.iter().find_map(|field| id.strip_prefix(field)).unwrap_or(id);
    trim_message_id(id)
}

/// Returns the rows of the messages that an ID names: the beginning of a handle, or a Message-ID.
pub(crate) fn find_message_rows(reader: &Reader, id: &str) -> Result<Vec<u32>, CommandFailure> {
    let mut rows = reader.mail()?.rows_with_uid(&message_id(id))?;
    if let Some(prefix) = HandlePrefix::parse(id) {
        for meta in reader.items().find_by_handle(prefix, MAX_LISTED_MESSAGES)? {
            rows.extend(u32::try_from(meta.row.to_number()).ok());
        }
    }
    rows.sort_unstable();
    rows.dedup();
    Ok(rows)
}

/// Returns the row of the message that an ID names; `None`: there is no such message.
pub(crate) fn resolve_message(
    context: &CommandContext,
    reader: &Reader,
    id: &str,
) -> Result<Option<u32>, CommandFailure> {
    let rows = find_message_rows(reader, id)?;
    if rows.is_empty() {
        return Ok(None);
    }
    let items = describe_items_with_id(context, id)?;
    if let ([row], []) = (rows.as_slice(), items.as_slice()) {
        return Ok(Some(*row));
    }
    let message = format!("the ID {:?} matches several items", sanitize_line(id));
    let mut failure = CommandFailure::new(FailureKind::Usage, message);
    for row in rows {
        if let Some(message) = reader.mail()?.message(row)? {
            let subject = display_title(Kind::Message, message.summary.subject());
            failure = failure.with_hint(format!("{}  {subject}", message.handle));
        }
    }
    let failure = items.into_iter().fold(failure, CommandFailure::with_hint);
    Err(failure.with_hint("use one of these IDs, or type more letters"))
}

/// Returns the row of the message that an ID names, to read it. Notes name the others with the
/// Message-ID: those with the same text, which are in other sources, and those with another one.
fn resolve_read_message(
    context: &CommandContext,
    reader: &Reader,
    id: &str,
) -> Result<Option<u32>, CommandFailure> {
    let named = NamedMessage::find(&reader.mail()?, &message_id(id))?;
    let Some(named) = named else { return resolve_message(context, reader, id) };
    let copies = named.copies.iter();
    let copies = copies.map(|(handle, source)| format!("{handle} ({})", sanitize_line(source)));
    let other_texts = named.other_texts.iter().map(ToString::to_string);
    for (what, others) in [
        ("this message is in other sources, too", copies.collect::<Vec<_>>()),
        ("other texts have this Message-ID, too", other_texts.collect()),
    ] {
        if !others.is_empty() {
            context.print_note(format!("{what}: {}", others.join(", ")));
        }
    }
    Ok(Some(named.row))
}

/// Returns the rows of the messages of a thread, by the ID that lists of threads show, also with
/// `thread:` in front; none: there is no such thread.
pub(crate) fn find_thread_rows(reader: &Reader, id: &str) -> Result<Vec<u32>, CommandFailure> {
    let thread = larder_query::parse_thread_id(id.strip_prefix("thread:").unwrap_or(id));
    Ok(thread.map_or(Ok(Vec::new()), |thread| reader.mail()?.thread_members(thread))?)
}

/// Returns whether an operand is the ID of a thread, and of nothing else.
pub(crate) fn is_thread_id(context: &CommandContext, id: &str) -> Result<bool, CommandFailure> {
    let Some(reader) = open_mail_reader(context)? else { return Ok(false) };
    Ok(find_message_rows(&reader, id)?.is_empty() && !find_thread_rows(&reader, id)?.is_empty())
}

/// Explains the failure of a command that found no item with an ID, if a message has the ID: its
/// file is not changed.
pub(crate) fn explain_message(
    context: &CommandContext,
    id: &str,
    failure: CommandFailure,
) -> CommandFailure {
    if !failure.is_not_found() {
        return failure;
    }
    match is_message_id(context, id) {
        Ok(true) => {
            let message =
                format!("{:?} is a message: larder does not change mail", sanitize_line(id));
            CommandFailure::new(FailureKind::Usage, message)
                .with_hint("to label it: larder edit ID --label +NAME")
                .with_hint("to delete it, use your mail program; larder sync then forgets it")
        }
        Err(unread) if unread.is_of_store() => unread,
        _ => failure,
    }
}

/// Replaces the failure of a command that found no item with an ID by that of the index of mail, if
/// it cannot be read: a message may have the ID.
pub(crate) fn explain_unread_index(
    context: &CommandContext,
    id: &str,
    failure: CommandFailure,
) -> CommandFailure {
    match failure.is_not_found().then(|| is_message_id(context, id)) {
        Some(Err(unread)) if unread.is_of_store() => unread,
        _ => failure,
    }
}

fn is_message_id(context: &CommandContext, id: &str) -> Result<bool, CommandFailure> {
    // It names an item by its UID.
    if id.starts_with("uid:") {
        return Ok(false);
    }
    let Some(reader) = open_mail_reader(context)? else { return Ok(false) };
    Ok(resolve_message(context, &reader, id)?.is_some())
}

/// Opens the files of messages. One that was renamed since the last synchronisation is found.
pub(crate) struct MessageOpener<'r> {
    files: RefCell<MessageFileFinder<'r>>,
}

impl<'r> MessageOpener<'r> {
    pub(crate) fn new(roots: &'r MailRoots) -> MessageOpener<'r> {
        MessageOpener { files: RefCell::new(MessageFileFinder::new(roots)) }
    }

    /// Opens a file of a message. If it has none that is where it was, the failure names the first.
    pub(crate) fn open(&self, reader: &Reader, row: u32) -> Result<MessageFile, CommandFailure> {
        let (files, labels) = {
            let mail = reader.mail()?;
            let files = self.files.borrow_mut().find(&mail, row)?;
            let mut listed = mail.listed_labels()?;
            let labels = mail.labels_of(&mut listed, row)?.into_iter().map(str::to_string);
            (files, labels.collect())
        };
        let mut first_failure = None;
        for path in &files.paths {
            // A pipe may have taken the place of the file, and reading it would wait.
            let opened = match path.exists() && !path.is_file() {
                true => {
                    let error = std::io::Error::other("not a file");
                    Err(CommandFailure::from_file_error(path, &error))
                }
                false => MessageFile::open(path),
            };
            match opened {
                Ok(file) => {
                    let flags = files.paths.iter().map(|path| path_flags(path));
                    let flags = flags.fold(file.flags, MaildirFlags::union);
                    return Ok(MessageFile { flags, labels, is_indexed: true, ..file });
                }
                Err(failure) => first_failure = first_failure.or(Some(failure)),
            }
        }
        if let Some(failure) = first_failure {
            return Err(failure.with_hint("files that were moved are found by: larder sync"));
        }
        Err(match files.unregistered {
            Some(name) => {
                let message = format!("{} is no registered source", sanitize_line(&name));
                CommandFailure::new(FailureKind::Source, message)
                    .with_hint("larder sync takes its messages out of the index")
            }
            None => CommandFailure::new(FailureKind::Source, "the message has no file")
                .with_hint("larder sync"),
        })
    }

    /// Opens a file of one of several messages. Of a message whose file cannot be read, an error
    /// says so, and there is none: the others are printed, and the status is
    /// `SourceMissing`.
    pub(crate) fn open_listed(
        &self,
        reader: &Reader,
        message: &MessageRow,
    ) -> Result<Option<MessageFile>, CommandFailure> {
        match self.open(reader, message.row) {
            Err(failure) if failure.is_of_store() => Err(failure),
            Err(failure) => {
                let handle = message.handle;
                print_message("error", format!("{handle:.8} left out: {}", failure.message()));
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }
}

/// Opens the message that an ID names; `None`: there is no such message.
pub(crate) fn open_message(
    context: &CommandContext,
    id: &str,
) -> Result<Option<MessageFile>, CommandFailure> {
    let Some(reader) = open_labelled_mail(context)? else { return Ok(None) };
    let Some(row) = resolve_read_message(context, &reader, id)? else { return Ok(None) };
    MessageOpener::new(&mail_roots(context)?).open(&reader, row).map(Some)
}

/// A thread whose messages are shown. Each file is opened when it is printed: together they may be
/// larger than the memory.
pub(crate) struct FoundThread {
    pub(crate) reader: Reader,
    pub(crate) roots: MailRoots,
    /// The messages, the oldest first.
    pub(crate) members: Vec<ThreadMember>,
}

/// Finds the thread of the message that an ID names, or the thread with this ID; `None`: there is
/// no such message.
pub(crate) fn find_thread(
    context: &CommandContext,
    id: &str,
) -> Result<Option<FoundThread>, CommandFailure> {
    let Some(reader) = open_labelled_mail(context)? else { return Ok(None) };
    let row = match resolve_read_message(context, &reader, id)? {
        Some(row) => Some(row),
        None => find_thread_rows(&reader, id)?.first().copied(),
    };
    let Some(row) = row else { return Ok(None) };
    let members = {
        let mail = reader.mail()?;
        let words = mail.words();
        let search = MailSearch::open(&mail, &words)?;
        let thread = search.list_thread(row)?;
        if mail.thread_members(thread.thread)?.len() > thread.total {
            print_left_out_sources(context, &reader, None)?;
        }
        thread.into_members()
    };
    Ok(Some(FoundThread { reader, roots: mail_roots(context)?, members }))
}
