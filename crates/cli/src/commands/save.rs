//! `larder save`.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::message_file::MessageFile;
use crate::output::{format_bytes, sanitize_line};
use crate::output_path::OutputFolder;
use larder_format::message::{Message, MessagePart, PartContent, PartRole};
use larder_store::FilePrivacy;
use regex::{Regex, RegexBuilder};
use serde_json::json;
use std::path::PathBuf;

/// The longest name of a file, in bytes, with room for a number.
const MAX_FILE_NAME_BYTES: usize = 200;
/// The extensions of parts without a file name, by their media types.
const EXTENSIONS: &[(&str, &str)] = &[
    ("message/rfc822", "eml"),
    ("text/plain", "txt"),
    ("text/html", "html"),
    ("text/calendar", "ics"),
    ("text/vcard", "vcf"),
    ("text/csv", "csv"),
    ("application/pdf", "pdf"),
    ("image/jpeg", "jpg"),
    ("image/png", "png"),
    ("image/gif", "gif"),
];

/// Save the attachments of a mail message as files
///
/// Without --part, --match or --all, all attachments are saved.
#[derive(Debug, clap::Args)]
pub(crate) struct SaveArgs {
    /// The ID or Message-ID of the message, or the path of its file; - for standard input
    #[arg(value_name = "ID")]
    message: PathBuf,
    /// Save part N; `larder show FILE` prints the numbers
    #[arg(long = "part", value_name = "N")]
    parts: Vec<usize>,
    /// Save the attachments whose file names match a regular expression, in any case
    #[arg(long = "match", value_name = "RE", conflicts_with = "parts")]
    pattern: Option<String>,
    /// Save the texts of the message, too
    #[arg(long, conflicts_with_all = ["parts", "pattern"])]
    all: bool,
    /// The directory of the files; it is created if it is missing
    #[arg(long, value_name = "DIR", default_value = ".")]
    to: OutputFolder,
    /// Replace files that exist
    #[arg(long)]
    overwrite: bool,
}

impl SaveArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let pattern = self.pattern.as_deref().map(parse_pattern).transpose()?;
        let file = self.open_message(context)?;
        let message = file.parse()?;
        let places = self.choose_parts(&message, pattern.as_ref(), &file)?;
        if places.is_empty() {
            context.print_note(format!("{}: no such attachment", file.name()));
            return Ok(CommandStatus::NothingFound);
        }
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for place in places {
            let Some(part) = message.parts.get(place) else { continue };
            let name = unused_name(&file_name(place, part), &files);
            files.push((name, Message::part_source(&file.bytes, place).unwrap_or_default()));
        }
        if !self.overwrite
            && let Some(existing) = self.to.find_existing(files.iter().map(|(name, _)| name))
        {
            let path = sanitize_line(&existing.display().to_string());
            return Err(CommandFailure::new(FailureKind::Usage, format!("{path} exists"))
                .with_hint("replace it with --overwrite, or choose a directory with --to DIR"));
        }
        for (path, bytes) in
            self.to.write_files(&context.dir, FilePrivacy::Private, &files)?.iter().zip(&files)
        {
            let (path, size) = (path.display().to_string(), bytes.1.len());
            match context.format {
                OutputFormat::Json => {
                    context.out.print_json(&json!({ "file": path, "size": size }))?;
                }
                _ => context.out.print_line(format!(
                    "Saved {} ({})",
                    sanitize_line(&path),
                    format_bytes(size as u64)
                ))?,
            }
        }
        Ok(CommandStatus::Done)
    }

    fn open_message(&self, context: &CommandContext) -> Result<MessageFile, CommandFailure> {
        let is_file = self.message.exists();
        let Some(operand) = self.message.to_str().filter(|_| !is_file) else {
            return MessageFile::open(&self.message);
        };
        // A Message-ID may have a slash.
        if let Some(file) = crate::mail_store::open_message(context, operand)? {
            return Ok(file);
        }
        if let Some(file) = MessageFile::open_operand(context, operand)? {
            return Ok(file);
        }
        let message = format!("no message has the ID {:?}", sanitize_line(operand));
        let failure = CommandFailure::new(FailureKind::NotFound, message)
            .with_hint("`larder find --kind message` shows IDs")
            .with_hint("there is no file of that name, either");
        crate::mail_store::print_unindexed_mail_after(context, &failure);
        Err(failure)
    }

    /// Returns the places of the parts to save, in ascending order.
    fn choose_parts(
        &self,
        message: &Message,
        pattern: Option<&Regex>,
        file: &MessageFile,
    ) -> Result<Vec<usize>, CommandFailure> {
        for number in &self.parts {
            let part = number.checked_sub(1).and_then(|place| message.parts.get(place));
            if part.is_none_or(|part| part.role == PartRole::Container) {
                let what = format!("{} has no part {number} that can be saved", file.name());
                return Err(CommandFailure::new(FailureKind::NotFound, what)
                    .with_hint("`larder show FILE` prints the numbers of the attachments"));
            }
        }
        let is_chosen = |place: usize, part: &MessagePart| match (part.role, pattern) {
            (PartRole::Container, _) => false,
            _ if !self.parts.is_empty() => self.parts.contains(&(place + 1)),
            (_, Some(pattern)) => {
                part.file_name.as_deref().is_some_and(|name| pattern.is_match(name))
            }
            (PartRole::Attachment, None) => true,
            (PartRole::Body | PartRole::AlternativeBody, None) => self.all,
        };
        let parts = message.parts.iter().enumerate();
        Ok(parts.filter(|(place, part)| is_chosen(*place, part)).map(|(place, _)| place).collect())
    }
}

