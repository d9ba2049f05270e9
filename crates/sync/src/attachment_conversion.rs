//! The texts of attachments, made by the converters that the user names.
//!
//! The reader threads of a synchronisation share one [`ConversionRun`]. An attachment whose text is
//! in the index is not converted again; one of which a conversion failed is tried again on request.
//! All attachments of a message together have the time limit once, and a converter that takes too
//! long several times in a row is not run any more, so that mail from others cannot stop a
//! synchronisation. All converters of a synchronisation have a time limit, too. An attachment that
//! has no text because of others is tried again by the next one: its file is marked.
//!
//! Separate from `converter_process`, which runs one converter, and from `mail_sync`, which knows
//! no contents.

use crate::converter_process::{ConverterError, ConverterLimits, run_converter};
use crate::error::Error;
use larder_format::message::MessagePart;
use larder_store::{ConversionKey, ConvertedText, MessageConversion, Reader};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of times in a row that a converter may take too long.
const MAX_TIMEOUTS: u32 = 3;
/// The texts of the longest allowed size that all attachments of a message may have.
const MAX_MESSAGE_TEXTS: usize = 4;
/// The attachments of a message that are tried again if the time did not suffice for all.
const MAX_POSTPONED_ATTACHMENTS: usize = 32;
/// The reason that a synchronisation runs no more converters.
const RUN_TIME_REASON: &str =
    "the converters of this run had all their time: the next larder sync goes on";
