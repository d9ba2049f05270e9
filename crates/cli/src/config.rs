//! `config.toml`: one file, one struct. An unknown key is an error that names the nearest known
//! key.

use crate::byte_size;
use crate::failure::{CommandFailure, FailureKind};
use crate::suggestion::find_nearest;
use larder_sync::{AttachmentConverter, ConverterLimits, ConverterSettings};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The configuration file; docs/configuration.md documents it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Config {
    /// The directory of the store.
    pub(crate) data_dir: Option<PathBuf>,
    /// The locale whose alphabet sorts lists.
    pub(crate) locale: Option<String>,
    /// The country whose dialling rules apply to phone numbers.
    pub(crate) region: Option<String>,
    /// The program for `larder edit`.
    pub(crate) editor: Option<String>,
    /// The query log.
    #[serde(default)]
    pub(crate) query_log: QueryLogConfig,
    /// The live views.
    #[serde(default)]
    pub(crate) views: ViewsConfig,
    /// Mail.
    #[serde(default)]
    pub(crate) mail: MailConfig,
}

/// `[mail]`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct MailConfig {
    /// The addresses of the user: messages from or to one of them are personal.
    #[serde(default)]
    pub(crate) addresses: Vec<String>,
    /// The labels that new replies inherit from their threads.
    pub(crate) inherited_labels: Option<Vec<String>>,
    /// The labels whose messages are hidden from searches that do not name them.
    #[serde(default)]
    pub(crate) exclude_labels: Vec<String>,
    /// The programs that make texts of attachments, by media type.
    #[serde(default)]
    converters: BTreeMap<MediaTypePattern, ConverterCommand>,
    /// The limits of these programs.
    #[serde(default)]
    converter_limits: ConverterLimitsConfig,
}

/// `[mail.converter-limits]`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ConverterLimitsConfig {
    /// The seconds for all attachments of a message.
    time: Option<NonZeroU32>,
    /// The seconds of all programs of a synchronisation.
    run_time: Option<NonZeroU32>,
    /// The address space of a program.
    memory: Option<ByteSize>,
    /// The text of an attachment.
    output: Option<ByteSize>,
}

/// A media type, or its first half with a star: `application/pdf`, `image/*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct MediaTypePattern(String);

impl TryFrom<String> for MediaTypePattern {
    type Error = String;

    fn try_from(text: String) -> Result<MediaTypePattern, String> {
        let is_name = |half: &str| {
            let is_known = |c: char| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c);
            !half.is_empty() && half.chars().all(is_known)
        };
        match text.split_once('/') {
            Some((first, second)) if is_name(first) && (second == "*" || is_name(second)) => {
                Ok(MediaTypePattern(text.to_ascii_lowercase()))
            }
            _ => Err(format!(
                "{text:?} is no media type: write one as \"application/pdf\" or \"image/*\""
            )),
        }
    }
}

/// A program and its arguments.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Vec<String>")]
struct ConverterCommand(Vec<String>);

impl TryFrom<Vec<String>> for ConverterCommand {
    type Error = String;

    fn try_from(command: Vec<String>) -> Result<ConverterCommand, String> {
        match command.first() {
            Some(program) if !program.is_empty() => Ok(ConverterCommand(command)),
            _ => Err("write a program and its arguments, as [\"pdftotext\", \"-\", \"-\"]".into()),
        }
    }
}

impl MailConfig {
    /// Returns the converters.
    pub(crate) fn to_converters(&self) -> ConverterSettings {
        let defaults = ConverterLimits::default();
        let limits = &self.converter_limits;
        let seconds = |value: Option<NonZeroU32>, default| {
            value.map_or(default, |seconds| Duration::from_secs(u64::from(seconds.get())))
        };
        let converter = |(media_type, command): (&MediaTypePattern, &ConverterCommand)| {
            AttachmentConverter { media_type: media_type.0.clone(), command: command.0.clone() }
        };
        ConverterSettings {
            converters: self.converters.iter().map(converter).collect(),
            limits: ConverterLimits {
                time: seconds(limits.time, defaults.time),
                run_time: seconds(limits.run_time, defaults.run_time),
                memory_bytes: limits.memory.map_or(defaults.memory_bytes, |memory| memory.0 as u64),
                output_bytes: limits.output.map_or(defaults.output_bytes, |output| output.0),
            },
        }
    }
}

