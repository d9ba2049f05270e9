//! evolution-data-server: its names on the session bus, and what its clients ask of an address
//! book.
//!
//! Programs written for evolution-data-server find it by two names, the registry of sources and the
//! factory of address books. Who owns these is it. Here is what such programs need to open a book,
//! to add, change, remove and read contacts, and to be told of changes; docs/eds.md says what is
//! there and what is not.
//!
//! | module | what it is about |
//! |---|---|
//! | `interface` | the interfaces as tables |
//! | `bus`, `failure` | messages, and errors as GLib writes them |
//! | `service` | which object is called, and by whom; clients and what ends with them |
//! | `source`, `registry` | sources, and the registry that lists them |
//! | `book`, `view`, `card` | an address book, what clients keep in view of it, and the cards that they get |

mod book;
mod bus;
mod call_error;
mod card;
mod client_view;
mod eds_source;
mod interface;
mod object_path;
mod registry;
mod service;
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

/// The names that are owned.
const OWNED_BUS_NAMES: [&str; 2] = [SOURCES_BUS_NAME, ADDRESS_BOOK_BUS_NAME];
const SOURCES_BUS_NAME: &str = "org.gnome.evolution.dataserver.Sources5";
const ADDRESS_BOOK_BUS_NAME: &str = "org.gnome.evolution.dataserver.AddressBook10";

/// The bus itself, as an object on it.
const BUS_NAME: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";

/// For so many seconds a service that the bus started waits for another client, as
/// evolution-data-server does.
const IDLE_SECONDS: u64 = 10;

/// `ALLOW_REPLACEMENT`, `DO_NOT_QUEUE`: a name is given up to whoever wants it.
const REQUEST_NAME_FLAGS: u32 = 1 | 4;
/// `REPLACE_EXISTING`: it is taken from whoever lets it go.
const REPLACE_EXISTING_FLAG: u32 = 2;

/// What the service needs to know.
#[derive(Debug, Clone)]
pub struct EdsOptions {
    /// The address of the bus, as `DBUS_SESSION_BUS_ADDRESS` has it.
    pub address: String,
    /// Where the store lies.
    pub dir: PathBuf,
    /// How it is opened.
    pub store: larder_store::StoreOptions,
    /// What questions mean: the region that phone numbers are written for.
    pub query_context: larder_query::QueryContext,
    /// The locale that clients are told texts are ordered by.
    pub locale: String,
    /// Below which clients may keep what can be made again.
    pub cache_dir: PathBuf,
    /// Answers may be kept in memory in so many bytes; 0: none is.
    pub answer_cache_bytes: usize,
    /// End when no client was there for so long; `None`: stay.
    pub idle_timeout: Option<Duration>,
    /// Where the log of questions goes.
    pub log: Option<Arc<dyn QueryLogSink>>,
    /// The time, in milliseconds since 1970.
    pub clock: fn() -> i64,
    /// Random bytes, for UIDs.
    pub random: fn() -> io::Result<[u8; 16]>,
}

/// Why the service ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceExit {
    /// It was asked to.
    Stopped,
    /// No client was there for as long as the options say.
    Idle,
    /// Another program took this name over.
    NameReplaced(String),
    /// The bus started it, and another program has this name already.
    NameTaken(String),
    /// The bus ended.
    BusGone,
}

