//! Input that is made to do harm: paths, names of refs, and sizes of 4 GB in every field that has
//! one. All of it is refused or kept harmless.

use crate::golden_vectors::{NoProgress, git};
use crate::mercurial::{has_mercurial, run_script};
use crate::test_repository::TestRepository;
use larder_hg::{
    BundleContent, BundlePeer, ChangeError, ChangeSource, GitDirectory, LocalPeer, Node, Peer as _,
    PeerRefs, PipeServer, RefStyle, Revision, SshCommand, SshLocation, apply_delta, connect_pipe,
    convert_bundle, open_bundle_content, remote_refs, tag_refs, unpack_store,
};
use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The growth of the address space that is allowed where 4 GB are announced.
const MAX_GROWTH_KIB: u64 = 1 << 20;

/// The largest size of the address space so far. Each test has a process of its own.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmPeak:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn check_growth(before: u64) {
    let growth = peak_kib() - before;
    assert!(growth < MAX_GROWTH_KIB, "the address space grew by {growth} KiB");
}

fn hostile_bundles() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    run_script("mkhostile.py", &[folder.path().to_str().unwrap()]);
    folder
}

fn import(bundle: &Path) -> Result<(tempfile::TempDir, PathBuf), String> {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("project/.git");
    std::fs::create_dir(folder.path().join("project")).unwrap();
    GitDirectory::create(&directory).unwrap();
    git(&directory, &["config", "core.bare", "false"]);
    let converted = convert_bundle(
        &directory,
        &mut BundlePeer::from_path(bundle.to_path_buf()),
        NonZeroUsize::MIN,
        &mut NoProgress,
    );
    converted.map(|_| (folder, directory)).map_err(|error| error.to_string())
}

/// Paths into `.git`, and out of the working copy: in the history as they are, as in
/// git-cinnabar's, but git does not check them out.
#[test]
fn hostile_paths_are_not_checked_out() {
    if !has_mercurial("hostile_paths_are_not_checked_out") {
        return;
    }
    let bundles = hostile_bundles();
    let (folder, directory) = import(&bundles.path().join("paths.hg")).unwrap();
    let configuration = std::fs::read(directory.join("config")).unwrap();
    let history = git(&directory, &["rev-list", "--reverse", "refs/larder/hg/metadata^1"]);
    let mut refused = 0;
    for commit in history.lines() {
        let subject = git(&directory, &["log", "-1", "--format=%s", commit]);
        if subject.trim() != "hostile" {
            continue;
        }
        let paths = git(&directory, &["ls-tree", "-r", "--name-only", commit]);
        let checkout = Command::new("git")
            .arg("-C")
            .arg(folder.path().join("project"))
            .args(["checkout", "-q", "-f", "--detach", commit])
            .output()
            .unwrap();
        // A leading slash is an empty name, which is left out.
        let is_harmless = paths.lines().any(|path| path == "etc/up");
        let text = String::from_utf8_lossy(&checkout.stderr).into_owned();
        assert_eq!(checkout.status.success(), is_harmless, "{paths}: {text}");
        assert!(is_harmless || text.contains("invalid path"), "{paths}: {text}");
        refused += usize::from(!is_harmless);
        assert_eq!(std::fs::read(directory.join("config")).unwrap(), configuration);
        assert!(!directory.join("hooks/post-checkout").exists());
        let names = std::fs::read_dir(folder.path()).unwrap();
        assert_eq!(names.count(), 1, "{paths}: only the project is there");
    }
    assert_eq!(refused, 6);
}

#[test]
fn paths_with_newlines_and_nul_are_refused() {
    if !has_mercurial("paths_with_newlines_and_nul_are_refused") {
        return;
    }
    let bundles = hostile_bundles();
    for name in ["newline.hg", "nul.hg"] {
        let error = import(&bundles.path().join(name)).map(|_| ()).expect_err(name);
        assert!(error.contains("manifest"), "{name}: {error}");
    }
    // The name of a group says nothing of where a revision is: manifests do.
    let (_folder, directory) = import(&bundles.path().join("group.hg")).unwrap();
    let commit =
        git(&directory, &["rev-list", "-1", "--grep=hostile", "refs/larder/hg/metadata^1"]);
    assert_eq!(git(&directory, &["ls-tree", "-r", "--name-only", commit.trim()]), "good\n");
}

