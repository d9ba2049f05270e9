//! Deltas of whole lines between two texts, for revisions whose stored delta has a base that the
//! receiver lacks. They are correct for any two texts, and small for the usual ones; the smallest
//! delta is not searched for.

/// Writes the delta from nothing to a text over `delta`.
pub(crate) fn write_full_delta(text: &[u8], delta: &mut Vec<u8>) {
    delta.clear();
    delta.reserve(text.len() + 12);
    push_hunk(delta, 0, 0, text);
}

/// Writes the delta between two texts over `delta`: one hunk, which leaves out the lines that both
/// have at their beginnings and at their ends.
pub(crate) fn write_range_delta(base: &[u8], text: &[u8], delta: &mut Vec<u8>) {
    delta.clear();
    if base == text {
        return;
    }
    let prefix = shared_prefix(base, text);
    let (base_rest, text_rest) = (tail(base, prefix), tail(text, prefix));
    let suffix = shared_suffix(base_rest, text_rest);
    let data = text_rest.get(..text_rest.len() - suffix).unwrap_or_default();
    push_hunk(delta, prefix, base.len() - suffix, data);
}

/// Writes the delta between two manifests over `delta`. Their lines are sorted, so that one pass
/// over both finds all differences.
pub(crate) fn write_manifest_delta(base: &[u8], text: &[u8], delta: &mut Vec<u8>) {
    delta.clear();
    let (mut old, mut new) = (0, 0);
    // The hunk that is being collected: where it begins in both texts.
    let (mut old_start, mut new_start) = (0, 0);
    loop {
        let (old_line, new_line) = (first_line(tail(base, old)), first_line(tail(text, new)));
        if old_line == new_line {
            if (old, new) != (old_start, new_start) {
                push_hunk(delta, old_start, old, text.get(new_start..new).unwrap_or_default());
            }
            if old_line.is_empty() {
                return;
            }
            old += old_line.len();
            new += new_line.len();
            (old_start, new_start) = (old, new);
        } else if new_line.is_empty() || (!old_line.is_empty() && old_line < new_line) {
            old += old_line.len();
        } else {
            new += new_line.len();
        }
    }
}

fn push_hunk(delta: &mut Vec<u8>, start: usize, end: usize, data: &[u8]) {
    // No text is larger than 2 GB.
    for number in [start, end, data.len()] {
        delta.extend((number as u32).to_be_bytes());
    }
    delta.extend_from_slice(data);
}

fn tail(text: &[u8], start: usize) -> &[u8] {
    text.get(start..).unwrap_or_default()
}

/// Returns the text up to its first line end, which is included.
fn first_line(text: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'\n', text).map_or(text.len(), |end| end + 1);
    text.get(..end).unwrap_or_default()
}

/// Returns the length of the whole lines that begin both texts.
fn shared_prefix(base: &[u8], text: &[u8]) -> usize {
    let len = base.iter().zip(text).take_while(|(old, new)| old == new).count();
    let shared = base.get(..len).unwrap_or_default();
    memchr::memrchr(b'\n', shared).map_or(0, |end| end + 1)
}

/// Returns the length of the whole lines that end both texts.
fn shared_suffix(base: &[u8], text: &[u8]) -> usize {
    let len = base.iter().rev().zip(text.iter().rev()).take_while(|(old, new)| old == new).count();
    if len == base.len() && len == text.len() {
        return len;
    }
    // The bytes after the first line end in the shared part are whole lines.
    let shared = tail(text, text.len() - len);
    memchr::memchr(b'\n', shared).map_or(0, |end| len - end - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::{apply_delta, hunks};
    use proptest::prelude::*;

    fn check(base: &[u8], text: &[u8], write: fn(&[u8], &[u8], &mut Vec<u8>)) -> Vec<u8> {
        let (mut delta, mut rebuilt) = (b"before".to_vec(), Vec::new());
        write(base, text, &mut delta);
        apply_delta(base, &delta, &mut rebuilt).expect("a delta");
        assert_eq!(rebuilt, text);
        delta
    }

    #[test]
    fn hunks_are_whole_lines() {
        let delta = check(b"one\ntwo\nthree\n", b"one\ntwos\nthree\n", write_range_delta);
        let found: Vec<_> = hunks(&delta, 14).map(|hunk| hunk.expect("a hunk")).collect();
        assert_eq!((found[0].start, found[0].end, found[0].data), (4, 8, b"twos\n".as_slice()));
        assert!(check(b"same\n", b"same\n", write_range_delta).is_empty());
    }

    #[test]
    fn a_manifest_has_a_hunk_for_each_difference() {
        let delta = check(b"a\nb\nc\nd\n", b"a\nb2\nc\nd\ne\n", write_manifest_delta);
        assert_eq!(hunks(&delta, 8).count(), 2);
        assert!(check(b"a\nb\n", b"a\nb\n", write_manifest_delta).is_empty());
    }

    fn lines() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), Just(b'b')], 0..40)
    }

    proptest! {
        #[test]
        fn deltas_rebuild_any_text(base in lines(), text in lines()) {
            check(&base, &text, write_range_delta);
            check(&base, &text, write_manifest_delta);
            check(&[], &text, |_, text, delta| write_full_delta(text, delta));
        }
    }
}
