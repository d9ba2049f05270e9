//! Tests of manifests that are made here, line by line.

use super::*;
use proptest::prelude::*;
use sha1::{Digest as _, Sha1};

fn hunk(start: usize, end: usize, data: &[u8]) -> Vec<u8> {
    let mut delta = Vec::new();
    [start, end, data.len()].iter().for_each(|n| delta.extend((*n as u32).to_be_bytes()));
    delta.extend_from_slice(data);
    delta
}

fn write(lines: &BTreeMap<u16, (u8, FileFlag)>) -> Vec<u8> {
    let mut text = Vec::new();
    for (path, (file, flag)) in lines {
        let path = format!("folder/{path:05}");
        let line = ManifestLine { path: path.as_bytes(), file: Node([*file; 20]), flag: *flag };
        line.write(&mut text);
    }
    text
}

/// The delta that replaces all between the common ends, by whole lines or by bytes.
fn delta_of(old: &[u8], new: &[u8], is_by_lines: bool) -> Vec<u8> {
    let mut prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = (&old[prefix..], &new[prefix..]);
    let mut suffix =
        tail.0.iter().rev().zip(tail.1.iter().rev()).take_while(|(a, b)| a == b).count();
    if is_by_lines {
        prefix = old[..prefix].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let end = &old[old.len() - suffix..];
        suffix = end.iter().position(|b| *b == b'\n').map_or(0, |at| end.len() - at - 1);
    }
    hunk(prefix, old.len() - suffix, &new[prefix..new.len() - suffix])
}

#[derive(Debug)]
struct NoError;

impl From<ManifestError> for NoError {
    fn from(error: ManifestError) -> NoError {
        panic!("{error}")
    }
}

/// A revision whose parent makes it another one than those with the same text.
fn header(parent: u8, base: Node, text: &[u8]) -> RevisionHeader {
    let (p1, p2) = (Node([parent; 20]), Node::NULL);
    let hash = Sha1::new().chain_update(p1.min(p2).0).chain_update(p1.max(p2).0);
    let node = Node(hash.chain_update(text).finalize().into());
    RevisionHeader { node, p1, p2, base, flags: 0 }
}

/// A list for manifests whose changesets give them the parents that they have.
fn manifests_of(headers: &[RevisionHeader]) -> Manifests {
    let mut parents = ExpectedParents::default();
    headers.iter().for_each(|header| parents.add(header.node, [header.p1, header.p2]));
    Manifests::new(parents)
}

fn flag() -> impl Strategy<Value = FileFlag> {
    prop::sample::select(vec![FileFlag::Plain, FileFlag::Executable, FileFlag::Link])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The texts made from changes are those made by deltas, also after they were dropped.
    #[test]
    fn texts_are_remade_from_their_changes(
        steps in proptest::collection::vec(
            (proptest::collection::btree_map(0..400_u16, (any::<u8>(), flag()), 0..300),
             any::<prop::sample::Index>(), any::<bool>()), 1..12),
    ) {
        let mut manifests = Manifests::default();
        let mut texts: Vec<Vec<u8>> = Vec::new();
        let mut nodes: Vec<Node> = Vec::new();
        for (number, (lines, base, is_by_lines)) in steps.iter().enumerate() {
            let text = write(lines);
            let base = (number > 0).then(|| base.index(number));
            let old = base.map_or(&[][..], |base| &texts[base]);
            let delta = delta_of(old, &text, *is_by_lines);
            let base = base.map_or(Node::NULL, |base| nodes[base]);
            let header = header(number as u8, base, &text);
            manifests.add::<NoError>(&header, &delta, &mut |_, _| Ok(None)).unwrap();
            nodes.push(header.node);
            let kept = manifests.text::<NoError>(number as u32, 0, &mut |_, _| Ok(None));
            prop_assert_eq!(kept.unwrap().to_bytes(), text.clone());
            texts.push(text);
        }
        manifests.texts.clear();
        for (number, text) in texts.iter().enumerate() {
            let remade = manifests.remake_text::<NoError>(number as u32, &mut |_, _| Ok(None));
            prop_assert_eq!(&remade.unwrap().to_bytes(), text);
        }
    }
}

