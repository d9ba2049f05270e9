//! The tables of mail, which `index.db` and `commits.db` have beside those of `schema`. A commit is
//! a file of a directory without a name, whose state has the tips of the refs.
//!
//! * `mail_directory`: a directory `cur` or `new` of a maildir, with the state in which it was last
//!   listed. `mail_folder`: the folder that it belongs to.
//! * `mail_file(directory, base, place, name, inode, item, size, modified, changed, rank)`: the
//!   files. A message has one or more. `base`: the time that the name begins with, and a hash of
//!   the base name, which a changed flag keeps, so that the row and its key in the index of items
//!   stay where they are; `place` divides the files of a directory with one key. `size`,
//!   `modified` and `changed` are those of the file when it was read: bytes, and the times of the
//!   last change of its content and of its state, in nanoseconds since 1970; `modified` is 0 if the
//!   file may have changed right after it was read. `rank`: the place of the file among those of
//!   its message, which has the values of the file with the least rank, see
//!   `MessageSummary::copy_rank`; NULL: the file must be read again.
//! * `mail_column(id, data)`: one value for each row, in pages of [`crate::mail::BLOCK_ROWS`] rows:
//!   `id` is the number of the column times 2^32 plus the number of the block. See `mail::columns`.
//! * `mail_set(id, rows)`: the rows of a folder or of a label, as a bitmap for each block. `id` is
//!   the number of the set times 2^24 plus the number of the block; for labels, 2^62 plus the
//!   number of the block times 2^24 plus the number of the label, so that the labels of a block are
//!   beside each other. In place of a label, 0 is the set of the messages whose labels belong to
//!   any text with their Message-ID, see `mail::labels`.
//! * `mail_label(id, name)`: the labels. `mail_waiting_label(uid, labels, is_given, message_id)`:
//!   the items with labels in `data.db` that do not follow from the labels of the messages here,
//!   see `mail::labels`, by their names, as bytes; `message_id`: the Message-ID, NULL if it is not
//!   known; `is_given`: a message with the Message-ID is in the index.
//!   The value `label_cursor` in `meta` is the position in the change feed of `data.db` up to which
//!   the labels are known.
//! * The value `rule_row:C` in `meta`: the first row of the collection C whose message the rules
//!   for new mail have not been run on; 0: not known.
//! * `mail_departed(id, name)`: the last messages that went after the rules for new mail had been
//!   run on them, by a hash of Message-ID and text; `id` is in the order in which they went. If
//!   they come back, they are no new mail. See `apply::known_mail`.
//! * `mail_block(id, newest, oldest)`: the newest and the oldest date of each block. A search reads
//!   blocks in the order of the newest dates, and skips those without a date of its range.
//! * `mail_thread(thread, item, ids)`: the members of each thread, with the hashes of the
//!   Message-IDs that each has and names, its own first. `mail_thread_id(id, thread)`: the thread
//!   of each Message-ID, by its hash, also of messages that only others name.
//!   `mail_thread_alias(thread, joined)`: threads that a later message joined with another.
//! * `mail_other_text(item, message_id)`: the messages whose names are made from their texts,
//!   because another text has the Message-ID as its name, with the Message-ID. They are few.
//! * `mail_state_change(item, seq, ordinal)`: the last batch that changed the state of a message
//!   after the batch that wrote its row in `item`, and the place in it. It is the place of the
//!   message in the change feed. The rows have no checksum: the unique index has all columns a
//!   second time, and a check compares both, so that a byte that changed in one of them is found.
//! * `mail_before_image(id, seq, previous, first_new_row, data)`: the former states of the messages
//!   that the batch `seq` changed; `previous`: the batch of the record before it; `first_new_row`:
//!   the first row that is new in the batch; `data`: NULL if the former states are not known. See
//!   `mail::before_image`.
//! * `mail_conversion(id, key, text, failure, text_hash)`: the text that a converter made of an
//!   attachment; `key`: the SHA-256 of the command of the converter and the content; `failure`: the
//!   reason that the text is not complete, or NULL; `text_hash`: a hash of the text.
//!   `mail_conversion_use(item, conversion, text_hash)`: the messages with such attachments, with
//!   the hash of the text whose words the index has. A text without a use is deleted.
//! * In `meta`: `mail_fingerprint`: the rules with which messages are read.
//!   `mail_outdated_end`: the row before which messages were read with other rules; their files are
//!   to be read again. It is missing if there are none. `mail_former_rules_end`: the row before
//!   which the messages are those whose files could not be read since the rules changed.
//!   `mail_words_end`: the row before which rows
//!   may have words; those after `last_item` are of messages that are not written yet, or that an
//!   interrupted synchronisation did not write.
//!
//! The words of messages are segments of `idx_segment`, as `derived_index` 4, and the dictionary of
//! these words, in which parts of words are looked up, as `derived_index` 5; see `larder-index`.
//! The trigrams of a large segment of the dictionary are segments, too, whose `derived_index` is
//! the negative number of that segment.
//!
//! All of this is derived from the files of maildirs and from `data.db`. Separate from `mail`,
//! which reads and writes the tables, because `schema` creates them.

