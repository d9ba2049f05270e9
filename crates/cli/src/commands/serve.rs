//! `larder serve`.

use crate::args::OutputFormat;
use crate::context::{self, CommandContext};
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::interrupt;
use crate::output::sanitize_line;
use crate::output_path::OutputFolder;
use larder_serve::eds::{self, EdsOptions, Error, ServiceExit, StopHandle};
use larder_store::{DataDirectory, FilePrivacy};
use serde_json::json;
use std::time::Duration;

/// Let GNOME programs use this store (address books over D-Bus)
///
/// --eds provides the address books of evolution-data-server: each collection
/// of contacts is an address book, and `contacts` is the address book Personal.
/// Running programs switch to the service. The service ends at Control-C, or when
/// another program takes over the D-Bus names.
///
///   larder serve --eds
///
/// To start it automatically when a program needs contacts, write the D-Bus
/// service files once:
///
///   larder serve --eds --service-files ~/.local/share/dbus-1/services
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ServeArgs {
    /// Provide evolution-data-server's source registry and address books on the session bus
    #[arg(long, required = true)]
    eds: bool,
    /// Exit after this many seconds without a client [default: never]
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u64>,
    /// Only write the D-Bus service files into DIR, which start the service on demand
    #[arg(long, value_name = "DIR", conflicts_with = "idle")]
    service_files: Option<OutputFolder>,
}

impl ServeArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        if let Some(folder) = &self.service_files {
            for path in
                folder.write_files(&context.dir, FilePrivacy::Public, &context.service_files()?)?
            {
                let path = path.display().to_string();
                match context.format {
                    OutputFormat::Json => context.out.print_json(&json!({ "file": path }))?,
                    _ => context.out.print_line(format!("Wrote {}", sanitize_line(&path)))?,
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
            clock: crate::machine_time::now_milliseconds,
            random: context::random_bytes,
        };
        let was_there = DataDirectory::new(&context.dir).has_store();
        if was_there {
            // Warns of interrupted work. The service reports a store that cannot be opened.
            let _unusable = context.open_reader();
        }
        let mut ready = || {
            context.print_note("serving address books");
            if !was_there {
                context.print_note(format!("created a new store in {}", context.dir.display()));
            }
        };
        match eds::serve(options, &stop, &mut ready)? {
            ServiceExit::NameReplaced(name) => {
                context.print_note(format!("another program has taken over {name}"));
            }
            ServiceExit::BusGone => context.print_note("the session bus has closed"),
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
                .with_hint("set DBUS_SESSION_BUS_ADDRESS to its address")
                .with_hint("or start a bus of its own: dbus-run-session larder serve --eds"),
            error => CommandFailure::new(FailureKind::Source, error),
        }
    }
}