/// Names of branches, bookmarks and tags: each ref is one that git makes, and none is lost.
#[test]
fn hostile_names_become_valid_refs() {
    let node = |number: usize| Node([number as u8 + 1; 20]);
    let long = "п".repeat(120);
    let deep = format!("{}a", "a/".repeat(3000));
    let below_tag = format!("a b/{long}/{long}/{long}");
    let names: [&[u8]; 26] = [
        long.as_bytes(),
        deep.as_bytes(),
        below_tag.as_bytes(),
        b"a b/c",
        b"../../config",
        b"..",
        b".",
        b"a\nb",
        b"a\0b",
        b"a b",
        b"-x",
        b"@{-1}",
        b"@",
        b"HEAD",
        b"",
        b"/",
        b"//",
        b"a/",
        b"refs/heads/x",
        b"x.lock",
        b"x.lock/y",
        b"a\x7fb",
        b"\xff\xfe",
        b"a:b",
        b"?*[\\",
        b"a\r\n? refs/heads/evil",
    ];
    let numbered = || names.iter().enumerate().map(|(number, name)| (name.to_vec(), node(number)));
    let branches = numbered().map(|(name, node)| (name, vec![node])).collect();
    let bookmarks = numbered().collect();
    let peer = PeerRefs { branches, heads: Vec::new(), bookmarks };
    let refs = remote_refs(&peer, RefStyle::ALL, |_| false).refs;
    let tags = tag_refs(&numbered().collect::<BTreeMap<_, _>>());
    assert_eq!((refs.len(), tags.len()), (2 * names.len(), names.len()));
    let folder = tempfile::tempdir().unwrap();
    GitDirectory::create(folder.path()).unwrap();
    let in_folder = |args: &[&str], input: &[u8]| {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(folder.path()).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {message}");
        output.stdout
    };
    let commit = in_folder(
        &["hash-object", "-t", "commit", "-w", "--stdin", "--literally"],
        b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor a <b> 0 +0000\n\
          committer a <b> 0 +0000\n\nx",
    );
    let mut changes = Vec::new();
    for name in refs.keys().chain(tags.keys()) {
        assert!(!name.iter().any(|byte| *byte <= b' ' || *byte == 0x7f), "{name:?}");
        changes.extend([b"create ", name.as_slice(), b" ", &commit].concat());
    }
    in_folder(&["update-ref", "--stdin"], &changes);
    let made = in_folder(&["for-each-ref"], b"");
    assert_eq!(made.split(|byte| *byte == b'\n').count(), 3 * names.len() + 1);
}

/// Reads all that a source has; deltas are applied where their base is known.
fn read_leniently(source: &mut dyn ChangeSource) -> Result<(), ChangeError> {
    let mut revision = Revision::empty();
    let mut texts: HashMap<Node, Vec<u8>> = HashMap::from([(Node::NULL, Vec::new())]);
    let mut group = 0;
    loop {
        while source.next_revision(&mut revision)? {
            let mut text = Vec::new();
            if let Some(base) = texts.get(&revision.base)
                && apply_delta(base, &revision.delta, &mut text).is_ok()
            {
                texts.insert(revision.node, text);
            }
        }
        group += 1;
        if group >= 2 && source.next_file()?.is_none() {
            return Ok(());
        }
    }
}

fn read_bundle(bytes: &[u8]) -> Result<(), ChangeError> {
    match open_bundle_content(Box::new(bytes))? {
        BundleContent::Changes { mut source, .. } => read_leniently(source.as_mut()),
        BundleContent::Store(mut part) => {
            let folder = tempfile::tempdir().unwrap();
            unpack_store(&mut part, folder.path())
        }
    }
}