use larder_index::IndexId;

/// The index of words, beside the indexes of [`crate::DerivedIndex`].
pub(crate) const WORD_INDEX: IndexId = IndexId(4);

/// The dictionary of the words of text in [`WORD_INDEX`].
pub(crate) const WORD_DICTIONARY: IndexId = IndexId(5);

/// The key of the fingerprint of the rules in `meta`.
pub(crate) const FINGERPRINT_KEY: &str = "mail_fingerprint";
/// The key of the row before which messages were read with other rules.
pub(crate) const OUTDATED_END_KEY: &str = "mail_outdated_end";
/// The key in `meta` of the row before which messages were read with former rules, and their files
/// could not be read since.
pub(crate) const FORMER_RULES_END_KEY: &str = "mail_former_rules_end";

/// The key of the row before which rows may have words.
pub(crate) const WORDS_END_KEY: &str = "mail_words_end";

/// The script that makes the tables.
pub(crate) const MAIL_SCHEMA_SQL: &str = "
CREATE TABLE mail_folder(
  id INTEGER PRIMARY KEY,
  collection INTEGER NOT NULL,
  path BLOB NOT NULL,
  UNIQUE(collection, path)
) STRICT;
CREATE TABLE mail_directory(
  id INTEGER PRIMARY KEY,
  collection INTEGER NOT NULL,
  folder INTEGER NOT NULL,
  path BLOB NOT NULL,
  is_new INTEGER NOT NULL,
  state BLOB NOT NULL,
  UNIQUE(collection, path)
) STRICT;
CREATE TABLE mail_file(
  directory INTEGER NOT NULL,
  base INTEGER NOT NULL,
  place INTEGER NOT NULL,
  name BLOB NOT NULL,
  inode INTEGER NOT NULL,
  item INTEGER NOT NULL,
  size INTEGER NOT NULL,
  modified INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  rank INTEGER,
  PRIMARY KEY(directory, base, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_file_item ON mail_file(item);
CREATE INDEX mail_file_unread ON mail_file(directory) WHERE rank IS NULL;
CREATE TABLE mail_column(id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
CREATE TABLE mail_set(id INTEGER PRIMARY KEY, rows BLOB NOT NULL) STRICT;
CREATE TABLE mail_label(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE mail_waiting_label(
  uid TEXT PRIMARY KEY,
  labels BLOB NOT NULL,
  is_given INTEGER NOT NULL,
  message_id TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_waiting_label_message_id ON mail_waiting_label(message_id);
CREATE TABLE mail_departed(id INTEGER PRIMARY KEY, name INTEGER NOT NULL UNIQUE) STRICT;
CREATE TABLE mail_block(
  id INTEGER PRIMARY KEY,
  newest INTEGER NOT NULL,
  oldest INTEGER NOT NULL
) STRICT;
CREATE TABLE mail_thread(
  thread INTEGER NOT NULL,
  item INTEGER NOT NULL,
  ids BLOB NOT NULL,
  PRIMARY KEY(thread, item)
) STRICT, WITHOUT ROWID;
CREATE TABLE mail_thread_id(id INTEGER PRIMARY KEY, thread INTEGER NOT NULL) STRICT;
CREATE TABLE mail_thread_alias(thread INTEGER PRIMARY KEY, joined INTEGER NOT NULL) STRICT;
CREATE TABLE mail_other_text(item INTEGER PRIMARY KEY, message_id TEXT NOT NULL) STRICT;
CREATE INDEX mail_other_text_message_id ON mail_other_text(message_id);
CREATE TABLE mail_conversion(
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE,
  text BLOB NOT NULL,
  failure TEXT,
  text_hash INTEGER NOT NULL
) STRICT;
CREATE TABLE mail_conversion_use(
  item INTEGER NOT NULL,
  conversion INTEGER NOT NULL,
  text_hash INTEGER NOT NULL,
  PRIMARY KEY(item, conversion)
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_conversion_use_conversion ON mail_conversion_use(conversion);
CREATE TABLE mail_state_change(
  item INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  ordinal INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX mail_state_change_seq ON mail_state_change(seq, ordinal);
CREATE TABLE mail_before_image(
  id INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  previous INTEGER NOT NULL,
  first_new_row INTEGER NOT NULL,
  data BLOB
) STRICT;
";
