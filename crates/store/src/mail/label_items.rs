//! The labels of the texts with one Message-ID, from the items of `data.db`.
//!
//! An item has the Message-ID as its name, or a name that is made from Message-ID and text. The
//! labels of an item belong to the text that it names, or to all texts. While no message has that
//! text, all texts with the Message-ID have them. So the labels of a message follow from its
//! Message-ID, its text, the items, and the texts that there are, and from no order in which these
//! came.
//!
//! Separate from `labels`, which has the labels of the messages in the index.

use super::batch::name_other_text;
use larder_format::label::MessageLabels;
use std::collections::BTreeMap;

/// The items with the labels of one Message-ID.
#[derive(Debug, Clone, Default)]
pub struct LabelItems {
    message_id: String,
    items: BTreeMap<String, MessageLabels>,
}

impl LabelItems {
    /// Begins without items.
    #[must_use]
    pub fn new(message_id: &str) -> LabelItems {
        LabelItems { message_id: message_id.to_string(), items: BTreeMap::new() }
    }

    /// Puts an item in place of the one with this name. One without labels is none.
    pub fn put(&mut self, name: &str, item: MessageLabels) {
        match item.labels.is_empty() {
            true => drop(self.items.remove(name)),
            false => drop(self.items.insert(name.to_string(), item)),
        }
    }

    /// Returns the item with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&MessageLabels> {
        self.items.get(name)
    }

    /// Returns the items, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &MessageLabels)> {
        self.items.iter().map(|(name, item)| (name.as_str(), item))
    }

    /// Returns whether there is no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the names of the items whose labels a text has; `texts` are the hashes of the texts
    /// that messages with the Message-ID have.
    pub fn names_of(
        &self,
        text_hash: Option<u64>,
        texts: &[Option<u64>],
    ) -> impl Iterator<Item = &str> {
        let items = self.items.iter();
        items
            .filter(move |(name, item)| self.is_of_text(name, item, text_hash, texts))
            .map(|(name, _)| name.as_str())
    }

    /// Returns the labels of a text. They belong to any text if an item that says so is among the
    /// items that they are from.
    #[must_use]
    pub fn labels_of(&self, text_hash: Option<u64>, texts: &[Option<u64>]) -> MessageLabels {
        let mut all =
            MessageLabels { text_hash: Some(text_hash.unwrap_or_default()), ..Default::default() };
        for name in self.names_of(text_hash, texts) {
            let Some(item) = self.items.get(name) else { continue };
            if name == self.message_id && item.text_hash.is_none() {
                all.text_hash = None;
            }
            all.labels.extend(item.labels.iter());
        }
        all
    }

    fn is_of_text(
        &self,
        name: &str,
        item: &MessageLabels,
        text_hash: Option<u64>,
        texts: &[Option<u64>],
    ) -> bool {
        if name == self.message_id {
            return match item.text_hash {
                None => true,
                named => text_hash == named || !texts.contains(&named),
            };
        }
        let is_own = |text: Option<u64>| {
            text.is_some_and(|text| name_other_text(text, &self.message_id) == name)
        };
        // Items of former versions do not have the Message-ID, so that it is known only while a
        // message has the text.
        is_own(text_hash) || item.message_id.is_some() && !texts.iter().any(|text| is_own(*text))
    }

    /// Returns whether the items follow from the labels of the messages whose names are the
    /// Message-ID; `named` are the hashes of the texts of these.
    #[must_use]
    pub fn follow_from_messages(&self, named: &[Option<u64>]) -> bool {
        match self.items.first_key_value() {
            None => true,
            Some((name, item)) => {
                self.items.len() == 1
                    && *name == self.message_id
                    && named.iter().any(|text| item.text_hash.is_none() || *text == item.text_hash)
            }
        }
    }
}
