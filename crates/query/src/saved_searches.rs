//! The saved searches of a store, which `@name` in a search line stands for.
//!
//! Separate from the parsers of search lines, which are pure: the definitions are read once and
//! passed to them. A saved search may use others, to a limited depth and never itself.

use crate::error::{Error, SyntaxError};
use crate::misspelling::{MAX_MISSPELLING, count_changes};
use larder_format::saved_search::{SavedSearch, is_search_name};
use larder_store::{Handle, Kind, Reader};
use std::collections::BTreeMap;

/// The number of saved searches that may stand in one another.
const MAX_SEARCH_DEPTH: usize = 16;
/// The number of items that are listed in one read transaction.
const ITEMS_PER_READ: usize = 500;

/// Saved searches by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedSearches {
    by_name: BTreeMap<String, SavedSearch>,
}

impl SavedSearches {
    /// Reads the saved searches of a store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn read(reader: &Reader) -> Result<SavedSearches, Error> {
        let mut searches = SavedSearches::default();
        let name = Kind::SavedSearch.collection_type().default_collection();
        let Some(collection) = reader.collections().find(name)? else { return Ok(searches) };
        let mut after = None;
        loop {
            let page = reader.items().list_after(&collection, after, ITEMS_PER_READ)?;
            let Some(last) = page.last() else { return Ok(searches) };
            after = Some(last.row);
            for meta in &page {
                let bytes = reader.items().source_bytes(meta.row)?.unwrap_or_default();
                if let Some(search) = SavedSearch::parse(&bytes) {
                    searches.insert(search);
                }
            }
        }
    }

    /// Returns whether a search line may use a saved search.
    #[must_use]
    pub fn can_be_in(line: &str) -> bool {
        references(line).next().is_some()
    }

    /// Returns the names of the saved searches that may use this one directly.
    pub fn users(&self, name: &str) -> impl Iterator<Item = &str> {
        let uses = move |search: &&SavedSearch| references(&search.query).any(|one| one == name);
        let users = self.by_name.values().filter(uses).map(|search| search.name.as_str());
        users.filter(move |user| *user != name)
    }

    /// Returns the names of the saved searches that may name a collection: those with `in:NAME`.
    pub fn users_of_collection(&self, collection: &str) -> impl Iterator<Item = &str> {
        let users = self
            .by_name
            .values()
            .filter(move |search| has_field_value(&search.query, COLLECTION_FIELDS, collection));
        users.map(|search| search.name.as_str())
    }

    /// Returns the names of the saved searches that may name a label: in their query, or as rules
    /// that change it.
    pub fn users_of_label(&self, label: &str) -> impl Iterator<Item = &str> {
        let users = self.by_name.values().filter(move |search| {
            let mut changed = search.label_changes.iter().filter_map(|change| change.get(1..));
            changed.any(|changed| changed == label)
                || has_field_value(&search.query, LABEL_FIELDS, label)
        });
        users.map(|search| search.name.as_str())
    }

    /// Returns the saved searches that a line uses, directly or in one another.
    #[must_use]
    pub fn used_in(&self, line: &str) -> SavedSearches {
        let mut used = SavedSearches::default();
        let mut open: Vec<&str> = references(line).collect();
        while let Some(name) = open.pop() {
            if let Some(search) = self.get(name).filter(|_| used.get(name).is_none()) {
                open.extend(references(&search.query));
                used.insert(search.clone());
            }
        }
        used
    }

    /// Adds a saved search, or replaces the one of its name.
    pub fn insert(&mut self, search: SavedSearch) {
        self.by_name.insert(search.name.clone(), search);
    }

    /// Returns the saved search with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&SavedSearch> {
        self.by_name.get(name)
    }

    /// Returns all saved searches, by name.
    pub fn iter(&self) -> impl Iterator<Item = &SavedSearch> {
        self.by_name.values()
    }

    /// Returns the name that is most similar to this one.
    #[must_use]
    pub fn nearest_name(&self, name: &str) -> Option<&str> {
        self.nearest_name_except(name, "")
    }

    /// Returns the name that is most similar to this one, but none of a search with this line: it
    /// is being defined, and would use itself.
    fn nearest_name_except(&self, name: &str, line: &str) -> Option<&str> {
        let others = self.by_name.values().filter(|search| search.query != line);
        let names = others.map(|search| search.name.as_str());
        let near = names.map(|known| (count_changes(name, known), known));
        let near = near.filter(|(changes, known)| {
            *changes <= MAX_MISSPELLING.min(known.chars().count() / 2) || known.starts_with(name)
        });
        near.min().map(|(_, known)| known)
    }

    /// Returns the saved search that a term of a search line names. `expanded` are the names of the
    /// saved searches that the line is part of.
    ///
    /// # Errors
    /// There is none of this name, or it uses itself, or too many stand in one another.
    pub(crate) fn resolve(
        &self,
        line: &str,
        at: usize,
        name: &str,
        expanded: &[String],
    ) -> Result<&SavedSearch, SyntaxError> {
        if let Some(first) = expanded.iter().position(|one| one == name) {
            let chain: Vec<&str> =
                expanded.iter().skip(first).map(String::as_str).chain([name]).collect();
            let message =
                format!("the saved search @{name} uses itself: @{}", chain.join(" uses @"));
            return Err(SyntaxError::new(line, at, message)
                .with_hint("to define it anew: larder searches add NAME QUERY"));
        }
        if expanded.len() >= MAX_SEARCH_DEPTH {
            let message = format!("more than {MAX_SEARCH_DEPTH} saved searches use one another");
            return Err(SyntaxError::new(line, at, message));
        }
        self.get(name).ok_or_else(|| {
            let hint = match self.nearest_name_except(name, line) {
                Some(near) => format!("did you mean @{near}? To search for the word, quote it"),
                None => "`larder searches` lists them; to search for the word, quote it".into(),
            };
            SyntaxError::new(line, at, format!("no saved search is named {name:?}")).with_hint(hint)
        })
    }
}

