//! The registry of sources: what there is to open, made, changed and removed.
//!
//! Its list is read from the store whenever that has changed, and what is different is told, so a collection that another program
//! makes or removes appears and goes like one that a client asked for.

use super::bus::{Call, Values, changed, signal};
use super::failure::{
    Failure, IO_EXISTS, IO_FAILED, IO_INVALID_ARGUMENT, IO_NOT_FOUND, IO_NOT_SUPPORTED,
};
use super::interface::{Interface, OBJECT_MANAGER, SOURCE, SOURCE_REMOVABLE, SOURCE_WRITABLE};
use super::service::{ROOT, Service};
use super::source::{KeyFile, Source, collection_of, is_reserved, sources};
use larder_store::{Change, Kind, Operation};
use larder_sync::{list, remove_collection};
use std::collections::BTreeMap;
use zbus::{Message, ObjectPath, Variant};

/// Interfaces with their properties.
type Interfaces = BTreeMap<&'static str, Values>;

impl Source {
    /// Its object's path.
    pub(super) fn path(&self) -> String {
        let place = if self.number == 0 { String::new() } else { format!("_{}", self.number) };
        format!("{ROOT}/SourceManager/Source{place}")
    }

    /// What it is, and what may be done with it.
    pub(super) fn interfaces(&self) -> Vec<&'static Interface> {
        let mut all = vec![&SOURCE];
        all.extend(self.is_book.then_some(&SOURCE_WRITABLE));
        all.extend(self.removable.then_some(&SOURCE_REMOVABLE));
        all
    }

    /// The same with the properties of each.
    fn told(&self) -> Interfaces {
        let values = |name| if name == SOURCE.name { self.values() } else { Values::new() };
        self.interfaces().iter().map(|of| (of.name, values(of.name))).collect()
    }

    /// Its properties.
    pub(super) fn values(&self) -> Values {
        let status = if self.is_book { "connected" } else { "" };
        Values::from([
            ("UID", Variant::from(self.uid.clone())),
            ("Data", Variant::from(self.data.replace('\0', "\u{fffd}"))),
            ("ConnectionStatus", Variant::from(status)),
        ])
    }
}

impl Service {
    /// Tells which sources came, went, or say something else of themselves.
    pub(super) fn notice_sources(&mut self) -> Result<(), Failure> {
        let now = sources(&self.reader)?;
        let before = std::mem::replace(&mut self.sources, now);
        let root = format!("{ROOT}/SourceManager");
        for gone in before.iter().filter(|old| !self.sources.iter().any(|new| is_same(old, new))) {
            let names: Vec<&str> = gone.interfaces().iter().map(|of| of.name).collect();
            let body = (object_path(&gone.path()), names);
            let told = signal(&root, OBJECT_MANAGER.name, "InterfacesRemoved", None, &body);
            self.out.extend(told);
        }
        for new in &self.sources {
            let message = match before.iter().find(|old| is_same(old, new)) {
                None => {
                    let body = (object_path(&new.path()), new.told());
                    signal(&root, OBJECT_MANAGER.name, "InterfacesAdded", None, &body)
                }
                Some(old) if old.data != new.data => {
                    changed(&new.path(), SOURCE.name, "Data", new.data.clone())
                }
                Some(_) => None,
            };
            self.out.extend(message);
        }
        Ok(())
    }

    pub(super) fn managed_objects(&self, call: &Call<'_>) -> Result<Message, Failure> {
        let sources = self.sources.iter();
        let all: BTreeMap<ObjectPath<'_>, Interfaces> =
            sources.map(|source| (object_path(&source.path()), source.told())).collect();
        call.reply(&all)
    }

    /// What the registry itself is asked.
    pub(super) fn source_manager(&mut self, call: &Call<'_>) -> Result<Message, Failure> {
        match call.member() {
            "CreateSources" => self.create_sources(&call.arguments()?)?,
            "RefreshBackend" => {
                let uid: String = call.arguments()?;
                let known = self.sources.iter().any(|source| source.uid == uid);
                return Err(match known {
                    true => Failure::new(
                        IO_INVALID_ARGUMENT,
                        format!("Source “{uid}” is not a collection source"),
                    ),
                    false => Failure::new(IO_NOT_FOUND, format!("Cannot find source “{uid}”")),
                });
            }
            // There is nothing that was not read when it changed.
            _ => {}
        }
        call.reply(&())
    }

    /// Makes a collection of contacts for each source: all of them, or none.
    fn create_sources(&mut self, sources: &BTreeMap<String, String>) -> Result<(), Failure> {
        let mut changes = Vec::new();
        for (uid, text) in sources {
            let file = KeyFile::parse(text)?;
            if is_reserved(uid) || self.sources.iter().any(|source| source.uid == *uid) {
                return Err(Failure::new(IO_EXISTS, format!("UID “{uid}” is already in use")));
            }
            if !file.is_book() {
                let text = format!(
                    "“{uid}” is no address book; Larder keeps only these for clients so far"
                );
                return Err(Failure::new(IO_NOT_SUPPORTED, text));
            }
            changes.push(Change::CreateCollection(uid.clone(), Kind::Contact));
            changes.push(Change::SetHead(uid.clone(), Some(text.clone().into_bytes())));
            // One that was removed and comes back still has the summary it had.
            let summary = file.summary();
            let summary = summary.or_else(|| {
                larder_store::Summary::parse("default", larder_store::Family::Contacts).ok()
            });
            changes.extend(summary.map(|summary| Change::SetSummary(uid.clone(), summary)));
        }
        if changes.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = sources.keys().map(String::as_str).collect();
        self.write("create", &names.join(", "), changes).map(drop).map_err(|failure| Failure {
            name: Failure::new(IO_INVALID_ARGUMENT, "").name,
            ..failure
        })
    }

    /// What a source is asked.
    pub(super) fn source(&mut self, number: i64, call: &Call<'_>) -> Result<Message, Failure> {
        let source = self.sources.iter().find(|source| source.number == number).cloned();
        let Some(source) = source else {
            return Err(Failure::of_bus("UnknownObject", call.path()));
        };
        match call.member() {
            "Write" => {
                let text: String = call.arguments()?;
                KeyFile::parse(&text)?;
                self.book_row(&source)?;
                let name = collection_of(&source.uid).to_string();
                let head = Change::SetHead(name.clone(), Some(text.into_bytes()));
                self.write("edit", &name, vec![head])?;
            }
            "Remove" => {
                let name = collection_of(&source.uid).to_string();
                let listed = list(&self.reader, &name)?;
                let mut operation = Operation::new("remove", &name, (self.options.clock)());
                let removed = remove_collection(&mut self.store, &mut operation, &listed)?;
                self.notice_own();
                if !removed.whole {
                    let kept = removed.kept.len();
                    let text = format!(
                        "“{name}” stays: {kept} of its contacts were added or changed meanwhile; the others are removed"
                    );
                    return Err(Failure::new(IO_FAILED, text));
                }
            }
            "GetLastCredentialsRequiredArguments" => return call.reply(&("", "", "", "", "")),
            // Nothing here asks for a password.
            _ => {}
        }
        call.reply(&())
    }
}

/// Is it the same source, perhaps with another text?
fn is_same(a: &Source, b: &Source) -> bool {
    (a.number, &a.uid) == (b.number, &b.uid)
}

/// A path that is one; where it were none, the root.
pub(super) fn object_path(path: &str) -> ObjectPath<'static> {
    ObjectPath::try_from(path.to_string())
        .unwrap_or_else(|_| ObjectPath::from_static_str_unchecked("/"))
}
