//! The words of texts: the table of the module, boundaries, and properties on random text.

use larder_extract::tokenizer::{MAX_JOINED_PARTS, MAX_WORD_BYTES, Tokenizer};
use larder_format::fold::{fold, split_words};
use proptest::prelude::*;

fn words(text: &str) -> Vec<(String, u32)> {
    let mut words = Vec::new();
    let end = Tokenizer::default().for_each_word(text, 0, |word: &str, position| {
        words.push((word.to_string(), position));
    });
    assert_eq!(end, words.last().map_or(0, |(_, position)| position + 1), "{text}");
    words
}

fn word_list(text: &str) -> String {
    let words = words(text).into_iter().map(|(word, position)| format!("{word} {position}"));
    words.collect::<Vec<_>>().join(", ")
}

#[test]
fn words_and_positions() {
    for (text, expected) in [
        ("", ""),
        (" \n\t-_.'", ""),
        ("The walrus", "the 0, walrus 1"),
        ("Cafés, ÜBER", "cafes 0, uber 1"),
        ("foo_bar baz", "foo_bar 0, foo 0, bar 1, baz 2"),
        ("anna@example.org", "anna@example.org 0, anna 0, example 1, org 2"),
        ("it's -- or -not-", "it's 0, it 0, s 1, or 2, not 3"),
        ("a..b c-.d", "a 0, b 1, c 2, d 3"),
        (".end. .start", "end 0, start 1"),
        ("a.b.", "a.b 0, a 0, b 1"),
        ("1,000.50 x=y;z", "1 0, 000.50 1, 000 1, 50 2, x 3, y 4, z 5"),
        ("http://a.example/b?c", "http 0, a.example 1, a 1, example 2, b 3, c 4"),
        ("l’été d'été", "l’ete 0, l 0, ete 1, d'ete 2, d 2, ete 3"),
        ("naïve-ish", "naive-ish 0, naive 0, ish 1"),
        ("東京都", "東京 0, 京都 1, 都 2"),
        ("東", "東 0"),
        ("iPhone電話 xを見", "iphone 0, 電話 1, 話 2, x 3, を見 4, 見 5"),
        ("東、京 a-東", "東 0, 京 1, a 2, 東 3"),
        ("ไทย abc", "ไท 0, ทย 1, ย 2, abc 3"),
        ("ไทยabc", "ไท 0, ทย 1, ย 2, abc 3"),
        ("abcไทย1", "abc 0, ไท 1, ทย 2, ย 3, 1 4"),
        (
            "ลาวa ខ្មែរb မြန်c",
            "ลา 0, าว 1, ว 2, a 3, ខ្ 4, ្ម 5, មែ 6, ែរ 7, រ 8, b 9, \
          မြ 10, ြန 11, န် 12, ် 13, c 14",
        ),
        ("東京ไทย", "東京 0, 京ไ 1, ไท 2, ทย 3, ย 4"),
        ("so\u{ad}ft\u{200b}en\u{2060}ed", "softened 0"),
        ("a\u{200d}_\u{feff}b \u{200b}", "a_b 0, a 0, b 1"),
        ("東\u{200b}京", "東京 0, 京 1"),
        ("ａｎｎａ＠ｂ．ｃ、ｄ", "anna@b.c 0, anna 0, b 1, c 2, d 3"),
        ("ｶﾞｽ", "ガス 0, ス 1"),
        ("ปี๒๕๖๙", "ปี 0, ี 1, 2569 2"),
        ("❤\u{fe0f}x👩\u{200d}🚀y", "x 0, y 1"),
        ("Привет-мир", "привет-мир 0, привет 0, мир 1"),
    ] {
        assert_eq!(word_list(text), expected, "{text}");
    }
}