/// Returns the handle of the saved search with this name.
///
/// # Errors
/// The store cannot be read.
pub fn find_saved_search(reader: &Reader, name: &str) -> Result<Option<Handle>, Error> {
    let collection = Kind::SavedSearch.collection_type().default_collection();
    Ok(reader.items().get(collection, name)?.map(|(meta, _)| meta.handle))
}

/// Returns the name of the saved search that an unquoted word of a search line stands for.
pub(crate) fn parse_search_reference(word: &str) -> Option<&str> {
    word.strip_prefix('@').filter(|name| is_search_name(name))
}

/// Returns an error in the line of a saved search as an error of the line that uses it.
pub(crate) fn error_in_search(
    line: &str,
    at: usize,
    name: &str,
    error: SyntaxError,
) -> SyntaxError {
    // A search in a search has its name already.
    let message = match error.message.starts_with("the saved search @") {
        true => error.message,
        false => format!("in the saved search @{name}: {}", error.message),
    };
    SyntaxError { message, hint: error.hint, ..SyntaxError::new(line, at, "") }
}

/// The fields of search lines whose value is the name of a collection.
const COLLECTION_FIELDS: &[&str] = &["in", "repository", "repo"];

/// The fields of search lines whose value may be the name of a label.
const LABEL_FIELDS: &[&str] = &["label", "labels", "q", "tag", "is"];

/// Returns whether a line may have one of these fields with a value, which may be quoted.
fn has_field_value(line: &str, fields: &[&str], value: &str) -> bool {
    line.match_indices(':').any(|(colon, _)| {
        let (before, after) = (&line[..colon], &line[colon + 1..]);
        let field = before.rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        let quote = after.chars().next().filter(|c| *c == '"');
        let rest = after.trim_start_matches('"').strip_prefix(value);
        let is_end = |rest: &str| match (quote, rest.chars().next()) {
            (Some(quote), next) => next == Some(quote),
            (None, next) => next.is_none_or(|c| c.is_whitespace() || "(){}\"".contains(c)),
        };
        fields.iter().any(|known| known.eq_ignore_ascii_case(field)) && rest.is_some_and(is_end)
    })
}

/// Returns the names in a line that may be those of saved searches; some may be quoted.
fn references(line: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| c.is_whitespace() || "(){}".contains(c);
    let words = line.split(is_end).map(|word| word.trim_start_matches('-'));
    words.filter_map(parse_search_reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_and_rules_with_a_label_are_found() {
        let mut searches = SavedSearches::default();
        let entries: [(&str, &str, &[&str]); 6] = [
            ("query", "from:bank (label:tax or seal)", &[]),
            ("is", "-is:tax", &[]),
            ("quoted", "tag:\"tax\"", &[]),
            ("rule", "invoice", &["+tax"]),
            ("ends", "invoice", &["+sea", "-tax"]),
            ("other", "tax label:taxes subject:tax", &["+taxes"]),
        ];
        for (name, query, labels) in entries {
            let label_changes = labels.iter().map(ToString::to_string).collect();
            searches
                .insert(SavedSearch { label_changes, ..SavedSearch::new(name, query, "message") });
        }
        let users: Vec<&str> = searches.users_of_label("tax").collect();
        assert_eq!(users, ["ends", "is", "query", "quoted", "rule"]);
    }

    #[test]
    fn lines_with_a_collection_are_found() {
        for (line, is_user) in [
            ("in:post", true),
            ("walrus and (IN:post)", true),
            ("-in:post walrus", true),
            ("in:\"post\" x", true),
            ("repo:post", true),
            ("in:poster", false),
            ("in:\"post office\"", false),
            ("post", false),
            ("subject:post", false),
            ("begin:post", false),
        ] {
            assert_eq!(has_field_value(line, COLLECTION_FIELDS, "post"), is_user, "{line}");
        }
        assert!(has_field_value("in:\"post office\"", COLLECTION_FIELDS, "post office"));
    }
}
