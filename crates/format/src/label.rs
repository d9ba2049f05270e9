//! The labels of a message: a set of names, and changes of it.
//!
//! The labels of a message are one item, whose bytes have a label in each line, sorted, each line
//! with an end. The first lines may name the text that was labelled (`MessageLabels`). Names are
//! compared byte by byte, as notmuch does: `Work` and `work` are two labels. Separate from
//! `message`, because labels are not in the file of a message.

use std::collections::BTreeSet;
use std::fmt;

/// The most bytes of a label, as in notmuch.
pub const MAX_LABEL_BYTES: usize = 200;
/// The most labels that a message can be given.
pub const MAX_LABELS: usize = 1000;
/// The most labels of an item. A message that has the labels of texts that are gone may have more
/// than it can be given, and keeps them in its item when another one loses them.
pub const MAX_ITEM_LABELS: usize = 10 * MAX_LABELS;

/// The names that notmuch gives what a file or its content is: they are flags, not labels.
pub const NOTMUCH_FLAG_TAGS: [&str; 8] =
    ["attachment", "draft", "encrypted", "flagged", "passed", "replied", "signed", "unread"];

/// The labels of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct LabelList(BTreeSet<String>);

/// The labels of a message, with the text that was labelled.
///
/// Several texts may have one Message-ID. The hash of the text tells which one the labels belong
/// to. The item is under the Message-ID, or under a name that is made from the Message-ID and the
/// text, if another text has the former; then it has the Message-ID, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageLabels {
    /// The hash of the text; `None`: any text with the name of the message.
    pub text_hash: Option<u64>,
    /// The Message-ID, if it is not the name of the item.
    pub message_id: Option<String>,
    /// Whether the Message-ID is the name of the message nevertheless: an item of another text, or
    /// of all texts, was under it.
    pub is_named: bool,
    /// The labels.
    pub labels: LabelList,
}

/// The start of the line with the hash of the text. No label has a control character.
const TEXT_LINE: &[u8] = b"\ttext ";
/// The start of the line with the Message-ID.
const MESSAGE_LINE: &[u8] = b"\tmessage ";
/// The line of an item of a message whose name is the Message-ID.
const NAMED_LINE: &[u8] = b"\tnamed";

impl MessageLabels {
    /// Reads the bytes of an item. Lines that cannot be labels are left out.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> MessageLabels {
        let mut text = MessageLabels { labels: LabelList::parse(bytes), ..Default::default() };
        for line in bytes.split(|byte| *byte == b'\n').take_while(|line| line.starts_with(b"\t")) {
            if let Some(digits) = line.strip_prefix(TEXT_LINE) {
                let digits = std::str::from_utf8(digits).ok();
                text.text_hash = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            } else if let Some(id) = line.strip_prefix(MESSAGE_LINE) {
                text.message_id = std::str::from_utf8(id).ok().map(str::to_string);
            } else if line == NAMED_LINE {
                text.is_named = true;
            }
        }
        text
    }

    /// Returns the bytes of the item.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(hash) = self.text_hash {
            bytes.extend_from_slice(TEXT_LINE);
            bytes.extend_from_slice(format!("{hash:016x}\n").as_bytes());
        }
        if let Some(id) = self.message_id.as_ref().filter(|id| !id.contains('\n')) {
            bytes.extend_from_slice(MESSAGE_LINE);
            bytes.extend_from_slice(id.as_bytes());
            bytes.push(b'\n');
        }
        if self.is_named {
            bytes.extend_from_slice(NAMED_LINE);
            bytes.push(b'\n');
        }
        bytes.extend(self.labels.to_bytes());
        bytes
    }
}

/// A name that cannot be a label, or a change that names none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelError {
    /// The name is empty.
    Empty,
    /// The name begins with a minus sign, which removes labels.
    LeadingMinus(String),
    /// The name is too long; its beginning.
    TooLong(String),
    /// The name has a line end or another control character.
    ControlCharacter(String),
    /// The change has no sign.
    NoSign(String),
    /// The change has several labels, with commas between them.
    SeveralLabels(String),
    /// The name is that of a flag, which is in the file of a message or follows from its content.
    Flag(String),
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabelError::Empty => write!(f, "a label cannot be empty"),
            LabelError::LeadingMinus(name) => write!(f, "the label {name:?} begins with -"),
            LabelError::TooLong(start) => {
                write!(f, "the label {start:?}... has more than {MAX_LABEL_BYTES} bytes")
            }
            LabelError::ControlCharacter(name) => {
                write!(f, "the label {name:?} has a control character")
            }
            LabelError::NoSign(name) => {
                write!(f, "{name:?} has no sign: +{name} adds the label, -{name} removes it")
            }
            LabelError::SeveralLabels(text) => write!(f, "{text:?} has several labels"),
            LabelError::Flag(name) => {
                write!(f, "{name} is a flag of the file of a message: larder changes no mail")
            }
        }
    }
}

