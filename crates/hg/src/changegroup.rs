//! Changegroups: revisions as servers and bundles send them.
//!
//! A changegroup is a sequence of chunks, each after its length in four bytes that include
//! themselves; a length of 0 ends a group. The groups are the changelog, the manifest, in version
//! 03 one for each directory of a repository with tree manifests, and one for each file, after a
//! chunk with its path. See `mercurial/changegroup.py` and the help topic
//! `internals.changegroups` of Mercurial.

use crate::byte_reader::{read_array, read_bytes, read_node};
use crate::object_id::Node;
use crate::path_text::path_text;
use crate::revision::{ChangeError, ChangeSource, Revision};
use std::io::BufRead;

/// The longest path of a file that is read. Systems allow 4,096 bytes.
const PATH_LIMIT_BYTES: usize = 1 << 16;

/// The versions of changegroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangegroupVersion {
    /// Each delta applies to the revision before it, the first one of a group to its first parent.
    V1,
    /// Each revision names the base of its delta.
    V2,
    /// Revisions also have flags, and there may be tree manifests.
    V3,
}

impl ChangegroupVersion {
    /// Returns the version that a bundle or a server calls by this name.
    pub(crate) fn from_name(name: &[u8]) -> Result<ChangegroupVersion, ChangeError> {
        match name {
            b"01" => Ok(ChangegroupVersion::V1),
            b"02" => Ok(ChangegroupVersion::V2),
            b"03" => Ok(ChangegroupVersion::V3),
            _ => {
                let name = name.escape_ascii();
                Err(ChangeError::new_unsupported(format!("changegroup version {name}")))
            }
        }
    }

    /// Returns the size of the fields before the delta.
    fn header_len(self) -> usize {
        match self {
            ChangegroupVersion::V1 => 4 * 20,
            ChangegroupVersion::V2 => 5 * 20,
            ChangegroupVersion::V3 => 5 * 20 + 2,
        }
    }
}

/// The place of a reader in the order of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Changelog,
    Manifest,
    /// After the manifest, before the first path.
    Directories,
    File,
    BetweenFiles,
    End,
}

/// A reader of a changegroup. It reads no byte after the end of the changegroup.
pub(crate) struct Changegroup<R> {
    read: R,
    version: ChangegroupVersion,
    group: Group,
    /// The last node of the current group.
    previous: Option<Node>,
}

impl<R: BufRead> Changegroup<R> {
    /// Creates a reader of the changegroup that begins at the next byte.
    pub(crate) fn new(read: R, version: ChangegroupVersion) -> Changegroup<R> {
        Changegroup { read, version, group: Group::Changelog, previous: None }
    }

    /// Returns the stream below.
    pub(crate) fn get_mut(&mut self) -> &mut R {
        &mut self.read
    }

    /// Reads the length of a chunk, and returns the number of bytes that follow; `None` for the
    /// chunk that ends a group.
    fn read_length(&mut self) -> Result<Option<usize>, ChangeError> {
        // Mercurial's lengths are signed.
        match i32::from_be_bytes(read_array(&mut self.read)?) {
            0 => Ok(None),
            length @ 5.. => Ok(Some(length as usize - 4)),
            length => Err(ChangeError::new_damaged(format!(
                "a chunk of a changegroup has length {length}"
            ))),
        }
    }

    fn read_header(&mut self, revision: &mut Revision) -> Result<(), ChangeError> {
        let read: &mut dyn BufRead = &mut self.read;
        revision.node = read_node(read)?;
        revision.p1 = read_node(read)?;
        revision.p2 = read_node(read)?;
        revision.base = match self.version {
            ChangegroupVersion::V1 => self.previous.unwrap_or(revision.p1),
            ChangegroupVersion::V2 | ChangegroupVersion::V3 => read_node(read)?,
        };
        revision.link = read_node(read)?;
        revision.flags = match self.version {
            ChangegroupVersion::V3 => u16::from_be_bytes(read_array(read)?),
            ChangegroupVersion::V1 | ChangegroupVersion::V2 => 0,
        };
        Ok(())
    }

