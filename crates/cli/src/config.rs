//! `config.toml`: one file, one struct; an unknown key is an error that names the nearest known one.

use crate::failure::{Failure, Kind};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// What the configuration file may say. docs/configuration.md documents it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Config {
    /// Where the store lies.
    pub(crate) data_dir: Option<PathBuf>,
    /// Whose alphabet lists are sorted by.
    pub(crate) locale: Option<String>,
    /// The program for `larder edit`.
    pub(crate) editor: Option<String>,
}

const KEYS: &[&str] = &["data-dir", "locale", "editor"];
/// What to do about a file that is no configuration.
const EXAMPLE: &str = "a line is written like this: locale = \"sv\"";

impl Config {
    /// Reads the file; one that does not exist says nothing.
    pub(crate) fn read(path: &Path) -> Result<Config, Failure> {
        match std::fs::read_to_string(path) {
            Ok(text) => Config::parse(&text, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Config::default()),
            Err(error) => Err(Failure::file(path, &error)),
        }
    }

    fn parse(text: &str, path: &Path) -> Result<Config, Failure> {
        let wrong = |what: String| Failure::new(Kind::Usage, format!("{}: {what}", path.display()));
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            wrong(format!("line {line}: {}", error.message())).hint(EXAMPLE)
        })?;
        for key in table.keys() {
            if !KEYS.contains(&key.as_str()) {
                let near = KEYS.iter().max_by(|a, b| {
                    strsim::jaro_winkler(a, key).total_cmp(&strsim::jaro_winkler(b, key))
                });
                let near = near.copied().unwrap_or_default();
                return Err(wrong(format!("there is no key {key:?}"))
                    .hint(format!("did you mean {near}? known keys: {}", KEYS.join(", "))));
            }
        }
        table
            .try_into()
            .map_err(|error: toml::de::Error| wrong(error.message().to_string()).hint(EXAMPLE))
    }
}
