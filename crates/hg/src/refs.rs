//! The refs of a Mercurial repository, by the rules of git-cinnabar (docs/hg.md).
//!
//! A branch may have several heads: the newest open one is its `tip`, the others are named by their
//! nodes. Names that git refuses are percent-encoded, and so are the slashes of a name that would
//! be a folder and a ref at once; no head is left out.

use crate::object_id::Node;
use crate::peer::{BranchHeads, PeerRefs};
use sha1::{Digest as _, Sha1};
use std::collections::{BTreeMap, BTreeSet};

/// The folder of all refs of this crate: its metadata, and notes of imports and conversions.
pub const PRIVATE_PREFIX: &str = "refs/larder/hg/";

/// The refs that git does not take, or takes for another one, although their names are valid.
const RESERVED_REFS: [&[u8]; 2] = [b"refs/heads/HEAD", b"refs/tags/HEAD"];

/// Which refs a repository has, as in the setting `cinnabar.refs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefStyle {
    /// Whether bookmarks are refs.
    pub bookmarks: bool,
    /// Whether the heads of a branch that are not its tip are refs.
    pub heads: bool,
    /// Whether the tips of branches are refs.
    pub tips: bool,
}

impl RefStyle {
    /// All refs.
    pub const ALL: RefStyle = RefStyle { bookmarks: true, heads: true, tips: true };

    /// Reads a value of `cinnabar.refs`: words with commas between them; an empty value is all.
    /// `None` if one of them is none of `all` (or `true`), `bookmarks`, `heads`, `tips`.
    pub fn parse(value: &str) -> Option<RefStyle> {
        if value.trim().is_empty() {
            return Some(RefStyle::ALL);
        }
        let mut style = RefStyle { bookmarks: false, heads: false, tips: false };
        for word in value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "all" | "true" => style = RefStyle::ALL,
                "bookmarks" => style.bookmarks = true,
                "heads" => style.heads = true,
                "tips" => style.tips = true,
                _ => return None,
            }
        }
        Some(style)
    }

    fn has_several(self) -> bool {
        usize::from(self.bookmarks) + usize::from(self.heads || self.tips) > 1
    }
}

/// The refs of a repository, and the one that HEAD names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteRefs {
    /// Names and changesets, sorted by name.
    pub refs: BTreeMap<Vec<u8>, Node>,
    /// The ref that is checked out.
    pub head: Option<Vec<u8>>,
}

/// Returns the refs of a repository. `is_closed`: whether a head is known to close its branch.
pub fn remote_refs(
    peer: &PeerRefs,
    style: RefStyle,
    mut is_closed: impl FnMut(&Node) -> bool,
) -> RemoteRefs {
    let mut names = Names { refs: Vec::new(), branch_head: None, bookmark_head: None };
    let main_branch = main_branch(peer);
    for branch in &peer.branches {
        let is_main = main_branch == Some(branch.0.as_slice());
        names.add_branch(branch, is_main, style, &mut is_closed);
    }
    if style.bookmarks {
        for (bookmark, node) in &peer.bookmarks {
            let folder: &[u8] =
                if style.has_several() { b"refs/heads/bookmarks/" } else { b"refs/heads/" };
            let place = names.refs.len();
            let (name, suffix) = (bookmark.clone(), Vec::new());
            names.refs.push(NameParts { folder, name, suffix, node: *node });
            if bookmark == b"@" {
                names.bookmark_head = Some(place);
            }
        }
    }
    names.finish()
}

/// Returns the branch that is checked out where there is no bookmark for that: `default`, else the
/// branch of the newest changeset.
fn main_branch(peer: &PeerRefs) -> Option<&[u8]> {
    let find = |is_main: &dyn Fn(&BranchHeads) -> bool| {
        peer.branches.iter().find(|branch| is_main(branch)).map(|(name, _)| name.as_slice())
    };
    find(&|(name, _)| name == b"default").or_else(|| {
        let newest = peer.heads.first()?;
        find(&|(_, heads)| heads.contains(newest))
    })
}

/// Returns the refs of tags. Like those of branches, they have valid names, and none is left out.
pub fn tag_refs(tags: &BTreeMap<Vec<u8>, Node>) -> BTreeMap<Vec<u8>, Node> {
    let tags = tags.iter().map(|(name, node)| tag_parts(name, *node));
    let names = Names { refs: tags.collect(), branch_head: None, bookmark_head: None };
    names.finish().refs
}

/// Returns the ref of a tag that clashes with no other one.
pub(crate) fn tag_ref(name: &[u8]) -> Vec<u8> {
    tag_parts(name, Node::NULL).join(&encode_name(name))
}

