//! Changesets that stay visible although obsolete, because the working copy or a name refers to
//! them (mercurial/repoview.py, `pinnedrevs`).

use crate::local::layout::{StoreLayout, read_optional};
use crate::local::local_error::LocalError;
use crate::object_id::Node;
use std::collections::HashMap;

/// Returns the nodes of these changesets. Some may not exist.
pub(crate) fn read_pins(
    layout: &StoreLayout,
    bookmarks: &[(Vec<u8>, Node)],
) -> Result<Vec<Node>, LocalError> {
    let read = |name: &str| read_optional(&layout.working_folder.join(name));
    let mut pins: Vec<Node> = bookmarks.iter().map(|(_, node)| *node).collect();
    pins.extend(parse_working_copy(&read("dirstate")?.unwrap_or_default()));
    pins.extend(parse_local_tags(&read("localtags")?.unwrap_or_default()));
    pins.extend(parse_merge(&read("merge/state2")?.unwrap_or_default()));
    pins.retain(|node| !node.is_null());
    Ok(pins)
}

/// Returns the parents of the working copy. The second version of the file has room for longer
/// nodes.
fn parse_working_copy(dirstate: &[u8]) -> [Node; 2] {
    let (parents, distance) = match dirstate.strip_prefix(b"dirstate-v2\n") {
        Some(parents) => (parents, 32),
        None => (dirstate, 20),
    };
    [0, distance].map(|start| {
        let node = parents.get(start..).and_then(|rest| rest.first_chunk::<20>());
        node.map_or(Node::NULL, |node| Node(*node))
    })
}

/// Returns the changesets of the local tags, of which the last line of a name counts.
fn parse_local_tags(text: &[u8]) -> Vec<Node> {
    let mut tags: HashMap<&[u8], Node> = HashMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        let Some((digits, name)) = line.split_at_checked(40) else { continue };
        if let Some(node) = Node::from_hex(digits) {
            tags.insert(name.trim_ascii(), node);
        }
    }
    tags.into_values().collect()
}

/// Returns the two sides of a merge in which files are unresolved.
fn parse_merge(mut state: &[u8]) -> Vec<Node> {
    let mut sides = Vec::new();
    let mut is_unresolved = false;
    while let Some((kind, record, rest)) = split_record(state) {
        match kind {
            b'L' | b'O' => sides.extend(Node::from_hex(record)),
            _ => {
                let mut fields = record.split(|byte| *byte == 0).skip(1);
                is_unresolved |= matches!(fields.next(), Some(b"u" | b"pu"));
            }
        }
        state = rest;
    }
    if is_unresolved { sides } else { Vec::new() }
}

/// Splits off a record: its kind, and the bytes behind their length.
fn split_record(state: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, rest) = state.split_first()?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let (record, rest) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
    Some((*kind, record, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &str = "00112233445566778899aabbccddeeff00112233";

    #[test]
    fn parents_are_read_from_both_versions() {
        let old = [[1; 20], [2; 20]].concat();
        let new = [b"dirstate-v2\n".as_slice(), &[1; 20], &[0; 12], &[2; 20], &[0; 12]].concat();
        for dirstate in [old, new] {
            assert_eq!(parse_working_copy(&dirstate), [Node([1; 20]), Node([2; 20])]);
        }
        assert_eq!(parse_working_copy(b"short"), [Node::NULL; 2]);
    }

    #[test]
    fn the_last_line_of_a_local_tag_counts() {
        let text = format!("{} a\n{DIGITS} a\n{DIGITS} b\nodd\n", "f".repeat(40));
        let node = Node::from_hex(DIGITS.as_bytes()).expect("a node");
        assert_eq!(parse_local_tags(text.as_bytes()), [node, node]);
    }

    #[test]
    fn only_an_unresolved_merge_counts() {
        let record = |kind: u8, bytes: &[u8]| {
            [&[kind][..], &(bytes.len() as u32).to_be_bytes(), bytes].concat()
        };
        for (file, count) in [(b"path\0u\0rest", 1), (b"path\0r\0rest", 0)] {
            let state = [record(b'L', DIGITS.as_bytes()), record(b'F', file)].concat();
            assert_eq!(parse_merge(&state).len(), count);
        }
    }
}
