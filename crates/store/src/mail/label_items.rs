//! The labels of the texts with one Message-ID, from the items of `data.db`.
//!
//! An item has the Message-ID as its name, or a name that is made from Message-ID and text. Its
//! labels belong to the text that it names; to all texts, if it names none, or one that no message
//! has. So the labels of a message follow from its Message-ID, its text, the items, and the texts
//! that there are, and from no order in which these came.
//!
//! A change of the labels of a text writes the items of the text. Labels that it takes from an item
//! of all texts leave that item, and go into the items of the other texts, which keep them.
//!
//! Separate from `labels`, which has the labels of the messages in the index.

use super::batch::name_other_text;
use larder_format::label::{LabelList, MessageLabels};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The items with the labels of one Message-ID.
#[derive(Debug, Clone, Default)]
pub struct LabelItems {
    message_id: String,
    items: BTreeMap<String, MessageLabels>,
}

/// The texts that the labels of an item belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemOwner {
    /// The text with this hash, which a message has.
    Text(u64),
    /// All texts with the Message-ID.
    All,
    /// No text that is known.
    None,
}

/// The labels of the texts with one Message-ID.
#[derive(Debug, Clone, Default)]
pub struct TextLabels {
    own: BTreeMap<u64, LabelList>,
    shared: LabelList,
    has_item_of_any: bool,
}

impl TextLabels {
    /// Returns the labels of a text; `None`: of one that no item names. They belong to any text if
    /// an item that says so is among the items that they are from.
    #[must_use]
    pub fn get(&self, text_hash: Option<u64>) -> MessageLabels {
        let mut labels = self.shared.clone();
        let own = text_hash.and_then(|text| self.own.get(&text));
        labels.extend(own.into_iter().flat_map(LabelList::iter));
        let text_hash = (!self.has_item_of_any).then(|| text_hash.unwrap_or_default());
        MessageLabels { text_hash, labels, ..MessageLabels::default() }
    }
}

/// The labels that a text is to have.
#[derive(Debug, Clone)]
pub struct WantedLabels {
    /// The hash of the text; `None`: any text with the Message-ID.
    pub text_hash: Option<u64>,
    /// Whether the Message-ID is the name of the message.
    pub is_named: bool,
    /// All of its labels.
    pub labels: LabelList,
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

    /// Returns the name of an item that is made from the Message-ID and a text.
    #[must_use]
    pub fn text_name(&self, text_hash: u64) -> String {
        name_other_text(text_hash, &self.message_id)
    }

    /// Returns the items, each with the texts that its labels belong to; `texts` are the hashes of
    /// the texts that messages with the Message-ID have.
    fn owners(
        &self,
        texts: &[Option<u64>],
    ) -> impl Iterator<Item = (&str, &MessageLabels, ItemOwner)> {
        let is_further = |name: &String| *name != self.message_id;
        let mut other_names = HashMap::new();
        if self.items.keys().any(is_further) {
            let name = |text: &u64| (name_other_text(*text, &self.message_id), *text);
            other_names.extend(texts.iter().flatten().map(name));
        }
        self.items.iter().map(move |(name, item)| {
            let owner = match (*name == self.message_id, item.text_hash) {
                (true, Some(text)) if texts.contains(&Some(text)) => ItemOwner::Text(text),
                (true, _) => ItemOwner::All,
                (false, _) => match other_names.get(name) {
                    Some(text) => ItemOwner::Text(*text),
                    // Items of former versions do not have the Message-ID, so that it is known
                    // only while a message has the text.
                    None if item.message_id.is_none() => ItemOwner::None,
                    None => ItemOwner::All,
                },
            };
            (name.as_str(), item, owner)
        })
    }

    /// Returns the names of the items whose labels a text has; `texts` are the hashes of the texts
    /// that messages with the Message-ID have.
    pub fn names_of(
        &self,
        text_hash: Option<u64>,
        texts: &[Option<u64>],
    ) -> impl Iterator<Item = &str> {
        self.owners(texts).filter_map(move |(name, _, owner)| match owner {
            ItemOwner::Text(text) => (text_hash == Some(text)).then_some(name),
            ItemOwner::All => Some(name),
            ItemOwner::None => None,
        })
    }

