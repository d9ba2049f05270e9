//! A private session bus with a service on it, and clients that see every message in order. The
//! file contains no tests.

use larder_query::QueryContext;
use larder_serve::eds::{self, EdsOptions, Error, ServiceExit, StopHandle};
use larder_store::Store;
use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use zbus::connection::Builder;
use zbus::export::futures_core::Stream as _;
use zbus::message::Type;
use zbus::{Connection, DynamicType, Message, MessageStream};

pub(crate) const EDS: &str = "org.gnome.evolution.dataserver";
pub(crate) const SOURCES: &str = "org.gnome.evolution.dataserver.Sources5";
pub(crate) const BOOKS: &str = "org.gnome.evolution.dataserver.AddressBook10";
pub(crate) const MANAGER: &str = "/org/gnome/evolution/dataserver/SourceManager";
pub(crate) const FACTORY: &str = "/org/gnome/evolution/dataserver/AddressBookFactory";

/// Long enough for a busy machine; only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A session bus, which ends when the value is dropped.
pub(crate) struct Bus {
    daemon: Child,
    pub(crate) address: String,
    pub(crate) dir: tempfile::TempDir,
}

impl Bus {
    /// Starts a bus; without dbus-daemon, reports that the test was left out and returns `None`.
    pub(crate) fn new(test: &str) -> Option<Bus> {
        let dir = tempfile::tempdir().unwrap();
        let conf = dir.path().join("bus.conf");
        let text = format!(
            "<busconfig><type>session</type><listen>unix:tmpdir={}</listen><auth>EXTERNAL</auth>\
             <policy context=\"default\">\
             <allow send_destination=\"*\" eavesdrop=\"true\"/>\
             <allow eavesdrop=\"true\"/><allow own=\"*\"/></policy>\
             <limit name=\"max_replies_per_connection\">50000</limit></busconfig>",
            dir.path().display()
        );
        std::fs::write(&conf, text).unwrap();
        let mut command = Command::new("dbus-daemon");
        command.args(["--nofork", "--print-address=1", "--config-file"]).arg(&conf);
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut daemon = match spawned {
            Ok(daemon) => daemon,
            Err(error) => {
                report_left_out(test, &format!("cannot run dbus-daemon ({error})"));
                return None;
            }
        };
        let mut address = String::new();
        BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Some(Bus { daemon, address: address.trim().into(), dir })
    }

    /// The data directory of the store.
    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn options(&self) -> EdsOptions {
        let made = larder_store::StoreOptions { create: true, ..Default::default() };
        EdsOptions {
            address: self.address.clone(),
            dir: self.data(),
            store: made,
            query_context: QueryContext { region: Some("US".into()), ..QueryContext::default() },
            locale: "en_US.UTF-8".into(),
            cache_dir: "/cache".into(),
            answer_cache_bytes: larder_query::views::DEFAULT_CACHE_BYTES,
            idle_timeout: None,
            log: None,
            clock: || 1_700_000_000_123,
            random,
        }
    }

    /// Opens the store as another process would.
    pub(crate) fn store(&self) -> Store {
        Store::open(&self.data(), &self.options().store).unwrap()
    }

    /// Stops the bus process, so that it accepts no more messages.
    pub(crate) fn freeze(&self) {
        let pid = self.daemon.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
    }

    /// Starts a service.
    pub(crate) fn serve(&self, options: EdsOptions) -> Service {
        let (stop, (ready_sender, ready)) = (StopHandle::default(), mpsc::channel());
        let thread_stop = stop.clone();
        let thread = std::thread::spawn(move || {
            eds::serve(options, &thread_stop, &mut || ready_sender.send(()).unwrap())
        });
        let ready = ready.recv_timeout(PATIENCE).is_ok();
        Service { stop, thread: Some(thread), ready }
    }

