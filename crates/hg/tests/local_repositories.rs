//! Repositories on disk, read by us and by `hg`.

use crate::mercurial::{Mercurial, each_edge_repository, edge_repositories, has_mercurial};
use crate::received_changes::{GroupName, ReceivedChanges, RevisionIds};
use larder_hg::{
    BundleContent, ChangeError, LocalPeer, Node, Peer as _, PeerRefs, Revision, TagMerge,
    open_bundle_content, unpack_store,
};
use std::collections::BTreeMap;
use std::path::Path;

fn node(digits: &str) -> Node {
    Node::from_hex(digits.as_bytes()).unwrap_or_else(|| panic!("{digits} is no node"))
}

fn open(path: &Path) -> LocalPeer {
    LocalPeer::open(path).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns what a server of `hg` says about the names in a repository; `None` if it fails.
fn ask_refs(repository: &Mercurial) -> Option<PeerRefs> {
    let commands = "branchmap\nheads\nlistkeys\nnamespace 9\nbookmarks";
    // Once to fill its caches, as the order of branches depends on them.
    repository.ask_server(commands);
    let answers = repository.ask_server(commands);
    let [branches, heads, bookmarks] = answers.as_slice() else { return None };
    let lines = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
    let nodes = |text: &str| text.split(' ').map(node).filter(|node| !node.is_null()).collect();
    let parse_branch = |line: &str| {
        let (name, heads) = line.split_once(' ').unwrap();
        (name.as_bytes().to_vec(), nodes(heads))
    };
    let parse_bookmark = |line: &str| {
        let (name, digits) = line.split_once('\t').unwrap();
        (name.as_bytes().to_vec(), node(digits))
    };
    Some(PeerRefs {
        branches: lines(branches).lines().map(parse_branch).collect(),
        heads: nodes(lines(heads).trim()),
        bookmarks: lines(bookmarks).lines().map(parse_bookmark).collect(),
    })
}

/// Returns what `hg` sends for the same request.
fn ask_changes(
    repository: &Mercurial,
    heads: &[Node],
    common: &[Node],
) -> BTreeMap<GroupName, Vec<RevisionIds>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle").into_os_string().into_string().unwrap();
    let path = repository.path.to_str().unwrap();
    let mut arguments: Vec<String> =
        ["debuggetbundle", path, &file, "-t", "none"].map(str::to_owned).to_vec();
    for (option, nodes) in [("-H", heads), ("-C", common)] {
        nodes.iter().for_each(|node| arguments.extend([option.to_owned(), node.to_string()]));
    }
    repository.run(&arguments);
    let text = repository.run(&["debugbundle", "--all", &file]);
    let mut groups: BTreeMap<GroupName, Vec<RevisionIds>> = BTreeMap::new();
    let mut name = None;
    for line in text.split(|byte| *byte == b'\n') {
        let fields: Vec<_> = line.split(|byte| *byte == b' ').map(Node::from_hex).collect();
        if let [Some(node), Some(p1), Some(p2), Some(link), Some(_), None] = fields[..] {
            groups.entry(name.clone()).or_default().push([node, p1, p2, link]);
        } else if line.starts_with(b"format: ") || line == b"changelog" || line.is_empty() {
        } else if line == b"manifest" && name.is_none() {
            name = Some(Vec::new());
        } else {
            name = Some(line.to_vec());
        }
    }
    groups.values_mut().for_each(|received| received.sort());
    groups
}

/// Compares what we read with what `hg` sends, for one request.
fn compare_changes(
    peer: &mut LocalPeer,
    received: &mut ReceivedChanges,
    repository: &Mercurial,
    heads: &[Node],
    common: &[Node],
) {
    received.receive(peer, heads, common).unwrap();
    let paths: Vec<_> = received.groups.iter().skip(2).map(|(path, _)| path).collect();
    assert!(paths.is_sorted(), "files are in the order of their paths");
    let mut expected = ask_changes(repository, heads, common);
    for (name, found) in received.sorted_groups() {
        let expected = expected.remove(&name).unwrap_or_default();
        let name = name.map(|name| String::from_utf8_lossy(&name).into_owned());
        assert_eq!(found, expected, "{:?}: {name:?} {heads:?} {common:?}", repository.path);
    }
    assert!(expected.is_empty(), "{:?}: {expected:?} {heads:?} {common:?}", repository.path);
}

