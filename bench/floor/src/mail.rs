//! The floor of the mail benchmark: reading and parsing each file of a maildir once.
//!
//! `larder-floor mail DIR` reads the files of all directories `cur` and `new` below DIR in the
//! order of their inodes, in one thread, and parses each. Nothing is indexed or written. Prints the
//! number of messages and of the bytes of their texts, which a searcher at least has to split.

use crate::Result;
use larder_format::message::Message;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::DirEntryExt as _;
use std::path::{Path, PathBuf};

/// Reads and parses all messages.
pub(crate) fn run_mail_floor(root: &Path) -> Result<()> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let is_mail = folder.ends_with("cur") || folder.ends_with("new");
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => folders.push(entry.path()),
                false if is_mail => files.push((entry.ino(), entry.path())),
                false => {}
            }
        }
    }
    files.sort();
    let (count, bytes) = parse_files(&files)?;
    println!("{count}\t{bytes}");
    Ok(())
}

fn parse_files(files: &[(u64, PathBuf)]) -> Result<(usize, usize)> {
    let (mut text_bytes, mut buffer) = (0, Vec::new());
    for (_, path) in files {
        buffer.clear();
        File::open(path)?.read_to_end(&mut buffer)?;
        text_bytes += Message::parse(&buffer).body_text().len();
    }
    Ok((files.len(), text_bytes))
}
