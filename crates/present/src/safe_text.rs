//! Text of items and files made safe to show: characters that cannot be seen but change what a
//! reader sees, or what a terminal does, become visible.
//!
//! Every line for a person passes here, so it is one module: the rules are those of Unicode
//! (UAX #9, UTS #39, UTS #51), and docs/output.md has them as a table. Characters that a script or
//! an emoji needs stay: what is deceptive in a Latin address is spelling in Persian. JSON and
//! source bytes keep every character.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Code points of one role.
type CharRanges = &'static [RangeInclusive<u32>];

/// Characters that are never shown as they are: bidirectional embeddings, overrides and isolates,
/// invisible operators and fillers, the byte-order mark, annotations, tags, noncharacters.
const HIDDEN_CHARS: CharRanges = &[
    0xad..=0xad,
    0x34f..=0x34f,
    0x61c..=0x61c,
    0x115f..=0x1160,
    0x17b4..=0x17b5,
    0x180b..=0x180f,
    0x200b..=0x200f,
    0x2028..=0x202e,
    0x2060..=0x206f,
    0x3164..=0x3164,
    0xfdd0..=0xfdef,
    0xfe00..=0xfe0f,
    0xfeff..=0xfeff,
    0xffa0..=0xffa0,
    0xfff0..=0xfffb,
    0xfffe..=0xffff,
    0x1_bca0..=0x1_bca3,
    0x1_d173..=0x1_d17a,
    0xe_0000..=0xe_0fff,
];
/// Letters that are written from right to left: marks of direction belong to such text.
const RIGHT_TO_LEFT: CharRanges = &[
    0x590..=0x60b,
    0x60d..=0x61b,
    0x61d..=0x8ff,
    0xfb1d..=0xfdcf,
    0xfdf0..=0xfdff,
    0xfe70..=0xfefc,
    0x1_0800..=0x1_0fff,
    0x1_e800..=0x1_efff,
];
/// Scripts whose letters join or are stacked: U+200C and U+200D belong to their spelling.
const JOINING_SCRIPTS: CharRanges = &[
    0x600..=0x60b,
    0x620..=0x7ff,
    0x840..=0x8ff,
    0x900..=0xdff,
    0x1000..=0x109f,
    0x1780..=0x17b3,
    0x17b6..=0x17ff,
    0x1820..=0x18af,
    0x1900..=0x1cff,
    0xa800..=0xaaff,
    0xfb50..=0xfdcf,
    0xfe70..=0xfefc,
    0x1_1000..=0x1_1fff,
];
/// Scripts without spaces between words, which U+200B marks.
const SPACELESS_SCRIPTS: CharRanges = &[0xe00..=0xeff, 0x1000..=0x109f, 0x1780..=0x17ff];
/// Emoji, and symbols that are one with U+FE0F.
const EMOJI: CharRanges = &[
    0xa9..=0xa9,
    0xae..=0xae,
    0x203c..=0x203c,
    0x2049..=0x2049,
    0x20e3..=0x20e3,
    0x2122..=0x2122,
    0x2139..=0x2139,
    0x2190..=0x21ff,
    0x2300..=0x23ff,
    0x2460..=0x24ff,
    0x25a0..=0x27bf,
    0x2900..=0x297f,
    0x2b00..=0x2bff,
    0x3030..=0x303d,
    0x3297..=0x3299,
    0x1_f000..=0x1_faff,
];
const MONGOLIAN: CharRanges = &[0x1800..=0x180a, 0x1810..=0x18af];
const IDEOGRAPHS: CharRanges =
    &[0x3400..=0x4dbf, 0x4e00..=0x9fff, 0xf900..=0xfaff, 0x2_0000..=0x3_ffff];
/// The subdivision flags of Unicode: U+1F3F4, these letters as tags, and U+E007F.
const TAG_FLAGS: &[&str] = &["gbeng", "gbsct", "gbwls"];

/// The content of a text for one line: line ends and tabs become spaces, and characters that are
/// invisible or deceptive become escapes like `<U+202E>`.
#[must_use]
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escape(text, |c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
}

/// Like [`escape_line`], for output that has lines, tabs and styles of its own: these stay.
#[must_use]
pub fn escape_output(text: &str) -> Cow<'_, str> {
    escape(text, |c| c.is_control() && !matches!(c, '\n' | '\t' | '\x1b'))
}

/// Returns the beginning of an escaped text without the hidden characters that needed the rest of
/// it: joiners and selectors at its end, and marks of direction if no letter is left that is
/// written from right to left. They would be escaped where the beginning is printed.
#[must_use]
pub fn drop_stranded_chars(beginning: &str) -> String {
    let is_right_to_left = beginning.chars().any(|c| is_in(RIGHT_TO_LEFT, c));
    let mut kept = String::with_capacity(beginning.len());
    let mut rest = beginning;
    while let Some(c) = rest.chars().next() {
        let length = match is_hidden(c) {
            true => kept_length(kept.chars().next_back(), rest, is_right_to_left),
            false => c.len_utf8(),
        };
        let (first, after) = rest.split_at(length.max(c.len_utf8()));
        if length > 0 {
            kept.push_str(first);
        }
        rest = after;
    }
    kept
}

/// Returns whether JSON should have an escape for this character, which may change what a terminal
/// shows. Both forms mean the same.
#[must_use]
pub fn is_escaped_in_json(c: char) -> bool {
    c.is_control() || is_hidden(c)
}

