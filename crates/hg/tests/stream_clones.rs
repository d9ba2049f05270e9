//! The files of stores as sources: bundles `packed1` and `stream=v2`, as files, recommended by a
//! server, and in place of the answer of a server.

use crate::golden_vectors::{NoProgress, git};
use crate::mercurial::{Mercurial, edge_repositories};
use crate::servers::{FileServer, HttpServer};
use crate::test_repository::{TestRepository, has_mercurial};
use larder_hg::{
    BundlePeer, GitDirectory, HttpSettings, LocalPeer, Peer, RefStyle, StreamUse, connect_http,
    convert_all, convert_bundle,
};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

const THREADS: NonZeroUsize = NonZeroUsize::MIN;

/// Converts all of a repository, and returns the folder and its refs with their commits.
fn convert(peer: &mut dyn Peer) -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    GitDirectory::create(folder.path()).unwrap();
    convert_all(folder.path(), peer, RefStyle::ALL, THREADS, &mut NoProgress).unwrap();
    git(folder.path(), &["fsck", "--full", "--no-progress"]);
    check_no_scratch(folder.path());
    let refs = list_refs(folder.path());
    (folder, refs)
}

/// The refs that Mercurial gives, and the commits of all changesets.
fn list_refs(directory: &Path) -> Vec<String> {
    let refs = git(directory, &["for-each-ref", "--format=%(refname) %(objectname)"]);
    let own = refs.lines().filter(|line| !line.starts_with("refs/larder/"));
    let commits = git(directory, &["log", "--format=%H %ae", "refs/larder/hg/metadata^1"]);
    let commits = commits.lines().filter(|line| !line.ends_with("larder-hg"));
    let mut lines: Vec<String> = own.chain(commits).map(str::to_owned).collect();
    lines.sort();
    lines
}

/// No temporary folder is left. A peer that still uses one is dropped before.
fn check_no_scratch(directory: &Path) {
    let names = std::fs::read_dir(directory).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.contains("scratch")).count(), 0);
}

/// A repository with a secret, a draft and an obsolete changeset.
fn repository_with_phases() -> TestRepository {
    let repository = TestRepository::new();
    let settings = "[experimental]\nevolution=all\n[server]\nuncompressedallowsecret=yes\n\
        [phases]\npublish=no\n";
    std::fs::write(repository.path().join(".hg/hgrc"), settings).unwrap();
    repository.hg(&["phase", "-p", "-r", "0:2"]);
    repository.commit("e.txt", "e", "to be amended");
    repository.hg(&["commit", "-q", "--amend", "-m", "amended", "-d", "1000000000 0"]);
    repository.commit("s.txt", "s", "secret");
    repository.hg(&["phase", "-f", "-s", "-r", "."]);
    repository
}

fn unpack_bundle(path: PathBuf) -> (Vec<String>, tempfile::TempDir) {
    let mut peer = BundlePeer::from_path(path);
    let scratch = tempfile::tempdir().unwrap();
    peer.set_scratch_folder(scratch.path());
    let folder = tempfile::tempdir().unwrap();
    GitDirectory::create(folder.path()).unwrap();
    convert_all(folder.path(), &mut peer, RefStyle::ALL, THREADS, &mut NoProgress).unwrap();
    drop(peer);
    check_no_scratch(scratch.path());
    check_no_scratch(folder.path());
    (list_refs(folder.path()), folder)
}

fn without_bookmarks(mut refs: Vec<String>) -> Vec<String> {
    refs.retain(|line| !line.contains("/bookmarks/"));
    refs
}

/// Bundles have no bookmarks; those of the old form tell no phases either.
#[test]
fn bundles_of_stores_give_what_the_repository_gives() {
    if !has_mercurial("bundles_of_stores_give_what_the_repository_gives") {
        return;
    }
    let repository = repository_with_phases();
    let (_folder, expected) = convert(&mut LocalPeer::open(repository.path()).unwrap());
    assert!(expected.iter().any(|line| line.contains("bookmarks/book%20mark")));
    let path = repository.bundle("none-v2;stream=v2;obsolescence=yes");
    let (found, _folder) = unpack_bundle(path);
    assert_eq!(found, without_bookmarks(expected));

    let public = TestRepository::new();
    let (_folder, expected) = convert(&mut LocalPeer::open(public.path()).unwrap());
    public.hg(&["debugcreatestreamclonebundle", "packed.hg"]);
    let packed = public.path().join("packed.hg");
    let (found, _folder) = unpack_bundle(packed.clone());
    assert_eq!(found, without_bookmarks(expected));

    // As `larder hg unbundle` reads them; the second one is all known.
    let folder = tempfile::tempdir().unwrap();
    GitDirectory::create(folder.path()).unwrap();
    let count = public.nodes("all()").len();
    let bundle = public.bundle("zstd-v2;stream=v2");
    for (path, expected) in [(&packed, count), (&bundle, 0)] {
        let found = convert_bundle(
            folder.path(),
            &mut BundlePeer::from_path(path.clone()),
            THREADS,
            &mut NoProgress,
        )
        .unwrap();
        assert_eq!(found.changesets, expected);
    }
    check_no_scratch(folder.path());
}