/// Puts huge numbers in the place of each two and four bytes, one after the other, and calls a
/// function with the result. Every field of a size is among them.
fn with_huge_numbers(bytes: &[u8], step: usize, mut check: impl FnMut(&[u8])) {
    let numbers: [&[u8]; 4] =
        [&[0xff; 4], &[0x7f, 0xff, 0xff, 0xff], &[0xff, 0xff, 0xff, 0xfe], &[0xff, 0xff]];
    for place in (0..bytes.len().saturating_sub(4)).step_by(step) {
        for number in numbers {
            let mut changed = bytes.to_vec();
            changed[place..place + number.len()].copy_from_slice(number);
            check(&changed);
        }
    }
}

#[test]
fn huge_sizes_in_bundles_take_no_memory() {
    if !has_mercurial("huge_sizes_in_bundles_take_no_memory") {
        return;
    }
    let repository = TestRepository::new();
    let before = peak_kib();
    // Parts, chunks of parts, groups, revisions and hunks.
    for (specification, step) in [("none-v1", 7), ("none-v2", 7), ("none-v2;cg.version=03", 1)] {
        let bytes = std::fs::read(repository.bundle(specification)).unwrap();
        let mut refused = 0;
        with_huge_numbers(&bytes, step, |changed| {
            refused += usize::from(read_bundle(changed).is_err());
        });
        assert!(refused > 50, "{specification}: {refused}");
    }
    check_growth(before);
}

#[test]
fn huge_sizes_in_stores_take_no_memory() {
    if !has_mercurial("huge_sizes_in_stores_take_no_memory") {
        return;
    }
    let repository = TestRepository::new();
    repository.hg(&["debugcreatestreamclonebundle", "packed.hg"]);
    let packed = std::fs::read(repository.path().join("packed.hg")).unwrap();
    let stream = std::fs::read(repository.bundle("none-v2;stream=v2")).unwrap();
    let before = peak_kib();
    for bytes in [packed, stream] {
        let mut refused = 0;
        with_huge_numbers(&bytes, 37, |changed| {
            refused += usize::from(read_bundle(changed).is_err());
        });
        assert!(refused > 10, "{refused}");
    }
    check_growth(before);
}

#[test]
fn huge_sizes_in_revlogs_take_no_memory() {
    if !has_mercurial("huge_sizes_in_revlogs_take_no_memory") {
        return;
    }
    let repository = TestRepository::new();
    let before = peak_kib();
    for name in ["00changelog.i", "00manifest.i", "data/a.txt.i"] {
        let path = repository.path().join(".hg/store").join(name);
        let bytes = std::fs::read(&path).unwrap();
        let mut refused = 0;
        with_huge_numbers(&bytes[..bytes.len().min(256)], 4, |changed| {
            std::fs::write(&path, [changed, &bytes[changed.len()..]].concat()).unwrap();
            let read = LocalPeer::open(repository.path()).map_err(ChangeError::from).and_then(
                |mut peer| {
                    let heads = peer.refs()?.heads;
                    read_leniently(peer.changes(&heads, &[])?.as_mut())
                },
            );
            refused += usize::from(read.is_err());
        });
        assert!(refused > 20, "{name}: {refused}");
        std::fs::write(&path, bytes).unwrap();
    }
    check_growth(before);
}

/// The lengths of the protocol over pipes, which are in decimal digits.
#[test]
fn huge_lengths_of_answers_are_refused() {
    let location = SshLocation::parse("ssh://h/r").unwrap();
    let before = peak_kib();
    for (length, expected) in [
        ("4294967296", "an answer of length \"4294967296\" to heads"),
        ("18446744073709551616", "an answer of length \"18446744073709551616\" to heads"),
        ("-1", "an answer of length \"-1\" to heads"),
        ("200000000", "the stream ended early"),
    ] {
        let answers = format!("capabilities: getbundle\\n1\\n\\n{length}\\nabc");
        let script = format!("printf '{answers}'; exec >&-; cat > /dev/null; #");
        let server = PipeServer::ssh(&SshCommand::Shell(script.into()), "hg", &location);
        let mut peer = connect_pipe(server, Box::new(|_| {})).unwrap();
        let error = peer.refs().unwrap_err().to_string();
        assert!(error.contains(expected), "{length}: {error}");
    }
    check_growth(before);
}
