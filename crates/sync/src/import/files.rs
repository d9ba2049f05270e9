//! Finds the files to import.
//!
//! Reads no content. Separate from the import so that the rules for names, folders and order are in
//! one place.

use super::input_origin::{FolderCollection, InputOrigin, has_extension};
use super::item_folder::FolderCollections;
use super::{ImportDiagnostic, ImportInput};
use larder_store::Kind;
use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of standard input in messages.
const STANDARD_INPUT: &str = "standard input";
/// The number of input names in the log before "and N more".
const MAX_LISTED_INPUTS: usize = 3;
/// The length of a list of names, in characters.
const MAX_NAMES_CHARS: usize = 200;

/// A stream of bytes to read.
pub(super) enum InputSource {
    /// A file that existed when it was found, and the collection of its folder.
    File { path: PathBuf, collection: Option<Arc<FolderCollection>> },
    /// An open stream.
    Stream(Box<dyn Read + Send>),
}

impl InputSource {
    /// Returns whether the file name has the extension of a calendar.
    pub(super) fn has_calendar_extension(&self) -> bool {
        let InputSource::File { path, .. } = self else { return false };
        has_extension(path, Kind::is_exported_in_calendar)
    }

    /// Returns the origin of the pieces of this input.
    pub(super) fn origin(&self) -> InputOrigin {
        let (stem, collection) = match self {
            InputSource::File { path, collection } => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                (stem, collection.clone())
            }
            InputSource::Stream(_) => (String::new(), None),
        };
        InputOrigin { name: self.to_string(), stem, collection }
    }
}

impl fmt::Display for InputSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputSource::File { path, .. } => path.display().fmt(f),
            InputSource::Stream(_) => f.write_str(STANDARD_INPUT),
        }
    }
}

/// The files of the inputs.
#[derive(Default)]
pub(super) struct InputFiles {
    /// The files in the order in which they are read.
    pub(super) sources: Vec<InputSource>,
    /// The size of all files in bytes.
    pub(super) bytes: u64,
    /// Whether an input is not a regular file: its length is unknown, and reading it may block for
    /// ever.
    pub(super) is_unbounded: bool,
    /// Inputs that are missing or not accessible.
    pub(super) unreadable: Vec<ImportDiagnostic>,
    /// Folders without a file to import, and links that are not followed.
    pub(super) skipped_folders: Vec<ImportDiagnostic>,
    /// The canonical paths of visited folders, so that a symbolic link cannot lead in circles.
    visited_folders: HashSet<PathBuf>,
}

impl InputFiles {
    /// Resolves the inputs: files as they are, folders with everything below them.
    /// Without `folders`, no folder is a collection.
    pub(super) fn find(
        inputs: Vec<ImportInput>,
        mut folders: Option<FolderCollections<'_>>,
    ) -> InputFiles {
        let mut files = InputFiles::default();
        for input in inputs {
            match input {
                ImportInput::Stdin(stream) => {
                    files.is_unbounded = true;
                    files.sources.push(InputSource::Stream(stream));
                }
                ImportInput::Path(path) => files.add_path(path, folders.as_mut()),
            }
        }
        files
    }

    /// Returns whether a path is one of the files, under any name.
    pub(super) fn contains(&self, path: &Path) -> bool {
        let Ok(real) = fs::canonicalize(path) else { return false };
        self.sources.iter().any(|source| match source {
            InputSource::File { path, .. } => fs::canonicalize(path).is_ok_and(|path| path == real),
            InputSource::Stream(_) => false,
        })
    }