/// As of a store that lost it: nothing must look like an empty repository, whose branches are gone.
#[test]
fn a_bundle_of_a_store_without_its_changelog_is_refused() {
    if !has_mercurial("a_bundle_of_a_store_without_its_changelog_is_refused") {
        return;
    }
    let repository = TestRepository::new();
    repository.hg(&["debugcreatestreamclonebundle", "packed.hg"]);
    for path in [repository.path().join("packed.hg"), repository.bundle("none-v2;stream=v2")] {
        let mut bytes = std::fs::read(&path).unwrap();
        // Files with this name are no part of a store.
        let name = b"00changelog.i";
        let start = bytes.windows(name.len()).position(|window| window == name).unwrap();
        bytes[start + name.len() - 1] = b'~';
        std::fs::write(&path, bytes).unwrap();
        let folder = tempfile::tempdir().unwrap();
        GitDirectory::create(folder.path()).unwrap();
        let converted = convert_all(
            folder.path(),
            &mut BundlePeer::from_path(path),
            RefStyle::ALL,
            THREADS,
            &mut NoProgress,
        );
        let error = converted.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("00changelog.i"), "{error}");
        assert_eq!(git(folder.path(), &["for-each-ref"]), "");
    }
}

/// The folder that has the file is gone when the error is read.
#[test]
fn a_damaged_file_of_a_store_is_named_by_its_place_there() {
    if !has_mercurial("a_damaged_file_of_a_store_is_named_by_its_place_there") {
        return;
    }
    /// The size of an entry of the index, which the data of the first revision follows.
    const ENTRY_BYTES: usize = 64;
    let repository = TestRepository::new();
    repository.hg(&["debugcreatestreamclonebundle", "packed.hg"]);
    let packed = std::fs::read(repository.path().join("packed.hg")).unwrap();
    let bundle = std::fs::read(repository.bundle("none-v2;stream=v2")).unwrap();
    let path = repository.path().join("damaged.hg");
    for (bytes, has_lines) in [(packed, true), (bundle, false)] {
        for name in ["data/c.txt.i", "00changelog.i"] {
            let mut bytes = bytes.clone();
            let start = bytes.windows(name.len()).position(|window| window == name.as_bytes());
            let mut start = start.unwrap() + name.len();
            if has_lines {
                // The size of the file.
                start += bytes[start..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
            }
            bytes[start + ENTRY_BYTES..][..2].copy_from_slice(b"x\xff");
            std::fs::write(&path, bytes).unwrap();
            let folder = tempfile::tempdir().unwrap();
            GitDirectory::create(folder.path()).unwrap();
            let converted = convert_all(
                folder.path(),
                &mut BundlePeer::from_path(path.clone()),
                RefStyle::ALL,
                THREADS,
                &mut NoProgress,
            );
            let error = converted.map(|_| ()).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("damaged changes: {name}: revision 0: ")),
                "{error}"
            );
        }
    }
}

#[test]
fn a_bundle_of_a_store_with_all_kinds_of_names_is_read() {
    if !has_mercurial("a_bundle_of_a_store_with_all_kinds_of_names_is_read") {
        return;
    }
    let cli = Mercurial { path: edge_repositories().join("cli") };
    let (_folder, expected) = convert(&mut LocalPeer::open(&cli.path).unwrap());
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("cli.hg");
    let settings = ["server.uncompressedallowsecret=yes", "experimental.evolution=all"];
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--config", setting]).collect();
    let bundle = ["bundle", "-q", "-a", "-t", "none-v2;stream=v2;obsolescence=yes"];
    cli.run(&[&settings[..], &bundle, &[path.to_str().unwrap()]].concat());
    let (found, _folder) = unpack_bundle(path);
    assert_eq!(found, without_bookmarks(expected));
}

