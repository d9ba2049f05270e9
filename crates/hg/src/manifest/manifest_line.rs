//! The lines of manifests: `path NUL node flag`.
//!
//! Apart from the list of manifests, because the metadata and trees use lines, too.

use crate::object_id::Node;
use memchr::memchr;

/// A line of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ManifestLine<'l> {
    pub(crate) path: &'l [u8],
    pub(crate) file: Node,
    pub(crate) flag: FileFlag,
}

/// The kind of a file, which its text does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum FileFlag {
    Plain = 0,
    Executable = 1,
    Link = 2,
}

impl FileFlag {
    /// The letter at the end of a line.
    pub(crate) fn letter(self) -> &'static [u8] {
        match self {
            FileFlag::Plain => b"",
            FileFlag::Executable => b"x",
            FileFlag::Link => b"l",
        }
    }

    fn from_letter(letter: &[u8]) -> Option<FileFlag> {
        [FileFlag::Plain, FileFlag::Executable, FileFlag::Link]
            .into_iter()
            .find(|flag| flag.letter() == letter)
    }
}

impl<'l> ManifestLine<'l> {
    /// Reads a line without its newline; `None` if it is not one of a manifest of files.
    pub(crate) fn parse(line: &'l [u8]) -> Option<ManifestLine<'l>> {
        let at = memchr(0, line)?;
        let (path, rest) = line.split_at_checked(at)?;
        let (file, letter) = rest.get(1..)?.split_at_checked(40)?;
        let flag = FileFlag::from_letter(letter)?;
        let file = Node::from_hex(file)?;
        (!path.is_empty()).then_some(ManifestLine { path, file, flag })
    }

    /// Appends the line with its newline.
    pub(crate) fn write(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(self.path);
        text.push(0);
        text.extend_from_slice(&self.file.to_hex());
        text.extend_from_slice(self.flag.letter());
        text.push(b'\n');
    }
}