fn tag_parts(name: &[u8], node: Node) -> NameParts {
    NameParts { folder: b"refs/tags/", name: name.to_vec(), suffix: Vec::new(), node }
}

/// The parts of the name of a ref, and its changeset.
struct NameParts {
    folder: &'static [u8],
    /// The name of the branch, the bookmark or the tag.
    name: Vec<u8>,
    suffix: Vec<u8>,
    node: Node,
}

impl NameParts {
    fn join(&self, name: &[u8]) -> Vec<u8> {
        let full = [self.folder, name, &self.suffix].concat();
        if RESERVED_REFS.contains(&full.as_slice()) {
            return [self.folder, b"%48EAD"].concat();
        }
        match full.strip_suffix(b".") {
            Some(start) => [start, b"%2E"].concat(),
            None => full,
        }
    }
}

/// The names of refs, before they are made valid.
struct Names {
    refs: Vec<NameParts>,
    /// The place of the tip of the main branch, or of a head of it if tips are no refs.
    branch_head: Option<usize>,
    bookmark_head: Option<usize>,
}

impl Names {
    fn add_branch(
        &mut self,
        (branch, heads): &BranchHeads,
        is_main: bool,
        style: RefStyle,
        is_closed: &mut impl FnMut(&Node) -> bool,
    ) {
        let open = heads.iter().rposition(|head| !is_closed(head));
        let Some(tip) = open.or_else(|| (!heads.is_empty()).then_some(0)) else { return };
        let folder: &[u8] =
            if style.has_several() { b"refs/heads/branches/" } else { b"refs/heads/" };
        for (number, head) in heads.iter().enumerate() {
            let is_tip = number == tip;
            let suffix = match (is_tip && style.tips, style.heads) {
                (true, true) => b"/tip".to_vec(),
                (true, false) => Vec::new(),
                (false, true) => [b"/".as_slice(), &head.to_hex()].concat(),
                (false, false) => continue,
            };
            if is_main && (is_tip || self.branch_head.is_none()) {
                self.branch_head = Some(self.refs.len());
            }
            self.refs.push(NameParts { folder, name: branch.clone(), suffix, node: *head });
        }
    }

    fn finish(self) -> RemoteRefs {
        let plain: Vec<Vec<u8>> =
            self.refs.iter().map(|parts| parts.join(&encode_name(&parts.name))).collect();
        // A name that is a folder for another one.
        let folders: BTreeSet<&[u8]> = plain.iter().flat_map(|name| folders_of(name)).collect();
        let clashing: Vec<&Vec<u8>> =
            plain.iter().filter(|name| folders.contains(name.as_slice())).collect();
        let mut refs = BTreeMap::new();
        let mut final_names = Vec::with_capacity(plain.len());
        for (parts, plain) in self.refs.iter().zip(&plain) {
            let is_below = |folder: &&Vec<u8>| {
                plain.strip_prefix(folder.as_slice()).is_some_and(|rest| rest.starts_with(b"/"))
            };
            let mut full = plain.clone();
            if clashing.iter().any(is_below) {
                full = parts.join(&flatten(&encode_name(&parts.name), &parts.name));
            }
            while refs.contains_key(&full) {
                full.extend_from_slice(b"%");
            }
            refs.insert(full.clone(), parts.node);
            final_names.push(full);
        }
        let head = self.bookmark_head.or(self.branch_head);
        RemoteRefs { refs, head: head.and_then(|place| final_names.get(place).cloned()) }
    }
}

/// Returns the folders above a ref.
pub(crate) fn folders_of(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    memchr::memchr_iter(b'/', name).filter_map(|slash| name.get(..slash))
}

/// Percent-encodes what git does not take in a part of a ref (git-check-ref-format(1)).
pub(crate) fn encode_name(name: &[u8]) -> Vec<u8> {
    if name.is_empty() {
        // No other name is encoded so.
        return b"%".to_vec();
    }
    let parts: Vec<Vec<u8>> = name.split(|byte| *byte == b'/').map(encode_part).collect();
    let joined = parts.join(&b'/');
    let has_empty = joined.starts_with(b"/") || joined.ends_with(b"/") || has_empty(&joined);
    if joined.len() <= MAX_NAME_BYTES && !has_empty {
        return joined;
    }
    // An empty part, or too many: the slashes themselves are encoded.
    flatten(&joined, name)
}

/// Encodes the slashes of an encoded name, which is one part then.
fn flatten(encoded: &[u8], name: &[u8]) -> Vec<u8> {
    shorten(encoded.split(|byte| *byte == b'/').collect::<Vec<_>>().join(b"%2F".as_slice()), name)
}

