//! Hints for a search that found nothing: the names in its query that no message has.
//!
//! Separate from `name_check`, which refuses names that are certainly mistakes: these may come
//! later, or are true of no message today, and a search for them is right to find nothing.

use super::MailSearch;
use super::name_check::join_names;
use crate::error::Error;
use crate::mail_query::{FolderTest, MailQuery, MailTextFields, TextMatch, TextTest};
use crate::misspelling::{nearest_host, nearest_name};
use larder_format::fold::fold;
use larder_store::MessageTermField;

/// The number of names that are told apart in one query.
const MAX_HINTS: usize = 3;

impl MailSearch<'_> {
    /// Returns a hint for each list, label, folder and path that the query requires and that no
    /// message has, with what exists instead. A query that finds something has none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn missing_name_hints(&self, query: &MailQuery) -> Result<Vec<String>, Error> {
        let mut hints = Vec::new();
        match self.add_hints(query, &mut hints) {
            // The search ended; that its hints take too long is no news.
            Err(Error::MailWorkLimit { .. }) | Ok(()) => Ok(hints),
            Err(error) => Err(error),
        }
    }

    fn add_hints(&self, query: &MailQuery, hints: &mut Vec<String>) -> Result<(), Error> {
        match query {
            _ if hints.len() >= MAX_HINTS => return Ok(()),
            MailQuery::And(all) => {
                return all.iter().try_for_each(|query| self.add_hints(query, hints));
            }
            MailQuery::Or(any) if self.count(query)? == 0 => {
                return any.iter().try_for_each(|query| self.add_hints(query, hints));
            }
            MailQuery::Text(_)
            | MailQuery::Label(_)
            | MailQuery::Folder(_)
            | MailQuery::Path(_) => {}
            _ => return Ok(()),
        }
        if self.count(query)? == 0 {
            hints.extend(self.missing_name_hint(query)?);
        }
        Ok(())
    }

    /// Returns the hint for a name that no message has.
    fn missing_name_hint(&self, query: &MailQuery) -> Result<Option<String>, Error> {
        Ok(match query {
            MailQuery::Text(TextTest { fields, text: TextMatch::Words(name) })
                if *fields == MailTextFields::LIST =>
            {
                Some(self.list_hint(name)?)
            }
            MailQuery::Label(TextMatch::Words(name)) => Some(self.label_hint(name)?),
            MailQuery::Folder(FolderTest::Named(path))
                if self.is_relative_file(path.trim_start_matches('/'))? =>
            {
                let path = path.trim_start_matches('/');
                Some(format!("a file is named by its absolute path: path:/DIRECTORY/{path}"))
            }
            MailQuery::Folder(FolderTest::Is(path) | FolderTest::Named(path)) => {
                Some(self.folder_hint(path, "")?)
            }
            MailQuery::Folder(FolderTest::Within(path)) => Some(self.folder_hint(path, "/**")?),
            MailQuery::Folder(FolderTest::Prefix(start)) => {
                let paths = self.folder_paths()?;
                let names: Vec<&str> = paths.iter().map(String::as_str).collect();
                Some(format!("no folder begins with {start:?}; folders: {}", join_names(&names)))
            }
            MailQuery::Folder(FolderTest::FilePrefix(start)) => Some(format!(
                "no message is in a file whose path begins with {start:?}; all files of a folder: \
                 path:FOLDER/**"
            )),
            MailQuery::Folder(FolderTest::Directory(path)) => {
                Some(format!("no source has messages in the directory {path:?}"))
            }
            MailQuery::Path(path) => Some(format!(
                "no message is in the file {path:?}; all files below a directory: path:/DIRECTORY/**"
            )),
            _ => None,
        })
    }

    fn list_hint(&self, name: &str) -> Result<String, Error> {
        let parts = [
            (format!("{name}*"), TextMatch::Prefix(name.to_string())),
            (format!("*{name}*"), TextMatch::Infix(name.to_string())),
        ];
        for (typed, text) in parts {
            let query = MailQuery::Text(TextTest { fields: MailTextFields::LIST, text });
            let messages = match self.count(&query)? {
                0 => continue,
                1 => "1 message".to_string(),
                count => format!("{count} messages"),
            };
            let typed = quote(&typed);
            return Ok(format!("list: compares whole names; list:{typed} finds {messages}"));
        }
        Ok(match self.nearest_list(name)? {
            Some(near) => {
                let near = quote(&near);
                format!("no message is of the list {name:?}; did you mean list:{near}?")
            }
            None => format!("no message is of the list {name:?}"),
        })
    }

    /// Returns the most similar folded name of a list that a message has.
    fn nearest_list(&self, name: &str) -> Result<Option<String>, Error> {
        let (name, mut lists) = (fold(name), self.expand_values(MessageTermField::List)?);
        loop {
            let names: Vec<&str> = lists.iter().map(String::as_str).collect();
            let Some(near) = nearest_host(&name, &names).map(str::to_string) else {
                return Ok(None);
            };
            let text = TextMatch::Words(near.clone());
            let query = MailQuery::Text(TextTest { fields: MailTextFields::LIST, text });
            if self.count(&query)? > 0 {
                return Ok(Some(near));
            }
            // A list of former messages.
            lists.retain(|one| *one != near);
        }
    }

    fn label_hint(&self, name: &str) -> Result<String, Error> {
        let is_known = self.mail.labels()?.iter().any(|(label, _)| label == name);
        let labels = self.used_labels()?;
        let names: Vec<&str> = labels.iter().map(String::as_str).collect();
        Ok(match nearest_name(name, &names) {
            // A person removed it from all messages.
            _ if is_known => format!("no message has the label {name:?}"),
            Some(near) => format!("no label is {name:?}; did you mean label:{}?", quote(near)),
            None if names.is_empty() => format!("no label is {name:?}; there are no labels"),
            None => format!("no label is {name:?}; labels: {}", join_names(&names)),
        })
    }

    /// Returns the paths of all folders, from the roots of their maildirs on.
    fn folder_paths(&self) -> Result<Vec<String>, Error> {
        let folders = self.mail.present_folders()?.into_iter();
        let paths = folders.map(|path| format!("/{}", String::from_utf8_lossy(&path)));
        let mut paths: Vec<String> = paths.collect();
        paths.sort_unstable();
        paths.dedup();
        Ok(paths)
    }

    /// Returns whether a path ends with that of a file below the root of its maildir.
    fn is_relative_file(&self, path: &str) -> Result<bool, Error> {
        let mut collections: Vec<String> =
            self.mail.folders()?.into_iter().map(|(collection, ..)| collection).collect();
        collections.dedup();
        let starts = path.match_indices('/').map(|(at, _)| at + 1);
        for below in std::iter::once(0).chain(starts).filter_map(|start| path.get(start..)) {
            let (directory, name) = below.rsplit_once('/').unwrap_or(("", below));
            for collection in &collections {
                let found =
                    self.mail.find_file(collection, directory.as_bytes(), name.as_bytes())?;
                if found.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns the hint for a folder, or for those below it; `end` is what is typed behind it.
    fn folder_hint(&self, path: &str, end: &str) -> Result<String, Error> {
        let paths = self.folder_paths()?;
        let names: Vec<&str> = paths.iter().map(String::as_str).collect();
        let wanted = fold(path).into_owned();
        if names.iter().any(|name| fold(name) == wanted) {
            return Ok(format!("no message is in the folder {path:?}"));
        }
        // Without the folders above it, as in a program whose root is one of them.
        let is_end = |name: &&&str| fold(name).ends_with(&wanted);
        let near = names.iter().find(is_end).copied().or_else(|| nearest_name(path, &names));
        Ok(match near {
            Some(near) => {
                let near = quote(&format!("{near}{end}"));
                format!("no folder is {path:?}; did you mean maildir:{near}?")
            }
            None => format!("no folder is {path:?}; folders: {}", join_names(&names)),
        })
    }
}

/// Returns a text as it is typed behind the name of a field.
fn quote(text: &str) -> String {
    match text.contains(char::is_whitespace) {
        true => format!("\"{text}\""),
        false => text.to_string(),
    }
}
