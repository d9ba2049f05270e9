//! The service: dispatches calls to registry, books and views, and tracks clients.
//!
//! Each message results in a list of messages: signals first, then the reply. A client is known
//! from its first call until the bus reports that it is gone; its views end then. Commits of other
//! processes are published before a call is answered, so that no reply precedes the signals of the
//! state that it shows.

use super::bus::{MethodCall, PropertyValues};
use super::call_error::CallError;
use super::call_threads::CallThreads;
use super::card::CardRenderer;
use super::client_view::{ClientView, ReadyViews, open_store_views};
use super::eds_source::{EdsSource, read_sources};
use super::interface::{
    ADDRESS_BOOK, ADDRESS_BOOK_FACTORY, ADDRESS_BOOK_VIEW, BusInterface, INTROSPECTABLE,
    OBJECT_MANAGER, PEER, PROPERTIES, SOURCE, SOURCE_MANAGER, introspection_xml,
};
use super::object_path::{BookNumber, ROOT_PATH, book_path, is_above, process_id, view_path};
use super::store_writer::StoreWriter;
use super::{BUS_NAME, BUS_PATH, EdsOptions, Error};
use larder_query::QueryContext;
use larder_query::views::Views;
use larder_store::{CollectionRow, CommitWatcher, DataVersion, Reader, Seq, Store};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use zbus::Message;
use zbus::message::{Flags, Type};

/// The maximum number of threads that answer queries.
const MAX_READER_THREADS: usize = 4;
/// The maximum number of calls of a client that wait for the answer to an earlier one; a call
/// beyond it is answered with an error.
const MAX_LATER_CALLS: usize = 1_000;
/// The time that the service waits at its end for a change that is being written.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// The state of the service between two messages.
pub(super) struct EdsService {
    pub(super) options: EdsOptions,
    pub(super) store_writer: StoreWriter,
    pub(super) reader: Reader,
    pub(super) cards: CardRenderer,
    /// The sources as last published to clients.
    pub(super) published_sources: Vec<EdsSource>,
    /// The opened books, by their numbers.
    pub(super) open_books: BTreeMap<BookNumber, OpenBook>,
    pub(super) last_book_number: BookNumber,
    /// The threads that answer queries.
    pub(super) reader_threads: CallThreads<EdsService>,
    /// The thread that writes.
    pub(super) writer_thread: CallThreads<EdsService>,
    /// The last batch up to which changes of books were published.
    pub(super) published_seq: Seq,
    /// The epoch of `published_seq`: a restore begins another one.
    pub(super) epoch: Arc<str>,
    /// The views of the query crate, and the clients' views that have events to deliver.
    pub(super) store_views: Views,
    pub(super) ready_views: ReadyViews,
    pub(super) settings: Arc<QueryContext>,
    /// Wakes the service after a commit of any process.
    _commit_watcher: Option<CommitWatcher>,
    /// The version of the store's data that was last published.
    published_data_version: Option<DataVersion>,
    pub(super) clients: BTreeSet<String>,
    /// The clients that a reader thread has yet to answer, each with its later calls: a client's
    /// calls are answered in order.
    pub(super) later_calls: BTreeMap<String, VecDeque<Message>>,
    /// Requests to the bus whether a client is still connected, by serial number.
    owner_queries: BTreeMap<NonZeroU32, String>,
    pub(super) client_views: BTreeMap<u64, ClientView>,
    /// The number of the view opened last.
    pub(super) last_view_number: u64,
    /// Messages to send before the reply.
    pub(super) before_reply: Vec<Message>,
    /// Messages to send after the reply.
    pub(super) after_reply: Vec<Message>,
}

/// A book that a client has opened.
#[derive(Debug)]
pub(super) struct OpenBook {
    pub(super) uid: String,
    pub(super) row: CollectionRow,
    /// The last change of the book that was published.
    pub(super) published: Seq,
}

impl OpenBook {
    /// Returns whether this is the book with this UID in this row.
    pub(super) fn is_of(&self, uid: &str, row: CollectionRow) -> bool {
        (self.uid.as_str(), self.row) == (uid, row)
    }
}

