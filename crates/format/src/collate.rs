//! Sort keys: byte strings that compare as names do in a locale, made with ICU's collation.
//!
//! Keys are stored and compared. They stay valid while the [fingerprint](Collator::fingerprint) is
//! the same; other collation tables give other keys. Equality is a different relation: see
//! [`fold`](crate::fold).

use icu_collator::options::CollatorOptions;
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale_core::{Locale, locale};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::sync::OnceLock;

/// Texts whose keys make up the fingerprint: letters of many scripts, and letters that languages
/// order differently.
const FINGERPRINT_PROBES: &[&str] = &[
    "anna",
    "Anna",
    "Ånna",
    "Ärger",
    "Arger",
    "Aerger",
    "chata",
    "cz",
    "çelik",
    "ıssız",
    "İzmir",
    "llama",
    "Łódź",
    "ñandú",
    "Österberg",
    "ø",
    "ß",
    "ss",
    "Šimek",
    "Þór",
    "ü",
    "ue",
    "Zürich",
    "Žižek",
    "Αλέξης",
    "Ёлка",
    "Ирина",
    "Їжак",
    "אברהם",
    "محمد",
    "पंकज",
    "สมชาย",
    "かとう",
    "カトウ",
    "加藤",
    "王小明",
    "김철수",
    "de la Cruz",
    "O'Brien",
    "x-1",
    "x 2",
    "10",
    "9",
];

/// Separates the levels of a key: letters, accents, case.
const LEVEL_SEPARATOR: u8 = 1;

/// The collation of a locale.
pub struct Collator {
    order: CollatorBorrowed<'static>,
    locale: String,
    /// Computed on first use, because it takes longer than everything else when a store is opened.
    fingerprint: OnceLock<String>,
}

impl std::fmt::Debug for Collator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collator").field("locale", &self.locale).finish_non_exhaustive()
    }
}

impl Collator {
    /// Returns the collation of a locale, named as languages are (`de-AT`) or as systems name them
    /// (`de_AT.UTF-8@euro`). German and Finnish names are sorted as in phone books unless the name
    /// asks for another order. An unknown name gives the root collation.
    #[must_use]
    pub fn new(locale: &str) -> Collator {
        let wanted = parse_locale(locale);
        let (order, locale) = match open_collator(&wanted) {
            Some(order) => (order, wanted.to_string()),
            None => match open_collator(&locale!("und")) {
                Some(order) => (order, "und".to_string()),
                None => unreachable!("the root order is compiled in"),
            },
        };
        Collator { order, locale, fingerprint: OnceLock::new() }
    }

    /// The locale of the collation (BCP 47); `und` is the root.
    #[must_use]
    pub fn locale(&self) -> &str {
        &self.locale
    }

    /// Returns the sort key of a text. Keys compare byte by byte as the texts do in the locale.
    #[must_use]
    pub fn sort_key(&self, text: &str) -> Vec<u8> {
        let mut key = Vec::with_capacity(text.len() * 2 + 8);
        let Ok(()) = self.order.write_sort_key_to(text, &mut key);
        key
    }

    /// The fingerprint of the collation: equal fingerprints mean equal keys for equal texts.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.fingerprint.get_or_init(|| self.compute_fingerprint()).clone()
    }

    fn compute_fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for text in FINGERPRINT_PROBES {
            hash.update(self.sort_key(text));
        }
        let mut name = format!("{} ", self.locale);
        for byte in &hash.finalize()[..8] {
            let _infallible = write!(name, "{byte:02x}");
        }
        name
    }
}

/// Returns the primary level of a key: the letters of the text without case and accents. The keys
/// of all texts that begin with these letters begin with it.
#[must_use]
pub fn primary_weights(key: &[u8]) -> &[u8] {
    let end = key.iter().position(|&byte| byte == LEVEL_SEPARATOR).unwrap_or(key.len());
    &key[..end]
}

fn open_collator(locale: &Locale) -> Option<CollatorBorrowed<'static>> {
    let preferences = CollatorPreferences::from(locale);
    CollatorBorrowed::try_new(preferences, CollatorOptions::default()).ok()
}

/// Parses the name of a locale; `und` if it is malformed.
fn parse_locale(name: &str) -> Locale {
    let name = name.split(['.', '@']).next().unwrap_or_default().replace('_', "-");
    let asks = name.contains("-u-");
    let Ok(locale) = name.parse::<Locale>() else {
        return locale!("und");
    };
    let phone_book = matches!(locale.id.language.as_str(), "de" | "fi") && !asks;
    match phone_book {
        true => format!("{name}-u-co-phonebk").parse().unwrap_or(locale),
        false => locale,
    }
}
