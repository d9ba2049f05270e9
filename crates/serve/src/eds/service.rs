//! Which object a call is for, and who calls: the frame around registry, books and views.
//!
//! Each message gives a list of messages: signals first, then the reply. A client is known from its first call until the bus says that
//! it is gone, and all that was done for it alone ends then. What others write is noticed before a call is answered, so that no
//! answer is ahead of the signals.

use super::bus::{Call, Values};
use super::card::Cards;
use super::failure::Failure;
use super::interface::{
    ADDRESS_BOOK, ADDRESS_BOOK_FACTORY, ADDRESS_BOOK_VIEW, INTROSPECTABLE, Interface,
    OBJECT_MANAGER, PEER, PROPERTIES, SOURCE, SOURCE_MANAGER, introspection,
};
use super::source::{Source, sources};
use super::view::{News, View, open_views, view_path};
use super::{BUS, BUS_PATH, Error, Options};
use larder_query::Settings;
use larder_query::views::Views;
use larder_store::{Bell, Change, Moment, Operation, Reader, Seq, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::num::NonZeroU32;
use std::sync::Arc;
use zbus::Message;
use zbus::message::{Flags, Type};

/// The root of all paths.
pub(super) const ROOT: &str = "/org/gnome/evolution/dataserver";

/// The service, between two messages.
pub(super) struct Service {
    pub(super) options: Options,
    pub(super) store: Store,
    pub(super) reader: Reader,
    pub(super) cards: Cards,
    /// What clients were told there is.
    pub(super) sources: Vec<Source>,
    /// The books that were opened, with the last change that clients were told of.
    pub(super) books: BTreeMap<i64, Seq>,
    /// The last batch when it was looked which books have changed.
    pub(super) looked: Seq,
    /// Which numbering of batches that is of: a restore begins another.
    pub(super) epoch: Arc<str>,
    /// Views as the store has them, and those that have something to tell.
    pub(super) asked_views: Views,
    pub(super) news: News,
    pub(super) settings: Arc<Settings>,
    /// It says that somebody wrote.
    _bell: Option<Bell>,
    /// What the store was when it was last looked at.
    seen: Option<Moment>,
    clients: BTreeSet<String>,
    /// Questions to the bus whether a client is still there.
    asked: BTreeMap<NonZeroU32, String>,
    pub(super) views: BTreeMap<u64, View>,
    /// How many views were opened: the number of the last one.
    pub(super) opened: u64,
    /// Messages that go out before the reply.
    pub(super) out: Vec<Message>,
    /// Messages that go out behind it.
    pub(super) behind: Vec<Message>,
}

/// An object that can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Object {
    /// A node that only has others below it.
    Node,
    SourceManager,
    /// A source, by its number.
    Source(i64),
    Factory,
    /// A book, by its collection's row.
    Book(i64),
    /// A view, by its number.
    View(u64),
}

impl Service {
    pub(super) fn open(options: Options) -> Result<Service, Error> {
        let store = Store::open(&options.dir, &options.store)?;
        let reader = store.reader()?;
        let sources = sources(&reader)?;
        let epoch = reader.epoch()?;
        let asked_views = open_views(&options)?;
        let news = News::default();
        let bell = Arc::clone(&news.bell);
        // Without it what others write is noticed at the next call, or by a view.
        let bell = Bell::hear(&options.dir, move || bell.notify_one()).ok();
        Ok(Service {
            store,
            reader,
            cards: Cards::default(),
            sources,
            books: BTreeMap::new(),
            looked: 0,
            epoch,
            asked_views,
            news,
            settings: Arc::new(options.settings.clone()),
            _bell: bell,
            seen: None,
            clients: BTreeSet::new(),
            asked: BTreeMap::new(),
            views: BTreeMap::new(),
            opened: 0,
            out: Vec::new(),
            behind: Vec::new(),
            options,
        })
    }

