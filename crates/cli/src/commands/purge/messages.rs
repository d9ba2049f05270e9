//! Messages that `larder purge` erases: from the index of mail, and their labels from the store.
//!
//! Separate from `purge`, because their files stay, and two stores have parts of them.

use crate::context::CommandContext;
use crate::failure::{CommandFailure, FailureKind};
use crate::machine_time::now_milliseconds;
use crate::mail_store::{
    follow_labels, mail_directory, mail_roots, open_mail_reader, open_mail_store, resolve_message,
};
use crate::output::sanitize_line;
use larder_edit::labels::{find_labels_of_unknown_message, find_labels_to_purge};
use larder_store::{
    DataDirectory, Handle, HandlePrefix, Operation, PurgeReport, Reader, label_handle,
};
use larder_sync::RenamedFileFinder;
use std::path::PathBuf;

/// The messages to erase.
pub(super) struct PurgedMessages {
    /// The index of mail; `None`: there is none, or it is damaged.
    index: Option<Reader>,
    /// The damage of the index, while items of the store are named.
    failure: Option<CommandFailure>,
    /// The handles and names of the messages.
    messages: Vec<(Handle, String)>,
    /// The labels of messages that the index does not know.
    labels: Vec<Handle>,
    /// The files of the messages, with their inodes.
    files: Vec<(PathBuf, u64)>,
}

impl PurgedMessages {
    pub(super) fn open(context: &CommandContext) -> Result<PurgedMessages, CommandFailure> {
        let (index, failure) = match open_mail_reader(context) {
            Err(failure) if failure.is_of_damage() => (None, Some(failure)),
            index => (index?, None),
        };
        let (messages, labels, files) = (Vec::new(), Vec::new(), Vec::new());
        Ok(PurgedMessages { index, failure, messages, labels, files })
    }

    /// Adds the messages of the index that an ID names: several if it is a Message-ID that several
    /// have. Returns whether there are any. If the index is damaged, the ID may be that of an item,
    /// and the failure is kept; one with `mid:` is no item.
    pub(super) fn add_indexed(
        &mut self,
        context: &CommandContext,
        id: &str,
        names: &mut Vec<String>,
    ) -> Result<bool, CommandFailure> {
        let rows = match self.find_rows(context, id) {
            Err(failure) if failure.is_of_damage() => {
                self.failure = Some(failure);
                Vec::new()
            }
            rows => rows?,
        };
        if id.starts_with("mid:")
            && let Some(failure) = self.failure.take()
        {
            return Err(failure);
        }
        let Some(reader) = self.index.as_ref().filter(|_| !rows.is_empty()) else {
            return Ok(false);
        };
        let uid = id.strip_prefix("mid:").unwrap_or(id);
        let roots = mail_roots(context)?;
        let mail = reader.mail()?;
        for row in rows {
            let Some(message) = mail.message(row)? else { continue };
            names.push(format!(
                "{} ({:.8})",
                sanitize_line(message.summary.subject()),
                message.handle
            ));
            for (collection, path, inode) in mail.located_files(row)? {
                self.files.extend(roots.get(&collection).map(|root| (root.join(path), inode)));
            }
            self.messages.push((message.handle, message.uid));
        }
        // Earlier states of the history may name it, too.
        self.messages.extend(mail.find_removed(uid, None)?);
        Ok(true)
    }

    fn find_rows(&self, context: &CommandContext, id: &str) -> Result<Vec<u32>, CommandFailure> {
        let Some(reader) = &self.index else { return Ok(Vec::new()) };
        let uid = id.strip_prefix("mid:").unwrap_or(id);
        let mut rows = reader.mail()?.rows_with_uid(uid)?;
        if rows.is_empty() {
            rows.extend(resolve_message(context, reader, id)?);
        }
        Ok(rows)
    }

    /// Returns the failure to read the index, if there was one.
    pub(super) fn take_failure(&mut self) -> Option<CommandFailure> {
        self.failure.take()
    }

    /// Returns whether there are messages or labels to erase.
    pub(super) fn has_any(&self) -> bool {
        !self.messages.is_empty() || !self.labels.is_empty()
    }