impl std::error::Error for LabelError {}

/// Checks a name of a label.
///
/// # Errors
/// It cannot be a label.
pub fn check_label(name: &str) -> Result<(), LabelError> {
    if name.is_empty() {
        return Err(LabelError::Empty);
    }
    if name.starts_with('-') {
        return Err(LabelError::LeadingMinus(name.to_string()));
    }
    if name.len() > MAX_LABEL_BYTES {
        return Err(LabelError::TooLong(name.chars().take(40).collect()));
    }
    match name.chars().any(char::is_control) {
        true => Err(LabelError::ControlCharacter(name.to_string())),
        false => Ok(()),
    }
}

impl LabelList {
    /// Reads the bytes of an item. Lines that cannot be labels are left out.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> LabelList {
        let lines = bytes.split(|byte| *byte == b'\n').take(MAX_ITEM_LABELS + 2);
        let names = lines.filter_map(|line| std::str::from_utf8(line).ok());
        let names = names.filter(|name| check_label(name).is_ok()).take(MAX_ITEM_LABELS);
        LabelList(names.map(str::to_string).collect())
    }

    /// Returns the bytes of the item.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for name in &self.0 {
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(b'\n');
        }
        bytes
    }

    /// Adds a label; returns false if it cannot be one, or is there.
    pub fn insert(&mut self, name: &str) -> bool {
        check_label(name).is_ok() && self.0.insert(name.to_string())
    }

    /// Returns whether a message with the labels `before` cannot be given these, because they are
    /// too many and more than before.
    #[must_use]
    pub fn exceeds_limit(&self, before: &LabelList) -> bool {
        self.0.len() > MAX_LABELS && self.0.len() > before.0.len()
    }

    /// Returns the number of labels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes a label; returns whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name)
    }

    /// Returns the labels, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns whether there is no label.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the label is there.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

impl<'t> Extend<&'t str> for LabelList {
    /// Adds labels, without those that cannot be one.
    fn extend<T: IntoIterator<Item = &'t str>>(&mut self, names: T) {
        for name in names {
            self.insert(name);
        }
    }
}

/// A change of labels: some are added, some removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelChange {
    added: LabelList,
    removed: LabelList,
}

impl LabelChange {
    /// Reads changes of one label each: `+tax`, `-todo`. The last one that names a label counts.
    ///
    /// A label may have a comma. `+tax,-todo`, as mu takes several, is refused, because it would be
    /// one label that nobody means.
    ///
    /// # Errors
    /// One of them has no sign, names no label or several, or names a flag.
    pub fn parse<'t>(
        changes: impl IntoIterator<Item = &'t str>,
    ) -> Result<LabelChange, LabelError> {
        let mut change = LabelChange::default();
        for text in changes {
            if text.contains(",+") || text.contains(",-") {
                return Err(LabelError::SeveralLabels(text.to_string()));
            }
            let name = text.strip_prefix(['+', '-']);
            if let Some(flag) = name.filter(|name| NOTMUCH_FLAG_TAGS.contains(name)) {
                return Err(LabelError::Flag(flag.to_string()));
            }
            match (text.strip_prefix('+'), text.strip_prefix('-')) {
                (Some(name), _) => {
                    check_label(name)?;
                    change.add(name);
                }
                (None, Some(name)) => {
                    check_label(name)?;
                    change.remove(name);
                }
                (None, None) => {
                    check_label(text)?;
                    return Err(LabelError::NoSign(text.to_string()));
                }
            }
        }
        Ok(change)
    }

    /// Returns the change of a label into another one, which may be the same.
    ///
    /// # Errors
    /// One of the names cannot be a label, or the new one is that of a flag.
    pub fn rename(old: &str, new: &str) -> Result<LabelChange, LabelError> {
        check_label(old)?;
        check_label(new)?;
        if NOTMUCH_FLAG_TAGS.contains(&new) {
            return Err(LabelError::Flag(new.to_string()));
        }
        let mut change = LabelChange::default();
        change.add(new);
        if old != new {
            change.remove(old);
        }
        Ok(change)
    }

    /// Adds a label.
    pub fn add(&mut self, name: &str) {
        self.removed.0.remove(name);
        self.added.insert(name);
    }

    /// Removes a label.
    pub fn remove(&mut self, name: &str) {
        self.added.0.remove(name);
        self.removed.insert(name);
    }

    /// Returns whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    /// Returns the labels that are added, sorted.
    #[must_use]
    pub fn additions(&self) -> &LabelList {
        &self.added
    }

    /// Returns the labels that are removed, sorted.
    #[must_use]
    pub fn removals(&self) -> &LabelList {
        &self.removed
    }

    /// Returns the labels after the change.
    #[must_use]
    pub fn apply(&self, labels: &LabelList) -> LabelList {
        let kept = labels.iter().filter(|name| !self.removed.contains(name));
        let mut after = LabelList(kept.map(str::to_string).collect());
        for name in self.added.iter() {
            after.insert(name);
        }
        after
    }
}