    /// Is no client there?
    pub(super) fn is_idle(&self) -> bool {
        self.clients.is_empty()
    }

    /// Takes a message, and gives what is to be sent.
    pub(super) fn take(&mut self, message: &Message) -> Vec<Message> {
        match message.message_type() {
            Type::MethodCall => self.answer(&Call::new(message)),
            Type::MethodReturn | Type::Error => self.is_still_there(message),
            Type::Signal => self.listen(message),
        }
        self.out.append(&mut self.behind);
        mem::take(&mut self.out)
    }

    fn answer(&mut self, call: &Call<'_>) {
        self.meet(call.sender());
        let reply = self.notice().and_then(|()| self.called(call));
        let reply = reply.map_or_else(|failure| call.refuse(&failure), Some);
        self.out.extend(reply.filter(|_| call.wants_reply()));
    }

    /// Somebody wrote: what there is to tell.
    pub(super) fn hear(&mut self) -> Vec<Message> {
        // What is wrong is told to whoever calls next.
        let _noticed = self.notice();
        mem::take(&mut self.out)
    }

    /// Tells what changed since the store was last looked at, whoever changed it.
    pub(super) fn notice(&mut self) -> Result<(), Failure> {
        if self.reader.is_replaced() {
            // One that was taken away is missed, and not begun anew: somebody may bring it back.
            let options = larder_store::Options { create: false, ..self.options.store.clone() };
            self.store = Store::open(&self.options.dir, &options)?;
            self.reader = self.store.reader()?;
        }
        let now = self.reader.moment()?;
        if self.seen == Some(now) {
            return Ok(());
        }
        self.notice_sources()?;
        self.notice_books()?;
        self.seen = Some(now);
        Ok(())
    }

    /// Writes, and tells what changed.
    pub(super) fn write(
        &mut self,
        verb: &str,
        detail: &str,
        changes: Vec<Change>,
    ) -> Result<larder_store::Applied, Failure> {
        let operation = Operation::new(verb, detail, (self.options.clock)());
        let applied = self.store.apply(&mut operation.all_or_nothing(), changes)?;
        self.notice_own();
        Ok(applied)
    }

    /// Tells what was just written. It is committed, so that where this fails the writer is no less successful: what is wrong is told
    /// to whoever calls next, and the news when that is mended.
    pub(super) fn notice_own(&mut self) {
        let _noticed = self.notice();
    }

    fn called(&mut self, call: &Call<'_>) -> Result<Message, Failure> {
        let Some(object) = self.object(call.path()) else {
            let text = format!("there is no object at {}", call.path());
            return Err(Failure::of_bus("UnknownObject", text));
        };
        let interfaces = self.interfaces(object);
        let member = call.member();
        let mut called = interfaces.iter().filter(|interface| {
            (call.interface().is_empty() && interface.takes(member).is_some())
                || interface.name == call.interface()
        });
        let Some(interface) = called.next() else {
            let text = format!("there is no interface {} at {}", call.interface(), call.path());
            return Err(Failure::of_bus("UnknownInterface", text));
        };
        match interface.takes(member) {
            None => {
                let text = format!("{} has no method {member}", interface.name);
                return Err(Failure::of_bus("UnknownMethod", text));
            }
            Some(takes) if takes != call.signature() => {
                let text = format!("{member} takes ({takes}), not ({})", call.signature());
                return Err(Failure::of_bus("InvalidArgs", text));
            }
            Some(_) => {}
        }
        match (interface.name, member) {
            (name, _) if name == PEER.name => call.reply(&()),
            (name, _) if name == INTROSPECTABLE.name => {
                call.reply(&introspection(&interfaces, &self.children(call.path())))
            }
            (name, _) if name == PROPERTIES.name => self.property(object, &interfaces, call),
            (name, _) if name == OBJECT_MANAGER.name => self.managed_objects(call),
            _ => match object {
                Object::SourceManager => self.source_manager(call),
                Object::Source(number) => self.source(number, call),
                Object::Factory => self.open_book(call),
                Object::Book(row) => self.book(row, call),
                Object::View(number) => self.view(number, call),
                Object::Node => Err(Failure::of_bus("UnknownMethod", member)),
            },
        }
    }