/// Compares a repository with what `hg` says of it: names, all changes, and the changes between the
/// parents of each merge or head and all heads.
fn compare_repository(path: &Path) {
    let repository = Mercurial { path: path.to_owned() };
    let mut peer = open(path);
    let refs = peer.refs().unwrap();
    match ask_refs(&repository) {
        Some(expected) => assert_eq!(refs, expected, "{path:?}"),
        // A server cannot read the extra fields of a changeset there.
        None => assert!(path.ends_with("extranoval"), "{path:?}: no answer"),
    }
    let mut received = ReceivedChanges::default();
    compare_changes(&mut peer, &mut received, &repository, &refs.heads, &[]);
    let changesets: Vec<RevisionIds> = received.groups[0].1.clone();
    let mut asked = refs.heads.clone();
    asked.push(Node([7; 20]));
    let known = peer.find_known(&asked).unwrap();
    assert_eq!(known.iter().filter(|is_known| **is_known).count(), refs.heads.len(), "{path:?}");
    // Some states in the middle of the history: one of the small ones, three of the others.
    let step = if changesets.len() < 20 { changesets.len() + 1 } else { changesets.len() / 3 + 1 };
    for [known, ..] in changesets.iter().step_by(step) {
        compare_changes(&mut peer, &mut received, &repository, &refs.heads, &[*known]);
        compare_changes(&mut peer, &mut received, &repository, &[*known], &[]);
    }
}

#[test]
fn edge_repositories_are_read_as_a_server_sends_them() {
    if !has_mercurial("edge_repositories_are_read_as_a_server_sends_them") {
        return;
    }
    for path in each_edge_repository() {
        compare_repository(&path);
    }
}

#[test]
fn texts_are_those_of_debugdata() {
    if !has_mercurial("texts_are_those_of_debugdata") {
        return;
    }
    let repository = Mercurial { path: edge_repositories().join("cli") };
    let mut peer = open(&repository.path);
    let heads = peer.refs().unwrap().heads;
    let mut received = ReceivedChanges::default();
    received.receive(&mut peer, &heads, &[]).unwrap();
    for (option, name) in [("-c", None), ("-m", Some(Vec::new()))] {
        let revisions: Vec<_> =
            received.texts.keys().filter(|(group, _)| *group == name).step_by(9).collect();
        for key in revisions {
            let expected = repository.run(&["debugdata", option, &key.1.to_string()]);
            assert_eq!(received.texts[key], expected);
        }
    }
    let file = Some(b"a.txt".to_vec());
    for key in received.texts.keys().filter(|(group, _)| *group == file) {
        let expected = repository.run(&["debugdata", "a.txt", &key.1.to_string()]);
        assert_eq!(received.texts[key], expected);
    }
}

/// Copies a repository into another of some format, with long and odd names and large files.
fn make_format(folder: &Path, settings: &[&str]) -> Mercurial {
    let source = Mercurial { path: edge_repositories().join("cli") };
    let bundle = folder.join("all.hg").into_os_string().into_string().unwrap();
    source.run(&["bundle", "--all", "-t", "none", &bundle]);
    let repository = Mercurial::init(&folder.join("copy"), settings);
    repository.run(&["unbundle", &bundle]);
    repository.run(&["update", "-q", "default"]);
    let long = format!("{}/Folder./{}.TXT", "abcdefghij".repeat(9), "N_".repeat(40));
    let names = ["aux/con.txt", ".dot/ space", "Capital.i/x.d/y.hg", "a:b?c", &long];
    for name in names {
        repository.write(name, name.as_bytes());
    }
    let lines: String =
        (0..40_000).map(|number| format!("{}\n", number * 7_919 % 99_991)).collect();
    repository.write("large", lines.as_bytes());
    repository.commit("names", 1_400_000_000);
    repository.write("large", lines.replace("77", "seven").as_bytes());
    repository.write(&long, b"changed");
    repository.commit("changes", 1_400_000_001);
    repository
}

