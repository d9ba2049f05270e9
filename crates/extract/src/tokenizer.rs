//! The words of running text with their positions, for full-text search.
//!
//! | text | words (position) |
//! |---|---|
//! | `The walrus` | the (0), walrus (1) |
//! | `Cafés, ÜBER` | cafes (0), uber (1) |
//! | `foo_bar baz` | foo_bar (0), foo (0), bar (1), baz (2) |
//! | `anna@example.org` | anna@example.org (0), anna (0), example (1), org (2) |
//! | `it's -- or -not-` | it's (0), it (0), s (1), or (2), not (3) |
//! | 東京都 | 東京 (0), 京都 (1), 都 (2) |
//! | `iPhone電話` | iphone (0), 電話 (1), 話 (2) |
//!
//! * Words are folded (see [`larder_format::fold`]), and not stemmed. Letters and digits are in a
//!   word; everything else separates words.
//! * Words with a single joiner between them (`_ - ' . @ :`) are *joined*: the whole is a word at
//!   the position of its first part, beside the parts. So `foo_bar`, `foo` and `bar` find the text,
//!   and so do the phrases `"foo bar"` and `"bar baz"`: a joined word of a query is the phrase of
//!   its parts.
//! * In scripts without spaces ([`is_unspaced`]) each two neighbours are a word, and the last
//!   character is one: a text of any length is found as a phrase of its pairs, and a single
//!   character by the words that begin with it. Where another script begins, so does a word.
//! * A word of more than [`MAX_WORD_BYTES`] is cut off: lines of encoded data are not worth more.
//!
//! Separate from `term`, whose terms have no positions. Nearly all text is ASCII, and a message has
//! a thousand words, so ASCII is read byte by byte, and copied only if it has capitals or joiners;
//! only a run of other characters is folded by tables.

use larder_format::fold::{fold, is_unspaced, split_words};

/// The version of the rules in this module, for the fingerprint of what is derived by them.
pub const TOKENIZER_VERSION: u32 = 3;
/// The longest word. Words are cut off at a character boundary.
pub const MAX_WORD_BYTES: usize = 64;
/// The number of parts of a joined word. Of a run of more parts, or of more bytes than a word has,
/// the longest beginning and the longest end within the limits are joined words.
pub const MAX_JOINED_PARTS: usize = 8;

/// Splits texts into words. It has buffers that are used again for each text.
#[derive(Debug, Default)]
pub struct Tokenizer {
    /// The folded run of words with joiners between them.
    run: String,
    /// The ends of the parts in `run`.
    part_ends: Vec<usize>,
}

/// Gets each word with its position.
pub trait WordVisitor: FnMut(&str, u32) {}
impl<F: FnMut(&str, u32)> WordVisitor for F {}

impl Tokenizer {
    /// Calls `visit` with each word of a text and its position, from `first_position` on, in the
    /// order of the positions. Returns the position after the last word.
    pub fn for_each_word(
        &mut self,
        text: &str,
        first_position: u32,
        mut visit: impl WordVisitor,
    ) -> u32 {
        let (mut position, mut at) = (first_position, 0);
        let bytes = text.as_bytes();
        while let Some(start) = next_place(bytes, at, |class| class >= CharClass::Word) {
            let is_end = |class| class != CharClass::Word;
            let mut end = next_place(bytes, start, is_end).unwrap_or(bytes.len());
            // Most words end here: at a separator, or at a full stop in front of one.
            let class_at =
                |at: usize| bytes.get(at).map_or(CharClass::Separator, |byte| class(*byte));
            let is_word = match class_at(end) {
                CharClass::Joiner => class_at(end + 1) == CharClass::Separator,
                class => class == CharClass::Separator,
            };
            if is_word && end - start <= MAX_WORD_BYTES {
                // Most words have no capital, and need no copy.
                let word = text.get(start..end).unwrap_or_default();
                if word.bytes().any(|byte| byte.is_ascii_uppercase()) {
                    self.run.clear();
                    self.run.push_str(word);
                    self.run.make_ascii_lowercase();
                    visit(&self.run, position);
                    self.run.clear();
                } else {
                    visit(word, position);
                }
                position += 1;
            } else {
                let is_separator = |class| class == CharClass::Separator;
                end = next_place(bytes, end, is_separator).unwrap_or(bytes.len());
                let run = text.get(start..end).unwrap_or_default();
                position = match run.is_ascii() {
                    true => self.split_ascii(run, position, &mut visit),
                    false => self.split_folded(&fold(run), position, &mut visit),
                };
            }
            at = end;
        }
        position
    }

    /// Splits ASCII text without separators.
    fn split_ascii(&mut self, run: &str, first: u32, visit: &mut impl WordVisitor) -> u32 {
        let mut position = first;
        self.run.clear();
        self.part_ends.clear();
        let mut has_joiner = false;
        for byte in run.bytes() {
            if class(byte) == CharClass::Word {
                if has_joiner && !self.run.is_empty() {
                    self.part_ends.push(self.run.len() - 1);
                }
                has_joiner = false;
                self.run.push(char::from(byte.to_ascii_lowercase()));
            } else if has_joiner || self.run.is_empty() {
                // A second joiner separates words.
                position = self.visit_run(position, visit);
                has_joiner = false;
            } else {
                has_joiner = true;
                self.run.push(char::from(byte));
            }
        }
        self.visit_run(position, visit)
    }

