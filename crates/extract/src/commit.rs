//! From a commit to the words that it is found by, and the values that lists show.
//!
//! The terms are those of messages, so that one index and one search serve both: the author is in
//! the field of From, the subject and the body in theirs, and all of these are text. The paths are
//! whole values, and words in the field of file names. Separate from `message`, which reads MIME.

use crate::fold_digest::FOLD_DIGEST;
use crate::message::{
    BODY_POSITIONS, HEADER_POSITIONS, MAX_MESSAGE_WORDS, MessageTermField, TermVisitor,
};
use crate::message_summary::MessageSummary;
use crate::tokenizer::{TOKENIZER_VERSION, Tokenizer};
use larder_format::commit::{Commit, CommitSignature};
use larder_format::fold::{FOLD_VERSION, fold};
use std::collections::BTreeSet;
use xxhash_rust::xxh3::xxh3_64;

/// The version of the rules in this module.
const COMMIT_RULES_VERSION: u32 = 3;
/// The most paths of a commit that are indexed.
pub const MAX_COMMIT_PATHS: usize = 1 << 16;

/// Extracts commits. It has buffers.
#[derive(Debug, Default)]
pub struct CommitExtractor {
    tokenizer: Tokenizer,
}

impl CommitExtractor {
    /// Returns the text that identifies the rules of the result.
    #[must_use]
    pub fn fingerprint_text(&self) -> String {
        let folding = format!("{FOLD_VERSION} {}", *FOLD_DIGEST);
        format!("commits {COMMIT_RULES_VERSION} {TOKENIZER_VERSION} {folding}")
    }

    /// Returns the values that lists show: the author as From, the committer as Cc, the parents as
    /// references. The date is that of the author.
    #[must_use]
    pub fn summarize(&self, commit: &Commit) -> MessageSummary {
        let hash = xxh3_64(commit.hash.as_bytes());
        MessageSummary {
            date: commit.author.date.seconds,
            text_hash: hash,
            file_hash: (hash & u64::from(u32::MAX)) as u32,
            subject: commit.subject(),
            from: vec![commit.author.person.clone()],
            cc: vec![commit.committer.person.clone()],
            references: commit.parents.clone(),
            ..MessageSummary::default()
        }
    }

    /// Calls `visit` with each term of a commit, as
    /// [`MessageExtractor::for_each_term`](crate::MessageExtractor::for_each_term).
    pub fn for_each_term(&mut self, commit: &Commit, visit: impl FnMut(u8, &[u8], Option<u32>)) {
        let mut writer = TermVisitor::new(&mut self.tokenizer, visit);
        writer.visit_value(MessageTermField::Message, "");
        writer.visit_text(commit.body(), BODY_POSITIONS.start, BODY_POSITIONS.end);
        let mut at = (0, HEADER_POSITIONS.start);
        writer.visit_header(MessageTermField::Subject, &commit.subject(), &mut at);
        let people = [
            (MessageTermField::From, &commit.author),
            (MessageTermField::Committer, &commit.committer),
        ];
        for (field, CommitSignature { person, .. }) in people {
            at.0 = 0;
            if let Some(name) = &person.name {
                writer.visit_header(field, name, &mut at);
            }
            writer.visit_header(field, &person.address, &mut at);
        }
        for parent in &commit.parents {
            writer.visit_value(MessageTermField::Reference, parent);
        }
        writer.visit_value(MessageTermField::Hash, &commit.hash);
        let mut position = 0;
        let mut folded = BTreeSet::new();
        for path in commit.paths.iter().take(MAX_COMMIT_PATHS) {
            if position < MAX_MESSAGE_WORDS {
                position = writer.visit_words(MessageTermField::FileName, path, position);
            }
            folded.insert(fold(path));
        }
        for path in folded {
            writer.visit_value(MessageTermField::Path, &path);
        }
        writer.finish();
    }
}