#[test]
fn all_formats_are_read() {
    if !has_mercurial("all_formats_are_read") {
        return;
    }
    let formats: &[&[&str]] = &[
        &[],
        &["format.use-share-safe=0", "format.revlog-compression=zlib"],
        &["format.revlog-compression=none", "format.bookmarks-in-store=1"],
        &["format.usegeneraldelta=0", "format.sparse-revlog=0"],
        &["format.dotencode=0", "format.use-dirstate-v2=1"],
        &["format.usefncache=0"],
        &["format.usestore=0", "format.use-share-safe=0"],
    ];
    for settings in formats {
        let folder = tempfile::tempdir().unwrap();
        let repository = make_format(folder.path(), settings);
        println!("{settings:?}");
        compare_repository(&repository.path);
    }
}

#[test]
fn the_oldest_revlogs_are_read() {
    if !has_mercurial("the_oldest_revlogs_are_read") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = Mercurial::init(folder.path(), &["format.use-share-safe=0"]);
    std::fs::write(folder.path().join(".hg/requires"), "store\nfncache\ndotencode\n").unwrap();
    for number in 0..5 {
        repository.write("a", format!("{}{number}\n", "line\n".repeat(100)).as_bytes());
        repository.write("b", b"same");
        repository.commit("change", number);
    }
    let index = std::fs::read(folder.path().join(".hg/store/00changelog.i")).unwrap();
    assert_eq!(index[..4], [0; 4], "format 0");
    compare_repository(folder.path());
}

/// A repository whose second changeset replaced an obsolete one with the same files.
fn make_amended(folder: &Path) -> Mercurial {
    let repository = Mercurial::init(folder, &[]);
    repository.write("a", b"1\n");
    repository.commit("root", 0);
    repository.write("a", b"1\n2\n");
    repository.write("b", b"b\n");
    repository.commit("replaced", 1);
    repository.run(&["commit", "--amend", "-m", "new", "-d", "2 0"]);
    repository
}

#[test]
fn file_revisions_of_hidden_changesets_are_found() {
    if !has_mercurial("file_revisions_of_hidden_changesets_are_found") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = make_amended(folder.path());
    repository.write("secret", b"s\n");
    repository.commit("secret", 3);
    repository.run(&["phase", "--force", "--secret", "."]);
    compare_repository(folder.path());
    let mut peer = open(folder.path());
    let heads = peer.refs().unwrap().heads;
    let mut received = ReceivedChanges::default();
    received.receive(&mut peer, &heads, &[]).unwrap();
    let names: Vec<_> = received.groups.iter().filter_map(|(name, _)| name.clone()).collect();
    assert_eq!(names, [b"".to_vec(), b"a".to_vec(), b"b".to_vec()]);
    assert_eq!(received.groups[2].1.len(), 2, "both revisions of a");
}

#[test]
fn obsolete_changesets_stay_visible_while_something_needs_them() {
    if !has_mercurial("obsolete_changesets_stay_visible_while_something_needs_them") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = make_amended(folder.path());
    let all = ["log", "--hidden", "-T", "{node}\n", "-r", "1"];
    let replaced = repository.lines(&all).remove(0);
    assert!(!open(folder.path()).find_known(&[node(&replaced)]).unwrap()[0]);
    for pin in [
        ["bookmark", "--hidden", "-r", &replaced, "mark"],
        ["tag", "--hidden", "--local", "mark", &format!("-r{replaced}")],
        ["update", "--hidden", "-q", "-r", &replaced],
    ] {
        repository.run(&pin);
        compare_repository(folder.path());
        assert!(open(folder.path()).find_known(&[node(&replaced)]).unwrap()[0], "{pin:?}");
        if pin[0] == "bookmark" {
            repository.run(&["bookmark", "-d", "mark"]);
        } else if pin[0] == "tag" {
            std::fs::remove_file(folder.path().join(".hg/localtags")).unwrap();
        }
    }
    repository.write("c", b"c\n");
    repository.run(&["commit", "-A", "-m", "orphan", "-d", "4 0"]);
    repository.run(&["update", "-q", "-r", "0"]);
    compare_repository(folder.path());
    assert!(open(folder.path()).find_known(&[node(&replaced)]).unwrap()[0]);
}