    /// Returns the labels of all texts; `texts` are the hashes of the texts that messages with the
    /// Message-ID have.
    #[must_use]
    pub fn text_labels(&self, texts: &[Option<u64>]) -> TextLabels {
        let mut found = TextLabels::default();
        for (name, item, owner) in self.owners(texts) {
            match owner {
                ItemOwner::Text(text) => {
                    found.own.entry(text).or_default().extend(item.labels.iter());
                }
                ItemOwner::All => {
                    found.has_item_of_any |= name == self.message_id && item.text_hash.is_none();
                    found.shared.extend(item.labels.iter());
                }
                ItemOwner::None => {}
            }
        }
        found
    }

    /// Changes the items so that texts have the wanted labels, and all others those that they have;
    /// `texts` are the hashes of the texts that messages with the Message-ID have, with the wanted
    /// ones.
    pub fn change_texts(&mut self, texts: &[Option<u64>], wanted: &[WantedLabels]) {
        let before = self.text_labels(texts);
        let mut lost = LabelList::default();
        for one in wanted {
            lost.extend(before.shared.iter().filter(|label| !one.labels.contains(label)));
        }
        let mut own_names: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        let mut shared_names = Vec::new();
        for (name, _, owner) in self.owners(texts) {
            match owner {
                ItemOwner::Text(text) => own_names.entry(text).or_default().push(name.to_string()),
                ItemOwner::All => shared_names.push(name.to_string()),
                ItemOwner::None => {}
            }
        }
        if !lost.is_empty() {
            for name in &shared_names {
                let Some(mut item) = self.items.remove(name) else { continue };
                for label in lost.iter() {
                    item.labels.remove(label);
                }
                self.put(name, item);
            }
        }
        let is_shared = |label: &&str| before.shared.contains(label) && !lost.contains(label);
        for one in wanted {
            let own = one.text_hash.and_then(|text| before.own.get(&text));
            let is_own = |label: &&str| own.is_some_and(|own| own.contains(label));
            let mut labels = LabelList::default();
            labels.extend(one.labels.iter().filter(|label| is_own(label) || !is_shared(label)));
            match one.text_hash {
                Some(text) => {
                    let names = own_names.remove(&text).unwrap_or_default();
                    if own.map_or(!labels.is_empty(), |own| *own != labels) {
                        self.replace_own(text, &names, one.is_named, labels);
                    }
                }
                None => self.add_for_any(&labels),
            }
        }
        if lost.is_empty() {
            return;
        }
        let wanted: BTreeSet<Option<u64>> = wanted.iter().map(|one| one.text_hash).collect();
        let others: BTreeSet<u64> =
            texts.iter().filter(|text| !wanted.contains(text)).copied().flatten().collect();
        for text in others {
            let own = before.own.get(&text);
            let mut labels = own.cloned().unwrap_or_default();
            labels.extend(lost.iter());
            if own != Some(&labels) {
                let names = own_names.remove(&text).unwrap_or_default();
                self.replace_own(text, &names, false, labels);
            }
        }
    }

    /// Puts all labels that belong to a text alone into one item, in place of those with the names.
    fn replace_own(&mut self, text: u64, names: &[String], is_named: bool, labels: LabelList) {
        let former: Vec<(&String, MessageLabels)> =
            names.iter().filter_map(|name| Some((name, self.items.remove(name)?))).collect();
        let has_name = former.iter().any(|(name, _)| **name == self.message_id)
            || is_named && !self.items.contains_key(&self.message_id);
        let name = match has_name {
            true => self.message_id.clone(),
            false => name_other_text(text, &self.message_id),
        };
        let known = former.into_iter().find(|(known, _)| **known == name).map(|(_, item)| item);
        let (message_id, is_named) = match (known, has_name) {
            (Some(item), _) if item.message_id.is_some() => (item.message_id, item.is_named),
            (_, true) => (None, false),
            (_, false) => (Some(self.message_id.clone()), is_named),
        };
        self.put(&name, MessageLabels { text_hash: Some(text), message_id, is_named, labels });
    }

    /// Adds labels that belong to all texts. The item under the Message-ID gets them; if it names a
    /// text, its labels go into another item of the text.
    fn add_for_any(&mut self, labels: &LabelList) {
        if labels.is_empty() {
            return;
        }
        let mut item = self.items.remove(&self.message_id).unwrap_or_default();
        if let Some(text) = item.text_hash {
            let name = name_other_text(text, &self.message_id);
            (item.message_id, item.is_named) = (Some(self.message_id.clone()), true);
            if let Some(known) = self.items.get(&name) {
                item.labels.extend(known.labels.iter());
            }
            self.put(&name, item);
            item = MessageLabels::default();
        }
        item.labels.extend(labels.iter());
        self.items.insert(self.message_id.clone(), item);
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
