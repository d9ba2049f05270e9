//! Reading the words of messages: the rows and positions of terms, and the dictionary of text.
//!
//! Separate from the rest of `mail_reader`, which reads tables: words are in segments.

use crate::error::{DatabaseResult, Result, sqlite_error_at};
use crate::index_tables::IndexTables;
use crate::read_transaction::ReadTransaction;
use crate::reader_cache::ReaderCache;
use larder_index::{PhraseCursor, TermChoice, TermDictionary, WordCursor, WordIndex, WordPart};
use std::ops::Range;
use std::path::Path;

/// The words of all messages, in one transaction.
pub struct MailWords<'t> {
    pages: IndexTables<'t>,
    cache: &'t ReaderCache,
    path: &'t Path,
}

impl<'t> MailWords<'t> {
    /// Names the words in a transaction; nothing is read yet.
    pub(super) fn new(
        tx: &'t ReadTransaction<'t>,
        cache: &'t ReaderCache,
        path: &'t Path,
    ) -> MailWords<'t> {
        MailWords { pages: IndexTables::new(tx), cache, path }
    }

    /// Reads the list of segments.
    pub fn open(&'t self) -> Result<OpenMailWords<'t>> {
        let open = || -> DatabaseResult<_> {
            let cache = &self.cache.mail;
            let index = WordIndex::with_segments(&self.pages, cache.word_segments(&self.pages)?);
            let segments = cache.dictionary_segments(&self.pages)?;
            Ok((index, TermDictionary::with_segments(&self.pages, segments)))
        };
        let (index, dictionary) = open().map_err(sqlite_error_at(self.path))?;
        Ok(OpenMailWords { index, dictionary, path: self.path })
    }
}

/// The words of all messages, with their segments.
pub struct OpenMailWords<'t> {
    index: WordIndex<'t, IndexTables<'t>>,
    dictionary: TermDictionary<'t, IndexTables<'t>>,
    path: &'t Path,
}

impl OpenMailWords<'_> {
    /// Returns a cursor over the rows of a term, which reads nothing yet.
    #[must_use]
    pub fn cursor(&self, term: &[u8]) -> WordCursor {
        self.index.cursor(term)
    }

    /// Sets the bits of the rows from `first_row` on that have the term of a cursor.
    pub fn rows_in_range(
        &self,
        cursor: &mut WordCursor,
        first_row: u32,
        bits: &mut [u64],
    ) -> Result<()> {
        let read = cursor.rows_in_range(&self.index, first_row, bits);
        read.map_err(sqlite_error_at(self.path))
    }

    /// Clears the bits of the rows from `first_row` on that do not have a phrase at positions in a
    /// range. Returns false if that takes more steps, see [`PhraseCursor::retain_rows`].
    pub fn retain_phrase_rows(
        &self,
        phrase: &mut PhraseCursor,
        range: &Range<u32>,
        first_row: u32,
        rows: &mut [u64],
        max_steps: u64,
    ) -> Result<bool> {
        let read = phrase.retain_rows(&self.index, range, first_row, rows, max_steps);
        read.map_err(sqlite_error_at(self.path))
    }

    /// Replaces `positions` by those of the term in a row; returns false if the row has none.
    pub fn positions(
        &self,
        cursor: &mut WordCursor,
        row: u32,
        positions: &mut Vec<u32>,
    ) -> Result<bool> {
        cursor.positions(&self.index, row, positions).map_err(sqlite_error_at(self.path))
    }

    /// Adds the rows of all terms with a prefix, as bits.
    pub fn rows_with_prefix(&self, prefix: &[u8], rows: &mut Vec<u64>) -> Result<()> {
        self.index.rows_with_prefix(prefix, rows).map_err(sqlite_error_at(self.path))
    }

    /// Adds the rows of all these terms, which ascend, as bits.
    pub fn rows_with_terms(&self, terms: &[Vec<u8>], rows: &mut Vec<u64>) -> Result<()> {
        self.index.rows_with_terms(terms, rows).map_err(sqlite_error_at(self.path))
    }

    /// Adds the rows of a term, as bits.
    pub fn rows_with_term(&self, term: &[u8], rows: &mut Vec<u64>) -> Result<()> {
        self.index.rows_with_term(term, rows).map_err(sqlite_error_at(self.path))
    }

    /// Returns the number of messages with a term, or more than `limit`.
    pub fn count_postings(&self, term: &[u8], limit: u64) -> Result<u64> {
        self.index.count_postings(term, limit).map_err(sqlite_error_at(self.path))
    }

    /// Passes each word of text that has any of some parts to `visit`, in no order. A word may come
    /// again, and words of removed messages may come, too. Returns the number of bytes that were
    /// read, about: the dictionary is read once for all parts.
    pub fn for_each_text_word(
        &self,
        parts: &[WordPart<'_>],
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<u64> {
        self.dictionary.for_each_word(parts, visit).map_err(sqlite_error_at(self.path))
    }

    /// Visits the terms from one on, until `visit` returns false.
    pub fn for_each_term(
        &self,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Result<()> {
        self.index.for_each_term(from, visit).map_err(sqlite_error_at(self.path))
    }

    /// Visits the terms from one on that `choose` reads, with all their rows. Each segment has its
    /// terms.
    pub fn for_each_posting_list(
        &self,
        from: &[u8],
        choose: &mut dyn FnMut(&[u8]) -> TermChoice,
        visit: &mut dyn FnMut(&[u8], &[u32]),
    ) -> Result<()> {
        let read = self.index.for_each_posting_list(from, choose, visit);
        read.map_err(sqlite_error_at(self.path))
    }
}