#[test]
fn shared_repositories_are_followed() {
    if !has_mercurial("shared_repositories_are_followed") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for share_safe in ["format.use-share-safe=0", "format.use-share-safe=1"] {
        let source = Mercurial::init(&folder.path().join(share_safe), &[share_safe]);
        source.write("a", b"1\n");
        source.commit("root", 0);
        source.run(&["bookmark", "mark"]);
        for (name, options) in [("plain", vec![]), ("relative", vec!["--relative", "-B"])] {
            let path = folder.path().join(format!("{share_safe}-{name}"));
            let share = Mercurial { path: path.clone() };
            let mut arguments = vec!["share"];
            arguments.extend(options);
            arguments.extend([source.path.to_str().unwrap(), path.to_str().unwrap()]);
            source.run(&arguments);
            share.run(&["log"]);
            compare_repository(&path);
        }
    }
}

#[test]
fn revisions_are_looked_up_as_by_a_server() {
    if !has_mercurial("revisions_are_looked_up_as_by_a_server") {
        return;
    }
    let repository = Mercurial { path: edge_repositories().join("cli") };
    let first = repository.lines(&["log", "-r", "0", "-T", "{node}\n"]).remove(0);
    let secret = repository.lines(&["log", "-r", "secret()", "-T", "{node}\n"]).remove(0);
    let names = [
        "tip",
        "null",
        "0",
        "-1",
        "7",
        "007",
        "100000",
        "stable",
        "default",
        "feature/with-slash",
        "ünïcode-branch",
        "@",
        "bøøk",
        "feature/x",
        "no such name",
        &first,
        &first[..12],
        &first[..9],
        "a",
        "0000",
        &secret,
        &secret[..12],
        &first.to_uppercase(),
    ];
    compare_lookups(&repository, &names);
    let folder = tempfile::tempdir().unwrap();
    compare_lookups(
        &make_tagged(folder.path()),
        &["v1", "moved", "stable", "default", "gone", "local", "both", "unknown", "lost", "v"],
    );
}

/// Makes a repository with tags, one with the name of a branch, and with local ones.
fn make_tagged(folder: &Path) -> Mercurial {
    let repository = Mercurial::init(folder, &[]);
    for number in 0..2 {
        repository.write("a", format!("{number}\n").as_bytes());
        repository.commit("change", number);
    }
    let tag = |arguments: &[&str]| {
        let fixed = ["tag", "-f", "-u", "user", "-d", "9 0"];
        repository.run(&[fixed.as_slice(), arguments].concat());
    };
    tag(&["-r", "0", "v1", "moved", "gone", "both"]);
    repository.run(&["branch", "-q", "stable"]);
    repository.write("a", b"stable\n");
    repository.commit("change", 3);
    tag(&["-r", "0", "stable"]);
    repository.run(&["update", "-q", "-C", "-r", "2"]);
    tag(&["-r", "1", "moved"]);
    tag(&["--remove", "gone"]);
    let file = repository.path.join(".hgtags");
    let text = std::fs::read_to_string(&file).unwrap();
    repository.write(".hgtags", format!("{text}{} unknown\n", "1".repeat(40)).as_bytes());
    repository.commit("unknown", 10);
    tag(&["--local", "-r", "1", "local", "both"]);
    let file = repository.path.join(".hg/localtags");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}{} lost\n", "2".repeat(40))).unwrap();
    repository
}

