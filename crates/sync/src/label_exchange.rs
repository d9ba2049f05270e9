//! Dumps of labels: import from notmuch and mu, and export for them.
//!
//! Separate from `import` and `export`, which copy items of collections: a dump names messages that
//! are elsewhere, and some that are not here at all. Their labels are kept until they come.

use crate::error::Error;
use larder_edit::labels::{LabelReport, for_each_labelled, replace_labels, unique_texts};
use larder_format::label::{LabelList, NOTMUCH_FLAG_TAGS};
use larder_format::label_dump::{
    LabelDump, LabelDumpFormat, can_be_in_mu, dump_header, encode_tag, read_tags_without_labels,
    write_mu_entry, write_notmuch_line,
};
use larder_format::message::trim_message_id;
use larder_store::message_flags::{MessageFlag, MessageFlags};
use larder_store::{
    LabelItems, LabelledText, MailColumn, MailReader, Operation, Reader, Store, block_of,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The beginning of the name that notmuch gives a message without a Message-ID.
const NOTMUCH_HASH_PREFIX: &str = "notmuch-sha1-";
/// The number of messages without a file in the index, or with several texts, that a report names.
pub const MAX_NAMED_UNINDEXED_MESSAGES: usize = 5;
/// The number of messages that are looked up in one read transaction.
const MESSAGES_PER_READ: usize = 1000;

/// The result of an import of labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelImportReport {
    /// The number of messages that have other labels than before, or the same.
    pub labels: LabelReport,
    /// The number of messages that are not in the index: they get their labels when they come.
    pub waiting: u64,
    /// The Message-IDs of the first of these.
    pub waiting_ids: Vec<String>,
    /// The number of messages without a Message-ID, which notmuch names by a hash of the file: they
    /// cannot be found by it, and are left out.
    pub unnamed: u64,
    /// The tags and labels that were left out, because flags of files have their names.
    pub flag_tags: BTreeSet<&'static str>,
    /// The number of messages whose labels were replaced by those of the dump that can be labels,
    /// without others that cannot.
    pub partial: u64,
    /// The Message-IDs of the first of these.
    pub partial_ids: Vec<String>,
    /// The number of messages whose labels were to be replaced, and that keep them, because the
    /// dump has nothing for them but what cannot be labels.
    pub kept: u64,
    /// The Message-IDs of the first of these.
    pub kept_ids: Vec<String>,
}

/// Gives messages the labels that a dump names, beside those that they have, or in place of them.
///
/// # Errors
/// The store cannot be written. The batches before the error are kept.
pub fn import_labels(
    data: &mut Store,
    index: Option<&Reader>,
    operation: &mut Operation,
    dump: LabelDump,
    replaces: bool,
) -> Result<LabelImportReport, Error> {
    let mut report = LabelImportReport::default();
    let mut wanted: BTreeMap<(String, Option<u64>), LabelList> = BTreeMap::new();
    let identity = |text: &LabelledText| {
        let (message_id, text_hash) = text.identity();
        (message_id.to_string(), text_hash)
    };
    let mut replaced = HashSet::new();
    let mut named = Vec::new();
    let mut messages = dump.messages.into_iter().peekable();
    while messages.peek().is_some() {
        let mail = index.map(Reader::mail).transpose()?;
        for mut message in messages.by_ref().take(MESSAGES_PER_READ) {
            let is_flag = |tag: &&str| message.labels.remove(tag);
            report.flag_tags.extend(NOTMUCH_FLAG_TAGS.into_iter().filter(is_flag));
            if message.message_id.starts_with(NOTMUCH_HASH_PREFIX) {
                report.unnamed += 1;
                continue;
            }
            let is_replaced = replaces && !(message.is_partial && message.labels.is_empty());
            if replaces && message.is_partial {
                let (count, ids) = match is_replaced {
                    true => (&mut report.partial, &mut report.partial_ids),
                    false => (&mut report.kept, &mut report.kept_ids),
                };
                *count += 1;
                if ids.len() < MAX_NAMED_UNINDEXED_MESSAGES {
                    ids.push(message.message_id.clone());
                }
            }
            let mut texts = match &mail {
                Some(mail) => find_texts(mail, &message.message_id)?,
                None => Vec::new(),
            };
            if texts.is_empty() {
                if !message.labels.is_empty() {
                    report.waiting += 1;
                    if report.waiting_ids.len() < MAX_NAMED_UNINDEXED_MESSAGES {
                        report.waiting_ids.push(message.message_id.clone());
                    }
                }
                texts.push(match &mail {
                    Some(mail) => mail.unindexed_text(&message.message_id)?,
                    None => message.message_id.into(),
                });
            }
            for text in texts {
                let text_identity = identity(&text);
                if is_replaced {
                    replaced.insert(text_identity.clone());
                }
                wanted.entry(text_identity).or_default().extend(message.labels.iter());
                named.push(text);
            }
        }
    }
    let named = unique_texts(named);
    report.labels = replace_labels(data, operation, &named, &mut |text, labels| {
        let text = identity(text);
        let is_replaced = replaced.contains(&text);
        let mut after = if is_replaced { LabelList::default() } else { labels.clone() };
        after.extend(wanted.get(&text).into_iter().flat_map(LabelList::iter));
        after
    })?;
    Ok(report)
}

