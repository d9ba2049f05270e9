//! Tags, which Mercurial keeps in the file `.hgtags` of the history itself.
//!
//! Each head has its own version of the file, and all of them count. A line is the node of a
//! changeset and a name; later lines replace earlier ones, and the null node removes the tag. Of
//! two heads that disagree, the one whose file has the other's changeset in its past wins
//! (mercurial/tags.py, `_updatetags`).

use crate::object_id::Node;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A node as it stands in the file. One of another length than 20 bytes names no changeset, but
/// counts in the history of its tag.
type WrittenNode = Vec<u8>;

/// The changeset of a tag, and those that it named before.
struct TagHistory {
    node: WrittenNode,
    earlier: Vec<WrittenNode>,
}

/// The tags of several heads, merged.
#[derive(Default)]
pub struct TagMerge {
    tags: HashMap<Vec<u8>, TagHistory>,
    files: HashSet<[u8; 20]>,
}

impl TagMerge {
    /// Adds the file of a head: the id of its blob or its revision, and its text without the block
    /// of metadata that a copied file begins with. Heads are added from the oldest to the newest,
    /// by their revision numbers.
    pub fn add_file(&mut self, file: [u8; 20], text: &[u8]) {
        // Heads that share a version count once.
        if !self.files.insert(file) {
            return;
        }
        for (name, history) in parse_tags(text) {
            match self.tags.remove(&name) {
                Some(known) => self.tags.insert(name, merge(history, known)),
                None => self.tags.insert(name, history),
            };
        }
    }

    /// Returns the changesets that tags name, also those that do not exist.
    pub fn nodes(&self) -> impl Iterator<Item = Node> {
        self.tags.values().filter_map(|history| history.node.as_slice().try_into().ok().map(Node))
    }

    /// Returns the node that a tag names, also one that does not exist; null if the tag was
    /// removed.
    pub(crate) fn find(&self, name: &[u8]) -> Option<Node> {
        self.tags.get(name)?.node.as_slice().try_into().ok().map(Node)
    }

    /// Returns the names of tags whose changesets do not exist, sorted; removed tags are none.
    pub(crate) fn unknown_names(&self, is_changeset: impl Fn(&Node) -> bool) -> Vec<&[u8]> {
        let is_unknown = |history: &TagHistory| match history.node.as_slice().try_into() {
            Ok(node) => !Node(node).is_null() && !is_changeset(&Node(node)),
            Err(_) => true,
        };
        let unknown = self.tags.iter().filter(|(_, history)| is_unknown(history));
        let mut names: Vec<&[u8]> = unknown.map(|(name, _)| name.as_slice()).collect();
        names.sort_unstable();
        names
    }

    /// Returns the names of tags, also of removed ones, with the changesets that they named before.
    pub(crate) fn earlier_nodes(&self) -> impl Iterator<Item = (&[u8], Vec<Node>)> {
        self.tags.iter().map(|(name, history)| {
            let nodes = history.earlier.iter().filter_map(|node| node.as_slice().try_into().ok());
            (name.as_slice(), nodes.map(Node).collect())
        })
    }

    /// Returns the tags, sorted by name: those that were not removed, and whose changesets exist.
    pub fn into_tags(self, is_changeset: impl Fn(&Node) -> bool) -> BTreeMap<Vec<u8>, Node> {
        let found = self.tags.into_iter().filter_map(|(name, history)| {
            let node = Node(history.node.try_into().ok()?);
            (!node.is_null() && is_changeset(&node)).then_some((name, node))
        });
        found.collect()
    }
}

/// Merges the tag of a newer head with the known one of older heads.
fn merge(newer: TagHistory, known: TagHistory) -> TagHistory {
    let TagHistory { mut node, mut earlier } = newer;
    let is_superseded = node != known.node
        && known.earlier.contains(&node)
        && (!earlier.contains(&known.node) || known.earlier.len() > earlier.len());
    if is_superseded {
        node = known.node;
    }
    let present: HashSet<&WrittenNode> = earlier.iter().collect();
    let added: Vec<WrittenNode> =
        known.earlier.iter().filter(|node| !present.contains(node)).cloned().collect();
    earlier.extend(added);
    TagHistory { node, earlier }
}