/// Compares what names are with the answers of a server.
fn compare_lookups(repository: &Mercurial, names: &[&str]) {
    let mut peer = open(&repository.path);
    for name in names {
        let question = format!("lookup\nkey {}\n{name}", name.len());
        let answers = repository.ask_server(&question);
        let answer = answers.first().unwrap_or_else(|| panic!("{name}: no answer"));
        let answer = String::from_utf8_lossy(answer).into_owned();
        let expected = answer.strip_prefix("1 ").map(|digits| node(digits.trim()));
        match (peer.lookup(name.as_bytes()), expected) {
            (Ok(found), Some(expected)) => assert_eq!(found, expected, "{name}"),
            (Err(ChangeError::Aborted { .. }), None) => {}
            (found, _) => panic!("{name}: {found:?}, but a server says {answer}"),
        }
    }
}

#[test]
fn censored_revisions_keep_their_flag() {
    if !has_mercurial("censored_revisions_keep_their_flag") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = Mercurial::init(folder.path(), &[]);
    for number in 0..4 {
        repository.write("a", format!("{}{number}\n", "password\n".repeat(30)).as_bytes());
        repository.commit("change", number);
    }
    repository.run(&["--config", "extensions.censor=", "censor", "-r", "1", "a"]);
    let mut peer = open(folder.path());
    let heads = peer.refs().unwrap().heads;
    let mut received = ReceivedChanges::default();
    received.receive(&mut peer, &heads, &[]).unwrap();
    let censored = received.groups[2].1[1][0];
    assert_eq!(received.flags, BTreeMap::from([(censored, Revision::CENSORED)]));
}

#[test]
fn a_reader_ignores_what_is_added_and_notices_what_is_removed() {
    if !has_mercurial("a_reader_ignores_what_is_added_and_notices_what_is_removed") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = Mercurial::init(folder.path(), &[]);
    let commit = |number: u32| {
        repository.write("a", format!("{number}\n").as_bytes());
        repository.commit("change", number)
    };
    (0..5).for_each(|number| drop(commit(number)));
    let mut peer = open(folder.path());
    let heads = peer.refs().unwrap().heads;
    commit(5);
    let mut received = ReceivedChanges::default();
    received.receive(&mut peer, &heads, &[]).unwrap();
    assert!(received.groups.iter().all(|(_, revisions)| revisions.len() == 5));
    // The newest revision that the reader knows moves to another number.
    repository.run(&["--config", "extensions.strip=", "strip", "--no-backup", "-r", "3"]);
    let error = received.receive(&mut peer, &heads, &[]).unwrap_err();
    assert!(error.to_string().contains("were removed while they were read"), "{error}");
}

