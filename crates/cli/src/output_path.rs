//! Paths that a user names as outputs. Each argument with such a path has the type [`OutputPath`]
//! or [`OutputFolder`]. `larder_store::OutputFile` opens files; here `-` becomes standard output.
//!
//! Separate from `output`, which prints the messages of commands.

use crate::failure::{CommandFailure, FailureKind};
use crate::output::OutputStream;
use larder_store::{DataDirectory, FilePrivacy, OutputError, OutputFile, OutputTarget};
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of standard output in messages.
const STANDARD_OUTPUT: &str = "standard output";

/// A file that a command writes; `-` is standard output.
#[derive(Debug, Clone)]
pub(crate) struct OutputPath(PathBuf);

impl From<OsString> for OutputPath {
    fn from(text: OsString) -> OutputPath {
        OutputPath(text.into())
    }
}

impl From<PathBuf> for OutputPath {
    fn from(path: PathBuf) -> OutputPath {
        OutputPath(path)
    }
}

impl OutputPath {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns whether the output is standard output, a pipe or a device, which is written
    /// directly.
    pub(crate) fn is_direct(&self) -> bool {
        let is_special = |found: Metadata| !found.is_file() && !found.is_dir();
        self.is_standard_output() || std::fs::metadata(&self.0).is_ok_and(is_special)
    }

    /// Returns whether the output is standard output, by whatever name.
    pub(crate) fn is_standard_output(&self) -> bool {
        let id = |file: io::Result<Metadata>| file.ok().map(|file| (file.dev(), file.ino()));
        let same = || {
            let standard = standard_output().and_then(|file| file.metadata());
            id(standard).is_some_and(|own| id(std::fs::metadata(&self.0)) == Some(own))
        };
        self.0.as_os_str() == "-" || same()
    }

    /// Returns the target of the output. If that is standard output, `out` prints on standard error
    /// from now on.
    pub(crate) fn to_target(&self, out: &mut OutputStream) -> io::Result<OutputTarget> {
        if !self.is_standard_output() {
            return Ok(OutputTarget::Path(self.0.clone()));
        }
        out.divert_to_standard_error()?;
        Ok(OutputTarget::Stream {
            name: STANDARD_OUTPUT.into(),
            file: Arc::new(standard_output()?),
            temporary_folder: std::env::temp_dir(),
        })
    }
}

/// A folder that a command writes files into. It is created if it is missing.
#[derive(Debug, Clone)]
pub(crate) struct OutputFolder(PathBuf);

impl From<OsString> for OutputFolder {
    fn from(text: OsString) -> OutputFolder {
        OutputFolder(text.into())
    }
}

impl OutputFolder {
    /// Returns the path of the first of these names that exists in the folder.
    pub(crate) fn find_existing(
        &self,
        names: impl Iterator<Item = impl AsRef<Path>>,
    ) -> Option<PathBuf> {
        let mut paths = names.map(|name| self.0.join(name));
        paths.find(|path| std::fs::symlink_metadata(path).is_ok())
    }

    /// Returns the path, unless it is a place that nothing may be written to.
    pub(crate) fn checked_path(&self, data_dir: &Path) -> Result<&Path, CommandFailure> {
        let folder = &self.0;
        if folder.as_os_str() == "-" {
            return Err(CommandFailure::new(FailureKind::Usage, "- is not a directory")
                .with_hint("name a directory; ./- is one with this name"));
        }
        OutputFile::check_folder(&DataDirectory::new(data_dir), folder)?;
        Ok(folder)
    }

    /// Writes files into the folder, and returns their paths.
    pub(crate) fn write_files(
        &self,
        data_dir: &Path,
        privacy: FilePrivacy,
        files: &[(String, impl AsRef<[u8]>)],
    ) -> Result<Vec<PathBuf>, CommandFailure> {
        let folder = self.checked_path(data_dir)?;
        let directory = DataDirectory::new(data_dir);
        std::fs::create_dir_all(folder)
            .map_err(|error| CommandFailure::from_file_error(folder, &error))?;
        let mut written = Vec::new();
        for (name, bytes) in files {
            let path = folder.join(name);
            let target = OutputTarget::from(&path);
            let mut file = OutputFile::create(&directory, &target, privacy)?;
            file.write_all(bytes.as_ref()).map_err(|error| file.to_error(error))?;
            file.commit()?;
            written.push(path);
        }
        Ok(written)
    }
}

/// Returns standard output as a file.
pub(crate) fn standard_output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

impl From<OutputError> for CommandFailure {
    fn from(error: OutputError) -> CommandFailure {
        match &error {
            OutputError::FileOfStore { .. } => CommandFailure::new(FailureKind::Usage, &error)
                .with_hint("name a file in another directory"),
            OutputError::File { path, source } if *path == Path::new(STANDARD_OUTPUT) => {
                io::Error::from(source.kind()).into()
            }
            OutputError::File { path, source } => CommandFailure::from_file_error(path, source),
            _ => CommandFailure::new(FailureKind::Source, error),
        }
    }
}