    fn end_group(&mut self) {
        self.previous = None;
        self.group = match self.group {
            Group::Changelog => Group::Manifest,
            Group::Manifest => match self.version {
                ChangegroupVersion::V3 => Group::Directories,
                ChangegroupVersion::V1 | ChangegroupVersion::V2 => Group::BetweenFiles,
            },
            Group::File => Group::BetweenFiles,
            other => other,
        };
    }

    /// Reads the path that begins a group, or the end of such groups.
    fn read_path(&mut self, what: &str) -> Result<Option<Vec<u8>>, ChangeError> {
        let Some(len) = self.read_length()? else {
            return Ok(None);
        };
        if len > PATH_LIMIT_BYTES {
            return Err(ChangeError::new_damaged(format!("the path of a {what} has {len} bytes")));
        }
        let mut path = Vec::new();
        read_bytes(&mut self.read, len, &mut path)?;
        Ok(Some(path))
    }

    /// Reads the end of the directories, which have no groups unless the repository has tree
    /// manifests.
    fn read_directories(&mut self) -> Result<(), ChangeError> {
        if let Some(path) = self.read_path("directory")? {
            let path = path_text(&path);
            return Err(ChangeError::new_unsupported(format!("treemanifest (directory {path})")));
        }
        self.group = Group::BetweenFiles;
        Ok(())
    }
}

impl<R: BufRead + Send> ChangeSource for Changegroup<R> {
    fn next_revision(&mut self, revision: &mut Revision) -> Result<bool, ChangeError> {
        if !matches!(self.group, Group::Changelog | Group::Manifest | Group::File) {
            return Ok(false);
        }
        let Some(len) = self.read_length()? else {
            self.end_group();
            return Ok(false);
        };
        let Some(delta_len) = len.checked_sub(self.version.header_len()) else {
            return Err(ChangeError::new_damaged(format!(
                "a revision of a changegroup has {len} bytes"
            )));
        };
        self.read_header(revision)?;
        read_bytes(&mut self.read, delta_len, &mut revision.delta)?;
        self.previous = Some(revision.node);
        Ok(true)
    }

    /// Skips what was not read of the current group.
    fn next_file(&mut self) -> Result<Option<Vec<u8>>, ChangeError> {
        let mut skipped = Revision::empty();
        while matches!(self.group, Group::Changelog | Group::Manifest | Group::File) {
            self.next_revision(&mut skipped)?;
        }
        if self.group == Group::Directories {
            self.read_directories()?;
        }
        if self.group == Group::End {
            return Ok(None);
        }
        let path = self.read_path("file")?;
        self.group = if path.is_some() { Group::File } else { Group::End };
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ChangegroupVersion::{V1, V2, V3};

    fn chunk(content: &[u8]) -> Vec<u8> {
        [&(content.len() as u32 + 4).to_be_bytes(), content].concat()
    }

    /// Node, first and second parent, base, link; each is one byte, repeated.
    fn revision(version: ChangegroupVersion, nodes: [u8; 5], flags: u16, delta: &[u8]) -> Vec<u8> {
        let mut content = Vec::new();
        for (index, byte) in nodes.into_iter().enumerate() {
            if index != 3 || version != V1 {
                content.extend([byte; 20]);
            }
        }
        if version == V3 {
            content.extend(flags.to_be_bytes());
        }
        content.extend(delta);
        chunk(&content)
    }

    const END: [u8; 4] = [0; 4];

    fn sample(version: ChangegroupVersion) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(revision(version, [1, 0, 0, 0, 1], 0, b"first"));
        bytes.extend(revision(version, [2, 1, 0, 1, 2], 0, b"second"));
        bytes.extend(END);
        bytes.extend(revision(version, [3, 9, 0, 9, 1], 0, b"manifest"));
        bytes.extend(END);
        if version == V3 {
            bytes.extend(END);
        }
        bytes.extend(chunk(b"a/b"));
        bytes.extend(revision(version, [4, 0, 0, 0, 2], Revision::CENSORED, b""));
        bytes.extend(END);
        bytes.extend(chunk(b"c"));
        bytes.extend(END);
        bytes.extend(END);
        bytes
    }