/// The answer to a call.
pub(super) enum CallAnswer {
    Reply(Message),
    /// A reader thread reads the answer, and the reply follows.
    Deferred,
}

/// An object on the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BusObject {
    /// A node without interfaces of its own, above other objects.
    Node,
    SourceManager,
    /// A source, by its number.
    Source(i64),
    Factory,
    /// An opened book.
    Book(BookNumber),
    /// A view, by its number.
    View(u64),
}

impl EdsService {
    pub(super) fn open(options: EdsOptions) -> Result<EdsService, Error> {
        let store = Store::open(&options.dir, &options.store)?;
        let reader = store.open_reader()?;
        let published_sources = read_sources(&reader)?;
        let epoch = reader.epoch()?;
        let store_views = open_store_views(&options)?;
        let ready_views = ReadyViews::default();
        let notify = Arc::clone(&ready_views.notify);
        let reader_threads = CallThreads::new(MAX_READER_THREADS, Arc::clone(&notify));
        let writer_thread = CallThreads::new(1, Arc::clone(&notify));
        // Without a watcher, commits of other processes are noticed at the next call, or by a view.
        let commit_watcher = CommitWatcher::watch(&options.dir, move || notify.notify_one()).ok();
        Ok(EdsService {
            store_writer: StoreWriter::new(store, &options),
            reader,
            cards: CardRenderer::default(),
            published_sources,
            open_books: BTreeMap::new(),
            last_book_number: 0,
            reader_threads,
            writer_thread,
            published_seq: 0,
            epoch,
            store_views,
            ready_views,
            settings: Arc::new(options.query_context.clone()),
            _commit_watcher: commit_watcher,
            published_data_version: None,
            clients: BTreeSet::new(),
            later_calls: BTreeMap::new(),
            owner_queries: BTreeMap::new(),
            client_views: BTreeMap::new(),
            last_view_number: 0,
            before_reply: Vec::new(),
            after_reply: Vec::new(),
            options,
        })
    }

    /// Returns whether no client is connected.
    pub(super) fn is_idle(&self) -> bool {
        self.clients.is_empty()
    }

    /// Handles a message and returns the messages to send.
    pub(super) fn handle_message(&mut self, message: &Message) -> Vec<Message> {
        match message.message_type() {
            Type::MethodCall => self.on_call(message),
            Type::MethodReturn | Type::Error => self.on_name_has_owner_reply(message),
            Type::Signal => self.on_signal(message),
        }
        self.take_messages()
    }

    fn take_messages(&mut self) -> Vec<Message> {
        self.before_reply.append(&mut self.after_reply);
        mem::take(&mut self.before_reply)
    }

    /// Handles a call, unless its client has an earlier one that is not answered.
    fn on_call(&mut self, message: &Message) {
        let call = MethodCall::new(message);
        match self.later_calls.get_mut(call.sender()) {
            Some(later) if later.len() < MAX_LATER_CALLS => later.push_back(message.clone()),
            Some(_) => {
                let text = format!("{MAX_LATER_CALLS} calls of this client wait for an answer");
                let failure = CallError::from_bus_error("LimitsExceeded", text);
                self.before_reply.extend(call.reply_error(&failure).filter(|_| call.wants_reply()));
            }
            None => self.handle_call(&call),
        }
    }

    pub(super) fn handle_call(&mut self, call: &MethodCall<'_>) {
        self.register_client(call.sender());
        match self.publish_changes().and_then(|()| self.dispatch(call)) {
            Ok(CallAnswer::Deferred) => {
                self.later_calls.entry(call.sender().to_string()).or_default();
            }
            Ok(CallAnswer::Reply(reply)) => self.send_reply(call, Ok(reply)),
            Err(failure) => self.send_reply(call, Err(failure)),
        }
    }

