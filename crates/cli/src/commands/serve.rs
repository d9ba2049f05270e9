use crate::args::Format;
use crate::context::{self, Context};
use crate::failure::{Code, Failure, Kind};
use crate::interrupt;
use crate::output::plain;
use larder_serve::eds::{self, End, Error, Options, Stop};
use larder_store::Directory;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// Stand in for another program's service, so that its clients use this store
///
/// With --eds for the address books of evolution-data-server: each collection
/// of contacts is a book, and `contacts` is the one called Personal. Programs
/// that run go on with the new service; its place is given up to whoever
/// wants it, and to control-C.
///
///   larder serve --eds
///
/// To have it started whenever a program asks for contacts, write the files
/// that say so, once:
///
///   larder serve --eds --service-files ~/.local/share/dbus-1/services
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Serve {
    /// Own evolution-data-server's names on the session bus: its registry, and its address books
    #[arg(long, required = true)]
    eds: bool,
    /// End when no client was there for so long; without it the service stays
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u64>,
    /// Serve nothing: write the files into DIR that have the session bus start the service
    #[arg(long, value_name = "DIR", conflicts_with = "idle")]
    service_files: Option<PathBuf>,
}

impl Serve {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        if let Some(dir) = &self.service_files {
            for path in context.write_service_files(dir)? {
                let path = path.display().to_string();
                match context.format {
                    Format::Json => context.out.json(&json!({ "file": path }))?,
                    _ => context.out.line(format!("{} written", plain(&path)))?,
                }
            }
            return Ok(Code::Done);
        }
        let stop = Stop::default();
        let asked = stop.clone();
        interrupt::instead_of_ending(move || asked.stop());
        let options = Options {
            address: context.session_bus()?,
            dir: context.dir.clone(),
            store: context.options(true),
            settings: context.settings.clone(),
            locale: context.collation().unwrap_or_else(|| "C".into()),
            cache: context.cache_of_others()?.join("evolution/addressbook"),
            answers: context.cache,
            idle: self.idle.map(Duration::from_secs),
            log: context.log.clone(),
            clock: context::now,
            random: context::random,
        };
        let was_there = Directory::new(&context.dir).holds_store();
        let mut ready = || {
            context.note("address books are served");
            if !was_there {
                context.note(format!("a new store was made in {}", context.dir.display()));
            }
        };
        match eds::serve(options, &stop, &mut ready)? {
            End::Replaced(name) => context.note(format!("another program took {name} over")),
            End::BusGone => context.note("the session bus has ended"),
            _ => {}
        }
        Ok(Code::Done)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Store(error) => error.into(),
            Error::Query(error) => error.into(),
            error @ Error::Bus(_) => Failure::new(Kind::Source, error)
                .hint("DBUS_SESSION_BUS_ADDRESS says where it is")
                .hint("dbus-run-session larder serve --eds has one of its own"),
            error => Failure::new(Kind::Source, error),
        }
    }
}
