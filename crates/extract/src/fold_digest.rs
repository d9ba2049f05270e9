//! A digest of the folding rules and of the Unicode tables, for the fingerprints of what is derived
//! with them.
//!
//! Separate from `extractor`, because messages and commits have fingerprints of their own.

use larder_format::fold::{collect_digits, fold, split_words};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::sync::LazyLock;

/// Texts whose folded forms distinguish one version of the folding rules and of the Unicode tables
/// from another: marks, case, scripts, and letters that Unicode added late.
const FOLD_PROBES: &[&str] = &[
    "Straße ẞ Müller Łódź Nguyễn ﬁ",
    "İstanbul ı I Ǆ",
    "Ελλάς ᾼ",
    "Ёлка Ӣ",
    "שָׁלוֹם",
    "مُحَمَّد محـــمد ٠١٢",
    "が か\u{3099} 한국 王〇",
    "हिन्दी สมชาย می\u{200c}خواهم",
    "Ა Ꭰ \u{a7dc} \u{1c89} \u{10d50} \u{16ea0}",
    "a\0b \u{fffe}\u{ffff}",
    "so\u{ad}ft Ｎｅｗｓ ﾔﾏﾀﾞ ๒๕",
];

/// The digest of the folding tables, by their effect on [`FOLD_PROBES`].
pub(crate) static FOLD_DIGEST: LazyLock<String> = LazyLock::new(|| {
    let mut folding = String::new();
    for folded in FOLD_PROBES.iter().map(|probe| fold(probe)) {
        let words: Vec<&str> = split_words(&folded).collect();
        let _never_fails = writeln!(folding, "{folded:?} {words:?} {}", collect_digits(&folded));
    }
    short_digest(&folding)
});

/// Returns the first bytes of the digest of a text, in hexadecimal.
pub(crate) fn short_digest(text: &str) -> String {
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
