//! Reading all files of the sources, to compare them with the index.
//!
//! Files are read between transactions, some at a time. Nothing is written. Separate from
//! `message_pipeline`, which reads new files in several threads and makes rows of them.

use super::file_changes::file_path;
use super::message_pipeline::read_message;
use super::{MailSyncOptions, is_mail_outdated};
use crate::error::Error;
use crate::mbox_file::is_mbox_message;
use crate::sources::{RegisteredSource, map_mail_roots};
use larder_format::message::MessageProblem;
use larder_store::{FileComparison, IndexedFile, MailBatchBuilder, MailFileState, Reader};
use std::io;
use std::path::Path;

/// A file, or a whole source, that does not agree with the index.
#[derive(Debug)]
pub struct MailFinding<'f> {
    /// The path.
    pub path: &'f Path,
    /// The disagreement.
    pub disagreement: MailDisagreement<'f>,
}

/// The way in which a file does not agree with the index.
#[derive(Debug, thiserror::Error)]
pub enum MailDisagreement<'f> {
    /// The directory of a source is not there.
    #[error("the source is missing, and its files were not compared")]
    MissingSource,
    /// The file is not there.
    #[error("is missing, or was renamed")]
    MissingFile,
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(&'f io::Error),
    /// The file was changed after it was read for the index.
    #[error("was changed since it was indexed")]
    Changed,
    /// The file did not change, and is not the one in the index.
    #[error("the index has another content of the file")]
    OtherContent,
    /// The message is damaged, and the index has what can be read of it.
    #[error("{0}")]
    DamagedMessage(&'f MessageProblem),
    /// The index has something else than what is in the file.
    #[error("the index differs from the file: {}", .0.join(", "))]
    Different(&'f [&'static str]),
}

impl MailDisagreement<'_> {
    /// Returns whether the index is damaged, and not merely older than the files.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, MailDisagreement::OtherContent | MailDisagreement::Different(_))
    }
}

/// The result of a comparison of all files with the index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MailVerificationReport {
    /// The files that were read.
    pub files: u64,
    /// The files that are missing, changed or unreadable.
    pub not_compared: u64,
    /// The files that the next synchronisation reads again.
    pub expired: u64,
    /// The files of which the index has something else.
    pub damaged: u64,
    /// The files with damaged messages.
    pub damaged_messages: u64,
    /// Whether the messages were read with other rules than those of now, so that no file was
    /// compared.
    pub is_outdated: bool,
    /// Whether the user interrupted it.
    pub is_interrupted: bool,
}

/// Reads all files that the index knows, and compares them with it. `report_finding` gets each file
/// that does not agree, `report_progress` the number of files that were read.
///
/// # Errors
/// The index cannot be read.
pub fn verify_mail(
    index: &Reader,
    sources: &[RegisteredSource],
    options: &MailSyncOptions,
    report_finding: &mut dyn FnMut(MailFinding<'_>),
    report_progress: &mut dyn FnMut(u64),
    is_cancelled: &dyn Fn() -> bool,
) -> Result<MailVerificationReport, Error> {
    let mut report = MailVerificationReport::default();
    if is_mail_outdated(index, &options.personal_addresses, &options.converters)? {
        report.is_outdated = true;
        return Ok(report);
    }
    let roots = map_mail_roots(index, sources)?;
    let words = index.mail()?.digest_words()?;
    let mut builder = MailBatchBuilder::new(&options.personal_addresses);
    let mut bytes = Vec::new();
    for (collection, root) in &roots {
        if !root.exists() {
            report.not_compared += 1;
            let disagreement = MailDisagreement::MissingSource;
            report_finding(MailFinding { path: root, disagreement });
            continue;
        }
        let mut files = index.mail()?.indexed_files(collection, None)?;
        while let Some(last) = files.last().cloned() {
            for file in &files {
                if is_cancelled() {
                    report.is_interrupted = true;
                    return Ok(report);
                }
                let path = file_path(root, &file.directory, &file.name);
                let mut find = |report: &mut MailVerificationReport,
                                disagreement: MailDisagreement<'_>| {
                    match disagreement {
                        MailDisagreement::DamagedMessage(_) => report.damaged_messages += 1,
                        _ if disagreement.is_damage() => report.damaged += 1,
                        _ => report.not_compared += 1,
                    }
                    report_finding(MailFinding { path: &path, disagreement });
                };
                let state = match read_message(&path, options.max_message_bytes, &mut bytes) {
                    Ok((state, _)) => state,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        find(&mut report, MailDisagreement::MissingFile);
                        continue;
                    }
                    Err(error) => {
                        find(&mut report, MailDisagreement::Unreadable(&error));
                        continue;
                    }
                };
                report.files += 1;
                let mut failure = None;
                let compared = builder.compare(file, &words, &bytes, &mut |part| {
                    let found = options.converters.find_used_text(index, file.row, part);
                    found.unwrap_or_else(|error| {
                        failure.get_or_insert(error);
                        None
                    })
                });
                if let Some(error) = failure {
                    return Err(error);
                }
                if let Some(problem) = compared.damage.first() {
                    find(&mut report, MailDisagreement::DamagedMessage(problem));
                }
                match compared.comparison {
                    FileComparison::Same => {}
                    FileComparison::Expired => report.expired += 1,
                    FileComparison::OtherContent => {
                        let disagreement = match is_unchanged(file, &path, &state) {
                            true => MailDisagreement::OtherContent,
                            false => MailDisagreement::Changed,
                        };
                        find(&mut report, disagreement);
                    }
                    FileComparison::Different(names) => {
                        find(&mut report, MailDisagreement::Different(&names));
                    }
                }
                report_progress(report.files);
            }
            files = index.mail()?.indexed_files(collection, Some(&last))?;
        }
    }
    Ok(report)
}

/// Returns whether a file surely did not change since it was read for the index. The name of a
/// message in an mbox file has the hash of its bytes, which were compared when it was read.
fn is_unchanged(file: &IndexedFile, path: &Path, state: &MailFileState) -> bool {
    let known = &file.state;
    is_mbox_message(path)
        || known.modified != 0 && known.modified == state.modified && known.size == state.size
}