fn is_in(ranges: CharRanges, c: char) -> bool {
    ranges.iter().any(|range| range.contains(&u32::from(c)))
}

fn is_hidden(c: char) -> bool {
    // Latin letters are most of what is not ASCII.
    !matches!(c, '\0'..='\u{ac}' | '\u{ae}'..='\u{34e}')
        && (is_in(HIDDEN_CHARS, c)
            // The last two code points of each plane are no characters.
            || u32::from(c) & 0xfffe == 0xfffe)
}

/// Escapes a text in which `is_control` tells the characters that control the terminal or the line.
fn escape(text: &str, is_control: fn(char) -> bool) -> Cow<'_, str> {
    let first = unescaped_prefix_len(text, is_control);
    if first == text.len() {
        return Cow::Borrowed(text);
    }
    let is_right_to_left = text.chars().any(|c| is_in(RIGHT_TO_LEFT, c));
    let mut escaped = String::with_capacity(text.len() + 16);
    escaped.push_str(&text[..first]);
    let mut previous = text[..first].chars().next_back();
    let mut at = first;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let kept = match c {
            '\x1b' if !is_control(c) => style_length(rest),
            _ if is_control(c) => 0,
            _ if is_hidden(c) => kept_length(previous, rest, is_right_to_left),
            _ => c.len_utf8(),
        };
        let length = if kept > 0 { kept } else { c.len_utf8() };
        match (kept, c) {
            (1.., _) => escaped.push_str(&rest[..kept]),
            (0, '\t' | '\n' | '\r' | '\x0b' | '\x0c' | '\u{85}' | '\u{2028}' | '\u{2029}') => {
                escaped.push(' ');
            }
            (0, c) => {
                let _infallible = write!(escaped, "<U+{:04X}>", u32::from(c));
            }
        }
        previous = rest[..length].chars().next_back();
        at += length;
    }
    Cow::Owned(escaped)
}

/// Returns the length of the beginning of a text that is shown as it is; most texts are shown as
/// they are as a whole.
fn unescaped_prefix_len(text: &str, is_control: fn(char) -> bool) -> usize {
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        if matches!(byte, b' '..=b'~') {
            at += 1;
            continue;
        }
        let rest = &text[at..];
        let length = match rest.chars().next() {
            Some('\x1b') if !is_control('\x1b') => style_length(rest),
            Some(c) if c != '\x1b' && !is_control(c) && !is_hidden(c) => c.len_utf8(),
            _ => 0,
        };
        if length == 0 {
            break;
        }
        at += length;
    }
    at
}

/// Returns the length of the style at the beginning of a text: `ESC [`, numbers, `m`; 0 for any
/// other escape sequence.
fn style_length(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\x1b[") else { return 0 };
    let length =
        parameters.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if parameters.as_bytes().get(length) == Some(&b'm') { length + 3 } else { 0 }
}

/// Returns the length of the hidden characters at the beginning of a text that stay because the
/// characters around them need them; 0 if the first one is to be escaped.
fn kept_length(previous: Option<char>, text: &str, is_right_to_left: bool) -> usize {
    let mut chars = text.chars();
    let Some(c) = chars.next() else { return 0 };
    let next = chars.next();
    let is = |c: Option<char>, ranges| c.is_some_and(|c| is_in(ranges, c));
    let is_emoji = |c: Option<char>| is(c, EMOJI) || c == Some('\u{fe0f}');
    let is_kept = match c {
        '\u{200e}' | '\u{200f}' | '\u{61c}' => is_right_to_left,
        '\u{200b}' => is(previous, SPACELESS_SCRIPTS) && is(next, SPACELESS_SCRIPTS),
        '\u{200c}' => is(previous, JOINING_SCRIPTS) && is(next, JOINING_SCRIPTS),
        '\u{200d}' => is(previous, JOINING_SCRIPTS) || is_emoji(previous) && is(next, EMOJI),
        '\u{180b}'..='\u{180f}' => is(previous, MONGOLIAN),
        '\u{fe00}'..='\u{fe02}' | '\u{e0100}'..='\u{e01ef}' => is(previous, IDEOGRAPHS),
        '\u{fe0e}' | '\u{fe0f}' => {
            let is_key = |c: char| c.is_ascii_digit() || matches!(c, '#' | '*');
            is(previous, EMOJI) || previous.is_some_and(is_key) && next == Some('\u{20e3}')
        }
        '\u{e0020}'..='\u{e007e}' if previous == Some('\u{1f3f4}') => return flag_length(text),
        _ => false,
    };
    if is_kept { c.len_utf8() } else { 0 }
}

/// Returns the length of the tags of a flag at the beginning of a text; 0 if it is no flag.
fn flag_length(text: &str) -> usize {
    const TAG_BASE: u32 = 0xe_0000;
    let letters: String = text
        .chars()
        .map_while(|c| char::from_u32(u32::from(c).checked_sub(TAG_BASE)?))
        .take_while(char::is_ascii_lowercase)
        .collect();
    let tags: usize = text.chars().take(letters.len() + 1).map(char::len_utf8).sum();
    let ends = text[..tags].ends_with('\u{e007f}');
    if ends && TAG_FLAGS.contains(&letters.as_str()) { tags } else { 0 }
}
