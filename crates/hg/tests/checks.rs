//! Checks of conversions: whole ones have no faults, and each byte that is changed is found.
//!
//! The damage is in objects that are valid for git: a table with other bytes, a commit with
//! another message. `git fsck` finds the other kinds.

use crate::golden_vectors::{NoProgress, convert_repository, git};
use crate::mercurial::{Mercurial, edge_repositories, has_mercurial};
use larder_hg::{
    CheckDepth, CloneSource, FetchOptions, GitDirectory, LocalPeer, METADATA_REF, RefStyle,
    check_conversion, convert_all,
};
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The tables whose pieces are compressed.
const COMPRESSED: [&str; 5] = ["copies", "lines", "parents", "snapshots", "texts"];

/// Returns the faults of a conversion.
pub(crate) fn faults(directory: &Path, is_full: bool) -> Vec<String> {
    let depth = if is_full { CheckDepth::Full } else { CheckDepth::Fast };
    let report = check_conversion(directory, depth, &mut NoProgress).unwrap();
    assert_eq!(report.fault_count == 0, report.faults.is_empty());
    report.faults
}

/// Runs git with an input, and returns the id that it prints.
pub(crate) fn write_object(directory: &Path, args: &[&str], input: &[u8]) -> String {
    let mut command = Command::new("git");
    command.arg("--git-dir").arg(directory).args(args);
    for name in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{name}_NAME"), "x").env(format!("GIT_{name}_EMAIL"), "x");
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

fn write_blob(directory: &Path, content: &[u8]) -> String {
    write_object(directory, &["hash-object", "-w", "--stdin"], content)
}

fn read_blob(directory: &Path, name: &str) -> Vec<u8> {
    let mut command = Command::new("git");
    command.arg("--git-dir").arg(directory).args(["cat-file", "blob", name]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{name}");
    output.stdout
}

/// A conversion whose metadata is replaced, and put back.
struct Damage {
    directory: PathBuf,
    whole: String,
}

impl Damage {
    fn new(directory: &Path) -> Damage {
        let whole = git(directory, &["rev-parse", METADATA_REF]).trim().to_string();
        Damage { directory: directory.to_path_buf(), whole }
    }

    /// Returns the paths of the pieces of all segments in the tree of the metadata.
    fn pieces(&self) -> Vec<String> {
        let names = git(&self.directory, &["ls-tree", "-r", "--name-only", &self.whole]);
        names.lines().filter(|name| name.starts_with("segments/")).map(str::to_string).collect()
    }

    /// Reads a file of the metadata, decompressed.
    fn read(&self, path: &str) -> Vec<u8> {
        let content = read_blob(&self.directory, &format!("{}:{path}", self.whole));
        if is_compressed(path) {
            return zstd::stream::decode_all(content.as_slice()).unwrap();
        }
        content
    }

    /// Points the ref at metadata in which files have other contents, or are missing.
    fn replace(&self, files: &[(&str, Option<&[u8]>)]) {
        let listing = git(&self.directory, &["ls-tree", "-r", "-t", &self.whole]);
        let mut entries: Vec<(String, String, String)> = listing
            .lines()
            .filter_map(|line| {
                let (object, path) = line.split_once('\t')?;
                let words: Vec<&str> = object.split(' ').collect();
                Some((path.to_string(), words[0].to_string(), words[2].to_string()))
            })
            .collect();
        for (path, content) in files {
            let place = entries.iter().position(|(other, ..)| other == path).unwrap();
            match content {
                None => drop(entries.remove(place)),
                Some(content) if is_compressed(path) => {
                    let content = zstd::stream::encode_all(*content, 1).unwrap();
                    entries[place].2 = write_blob(&self.directory, &content);
                }
                Some(content) => entries[place].2 = write_blob(&self.directory, content),
            }
        }
        let tree = self.write_tree(&entries, "");
        self.commit(&tree, &[&format!("{}^1", self.whole), &format!("{}^2", self.whole)]);
    }

    fn write_tree(&self, entries: &[(String, String, String)], folder: &str) -> String {
        let mut input = String::new();
        for (path, mode, id) in entries {
            let Some(name) = path.strip_prefix(folder).filter(|name| !name.contains('/')) else {
                continue;
            };
            if mode == "040000" {
                let below = self.write_tree(entries, &format!("{path}/"));
                input.push_str(&format!("040000 tree {below}\t{name}\n"));
            } else {
                input.push_str(&format!("{mode} blob {id}\t{name}\n"));
            }
        }
        write_object(&self.directory, &["mktree"], input.as_bytes())
    }

    /// Points the ref at a tree; parents that do not exist are left out.
    fn commit(&self, tree: &str, parents: &[&str]) {
        let mut args = vec!["commit-tree", tree, "-m", "damaged"];
        for parent in parents {
            let mut command = Command::new("git");
            command.arg("--git-dir").arg(&self.directory);
            command.args(["rev-parse", "--verify", "--quiet", parent]);
            if command.output().unwrap().status.success() {
                args.extend(["-p", parent]);
            }
        }
        let commit = write_object(&self.directory, &args, b"");
        git(&self.directory, &["update-ref", METADATA_REF, &commit]);
    }

    fn put_back(&self) {
        git(&self.directory, &["update-ref", METADATA_REF, &self.whole]);
        assert_eq!(faults(&self.directory, true), Vec::<String>::new());
    }
}

fn is_compressed(path: &str) -> bool {
    COMPRESSED.iter().any(|table| path.contains(&format!("/{table}/")))
}

/// A repository whose metadata have all tables: copies, and manifests with all lines.
fn repository_with_all_tables() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let mercurial = Mercurial::init(&folder.path().join("hg"), &[]);
    for commit in 0..8_u32 {
        for file in 0..120 {
            mercurial.write(&format!("d{}/f{file}", file % 7), format!("{commit}").as_bytes());
        }
        mercurial.commit(&format!("commit {commit}"), commit);
    }
    mercurial.run(&["cp", "d0/f0", "copy"]);
    mercurial.commit("copy", 10);
    let (git_folder, directory, _) = convert_repository(&mercurial.path);
    (git_folder, directory)
}

#[test]
fn changed_bytes_of_metadata_are_found() {
    if !has_mercurial("changed_bytes_of_metadata_are_found") {
        return;
    }
    let (_folder, directory) = repository_with_all_tables();
    assert_eq!(faults(&directory, true), Vec::<String>::new());
    let damage = Damage::new(&directory);
    let pieces = damage.pieces();
    for table in [
        "changesets",
        "commits",
        "copies",
        "files",
        "lines",
        "manifests",
        "nodes",
        "parents",
        "snapshots",
        "texts",
    ] {
        let piece = pieces.iter().find(|path| path.contains(&format!("/{table}/"))).unwrap();
        let whole = damage.read(piece);
        let mut position = whole.len() % 7;
        while position < whole.len() {
            let mut content = whole.clone();
            content[position] ^= 1;
            damage.replace(&[(piece, Some(&content))]);
            let is_found = [false, true].iter().any(|full| !faults(&directory, *full).is_empty());
            assert!(is_found, "{piece}: {position}");
            position += whole.len() / 3 + 1;
        }
        damage.replace(&[(piece, Some(&whole[..whole.len() - 1]))]);
        assert_ne!(
            faults(&directory, ["copies", "snapshots"].contains(&table)),
            Vec::<String>::new(),
            "{piece} without a byte"
        );
        damage.replace(&[(piece, None)]);
        assert_ne!(faults(&directory, true), Vec::<String>::new(), "without {piece}");
    }
    damage.put_back();
}

/// Metadata of another conversion in which a changeset has another text.
#[test]
fn false_metadata_is_not_taken() {
    if !has_mercurial("false_metadata_is_not_taken") {
        return;
    }
    let source = edge_repositories().join("cli");
    let (_folder, shared, _) = convert_repository(&source);
    let take = || {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("git");
        GitDirectory::create(&directory).unwrap();
        let mut peer = LocalPeer::open(&source).unwrap();
        let options = FetchOptions {
            metadata: CloneSource::Given(format!("file://{}", shared.display())),
            requires_metadata: true,
            ..FetchOptions::from(NonZeroUsize::MIN)
        };
        let converted = convert_all(&directory, &mut peer, RefStyle::ALL, options, &mut NoProgress);
        let states = git(&directory, &["for-each-ref", METADATA_REF]);
        (converted.map(|_| ()).map_err(|error| error.to_string()), states.lines().count())
    };
    assert_eq!(take(), (Ok(()), 1));
    let damage = Damage::new(&shared);
    let pieces = damage.pieces();
    let texts = pieces.iter().find(|path| path.contains("/texts/")).unwrap();
    let mut content = damage.read(texts);
    let last = content.len() - 1;
    content[last] ^= 1;
    damage.replace(&[(texts, Some(&content))]);
    assert_eq!(take(), (Err("Invalid cinnabar metadata.".to_string()), 0));
}

/// Damage after which all tables agree with each other.
#[test]
fn other_commits_trees_and_blobs_are_found() {
    if !has_mercurial("other_commits_trees_and_blobs_are_found") {
        return;
    }
    let (_folder, directory, _) = convert_repository(&edge_repositories().join("cli"));
    let damage = Damage::new(&directory);
    let pieces = damage.pieces();
    let path =
        |table: &str| pieces.iter().find(|path| path.contains(&format!("/{table}/"))).unwrap();

    // A commit with another message in the place of the newest one, which is the last row.
    let rows = damage.read(path("changesets"));
    let last = rows.len() - 40;
    let commit = hex(&rows[last + 20..]);
    let text = git(&directory, &["cat-file", "commit", &commit]);
    let other = format!("{text}!");
    let other = write_object(
        &directory,
        &["hash-object", "-w", "-t", "commit", "--stdin"],
        other.as_bytes(),
    );
    let mut changed = rows.clone();
    changed[last + 20..].copy_from_slice(&unhex(&other));
    let number = (rows.len() / 40 - 1) as u32;
    let mut index: Vec<[u8; 8]> = damage.read(path("commits")).as_chunks().0.to_vec();
    index.retain(|row| row[4..] != number.to_be_bytes());
    index.push([&changed[last + 20..][..4], &number.to_be_bytes()].concat().try_into().unwrap());
    index.sort_unstable();
    if path("commits").ends_with(&hex(&index[0])) {
        damage.replace(&[
            (path("changesets"), Some(&changed)),
            (path("commits"), Some(index.as_flattened())),
        ]);
        let found = faults(&directory, false).join("\n");
        assert!(found.contains(&other), "{found}");
    }

    // The blobs of two file revisions are exchanged.
    let rows = damage.read(path("files"));
    let mut changed = rows.clone();
    changed[20..40].copy_from_slice(&rows[60..80]);
    changed[60..80].copy_from_slice(&rows[20..40]);
    damage.replace(&[(path("files"), Some(&changed))]);
    let found = faults(&directory, true).join("\n");
    assert!(found.contains(&hex(&rows[..20])), "{found}");

    // Heads: one is open instead of closed, one is missing.
    let heads = String::from_utf8_lossy(&damage.read("heads")).into_owned();
    let closed = heads.replacen(" c ", " o ", 1);
    assert_ne!(heads, closed);
    let missing: String = heads.lines().skip(1).flat_map(|line| [line, "\n"]).collect();
    for changed in [closed, missing] {
        damage.replace(&[("heads", Some(changed.as_bytes()))]);
        assert_eq!(faults(&directory, false).len(), 1);
    }

    // A history commit that keeps only one head.
    let history = git(&directory, &["rev-parse", &format!("{}^1^1", damage.whole)]);
    let tree = format!("{}^{{tree}}", damage.whole);
    let empty = write_object(&directory, &["mktree"], b"");
    let history = write_object(&directory, &["commit-tree", &empty, "-p", history.trim()], b"");
    damage.commit(&tree, &[&history]);
    let found = faults(&directory, false).join("\n");
    assert!(found.contains("the history commit does not keep it"), "{found}");
    damage.put_back();
}

#[test]
fn missing_objects_are_found() {
    if !has_mercurial("missing_objects_are_found") {
        return;
    }
    let (_folder, directory, _) = convert_repository(&edge_repositories().join("cli"));
    // All objects in files of their own.
    let packs = directory.join("objects/pack");
    let away = directory.join("away");
    std::fs::rename(&packs, &away).unwrap();
    for entry in std::fs::read_dir(&away).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "pack") {
            let pack = std::fs::File::open(path).unwrap();
            let mut command = Command::new("git");
            command.arg("--git-dir").arg(&directory).args(["unpack-objects", "-q"]).stdin(pack);
            assert!(command.status().unwrap().success());
        }
    }
    assert_eq!(faults(&directory, true), Vec::<String>::new());
    let head = git(&directory, &["rev-parse", "HEAD"]);
    let tree = git(&directory, &["rev-parse", "HEAD^{tree}"]);
    let files = git(&directory, &["ls-tree", "-r", "HEAD"]);
    let blob = files.split_ascii_whitespace().nth(2).unwrap();
    for id in [head.trim(), tree.trim(), blob] {
        let (folder, name) = id.split_at(2);
        let path = directory.join("objects").join(folder).join(name);
        let kept = directory.join("kept");
        std::fs::rename(&path, &kept).unwrap();
        let found = faults(&directory, false).join("\n");
        assert!(found.contains(id), "{id}: {found}");
        std::fs::rename(&kept, &path).unwrap();
    }
    assert_eq!(faults(&directory, false), Vec::<String>::new());
}