    pub(crate) fn client(&self) -> Client {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (connection, stream) = runtime.block_on(async {
            let connection = Builder::address(self.address.as_str()).build().await.unwrap();
            let stream = MessageStream::from(&connection);
            (connection, stream)
        });
        let client = Client { runtime, connection, stream: RefCell::new(stream) };
        client.listen("type='signal',path_namespace='/org/gnome/evolution/dataserver'");
        client
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _gone = self.daemon.kill();
        let _ended = self.daemon.wait();
    }
}

/// Returns different bytes each time.
fn random() -> std::io::Result<[u8; 16]> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Ok(u128::from(NEXT.fetch_add(1, Ordering::Relaxed)).to_be_bytes())
}

/// A service that runs in a thread.
pub(crate) struct Service {
    pub(crate) stop: StopHandle,
    thread: Option<JoinHandle<Result<ServiceExit, Error>>>,
    /// Whether the service owns its names.
    pub(crate) ready: bool,
}

impl Service {
    /// Waits for the end of the service.
    pub(crate) fn end(mut self) -> Result<ServiceExit, Error> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// A client that reads its messages one by one.
pub(crate) struct Client {
    stream: RefCell<MessageStream>,
    connection: Connection,
    /// The last field, because the others need it when they are dropped.
    runtime: Runtime,
}

/// An error reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorReply {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The messages that came before a reply, and the reply.
pub(crate) type CallTranscript = (Vec<Message>, Result<Message, ErrorReply>);

impl Client {
    /// Its unique name on the bus.
    pub(crate) fn name(&self) -> String {
        self.connection.unique_name().unwrap().to_string()
    }

    /// Subscribes to signals.
    pub(crate) fn listen(&self, rule: &str) {
        const BUS: &str = "org.freedesktop.DBus";
        self.call_service(BUS, "/org/freedesktop/DBus", BUS, "AddMatch", &rule).1.unwrap();
    }

    /// Waits for the next message.
    pub(crate) fn next(&self) -> Message {
        let mut stream = self.stream.borrow_mut();
        let mut stream = std::pin::Pin::new(&mut *stream);
        let next = std::future::poll_fn(|context| stream.as_mut().poll_next(context));
        let waited = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, next).await });
        waited.expect("nothing comes").expect("the bus is gone").unwrap()
    }

    /// Calls methods without arguments, or with texts and flags, all in a row and without waiting
    /// for a reply.
    pub(crate) fn post(&self, calls: &[(&str, &str, &str, Option<&[&str]>)]) {
        let message = |(path, interface, method, texts): &(&str, &str, &str, Option<&[&str]>)| {
            let interface = format!("{EDS}.{interface}");
            let call = Message::method_call(*path, *method).destination(BOOKS);
            let call = call.interface(interface.as_str());
            match texts {
                Some(texts) => call.build(&(*texts, 0u32)).unwrap(),
                None => call.build(&()).unwrap(),
            }
        };
        let messages: Vec<Message> = calls.iter().map(message).collect();
        self.runtime.block_on(self.connection.send_all(&messages)).unwrap();
    }

    /// Calls a method; returns the messages that came before its reply, and the reply.
    pub(crate) fn call_service<T: serde::Serialize + DynamicType>(
        &self,
        to: &str,
        path: &str,
        interface: &str,
        method: &str,
        body: &T,
    ) -> CallTranscript {
        let call = Message::method_call(path, method).destination(to).interface(interface);
        let call = call.build(body).unwrap();
        self.runtime.block_on(self.connection.send(&call)).unwrap();
        let mut before = Vec::new();
        loop {
            let message = self.next();
            if message.header().reply_serial() != Some(call.primary_header().serial_num()) {
                before.push(message);
            } else if message.message_type() == Type::Error {
                let name = message.header().error_name().unwrap().to_string();
                let text = message.body().deserialize().unwrap_or_default();
                return (before, Err(ErrorReply { name, text }));
            } else {
                return (before, Ok(message));
            }
        }
    }

    /// Calls a method of one of EDS' interfaces; returns its reply.
    pub(crate) fn call<T: serde::Serialize + DynamicType>(
        &self,
        path: &str,
        interface: &str,
        method: &str,
        body: &T,
    ) -> Result<Message, ErrorReply> {
        let interface = format!("{EDS}.{interface}");
        self.call_service(BOOKS, path, &interface, method, body).1
    }

    /// Creates a source with these groups in addition to the usual ones and opens it; returns its
    /// path.
    pub(crate) fn new_book(&self, uid: &str, groups: &str) -> String {
        let text = format!(
            "[Data Source]\nDisplayName={uid}\n\n[Address Book]\nBackendName=local\n{groups}"
        );
        let sources = std::collections::BTreeMap::from([(uid, text.as_str())]);
        self.call(MANAGER, "SourceManager", "CreateSources", &sources).unwrap();
        self.open(uid)
    }

    /// Opens a book; returns its path.
    pub(crate) fn open(&self, uid: &str) -> String {
        let reply = self.call(FACTORY, "AddressBookFactory", "OpenAddressBook", &uid).unwrap();
        let (path, name): (String, String) = reply.body().deserialize().unwrap();
        assert_eq!(name, BOOKS);
        self.call(&path, "AddressBook", "Open", &()).unwrap();
        path
    }

    /// Adds cards; returns their UIDs.
    pub(crate) fn add(&self, book: &str, cards: &[&str]) -> Result<Vec<String>, ErrorReply> {
        let reply = self.call(book, "AddressBook", "CreateContacts", &(cards, 0u32))?;
        Ok(reply.body().deserialize().unwrap())
    }

    /// Returns the card of a contact.
    pub(crate) fn get(&self, book: &str, uid: &str) -> Result<String, ErrorReply> {
        let reply = self.call(book, "AddressBook", "GetContact", &uid)?;
        Ok(reply.body().deserialize().unwrap())
    }

    /// Returns the UIDs of the contacts that match a query, sorted.
    pub(crate) fn uids(&self, book: &str, query: &str) -> Result<Vec<String>, ErrorReply> {
        let reply = self.call(book, "AddressBook", "GetContactListUids", &query)?;
        let mut uids: Vec<String> = reply.body().deserialize().unwrap();
        uids.sort();
        Ok(uids)
    }
}

