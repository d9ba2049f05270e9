//! Case folding, words, digits.

use larder_format::fold::{collect_digits, fold, is_cjk, is_unspaced, split_words};
use proptest::prelude::*;

#[test]
fn case_and_accents_fold_alike() {
    for (a, b) in [
        ("Müller", "muller"),
        ("STRASSE", "straße"),
        ("STRAẞE", "strasse"),
        ("İstanbul", "istanbul"),
        ("Işık", "isik"),
        ("Ελλάς", "ΕΛΛΑΣ"),
        ("ёлка", "Елка"),
        ("Ёлка", "елка"),
        ("Łódź", "łodz"),
        ("Nguyễn", "nguyen"),
        ("e\u{301}", "é"),
        ("ﬁn", "FIN"),
        ("שָׁלוֹם", "שלום"),
        ("مُحَمَّد", "محمد"),
        ("محـــمد", "محمد"),
        ("한국", "한국"),
        ("が", "か\u{3099}"),
        ("Ǆ", "ǆ"),
        ("Donau\u{ad}dampf", "donaudampf"),
        ("می\u{200c}خواهم", "میخواهم"),
        ("क्\u{200d}ष", "क्ष"),
        ("ภาษา\u{200b}ไทย", "ภาษาไทย"),
        ("か\u{200d}\u{3099}", "が"),
        ("\u{feff}❤\u{fe0f}", "❤"),
        ("Ａｎｎａ＠１", "anna@1"),
        ("ﾔﾏﾀﾞ", "ヤマダ"),
        ("ﾡￂ", "가"),
        ("٢٠٢٦ ๒๕ ۴", "2026 25 4"),
        ("أحمد", "احمد"),
    ] {
        assert_eq!(fold(a), fold(b), "{a} and {b}");
    }
}

#[test]
fn different_letters_do_not_fold_alike() {
    for (a, b) in
        [("が", "か"), ("王小明", "王小"), ("o", "ø"), ("l", "ł"), ("a  b", "a b"), ("ج", "ح")]
    {
        assert_ne!(fold(a), fold(b), "{a} and {b}");
    }
}

#[test]
fn folding_keeps_blanks_and_replaces_noncharacters() {
    for (text, expect) in [
        ("", ""),
        ("Anna-Lena  Berg", "anna-lena  berg"),
        ("王小明", "王小明"),
        ("Ünal", "unal"),
        ("ı", "i"),
        ("An\0na", "anna"),
        ("Än\0na\u{fffe}\u{ffff}", "anna\u{fffd}\u{fffd}"),
        ("\u{ffff}", "\u{fffd}"),
    ] {
        assert_eq!(fold(text), expect);
    }
    assert!(matches!(fold("plain text 1"), std::borrow::Cow::Borrowed(_)));
    assert!(matches!(fold("王小明"), std::borrow::Cow::Borrowed(_)));
}

#[test]
fn text_is_split_into_words() {
    for (text, expect) in [
        ("", &[][..]),
        ("anna-lena  o'brien", &["anna", "lena", "o", "brien"]),
        ("a.b@example.org", &["a", "b", "example", "org"]),
        ("+43 (1) 234", &["43", "1", "234"]),
        ("王小明", &["王", "小", "明"]),
        ("li王xu", &["li", "王", "xu"]),
        ("かとう", &["か", "と", "う"]),
        ("김철수 부장", &["김", "철", "수", "부", "장"]),
        ("हिन्दी नाम", &["हिन्दी", "नाम"]),
        ("สมชาย", &["สมชาย"]),
        ("เซ็นเตอร์", &["เซ็นเตอร์"]),
        ("…!?", &[]),
    ] {
        assert_eq!(split_words(text).collect::<Vec<_>>(), expect, "{text:?}");
    }
}

#[test]
fn digits_are_collected() {
    for (text, expect) in [
        ("", ""),
        ("+43 (1) 234-56", "43123456"),
        ("٠١٢٣٤٥٦٧٨٩", "0123456789"),
        ("۰۹", "09"),
        ("０９", "09"),
        ("०९", "09"),
        ("๐๙", "09"),
        ("𝟎𝟗", "09"),
        ("²½Ⅷ一", ""),
    ] {
        assert_eq!(collect_digits(text), expect, "{text:?}");
    }
}

#[test]
fn scripts_without_blanks_are_recognised() {
    assert!("王々〇かカー한ㄅｶ𠀀".chars().all(is_cjk));
    assert!(!"aäяאמไ1。・ 、".chars().any(is_cjk));
    assert!("王かไທမខ".chars().all(is_unspaced));
    assert!(!"aäяאम1๑。 ".chars().any(is_unspaced));
}

proptest! {
    #[test]
    fn folding_folded_text_changes_nothing(text in any::<String>(), name in "[\u{ff00}-\u{ffef}\u{e00}-\u{e5f}\u{200b}-\u{200f}か゛\u{3099}\u{300}-\u{3ff}A-ZßİıÀ-ỹ\u{1e00}-\u{1fff}]{0,12}") {
        for text in [text, name] {
            let once = fold(&text).into_owned();
            prop_assert_eq!(fold(&once).into_owned(), once);
        }
    }

    /// The words are parts of the text, in order, and the text between them has no letters.
    #[test]
    fn words_lose_no_letter(text in any::<String>()) {
        let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        prop_assert_eq!(letters(&split_words(&text).collect::<String>()), letters(&text));
    }
}