#[test]
fn repositories_with_unknown_features_are_refused() {
    if !has_mercurial("repositories_with_unknown_features_are_refused") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    Mercurial::init(folder.path(), &["experimental.treemanifest=1"]);
    let error = LocalPeer::open(folder.path()).map(|_| ()).unwrap_err();
    assert!(error.to_string().ends_with("not supported: treemanifest"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let error = LocalPeer::open(empty.path()).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("is not a Mercurial repository"), "{error}");
}

#[test]
fn an_empty_repository_has_no_heads() {
    if !has_mercurial("an_empty_repository_has_no_heads") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    Mercurial::init(folder.path(), &[]);
    let mut peer = open(folder.path());
    assert_eq!(peer.refs().unwrap(), PeerRefs::default());
    let mut received = ReceivedChanges::default();
    received.receive(&mut peer, &[], &[]).unwrap();
    assert!(received.sorted_groups().is_empty());
}

/// Without it, all branches would seem to be gone.
#[test]
fn a_store_without_its_changelog_is_damaged() {
    if !has_mercurial("a_store_without_its_changelog_is_damaged") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = make_format(folder.path(), &[]);
    let store = repository.path.join(".hg/store");
    let index = store.join("00changelog.i");
    let check = |state: &str| {
        let error = LocalPeer::open(&repository.path).map(|_| ()).expect_err(state).to_string();
        assert!(error.ends_with("00changelog.i: it is empty or missing"), "{state}: {error}");
        assert!(LocalPeer::open_store(&store).is_err(), "{state}");
    };
    std::fs::write(&index, b"").unwrap();
    check("empty");
    std::fs::remove_file(&index).unwrap();
    check("missing");
    std::fs::remove_file(store.join("00manifest.i")).unwrap();
    check("file logs alone");
    for name in ["data", "dh"] {
        let _absent = std::fs::remove_dir_all(store.join(name));
    }
    assert_eq!(open(&repository.path).refs().unwrap().heads, []);
}

/// Unpacks the files of a store that `hg` sends, and compares the changes read from them.
fn compare_stream(repository: &Mercurial, folder: &Path) {
    let file = folder.join("stream.hg").into_os_string().into_string().unwrap();
    let allowed = "server.uncompressedallowsecret=1";
    repository.run(&["--config", allowed, "bundle", "-a", "-t", "zstd-v2;stream=v2", &file]);
    let bytes = std::io::BufReader::new(std::fs::File::open(&file).unwrap());
    let BundleContent::Store(mut part) = open_bundle_content(Box::new(bytes)).unwrap() else {
        panic!("{file} has no store");
    };
    let store = folder.join("store");
    std::fs::create_dir(&store).unwrap();
    unpack_store(&mut part, &store).unwrap();
    let mut peer = open(&repository.path);
    let mut unpacked = LocalPeer::open_store(&store).unwrap();
    let refs = peer.refs().unwrap();
    assert_eq!(unpacked.refs().unwrap(), PeerRefs { bookmarks: Vec::new(), ..refs.clone() });
    let [mut expected, mut found] = [ReceivedChanges::default(), ReceivedChanges::default()];
    expected.receive(&mut peer, &refs.heads, &[]).unwrap();
    found.receive(&mut unpacked, &refs.heads, &[]).unwrap();
    assert_eq!(found.groups, expected.groups);
}

#[test]
fn streams_of_stores_are_read_as_repositories() {
    if !has_mercurial("streams_of_stores_are_read_as_repositories") {
        return;
    }
    // Without markers of obsolescence, which `hg bundle` refuses to write.
    for name in ["raw", "ref-special", "dblslash", "abspath", "dotdot"] {
        let folder = tempfile::tempdir().unwrap();
        compare_stream(&Mercurial { path: edge_repositories().join(name) }, folder.path());
    }
    let folder = tempfile::tempdir().unwrap();
    compare_stream(&make_format(folder.path(), &[]), folder.path());
}

#[test]
fn tags_are_those_of_hg() {
    if !has_mercurial("tags_are_those_of_hg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = Mercurial::init(folder.path(), &[]);
    let commit = |name: &str, number: u32| {
        repository.write(name, format!("{number}\n").as_bytes());
        repository.commit("change", number)
    };
    (0..4).for_each(|number| drop(commit("a", number)));
    let tag = |arguments: &[&str]| {
        let fixed = ["tag", "-f", "-u", "user", "-d", "9 0"];
        repository.run(&[fixed.as_slice(), arguments].concat());
    };
    // Two heads that move and remove tags in turn.
    ["both", "removed", "with space"].iter().for_each(|name| tag(&["-r", "0", name]));
    let first = repository.lines(&["log", "-r", ".", "-T", "{node}\n"]).remove(0);
    tag(&["-r", "1", "both"]);
    tag(&["-r", "2", "both"]);
    tag(&["--remove", "removed"]);
    repository.run(&["update", "-q", &first]);
    tag(&["-r", "3", "both"]);
    tag(&["-r", "3", "only"]);
    repository.run(&["update", "-q", &first]);
    commit("b", 20);
    compare_tags(&repository);
    for name in ["cli", "raw"] {
        compare_tags(&Mercurial { path: edge_repositories().join(name) });
    }
}

/// Compares the tags of the files at all heads with those of `hg`.
fn compare_tags(repository: &Mercurial) {
    let mut peer = open(&repository.path);
    let heads = peer.refs().unwrap().heads;
    let mut received = ReceivedChanges::default();
    received.receive(&mut peer, &heads, &[]).unwrap();
    let mut merge = TagMerge::default();
    for head in heads.iter().rev() {
        let text = &received.texts[&(None, *head)];
        let manifest = node(str::from_utf8(&text[..40]).unwrap());
        let Some(manifest) = received.texts.get(&(Some(Vec::new()), manifest)) else { continue };
        let mut lines = manifest.split(|byte| *byte == b'\n');
        let Some(line) = lines.find_map(|line| line.strip_prefix(b".hgtags\0")) else { continue };
        let file = Node::from_hex(&line[..40]).unwrap();
        merge.add_file(file.0, &received.texts[&(Some(b".hgtags".to_vec()), file)]);
    }
    let tags = merge.into_tags(|node| received.texts.contains_key(&(None, *node)));
    let served = ["--hidden", "tags", "-T", "{node} {type} {tag}\n"];
    let expected: BTreeMap<Vec<u8>, Node> = repository
        .lines(&served)
        .iter()
        .filter(|line| !line.ends_with(" tip") && !line.contains(" local "))
        .map(|line| (line.as_bytes()[42..].to_vec(), node(&line[..40])))
        .collect();
    assert_eq!(tags, expected, "{:?}", repository.path);
    assert!(repository.path.ends_with("raw") || !tags.is_empty());
}

/// Reads everything, whatever the texts are.
fn read_all(path: &Path) -> Result<usize, ChangeError> {
    let mut peer = LocalPeer::open(path)?;
    let heads = peer.refs()?.heads;
    let mut changes = peer.changes(&heads, &[])?;
    let mut revision = Revision::empty();
    let mut count = 0;
    for _ in ["changelog", "manifest"] {
        while changes.next_revision(&mut revision)? {
            count += 1;
        }
    }
    while changes.next_file()?.is_some() {
        while changes.next_revision(&mut revision)? {
            count += 1;
        }
    }
    Ok(count)
}

#[test]
fn damaged_stores_are_errors() {
    if !has_mercurial("damaged_stores_are_errors") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = make_amended(folder.path());
    repository.write("large", "some lines\n".repeat(40_000).as_bytes());
    repository.write("large", &(0..60_000_u32).flat_map(u32::to_be_bytes).collect::<Vec<_>>());
    repository.commit("large", 5);
    repository.run(&["bookmark", "mark"]);
    let complete = read_all(folder.path()).unwrap();
    let names = [
        "00changelog.i",
        "00manifest.i",
        "data/a.i",
        "data/large.i",
        "data/large.d",
        "phaseroots",
        "obsstore",
        "fncache",
        "requires",
        "../bookmarks",
        "../dirstate",
        "../requires",
    ];
    let (mut errors, mut number) = (0, 1_u64);
    let mut next = |limit: usize| {
        number =
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) as usize % limit.max(1)
    };
    for name in names {
        let path = folder.path().join(".hg/store").join(name);
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        for round in 0..60 {
            let mut damaged = bytes.clone();
            if round % 4 == 0 {
                damaged.truncate(next(bytes.len()));
            } else {
                // Most of the interesting numbers are at the beginning.
                let place = next(if round % 2 == 0 { bytes.len() } else { bytes.len().min(150) });
                damaged[place] = if round % 3 == 0 { 0xff } else { next(256) as u8 };
            }
            std::fs::write(&path, damaged).unwrap();
            errors += usize::from(read_all(folder.path()).is_err());
        }
        std::fs::write(&path, bytes).unwrap();
    }
    assert_eq!(read_all(folder.path()).unwrap(), complete);
    assert!(errors > 100, "{errors}");
}

#[test]
fn a_wrong_cache_of_branches_is_not_believed() {
    if !has_mercurial("a_wrong_cache_of_branches_is_not_believed") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = make_format(folder.path(), &[]);
    compare_repository(&repository.path);
    let caches = repository.path.join(".hg/cache");
    let refs = open(&repository.path).refs().unwrap();
    let names = std::fs::read(caches.join("rbc-names-v1")).unwrap();
    let mut other: Vec<&[u8]> = names.split(|byte| *byte == 0).collect();
    other.reverse();
    std::fs::write(caches.join("rbc-names-v1"), other.join(&0)).unwrap();
    assert_eq!(open(&repository.path).refs().unwrap(), refs, "other numbers");
    std::fs::remove_dir_all(&caches).unwrap();
    assert_eq!(open(&repository.path).refs().unwrap(), refs, "no cache");
}
