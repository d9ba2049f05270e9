//! `config.toml`: one file, one struct; an unknown key is an error that names the nearest known
//! one.

use crate::byte_size;
use crate::failure::{CommandFailure, FailureKind};
use crate::suggestion::find_nearest;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What the configuration file may say. docs/configuration.md documents it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Config {
    /// Where the store lies.
    pub(crate) data_dir: Option<PathBuf>,
    /// Whose alphabet lists are sorted by.
    pub(crate) locale: Option<String>,
    /// The country in which phone numbers are dialled.
    pub(crate) region: Option<String>,
    /// The program for `larder edit`.
    pub(crate) editor: Option<String>,
    /// Whether it is noted what is asked, and where.
    #[serde(default)]
    pub(crate) query_log: QueryLogConfig,
    /// How open views are kept.
    #[serde(default)]
    pub(crate) views: ViewsConfig,
}

/// `[query-log]`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct QueryLogConfig {
    /// It is switched on; where a file is named it is, unless this says no.
    pub(crate) enabled: Option<bool>,
    /// Where the log is written.
    pub(crate) file: Option<PathBuf>,
}

/// `[views]`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ViewsConfig {
    /// What kept answers may take in memory.
    pub(crate) cache: Option<ByteSize>,
}

/// A number of bytes: `1000000`, `"1 MB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ByteSizeValue")]
pub(crate) struct ByteSize(pub(crate) usize);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a size is written like 0, or \"1 MB\"")]
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
            byte_size::parse_bytes(&text).map_err(|why| format!("{text:?} is no size: {why}"))?;
        Ok(ByteSize(usize::try_from(bytes).unwrap_or(usize::MAX)))
    }
}

const KNOWN_KEYS: &[&str] = &["data-dir", "locale", "region", "editor", "query-log", "views"];
/// What to do about a file that is no configuration.
const EXAMPLE_LINE_HINT: &str = "a line is written like this: locale = \"sv\"";

impl Config {
    /// Reads the file; one that does not exist says nothing.
    pub(crate) fn read(path: &Path) -> Result<Config, CommandFailure> {
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
            // In a section: the message names the keys that there are.
            let known = |what: &str| error.message().contains(what);
            let in_section = known("unknown field") || known("a size is written like");
            let hint = if in_section {
                "docs/configuration.md tells what they do"
            } else {
                EXAMPLE_LINE_HINT
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
            return Err(wrong(Some(key.span()), format!("there is no key {name:?}"))
                .with_hint(format!("{near}{known}")));
        }
        let config: Config = toml::from_str(text).map_err(|error| example(&error))?;
        let checks: [(&str, Option<&str>, ValueCheck, &str, &str); 2] = [
            (
                "region",
                config.region.as_deref(),
                has_region_form,
                "it is no country's two letters",
                "\"AT\"",
            ),
            (
                "locale",
                config.locale.as_deref(),
                has_locale_form,
                "it is no locale",
                "\"sv\" or \"de_DE\"",
            ),
        ];
        for (name, value, check, what, such) in checks {
            if let Some(value) = value.filter(|value| !check(value)) {
                let place = keys.keys().find(|key| key.get_ref() == name).map(toml::Spanned::span);
                return Err(wrong(place, format!("{name} = {value:?}: {what}"))
                    .with_hint(format!("a line is written like this: {name} = {such}")));
            }
        }
        Ok(config)
    }
}

/// Is a value one that its key can have?
type ValueCheck = fn(&str) -> bool;

fn has_region_form(value: &str) -> bool {
    larder_format::phone::is_region(&value.to_ascii_uppercase())
}

/// Does it look like a locale? `sv`, `de_DE.UTF-8`, `sr-Latn`, `C`; whether there is one of that
/// name is not asked.
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
    }
}
