//! A clone and many fetches at random points equal one clone.

use crate::checks::faults;
use crate::golden_vectors::{NoProgress, git};
use crate::mercurial::{Mercurial, edge_repositories, has_mercurial, make_history};
use crate::servers::HttpServer;
use crate::stored_parents::compare_parents;
use crate::test_repository::TestRepository;
use larder_hg::{
    ChangeError, ChangeSource, GitDirectory, HttpSettings, LocalPeer, Metadata, Node, Peer,
    PeerRefs, RefStyle, Revision, connect_http, convert_all, fetch, rollback,
};
use std::num::NonZeroUsize;
use std::path::Path;

const FETCHES: usize = 100;
/// The most segments that the metadata has.
const MAX_SEGMENTS: usize = 8;

/// Numbers that look random, the same in each run (xorshift64).
struct FixedRandom(u64);

impl FixedRandom {
    fn next_below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

/// All visible changesets, in the order of their numbers.
fn changesets(source: &Path) -> Vec<Node> {
    let mut peer = LocalPeer::open(source).unwrap();
    let heads = peer.refs().unwrap().heads;
    let mut changes = peer.changes(&heads, &[]).unwrap();
    let mut revision = Revision::empty();
    let mut nodes = Vec::new();
    while changes.next_revision(&mut revision).unwrap() {
        nodes.push(revision.node);
    }
    nodes
}

/// Returns the refs of a repository, and the commit and text of each changeset.
fn describe(directory: &Path, nodes: &[Node]) -> Vec<String> {
    let mut repository = GitDirectory::new(directory);
    let mut metadata = Metadata::open(&mut repository).unwrap();
    let refs = git(directory, &["for-each-ref", "--format=%(refname) %(objectname) %(tree)"]);
    let own = refs.lines().filter(|line| !line.starts_with("refs/larder/"));
    let mut lines: Vec<String> = own.map(str::to_owned).collect();
    lines.push(git(directory, &["symbolic-ref", "HEAD"]));
    for node in nodes {
        let commit = metadata.commit_of(&mut repository, node).unwrap();
        let commit = commit.unwrap_or_else(|| panic!("{node} is missing"));
        assert_eq!(metadata.changeset_of(&mut repository, &commit).unwrap(), Some(*node));
        let digits = &node.to_string()[..16];
        assert_eq!(metadata.find_by_prefix(&mut repository, digits).unwrap(), [*node]);
        let text = metadata.changeset_text(&mut repository, node).unwrap().unwrap();
        lines.push(format!("{node} {commit} {}", text.escape_ascii()));
    }
    let mut heads: Vec<String> = metadata.heads().iter().map(|head| format!("{head:?}")).collect();
    heads.sort();
    lines.extend(heads);
    lines
}

fn convert_rest(directory: &Path, source: &Path) {
    let mut peer = LocalPeer::open(source).unwrap();
    convert_all(directory, &mut peer, RefStyle::ALL, NonZeroUsize::MIN, &mut NoProgress).unwrap();
    git(directory, &["fsck", "--full", "--no-progress"]);
}

/// Clones a part, fetches random sets of changesets in random order, and compares the end.
fn compare(source: &Path, seed: u64) {
    let nodes = changesets(source);
    let (at_once, in_steps) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in [&at_once, &in_steps] {
        GitDirectory::create(folder.path()).unwrap();
    }
    convert_rest(at_once.path(), source);

    let mut random = FixedRandom(seed);
    let mut peer = LocalPeer::open(source).unwrap();
    let mut fetched = 0;
    for step in 0..FETCHES {
        // The points move forward with the steps, so that most fetches bring something.
        let limit = nodes.len() * (step + 1) / FETCHES;
        let wanted: Vec<Node> = (0..=random.next_below(4))
            .map(|_| {
                nodes[limit.saturating_sub(random.next_below(limit.div_ceil(3) + 1)).max(1) - 1]
            })
            .collect();
        let threads = NonZeroUsize::new(1 + step % 2).unwrap();
        let summary = fetch(
            &GitDirectory::new(in_steps.path()),
            &mut peer,
            &wanted,
            threads,
            &mut NoProgress,
        )
        .unwrap();
        fetched += usize::from(summary.changesets > 0);
        if step % 20 == 19 {
            let segments = git(in_steps.path(), &["ls-tree", "refs/larder/hg/metadata:segments"]);
            assert!(segments.lines().count() <= MAX_SEGMENTS, "{segments}");
        }
    }
    assert!(fetched > 20, "{fetched} fetches of {FETCHES} brought something");
    convert_rest(in_steps.path(), source);
    let (expected, found) = (describe(at_once.path(), &nodes), describe(in_steps.path(), &nodes));
    let difference = expected.iter().zip(&found).find(|(expected, found)| expected != found);
    assert_eq!(difference, None, "seed {seed}");
    assert_eq!(expected.len(), found.len());
    compare_parents(in_steps.path(), source);
    assert_eq!(faults(in_steps.path(), true), Vec::<String>::new());
}

#[test]
fn a_clone_and_many_fetches_equal_one_clone() {
    if !has_mercurial("a_clone_and_many_fetches_equal_one_clone") {
        return;
    }
    compare(&edge_repositories().join("cli"), 1);
}

#[test]
fn many_fetches_of_a_made_history_equal_one_clone() {
    if !has_mercurial("many_fetches_of_a_made_history_equal_one_clone") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = Mercurial::init(&folder.path().join("repository"), &[]);
    let bundle = folder.path().join("history.hg");
    make_history(&bundle, 300);
    repository.run(&["unbundle", "-q", bundle.to_str().unwrap()]);
    compare(&repository.path, 7);
}

/// Heads of the server that are heads here, too, are known without a question.
#[test]
fn a_server_is_asked_about_heads_that_it_has_not_listed() {
    if !has_mercurial("a_server_is_asked_about_heads_that_it_has_not_listed") {
        return;
    }
    let repository = TestRepository::new();
    let server = HttpServer::start(&repository, &[]);
    let folder = tempfile::tempdir().unwrap();
    GitDirectory::create(folder.path()).unwrap();
    let fetch_all = || {
        let mut peer = connect_http(&server.url, HttpSettings::default()).unwrap();
        let heads = peer.refs().unwrap().heads;
        fetch(
            &GitDirectory::new(folder.path()),
            &mut *peer,
            &heads,
            NonZeroUsize::MIN,
            &mut NoProgress,
        )
        .unwrap()
    };
    assert_eq!(fetch_all().changesets, 6);
    let old_heads = repository.nodes("heads(all())");
    assert_eq!(old_heads.len(), 2);
    repository.commit("new.txt", "new", "a child of one head");
    assert_eq!(fetch_all().changesets, 1);
    let log = std::fs::read_to_string(repository.path().join("access.log")).unwrap();
    let questions: Vec<&str> = log.lines().filter(|line| line.contains("cmd=known ")).collect();
    let parent = repository.nodes("p1(tip)")[0].to_string();
    assert_eq!(questions.len(), 1, "{log}");
    assert!(questions[0].contains(&format!("x-hgarg-1:nodes={parent} ")), "{questions:?}");
    for head in old_heads.iter().map(Node::to_string).filter(|head| *head != parent) {
        assert!(!questions[0].contains(&head), "{questions:?}");
    }
}

/// A peer that takes the last import back before it delivers changes, as another process might.
struct ForgetfulPeer<'p> {
    peer: LocalPeer,
    directory: &'p Path,
    rollbacks: usize,
}