/// The media types of files whose type the sender did not know.
const UNSPECIFIC_TYPES: &[&str] = &[
    "application/octet-stream",
    "application/x-octet-stream",
    "application/force-download",
    "application/x-download",
];
/// The media types of files by the endings of their names.
const TYPES_OF_ENDINGS: &[(&str, &str)] = &[
    ("bmp", "image/bmp"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("epub", "application/epub+zip"),
    ("gif", "image/gif"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("odp", "application/vnd.oasis.opendocument.presentation"),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("ppt", "application/vnd.ms-powerpoint"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("ps", "application/postscript"),
    ("rtf", "application/rtf"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
];
/// The bytes of texts that are kept for other messages of a synchronisation with the same content.
const MAX_RECENT_BYTES: usize = 8 << 20;

/// A program that makes a text of attachments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentConverter {
    /// The media type in lower case, or its first half with a star: `image/*`.
    pub media_type: String,
    /// The program, and its arguments.
    pub command: Vec<String>,
}

/// The converters, and their limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConverterSettings {
    /// The converters.
    pub converters: Vec<AttachmentConverter>,
    /// The limits of each.
    pub limits: ConverterLimits,
}

/// Attachments that could not be converted for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionFailure {
    /// The program.
    pub program: String,
    /// The reason, for a person.
    pub reason: String,
    /// The number of attachments.
    pub attachments: usize,
    /// A file with one of them.
    pub path: PathBuf,
}

/// The text of an attachment in the index, and its converter.
#[derive(Debug, Clone)]
pub struct IndexedConversion {
    /// The program, and its arguments.
    pub command: Vec<String>,
    /// The text; `None`: the attachment was not converted yet.
    pub converted: Option<ConvertedText>,
}

impl ConverterSettings {
    /// Returns the text of an attachment that the index has; `None`: no converter is set for it.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn find_indexed_text(
        &self,
        index: &Reader,
        part: &MessagePart,
    ) -> Result<Option<IndexedConversion>, Error> {
        let Some(converter) = self.find(part) else { return Ok(None) };
        let Some(content) = part.bytes() else { return Ok(None) };
        let command = converter.command.clone();
        let mail = index.mail()?;
        let converted = match mail.find_conversion(&ConversionKey::new(&command, content))? {
            Some(converted) => Some(converted),
            // Left out because of the others of its message: the reason is shown.
            None => mail.find_conversion(&ConversionKey::of_omission(&command, content))?,
        };
        Ok(Some(IndexedConversion { command, converted }))
    }

    /// Returns the text that identifies the converters. The limits are not part of it: they change
    /// no text that is complete.
    pub(crate) fn fingerprint_text(&self) -> String {
        // The rule by which the type of a part is known, too.
        let mut text = if self.converters.is_empty() { "" } else { " endings" }.to_string();
        for AttachmentConverter { media_type, command } in &self.converters {
            // Writing to a string cannot fail.
            let _infallible = write!(text, " {media_type}={command:?}");
        }
        text
    }

    /// Returns the converter of a part. If its sender did not know its type, that of the ending of
    /// its file name counts before its own.
    fn find(&self, part: &MessagePart) -> Option<&AttachmentConverter> {
        let of_ending = || {
            let is_unspecific = UNSPECIFIC_TYPES.contains(&part.media_type.as_str());
            let name = part.file_name.as_deref().filter(|_| is_unspecific)?;
            let ending = Path::new(name).extension()?.to_str()?.to_ascii_lowercase();
            let (_, media_type) = TYPES_OF_ENDINGS.iter().find(|(one, _)| *one == ending)?;
            self.find_type(media_type)
        };
        of_ending().or_else(|| self.find_type(&part.media_type))
    }

    /// Returns the text with which the index has an attachment of the message in a row. No
    /// converter is run. Another message may have more text of the same content.
    pub(crate) fn find_used_text(
        &self,
        index: &Reader,
        row: u32,
        part: &MessagePart,
    ) -> Result<Option<MessageConversion>, Error> {
        let Some(converter) = self.find(part) else { return Ok(None) };
        let Some(content) = part.bytes() else { return Ok(None) };
        let mail = index.mail()?;
        for new_key in [ConversionKey::new, ConversionKey::of_omission] {
            let key = new_key(&converter.command, content);
            if let Some(converted) = mail.find_used_conversion(row, &key)? {
                return Ok(Some(MessageConversion { key, converted, is_new: false }));
            }
        }
        Ok(None)
    }

    /// Returns the converter of a media type: one of exactly this type before one with a star.
    fn find_type(&self, media_type: &str) -> Option<&AttachmentConverter> {
        let first_half = media_type.split_once('/').map(|(first, _)| first);
        let is_exact = |one: &&AttachmentConverter| one.media_type == media_type;
        let is_general = |one: &&AttachmentConverter| {
            first_half.is_some() && one.media_type.strip_suffix("/*") == first_half
        };
        let mut all = self.converters.iter();
        all.clone().find(is_exact).or_else(|| all.find(is_general))
    }
}

/// The state that the threads of a synchronisation share.
#[derive(Debug, Default)]
pub(crate) struct ConversionRun {
    settings: ConverterSettings,
    /// Whether conversions that failed before are tried again.
    is_retry: bool,
    state: Mutex<ConversionState>,
}

#[derive(Debug, Default)]
struct ConversionState {
    /// Texts that were made, which may not be in the index yet.
    recent: FxHashMap<ConversionKey, ConvertedText>,
    recent_bytes: usize,
    /// The time that converters have taken.
    spent: Duration,
    /// The times in a row that a converter took too long, by command.
    timeouts: BTreeMap<Vec<String>, u32>,
    /// By program and reason.
    failures: BTreeMap<(String, String), (usize, PathBuf)>,
}

/// The conversions of one message.
pub(crate) struct MessageConversions<'r> {
    run: &'r ConversionRun,
    /// The index, for texts that are known.
    index: Option<&'r Reader>,
    path: &'r Path,
    is_cancelled: &'r AtomicBool,
    /// The time that converters have taken.
    pub(crate) spent: Duration,
    /// Whether an attachment has no text because of others: the message must be read again.
    pub(crate) is_postponed: bool,
    /// The attachments for which there is a converter.
    attachments: usize,
    /// The bytes of their texts.
    text_bytes: usize,
    /// Whether one of them took all the time that a message has.
    has_timeout: bool,
}

