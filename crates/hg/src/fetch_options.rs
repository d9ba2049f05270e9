//! How changes are fetched.

use crate::conversion::ConversionOptions;
use crate::location::SettingsResult;
use std::num::NonZeroUsize;

/// Where a first fetch begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CloneSource {
    /// At the place that the server recommends, if it does.
    #[default]
    Recommended,
    /// In the repository itself.
    Repository,
    /// At this place: a URL or a path; for metadata, lines as in the manifest of a server.
    Given(String),
}

/// How changes are fetched.
#[derive(Clone)]
pub struct FetchOptions<'o> {
    /// How they are converted.
    pub conversion: ConversionOptions,
    /// The metadata that a first fetch begins with.
    pub metadata: CloneSource,
    /// The bundle that a first fetch begins with.
    pub bundle: CloneSource,
    /// Whether a fetch fails if that metadata cannot be taken.
    pub requires_metadata: bool,
    /// Whether a fetch fails if that bundle cannot be read.
    pub requires_bundle: bool,
    /// The URL of the repository, which names of shared metadata are made from.
    pub url: String,
    /// Returns how the server of a URL is reached; `None`: only the repository itself is.
    pub servers: Option<&'o dyn Fn(&str) -> SettingsResult>,
}

impl From<NonZeroUsize> for FetchOptions<'_> {
    /// Takes what the server recommends, by the rules of today.
    fn from(threads: NonZeroUsize) -> Self {
        FetchOptions {
            conversion: threads.into(),
            metadata: CloneSource::Recommended,
            bundle: CloneSource::Recommended,
            requires_metadata: false,
            requires_bundle: false,
            url: String::new(),
            servers: None,
        }
    }
}
