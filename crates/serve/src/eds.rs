//! evolution-data-server: its names on the session bus, and what its clients ask of an address book.
//!
//! Programs written for evolution-data-server find it by two names, the registry of sources and the factory of address books. Who
//! owns these is it. Here is what such programs need to open a book, to add, change, remove and read contacts, and to be told of
//! changes; docs/eds.md says what is there and what is not.
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
mod card;
mod failure;
mod interface;
mod registry;
mod service;
mod source;
mod view;

use larder_query::log::Sink;
use service::Service;
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
const NAMES: [&str; 2] = [SOURCES, ADDRESS_BOOK];
const SOURCES: &str = "org.gnome.evolution.dataserver.Sources5";
const ADDRESS_BOOK: &str = "org.gnome.evolution.dataserver.AddressBook10";

/// The bus itself, as an object on it.
const BUS: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";

/// For so many seconds a service that the bus started waits for another client, as evolution-data-server does.
const IDLE: u64 = 10;

/// `ALLOW_REPLACEMENT`, `DO_NOT_QUEUE`: a name is given up to whoever wants it.
const NAME_FLAGS: u32 = 1 | 4;
/// `REPLACE_EXISTING`: it is taken from whoever lets it go.
const REPLACE: u32 = 2;

/// What the service needs to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address of the bus, as `DBUS_SESSION_BUS_ADDRESS` has it.
    pub address: String,
    /// Where the store lies.
    pub dir: PathBuf,
    /// How it is opened.
    pub store: larder_store::Options,
    /// What questions mean: the region that phone numbers are written for.
    pub settings: larder_query::Settings,
    /// The locale that clients are told texts are ordered by.
    pub locale: String,
    /// Below which clients may keep what can be made again.
    pub cache: PathBuf,
    /// Answers may be kept in memory in so many bytes; 0: none is.
    pub answers: usize,
    /// End when no client was there for so long; `None`: stay.
    pub idle: Option<Duration>,
    /// Where the log of questions goes.
    pub log: Option<Arc<dyn Sink>>,
    /// The time, in milliseconds since 1970.
    pub clock: fn() -> i64,
    /// Random bytes, for UIDs.
    pub random: fn() -> io::Result<[u8; 16]>,
}

/// Why the service ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It was asked to.
    Stopped,
    /// No client was there for as long as the options say.
    Idle,
    /// Another program took this name over.
    Replaced(String),
    /// The bus started it, and another program has this name already.
    Taken(String),
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
pub struct Stop(Arc<Notify>);

impl Stop {
    /// Asks for the end; what is being answered is answered first, if the bus takes it.
    pub fn stop(&self) {
        self.0.notify_one();
    }
}

/// The files that have a session bus start this program for a store when a client asks for one of the names, and what they are called.
#[must_use]
pub fn service_files(program: &Path, store: &Path) -> Vec<(String, String)> {
    let quoted = |path: &Path| {
        let path = path.display().to_string();
        format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
    };
    let (program, store) = (quoted(program), quoted(store));
    let command = format!("{program} --quiet --data-dir {store} serve --eds --idle {IDLE}");
    let file = |name: &str| {
        let text = format!("[D-BUS Service]\nName={name}\nExec={command}\n");
        (format!("{name}.service"), text)
    };
    NAMES.map(file).into()
}

/// Serves until there is a reason to end. `ready` is called once the names are owned.
///
/// # Errors
/// No bus, no store, or a name that is not to be had.
pub fn serve(options: Options, stop: &Stop, ready: &mut dyn FnMut()) -> Result<End, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(options, stop, ready))
}

async fn run(options: Options, stop: &Stop, ready: &mut dyn FnMut()) -> Result<End, Error> {
    let (address, idle) = (options.address.clone(), options.idle);
    let mut service = Service::open(options)?;
    let Some(connection) = connected(&address, stop).await? else { return Ok(End::Stopped) };
    let mut stream = MessageStream::from(&connection);
    // The bus may start one process for each name. These must not take them from each other.
    let activated = idle.is_some();
    let mut names = Names::new(if activated { NAME_FLAGS } else { NAME_FLAGS | REPLACE });
    names.ask(&connection).await?;
    let mut since = Instant::now();
    loop {
        let quiet = idle.filter(|_| service.is_idle()).map(|idle| since + idle);
        let answer = match next(&mut stream, stop, &service, quiet).await {
            Event::End(end) => return Ok(end),
            Event::Written => service.hear(),
            Event::More => {
                // Whoever reads from the bus has to have its turn, or no message would come first.
                tokio::task::yield_now().await;
                service.tell_more()
            }
            Event::Message(message) => {
                since = Instant::now();
                if let Some(name) = names.lost(&message) {
                    return Ok(End::Replaced(name));
                }
                match names.answered(&message) {
                    None => {}
                    Some(Err(name)) if activated => return Ok(End::Taken(name)),
                    Some(Err(name)) => return Err(Error::Owned(name)),
                    Some(Ok(())) if names.ask(&connection).await? => {}
                    Some(Ok(())) => ready(),
                }
                service.take(&message)
            }
        };
        if let Some(end) = send(&connection, &answer, stop).await {
            return Ok(end);
        }
    }
}