    pub(super) fn send_reply(&mut self, call: &MethodCall<'_>, reply: Result<Message, CallError>) {
        let reply = reply.map_or_else(|failure| call.reply_error(&failure), Some);
        self.before_reply.extend(reply.filter(|_| call.wants_reply()));
        self.before_reply.append(&mut self.after_reply);
    }

    /// Returns whether a thread has answered a call.
    pub(super) fn has_completions(&self) -> bool {
        self.reader_threads.has_completions() || self.writer_thread.has_completions()
    }

    /// Sends the answers of the threads; returns the messages to send.
    pub(super) fn on_answers_read(&mut self) -> Vec<Message> {
        let mut completions = self.reader_threads.take_completions();
        completions.extend(self.writer_thread.take_completions());
        // One signal wakes the service for answers and for commits.
        let _recurs = self.publish_changes();
        for completion in completions {
            completion(self);
        }
        self.take_messages()
    }

    /// Publishes a commit of another process and returns the messages to send.
    pub(super) fn on_store_changed(&mut self) -> Vec<Message> {
        // An error recurs at the next call, whose caller gets it.
        let _recurs = self.publish_changes();
        mem::take(&mut self.before_reply)
    }

    /// Publishes all changes since the last publication, of any process.
    pub(super) fn publish_changes(&mut self) -> Result<(), CallError> {
        if self.reader.is_replaced() {
            let zones = Arc::clone(&self.options.store.zones);
            self.reader = Reader::open_with_zones(&self.options.dir, zones)?;
            self.store_writer.mark_replaced();
        }
        let now = self.reader.data_version()?;
        if self.published_data_version == Some(now) {
            return Ok(());
        }
        self.publish_sources()?;
        self.publish_book_revisions()?;
        self.published_data_version = Some(now);
        Ok(())
    }

    fn dispatch(&mut self, call: &MethodCall<'_>) -> Result<CallAnswer, CallError> {
        let Some(object) = self.object_at(call.path()) else {
            let text = format!("there is no object at {}", call.path());
            return Err(CallError::from_bus_error("UnknownObject", text));
        };
        let interfaces = self.interfaces(object);
        let member = call.member();
        let mut matching = interfaces.iter().filter(|interface| {
            (call.interface().is_empty() && interface.input_signature(member).is_some())
                || interface.name == call.interface()
        });
        let Some(interface) = matching.next() else {
            let text = format!("there is no interface {} at {}", call.interface(), call.path());
            return Err(CallError::from_bus_error("UnknownInterface", text));
        };
        match interface.input_signature(member) {
            None => {
                let text = format!("{} has no method {member}", interface.name);
                return Err(CallError::from_bus_error("UnknownMethod", text));
            }
            Some(takes) if takes != call.signature() => {
                let text = format!("{member} takes ({takes}), not ({})", call.signature());
                return Err(CallError::from_bus_error("InvalidArgs", text));
            }
            Some(_) => {}
        }
        let reply = match (interface.name, member) {
            (name, _) if name == PEER.name => call.reply(&()),
            (name, _) if name == INTROSPECTABLE.name => {
                call.reply(&introspection_xml(&interfaces, &self.children(call.path())))
            }
            (name, _) if name == PROPERTIES.name => {
                self.handle_properties_call(object, &interfaces, call)
            }
            (name, _) if name == OBJECT_MANAGER.name => self.handle_managed_objects_call(call),
            _ => match object {
                BusObject::SourceManager => return self.handle_source_manager_call(call),
                BusObject::Source(number) => return self.handle_source_call(number, call),
                BusObject::Factory => return self.handle_open_book_call(call),
                BusObject::Book(number) => return self.handle_book_call(number, call),
                BusObject::View(number) => return self.handle_view_call(number, call),
                BusObject::Node => Err(CallError::from_bus_error("UnknownMethod", member)),
            },
        };
        reply.map(CallAnswer::Reply)
    }

