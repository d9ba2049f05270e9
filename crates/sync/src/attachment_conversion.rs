//! The texts of attachments, made by the converters that the user names.
//!
//! The reader threads of a synchronisation share one [`ConversionRun`]. An attachment whose text is
//! in the index is not converted again; one of which a conversion failed is tried again on request.
//! All attachments of a message together have the time limit once, and a converter that takes too
//! long several times in a row is not run any more, so that mail from others cannot stop a
//! synchronisation.
//!
//! Separate from `converter_process`, which runs one converter, and from `mail_sync`, which knows
//! no contents.

use crate::converter_process::{ConverterFailure, ConverterLimits, run_converter};
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

impl ConverterSettings {
    /// Returns the text that identifies the converters. The limits are not part of it: they change
    /// no text that is complete.
    pub(crate) fn fingerprint_text(&self) -> String {
        let mut text = String::new();
        for AttachmentConverter { media_type, command } in &self.converters {
            // Writing to a string cannot fail.
            let _infallible = write!(text, " {media_type}={command:?}");
        }
        text
    }

    /// Returns the converter of a media type: one of exactly this type before one with a star.
    fn find(&self, media_type: &str) -> Option<&AttachmentConverter> {
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
}

impl ConversionRun {
    /// Creates the state for a synchronisation.
    pub(crate) fn new(settings: &ConverterSettings, is_retry: bool) -> ConversionRun {
        ConversionRun { settings: settings.clone(), is_retry, ..ConversionRun::default() }
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
        MessageConversions { run: self, index, path, is_cancelled, spent: Duration::ZERO }
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
    /// Returns the text of an attachment; `None`: no converter is set for it.
    pub(crate) fn convert(&mut self, part: &MessagePart) -> Option<MessageConversion> {
        let converter = self.run.settings.find(&part.media_type)?;
        let content = part.bytes()?;
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
        let converted = self.run_converter(converter, content);
        self.run.state().keep(key, &converted);
        Some(MessageConversion { key, converted, is_new: true })
    }

    fn run_converter(&mut self, converter: &AttachmentConverter, content: &[u8]) -> ConvertedText {
        let command = &converter.command;
        let limits = &self.run.settings.limits;
        let timeouts = self.run.state().timeouts.get(command).copied().unwrap_or_default();
        if timeouts >= MAX_TIMEOUTS {
            let reason = "the program took too long too often, and was not run again";
            return self.failed_text(converter, reason.to_string(), "");
        }
        let time = limits.time.saturating_sub(self.spent);
        if time.is_zero() {
            // The converter of another attachment took it: this one is not to blame.
            return self.failed_text(converter, ConverterFailure::OutOfTime.to_string(), "");
        }
        let began = Instant::now();
        let is_cancelled = || self.is_cancelled.load(Ordering::Relaxed);
        let result = run_converter(command, content, limits, time, &is_cancelled);
        self.spent += began.elapsed();
        let is_timeout = matches!(result, Err(ConverterFailure::OutOfTime));
        let timeouts = if is_timeout { timeouts + 1 } else { 0 };
        self.run.state().timeouts.insert(command.clone(), timeouts);
        match result {
            // The message is not written.
            Err(ConverterFailure::Cancelled) => ConvertedText { text: "".into(), failure: None },
            Ok(output) => {
                ConvertedText { text: String::from_utf8_lossy(&output).into(), failure: None }
            }
            Err(failure) => {
                let reason = failure.to_string();
                let output = match failure {
                    ConverterFailure::TooLong(output) => output,
                    _ => Vec::new(),
                };
                self.failed_text(converter, reason, &String::from_utf8_lossy(&output))
            }
        }
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