/// Why it could not begin, or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] larder_store::Error),
    /// Questions could not be asked of it.
    #[error(transparent)]
    Query(#[from] larder_query::Error),
    /// There is no bus, or it speaks otherwise.
    #[error("no connection to the session bus: {0}")]
    Bus(#[from] zbus::Error),
    /// A name has an owner that keeps it.
    #[error("another program owns {0} and does not give it up")]
    Owned(String),
    /// The system has no means to wait.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Asks a service to end, from any thread.
#[derive(Debug, Clone, Default)]
pub struct StopHandle(Arc<Notify>);

impl StopHandle {
    /// Asks for the end; what is being answered is answered first, if the bus takes it.
    pub fn stop(&self) {
        self.0.notify_one();
    }
}

/// The files that have a session bus start this program for a store when a client asks for one of
/// the names, and what they are called.
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

/// Serves until there is a reason to end. `ready` is called once the names are owned.
///
/// # Errors
/// No bus, no store, or a name that is not to be had.
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
    // The bus may start one process for each name. These must not take them from each other.
    let activated = idle.is_some();
    let mut names = NameAcquisition::new(if activated {
        REQUEST_NAME_FLAGS
    } else {
        REQUEST_NAME_FLAGS | REPLACE_EXISTING_FLAG
    });
    names.request_next(&connection).await?;
    let mut since = Instant::now();
    loop {
        let quiet = idle.filter(|_| service.is_idle()).map(|idle| since + idle);
        let answer = match next_event(&mut stream, stop, &service, quiet).await {
            ServiceEvent::End(end) => return Ok(end),
            ServiceEvent::StoreChanged => service.on_store_changed(),
            ServiceEvent::ViewsReady => {
                // Whoever reads from the bus has to have its turn, or no message would come first.
                tokio::task::yield_now().await;
                service.deliver_next()
            }
            ServiceEvent::Message(message) => {
                since = Instant::now();
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

/// Sends messages, unless it is asked to end while the bus does not take them.
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

/// Connects, unless it is asked to end first: a bus may not answer.
async fn connect(address: &str, stop: &StopHandle) -> zbus::Result<Option<Connection>> {
    let mut stopped = pin!(stop.0.notified());
    let mut connecting = pin!(Builder::address(address).build());
    poll_fn(|context| match stopped.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(Ok(None)),
        Poll::Pending => connecting.as_mut().poll(context).map_ok(Some),
    })
    .await
}

/// What a service waits for.
enum ServiceEvent {
    Message(Message),
    /// Somebody wrote.
    StoreChanged,
    /// A view has more to tell.
    ViewsReady,
    End(ServiceExit),
}

/// Waits for a message, for news, or for a reason to end: that it was asked for, or that it is so
/// late. While a view has more to tell messages come first, so that nobody waits for a long answer
/// to another one.
async fn next_event(
    stream: &mut MessageStream,
    stop: &StopHandle,
    service: &EdsService,
    until: Option<Instant>,
) -> ServiceEvent {
    let mut stopped = pin!(stop.0.notified());
    let mut written = pin!(service.ready_views.notify.notified());
    let mut late = pin!(until.map(sleep_until));
    poll_fn(|context| {
        if stopped.as_mut().poll(context).is_ready() {
            return Poll::Ready(ServiceEvent::End(ServiceExit::Stopped));
        }
        match Pin::new(&mut *stream).poll_next(context) {
            Poll::Ready(Some(Ok(message))) => return Poll::Ready(ServiceEvent::Message(message)),
            Poll::Ready(_) => return Poll::Ready(ServiceEvent::End(ServiceExit::BusGone)),
            Poll::Pending => {}
        }
        if written.as_mut().poll(context).is_ready() {
            return Poll::Ready(ServiceEvent::StoreChanged);
        }
        if !service.ready_views.is_empty() {
            return Poll::Ready(ServiceEvent::ViewsReady);
        }
        match late.as_mut().as_pin_mut().map(|late| late.poll(context)) {
            Some(Poll::Ready(())) => Poll::Ready(ServiceEvent::End(ServiceExit::Idle)),
            _ => Poll::Pending,
        }
    })
    .await
}

/// The names that are asked for, one after the other: of several processes that ask only the one
/// that has the first goes on to the next, so one has all in the end.
struct NameAcquisition {
    flags: u32,
    remaining: Iter<'static, &'static str>,
    /// The one that the bus was asked for last, and by which message.
    requested: Option<(NonZeroU32, &'static str)>,
}

impl NameAcquisition {
    fn new(flags: u32) -> NameAcquisition {
        NameAcquisition { flags, remaining: OWNED_BUS_NAMES.iter(), requested: None }
    }

    /// Asks the bus for the next name. The answer comes among the other messages, as a client may
    /// call as soon as it has the first. False: there is no other.
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

    /// Is this the bus' answer for a name? If the name is not to be had: which.
    fn take_reply(&mut self, message: &Message) -> Option<Result<(), String>> {
        let serial = message.header().reply_serial();
        let (_, name) = self.requested.take_if(|(asked, _)| serial == Some(*asked))?;
        // 1: it is ours; 4: it was already.
        match message.body().deserialize::<u32>() {
            Ok(1 | 4) => Some(Ok(())),
            _ => Some(Err(name.to_string())),
        }
    }

    /// The name that this message says was lost.
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