/// Returns the texts with a Message-ID, as a dump writes it.
fn find_texts(mail: &MailReader<'_>, message_id: &str) -> Result<Vec<LabelledText>, Error> {
    let mut rows = mail.rows_with_uid(message_id)?;
    if rows.is_empty() && message_id.contains(' ') {
        // notmuch leaves out every other character of white space between angle brackets only.
        rows = mail.rows_with_uid(&trim_message_id(&format!("<{message_id}>")))?;
    }
    Ok(mail.labelled_texts(&rows)?)
}

/// The result of an export of labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelExportReport {
    /// The number of messages.
    pub messages: u64,
    /// The number of messages that are not in the index: which flags their files have is not known,
    /// and notmuch takes those from a file that a line does not name.
    pub not_indexed: u64,
    /// The Message-IDs of the first of these.
    pub not_indexed_ids: Vec<String>,
    /// The number of Message-IDs whose texts have different labels: a line of notmuch has the
    /// labels of all of them.
    pub mixed: u64,
    /// The first of these Message-IDs.
    pub mixed_ids: Vec<String>,
    /// The number of messages that were left out, by the reason.
    pub left_out: BTreeMap<LabelExportRefusal, u64>,
    /// The labels that the program does not take, of the messages that have no other labels.
    pub refused_labels: BTreeSet<String>,
    /// The number of messages that were exported without some of their labels.
    pub partial_messages: u64,
    /// The labels of these that the program does not take.
    pub omitted_labels: BTreeSet<String>,
    /// Whether `notmuch restore` takes the file for one in the format of sup, unless it is told the
    /// format: it looks for a parenthesis in the first line of a message.
    pub resembles_sup: bool,
    /// The lines for notmuch that wait for one without a parenthesis, which is written first.
    held_back: Option<String>,
}

/// A reason why another program could not read the labels of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LabelExportRefusal {
    /// The message has no Message-ID.
    NoMessageId,
    /// The Message-ID or the path has characters that a line of the dump cannot have.
    UnreadableName,
    /// No file of the message is known, by which mu names it.
    NoFile,
    /// The message has none but labels that the program does not take: notmuch changes the files of
    /// messages with tags that are named like flags.
    NoLabel,
}

/// The tags that notmuch has beside labels, of the messages that have labels here.
///
/// They are read from a dump line by line, and kept in its encoding, because some cannot be labels.
/// A dump has all messages, and those without labels are not kept.
#[derive(Debug, Default)]
pub struct NotmuchTags {
    /// By Message-ID; `None`: the dump does not have the message.
    by_message: HashMap<String, Option<Arc<BTreeSet<String>>>>,
    /// The different sets of tags, which are few.
    sets: HashSet<Arc<BTreeSet<String>>>,
}