/// The result of running a converter.
enum ConversionResult {
    /// The text of the content, which may not be complete.
    Text(ConvertedText),
    /// There is no text of the content because of others; the next synchronisation may make it.
    Postponed,
    /// There is no text of the content in this message.
    LeftOut(ConvertedText),
}

impl ConversionRun {
    /// Creates the state for a synchronisation.
    pub(crate) fn new(settings: &ConverterSettings, is_retry: bool) -> ConversionRun {
        ConversionRun { settings: settings.clone(), is_retry, ..ConversionRun::default() }
    }

    /// Returns whether the converters have used up the time of the run, so that most postponed
    /// files were not tried.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.state().spent >= self.settings.limits.run_time
    }

    /// Returns whether there is any converter.
    pub(crate) fn has_converters(&self) -> bool {
        !self.settings.converters.is_empty()
    }

    /// Begins the conversions of the message of a file. They end early when `is_cancelled` is set.
    pub(crate) fn begin_message<'r>(
        &'r self,
        index: Option<&'r Reader>,
        path: &'r Path,
        is_cancelled: &'r AtomicBool,
    ) -> MessageConversions<'r> {
        MessageConversions {
            run: self,
            index,
            path,
            is_cancelled,
            spent: Duration::ZERO,
            is_postponed: false,
            attachments: 0,
            text_bytes: 0,
            has_timeout: false,
        }
    }

    /// Returns the failures, by program and reason.
    pub(crate) fn failures(&self) -> Vec<ConversionFailure> {
        let failure =
            |((program, reason), (attachments, path)): (&(String, String), &(usize, PathBuf))| {
                ConversionFailure {
                    program: program.clone(),
                    reason: reason.clone(),
                    attachments: *attachments,
                    path: path.clone(),
                }
            };
        self.state().failures.iter().map(failure).collect()
    }

    fn state(&self) -> MutexGuard<'_, ConversionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MessageConversions<'_> {
    /// Returns the text of an attachment; `None`: no converter is set for it, or it is tried again
    /// later.
    pub(crate) fn convert(&mut self, part: &MessagePart) -> Option<MessageConversion> {
        let converter = self.run.settings.find(part)?;
        let content = part.bytes()?;
        self.attachments += 1;
        let most = self.run.settings.limits.output_bytes;
        if self.text_bytes > most.saturating_mul(MAX_MESSAGE_TEXTS - 1) {
            let reason = "the other attachments of the message have too much text";
            return Some(self.leave_out(converter, content, reason.to_string()));
        }
        let conversion = self.find_text(converter, content)?;
        self.text_bytes += conversion.converted.text.len();
        Some(conversion)
    }

    /// Returns the text of a content, which may be known.
    fn find_text(
        &mut self,
        converter: &AttachmentConverter,
        content: &[u8],
    ) -> Option<MessageConversion> {
        let key = ConversionKey::new(&converter.command, content);
        if let Some(converted) = self.run.state().recent.get(&key).cloned() {
            return Some(MessageConversion { key, converted, is_new: true });
        }
        // An index that cannot be read fails when the message is written.
        let known = self.index.and_then(|index| index.mail().ok()?.find_conversion(&key).ok()?);
        if let Some(converted) = known
            && (converted.failure.is_none() || !self.run.is_retry)
        {
            return Some(MessageConversion { key, converted, is_new: false });
        }
        match self.run_converter(converter, content) {
            ConversionResult::Text(converted) => {
                self.run.state().keep(key, &converted);
                Some(MessageConversion { key, converted, is_new: true })
            }
            ConversionResult::Postponed => {
                self.is_postponed = true;
                None
            }
            ConversionResult::LeftOut(converted) => {
                let key = ConversionKey::of_omission(&converter.command, content);
                Some(MessageConversion { key, converted, is_new: true })
            }
        }
    }

    /// Returns the result for an attachment that is not converted because of the others of its
    /// message. Another message with it is not concerned.
    fn leave_out(
        &self,
        converter: &AttachmentConverter,
        content: &[u8],
        reason: String,
    ) -> MessageConversion {
        let key = ConversionKey::of_omission(&converter.command, content);
        MessageConversion { key, converted: self.failed_text(converter, reason, ""), is_new: true }
    }

    fn run_converter(
        &mut self,
        converter: &AttachmentConverter,
        content: &[u8],
    ) -> ConversionResult {
        let command = &converter.command;
        let limits = &self.run.settings.limits;
        let timeouts = self.run.state().timeouts.get(command).copied().unwrap_or_default();
        if timeouts >= MAX_TIMEOUTS {
            let reason = "the program took too long too often, and was not run again";
            return self.postpone(converter, reason.to_string());
        }
        if self.run.state().spent >= limits.run_time {
            return self.postpone(converter, RUN_TIME_REASON.to_string());
        }
        let time = limits.time.saturating_sub(self.spent);
        if time.is_zero() {
            return self.postpone_or_leave_out(converter);
        }
        let (began, has_all_time) = (Instant::now(), self.spent.is_zero());
        let is_cancelled = || self.is_cancelled.load(Ordering::Relaxed);
        let result = run_converter(command, content, limits, time, &is_cancelled);
        let elapsed = began.elapsed();
        self.spent += elapsed;
        self.run.state().spent += elapsed;
        let is_timeout = matches!(result, Err(ConverterError::OutOfTime));
        if is_timeout && !has_all_time {
            return self.postpone_or_leave_out(converter);
        }
        self.has_timeout |= is_timeout;
        let timeouts = if is_timeout { timeouts + 1 } else { 0 };
        self.run.state().timeouts.insert(command.clone(), timeouts);
        ConversionResult::Text(match result {
            Err(ConverterError::Cancelled) => return ConversionResult::Postponed,
            Ok(output) => {
                ConvertedText { text: String::from_utf8_lossy(&output).into(), failure: None }
            }
            Err(error) => {
                let reason = error.to_string();
                let output = match error {
                    ConverterError::TooLong(output) => output,
                    _ => Vec::new(),
                };
                self.failed_text(converter, reason, &String::from_utf8_lossy(&output))
            }
        })
    }

    /// Postpones an attachment for which the others of its message left no time. After one that
    /// took all of it, or very many, the rest is left out: such a message would take the time of
    /// each synchronisation.
    fn postpone_or_leave_out(&self, converter: &AttachmentConverter) -> ConversionResult {
        let reason = ConverterError::OutOfTime.to_string();
        match self.has_timeout || self.attachments > MAX_POSTPONED_ATTACHMENTS {
            true => ConversionResult::LeftOut(self.failed_text(converter, reason, "")),
            false => self.postpone(converter, reason),
        }
    }

    fn postpone(&self, converter: &AttachmentConverter, reason: String) -> ConversionResult {
        self.failed_text(converter, reason, "");
        ConversionResult::Postponed
    }

    fn failed_text(
        &self,
        converter: &AttachmentConverter,
        reason: String,
        text: &str,
    ) -> ConvertedText {
        let program = converter.command.first().cloned().unwrap_or_default();
        let mut state = self.run.state();
        let failure = state.failures.entry((program, reason.clone()));
        failure.or_insert_with(|| (0, self.path.to_path_buf())).0 += 1;
        ConvertedText { text: text.into(), failure: Some(reason) }
    }
}

impl ConversionState {
    /// Keeps a text for other messages with the same content.
    fn keep(&mut self, key: ConversionKey, converted: &ConvertedText) {
        self.recent_bytes += converted.text.len() + size_of::<(ConversionKey, ConvertedText)>();
        if self.recent_bytes > MAX_RECENT_BYTES {
            self.recent.clear();
            self.recent_bytes = converted.text.len();
        }
        self.recent.insert(key, converted.clone());
    }
}