    /// The object at a path.
    fn object(&self, path: &str) -> Option<Object> {
        if path == "/" || is_above(path, ROOT) || path == ROOT {
            return Some(Object::Node);
        }
        let rest = path.strip_prefix(ROOT)?.strip_prefix('/')?;
        let mut parts = rest.split('/');
        let object = match (parts.next()?, parts.next(), parts.next()) {
            ("SourceManager", None, None) => Object::SourceManager,
            ("SourceManager", Some(source), None) => {
                let number = source.strip_prefix("Source")?;
                let number = number.strip_prefix('_').map_or(Some(0), |text| text.parse().ok())?;
                Object::Source(self.sources.iter().find(|source| source.number == number)?.number)
            }
            ("AddressBookFactory", None, None) => Object::Factory,
            ("Subprocess" | "AddressBookView", None, None) => Object::Node,
            ("Subprocess" | "AddressBookView", Some(process), None) if process == pid() => {
                Object::Node
            }
            ("AddressBookView", Some(process), Some(number)) if process == pid() => {
                let number = number.parse().ok()?;
                self.views.get(&number)?;
                Object::View(number)
            }
            ("Subprocess", Some(process), Some(row)) if process == pid() => {
                let row = row.parse().ok()?;
                self.sources.iter().find(|source| source.row == Some(row))?;
                Object::Book(row)
            }
            _ => return None,
        };
        parts.next().is_none().then_some(object)
    }

    /// The interfaces of an object.
    pub(super) fn interfaces(&self, object: Object) -> Vec<&'static Interface> {
        let mut all = match object {
            Object::Node => vec![],
            Object::SourceManager => vec![&SOURCE_MANAGER, &OBJECT_MANAGER],
            Object::Factory => vec![&ADDRESS_BOOK_FACTORY],
            Object::Book(_) => vec![&ADDRESS_BOOK],
            Object::View(_) => vec![&ADDRESS_BOOK_VIEW],
            Object::Source(number) => {
                let source = self.sources.iter().find(|source| source.number == number);
                source.map(Source::interfaces).unwrap_or_default()
            }
        };
        all.extend([&PROPERTIES, &INTROSPECTABLE, &PEER]);
        all
    }

    /// What lies right below a path.
    fn children(&self, path: &str) -> Vec<String> {
        let mut paths = vec![format!("{ROOT}/AddressBookFactory")];
        paths.extend(self.sources.iter().map(Source::path));
        paths.extend(self.books.keys().map(|row| book_path(*row)));
        paths.extend(self.views.keys().map(|number| view_path(*number)));
        let below = |all: &String| {
            let rest = all.strip_prefix(path.trim_end_matches('/'))?.strip_prefix('/')?;
            rest.split('/').next().map(str::to_string)
        };
        let children: BTreeSet<String> = paths.iter().filter_map(below).collect();
        children.into_iter().collect()
    }

    fn property(
        &mut self,
        object: Object,
        interfaces: &[&Interface],
        call: &Call<'_>,
    ) -> Result<Message, Failure> {
        let unknown =
            |name: &str| Failure::of_bus("UnknownProperty", format!("no property {name}"));
        let of = |name: &str| -> Result<&Interface, Failure> {
            let mut all = interfaces.iter();
            let text = || format!("there is no interface {name} at {}", call.path());
            let found = all.find(|interface| interface.name == name);
            found.copied().ok_or_else(|| Failure::of_bus("UnknownInterface", text()))
        };
        match call.member() {
            "GetAll" => {
                let name: String = call.arguments()?;
                call.reply(&self.values(object, of(&name)?)?)
            }
            "Get" => {
                let (interface, name): (String, String) = call.arguments()?;
                let mut values = self.values(object, of(&interface)?)?;
                call.reply(&values.remove(name.as_str()).ok_or_else(|| unknown(&name))?)
            }
            _ => {
                let (interface, name, _): (String, String, zbus::Variant<'_>) = call.arguments()?;
                let mut properties = of(&interface)?.properties.iter();
                match properties.find(|(known, ..)| *known == name) {
                    None => Err(unknown(&name)),
                    Some((.., false)) => {
                        Err(Failure::of_bus("PropertyReadOnly", format!("{name} is read only")))
                    }
                    // The one that may be set is the state of a connection, and there is none to lose.
                    Some((.., true)) => call.reply(&()),
                }
            }
        }
    }

    /// The values of all properties of an interface of an object.
    fn values(&mut self, object: Object, interface: &Interface) -> Result<Values, Failure> {
        match object {
            Object::Source(number) if interface.name == SOURCE.name => {
                let source = self.sources.iter().find(|source| source.number == number);
                Ok(source.map(Source::values).unwrap_or_default())
            }
            Object::Book(row) if interface.name == ADDRESS_BOOK.name => self.book_values(row),
            _ => Ok(Values::new()),
        }
    }
}