    /// Adds a message whose file is gone, if an ID names one. Returns whether it does.
    pub(super) fn add_removed(
        &mut self,
        id: &str,
        names: &mut Vec<String>,
    ) -> Result<bool, CommandFailure> {
        let Some(reader) = &self.index else { return Ok(false) };
        let uid = id.strip_prefix("mid:").unwrap_or(id);
        let found = reader.mail()?.find_removed(uid, HandlePrefix::parse(id))?;
        let is_named = |(_, name): &(Handle, String)| name == uid;
        if found.len() > 1 && !found.iter().all(is_named) {
            let message = format!("the ID {:?} matches several items", sanitize_line(id));
            return Err(CommandFailure::new(FailureKind::Usage, message)
                .with_hint("type more letters of the ID, or the Message-ID"));
        }
        let has_any = !found.is_empty();
        names.extend(found.iter().map(|(handle, _)| format!("a removed message ({handle:.8})")));
        self.messages.extend(found);
        Ok(has_any)
    }

    /// Adds the labels of a message that the index does not know, if a Message-ID names one, or if
    /// a copy of the store may have some. Returns whether there are any to erase.
    pub(super) fn add_labels(
        &mut self,
        context: &CommandContext,
        data: &Reader,
        id: &str,
        names: &mut Vec<String>,
    ) -> Result<bool, CommandFailure> {
        let Some(message_id) = id.strip_prefix("mid:") else { return Ok(false) };
        let mut found = find_labels_of_unknown_message(data, message_id)?;
        let handle = label_handle(message_id);
        if !found.contains(&handle)
            && DataDirectory::new(&context.dir).copies_may_have_item(handle)?
        {
            found.push(handle);
        }
        let has_any = !found.is_empty();
        if has_any {
            names.push(format!("labels of a message that is not indexed ({})", sanitize_line(id)));
        }
        self.labels.extend(found);
        Ok(has_any)
    }

    /// Erases the messages. Returns the files that have them and are still there. The labels go
    /// first: until the index is purged, the same command can be given again.
    pub(super) fn purge(
        self,
        context: &CommandContext,
        operation: &mut Operation,
        purged: &mut PurgeReport,
    ) -> Result<Vec<PathBuf>, CommandFailure> {
        let PurgedMessages { index, messages, labels: unknown, files, .. } = self;
        if messages.is_empty() && unknown.is_empty() {
            return Ok(Vec::new());
        }
        let labels = match &index {
            Some(index) => find_labels_to_purge(&context.open_reader()?, index, &messages)?,
            None => Vec::new(),
        };
        let has_index = index.is_some();
        // It would keep the old pages in use.
        drop(index);
        if !unknown.is_empty() {
            add_report(purged, context.open_store()?.purge(operation, &unknown)?);
        }
        if !labels.is_empty() {
            let erased = context.open_store()?.purge(operation, &labels)?;
            // A message and its labels are one item.
            add_report(purged, PurgeReport { items: 0, ..erased });
        }
        if !has_index {
            return Ok(Vec::new());
        }
        let mut store = open_mail_store(context)?;
        follow_labels(context, &mut store)?;
        // The index has no item with the labels, and overwrites the copy of them all the same.
        let handles = messages.into_iter().map(|(handle, _)| handle).chain(unknown);
        let handles: Vec<Handle> = handles.collect();
        let mut operation = Operation::new("purge", "", now_milliseconds());
        add_report(purged, store.purge(&mut operation, &handles)?);
        drop(store);
        let mut renamed = RenamedFileFinder::default();
        Ok(files.iter().filter_map(|(file, inode)| renamed.find(file, *inode)).collect())
    }
}

/// Finishes a purge of messages that was interrupted.
pub(super) fn finish_purge(
    context: &CommandContext,
    purged: &mut PurgeReport,
) -> Result<(), CommandFailure> {
    if !mail_directory(context).has_store() {
        return Ok(());
    }
    let mut operation = Operation::new("purge", "", now_milliseconds());
    add_report(purged, open_mail_store(context)?.purge(&mut operation, &[])?);
    Ok(())
}

fn add_report(all: &mut PurgeReport, part: PurgeReport) {
    all.items += part.items;
    all.completed |= part.completed;
    all.deleted.extend(part.deleted);
}