/// Sends messages, unless it is asked to end while the bus does not take them.
async fn send(connection: &Connection, messages: &[Message], stop: &Stop) -> Option<End> {
    let mut sending = pin!(connection.send_all(messages));
    let mut stopped = pin!(stop.0.notified());
    poll_fn(|context| match sending.as_mut().poll(context) {
        Poll::Ready(sent) => Poll::Ready(sent.err().map(|_| End::BusGone)),
        Poll::Pending => stopped.as_mut().poll(context).map(|()| Some(End::Stopped)),
    })
    .await
}

/// Connects, unless it is asked to end first: a bus may not answer.
async fn connected(address: &str, stop: &Stop) -> zbus::Result<Option<Connection>> {
    let mut stopped = pin!(stop.0.notified());
    let mut connecting = pin!(Builder::address(address).build());
    poll_fn(|context| match stopped.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(Ok(None)),
        Poll::Pending => connecting.as_mut().poll(context).map_ok(Some),
    })
    .await
}

/// What a service waits for.
enum Event {
    Message(Message),
    /// Somebody wrote.
    Written,
    /// A view has more to tell.
    More,
    End(End),
}

/// Waits for a message, for news, or for a reason to end: that it was asked for, or that it is so late. While a view has more to tell
/// messages come first, so that nobody waits for a long answer to another one.
async fn next(
    stream: &mut MessageStream,
    stop: &Stop,
    service: &Service,
    until: Option<Instant>,
) -> Event {
    let mut stopped = pin!(stop.0.notified());
    let mut written = pin!(service.news.bell.notified());
    let mut late = pin!(until.map(sleep_until));
    poll_fn(|context| {
        if stopped.as_mut().poll(context).is_ready() {
            return Poll::Ready(Event::End(End::Stopped));
        }
        match Pin::new(&mut *stream).poll_next(context) {
            Poll::Ready(Some(Ok(message))) => return Poll::Ready(Event::Message(message)),
            Poll::Ready(_) => return Poll::Ready(Event::End(End::BusGone)),
            Poll::Pending => {}
        }
        if written.as_mut().poll(context).is_ready() {
            return Poll::Ready(Event::Written);
        }
        if !service.news.is_empty() {
            return Poll::Ready(Event::More);
        }
        match late.as_mut().as_pin_mut().map(|late| late.poll(context)) {
            Some(Poll::Ready(())) => Poll::Ready(Event::End(End::Idle)),
            _ => Poll::Pending,
        }
    })
    .await
}

/// The names that are asked for, one after the other: of several processes that ask only the one that has the first goes on to the
/// next, so one has all in the end.
struct Names {
    flags: u32,
    rest: Iter<'static, &'static str>,
    /// The one that the bus was asked for last, and by which message.
    asked: Option<(NonZeroU32, &'static str)>,
}

impl Names {
    fn new(flags: u32) -> Names {
        Names { flags, rest: NAMES.iter(), asked: None }
    }

    /// Asks the bus for the next name. The answer comes among the other messages, as a client may call as soon as it has the first.
    /// False: there is no other.
    async fn ask(&mut self, connection: &Connection) -> Result<bool, Error> {
        let Some(name) = self.rest.next() else { return Ok(false) };
        let call = Message::method_call(BUS_PATH, "RequestName")
            .destination(BUS)
            .interface(BUS)
            .build(&(*name, self.flags))?;
        self.asked = Some((call.primary_header().serial_num(), name));
        connection.send(&call).await?;
        Ok(true)
    }

    /// Is this the bus' answer for a name? If the name is not to be had: which.
    fn answered(&mut self, message: &Message) -> Option<Result<(), String>> {
        let serial = message.header().reply_serial();
        let (_, name) = self.asked.take_if(|(asked, _)| serial == Some(*asked))?;
        // 1: it is ours; 4: it was already.
        match message.body().deserialize::<u32>() {
            Ok(1 | 4) => Some(Ok(())),
            _ => Some(Err(name.to_string())),
        }
    }

    /// The name that this message says was lost.
    fn lost(&self, message: &Message) -> Option<String> {
        let header = message.header();
        let from_bus = header.sender().is_some_and(|sender| sender.as_str() == BUS);
        let lost = header.member().is_some_and(|member| member.as_str() == "NameLost");
        if !(from_bus && lost && message.message_type() == Type::Signal) {
            return None;
        }
        let name: String = message.body().deserialize().ok()?;
        NAMES.contains(&name.as_str()).then_some(name)
    }
}