#[test]
fn long_words_are_cut_off_and_long_joins_are_parts() {
    let long = "x".repeat(100);
    assert_eq!(words(&long), [("x".repeat(MAX_WORD_BYTES), 0)]);
    let cut = words(&"é".repeat(100));
    assert_eq!(cut.len(), 1);
    assert!(cut[0].0.len() <= MAX_WORD_BYTES);
    let wide = words(&"ж".repeat(99));
    assert_eq!(wide[0].0.len(), MAX_WORD_BYTES);
    let parts = |count: usize| vec!["a"; count].join(".");
    assert_eq!(words(&parts(MAX_JOINED_PARTS)).len(), MAX_JOINED_PARTS + 1);
    // Its longest beginning and its longest end.
    let more = words(&parts(MAX_JOINED_PARTS + 1));
    assert_eq!(more.len(), MAX_JOINED_PARTS + 3);
    assert_eq!((&more[0], more[2].1), (&(parts(MAX_JOINED_PARTS), 0), 1));
    assert_eq!(more[2].0, parts(MAX_JOINED_PARTS));
    assert_eq!(
        word_list(&format!("{}.b.pdf", "a".repeat(70))),
        format!("{} 0, b.pdf 1, b 1, pdf 2", "a".repeat(MAX_WORD_BYTES))
    );
    // A joined word that would be cut off is not there.
    assert_eq!(words(&format!("{}.{}", "a".repeat(40), "b".repeat(40))).len(), 2);
}

proptest! {
    /// The parts are the words of the folded text, in order, whatever joins them; the positions
    /// ascend by one; a joined word is at the position of its first part.
    #[test]
    fn parts_are_the_words_of_the_folded_text(text in "[a-cA-C0_.'@: ,éжİß’-]{0,60}") {
        let mut words = words(&text);
        let joined: Vec<(String, u32)> =
            words.iter().filter(|(word, _)| word.contains(|c: char| "_.'@:’-".contains(c))).cloned().collect();
        words.retain(|word| !joined.contains(word));
        let folded = fold(&text);
        let expected: Vec<&str> = split_words(&folded).collect();
        let found: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
        prop_assert_eq!(&found, &expected);
        prop_assert!(words.iter().zip(0..).all(|((_, position), at)| *position == at));
        for (word, position) in joined {
            let first = words.iter().find(|(_, at)| *at == position).map(|(part, _)| part.clone());
            prop_assert!(word.starts_with(&first.unwrap_or_default()), "{}", word);
        }
    }

    /// A text of any script has the words of its halves, if they are divided between words.
    #[test]
    fn texts_are_the_sum_of_their_lines(a in "\\PC{0,40}", b in "\\PC{0,40}") {
        let mut whole = Vec::new();
        let mut tokenizer = Tokenizer::default();
        let next = tokenizer.for_each_word(&a, 0, |word: &str, at| whole.push((word.to_string(), at)));
        tokenizer.for_each_word(&b, next, |word: &str, at| whole.push((word.to_string(), at)));
        prop_assert_eq!(whole, words(&format!("{a}\n{b}")));
    }
}

/// Returns the rows of the table of the documentation with this header, with their cells.
fn documented_rows(header: &str) -> Vec<Vec<String>> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mail.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, table) = page.split_once(header).expect(header);
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let decode = |cell: &str| {
        let cell = cell.trim().trim_matches('`');
        cell.replace("&shy;", "\u{ad}").replace("&zwnj;", "\u{200c}").replace("&zwj;", "\u{200d}")
    };
    rows.map(|row| row.trim_matches('|').split('|').map(decode).collect()).collect()
}

#[test]
fn the_documented_words_are_those_of_the_tokenizer() {
    let rows = documented_rows("| text | words |");
    assert!(rows.len() > 15);
    for row in rows {
        let [text, expected] = row.as_slice() else { panic!("{row:?}") };
        let found = words(text).into_iter().map(|(word, position)| format!("{word} ({position})"));
        assert_eq!(found.collect::<Vec<_>>().join(", "), *expected, "{text}");
    }
}
