//! Reading a file of labels, for the commands that take one.

use crate::failure::{CommandFailure, FailureKind};
use crate::output::sanitize_line;
use larder_format::label_dump::is_sup_dump;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The largest file of labels.
const MAX_DUMP_BYTES: u64 = 1 << 30;

/// Reads a file of labels; `-`: standard input. `command` is the one that reads labels from
/// standard input, for the hint on a compressed file.
pub(crate) fn read_label_dump(file: &Path, command: &str) -> Result<Vec<u8>, CommandFailure> {
    let shown = sanitize_line(&file.display().to_string());
    if let Some(compression) = larder_sync::detect_compression(file) {
        let message = format!("{shown} is compressed ({})", compression.format);
        return Err(CommandFailure::new(FailureKind::Input, message)
            .with_hint(format!("{} {shown} | {command}", compression.unpack_command)));
    }
    let mut bytes = Vec::new();
    let read = match file.as_os_str() == "-" {
        true => std::io::stdin().lock().take(MAX_DUMP_BYTES + 1).read_to_end(&mut bytes),
        false => {
            File::open(file).and_then(|file| file.take(MAX_DUMP_BYTES + 1).read_to_end(&mut bytes))
        }
    };
    read.map_err(|error| CommandFailure::from_file_error(file, &error))?;
    if bytes.len() as u64 > MAX_DUMP_BYTES {
        let message = format!("{shown} is larger than 1 GiB: no file of labels is");
        return Err(CommandFailure::new(FailureKind::Input, message));
    }
    if is_sup_dump(&bytes) {
        let message = format!("{shown} is a dump of notmuch in the format sup, which is not read");
        return Err(CommandFailure::new(FailureKind::Input, message)
            .with_hint("notmuch dump --format=batch-tag writes the format that is read"));
    }
    Ok(bytes)
}
