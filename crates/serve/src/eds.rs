//! evolution-data-server: its names on the session bus, and the D-Bus interfaces of its address
//! books.
//!
//! Programs written for evolution-data-server find it by two bus names: the registry of sources and
//! the factory of address books. The service owns both names. It implements the calls that such
//! programs need to open a book, to add, change, remove and read contacts, and to follow changes;
//! docs/eds.md lists what is supported.
//!
//! | module | responsibility |
//! |---|---|
//! | `interface` | the D-Bus interfaces as tables |
//! | `object_path` | the paths of the objects |
//! | `bus`, `call_error` | D-Bus messages, and errors with GLib's names |
//! | `service` | dispatches calls to objects; tracks clients and ends their views |
//! | `deferred_calls` | the calls that these threads answer |
//! | `eds_source`, `registry` | sources, and the registry that lists them |
//! | `book`, `book_queries`, `card` | an address book, its searches, and the cards that clients get |
//! | `call_threads` | the threads that answer queries, and the one that writes |
//! | `store_writer` | the store as the thread that writes uses it |
//! | `client_view`, `view_calls` | an open view of a client, and the calls and events of views |
//! | `sent_contacts` | the contacts that a view has sent, for the difference after a reset |

mod book;
mod book_queries;
mod bus;
mod call_error;
mod call_threads;
mod card;
mod client_view;
mod deferred_calls;
mod eds_source;
mod interface;
mod object_path;
mod registry;
mod sent_contacts;
mod service;
mod store_writer;
mod view_calls;

use larder_query::query_log::QueryLogSink;
use service::EdsService;
use std::future::{Future as _, poll_fn};
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::slice::Iter;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use zbus::connection::Builder;
use zbus::export::futures_core::Stream as _;
use zbus::message::Type;
use zbus::{Connection, Message, MessageStream};

/// The bus names that the service owns.
const OWNED_BUS_NAMES: [&str; 2] = [SOURCES_BUS_NAME, ADDRESS_BOOK_BUS_NAME];
const SOURCES_BUS_NAME: &str = "org.gnome.evolution.dataserver.Sources5";
const ADDRESS_BOOK_BUS_NAME: &str = "org.gnome.evolution.dataserver.AddressBook10";

/// The bus itself, as an object on it.
const BUS_NAME: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";

/// Seconds that a service started by the bus waits for another client before it ends, as in
/// evolution-data-server.
const IDLE_SECONDS: u64 = 10;

/// `ALLOW_REPLACEMENT`, `DO_NOT_QUEUE`: another program may take the name over.
const REQUEST_NAME_FLAGS: u32 = 1 | 4;
/// `REPLACE_EXISTING`: the name is taken from an owner that allows it.
const REPLACE_EXISTING_FLAG: u32 = 2;

/// The options of the service.
#[derive(Debug, Clone)]
pub struct EdsOptions {
    /// The address of the bus, as in `DBUS_SESSION_BUS_ADDRESS`.
    pub address: String,
    /// The store's data directory.
    pub dir: PathBuf,
    /// How the store is opened.
    pub store: larder_store::StoreOptions,
    /// The context of queries: the region of phone numbers without a country code.
    pub query_context: larder_query::QueryContext,
    /// The locale that books report to clients as the order of their texts.
    pub locale: String,
    /// The directory below which clients may keep caches.
    pub cache_dir: PathBuf,
    /// The budget of the answer cache in bytes; 0 disables the cache.
    pub answer_cache_bytes: usize,
    /// Ends the service after this time without a client; `None`: it never ends for that reason.
    pub idle_timeout: Option<Duration>,
    /// The destination of the query log.
    pub log: Option<Arc<dyn QueryLogSink>>,
    /// The time, in milliseconds since 1970.
    pub clock: fn() -> i64,
    /// Random bytes, for UIDs.
    pub random: fn() -> io::Result<[u8; 16]>,
}

/// The reason why the service ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceExit {
    /// [`StopHandle::stop`] was called.
    Stopped,
    /// No client was connected for the time that the options set.
    Idle,
    /// Another program took this name over.
    NameReplaced(String),
    /// The bus started the service, and another program already owns this name.
    NameTaken(String),
    /// The bus closed the connection.
    BusGone,
}

/// The error because of which the service could not start or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] larder_store::Error),
    /// The store could not be queried.
    #[error(transparent)]
    Query(#[from] larder_query::Error),
    /// No session bus, or a violation of its protocol.
    #[error("no connection to the session bus: {0}")]
    Bus(#[from] zbus::Error),
    /// Another program owns a name and does not allow its replacement.
    #[error(
        "another program owns the bus name {0} and does not allow its replacement: end that program"
    )]
    Owned(String),
    /// The operating system refused a resource of the runtime.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Stops a service from any thread.