/// git ends at such an object; the others are read nevertheless.
#[test]
fn blobs_that_git_cannot_read_are_named() {
    let (_folder, directory) = repository_with_all_tables();
    git(&directory, &["repack", "-adq", "--depth=0"]);
    let packs = std::fs::read_dir(directory.join("objects/pack")).unwrap();
    let mut paths = packs.map(|entry| entry.unwrap().path());
    let index = paths.find(|path| path.extension().is_some_and(|name| name == "idx")).unwrap();
    let listed = git(&directory, &["verify-pack", "-v", index.to_str().unwrap()]);
    let history = format!("{METADATA_REF}^1");
    let objects = git(&directory, &["rev-list", "--objects", "--no-object-names", &history]);
    let files: Vec<(String, u64)> = (listed.lines())
        .filter(|line| line.contains(" blob "))
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (id, offset) = (words.next()?, words.nth(3)?);
            objects.contains(id).then(|| (id.to_owned(), offset.parse().unwrap()))
        })
        .take(2)
        .collect();
    assert_eq!(files.len(), 2, "{listed}");
    let pack_path = index.with_extension("pack");
    let mut pack = std::fs::read(&pack_path).unwrap();
    for (_, offset) in &files {
        // Behind the header: the start of the compressed bytes.
        pack[*offset as usize + 1..*offset as usize + 4].fill(0xff);
    }
    std::fs::remove_file(&pack_path).unwrap();
    std::fs::write(&pack_path, pack).unwrap();
    let found = faults(&directory, true);
    for (blob, _) in files {
        let fault = format!("git cannot read its blob {blob}");
        assert!(found.iter().any(|line| line.ends_with(&fault)), "{fault}: {found:?}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> [u8; 20] {
    larder_hg::GitId::from_hex(digits.as_bytes()).unwrap().0
}