impl Peer for ForgetfulPeer<'_> {
    fn refs(&mut self) -> Result<PeerRefs, ChangeError> {
        self.peer.refs()
    }

    fn find_known(&mut self, nodes: &[Node]) -> Result<Vec<bool>, ChangeError> {
        self.peer.find_known(nodes)
    }

    fn lookup(&mut self, name: &[u8]) -> Result<Node, ChangeError> {
        self.peer.lookup(name)
    }

    fn changes(
        &mut self,
        heads: &[Node],
        common: &[Node],
    ) -> Result<Box<dyn ChangeSource + '_>, ChangeError> {
        if self.rollbacks > 0 {
            self.rollbacks -= 1;
            rollback(&mut GitDirectory::new(self.directory)).unwrap();
        }
        self.peer.changes(heads, common)
    }
}

/// The changes then build on changesets that are not there any more, and are asked for again.
#[test]
fn a_rollback_during_a_fetch_is_noticed() {
    if !has_mercurial("a_rollback_during_a_fetch_is_noticed") {
        return;
    }
    let repository = TestRepository::new();
    let folder = tempfile::tempdir().unwrap();
    GitDirectory::create(folder.path()).unwrap();
    let nodes = changesets(repository.path());
    let peer = LocalPeer::open(repository.path()).unwrap();
    let mut peer = ForgetfulPeer { peer, directory: folder.path(), rollbacks: 0 };
    let mut fetch_one = |rollbacks, number: usize| {
        peer.rollbacks = rollbacks;
        let wanted = [nodes[number]];
        let threads = NonZeroUsize::MIN;
        fetch(&GitDirectory::new(folder.path()), &mut peer, &wanted, threads, &mut NoProgress)
            .map(|_| ())
    };
    for number in 0..3 {
        fetch_one(0, number).unwrap();
    }
    fetch_one(1, 3).unwrap();
    assert_eq!(faults(folder.path(), true), Vec::<String>::new());
}