impl NotmuchTags {
    /// Prepares for the tags of the messages that have labels now.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn with_labelled_messages(data: &Reader) -> Result<NotmuchTags, Error> {
        let mut tags = NotmuchTags::default();
        for_each_labelled(data, &mut |uid, item| {
            drop(tags.by_message.insert(item.message_id.unwrap_or(uid), None));
        })?;
        Ok(tags)
    }

    /// Adds a line of the dump.
    pub fn add_line(&mut self, line: &[u8]) {
        let Some((message_id, tags)) = read_tags_without_labels(line) else { return };
        let Some(known) = self.by_message.get_mut(&message_id) else { return };
        let set = self.sets.get(&tags).map_or_else(|| Arc::new(tags), Arc::clone);
        self.sets.insert(Arc::clone(&set));
        *known = Some(set);
    }

    fn get(&self, message_id: &str) -> Option<&BTreeSet<String>> {
        self.by_message.get(message_id)?.as_deref()
    }
}

/// Writes the labels of all messages as another program reads them. `roots` are the paths of the
/// maildirs, by their collections. `notmuch_tags` are those that a restore takes away if a dump
/// does not name them. Of messages that are not among them, the tags are made from the flags in the
/// index, which differ where notmuch reads a file otherwise.
///
/// # Errors
/// A store cannot be read, or the output cannot be written.
pub fn export_labels(
    data: &Reader,
    index: Option<&Reader>,
    roots: &BTreeMap<String, PathBuf>,
    format: LabelDumpFormat,
    notmuch_tags: &NotmuchTags,
    out: &mut dyn io::Write,
) -> Result<LabelExportReport, Error> {
    // Two exports of the same labels are the same bytes; the order of the items is that in which
    // threads read them.
    let labelled = read_label_items(data, index)?;
    let mut report = LabelExportReport {
        held_back: (format == LabelDumpFormat::Notmuch).then(String::new),
        ..LabelExportReport::default()
    };
    out.write_all(dump_header(format).as_bytes()).map_err(Error::Write)?;
    let mut labelled = labelled.iter().peekable();
    while labelled.peek().is_some() {
        let mail = index.map(Reader::mail).transpose()?;
        for (message_id, items) in labelled.by_ref().take(MESSAGES_PER_READ) {
            let labels: BTreeSet<&str> =
                items.iter().flat_map(|(_, item)| item.labels.iter()).collect();
            // notmuch changes the files of messages with these tags.
            let is_taken =
                |name: &&&str| format == LabelDumpFormat::Mu || !NOTMUCH_FLAG_TAGS.contains(*name);
            let mut tags: BTreeSet<String> =
                labels.iter().filter(is_taken).map(|name| encode_tag(name)).collect();
            let refused = labels.iter().filter(|name| !is_taken(name)).map(|name| name.to_string());
            if tags.is_empty() && !labels.is_empty() {
                report.refused_labels.extend(refused);
                report.write(Err(LabelExportRefusal::NoLabel), out)?;
                continue;
            }
            let rows = match &mail {
                Some(mail) => mail.rows_with_uid(message_id)?,
                None => Vec::new(),
            };
            if format == LabelDumpFormat::Notmuch
                && let Some(mail) = &mail
                && are_labels_mixed(mail, &rows, items)?
            {
                report.mixed += 1;
                if report.mixed_ids.len() < MAX_NAMED_UNINDEXED_MESSAGES {
                    report.mixed_ids.push(message_id.clone());
                }
            }
            if format == LabelDumpFormat::Notmuch
                && let Some(kept) = notmuch_tags.get(message_id)
            {
                tags.extend(kept.iter().cloned());
                report.write_notmuch(message_id, &tags, refused, out)?;
                continue;
            }
            let Some((mail, first)) = mail.as_ref().zip(rows.first()) else {
                report.not_indexed += 1;
                if report.not_indexed_ids.len() < MAX_NAMED_UNINDEXED_MESSAGES {
                    report.not_indexed_ids.push(message_id.clone());
                }
                continue;
            };
            if !mail.has_message_id(*first)? {
                report.write(Err(LabelExportRefusal::NoMessageId), out)?;
                continue;
            }
            match format {
                LabelDumpFormat::Notmuch => {
                    add_flag_tags(mail, &rows, &mut tags)?;
                    report.write_notmuch(message_id, &tags, refused, out)?;
                }
                LabelDumpFormat::Mu => {
                    for (row, labels) in label_texts(mail, &rows, items)? {
                        let text = report.mu_text(mail, roots, row, message_id, &labels)?;
                        report.write(text, out)?;
                    }
                }
            }
        }
    }
    if let Some(lines) = report.held_back.take() {
        report.resembles_sup = !lines.is_empty();
        out.write_all(lines.as_bytes()).map_err(Error::Write)?;
    }
    Ok(report)
}