#[derive(Debug, Clone, Default)]
pub struct StopHandle(Arc<Notify>);

impl StopHandle {
    /// Stops the service. The call that is being answered is finished first, unless the bus does
    /// not accept the reply.
    pub fn stop(&self) {
        self.0.notify_one();
    }
}

/// Returns the names and contents of the D-Bus service files. With them, a session bus starts
/// `program` for a store when a client calls one of the owned names.
#[must_use]
pub fn service_files(program: &Path, store: &Path) -> Vec<(String, String)> {
    let quoted = |path: &Path| {
        let path = path.display().to_string();
        format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
    };
    let (program, store) = (quoted(program), quoted(store));
    let command = format!("{program} --quiet --data-dir {store} serve --eds --idle {IDLE_SECONDS}");
    let file = |name: &str| {
        let text = format!("[D-BUS Service]\nName={name}\nExec={command}\n");
        (format!("{name}.service"), text)
    };
    OWNED_BUS_NAMES.map(file).into()
}

/// Serves until the service is stopped or must end (see [`ServiceExit`]). `ready` is called once
/// the service owns its names.
///
/// # Errors
/// No bus, no store, or a name that another program does not give up.
pub fn serve(
    options: EdsOptions,
    stop: &StopHandle,
    ready: &mut dyn FnMut(),
) -> Result<ServiceExit, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve_on_bus(options, stop, ready))
}

async fn serve_on_bus(
    options: EdsOptions,
    stop: &StopHandle,
    ready: &mut dyn FnMut(),
) -> Result<ServiceExit, Error> {
    let (address, idle) = (options.address.clone(), options.idle_timeout);
    let mut service = EdsService::open(options)?;
    let Some(connection) = connect(&address, stop).await? else { return Ok(ServiceExit::Stopped) };
    let mut stream = MessageStream::from(&connection);
    // The bus may start one process for each name. Such processes must not take the names from each
    // other.
    let activated = idle.is_some();
    let mut names = NameAcquisition::new(if activated {
        REQUEST_NAME_FLAGS
    } else {
        REQUEST_NAME_FLAGS | REPLACE_EXISTING_FLAG
    });
    names.request_next(&connection).await?;
    let mut last_message_at = Instant::now();
    loop {
        let deadline = idle.filter(|_| service.is_idle()).map(|idle| last_message_at + idle);
        let answer = match next_event(&mut stream, stop, &service, deadline).await {
            ServiceEvent::End(end) => return Ok(end),
            ServiceEvent::StoreChanged => service.on_store_changed(),
            ServiceEvent::AnswersRead => service.on_answers_read(),
            ServiceEvent::ViewsReady => {
                // The task that reads from the bus needs a turn; otherwise no message would precede
                // the view's next events.
                tokio::task::yield_now().await;
                service.deliver_next()
            }
            ServiceEvent::Message(message) => {
                last_message_at = Instant::now();
                if let Some(name) = names.lost_name(&message) {
                    return Ok(ServiceExit::NameReplaced(name));
                }
                match names.take_reply(&message) {
                    None => {}
                    Some(Err(name)) if activated => return Ok(ServiceExit::NameTaken(name)),
                    Some(Err(name)) => return Err(Error::Owned(name)),
                    Some(Ok(())) if names.request_next(&connection).await? => {}
                    Some(Ok(())) => ready(),
                }
                service.handle_message(&message)
            }
        };
        if let Some(end) = send(&connection, &answer, stop).await {
            return Ok(end);
        }
    }
}

/// Sends messages; ends early if the service is stopped while the bus does not accept them.
async fn send(
    connection: &Connection,
    messages: &[Message],
    stop: &StopHandle,
) -> Option<ServiceExit> {
    let mut sending = pin!(connection.send_all(messages));
    let mut stopped = pin!(stop.0.notified());
    poll_fn(|context| match sending.as_mut().poll(context) {
        Poll::Ready(sent) => Poll::Ready(sent.err().map(|_| ServiceExit::BusGone)),
        Poll::Pending => stopped.as_mut().poll(context).map(|()| Some(ServiceExit::Stopped)),
    })
    .await
}