fn parse_pattern(text: &str) -> Result<Regex, CommandFailure> {
    RegexBuilder::new(text).case_insensitive(true).build().map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
        let what = format!("--match {text}: no regular expression: {reason}");
        CommandFailure::new(FailureKind::Usage, what)
    })
}

/// Returns the name of a part as a file: without folders and hidden characters, not hidden itself.
fn file_name(place: usize, part: &MessagePart) -> String {
    let named = match (&part.file_name, &part.content) {
        (Some(name), _) => clean_name(name),
        (None, PartContent::Message(headers)) => headers
            .subject
            .as_deref()
            .map(|subject| clean_name(&subject.replace(['/', '\\'], "-")))
            .filter(|name| !name.is_empty())
            .map(|name| format!("{name}.eml"))
            .unwrap_or_default(),
        (None, _) => String::new(),
    };
    if !named.is_empty() {
        return named;
    }
    let known = EXTENSIONS.iter().find(|(media_type, _)| *media_type == part.media_type);
    format!("part-{}.{}", place + 1, known.map_or("bin", |(_, extension)| extension))
}

fn clean_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let visible: String = last.chars().filter(|c| !c.is_control()).collect();
    let name = sanitize_line(&visible);
    let name = name.trim().trim_start_matches('.');
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    if name.len() <= MAX_FILE_NAME_BYTES || extension.len() > MAX_FILE_NAME_BYTES / 2 {
        return name.get(..name.floor_char_boundary(MAX_FILE_NAME_BYTES)).unwrap_or(name).into();
    }
    let stem_bytes = stem.floor_char_boundary(MAX_FILE_NAME_BYTES - extension.len());
    format!("{}.{extension}", stem.get(..stem_bytes).unwrap_or_default())
}

/// Returns the name, or one with a number if another part of the message has it.
fn unused_name(name: &str, files: &[(String, Vec<u8>)]) -> String {
    let is_used = |name: &str| files.iter().any(|(used, _)| used.eq_ignore_ascii_case(name));
    let (stem, extension) = match name.rfind('.').filter(|at| *at > 0) {
        Some(at) => name.split_at(at),
        None => (name, ""),
    };
    let numbered = (2..).map(|number| format!("{stem}-{number}{extension}"));
    let mut names = std::iter::once(name.to_string()).chain(numbered);
    names.find(|name| !is_used(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_harmless() {
        for (name, clean) in [
            ("report.pdf", "report.pdf"),
            ("../../.ssh/authorized_keys", "authorized_keys"),
            ("C:\\Temp\\a.doc", "a.doc"),
            (".bashrc", "bashrc"),
            ("..", ""),
            ("/", ""),
            ("a\nb\u{0}c\u{1b}[31m.txt", "abc[31m.txt"),
        ] {
            assert_eq!(clean_name(name), clean, "{name:?}");
        }
        assert_eq!(clean_name("gpj.\u{202e}exe.pdf"), "gpj.<U+202E>exe.pdf");
        let long = clean_name(&format!("{}.pdf", "\u{e9}".repeat(300)));
        assert!(long.len() <= MAX_FILE_NAME_BYTES + 1 && long.ends_with("\u{e9}.pdf"), "{long}");
    }

    #[test]
    fn equal_names_get_numbers() {
        let mut files = Vec::new();
        for expected in ["a.txt", "a-2.txt", "A-3.TXT"] {
            let name = unused_name(if files.len() < 2 { "a.txt" } else { "A.TXT" }, &files);
            assert_eq!(name, expected);
            files.push((name, Vec::new()));
        }
        assert_eq!(unused_name("noext", &[("noext".into(), Vec::new())]), "noext-2");
    }
}