/// Shortens an encoded part if it is too long. Two names that begin in the same way stay apart.
fn shorten(mut encoded: Vec<u8>, name: &[u8]) -> Vec<u8> {
    if encoded.len() > MAX_PART_BYTES {
        let hash = Sha1::digest(name);
        let digits: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        encoded.truncate(MAX_PART_BYTES - 1 - digits.len());
        encoded.push(b'%');
        encoded.extend_from_slice(digits.as_bytes());
    }
    encoded
}

fn has_empty(name: &[u8]) -> bool {
    memchr::memmem::find(name, b"//").is_some()
}

fn encode_part(part: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(part.len());
    for (place, byte) in part.iter().copied().enumerate() {
        let next = part.get(place + 1).copied();
        let is_refused = match byte {
            0..=b' ' | 0x7f | b'~' | b'^' | b':' | b'?' | b'*' | b'[' | b'\\' => true,
            b'.' => place == 0 || next == Some(b'.'),
            b'@' => next == Some(b'{'),
            _ => false,
        };
        if is_refused {
            encoded.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            encoded.push(byte);
        }
    }
    if let Some(start) = encoded.strip_suffix(b".lock") {
        encoded = [start, b"%2Elock"].concat();
    }
    shorten(encoded, part)
}

/// The longest part of a ref: files cannot have names of more than 255 bytes, and git makes one
/// with `.lock` at its end.
const MAX_PART_BYTES: usize = 240;
/// The longest name: a system takes no paths of 4096 bytes, and git's have folders before the name.
const MAX_NAME_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn names(refs: &RemoteRefs) -> Vec<String> {
        refs.refs.keys().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    fn node(byte: u8) -> Node {
        Node([byte; 20])
    }

    /// A branch in Cyrillic has three characters for each byte, and files have names of 255 bytes.
    #[test]
    fn long_names_are_shortened_and_stay_apart() {
        let long = |end: &str| format!("{}{end}", "%D0%98".repeat(60)).into_bytes();
        let branches = vec![
            (long("a"), vec![node(1)]),
            (long("b"), vec![node(2)]),
            (vec![b'c'; 240], vec![node(3)]),
        ];
        let peer = PeerRefs { branches, ..PeerRefs::default() };
        let refs = names(&remote_refs(&peer, RefStyle::ALL, |_| false));
        assert_eq!(refs.len(), 3, "{refs:?}");
        for name in refs {
            assert!(name.split('/').all(|part| part.len() <= MAX_PART_BYTES), "{name}");
        }
    }

    #[test]
    fn a_branch_has_a_tip_and_other_heads() {
        let branches = vec![(b"default".to_vec(), vec![node(1), node(2), node(3)])];
        let bookmarks = vec![(b"@".to_vec(), node(1))];
        let peer = PeerRefs { branches, heads: Vec::new(), bookmarks };
        let refs = remote_refs(&peer, RefStyle::ALL, |head| *head == node(3));
        let hex = |byte: u8| format!("refs/heads/branches/default/{}", node(byte));
        let tip = "refs/heads/branches/default/tip".to_string();
        assert_eq!(
            names(&refs),
            [hex(1), hex(3), tip.clone(), "refs/heads/bookmarks/@".into()]
                .into_iter()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
        );
        assert_eq!(refs.refs.get(tip.as_bytes()), Some(&node(2)));
        assert_eq!(refs.head.as_deref(), Some(&b"refs/heads/bookmarks/@"[..]));
        let style = RefStyle::parse("tips").expect("a style");
        assert_eq!(names(&remote_refs(&peer, style, |_| false)), ["refs/heads/default"]);
        let style = RefStyle::parse("bookmarks").expect("a style");
        assert_eq!(names(&remote_refs(&peer, style, |_| false)), ["refs/heads/@"]);
        let style = RefStyle::parse("bookmarks,tips").expect("a style");
        let both = names(&remote_refs(&peer, style, |_| false));
        assert_eq!(both, ["refs/heads/bookmarks/@", "refs/heads/branches/default"]);
        assert_eq!(RefStyle::parse("tops"), None);
        assert_eq!(RefStyle::parse(""), Some(RefStyle::ALL));
    }

    #[test]
    fn head_is_the_main_branch() {
        let branch = |name: &str, heads: &[u8]| {
            (name.as_bytes().to_vec(), heads.iter().copied().map(node).collect::<Vec<Node>>())
        };
        let head = |branches: &[BranchHeads], newest: u8, style: &str| {
            let (branches, heads) = (branches.to_vec(), vec![node(newest), node(1)]);
            let peer = PeerRefs { branches, heads, bookmarks: Vec::new() };
            let style = RefStyle::parse(style).expect("a style");
            let refs = remote_refs(&peer, style, |head| *head == node(4));
            let name = refs.head.map(|name| String::from_utf8(name).expect("a text"));
            name.map(|name| name.trim_start_matches("refs/heads/").to_owned())
        };
        let some = |name: &str| Some(name.to_owned());
        let without_default = [branch("a", &[1]), branch("b", &[2, 4]), branch("c", &[3])];
        assert_eq!(head(&without_default, 4, "all"), some("branches/b/tip"));
        assert_eq!(head(&without_default, 3, "tips"), some("c"));
        assert_eq!(head(&without_default, 2, "heads"), Some(format!("b/{}", node(2))));
        assert_eq!(head(&without_default, 2, "bookmarks"), None);
        let with_default = [&without_default[..], &[branch("default", &[5])]].concat();
        assert_eq!(head(&with_default, 4, "all"), some("branches/default/tip"));
        assert_eq!(head(&[], 1, "all"), None);
    }

    #[test]
    fn refused_names_are_encoded() {
        for (name, expected) in [
            ("a b", "a%20b"),
            ("a..b", "a%2E.b"),
            (".a/.b", "%2Ea/%2Eb"),
            ("a.lock", "a%2Elock"),
            ("a//b", "a%2F%2Fb"),
            ("/a", "%2Fa"),
            ("a/", "a%2F"),
            ("x@{y", "x%40{y"),
            ("é~1", "é%7E1"),
            ("", "%"),
        ] {
            let encoded = encode_name(name.as_bytes());
            assert_eq!(String::from_utf8_lossy(&encoded), expected, "{name}");
        }
    }

    /// git takes no branch HEAD, and says of a tag of that name that it is ambiguous.
    #[test]
    fn a_name_is_not_that_of_head() {
        let branches = vec![(b"HEAD".to_vec(), vec![node(1)])];
        let bookmarks = vec![(b"HEAD".to_vec(), node(2))];
        let peer = PeerRefs { branches, heads: Vec::new(), bookmarks };
        let listed = |style: &str| {
            names(&remote_refs(&peer, RefStyle::parse(style).expect("a style"), |_| false))
        };
        assert_eq!(listed("tips"), ["refs/heads/%48EAD"]);
        assert_eq!(listed("bookmarks"), ["refs/heads/%48EAD"]);
        assert_eq!(listed("tips,heads"), ["refs/heads/HEAD/tip"]);
        let both = ["refs/heads/bookmarks/HEAD", "refs/heads/branches/HEAD"];
        assert_eq!(listed("bookmarks,tips"), both);
        let tags = tag_refs(&[(b"HEAD".to_vec(), node(1))].into_iter().collect());
        assert_eq!(tags.into_keys().collect::<Vec<_>>(), [b"refs/tags/%48EAD"]);
    }

    #[test]
    fn folders_and_refs_do_not_clash() {
        let bookmark = |name: &str, byte| (name.as_bytes().to_vec(), node(byte));
        let bookmarks = vec![bookmark("b", 1), bookmark("b/c", 2), bookmark("d/e.", 3)];
        let branches = vec![(b"x".to_vec(), vec![node(4)]), (b"x/tip".to_vec(), vec![node(5)])];
        let peer = PeerRefs { branches, heads: Vec::new(), bookmarks };
        let refs = remote_refs(&peer, RefStyle::ALL, |_| false);
        assert_eq!(
            names(&refs),
            [
                "refs/heads/bookmarks/b",
                "refs/heads/bookmarks/b%2Fc",
                "refs/heads/bookmarks/d/e%2E",
                "refs/heads/branches/x%2Ftip/tip",
                "refs/heads/branches/x/tip",
            ]
        );
    }

    #[test]
    fn tags_have_valid_names_as_well() {
        let names = ["v1.0", "v 2", "v~bad^git", "double..dot", "v1.0.lock", "a", "a/b"];
        let tags = names.iter().map(|name| (name.as_bytes().to_vec(), node(1))).collect();
        let refs: Vec<Vec<u8>> = tag_refs(&tags).into_keys().collect();
        let expected =
            ["a", "a%2Fb", "double%2E.dot", "v%202", "v1.0", "v1.0%2Elock", "v%7Ebad%5Egit"];
        let mut expected = expected.map(|name| format!("refs/tags/{name}").into_bytes());
        expected.sort();
        assert_eq!(refs, expected);
    }
}