/// A stored manifest whose text was dropped is read again, when one made from it is needed.
#[test]
fn dropped_texts_of_stored_manifests_are_read_again() {
    let lines = |paths: &[u16]| -> Vec<u8> {
        write(&paths.iter().map(|path| (*path, (1, FileFlag::Plain))).collect())
    };
    let (stored, text) = (Node([8; 20]), lines(&[1, 2]));
    let mut manifests = Manifests::default();
    let mut reads = 0;
    let mut read = |node: &Node, _: &IdMap<Node, ManifestText>| {
        reads += 1;
        Ok((*node == stored).then(|| ManifestText::new(&lines(&[1]))))
    };
    let new = header(1, stored, &text);
    let delta = delta_of(&lines(&[1]), &text, true);
    manifests.add::<ManifestError>(&new, &delta, &mut read).unwrap();
    manifests.texts.clear();
    manifests.stored_texts = StoredManifestTexts::default();
    let remade = manifests.text::<ManifestError>(0, 1, &mut read).unwrap();
    assert_eq!((remade.to_bytes(), reads), (text, 2));
}

#[test]
fn damaged_lines_are_refused() {
    let damaged: [&[u8]; 5] = [
        b"no newline",
        b"no node\n",
        b"\x000011223344556677889900112233445566778899\n",
        b"a\x00zz11223344556677889900112233445566778899\n",
        b"a\x000011223344556677889900112233445566778899t\n",
    ];
    for text in damaged {
        let mut manifests = Manifests::default();
        let delta = hunk(0, 0, text);
        let header = header(1, Node::NULL, text);
        let result = manifests.add::<ManifestError>(&header, &delta, &mut |_, _| Ok(None));
        assert!(matches!(result, Err(ManifestError::Damaged { .. })), "{text:?}");
    }
}

/// Flags switch no check off.
#[test]
fn manifests_with_flags_are_refused() {
    for bit in [0, 11, 13, 14, 15] {
        let mut manifests = Manifests::default();
        let header = RevisionHeader { flags: 1 << bit, ..header(1, Node::NULL, b"") };
        let result = manifests.add::<ManifestError>(&header, b"", &mut |_, _| Ok(None));
        assert!(matches!(result, Err(ManifestError::Unsupported { .. })), "{bit}");
    }
}

/// Paths of one letter each.
#[test]
fn lines_that_are_not_sorted_are_refused() {
    let lines = |paths: &str| -> Vec<u8> { paths.bytes().flat_map(|path| line(&[path])).collect() };
    let len = line(b"a").len();
    let base = lines("cegi");
    let first = header(1, Node::NULL, &base);
    let add_delta = |delta: &[u8]| {
        let mut manifests = Manifests::default();
        let mut read = |_: &Node, _: &IdMap<Node, ManifestText>| Ok(None);
        manifests.add::<ManifestError>(&first, &hunk(0, 0, &base), &mut read)?;
        let mut text = Vec::new();
        crate::delta::apply_delta(&base, delta, &mut text).unwrap();
        manifests.add::<ManifestError>(&header(2, first.node, &text), delta, &mut read)
    };
    let add = |hunks: &[(usize, usize, &str)]| {
        let hunks = hunks.iter();
        let delta = hunks.map(|(start, end, paths)| hunk(start * len, end * len, &lines(paths)));
        add_delta(&delta.collect::<Vec<_>>().concat())
    };
    for sorted in [
        &[(0, 0, "ab"), (1, 1, "d"), (4, 4, "kl")][..],
        &[(1, 2, ""), (2, 2, "ef"), (2, 3, "gh")],
        &[(1, 2, "h"), (2, 3, ""), (4, 4, "z")],
        &[(0, 4, "")],
        &[(0, 1, ""), (1, 4, "acz")],
    ] {
        add(sorted).unwrap();
    }
    for (hunks, path) in [
        (&[(0, 0, "ba")][..], "a"),
        (&[(0, 0, "bb")], "b"),
        (&[(0, 0, "d")], "c"),
        (&[(0, 0, "c")], "c"),
        (&[(1, 1, "b")], "b"),
        (&[(1, 1, "c")], "c"),
        (&[(1, 2, "h")], "g"),
        (&[(1, 2, "h"), (3, 3, "")], "g"),
        (&[(1, 1, "d"), (1, 2, "d")], "d"),
        (&[(4, 4, "h")], "h"),
    ] {
        let error = add(hunks).unwrap_err().to_string();
        let expected = format!("or a path is there twice: {path}");
        assert!(error.ends_with(&expected), "{hunks:?}: {error}");
    }
    // A hunk within a line.
    let error = add_delta(&hunk(len, len + 1, b"z")).unwrap_err().to_string();
    assert!(error.ends_with("or a path is there twice: g"), "{error}");
    // An empty line has no path.
    let error = add_delta(&hunk(0, 0, b"\n")).unwrap_err().to_string();
    assert!(error.ends_with("a line is not one of a file"), "{error}");
}

fn line(path: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    ManifestLine { path, file: Node([7; 20]), flag: FileFlag::Plain }.write(&mut line);
    line
}