/// `[query-log]`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct QueryLogConfig {
    /// Whether queries are logged; by default, if `file` is set.
    pub(crate) enabled: Option<bool>,
    /// The file of the log.
    pub(crate) file: Option<PathBuf>,
}

/// `[views]`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ViewsConfig {
    /// The memory budget of the answer cache.
    pub(crate) cache: Option<ByteSize>,
}

/// A number of bytes: `1000000`, `"1 MB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ByteSizeValue")]
pub(crate) struct ByteSize(pub(crate) usize);

#[derive(Deserialize)]
#[serde(untagged, expecting = "write a size as 0 or \"1 MB\"")]
enum ByteSizeValue {
    Bytes(usize),
    Text(String),
}

impl TryFrom<ByteSizeValue> for ByteSize {
    type Error = String;

    fn try_from(number: ByteSizeValue) -> Result<ByteSize, String> {
        let text = match number {
            ByteSizeValue::Bytes(bytes) => return Ok(ByteSize(bytes)),
            ByteSizeValue::Text(text) => text,
        };
        let bytes =
            byte_size::parse_bytes(&text).map_err(|why| format!("invalid size {text:?}: {why}"))?;
        Ok(ByteSize(usize::try_from(bytes).unwrap_or(usize::MAX)))
    }
}

const KNOWN_KEYS: &[&str] =
    &["data-dir", "locale", "region", "editor", "query-log", "views", "mail"];
/// The hint for a line that is not TOML.
const EXAMPLE_LINE_HINT: &str = "for example: locale = \"sv\"";

impl Config {
    /// Reads the file; a missing file is an empty configuration.
    pub(crate) fn read(path: &Path) -> Result<Config, CommandFailure> {
        // Reading a pipe or a device might never end.
        if std::fs::metadata(path).is_ok_and(|file| !file.is_file() && !file.is_dir()) {
            let what = format!("{} is not a regular file", path.display());
            return Err(CommandFailure::new(FailureKind::Usage, what)
                .with_hint("remove it, or replace it by a text file"));
        }
        match std::fs::read_to_string(path) {
            Ok(text) => Config::parse(&text, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Config::default()),
            Err(error) => Err(CommandFailure::from_file_error(path, &error)),
        }
    }