/// Clients: they are known by the name that the bus gave them.
impl Service {
    /// From its first call on, the bus is to say when a client goes; that it is still there is asked after that, as it may have gone before.
    fn meet(&mut self, client: &str) {
        if client.is_empty() || !self.clients.insert(client.to_string()) {
            return;
        }
        self.out.extend(to_bus("AddMatch", &goes(client), Flags::NO_REPLY_EXPECTED));
        if let Some(question) = to_bus("NameHasOwner", client, Flags::default()) {
            self.asked.insert(question.primary_header().serial_num(), client.to_string());
            self.out.push(question);
        }
    }

    fn is_still_there(&mut self, message: &Message) {
        let serial = message.header().reply_serial();
        let Some(client) = serial.and_then(|serial| self.asked.remove(&serial)) else { return };
        if let Ok(false) = message.body().deserialize::<bool>() {
            self.leave(&client);
        }
    }

    fn listen(&mut self, message: &Message) {
        let header = message.header();
        let is = |field: Option<&str>, wanted: &str| field == Some(wanted);
        let from_bus = is(header.sender().map(|sender| sender.as_str()), BUS)
            && is(header.member().map(|member| member.as_str()), "NameOwnerChanged");
        if from_bus
            && let Ok((client, _, owner)) = message.body().deserialize::<(String, String, String)>()
            && owner.is_empty()
        {
            self.leave(&client);
        }
    }

    /// All that was done for a client ends.
    fn leave(&mut self, client: &str) {
        if self.clients.remove(client) {
            self.views.retain(|_, view| *view.client != *client);
            self.out.extend(to_bus("RemoveMatch", &goes(client), Flags::NO_REPLY_EXPECTED));
        }
    }
}

/// A call of the bus itself.
fn to_bus(method: &'static str, argument: &str, flags: Flags) -> Option<Message> {
    let call = Message::method_call(BUS_PATH, method).destination(BUS).interface(BUS);
    call.with_flags(flags).build(&argument).ok()
}

/// The signals that say that a client goes.
fn goes(client: &str) -> String {
    format!(
        "type='signal',sender='{BUS}',interface='{BUS}',member='NameOwnerChanged',arg0='{client}'"
    )
}

/// Is the first of two paths above the second?
fn is_above(path: &str, other: &str) -> bool {
    other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
}

/// This process, as it is called in paths: who finds another one behind the same name does not take its objects for ours.
fn pid() -> String {
    std::process::id().to_string()
}

/// The path of a book, by its collection's row.
pub(super) fn book_path(row: i64) -> String {
    format!("{ROOT}/Subprocess/{}/{row}", std::process::id())
}