/// Parses the lines of a file. Those that are no node and name are left out, as Mercurial does.
fn parse_tags(text: &[u8]) -> HashMap<Vec<u8>, TagHistory> {
    let mut tags: HashMap<Vec<u8>, TagHistory> = HashMap::new();
    for line in text.split(|byte| matches!(byte, b'\n' | b'\r')) {
        let Some(space) = memchr::memchr(b' ', line) else { continue };
        let (digits, name) = line.split_at_checked(space).unwrap_or((line, b""));
        let Some(node) = decode_hex(digits) else { continue };
        let name = trim(name).to_vec();
        match tags.get_mut(&name) {
            Some(history) => {
                let before = std::mem::replace(&mut history.node, node);
                history.earlier.push(before);
            }
            None => {
                tags.insert(name, TagHistory { node, earlier: Vec::new() });
            }
        }
    }
    tags
}

/// Removes white space as Python does: also the vertical tab.
fn trim(mut name: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    while let Some((_, rest)) = name.split_first().filter(|(first, _)| is_space(first)) {
        name = rest;
    }
    while let Some((_, rest)) = name.split_last().filter(|(last, _)| is_space(last)) {
        name = rest;
    }
    name
}

fn decode_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16);
    pairs.iter().map(|[high, low]| Some((value(*high)? << 4 | value(*low)?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(node: u8, name: &str) -> String {
        format!("{} {name}\n", format!("{node:02x}").repeat(20))
    }

    /// Merges files, the oldest first, and returns the tags as pairs of name and first byte.
    fn merged(files: &[String]) -> Vec<(String, u8)> {
        let mut merge = TagMerge::default();
        for (number, text) in (1..).zip(files) {
            merge.add_file([number; 20], text.as_bytes());
        }
        let tags = merge.into_tags(|node| node.0[0] != 0xee);
        tags.into_iter()
            .map(|(name, node)| (String::from_utf8_lossy(&name).into_owned(), node.0[0]))
            .collect()
    }

    fn tag(name: &str, node: u8) -> (String, u8) {
        (name.to_owned(), node)
    }

    #[test]
    fn the_last_line_counts_and_null_removes() {
        let text = [line(1, "a"), line(2, "a"), line(3, " b c\t"), line(4, "d"), line(0, "d")];
        assert_eq!(merged(&[text.concat()]), [tag("a", 2), tag("b c", 3)]);
        let odd = format!("no tag\n{} x\n0011 short\n\n{}", "g".repeat(40), line(0xee, "unknown"));
        assert!(merged(&[odd]).is_empty());
        assert_eq!(merged(&[line(1, "a").replace('\n', "\r\n")]), [tag("a", 1)]);
    }

    #[test]
    fn a_file_that_knows_of_the_other_wins() {
        let old = line(1, "a");
        let moved = old.clone() + &line(2, "a");
        assert_eq!(merged(&[old.clone(), moved.clone()]), [tag("a", 2)]);
        assert_eq!(merged(&[moved.clone(), old.clone()]), [tag("a", 2)], "whatever the order");
        let removed = moved.clone() + &line(2, "a") + &line(0, "a");
        assert!(merged(&[removed, moved.clone()]).is_empty());
        // Neither knows of the other: the newer head wins.
        assert_eq!(merged(&[moved, line(3, "a")]), [tag("a", 3)]);
        // Both know of the other: the longer past wins.
        let there_and_back = [line(1, "a"), line(2, "a"), line(1, "a")].concat();
        let there = [line(1, "a"), line(2, "a")].concat();
        assert_eq!(merged(&[there_and_back.clone(), there.clone()]), [tag("a", 1)]);
        assert_eq!(merged(&[there, there_and_back]), [tag("a", 1)]);
    }

    #[test]
    fn a_shared_file_counts_once() {
        let mut merge = TagMerge::default();
        merge.add_file([1; 20], line(1, "a").as_bytes());
        merge.add_file([2; 20], line(2, "a").as_bytes());
        merge.add_file([1; 20], line(1, "a").as_bytes());
        let tags = merge.into_tags(|_| true);
        assert_eq!(tags.get(b"a".as_slice()), Some(&Node([2; 20])));
    }
}