    fn parse(text: &str, path: &Path) -> Result<Config, CommandFailure> {
        let wrong = |place: Option<Range<usize>>, what: String| {
            let before = place.and_then(|place| text.get(..place.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            CommandFailure::new(
                FailureKind::Usage,
                format!("{}: line {line}: {what}", path.display()),
            )
        };
        let example = |error: &toml::de::Error| {
            // In a section, the message itself names the known keys.
            let known = |what: &str| error.message().contains(what);
            let in_section = ["unknown field", "write a size as", "write a program", "media type"]
                .into_iter()
                .any(known);
            let hint = match () {
                () if known("expected a sequence") => "a list has brackets: [\"one\", \"two\"]",
                () if in_section => "see docs/configuration.md",
                () => EXAMPLE_LINE_HINT,
            };
            wrong(error.span(), error.message().to_string()).with_hint(hint)
        };
        let keys: BTreeMap<toml::Spanned<String>, toml::Value> =
            toml::from_str(text).map_err(|error| example(&error))?;
        let unknown = keys.keys().filter(|key| !KNOWN_KEYS.contains(&key.get_ref().as_str()));
        if let Some(key) = unknown.min_by_key(|key| key.span().start) {
            let known = format!("known keys: {}", KNOWN_KEYS.join(", "));
            let (name, near) =
                (key.get_ref(), find_nearest(key.get_ref(), KNOWN_KEYS.iter().copied()));
            let near = near.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
            return Err(wrong(Some(key.span()), format!("unknown key {name:?}"))
                .with_hint(format!("{near}{known}")));
        }
        let config: Config = toml::from_str(text).map_err(|error| example(&error))?;
        let checks: [(&str, Option<&str>, ValueCheck, &str, &str); 2] = [
            (
                "region",
                config.region.as_deref(),
                has_region_form,
                "must be a two-letter country code",
                "\"AT\"",
            ),
            (
                "locale",
                config.locale.as_deref(),
                has_locale_form,
                "not a locale name",
                "\"sv\" or \"de_DE\"",
            ),
        ];
        for (name, value, check, what, such) in checks {
            if let Some(value) = value.filter(|value| !check(value)) {
                let place = keys.keys().find(|key| key.get_ref() == name).map(toml::Spanned::span);
                return Err(wrong(place, format!("{name} = {value:?}: {what}"))
                    .with_hint(format!("for example: {name} = {such}")));
            }
        }
        Ok(config)
    }
}

/// Returns whether a value is valid for its key.
type ValueCheck = fn(&str) -> bool;

fn has_region_form(value: &str) -> bool {
    larder_format::phone::is_region(&value.to_ascii_uppercase())
}

/// Returns whether a text has the form of a locale: `sv`, `de_DE.UTF-8`, `sr-Latn`, `C`. The locale
/// need not exist.
fn has_locale_form(value: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || "_-.@=".contains(c);
    let language = value.split(['_', '-', '.', '@']).next().unwrap_or_default();
    let named = matches!(language, "C" | "POSIX" | "root");
    let letters = language.bytes().all(|byte| byte.is_ascii_alphabetic());
    value.chars().all(known) && (named || letters && matches!(language.len(), 2..=3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections() {
        let parse = |text: &str| Config::parse(text, Path::new("config.toml"));
        let cache = |value: &str| {
            let config = parse(&format!("[views]\ncache = {value}\n"));
            config.ok().and_then(|config| config.views.cache).map(|bytes| bytes.0)
        };
        for (value, bytes) in [
            ("0", Some(0)),
            ("\"1 MB\"", Some(1_000_000)),
            ("\"MB\"", None),
            ("-1", None),
            ("true", None),
        ] {
            assert_eq!(cache(value), bytes, "{value}");
        }
        let config = parse("[query-log]\nenabled = true\nfile = \"q.jsonl\"\n").unwrap();
        assert_eq!(config.query_log.enabled, Some(true));
        assert_eq!(config.query_log.file.as_deref(), Some(Path::new("q.jsonl")));
        assert!(parse("[query-log]\nfil = \"q\"\n").is_err());
        for (line, is_valid) in [
            ("converters.\"application/pdf\" = [\"pdftotext\", \"-\", \"-\"]", true),
            ("converters.\"image/*\" = [\"ocr\"]", true),
            ("converters.pdf = [\"pdftotext\"]", false),
            ("converters.\"a/b*\" = [\"x\"]", false),
            ("converters.\"application/pdf\" = []", false),
            ("converters.\"application/pdf\" = \"pdftotext\"", false),
            ("converter-limits.time = 0", false),
            ("converter-limits.tim = 1", false),
        ] {
            assert_eq!(parse(&format!("[mail]\n{line}\n")).is_ok(), is_valid, "{line}");
        }
        let limits = "time = 7\nrun-time = 8\nmemory = \"1 MB\"\noutput = 9";
        let text = format!(
            "[mail.converters]\n\"Application/PDF\" = [\"a\", \"b\"]\n\
             [mail.converter-limits]\n{limits}\n"
        );
        let settings = parse(&text).unwrap().mail.to_converters();
        assert_eq!(settings.converters[0].media_type, "application/pdf");
        assert_eq!(settings.converters[0].command, ["a", "b"]);
        let ConverterLimits { time, run_time, memory_bytes, output_bytes } = settings.limits;
        assert_eq!((time.as_secs(), run_time.as_secs()), (7, 8));
        assert_eq!((memory_bytes, output_bytes), (1_000_000, 9));
    }
}
