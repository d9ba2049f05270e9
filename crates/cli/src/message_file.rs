//! A file with a mail message, which a user names in place of an item.
//!
//! Separate from `item_ids`, because such a file is in no store: it is read where it is.

use crate::context::CommandContext;
use crate::failure::{CommandFailure, FailureKind};
use crate::output::{format_asctime, format_grouped, sanitize_line};
use larder_format::maildir_name::{MaildirFlags, MaildirName};
use larder_format::mbox::{first_message, format_message, unquote};
use larder_format::message::{Message, MessageProblem};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The largest file that is read. Larger ones are no mail: no server accepts them.
const MAX_MESSAGE_BYTES: u64 = 1 << 30;

/// A file that the user named.
#[derive(Debug)]
pub(crate) struct MessageFile {
    /// `None` is standard input.
    pub(crate) path: Option<PathBuf>,
    pub(crate) bytes: Vec<u8>,
    /// The flags in the names of all files of the message that are known.
    pub(crate) flags: MaildirFlags,
    /// The labels of the message, if it was found in the index.
    pub(crate) labels: Vec<String>,
    /// The message was found in the index: it is shown whatever it is.
    pub(crate) is_indexed: bool,
}

impl MessageFile {
    /// Returns the file that an operand names: `-`, a name that begins with `/` or `.` or ends with
    /// `.eml`, or an existing file with a slash in its name. Any other operand is the ID of an
    /// item.
    pub(crate) fn open_operand(
        context: &CommandContext,
        operand: &str,
    ) -> Result<Option<MessageFile>, CommandFailure> {
        // COLLECTION/UID names an item.
        let path = Path::new(operand);
        let is_path =
            operand == "-" || operand.starts_with(['/', '.']) || operand.ends_with(".eml");
        let is_file = || {
            operand.contains('/')
                && (path.metadata().is_ok_and(|found| !found.is_dir())
                    || larder_sync::is_mbox_message(path))
        };
        if !is_path && !is_file() {
            return Ok(None);
        }
        let mut file = MessageFile::open(path)?;
        // A file that is a message by its name or its folder may have an mbox file attached.
        let is_message = operand.ends_with(".eml")
            || path
                .parent()
                .is_some_and(|folder| folder.ends_with("cur") || folder.ends_with("new"));
        if !is_message && let Some(count) = file.keep_first_message() {
            let (name, count) = (file.name(), format_grouped(count as u64));
            context.print_note(format!(
                "{name} is an mbox file with {count} messages, of which this is the first; `larder \
                 sources add` makes all of them searchable"
            ));
        }
        Ok(Some(file))
    }

    /// Keeps the first message of an mbox file; returns the number of its messages, if it has
    /// several.
    fn keep_first_message(&mut self) -> Option<usize> {
        let (place, count) = first_message(&self.bytes).filter(|(_, count)| *count > 1)?;
        self.bytes.truncate(place.end);
        self.bytes.drain(..place.start);
        unquote(&mut self.bytes);
        Some(count)
    }

    /// Reads a file; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<MessageFile, CommandFailure> {
        let (path, bytes) = match path.as_os_str() == "-" {
            true => (None, read_to_limit(std::io::stdin().lock())),
            false => (Some(path), larder_sync::read_message_file(path, MAX_MESSAGE_BYTES)),
        };
        let name = path.unwrap_or(Path::new("standard input"));
        let bytes = bytes.map_err(|error| CommandFailure::from_file_error(name, &error))?;
        Ok(MessageFile {
            path: path.map(Path::to_path_buf),
            bytes,
            flags: path.map(path_flags).unwrap_or_default(),
            labels: Vec::new(),
            is_indexed: false,
        })
    }

    /// Parses the message. A file that is no mail is an error, unless it is in the index.
    pub(crate) fn parse(&self) -> Result<Message, CommandFailure> {
        let message = Message::parse(&self.bytes);
        if self.is_indexed || !message.problems.contains(&MessageProblem::NoHeader) {
            return Ok(message);
        }
        let what = format!("{}: no mail message: no From, To, Subject or Date", self.name());
        Err(CommandFailure::new(FailureKind::Input, what)
            .with_hint("contacts and calendars are shown after `larder import FILE`"))
    }

    /// Returns the message as a part of an mbox file.
    pub(crate) fn to_mbox(&self) -> Vec<u8> {
        let headers = Message::parse(&self.bytes).headers;
        let sender = headers.from.first().map(|from| from.address.as_str());
        let date = headers.date.map(|date| date.seconds);
        format_message(&self.bytes, sender.unwrap_or_default(), &format_asctime(date))
    }

    /// Returns the name for messages.
    pub(crate) fn name(&self) -> String {
        let path = self.path.as_deref().map(|path| sanitize_line(&path.display().to_string()));
        path.unwrap_or_else(|| "standard input".into())
    }
}

/// Returns the flags in the name of a file of a maildir.
pub(crate) fn path_flags(path: &Path) -> MaildirFlags {
    let is_new = path.parent().is_some_and(|folder| folder.ends_with("new"));
    let name = path.file_name().map(|name| MaildirName::parse(name.as_bytes()).flags(is_new));
    name.unwrap_or_default()
}

fn read_to_limit(stream: impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(MAX_MESSAGE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_MESSAGE_BYTES {
        return Err(std::io::Error::other("larger than 1 GiB"));
    }
    Ok(bytes)
}