/// Reads the items with labels by Message-ID: to other programs all texts with a Message-ID are one
/// message.
fn read_label_items(
    data: &Reader,
    index: Option<&Reader>,
) -> Result<BTreeMap<String, LabelItems>, Error> {
    let mut named = Vec::new();
    for_each_labelled(data, &mut |name, item| named.push((name, item)))?;
    let mail = index.map(Reader::mail).transpose()?;
    let mut labelled: BTreeMap<String, LabelItems> = BTreeMap::new();
    for (name, item) in named {
        let message_id = match (&item.message_id, &mail) {
            (Some(id), _) => Some(id.clone()),
            (None, Some(mail)) => mail.message_id_of(&name)?,
            (None, None) => None,
        };
        let message_id = message_id.unwrap_or_else(|| name.clone());
        let items = labelled.entry(message_id).or_insert_with_key(|id| LabelItems::new(id));
        items.put(&name, item);
    }
    Ok(labelled)
}

/// Returns whether the texts with a Message-ID have different labels.
fn are_labels_mixed(
    mail: &MailReader<'_>,
    rows: &[u32],
    items: &LabelItems,
) -> Result<bool, Error> {
    if rows.len() < 2 {
        return Ok(false);
    }
    let texts = mail.labelled_texts(rows)?;
    let hashes: Vec<Option<u64>> = texts.iter().map(|text| text.text_hash).collect();
    let found = items.text_labels(&hashes);
    let mut labels = hashes.iter().map(|text| found.get(*text).labels);
    let first = labels.next();
    Ok(labels.any(|other| Some(&other) != first.as_ref()))
}

/// Returns the first row of each text with a Message-ID that has labels, with its labels: mu knows
/// messages by their paths.
fn label_texts(
    mail: &MailReader<'_>,
    rows: &[u32],
    items: &LabelItems,
) -> Result<Vec<(u32, LabelList)>, Error> {
    let texts = mail.labelled_texts(rows)?;
    let hashes: Vec<Option<u64>> = texts.iter().map(|text| text.text_hash).collect();
    let mut known = HashSet::new();
    let firsts = rows.iter().zip(&hashes).filter(|(_, text_hash)| known.insert(**text_hash));
    let found = items.text_labels(&hashes);
    let labelled = firsts.map(|(row, text)| (*row, found.get(*text).labels));
    Ok(labelled.filter(|(_, labels)| !labels.is_empty()).collect())
}

impl LabelExportReport {
    /// Writes the lines of a message, or counts why there are none.
    fn write(
        &mut self,
        text: Result<String, LabelExportRefusal>,
        out: &mut dyn io::Write,
    ) -> Result<(), Error> {
        match text {
            Ok(text) => {
                self.messages += 1;
                match &mut self.held_back {
                    Some(lines) if text.contains('(') => lines.push_str(&text),
                    held_back => {
                        let lines = text + &held_back.take().unwrap_or_default();
                        out.write_all(lines.as_bytes()).map_err(Error::Write)?;
                    }
                }
            }
            Err(reason) => *self.left_out.entry(reason).or_default() += 1,
        }
        Ok(())
    }