/// Summarises each message by its member and the texts of its body.
pub(crate) fn message_summaries(messages: &[Message]) -> Vec<String> {
    let message_summaries = |message: &Message| {
        let header = message.header();
        let member = header.member().map_or("reply", |member| member.as_str()).to_string();
        let body = message.body();
        match member.as_str() {
            "PropertiesChanged" => {
                let (_, values, _): (
                    String,
                    std::collections::BTreeMap<String, zbus::OwnedVariant>,
                    Vec<String>,
                ) = body.deserialize().unwrap();
                format!("{member} {}", values.into_keys().collect::<Vec<_>>().join(","))
            }
            "ObjectsAdded" | "ObjectsModified" | "ObjectsRemoved" => {
                let texts: Vec<String> = body.deserialize().unwrap();
                let short =
                    texts.iter().map(|text| if text.contains('\n') { "card" } else { text });
                format!("{member} {}", short.collect::<Vec<_>>().join(" "))
            }
            _ => member,
        }
    };
    messages.iter().map(message_summaries).collect()
}

/// Returns a card with a UID and a name.
pub(crate) fn card(uid: &str, name: &str) -> String {
    format!("BEGIN:VCARD\r\nVERSION:3.0\r\nUID:{uid}\r\nFN:{name}\r\nEND:VCARD")
}

/// Reports that a test was left out on this machine, and the reason. With `LARDER_REQUIRE_ALL=1`
/// that is a failure.
#[track_caller]
pub(crate) fn report_left_out(name: &str, why: &str) {
    let required = std::env::var("LARDER_REQUIRE_ALL").is_ok_and(|value| value == "1");
    assert!(!required, "{name} is required here: {why}");
    let line = format!("left out: {name}: {why}");
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("LARDER_LEFT_OUT") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| writeln!(file, "{line}")).unwrap();
    }
}