    /// Returns the object at a path.
    fn object_at(&self, path: &str) -> Option<BusObject> {
        if path == "/" || is_above(path, ROOT_PATH) || path == ROOT_PATH {
            return Some(BusObject::Node);
        }
        let rest = path.strip_prefix(ROOT_PATH)?.strip_prefix('/')?;
        let mut parts = rest.split('/');
        let object = match (parts.next()?, parts.next(), parts.next()) {
            ("SourceManager", None, None) => BusObject::SourceManager,
            ("SourceManager", Some(source), None) => {
                let number = source.strip_prefix("Source")?;
                let number = number.strip_prefix('_').map_or(Some(0), |text| text.parse().ok())?;
                BusObject::Source(
                    self.published_sources.iter().find(|source| source.number == number)?.number,
                )
            }
            ("AddressBookFactory", None, None) => BusObject::Factory,
            ("Subprocess" | "AddressBookView", None, None) => BusObject::Node,
            ("Subprocess" | "AddressBookView", Some(process), None) if process == process_id() => {
                BusObject::Node
            }
            ("AddressBookView", Some(process), Some(number)) if process == process_id() => {
                let number = number.parse().ok()?;
                self.client_views.get(&number)?;
                BusObject::View(number)
            }
            ("Subprocess", Some(process), Some(number)) if process == process_id() => {
                let number = number.parse().ok()?;
                self.open_books.get(&number)?;
                BusObject::Book(number)
            }
            _ => return None,
        };
        parts.next().is_none().then_some(object)
    }

    /// Returns the interfaces of an object.
    pub(super) fn interfaces(&self, object: BusObject) -> Vec<&'static BusInterface> {
        let mut all = match object {
            BusObject::Node => vec![],
            BusObject::SourceManager => vec![&SOURCE_MANAGER, &OBJECT_MANAGER],
            BusObject::Factory => vec![&ADDRESS_BOOK_FACTORY],
            BusObject::Book(_) => vec![&ADDRESS_BOOK],
            BusObject::View(_) => vec![&ADDRESS_BOOK_VIEW],
            BusObject::Source(number) => {
                let source = self.published_sources.iter().find(|source| source.number == number);
                source.map(EdsSource::interfaces).unwrap_or_default()
            }
        };
        all.extend([&PROPERTIES, &INTROSPECTABLE, &PEER]);
        all
    }

    /// Returns the names of the nodes directly below a path.
    fn children(&self, path: &str) -> Vec<String> {
        let mut paths = vec![format!("{ROOT_PATH}/AddressBookFactory")];
        paths.extend(self.published_sources.iter().map(EdsSource::path));
        paths.extend(self.open_books.keys().map(|number| book_path(*number)));
        paths.extend(self.client_views.keys().map(|number| view_path(*number)));
        let below = |all: &String| {
            let rest = all.strip_prefix(path.trim_end_matches('/'))?.strip_prefix('/')?;
            rest.split('/').next().map(str::to_string)
        };
        let children: BTreeSet<String> = paths.iter().filter_map(below).collect();
        children.into_iter().collect()
    }

    fn handle_properties_call(
        &mut self,
        object: BusObject,
        interfaces: &[&BusInterface],
        call: &MethodCall<'_>,
    ) -> Result<Message, CallError> {
        let unknown = |name: &str| {
            CallError::from_bus_error("UnknownProperty", format!("there is no property {name}"))
        };
        let find_interface = |name: &str| -> Result<&BusInterface, CallError> {
            let mut all = interfaces.iter();
            let text = || format!("there is no interface {name} at {}", call.path());
            let found = all.find(|interface| interface.name == name);
            found.copied().ok_or_else(|| CallError::from_bus_error("UnknownInterface", text()))
        };
        match call.member() {
            "GetAll" => {
                let name: String = call.arguments()?;
                call.reply(&self.property_values(object, find_interface(&name)?)?)
            }
            "Get" => {
                let (interface, name): (String, String) = call.arguments()?;
                let mut values = self.property_values(object, find_interface(&interface)?)?;
                call.reply(&values.remove(name.as_str()).ok_or_else(|| unknown(&name))?)
            }
            _ => {
                let (interface, name, _): (String, String, zbus::Variant<'_>) = call.arguments()?;
                let mut properties = find_interface(&interface)?.properties.iter();
                match properties.find(|(known, ..)| *known == name) {
                    None => Err(unknown(&name)),
                    Some((.., false)) => Err(CallError::from_bus_error(
                        "PropertyReadOnly",
                        format!("{name} is read-only"),
                    )),
                    // The only writable property is the state of a connection. There is no
                    // connection, so the new value is ignored.
                    Some((.., true)) => call.reply(&()),
                }
            }
        }
    }

    /// Returns the values of all properties of an object's interface.
    fn property_values(
        &mut self,
        object: BusObject,
        interface: &BusInterface,
    ) -> Result<PropertyValues, CallError> {
        match object {
            BusObject::Source(number) if interface.name == SOURCE.name => {
                let source = self.published_sources.iter().find(|source| source.number == number);
                Ok(source.map(EdsSource::property_values).unwrap_or_default())
            }
            BusObject::Book(number) if interface.name == ADDRESS_BOOK.name => {
                self.book_property_values(number)
            }
            _ => Ok(PropertyValues::new()),
        }
    }
}

