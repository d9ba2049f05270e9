//! The messages of an mbox file, as a scan of its directory lists the files of a maildir.
//!
//! Separate from its parent, because a file is read to list it, and only its new part if it grew.

use super::file_changes::{DirectoryListing, KnownDirectory};
use super::{MailSync, SyncProblem};
use crate::error::Error;
use crate::maildir::MaildirDirectory;
use crate::mbox_file::{MboxFile, MessageHashes, add_large_message, large_messages};
use larder_format::mbox::{MboxMessage, MboxSection};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The reason that a file is not listed which was changed while it was read.
const REWRITTEN: &str = "another program is writing the file: its messages stay as they are known \
                         until the next larder sync";
/// The reason that a file is not listed whose end is missing since a short time.
const CUT: &str = "the end of the file is missing, as while a mail program writes it anew; its \
                   messages stay as they are known until a synchronisation finds it unchanged for \
                   more than a minute";

impl MailSync<'_> {
    /// Lists the messages of an mbox file, or those that were added to it; `None`: it did not
    /// change. One that cannot be read, or is being rewritten, keeps the messages that are known of
    /// it.
    pub(super) fn list_mbox(
        &mut self,
        directory: &MaildirDirectory,
        path: Vec<u8>,
        scanned_at: i64,
        known: Option<&KnownDirectory>,
    ) -> Result<Option<(DirectoryListing, MessageHashes)>, Error> {
        let settled = known.filter(|known| known.is_settled());
        if directory.has_noupdate && settled.is_some() && !self.options.is_full {
            return Ok(None);
        }
        let known_state = settled.map_or(&[][..], |known| known.state.as_slice());
        let mut listing = DirectoryListing {
            path,
            folder: directory.folder.as_os_str().as_bytes().to_vec(),
            is_new: false,
            finds_edits: false,
            is_addition: false,
            mbox_changed: Some(0),
            state: Vec::new(),
            known: known.cloned(),
            is_listed: false,
        };
        let mut files = MessageHashes::new();
        let known_state = if self.options.is_full { &[] } else { known_state };
        let scan = MboxFile::open(&directory.path).and_then(|file| {
            Ok(match file.is_known(known_state) {
                true => None,
                false => Some((file.scan(known_state, scanned_at)?, file)),
            })
        });
        match scan {
            Ok(None) => {
                self.report_large_messages(directory, known_state);
                return Ok(None);
            }
            Ok(Some((mut found, file))) => {
                if found.is_addition {
                    large_messages(known_state)
                        .for_each(|name| add_large_message(&mut found.state, name));
                }
                let former = match known.filter(|_| found.is_addition) {
                    Some(known) => self.store.open_reader()?.mail()?.files_in(known.id)?,
                    None => Vec::new(),
                };
                let changed = file.list_changed(former.iter().map(|record| record.name.as_slice()));
                // What is missing in a file that is being rewritten may only not be there yet. One
                // that grows has all that was there.
                let former = known.filter(|_| !found.is_addition);
                let is_cut = match former {
                    Some(known) if file.is_unsettled(scanned_at) => {
                        self.is_cut(&file, known, &found.messages)?
                    }
                    _ => false,
                };
                let is_rewritten = if former.is_some() { file.has_changed() } else { Ok(false) };
                match changed.and_then(|changed| Ok((changed, is_rewritten?))) {
                    Ok((_, true)) => self.report_unsettled(&directory.path, REWRITTEN),
                    Ok((_, false)) if is_cut => self.report_unsettled(&directory.path, CUT),
                    Ok((changed, false)) => {
                        listing.is_addition = found.is_addition && changed.is_none();
                        listing.mbox_changed = Some(found.changed);
                        files = changed.unwrap_or_default();
                        files.extend(self.name_messages(&found.messages, &mut found.state));
                        listing.is_listed = true;
                        self.report_large_messages(directory, &found.state);
                        listing.state = found.state;
                    }
                    Err(error) => self.report_unreadable(&directory.path, &error),
                }
            }
            // It was removed after the scan.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.report_unreadable(&directory.path, &error),
        }
        Ok(Some((listing, files)))
    }

    /// Returns the names and hashes of the messages of an mbox file. One that is too large is no
    /// reason to read the file again, as its content stays: the state has its name.
    fn name_messages(&self, messages: &[MboxMessage], state: &mut Vec<u8>) -> MessageHashes {
        let (mut files, most) =
            (Vec::with_capacity(messages.len()), self.options.max_message_bytes);
        for MboxMessage { section, flags, .. } in messages {
            let name = section.to_name(*flags);
            match section.length <= most {
                true => files.push((name.into_bytes(), section.hash)),
                false => add_large_message(state, name.as_bytes()),
            }
        }
        files
    }

    /// Names the messages that are too large, as each synchronisation does files of that size.
    fn report_large_messages(&mut self, directory: &MaildirDirectory, state: &[u8]) {
        for name in large_messages(state) {
            let reason = format!("larger than {} MiB", self.options.max_message_bytes >> 20);
            let path = directory.path.join(OsStr::from_bytes(name));
            self.report.problems.push(SyncProblem { path, reason, is_left_out: true });
        }
    }

    /// Returns whether a file ends before the last message that is known of it, and has this
    /// message nowhere: a mail program that writes the file anew may not have come to it yet. One
    /// that removed other messages has it at another place.
    fn is_cut(
        &self,
        file: &MboxFile,
        known: &KnownDirectory,
        found: &[MboxMessage],
    ) -> Result<bool, Error> {
        let mut last: Option<MboxSection> = None;
        self.store.open_reader()?.mail()?.for_each_file(known.id, &mut |name, _, _| {
            let section = MboxSection::parse_name(name);
            last = last.take().into_iter().chain(section).max_by_key(|section| section.offset);
        })?;
        Ok(last.is_some_and(|last| {
            file.cuts_off(&last) && found.iter().all(|message| message.section.hash != last.hash)
        }))
    }

    fn report_unsettled(&mut self, path: &Path, reason: &str) {
        self.report.has_unsettled_files = true;
        let (path, reason) = (path.to_path_buf(), reason.to_string());
        self.report.problems.push(SyncProblem { path, reason, is_left_out: true });
    }

    fn report_unreadable(&mut self, path: &Path, error: &io::Error) {
        let (path, reason) = (path.to_path_buf(), error.to_string());
        self.report.problems.push(SyncProblem { path, reason, is_left_out: true });
    }
}
