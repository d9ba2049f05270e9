//! The fields and orders that the kinds of a search over all kinds have: messages and commits have
//! others than the items of the store.
//!
//! Separate from the lists of each kind, because a column that one kind has is empty for the
//! others, and because a name that no kind has is an error of the whole search.

use crate::mail_search::MailSort;
use larder_format::collection_type::CollectionType;
use std::fmt;

/// The kinds that a search over all kinds lists together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindGroup {
    /// Contacts and calendar items, whose bytes are in the store.
    StoredItems,
    /// Messages.
    Messages,
    /// Commits.
    Commits,
}

/// The fields and orders of a group.
struct GroupRow {
    /// The noun for several items.
    noun: &'static str,
    /// The names of the fields in JSON, and others that they have; of the items of the store,
    /// those that are in no table of a type of collection.
    fields: &'static [(&'static str, &'static [&'static str])],
    /// Whether the fields of the types of collections with items in the store are further ones.
    has_stored_fields: bool,
    /// The orders that a search of an index has; none: all that it knows.
    orders: &'static [&'static str],
}

const STORED_ITEMS: GroupRow = GroupRow {
    noun: "contacts or calendar items",
    fields: &[("recurrence_id", &[]), ("occurrence", &[])],
    has_stored_fields: true,
    orders: &[],
};

/// Other names of the fields of messages are those of mu, and its letters.
const MESSAGES: GroupRow = GroupRow {
    noun: "messages",
    fields: &[
        ("id", &[]),
        ("kind", &[]),
        ("collection", &[]),
        ("message_id", &["message-id", "msgid", "i"]),
        ("date", &["d"]),
        ("timestamp", &[]),
        ("size", &["z"]),
        ("priority", &["prio", "p"]),
        ("from", &["f"]),
        ("to", &["t"]),
        ("cc", &["c"]),
        ("bcc", &["h"]),
        ("reply_to", &[]),
        ("subject", &["s"]),
        ("list_id", &["list", "v"]),
        ("references", &["ref", "r"]),
        ("keywords", &["tags", "x"]),
        ("flags", &["flag", "g"]),
        ("labels", &["label", "q"]),
        ("folders", &["maildir", "m"]),
        ("files", &["path", "l"]),
        ("thread_id", &["thread", "w"]),
    ],
    has_stored_fields: false,
    orders: &[],
};

const COMMITS: GroupRow = GroupRow {
    noun: "commits",
    fields: &[
        ("id", &[]),
        ("kind", &[]),
        ("collection", &[]),
        ("hash", &[]),
        ("date", &[]),
        ("timestamp", &[]),
        ("author", &[]),
        ("committer", &[]),
        ("commit_date", &[]),
        ("subject", &[]),
        ("parents", &[]),
    ],
    has_stored_fields: false,
    orders: &["date", "subject", "author", "committer", "hash"],
};

/// The fields that each item has, but that are no columns of the items of the store.
const FIELDS_OF_ALL: [&str; 3] = ["id", "kind", "collection"];

impl KindGroup {
    /// All groups, in the order of lists.
    pub const ALL: [KindGroup; 3] =
        [KindGroup::StoredItems, KindGroup::Messages, KindGroup::Commits];

    fn row(self) -> &'static GroupRow {
        match self {
            KindGroup::StoredItems => &STORED_ITEMS,
            KindGroup::Messages => &MESSAGES,
            KindGroup::Commits => &COMMITS,
        }
    }

    /// Returns the noun for several items of the group.
    #[must_use]
    pub fn noun(self) -> &'static str {
        self.row().noun
    }

    /// Returns the names of the fields in JSON that are those of this group.
    #[must_use]
    pub fn field_names(self) -> Vec<&'static str> {
        self.row().fields.iter().map(|(name, _)| *name).collect()
    }

    /// Returns the name in JSON of a field with this name.
    #[must_use]
    pub fn find_field(self, name: &str) -> Option<&'static str> {
        let row = self.row();
        let is_named = |(known, others): &&(&'static str, &[&str])| {
            [*known].iter().chain(*others).any(|known| known.eq_ignore_ascii_case(name))
        };
        let own = row.fields.iter().find(is_named).map(|(name, _)| *name);
        own.or_else(|| {
            let mut types = stored_types().filter(|_| row.has_stored_fields);
            types.find_map(|one| one.find_field(name)).map(|field| field.name)
        })
    }

    /// Returns whether a field is one of messages or commits, and of no item of the store.
    #[must_use]
    pub fn is_field_of_indexes(name: &str) -> bool {
        let indexes = [KindGroup::Messages, KindGroup::Commits];
        !FIELDS_OF_ALL.contains(&name)
            && KindGroup::StoredItems.find_field(name).is_none()
            && indexes.iter().any(|group| group.find_field(name).is_some())
    }

    /// Returns whether the group can be sorted by a field, which may have a minus.
    #[must_use]
    pub fn has_order(self, sort: &str) -> bool {
        match self.row().has_stored_fields {
            true => stored_types().any(|one| one.find_field(field_of_order(sort)).is_some()),
            false => self.find_mail_order(sort).is_some(),
        }
    }

    /// Returns the names of the orders, of which a search of an index knows more.
    #[must_use]
    pub fn order_names(self) -> &'static [&'static str] {
        self.row().orders
    }

    /// Returns the order that a search of an index has for a field; `None`: it has none.
    #[must_use]
    pub fn find_mail_order(self, sort: &str) -> Option<MailSort> {
        let row = self.row();
        let is_known = !row.has_stored_fields
            && (row.orders.is_empty() || row.orders.contains(&field_of_order(sort)));
        is_known.then(|| MailSort::parse(sort)).flatten()
    }
}