impl fmt::Display for LabelChange {
    /// Writes the changes as `parse` reads them: `+tax -todo`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signs = self.added.iter().map(|name| ('+', name));
        let signs = signs.chain(self.removed.iter().map(|name| ('-', name)));
        for (at, (sign, name)) in signs.enumerate() {
            write!(f, "{}{sign}{name}", if at == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> LabelList {
        let mut labels = LabelList::default();
        names.iter().for_each(|name| assert!(labels.insert(name), "{name}"));
        labels
    }

    #[test]
    fn bytes_are_sorted_lines() {
        let labels = list(&["todo", "Straße", "b c", "+x"]);
        assert_eq!(labels.to_bytes(), "+x\nStraße\nb c\ntodo\n".as_bytes());
        assert_eq!(LabelList::parse(&labels.to_bytes()), labels);
        assert_eq!(LabelList::parse(b"b\n\n-a\n\xff\nb\na\x07\n"), list(&["b"]));
        assert_eq!(LabelList::default().to_bytes(), b"");
        let many: String = (0..2 * MAX_ITEM_LABELS).map(|number| format!("l{number}\n")).collect();
        assert_eq!(LabelList::parse(many.as_bytes()).len(), MAX_ITEM_LABELS);
    }

    #[test]
    fn bytes_have_the_hash_of_the_text() {
        for (text_hash, message_id, is_named, bytes) in [
            (None, None, false, &b"tax\n"[..]),
            (Some(0x1f), None, false, b"\ttext 000000000000001f\ntax\n"),
            (Some(0x1f), Some("m@x"), false, b"\ttext 000000000000001f\n\tmessage m@x\ntax\n"),
            (None, Some("m@x"), true, b"\tmessage m@x\n\tnamed\ntax\n"),
        ] {
            let message_id = message_id.map(str::to_string);
            let labels = MessageLabels { text_hash, message_id, is_named, labels: list(&["tax"]) };
            assert_eq!(labels.to_bytes(), bytes);
            assert_eq!(MessageLabels::parse(bytes), labels);
            assert_eq!(LabelList::parse(bytes), labels.labels);
        }
        assert_eq!(MessageLabels::parse(b"\ttext x\ntax\n").text_hash, None);
    }

    #[test]
    fn changes_are_applied_in_order() {
        for (before, changes, after, text) in [
            (&["todo"][..], &["+tax", "-todo"][..], &["tax"][..], "+tax -todo"),
            (&[], &["+a", "-a"], &[], "-a"),
            (&["a"], &["-a", "+a"], &["a"], "+a"),
            (&["a"], &["++b", "-c"], &["+b", "a"], "++b -c"),
            (&["a", "A"], &["-A"], &["a"], "-A"),
            (&[], &["+a,b", "+Unread"], &["Unread", "a,b"], "+Unread +a,b"),
        ] {
            let change = LabelChange::parse(changes.iter().copied()).expect("changes");
            assert_eq!(change.apply(&list(before)), list(after), "{changes:?}");
            assert_eq!(change.to_string(), text);
        }
    }

    #[test]
    fn a_label_is_renamed_to_no_flag() {
        let renamed = |old, new| LabelChange::rename(old, new).map(|change| change.to_string());
        assert_eq!(renamed("tax", "taxes"), Ok("+taxes -tax".to_string()));
        assert_eq!(renamed("tax", "tax"), Ok("+tax".to_string()));
        assert_eq!(renamed("unread", "later"), Ok("+later -unread".to_string()));
        assert_eq!(renamed("tax", "unread"), Err(LabelError::Flag("unread".to_string())));
        assert_eq!(renamed("tax", ""), Err(LabelError::Empty));
    }

    #[test]
    fn names_that_cannot_be_labels_are_refused() {
        let long = format!("+{}", "x".repeat(MAX_LABEL_BYTES + 1));
        for (change, message) in [
            ("+", "a label cannot be empty"),
            ("", "a label cannot be empty"),
            ("--x", "the label \"-x\" begins with -"),
            ("+-x", "the label \"-x\" begins with -"),
            ("+a\nb", "the label \"a\\nb\" has a control character"),
            ("tax", "\"tax\" has no sign: +tax adds the label, -tax removes it"),
            ("+a,-b", "\"+a,-b\" has several labels"),
            ("-a,+b", "\"-a,+b\" has several labels"),
            ("+unread", "unread is a flag of the file of a message: larder changes no mail"),
            ("-flagged", "flagged is a flag of the file of a message: larder changes no mail"),
            (
                &long,
                "the label \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"... has more than 200 bytes",
            ),
        ] {
            let error = LabelChange::parse([change]).expect_err(change);
            assert_eq!(error.to_string(), message);
        }
    }
}