/// A changeset without files has the manifest of its parent, which Mercurial sends again, made from
/// another one where it numbers the changesets in another order.
#[test]
fn a_manifest_that_is_sent_again_is_not_its_own_base() {
    if !has_mercurial("a_manifest_that_is_sent_again_is_not_its_own_base") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let settings = ["format.usegeneraldelta=0", "format.generaldelta=0"];
    let one = Mercurial::init(&folder.path().join("one"), &settings);
    for number in 0..100 {
        one.write(&format!("file{number}"), b"x");
    }
    let first = one.commit("first", 0);
    one.write("left", b"x");
    let left = one.commit("left", 1);
    one.run(&["update", "-q", &first]);
    one.write("right", b"x");
    let right = one.commit("right", 2);
    let clone = folder.path().join("clone");
    GitDirectory::create(&clone).unwrap();
    convert_rest(&clone, &one.path);

    let two = Mercurial::init(&folder.path().join("two"), &settings);
    let from = one.path.to_str().unwrap();
    two.run(&["pull", "-q", "-r", &right, from]);
    two.run(&["update", "-q", &right]);
    two.write("second", b"x");
    two.commit("second", 3);
    two.run(&["pull", "-q", from]);
    two.run(&["update", "-q", &left]);
    two.run(&["commit", "--close-branch", "-m", "closed", "-u", "user", "-d", "4 0"]);
    convert_rest(&clone, &two.path);
    assert_eq!(faults(&clone, true), Vec::<String>::new());
    two.run(&["update", "-q", "-r", "desc(second)"]);
    two.write("third", b"x");
    two.commit("third", 5);
    convert_rest(&clone, &two.path);
    assert_eq!(faults(&clone, true), Vec::<String>::new());
    compare_parents(&clone, &two.path);
}

/// A tag that was a mistake is stripped with its commit.
#[test]
fn tags_of_stripped_changesets_are_gone() {
    if !has_mercurial("tags_of_stripped_changesets_are_gone") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mercurial = Mercurial::init(&folder.path().join("mercurial"), &[]);
    for number in 0..2 {
        mercurial.write(&format!("file{number}"), b"x");
        mercurial.commit("commit", number);
    }
    mercurial.run(&["tag", "-u", "user", "-d", "3 0", "-r", "0", "first"]);
    let clone = folder.path().join("clone");
    GitDirectory::create(&clone).unwrap();
    convert_rest(&clone, &mercurial.path);
    let tags = || git(&clone, &["for-each-ref", "--format=%(refname) %(objectname)", "refs/tags"]);
    let before = tags();
    mercurial.run(&["tag", "-f", "-u", "user", "-d", "4 0", "-r", "1", "first"]);
    mercurial.run(&["tag", "-u", "user", "-d", "5 0", "-r", "1", "second"]);
    convert_rest(&clone, &mercurial.path);
    assert_eq!(tags().lines().count(), 2);
    assert!(!tags().contains(before.trim()), "{before}");
    mercurial.run(&["--config", "extensions.strip=", "strip", "-q", "--no-backup", "-r", "3"]);
    convert_rest(&clone, &mercurial.path);
    assert_eq!(tags(), before);
}
