//! Characters that deceive a reader are shown, and the spelling of scripts and emoji is kept.

use larder_present::safe_text::{
    drop_stranded_chars, escape_line, escape_output, is_escaped_in_json,
};
use proptest::prelude::*;
use std::borrow::Cow;

/// Every character that must never be in a line by itself.
fn deceptive_chars() -> impl Iterator<Item = char> {
    let ranges = [
        0..=0x1f,
        0x7f..=0x9f,
        0xad..=0xad,
        0x61c..=0x61c,
        0x200b..=0x200f,
        0x2028..=0x202e,
        0x2060..=0x206f,
        0xfeff..=0xfeff,
        0xfff9..=0xfffb,
        0xe_0000..=0xe_007f,
    ];
    ranges.into_iter().flatten().filter_map(char::from_u32)
}

#[test]
fn deceptive_characters_are_shown() {
    for c in deceptive_chars() {
        for text in [format!("a{c}b"), c.to_string(), format!("{c}{c}x"), format!("1 {c}@")] {
            let line = escape_line(&text);
            assert!(!line.contains(c), "U+{:04X} in {line:?}", u32::from(c));
            assert!(matches!(escape_line(&line), Cow::Borrowed(_)), "escaped twice: {line:?}");
        }
        assert!(is_escaped_in_json(c));
    }
    let check = |text: &str, expect: &str| assert_eq!(escape_line(text), expect, "{text:?}");
    check("Support \u{202e}gro.elpmaxe@knab", "Support <U+202E>gro.elpmaxe@knab");
    check("a\u{2066}b\u{2069}", "a<U+2066>b<U+2069>");
    check("pay\u{200b}pal, ad\u{ad}min, \u{feff}x", "pay<U+200B>pal, ad<U+00AD>min, <U+FEFF>x");
    check("a\tb\r\nc\u{85}d\u{2028}e", "a b  c d e");
    check("\u{1b}]0;title\u{7}\u{9b}31m", "<U+001B>]0;title<U+0007><U+009B>31m");
    check("x\u{e0041}\u{e007f}", "x<U+E0041><U+E007F>");
    // A joiner between Latin letters, and an emoji beside a letter, have no business there.
    check("a\u{200d}b \u{200c}c 👩\u{200d}x", "a<U+200D>b <U+200C>c 👩<U+200D>x");
    check("admin\u{200f}", "admin<U+200F>");
    check("a\u{fe0f} \u{fe00}", "a<U+FE0F> <U+FE00>");
    check("\u{1f3f4}\u{e0067}\u{e0062}\u{e007f}", "\u{1f3f4}<U+E0067><U+E0062><U+E007F>");
}

#[test]
fn spelling_is_kept() {
    for text in [
        "",
        "Anna Hölderlin, 王小明, Ångström",
        "می\u{200c}خواهم",
        "۱۴۰۰ ه\u{200d}.ش",
        "क्\u{200d}ष, ക്\u{200c}ക, ශ්\u{200d}රී",
        "שלום (א\u{200f}) 5%\u{200e}",
        "مرحبا \u{61c}12",
        "👩\u{200d}👩\u{200d}👧\u{200d}👦 👩🏽\u{200d}🚀 🏳\u{fe0f}\u{200d}🌈 ❤\u{fe0f} 1\u{fe0f}\u{20e3} ☎\u{fe0e}",
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} England",
        "ภาษา\u{200b}ไทย",
        "葛\u{e0100}飾区 ᠮᠣᠩ\u{180b}",
    ] {
        assert_eq!(escape_line(text), text);
        assert!(matches!(escape_line(text), Cow::Owned(_) | Cow::Borrowed(_)));
    }
    assert!(matches!(escape_line("plain text"), Cow::Borrowed("plain text")));
}

#[test]
fn output_keeps_its_lines_and_styles() {
    let check = |text: &str, expect: &str| assert_eq!(escape_output(text), expect, "{text:?}");
    check("\u{1b}[1mid\u{1b}[0m\tname\n", "\u{1b}[1mid\u{1b}[0m\tname\n");
    check("\u{1b}[38;5;1mx\u{1b}[m", "\u{1b}[38;5;1mx\u{1b}[m");
    check("\u{1b}[2Jx\u{1b}]0;t\u{7}", "<U+001B>[2Jx<U+001B>]0;t<U+0007>");
    check("\u{1b}[1", "<U+001B>[1");
    check("a\u{202e}b\r", "a<U+202E>b ");
}

proptest! {
    #[test]
    fn escaped_text_is_stable(text in prop::collection::vec(
        prop_oneof![
            any::<char>(),
            prop::sample::select(deceptive_chars().chain("aא👩क王1".chars()).collect::<Vec<_>>()),
        ],
        0..20,
    )) {
        let text: String = text.into_iter().collect();
        for escape in [escape_line, escape_output] {
            let once = escape(&text).into_owned();
            // Nothing that stands is removed, and what was escaped stays so.
            prop_assert!(once.chars().count() >= text.chars().count());
            let has_control = once.contains(['\u{202e}', '\u{2066}']);
            prop_assert!(!has_control);
        }
        prop_assert!(!escape_line(&text).chars().any(char::is_control));
        // The beginnings of an escaped text need no further escapes.
        let line = escape_line(&text).into_owned();
        for (end, _) in line.char_indices() {
            let cut = drop_stranded_chars(&line[..end]) + "…";
            prop_assert_eq!(escape_line(&cut).into_owned(), cut);
        }
    }
}