    /// Splits folded text of any script.
    fn split_folded(&mut self, folded: &str, first: u32, visit: &mut impl WordVisitor) -> u32 {
        let mut position = first;
        self.run.clear();
        self.part_ends.clear();
        // The last character of a script without spaces, and its place.
        let mut previous: Option<(&str, usize)> = None;
        let mut end = 0;
        for (start, word) in split_words(folded).flat_map(|word| split_unspaced(folded, word)) {
            let gap = folded.get(end..start).unwrap_or_default();
            end = start + word.len();
            let is_single = word.chars().next().is_some_and(is_unspaced);
            if let Some((last, last_start)) = previous.take() {
                let pair = folded.get(last_start..end).filter(|_| is_single && gap.is_empty());
                visit(pair.unwrap_or(last), position);
                position += 1;
            }
            if is_single {
                position = self.visit_run(position, visit);
                previous = Some((word, start));
                continue;
            }
            if !self.run.is_empty() && is_joiner_text(gap) {
                self.part_ends.push(self.run.len());
                self.run.push_str(gap);
            } else {
                position = self.visit_run(position, visit);
            }
            self.run.push_str(word);
        }
        if let Some((last, _)) = previous {
            visit(last, position);
            position += 1;
        }
        self.visit_run(position, visit)
    }

    /// Visits the joined word in the buffer and its parts, and empties the buffer.
    fn visit_run(&mut self, first: u32, visit: &mut impl WordVisitor) -> u32 {
        // A joiner at the end of the run joins nothing.
        let text = self.run.trim_end_matches(is_joiner);
        if text.is_empty() {
            return first;
        }
        let mut position = first;
        let mut start = 0;
        let head = joined_head(text, &self.part_ends);
        if let Some(head) = head {
            visit(head, position);
        }
        let mut has_end = head.map_or(self.part_ends.is_empty(), |head| head.len() == text.len());
        let ends = self.part_ends.iter().copied().chain([text.len()]);
        for (end, parts) in ends.zip((1..=self.part_ends.len() + 1).rev()) {
            let rest = text.get(start..).unwrap_or_default();
            if !has_end && parts <= MAX_JOINED_PARTS && rest.len() <= MAX_WORD_BYTES {
                has_end = true;
                if parts > 1 {
                    visit(rest, position);
                }
            }
            let word = text.get(start..end).unwrap_or_default();
            visit(word.get(..word.floor_char_boundary(MAX_WORD_BYTES)).unwrap_or(word), position);
            position += 1;
            start = end
                + text.get(end..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        }
        self.run.clear();
        self.part_ends.clear();
        position
    }
}

/// Returns the joined word that a run begins with: the whole, or its longest beginning within the
/// limits; `None`: it has a single part, or two parts are too long.
fn joined_head<'t>(text: &'t str, part_ends: &[usize]) -> Option<&'t str> {
    if part_ends.is_empty() {
        return None;
    }
    let ends = part_ends.iter().copied().chain([text.len()]).take(MAX_JOINED_PARTS).skip(1);
    text.get(..ends.take_while(|end| *end <= MAX_WORD_BYTES).last()?)
}

/// Returns the parts of a word, each with its place: single characters of scripts without spaces,
/// and runs of other characters.
fn split_unspaced<'t>(folded: &'t str, word: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
    let start = word.as_ptr() as usize - folded.as_ptr() as usize;
    let mut rest = word;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = match is_unspaced(first) {
            true => first.len_utf8(),
            false => rest.find(is_unspaced).unwrap_or(rest.len()),
        };
        let at = start + word.len() - rest.len();
        let (part, tail) = rest.split_at(end);
        rest = tail;
        Some((at, part))
    })
}

/// The class of a byte of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CharClass {
    /// Separates words.
    Separator,
    /// May join words.
    Joiner,
    /// An ASCII letter or digit.
    Word,
    /// A byte of another character.
    Other,
}

/// Returns the place of the next byte of a class, from a place on.
fn next_place(bytes: &[u8], from: usize, is_wanted: impl Fn(CharClass) -> bool) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.iter().position(|byte| is_wanted(class(*byte))).map(|at| from + at)
}

const fn class(byte: u8) -> CharClass {
    CLASSES[byte as usize]
}

const CLASSES: [CharClass; 256] = {
    let mut classes = [CharClass::Other; 256];
    let mut byte = 0;
    while byte < 0x80 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => CharClass::Word,
            b'_' | b'-' | b'\'' | b'.' | b'@' | b':' => CharClass::Joiner,
            _ => CharClass::Separator,
        };
        byte += 1;
    }
    classes
};

/// Returns whether a character joins words: an ASCII joiner, or the typographic apostrophe.
#[must_use]
pub fn is_joiner(c: char) -> bool {
    c == '\u{2019}' || u8::try_from(c).is_ok_and(|byte| class(byte) == CharClass::Joiner)
}

fn is_joiner_text(gap: &str) -> bool {
    let mut characters = gap.chars();
    characters.next().is_some_and(is_joiner) && characters.next().is_none()
}