#[test]
fn a_cut_off_store_leaves_nothing() {
    if !has_mercurial("a_cut_off_store_leaves_nothing") {
        return;
    }
    let repository = TestRepository::new();
    repository.hg(&["debugcreatestreamclonebundle", "packed.hg"]);
    let packed = std::fs::read(repository.path().join("packed.hg")).unwrap();
    let bundle = std::fs::read(repository.bundle("none-v2;stream=v2")).unwrap();
    let cut = repository.path().join("cut.hg");
    for bytes in [packed, bundle] {
        for end in (0..bytes.len()).step_by(577) {
            std::fs::write(&cut, &bytes[..end]).unwrap();
            let folder = tempfile::tempdir().unwrap();
            GitDirectory::create(folder.path()).unwrap();
            let error = convert_bundle(
                folder.path(),
                &mut BundlePeer::from_path(cut.clone()),
                THREADS,
                &mut NoProgress,
            )
            .unwrap_err();
            assert_eq!(error.to_string(), "reading changes: the stream ended early", "{end}");
            check_no_scratch(folder.path());
            let packs = std::fs::read_dir(folder.path().join("objects/pack")).unwrap();
            assert_eq!(packs.count(), 0, "{end}");
        }
    }
}

#[test]
fn a_first_clone_takes_the_store_where_the_server_prefers_that() {
    if !has_mercurial("a_first_clone_takes_the_store_where_the_server_prefers_that") {
        return;
    }
    let repository = repository_with_phases();
    let (_folder, expected) = convert(&mut LocalPeer::open(repository.path()).unwrap());
    let log = repository.path().join("access.log");
    let cases = [
        ("server.preferuncompressed=no", StreamUse::Preferred, false),
        ("server.preferuncompressed=yes", StreamUse::Preferred, true),
        ("server.preferuncompressed=yes", StreamUse::Never, false),
        ("server.preferuncompressed=no", StreamUse::Always, true),
        ("server.uncompressed=no", StreamUse::Always, false),
        // A publishing server says nothing of phases, and does not show the secret changeset.
        ("phases.publish=yes", StreamUse::Always, true),
    ];
    for (option, stream_use, is_taken) in cases {
        let server = HttpServer::start(&repository, &[option]);
        let settings = HttpSettings { stream_use, ..HttpSettings::default() };
        std::fs::write(&log, "").unwrap();
        let mut peer = connect_http(&server.url, settings).unwrap();
        let (_folder, found) = convert(&mut *peer);
        assert_eq!(found, expected, "{option} {stream_use:?}");
        let requests = std::fs::read_to_string(&log).unwrap();
        assert_eq!(requests.contains("stream=1"), is_taken, "{option} {stream_use:?}: {requests}");
    }
}

#[test]
fn a_recommended_bundle_may_have_a_store() {
    if !has_mercurial("a_recommended_bundle_may_have_a_store") {
        return;
    }
    let repository = TestRepository::new();
    repository.hg(&["debugcreatestreamclonebundle", "packed.hg"]);
    let packed = std::fs::read(repository.path().join("packed.hg")).unwrap();
    let bundle = std::fs::read(repository.bundle("none-v2;stream=v2")).unwrap();
    repository.commit("newer.txt", "n", "newer than the bundles");
    let (_folder, expected) = convert(&mut LocalPeer::open(repository.path()).unwrap());
    let manifest = repository.path().join(".hg/clonebundles.manifest");
    for (bytes, specification) in [
        (packed, "none-packed1%3Brequirements%3Dgeneraldelta%252Crevlogv1"),
        (bundle, "none-v2%3Bstream%3Dv2%3Brequirements%3Dgeneraldelta%252Crevlogv1"),
    ] {
        let files = FileServer::start(bytes);
        std::fs::write(&manifest, format!("{} BUNDLESPEC={specification}\n", files.url)).unwrap();
        let server = HttpServer::start(&repository, &["extensions.clonebundles="]);
        let mut peer = connect_http(&server.url, HttpSettings::default()).unwrap();
        let (folder, found) = convert(&mut *peer);
        assert_eq!(found, expected, "{specification}");
        // One of the bundle, and one of what is newer.
        let packs = std::fs::read_dir(folder.path().join("objects/pack")).unwrap();
        let names = packs.map(|entry| entry.unwrap().path());
        assert_eq!(names.filter(|path| path.extension().unwrap() == "pack").count(), 2);
    }
}