    /// Returns all events as text.
    fn read_all(bytes: &[u8], version: ChangegroupVersion) -> Result<Vec<String>, ChangeError> {
        let mut source = Changegroup::new(bytes, version);
        let mut events = Vec::new();
        let mut revision = Revision::empty();
        let mut read_group = |source: &mut Changegroup<&[u8]>, events: &mut Vec<String>| {
            while source.next_revision(&mut revision)? {
                let Revision { node, p1, p2, base, link, flags, delta } = &revision;
                let bytes = [node, p1, p2, base, link].map(|node| node.0[0]);
                events.push(format!("{bytes:?} {flags} {}", delta.escape_ascii()));
            }
            events.push("end".to_owned());
            Ok::<_, ChangeError>(())
        };
        read_group(&mut source, &mut events)?;
        read_group(&mut source, &mut events)?;
        while let Some(path) = source.next_file()? {
            events.push(path.escape_ascii().to_string());
            read_group(&mut source, &mut events)?;
        }
        assert_eq!(source.next_file()?, None);
        assert!(!source.next_revision(&mut Revision::empty())?);
        Ok(events)
    }

    #[test]
    fn all_versions_are_read() {
        for (version, flags) in [(V1, 0), (V2, 0), (V3, 32768)] {
            let events = read_all(&sample(version), version).expect("a changegroup");
            let expected = [
                "[1, 0, 0, 0, 1] 0 first",
                "[2, 1, 0, 1, 2] 0 second",
                "end",
                "[3, 9, 0, 9, 1] 0 manifest",
                "end",
                "a/b",
                &format!("[4, 0, 0, 0, 2] {flags} "),
                "end",
                "c",
                "end",
            ];
            assert_eq!(events, expected);
        }
    }

    #[test]
    fn groups_are_skipped() {
        let bytes = sample(V2);
        let mut source = Changegroup::new(bytes.as_slice(), V2);
        assert_eq!(source.next_file().expect("a file"), Some(b"a/b".to_vec()));
        assert_eq!(source.next_file().expect("a file"), Some(b"c".to_vec()));
        assert_eq!(source.next_file().expect("the end"), None);
    }

    #[test]
    fn truncated_changegroups_are_refused() {
        for version in [V1, V2, V3] {
            let bytes = sample(version);
            for end in 0..bytes.len() {
                let error = read_all(&bytes[..end], version).expect_err("an early end");
                assert_eq!(error.to_string(), "reading changes: the stream ended early");
            }
        }
    }

    #[test]
    fn wrong_sizes_are_refused() {
        let check = |bytes: &[u8], expected: &str| {
            let error = read_all(bytes, V2).expect_err("an error");
            assert_eq!(error.to_string(), expected);
        };
        check(&[0, 0, 0, 4], "damaged changes: a chunk of a changegroup has length 4");
        check(&[255; 4], "damaged changes: a chunk of a changegroup has length -1");
        check(&chunk(b"short"), "damaged changes: a revision of a changegroup has 5 bytes");
        check(&[127, 255, 255, 255], "reading changes: the stream ended early");
        let path = [&END[..], &END, &[127, 255, 255, 255]].concat();
        check(&path, "damaged changes: the path of a file has 2147483643 bytes");
    }

    #[test]
    fn tree_manifests_are_refused_by_name() {
        let bytes = [&END[..], &END, &chunk(b"dir/"), &END, &END, &END].concat();
        let error = read_all(&bytes, V3).expect_err("an error");
        assert_eq!(error.to_string(), "not supported: treemanifest (directory dir/)");
        let error = ChangegroupVersion::from_name(b"04").expect_err("an error");
        assert_eq!(error.to_string(), "not supported: changegroup version 04");
    }
}
