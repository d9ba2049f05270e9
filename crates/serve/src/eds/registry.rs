//! The registry of sources: what there is to open, made, changed and removed.
//!
//! Its list is read from the store whenever that has changed, and what is different is told, so a
//! collection that another program makes or removes appears and goes like one that a client asked
//! for.

use super::bus::{MethodCall, PropertyValues, build_properties_changed, build_signal};
use super::call_error::{
    CallError, IO_EXISTS, IO_FAILED, IO_INVALID_ARGUMENT, IO_NOT_FOUND, IO_NOT_SUPPORTED,
};
use super::eds_source::{EdsSource, KeyFile, collection_of, is_reserved, read_sources};
use super::interface::{BusInterface, OBJECT_MANAGER, SOURCE, SOURCE_REMOVABLE, SOURCE_WRITABLE};
use super::object_path::{ROOT_PATH, object_path};
use super::service::EdsService;
use larder_edit::{list_collection, remove_collection};
use larder_store::{BatchChange, Kind, Operation};
use std::collections::BTreeMap;
use zbus::{Message, ObjectPath, Variant};

/// Interfaces with their properties.
type InterfaceProperties = BTreeMap<&'static str, PropertyValues>;

impl EdsSource {
    /// Its object's path.
    pub(super) fn path(&self) -> String {
        let place = if self.number == 0 { String::new() } else { format!("_{}", self.number) };
        format!("{ROOT_PATH}/SourceManager/Source{place}")
    }

    /// What it is, and what may be done with it.
    pub(super) fn interfaces(&self) -> Vec<&'static BusInterface> {
        let mut all = vec![&SOURCE];
        all.extend(self.is_book.then_some(&SOURCE_WRITABLE));
        all.extend(self.removable.then_some(&SOURCE_REMOVABLE));
        all
    }

    /// The same with the properties of each.
    fn interfaces_and_properties(&self) -> InterfaceProperties {
        let values =
            |name| if name == SOURCE.name { self.property_values() } else { PropertyValues::new() };
        self.interfaces().iter().map(|of| (of.name, values(of.name))).collect()
    }

    /// Its properties.
    pub(super) fn property_values(&self) -> PropertyValues {
        let status = if self.is_book { "connected" } else { "" };
        PropertyValues::from([
            ("UID", Variant::from(self.uid.clone())),
            ("Data", Variant::from(self.data.replace('\0', "\u{fffd}"))),
            ("ConnectionStatus", Variant::from(status)),
        ])
    }
}

impl EdsService {
    /// Tells which sources came, went, or say something else of themselves.
    pub(super) fn publish_sources(&mut self) -> Result<(), CallError> {
        let now = read_sources(&self.reader)?;
        let before = std::mem::replace(&mut self.published_sources, now);
        let root = format!("{ROOT_PATH}/SourceManager");
        for gone in before
            .iter()
            .filter(|old| !self.published_sources.iter().any(|new| is_same_source(old, new)))
        {
            let names: Vec<&str> = gone.interfaces().iter().map(|of| of.name).collect();
            let body = (object_path(&gone.path()), names);
            let told = build_signal(&root, OBJECT_MANAGER.name, "InterfacesRemoved", None, &body);
            self.before_reply.extend(told);
        }
        for new in &self.published_sources {
            let message = match before.iter().find(|old| is_same_source(old, new)) {
                None => {
                    let body = (object_path(&new.path()), new.interfaces_and_properties());
                    build_signal(&root, OBJECT_MANAGER.name, "InterfacesAdded", None, &body)
                }
                Some(old) if old.data != new.data => {
                    build_properties_changed(&new.path(), SOURCE.name, "Data", new.data.clone())
                }
                Some(_) => None,
            };
            self.before_reply.extend(message);
        }
        Ok(())
    }

    pub(super) fn handle_managed_objects_call(
        &self,
        call: &MethodCall<'_>,
    ) -> Result<Message, CallError> {
        let sources = self.published_sources.iter();
        let all: BTreeMap<ObjectPath<'_>, InterfaceProperties> = sources
            .map(|source| (object_path(&source.path()), source.interfaces_and_properties()))
            .collect();
        call.reply(&all)
    }