/// Clients, by their unique names on the bus.
impl EdsService {
    /// Subscribes to the end of a client at its first call. The subscription misses a client that
    /// is already gone, so the bus is then asked whether it is still connected.
    fn register_client(&mut self, client: &str) {
        if client.is_empty() || !self.clients.insert(client.to_string()) {
            return;
        }
        self.before_reply.extend(call_bus(
            "AddMatch",
            &owner_changed_match_rule(client),
            Flags::NO_REPLY_EXPECTED,
        ));
        if let Some(owner_query) = call_bus("NameHasOwner", client, Flags::default()) {
            self.owner_queries
                .insert(owner_query.primary_header().serial_num(), client.to_string());
            self.before_reply.push(owner_query);
        }
    }

    fn on_name_has_owner_reply(&mut self, message: &Message) {
        let serial = message.header().reply_serial();
        let Some(client) = serial.and_then(|serial| self.owner_queries.remove(&serial)) else {
            return;
        };
        if let Ok(false) = message.body().deserialize::<bool>() {
            self.remove_client(&client);
        }
    }

    fn on_signal(&mut self, message: &Message) {
        let header = message.header();
        let is = |field: Option<&str>, wanted: &str| field == Some(wanted);
        let from_bus = is(header.sender().map(|sender| sender.as_str()), BUS_NAME)
            && is(header.member().map(|member| member.as_str()), "NameOwnerChanged");
        if from_bus
            && let Ok((client, _, owner)) = message.body().deserialize::<(String, String, String)>()
            && owner.is_empty()
        {
            self.remove_client(&client);
        }
    }

    /// Removes a client and its views.
    fn remove_client(&mut self, client: &str) {
        self.later_calls.remove(client);
        self.reader_threads.remove_client(client);
        self.writer_thread.remove_client(client);
        if self.clients.remove(client) {
            self.client_views.retain(|_, view| *view.client != *client);
            self.before_reply.extend(call_bus(
                "RemoveMatch",
                &owner_changed_match_rule(client),
                Flags::NO_REPLY_EXPECTED,
            ));
        }
    }
}

/// Builds a call to the bus itself.
fn call_bus(method: &'static str, argument: &str, flags: Flags) -> Option<Message> {
    let call = Message::method_call(BUS_PATH, method).destination(BUS_NAME).interface(BUS_NAME);
    call.with_flags(flags).build(&argument).ok()
}

/// Returns the match rule of the signal that reports the end of a client.
fn owner_changed_match_rule(client: &str) -> String {
    format!(
        "type='signal',sender='{BUS_NAME}',interface='{BUS_NAME}',member='NameOwnerChanged',arg0='{client}'"
    )
}

impl Drop for EdsService {
    fn drop(&mut self) {
        self.reader_threads.close(Duration::ZERO);
        self.writer_thread.close(CLOSE_PATIENCE);
    }
}
