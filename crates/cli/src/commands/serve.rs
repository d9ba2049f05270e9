use crate::args::OutputFormat;
use crate::context::{self, CommandContext};
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::interrupt;
use crate::output::sanitize_line;
use larder_serve::eds::{self, EdsOptions, Error, ServiceExit, StopHandle};
use larder_store::DataDirectory;
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
pub(crate) struct ServeArgs {
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

impl ServeArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        if let Some(dir) = &self.service_files {
            for path in context.write_service_files(dir)? {
                let path = path.display().to_string();
                match context.format {
                    OutputFormat::Json => context.out.print_json(&json!({ "file": path }))?,
                    _ => context.out.print_line(format!("{} written", sanitize_line(&path)))?,
                }
            }
            return Ok(CommandStatus::Done);
        }
        let stop = StopHandle::default();
        let asked = stop.clone();
        interrupt::on_interrupt(move || asked.stop());
        let options = EdsOptions {
            address: context.session_bus_address()?,
            dir: context.dir.clone(),
            store: context.store_options(true),
            query_context: context.settings.clone(),
            locale: context.collation_locale().unwrap_or_else(|| "C".into()),
            cache_dir: context.cache_dir()?.join("evolution/addressbook"),
            answer_cache_bytes: context.cache_budget_bytes,
            idle_timeout: self.idle.map(Duration::from_secs),
            log: context.log.clone(),
            clock: context::now_milliseconds,
            random: context::random_bytes,
        };
        let was_there = DataDirectory::new(&context.dir).has_store();
        let mut ready = || {
            context.print_note("address books are served");
            if !was_there {
                context.print_note(format!("a new store was made in {}", context.dir.display()));
            }
        };
        match eds::serve(options, &stop, &mut ready)? {
            ServiceExit::NameReplaced(name) => {
                context.print_note(format!("another program took {name} over"));
            }
            ServiceExit::BusGone => context.print_note("the session bus has ended"),
            _ => {}
        }
        Ok(CommandStatus::Done)
    }
}

impl From<Error> for CommandFailure {
    fn from(error: Error) -> CommandFailure {
        match error {
            Error::Store(error) => error.into(),
            Error::Query(error) => error.into(),
            error @ Error::Bus(_) => CommandFailure::new(FailureKind::Source, error)
                .with_hint("DBUS_SESSION_BUS_ADDRESS says where it is")
                .with_hint("dbus-run-session larder serve --eds has one of its own"),
            error => CommandFailure::new(FailureKind::Source, error),
        }
    }
}
