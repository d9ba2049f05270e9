//! The texts of manifests, changed by lines instead of by deltas, and their lines by path.

use super::manifest_text::path_of_line;
use super::{ChangedFile, ManifestLine, ManifestText};
use crate::object_id::Node;

impl ManifestText {
    /// Returns the text after changes of lines, which are sorted by path.
    pub(crate) fn with_changes(&self, changes: &[ChangedFile]) -> ManifestText {
        let lines: Vec<(&[u8], Option<Vec<u8>>)> = changes
            .iter()
            .map(|(path, file)| {
                let line = file.map(|(file, flag)| {
                    let mut line = Vec::with_capacity(path.len() + 44);
                    ManifestLine { path, file, flag }.write(&mut line);
                    line
                });
                (path.as_slice(), line)
            })
            .collect();
        self.replace_lines(&lines)
    }

    /// Returns the file revision of a path.
    pub(crate) fn find(&self, path: &[u8]) -> Option<Node> {
        let mut lines = self.find_piece(path)?.split(|byte| *byte == b'\n');
        let line = lines.find(|line| path_of_line(line) == path)?;
        ManifestLine::parse(line).map(|line| line.file)
    }

    /// Returns all lines as changes of an empty manifest.
    pub(crate) fn files(&self) -> Vec<ChangedFile> {
        let lines = self.lines().filter_map(ManifestLine::parse);
        lines.map(|line| (line.path.to_vec(), Some((line.file, line.flag)))).collect()
    }

    /// Returns whether a path has an empty name in it, which git does not have.
    pub(crate) fn has_empty_names(&self) -> bool {
        self.lines().map(path_of_line).any(|path| {
            let is_at_an_end = path.starts_with(b"/") || path.ends_with(b"/");
            is_at_an_end || memchr::memmem::find(path, b"//").is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::FileFlag;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Changes of a text give what the same changes of a map of lines give.
        #[test]
        fn changes_are_those_of_a_map(
            steps in prop::collection::vec(
                prop::collection::btree_map("[a-c]{1,4}", prop::option::of(any::<u8>()), 0..40),
                1..8,
            )
        ) {
            let mut text = ManifestText::default();
            let mut files: BTreeMap<Vec<u8>, Node> = BTreeMap::new();
            for step in steps {
                let mut changes: Vec<ChangedFile> = Vec::new();
                for (path, file) in step {
                    // Long paths, so that there are several pieces.
                    let path = path.repeat(60).into_bytes();
                    let file = file.map(|byte| Node([byte; 20]));
                    match file {
                        Some(file) => drop(files.insert(path.clone(), file)),
                        None => drop(files.remove(&path)),
                    }
                    changes.push((path, file.map(|file| (file, FileFlag::Link))));
                }
                changes.sort();
                text = text.with_changes(&changes);
                let mut expected = Vec::new();
                for (path, file) in &files {
                    ManifestLine { path, file: *file, flag: FileFlag::Link }.write(&mut expected);
                    prop_assert_eq!(text.find(path), Some(*file));
                }
                prop_assert_eq!(text.find(b"d"), None);
                prop_assert_eq!(text.len(), expected.len());
                prop_assert_eq!(text.to_bytes(), expected);
            }
        }
    }
}
