//! The order of names in a language: sort keys, made by ICU's collation of the locale.
//!
//! Keys are bytes to store and compare. They hold as long as the
//! [fingerprint](Collator::fingerprint) does; a new version of the tables makes others. Comparing
//! for equality is not the task: see [`fold`](crate::fold).

use icu_collator::options::CollatorOptions;
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale_core::{Locale, locale};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::sync::OnceLock;

/// What the fingerprint asks the order of: letters of many scripts, and such as languages disagree
/// on.
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

/// Behind each level of a key: letters, accents, case.
const LEVEL_SEPARATOR: u8 = 1;

/// The order of a locale.
pub struct Collator {
    order: CollatorBorrowed<'static>,
    locale: String,
    /// Found once it is asked for: it takes longer than all else that opens a store.
    fingerprint: OnceLock<String>,
}

impl std::fmt::Debug for Collator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collator").field("locale", &self.locale).finish_non_exhaustive()
    }
}

impl Collator {
    /// The order of a locale, by its name as languages (`de-AT`) or systems (`de_AT.UTF-8@euro`)
    /// have it. German and Finnish names are sorted as phone books do, unless the name asks for
    /// another order. A name that nobody knows gives the root order.
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

    /// The locale whose order it is (BCP 47); `und` is the root.
    #[must_use]
    pub fn locale(&self) -> &str {
        &self.locale
    }

    /// The key of a text: keys compare, byte by byte, as the texts do.
    #[must_use]
    pub fn sort_key(&self, text: &str) -> Vec<u8> {
        let mut key = Vec::with_capacity(text.len() * 2 + 8);
        let Ok(()) = self.order.write_sort_key_to(text, &mut key);
        key
    }

    /// Names the order: equal as long as the same texts give the same keys.
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

/// The part of a key that says which letters a text has, whatever their case and accents. The keys
/// of all texts that begin with these letters begin so.
#[must_use]
pub fn primary_weights(key: &[u8]) -> &[u8] {
    let end = key.iter().position(|&byte| byte == LEVEL_SEPARATOR).unwrap_or(key.len());
    &key[..end]
}

fn open_collator(locale: &Locale) -> Option<CollatorBorrowed<'static>> {
    let preferences = CollatorPreferences::from(locale);
    CollatorBorrowed::try_new(preferences, CollatorOptions::default()).ok()
}

/// Reads a locale's name; `und` where it is none.
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
