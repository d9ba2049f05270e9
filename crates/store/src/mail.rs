//! The tables of mail in `index.db`: maildirs and their files, the states of messages, threads, and
//! the index of words.
//!
//! A message is a row of `item`, like any item; its bytes stay in the files of a maildir. Its row
//! has the values that lists show, packed by `message_summary`, as stored fields. All of this is
//! derived from the files, so the tables are only in the store that may be deleted.
//!
//! Text never changes: a message whose file was edited is removed and added again, under another
//! row. So no posting of the word index is ever stale, and a posting of a row that no longer exists
//! is recognised by the date column: searches skip it, and merges drop it. States change often:
//! they are in columns and sets.
//!
//! See `mail_schema` for the tables.
//!
//! Why columns instead of rows: a search reads the states of neighbouring rows together, and a
//! change of many states writes few pages.
//!
//! | module | content |
//! |---|---|
//! | `before_image` | the former states of messages, by batch |
//! | `columns` | columns and sets, by block |
//! | `conversions` | the texts that converters made of attachments |
//! | `label_items` | which labels the texts with one Message-ID have |
//! | `labels` | the labels of messages |
//! | `former_states` | the states of messages after an earlier batch |
//! | `page_cache` | what a reader keeps until the next write |
//! | `text_hash` | the hash of the text of a message |
//! | `threads` | which messages are one thread |
//! | `batch` | the changes of a batch, and messages that are ready to be written |

pub(crate) mod batch;
pub(crate) mod before_image;
pub(crate) mod columns;
pub(crate) mod conversions;
pub(crate) mod former_states;
pub(crate) mod label_items;
pub(crate) mod labels;
pub(crate) mod page_cache;
pub(crate) mod text_hash;
pub(crate) mod threads;

/// The number of rows of a block. One page of the database holds a column of a block.
pub const BLOCK_ROWS: u32 = 1024;
/// The number of words of a bitmap of the rows of a block.
pub const BLOCK_WORDS: usize = BLOCK_ROWS as usize / 64;

/// The rows of a block as a bitmap.
pub type BlockRows = [u64; BLOCK_WORDS];