    /// What the registry itself is asked.
    pub(super) fn handle_source_manager_call(
        &mut self,
        call: &MethodCall<'_>,
    ) -> Result<Message, CallError> {
        match call.member() {
            "CreateSources" => self.create_sources(&call.arguments()?)?,
            "RefreshBackend" => {
                let uid: String = call.arguments()?;
                let known = self.published_sources.iter().any(|source| source.uid == uid);
                return Err(match known {
                    true => CallError::new(
                        IO_INVALID_ARGUMENT,
                        format!("Source “{uid}” is not a collection source"),
                    ),
                    false => CallError::new(IO_NOT_FOUND, format!("Cannot find source “{uid}”")),
                });
            }
            // There is nothing that was not read when it changed.
            _ => {}
        }
        call.reply(&())
    }

    /// Makes a collection of contacts for each source: all of them, or none.
    fn create_sources(&mut self, sources: &BTreeMap<String, String>) -> Result<(), CallError> {
        let mut changes = Vec::new();
        for (uid, text) in sources {
            let file = KeyFile::parse(text)?;
            if is_reserved(uid) || self.published_sources.iter().any(|source| source.uid == *uid) {
                return Err(CallError::new(IO_EXISTS, format!("UID “{uid}” is already in use")));
            }
            if !file.is_book() {
                let text = format!(
                    "“{uid}” is no address book; Larder keeps only these for clients so far"
                );
                return Err(CallError::new(IO_NOT_SUPPORTED, text));
            }
            changes.push(BatchChange::CreateCollection(uid.clone(), Kind::Contact));
            changes.push(BatchChange::SetCollectionProperties(
                uid.clone(),
                Some(text.clone().into_bytes()),
            ));
            // One that was removed and comes back still has the summary it had.
            let summary = file.index_config();
            let summary = summary.or_else(|| {
                larder_store::IndexConfig::parse(
                    "default",
                    larder_store::CollectionType::AddressBook,
                )
                .ok()
            });
            changes
                .extend(summary.map(|summary| BatchChange::SetIndexConfig(uid.clone(), summary)));
        }
        if changes.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = sources.keys().map(String::as_str).collect();
        self.write("create", &names.join(", "), changes).map(drop).map_err(|failure| CallError {
            name: CallError::new(IO_INVALID_ARGUMENT, "").name,
            ..failure
        })
    }

    /// What a source is asked.
    pub(super) fn handle_source_call(
        &mut self,
        number: i64,
        call: &MethodCall<'_>,
    ) -> Result<Message, CallError> {
        let source = self.published_sources.iter().find(|source| source.number == number).cloned();
        let Some(source) = source else {
            return Err(CallError::from_bus_error("UnknownObject", call.path()));
        };
        match call.member() {
            "Write" => {
                let text: String = call.arguments()?;
                KeyFile::parse(&text)?;
                self.ensure_book_row(&source)?;
                let name = collection_of(&source.uid).to_string();
                let head =
                    BatchChange::SetCollectionProperties(name.clone(), Some(text.into_bytes()));
                self.write("edit", &name, vec![head])?;
            }
            "Remove" => {
                let name = collection_of(&source.uid).to_string();
                let listed = list_collection(&self.reader, &name)?;
                let mut operation = Operation::new("remove", &name, (self.options.clock)());
                let removed = remove_collection(&mut self.store, &mut operation, &listed)?;
                self.publish_own_write();
                if !removed.collection_removed {
                    let kept = removed.remaining.len();
                    let text = format!(
                        "“{name}” stays: {kept} of its contacts were added or changed meanwhile; the others are removed"
                    );
                    return Err(CallError::new(IO_FAILED, text));
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
fn is_same_source(a: &EdsSource, b: &EdsSource) -> bool {
    (a.number, &a.uid) == (b.number, &b.uid)
}