/// Where no text is hashed yet, a forged one stands for a collision of SHA-1.
#[test]
fn two_texts_of_a_manifest_are_refused() {
    let mut manifests = Manifests::default();
    let header = header(1, Node::NULL, &line(b"a"));
    let mut add = |text: &[u8]| {
        manifests.add::<ManifestError>(&header, &hunk(0, 0, text), &mut |_, _| Ok(None))
    };
    add(&line(b"a")).unwrap();
    add(&line(b"a")).unwrap();
    let error = add(&line(b"b")).unwrap_err().to_string();
    let node = header.node;
    let expected = format!("two texts of manifests have the id {node} (a collision of SHA-1)");
    assert_eq!(error, expected);
}

/// A letter of a path that is another one makes no damaged line.
#[test]
fn texts_without_their_hash_are_refused() {
    let mut manifests = Manifests::default();
    let first = header(1, Node::NULL, &line(b"a"));
    manifests.add::<ManifestError>(&first, &hunk(0, 0, &line(b"b")), &mut |_, _| Ok(None)).unwrap();
    let checked = manifests.finish_checks();
    assert!(checked.is_err_and(|error| error.to_string().contains("does not have its hash")));
    // A text that is too long for its delta is checked when no other one follows.
    let long: Vec<u8> = (0..4000_u32).flat_map(|n| line(format!("a{n:05}").as_bytes())).collect();
    let first = header(1, Node::NULL, &long);
    let text = [long.as_slice(), &line(b"b")].concat();
    let second = header(2, first.node, &text);
    let mut manifests = manifests_of(&[first, second]);
    manifests.add::<ManifestError>(&first, &hunk(0, 0, &long), &mut |_, _| Ok(None)).unwrap();
    manifests.checks = HashChecks::default();
    let delta = hunk(long.len(), long.len(), &line(b"c"));
    manifests.add::<ManifestError>(&second, &delta, &mut |_, _| Ok(None)).unwrap();
    manifests.check_rest::<ManifestError>(&mut |_, _| Ok(None)).unwrap();
    let message = manifests.finish_checks().unwrap_err().to_string();
    assert_eq!(message, format!("manifest {}: its text does not have its hash", second.node));
}

/// Of texts without their hashes, the first one is named, and nothing waits for a thread that has
/// ended.
#[test]
fn the_first_text_without_its_hash_is_named() {
    for damaged in [&[0_u32][..], &[1], &[0, 1], &[6], &[2, 5], &[7, 30], &[39]] {
        let mut manifests = Manifests::default();
        let mut nodes = Vec::new();
        let added = (0..40_u32).try_for_each(|number| {
            let named = |prefix: &str| line(format!("{prefix}{number}").as_bytes());
            let text = named("a");
            let given = if damaged.contains(&number) { named("b") } else { text.clone() };
            let header = header(1, Node::NULL, &text);
            nodes.push(header.node);
            manifests.add::<ManifestError>(&header, &hunk(0, 0, &given), &mut |_, _| Ok(None))
        });
        let checked = manifests.finish_checks();
        let message = added.and(checked).unwrap_err().to_string();
        let node = nodes[damaged[0] as usize];
        assert_eq!(message, format!("manifest {node}: its text does not have its hash"));
    }
}

/// Of two long texts, the second one is made from the first one, and hashed.
#[test]
fn texts_without_a_check_of_their_own_are_counted() {
    let mut changes = Vec::new();
    let (mut text, mut base) = (Vec::new(), Node::NULL);
    for number in 0..3_u8 {
        let lines = if number == 0 { 0..4000 } else { 4000..4001 };
        let names = lines.map(|line: u32| format!("a{:05}", line + u32::from(number)));
        let added: Vec<u8> = names.flat_map(|name| line(name.as_bytes())).collect();
        let delta = hunk(text.len(), text.len(), &added);
        text.extend_from_slice(&added);
        let header = header(number + 1, base, &text);
        base = header.node;
        changes.push((header, delta));
    }
    let count_unhashed = |headers: &[RevisionHeader]| {
        let mut manifests = manifests_of(headers);
        for (header, delta) in &changes {
            manifests.add::<ManifestError>(header, delta, &mut |_, _| Ok(None)).unwrap();
            manifests.checks.spend_credit();
        }
        manifests.check_rest::<ManifestError>(&mut |_, _| Ok(None)).unwrap();
        manifests.finish_checks().unwrap();
        manifests.count_unhashed()
    };
    let headers: Vec<RevisionHeader> = changes.iter().map(|(header, _)| *header).collect();
    assert_eq!(count_unhashed(&headers), 1);
    // Those with other parents than their changesets give them are hashed.
    assert_eq!(count_unhashed(&headers[..1]), 0);
}
