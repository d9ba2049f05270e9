//! The registry of sources: lists, creates, changes and removes them.
//!
//! The list is read from the store whenever the store has changed, and the differences are
//! published. A collection that another program creates or removes therefore appears and disappears
//! like one that a client created or removed.

use super::book::create_book;
use super::bus::{MethodCall, PropertyValues, build_properties_changed, build_signal};
use super::call_error::{
    CallError, IO_EXISTS, IO_FAILED, IO_INVALID_ARGUMENT, IO_NOT_FOUND, IO_NOT_SUPPORTED,
};
use super::eds_source::{EdsSource, KeyFile, collection_of, is_reserved, read_sources};
use super::interface::{BusInterface, OBJECT_MANAGER, SOURCE, SOURCE_REMOVABLE, SOURCE_WRITABLE};
use super::object_path::{ROOT_PATH, object_path};
use super::service::{CallAnswer, EdsService};
use larder_edit::{list_collection, remove_collection};
use larder_store::{BatchChange, Kind, Operation, Store};
use std::collections::BTreeMap;
use zbus::{Message, ObjectPath, Variant};

/// Interfaces with their properties.
type InterfaceProperties = BTreeMap<&'static str, PropertyValues>;

impl EdsSource {
    /// Returns the path of its object.
    pub(super) fn path(&self) -> String {
        let place = if self.number == 0 { String::new() } else { format!("_{}", self.number) };
        format!("{ROOT_PATH}/SourceManager/Source{place}")
    }

    /// Returns the interfaces of its object, by what clients may do with the source.
    pub(super) fn interfaces(&self) -> Vec<&'static BusInterface> {
        let mut all = vec![&SOURCE];
        all.extend(self.is_book.then_some(&SOURCE_WRITABLE));
        all.extend(self.removable.then_some(&SOURCE_REMOVABLE));
        all
    }

    /// Returns the interfaces, each with its properties.
    fn interfaces_and_properties(&self) -> InterfaceProperties {
        let values =
            |name| if name == SOURCE.name { self.property_values() } else { PropertyValues::new() };
        self.interfaces().iter().map(|interface| (interface.name, values(interface.name))).collect()
    }

    /// Returns the properties of its object.
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
    /// Publishes the sources that were added, removed or changed.
    pub(super) fn publish_sources(&mut self) -> Result<(), CallError> {
        let now = read_sources(&self.reader)?;
        let before = std::mem::replace(&mut self.published_sources, now);
        let root = format!("{ROOT_PATH}/SourceManager");
        for removed in before
            .iter()
            .filter(|old| !self.published_sources.iter().any(|new| is_same_source(old, new)))
        {
            let names: Vec<&str> =
                removed.interfaces().iter().map(|interface| interface.name).collect();
            let body = (object_path(&removed.path()), names);
            let signal = build_signal(&root, OBJECT_MANAGER.name, "InterfacesRemoved", None, &body);
            self.before_reply.extend(signal);
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

    /// Handles a call of the registry itself.
    pub(super) fn handle_source_manager_call(
        &mut self,
        call: &MethodCall<'_>,
    ) -> Result<CallAnswer, CallError> {
        match call.member() {
            "CreateSources" => return self.create_sources(call),
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
            // `Reload`: sources are read whenever they change, so there is nothing to reload.
            _ => {}
        }
        call.reply(&()).map(CallAnswer::Reply)
    }

    /// Creates a collection of contacts for each source: all of them, or none.
    fn create_sources(&mut self, call: &MethodCall<'_>) -> Result<CallAnswer, CallError> {
        let sources: BTreeMap<String, String> = call.arguments()?;
        let mut changes = Vec::new();
        for (uid, text) in &sources {
            let file = KeyFile::parse(text)?;
            if is_reserved(uid) || self.published_sources.iter().any(|source| source.uid == *uid) {
                return Err(CallError::new(IO_EXISTS, format!("UID “{uid}” is already in use")));
            }
            if !file.is_book() {
                let text = format!(
                    "“{uid}” is not an address book; Larder serves only address books so far"
                );
                return Err(CallError::new(IO_NOT_SUPPORTED, text));
            }
            changes.push(BatchChange::CreateCollection(uid.clone(), Kind::Contact));
            changes.push(BatchChange::SetCollectionProperties(
                uid.clone(),
                Some(text.clone().into_bytes()),
            ));
            // A collection that was removed and is created again still has its former index
            // configuration.
            let index_config = file.index_config();
            let index_config = index_config.or_else(|| {
                larder_store::IndexConfig::parse(
                    "default",
                    larder_store::CollectionType::AddressBook,
                )
                .ok()
            });
            changes.extend(
                index_config
                    .map(|index_config| BatchChange::SetIndexConfig(uid.clone(), index_config)),
            );
        }
        if changes.is_empty() {
            return call.reply(&()).map(CallAnswer::Reply);
        }
        let names: Vec<&str> = sources.keys().map(String::as_str).collect();
        let names = names.join(", ");
        Ok(self.apply_later(call, "create", &names, changes, |_, call, created| {
            created.map_err(|failure| CallError {
                name: CallError::new(IO_INVALID_ARGUMENT, "").name,
                ..failure
            })?;
            call.reply(&())
        }))
    }

    /// Handles a call of a source.
    pub(super) fn handle_source_call(
        &mut self,
        number: i64,
        call: &MethodCall<'_>,
    ) -> Result<CallAnswer, CallError> {
        let source = self.published_sources.iter().find(|source| source.number == number).cloned();
        let Some(source) = source else {
            return Err(CallError::from_bus_error("UnknownObject", call.path()));
        };
        match call.member() {
            "Write" => {
                let text: String = call.arguments()?;
                KeyFile::parse(&text)?;
                let (name, is_new) = (collection_of(&source.uid).to_string(), source.row.is_none());
                let clock = self.options.clock;
                let write = move |store: &mut Store| {
                    if is_new {
                        create_book(store, &name, clock())?;
                    }
                    let properties = Some(text.into_bytes());
                    let head = BatchChange::SetCollectionProperties(name.clone(), properties);
                    let operation = Operation::new("edit", &name, clock());
                    Ok(store.apply(&mut operation.all_or_nothing(), vec![head])?)
                };
                return Ok(self.write_later(call, write, |_, call, written| {
                    written?;
                    call.reply(&())
                }));
            }
            "Remove" => {
                let name = collection_of(&source.uid).to_string();
                let listed = list_collection(&self.reader, &name)?;
                let mut operation = Operation::new("remove", &name, (self.options.clock)());
                let remove =
                    move |store: &mut Store| Ok(remove_collection(store, &mut operation, &listed)?);
                return Ok(self.write_later(call, remove, move |_, call, removed| {
                    let removed = removed?;
                    if removed.collection_removed {
                        return call.reply(&());
                    }
                    let kept = removed.remaining.len();
                    let text = format!(
                        "“{name}” was not removed: another program added or changed {kept} of its contacts; the others were removed"
                    );
                    Err(CallError::new(IO_FAILED, text))
                }));
            }
            "GetLastCredentialsRequiredArguments" => {
                return call.reply(&("", "", "", "", "")).map(CallAnswer::Reply);
            }
            // No source needs a password, so calls about credentials have no effect.
            _ => {}
        }
        call.reply(&()).map(CallAnswer::Reply)
    }
}

/// Returns whether both are the same source, perhaps with different texts.
fn is_same_source(a: &EdsSource, b: &EdsSource) -> bool {
    (a.number, &a.uid) == (b.number, &b.uid)
}