/// Returns the types of collections with items in the store.
fn stored_types() -> impl Iterator<Item = CollectionType> {
    CollectionType::all_listed().filter(|one| !one.main_kind().has_locator())
}

/// Returns the field of an order.
#[must_use]
pub fn field_of_order(sort: &str) -> &str {
    sort.strip_prefix('-').unwrap_or(sort)
}

/// The columns of a list of all kinds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KindColumns {
    /// The fields of each group that is searched; `None`: it does not have the column.
    groups: Vec<(KindGroup, Vec<Option<&'static str>>)>,
}

/// A name of a column that no kind of a search has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownColumn(pub String);

impl fmt::Display for UnknownColumn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unknown field {:?}", self.0)
    }
}

impl std::error::Error for UnknownColumn {}

impl KindColumns {
    /// Resolves the names of columns for the groups that are searched.
    ///
    /// # Errors
    /// No group has one of them, or it is one that each item has, but that is no column of the
    /// items of the store.
    pub fn resolve<'n>(
        names: impl IntoIterator<Item = &'n str>,
        searched: &[KindGroup],
    ) -> Result<KindColumns, UnknownColumn> {
        let mut groups: Vec<_> = searched.iter().map(|group| (*group, Vec::new())).collect();
        for name in names {
            let mut is_known = false;
            for (group, columns) in &mut groups {
                let field = group.find_field(name);
                is_known |= field.is_some_and(|field| {
                    group.row().has_stored_fields || !FIELDS_OF_ALL.contains(&field)
                });
                columns.push(field);
            }
            if !is_known {
                return Err(UnknownColumn(name.to_string()));
            }
        }
        Ok(KindColumns { groups })
    }

    /// Returns the fields of a group, without one that it does not have; nothing if no columns were
    /// named, or the group is not searched.
    #[must_use]
    pub fn columns_of(&self, group: KindGroup) -> &[Option<&'static str>] {
        let found = self.groups.iter().find(|(one, _)| *one == group);
        found.map_or(&[], |(_, columns)| columns)
    }

    /// Returns whether a group has any of the columns, or none were named.
    #[must_use]
    pub fn is_listed(&self, group: KindGroup) -> bool {
        let columns = self.columns_of(group);
        columns.is_empty() || columns.iter().any(Option::is_some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_empty_for_a_group_without_it() {
        let names = ["subject", "email", "HASH", "hash"];
        let error = KindColumns::resolve(names, &KindGroup::ALL[..2]).unwrap_err();
        assert_eq!(error, UnknownColumn("HASH".into()));
        let columns = KindColumns::resolve(["s", "email", "hash"], &KindGroup::ALL).unwrap();
        assert_eq!(columns.columns_of(KindGroup::Messages), [Some("subject"), None, None]);
        assert_eq!(columns.columns_of(KindGroup::Commits), [None, None, Some("hash")]);
        assert!(columns.columns_of(KindGroup::StoredItems).iter().flatten().count() == 1);
        assert!(KindGroup::ALL.iter().all(|group| columns.is_listed(*group)));
    }

    #[test]
    fn fields_of_messages_have_the_names_of_mu() {
        for (name, field) in [("thread", "thread_id"), ("w", "thread_id"), ("p", "priority")] {
            assert_eq!(KindGroup::Messages.find_field(name), Some(field));
        }
        assert_eq!(KindGroup::Messages.find_field("message-id"), Some("message_id"));
    }

    #[test]
    fn a_group_with_none_of_the_columns_is_not_listed() {
        let columns = KindColumns::resolve(["from", "labels"], &KindGroup::ALL).unwrap();
        let listed: Vec<bool> =
            KindGroup::ALL.iter().map(|group| columns.is_listed(*group)).collect();
        assert_eq!(listed, [false, true, false]);
        // Without names, each group has its usual columns.
        let columns = KindColumns::resolve([], &KindGroup::ALL).unwrap();
        assert!(KindGroup::ALL.iter().all(|group| columns.is_listed(*group)));
    }

    #[test]
    fn fields_that_each_item_has_are_no_columns_of_the_store() {
        for name in ["kind", "collection"] {
            assert!(KindColumns::resolve([name], &KindGroup::ALL).is_err(), "{name}");
        }
        assert!(KindColumns::resolve(["labels"], &KindGroup::ALL[..1]).is_err());
    }

    #[test]
    fn orders_are_those_of_each_group() {
        let groups_with = |sort| -> Vec<KindGroup> {
            KindGroup::ALL.into_iter().filter(|group| group.has_order(sort)).collect()
        };
        assert_eq!(groups_with("file_as"), [KindGroup::StoredItems]);
        assert_eq!(groups_with("-date"), [KindGroup::Messages, KindGroup::Commits]);
        assert_eq!(groups_with("size"), [KindGroup::Messages]);
        assert_eq!(groups_with("nothing"), []);
        // The author of a commit is what the sender is of a message.
        assert!(KindGroup::Commits.has_order("-author") && !KindGroup::Commits.has_order("to"));
    }
}
