//! The format of the mail at a path that is to be registered.
//!
//! A source has maildirs, or mbox and .eml files. A tree may have both, and a folder may have the
//! name of a part of a maildir by accident, such as `new` beside `old` in an archive.
//!
//! Separate from the scans, which are told the format.

use super::{
    DirectoryContents, MailSourceFormat, MaildirDirectory, MaildirScan, Scanner, is_eml, is_hidden,
    scan_mail, scan_with,
};
use crate::mbox_file::MboxFile;
use std::fs;
use std::io;
use std::path::Path;

/// The mail that was found at a path.
#[derive(Debug)]
pub struct DetectedMail {
    /// The format of a source of it.
    pub format: MailSourceFormat,
    /// The directories that such a source has.
    pub scan: MaildirScan,
    /// Mbox files, and folders of .eml files, beside maildirs: the source does not have them.
    pub left_out: Vec<MaildirDirectory>,
}

/// Returns the mail at a path, and the format of a source of it; `None`: there is none.
///
/// # Errors
/// The path cannot be read.
pub fn detect_mail_source(root: &Path) -> io::Result<Option<DetectedMail>> {
    let mut maildirs = MaildirScan::default();
    if fs::metadata(root)?.is_dir() {
        maildirs = scan_mail(root, MailSourceFormat::Maildir)?;
    }
    if !maildirs.directories.iter().any(is_in_maildir) {
        let scan = scan_mail(root, MailSourceFormat::Files)?;
        if !scan.directories.is_empty() {
            let (format, left_out) = (MailSourceFormat::Files, Vec::new());
            return Ok(Some(DetectedMail { format, scan, left_out }));
        }
    }
    if maildirs.directories.is_empty() {
        return Ok(None);
    }
    // The messages of a large maildir need not be opened.
    let scanner = Scanner { skips_maildirs: true, ..Scanner::new(MailSourceFormat::Files) };
    let left_out = scan_with(scanner, root)?.directories;
    Ok(Some(DetectedMail { format: MailSourceFormat::Maildir, scan: maildirs, left_out }))
}

/// Returns whether a directory `cur` or `new` is one of a maildir: it has the other one beside it,
/// or files that are neither mbox nor .eml files. Copies of maildirs may lack an empty `new`.
fn is_in_maildir(directory: &MaildirDirectory) -> bool {
    debug_assert_eq!(directory.contents, DirectoryContents::Maildir);
    let other = if directory.is_new { "cur" } else { "new" };
    if directory.path.with_file_name(other).is_dir() {
        return true;
    }
    let Ok(entries) = fs::read_dir(&directory.path) else { return false };
    entries.flatten().any(|entry| {
        let (name, path) = (entry.file_name(), entry.path());
        !is_hidden(&name)
            && !is_eml(&name)
            && path.is_file()
            && MboxFile::has_form(&path).is_ok_and(|is_mbox| !is_mbox)
    })
}