/// Connects to the bus; ends early if the service is stopped, because a bus may never answer.
async fn connect(address: &str, stop: &StopHandle) -> zbus::Result<Option<Connection>> {
    let mut stopped = pin!(stop.0.notified());
    let mut connecting = pin!(Builder::address(address).build());
    poll_fn(|context| match stopped.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(Ok(None)),
        Poll::Pending => connecting.as_mut().poll(context).map_ok(Some),
    })
    .await
}

/// The events that a service waits for.
enum ServiceEvent {
    Message(Message),
    /// A batch was committed, by this process or another one.
    StoreChanged,
    /// A thread has answered a call.
    AnswersRead,
    /// A view has events to deliver.
    ViewsReady,
    End(ServiceExit),
}

/// Waits for a message, a commit or a reason to end: a stop or the deadline `until`. Messages
/// precede view events, so that no call waits for a long answer to another client.
async fn next_event(
    stream: &mut MessageStream,
    stop: &StopHandle,
    service: &EdsService,
    until: Option<Instant>,
) -> ServiceEvent {
    let mut stopped = pin!(stop.0.notified());
    let mut committed = pin!(service.ready_views.notify.notified());
    let mut deadline = pin!(until.map(sleep_until));
    poll_fn(|context| {
        if stopped.as_mut().poll(context).is_ready() {
            return Poll::Ready(ServiceEvent::End(ServiceExit::Stopped));
        }
        // First, so that a client with many calls does not delay the answers of others.
        if service.has_completions() {
            return Poll::Ready(ServiceEvent::AnswersRead);
        }
        match Pin::new(&mut *stream).poll_next(context) {
            Poll::Ready(Some(Ok(message))) => return Poll::Ready(ServiceEvent::Message(message)),
            Poll::Ready(_) => return Poll::Ready(ServiceEvent::End(ServiceExit::BusGone)),
            Poll::Pending => {}
        }
        if committed.as_mut().poll(context).is_ready() {
            if service.has_completions() {
                return Poll::Ready(ServiceEvent::AnswersRead);
            }
            return Poll::Ready(ServiceEvent::StoreChanged);
        }
        if !service.ready_views.is_empty() {
            return Poll::Ready(ServiceEvent::ViewsReady);
        }
        match deadline.as_mut().as_pin_mut().map(|deadline| deadline.poll(context)) {
            Some(Poll::Ready(())) => Poll::Ready(ServiceEvent::End(ServiceExit::Idle)),
            _ => Poll::Pending,
        }
    })
    .await
}

/// The acquisition of the bus names, one after the other. Of several processes only the owner of
/// the first name requests the next one, and so one process owns all names in the end.
struct NameAcquisition {
    flags: u32,
    remaining: Iter<'static, &'static str>,
    /// The last name requested, and the serial number of the request.
    requested: Option<(NonZeroU32, &'static str)>,
}

impl NameAcquisition {
    fn new(flags: u32) -> NameAcquisition {
        NameAcquisition { flags, remaining: OWNED_BUS_NAMES.iter(), requested: None }
    }

    /// Requests the next name from the bus; returns false if none is left. The reply arrives among
    /// other messages, because a client may call as soon as the first name is owned.
    async fn request_next(&mut self, connection: &Connection) -> Result<bool, Error> {
        let Some(name) = self.remaining.next() else { return Ok(false) };
        let call = Message::method_call(BUS_PATH, "RequestName")
            .destination(BUS_NAME)
            .interface(BUS_NAME)
            .build(&(*name, self.flags))?;
        self.requested = Some((call.primary_header().serial_num(), name));
        connection.send(&call).await?;
        Ok(true)
    }

    /// Returns the result of the request that this message answers, if it answers one. The error is
    /// the name that another program owns.
    fn take_reply(&mut self, message: &Message) -> Option<Result<(), String>> {
        let serial = message.header().reply_serial();
        let (_, name) = self.requested.take_if(|(requested, _)| serial == Some(*requested))?;
        // 1: the process is now the owner; 4: it was already.
        match message.body().deserialize::<u32>() {
            Ok(1 | 4) => Some(Ok(())),
            _ => Some(Err(name.to_string())),
        }
    }

    /// Returns the name whose loss this message reports.
    fn lost_name(&self, message: &Message) -> Option<String> {
        let header = message.header();
        let from_bus = header.sender().is_some_and(|sender| sender.as_str() == BUS_NAME);
        let lost = header.member().is_some_and(|member| member.as_str() == "NameLost");
        if !(from_bus && lost && message.message_type() == Type::Signal) {
            return None;
        }
        let name: String = message.body().deserialize().ok()?;
        OWNED_BUS_NAMES.contains(&name.as_str()).then_some(name)
    }
}