    /// Writes the line of a message for notmuch, without the labels that it does not take.
    fn write_notmuch(
        &mut self,
        uid: &str,
        tags: &BTreeSet<String>,
        refused: impl Iterator<Item = String>,
        out: &mut dyn io::Write,
    ) -> Result<(), Error> {
        let text = notmuch_text(uid, tags);
        let mut refused = refused.peekable();
        if text.is_ok() && refused.peek().is_some() {
            self.partial_messages += 1;
            self.omitted_labels.extend(refused);
        }
        self.write(text, out)
    }

    /// Returns the lines of a message for mu.
    fn mu_text(
        &mut self,
        mail: &MailReader<'_>,
        roots: &BTreeMap<String, PathBuf>,
        row: u32,
        uid: &str,
        labels: &LabelList,
    ) -> Result<Result<String, LabelExportRefusal>, Error> {
        let (taken, refused): (Vec<&str>, Vec<&str>) =
            labels.iter().partition(|name| can_be_in_mu(name));
        let refused = refused.into_iter().map(str::to_string);
        if taken.is_empty() {
            self.refused_labels.extend(refused);
            return Ok(Err(LabelExportRefusal::NoLabel));
        }
        let Some(path) = file_of_message(mail, roots, row)? else {
            return Ok(Err(LabelExportRefusal::NoFile));
        };
        let Some(entry) = write_mu_entry(&path, uid, labels) else {
            return Ok(Err(LabelExportRefusal::UnreadableName));
        };
        self.partial_messages += u64::from(refused.len() > 0);
        self.omitted_labels.extend(refused);
        Ok(Ok(entry))
    }
}

/// Returns the line of a message for notmuch.
fn notmuch_text(uid: &str, tags: &BTreeSet<String>) -> Result<String, LabelExportRefusal> {
    write_notmuch_line(uid, tags).ok_or(LabelExportRefusal::UnreadableName)
}

/// Adds the tags that notmuch has for the flags of a message, in which it has all texts with the
/// Message-ID: a restore takes away those that a dump does not name.
fn add_flag_tags(
    mail: &MailReader<'_>,
    rows: &[u32],
    tags: &mut BTreeSet<String>,
) -> Result<(), Error> {
    let mut flags = MessageFlags::default();
    for row in rows {
        let (block, place) = block_of(*row);
        let values = mail.values(MailColumn::Flags, block)?;
        let bits = values.get(place).copied().unwrap_or_default();
        flags = flags.union(MessageFlags::from_bits(u16::try_from(bits).unwrap_or_default()));
    }
    let named = [
        (MessageFlag::Attachment, "attachment"),
        (MessageFlag::Draft, "draft"),
        (MessageFlag::Encrypted, "encrypted"),
        (MessageFlag::Flagged, "flagged"),
        (MessageFlag::Passed, "passed"),
        (MessageFlag::Replied, "replied"),
        (MessageFlag::Signed, "signed"),
    ];
    let set = named.into_iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, name)| name);
    let unread = flags.is_unread().then_some("unread");
    tags.extend(set.chain(unread).map(str::to_string));
    Ok(())
}

/// Returns the path of a file of a message.
fn file_of_message(
    mail: &MailReader<'_>,
    roots: &BTreeMap<String, PathBuf>,
    row: u32,
) -> Result<Option<String>, Error> {
    let files = mail.message_files(row)?.into_iter();
    let mut paths = files.filter_map(|(collection, path)| Some(roots.get(&collection)?.join(path)));
    Ok(paths.next().map(|path| path.to_string_lossy().into_owned()))
}