    fn add_path(&mut self, path: PathBuf, folders: Option<&mut FolderCollections<'_>>) {
        match fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => {
                let found = |files: &InputFiles| {
                    files.sources.len() + files.unreadable.len() + files.skipped_folders.len()
                };
                let before = found(self);
                match fs::canonicalize(&path) {
                    Ok(root) => self.add_folder(&path, &root, folders),
                    Err(error) => self.add_unreadable(&path, &error),
                }
                if before == found(self) {
                    self.skipped_folders.push(ImportDiagnostic::for_file(
                        path.display().to_string(),
                        "no .vcf, .vcard or .ics file in this folder".into(),
                    ));
                }
            }
            Ok(meta) => self.add_file(path, &meta, None),
            Err(error) => self.add_unreadable(&path, &error),
        }
    }

    fn add_file(
        &mut self,
        path: PathBuf,
        meta: &fs::Metadata,
        collection: Option<Arc<FolderCollection>>,
    ) {
        self.bytes += meta.len();
        self.is_unbounded |= !meta.is_file();
        self.sources.push(InputSource::File { path, collection });
    }

    fn add_unreadable(&mut self, path: &Path, error: &io::Error) {
        self.unreadable
            .push(ImportDiagnostic::for_file(path.display().to_string(), io_reason(error)));
    }

    /// Adds the address books and calendars in a folder and below it, by name. Hidden ones are
    /// skipped: they belong to programs, and often are half-written copies. A link to a folder
    /// outside of `root` is not followed: it may lead to all files of the machine.
    fn add_folder(
        &mut self,
        path: &Path,
        root: &Path,
        mut folders: Option<&mut FolderCollections<'_>>,
    ) {
        let names = match fs::canonicalize(path).and_then(|real| self.list_folder(path, real)) {
            Ok(names) => names,
            Err(error) => return self.add_unreadable(path, &error),
        };
        let is_input = |path: &&PathBuf| has_known_extension(path) && path.is_file();
        let collection = folders.as_mut().and_then(|folders| {
            let inputs: Vec<PathBuf> = names.iter().filter(is_input).cloned().collect();
            folders.detect(path, &inputs)
        });
        for path in names {
            // A symbolic link is followed.
            match fs::metadata(&path) {
                Ok(meta) if meta.is_dir() && leads_out_of(root, &path) => {
                    self.skipped_folders.push(ImportDiagnostic::for_file(
                        path.display().to_string(),
                        "this link to a folder elsewhere was not followed; import that folder by \
                         its own name"
                            .into(),
                    ));
                }
                Ok(meta) if meta.is_dir() => {
                    self.add_folder(&path, root, folders.as_deref_mut());
                }
                Ok(meta) if meta.is_file() && has_known_extension(&path) => {
                    self.add_file(path, &meta, collection.clone());
                }
                Err(error) if has_known_extension(&path) => self.add_unreadable(&path, &error),
                _ => {}
            }
        }
    }

    fn list_folder(&mut self, path: &Path, real: PathBuf) -> io::Result<Vec<PathBuf>> {
        if !self.visited_folders.insert(real) {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                names.push(entry.path());
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Returns whether a folder is a symbolic link to one that is not below `root`.
fn leads_out_of(root: &Path, folder: &Path) -> bool {
    folder.is_symlink() && !fs::canonicalize(folder).is_ok_and(|real| real.starts_with(root))
}

fn has_known_extension(path: &Path) -> bool {
    has_extension(path, |_| true)
}

/// Formats an I/O error as a reason, without its number if the words are enough.
pub(super) fn io_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

/// Returns the names of the inputs for the log: short, without folders.
pub(super) fn describe_inputs(inputs: &[ImportInput]) -> String {
    let mut names: Vec<String> = inputs
        .iter()
        .take(MAX_LISTED_INPUTS)
        .map(|input| match input {
            ImportInput::Stdin(_) => STANDARD_INPUT.into(),
            ImportInput::Path(path) => {
                path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
            }
        })
        .collect();
    if inputs.len() > MAX_LISTED_INPUTS {
        names.push(format!("and {} more", inputs.len() - MAX_LISTED_INPUTS));
    }
    super::sanitise_text(&names.join(", "), MAX_NAMES_CHARS)
}
