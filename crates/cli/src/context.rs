//! The settings of one run: options, environment and configuration, read once and passed down.

use crate::args::{GlobalArgs, OutputFormat};
use crate::config::Config;
use crate::failure::{CommandFailure, FailureKind};
use crate::machine_time::{self, now_milliseconds};
use crate::output::OutputStream;
use crate::output_path::OutputPath;
use etcetera::BaseStrategy;
use larder_date_phrase::Language;
use larder_query::query_log::{QueryLogEvent, QueryLogSink, ResultRecord};
use larder_query::views::DEFAULT_CACHE_BYTES;
use larder_query::{
    QueryContext, ResultSet, SavedSearchFollower, SavedSearches, SearchRequest, UserLocale,
};
use larder_store::{
    DataDirectory, FilePrivacy, LastCommit, LockHolder, LockRequester, OperationId, OutputFile,
    PendingWork, Reader, Store, StoreOptions, WaitNotice,
};
use larder_sync::{ConverterSettings, DEFAULT_INHERITED_LABELS};
use larder_time::civil::Instant;
use larder_time::zone::{Zone, ZoneDatabase};
use std::cell::Cell;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant as Timer;

/// The settings that a command needs besides its own arguments.
pub(crate) struct CommandContext {
    /// The directory of the store.
    pub(crate) dir: PathBuf,
    /// The output format.
    pub(crate) format: OutputFormat,
    /// The addresses of the user, by which personal messages are known.
    pub(crate) mail_addresses: Vec<String>,
    /// The converters of attachments.
    pub(crate) converters: ConverterSettings,
    /// The labels that new replies inherit from their threads.
    pub(crate) inherited_labels: Vec<String>,
    /// The labels whose messages are hidden from searches that do not name them.
    pub(crate) excluded_labels: Vec<String>,
    /// Whether to print no progress, notes or warnings.
    pub(crate) quiet: bool,
    /// Standard output.
    pub(crate) out: OutputStream,
    /// The editor to run, as a shell command.
    pub(crate) editor: Option<OsString>,
    /// The locale, the zone and the region that queries are read with.
    pub(crate) settings: QueryContext,
    /// The query log.
    pub(crate) log: Option<Arc<dyn QueryLogSink>>,
    /// The memory budget of the views' answer cache.
    pub(crate) cache_budget_bytes: usize,
    /// The command, which other processes see while they wait for it.
    command: String,
    /// The last operation that the command committed.
    last_commit: LastCommit,
    /// Whether interrupted work of the store was reported.
    has_reported_work: Cell<bool>,
    /// Whether lost commits were reported.
    has_reported_loss: Cell<bool>,
    has_reported_missing_store: Cell<bool>,
    answer_count: Cell<u64>,
    locale: Option<String>,
    locale_if_new: Option<String>,
}

impl CommandContext {
    pub(crate) fn new(
        global: GlobalArgs,
        command_name: &str,
    ) -> Result<CommandContext, CommandFailure> {
        let bases = etcetera::base_strategy::Xdg::new();
        let config_dir = bases.as_ref().map(|xdg| xdg.config_dir().join("larder")).ok();
        let config = match &config_dir {
            Some(dir) => Config::read(&dir.join("config.toml"))?,
            None => Config::default(),
        };
        let dir = global
            .data_dir
            .or_else(|| non_empty_env("LARDER_DIR").map(PathBuf::from))
            .or_else(|| config.data_dir.map(expand_tilde))
            .or_else(|| bases.as_ref().map(|xdg| xdg.data_dir().join("larder")).ok())
            .ok_or_else(|| {
                CommandFailure::new(
                    FailureKind::Usage,
                    "cannot determine the home directory, so there is no default data directory",
                )
                .with_hint("choose a directory with --data-dir DIR")
            })?;
        if let Some(color) = global.color {
            crate::output::set_color(color);
        }
        let zone = non_empty_env("TZ").filter(|_| machine_time::local_zone().is_unknown());
        if let Some(zone) = zone.filter(|_| !global.quiet) {
            let zone = crate::output::sanitize_line(&zone.to_string_lossy());
            crate::output::print_message(
                "warning",
                format!("unknown time zone in TZ={zone}; using UTC"),
            );
        }
        let log = match (global.query_log, config.query_log.enabled, config.query_log.file) {
            (Some(file), ..) => Some(file),
            (None, None | Some(true), Some(file)) => Some(expand_tilde(file).into()),
            (None, Some(true), None) => {
                let states = bases.as_ref().ok().and_then(BaseStrategy::state_dir);
                states.map(|dir| dir.join("larder/queries.jsonl").into())
            }
            (None, ..) => None,
        };
        let log = log.map(|file| crate::query_log_file::open_sink(&dir, &file, global.quiet));
        Ok(CommandContext {
            dir,
            log: log.transpose()?,
            cache_budget_bytes: config.views.cache.map_or(DEFAULT_CACHE_BYTES, |bytes| bytes.0),
            command: format!("larder {command_name}"),
            last_commit: LastCommit::default(),
            has_reported_work: Cell::new(false),
            has_reported_loss: Cell::new(false),
            has_reported_missing_store: Cell::new(false),
            answer_count: Cell::new(0),
            format: global.format,
            quiet: global.quiet,
            out: OutputStream::new(),
            editor: config
                .editor
                .map(OsString::from)
                .or_else(|| non_empty_env("VISUAL"))
                .or_else(|| non_empty_env("EDITOR")),
            settings: QueryContext {
                region: config
                    .region
                    .map(|region| region.to_ascii_uppercase())
                    .or_else(|| region_from_locale(&locale_for_category("LC_ADDRESS")?)),
                user_locale: read_user_locale(),
                saved_searches: Arc::default(),
                is_among_kinds: false,
            },
            converters: config.mail.to_converters(),
            mail_addresses: config.mail.addresses,
            inherited_labels: config.mail.inherited_labels.unwrap_or_else(|| {
                DEFAULT_INHERITED_LABELS.iter().map(ToString::to_string).collect()
            }),
            excluded_labels: config.mail.exclude_labels,
            locale: config.locale,
            locale_if_new: locale_for_category("LC_COLLATE"),
        })
    }

    /// Opens the store for reading. A store of an older version is migrated first, and an
    /// interrupted restore is finished.
    pub(crate) fn open_reader(&self) -> Result<Reader, CommandFailure> {
        let reader = self.open_any_reader()?;
        if let Some(lost) = reader.lost_commits().filter(|_| !self.has_reported_loss.replace(true))
        {
            self.print_warning(lost);
        }
        Ok(reader)
    }

    /// Opens the store for reading as [`CommandContext::open_reader`], and fails if commits are
    /// missing from it: for work that would take what it lacks for removed.
    pub(crate) fn open_complete_reader(&self) -> Result<Reader, CommandFailure> {
        Ok(self.open_any_reader()?.refuse_lost_commits()?)
    }

    fn open_any_reader(&self) -> Result<Reader, CommandFailure> {
        match Reader::open_with_zones(&self.dir, Arc::clone(&self.settings.user_locale.zones)) {
            Err(
                larder_store::Error::SchemaTooOld { .. }
                | larder_store::Error::RestorePending { .. },
            ) => Ok(self.open_store()?.open_reader()?),
            reader => {
                let reader = reader?;
                self.warn_of_pending_work(&reader.pending_work()?);
                Ok(reader)
            }
        }
    }

    /// Warns, once, that there is no `data.db` beside an index that is read.
    pub(crate) fn warn_of_missing_store(&self) {
        if !self.has_reported_missing_store.replace(true) {
            self.print_warning(
                "data.db is missing, with the labels of messages, the sources and all other items; \
                 the index has the labels that were last known. Restore the last backup (a file that \
                 `larder backup` wrote): larder restore FILE",
            );
        }
    }

    /// Fails if there was a store that is missing now, and finishes a restore that was interrupted.
    /// For commands to which a directory without a store is one without items.
    pub(crate) fn refuse_lost_store(&self) -> Result<(), CommandFailure> {
        let directory = DataDirectory::new(&self.dir);
        if directory.has_pending_replacement() {
            drop(self.open_store()?);
        }
        Ok(directory.refuse_lost_store()?)
    }

    /// Opens an existing store for writing.
    pub(crate) fn open_store(&self) -> Result<Store, CommandFailure> {
        self.open_with_create(false)
    }

    /// Opens an existing store to check or to copy it, even if its disk is full or cannot be
    /// written.
    pub(crate) fn open_store_to_copy(&self) -> Result<Store, CommandFailure> {
        Ok(Store::open_to_copy(&self.dir, &self.store_options(false))?)
    }

    /// Opens the store for writing, and creates it if there is none.
    pub(crate) fn open_or_create_store(&self) -> Result<Store, CommandFailure> {
        self.open_with_create(true)
    }

    fn open_with_create(&self, create: bool) -> Result<Store, CommandFailure> {
        let store = Store::open(&self.dir, &self.store_options(create))?;
        if let Some(copy) = store.recovered_copy() {
            let copy = crate::output::sanitize_line(&copy.display().to_string());
            self.print_note(format!(
                "finished a restore that was interrupted; the previous store is in {copy}"
            ));
        }
        self.warn_of_pending_work(&store.pending_work()?);
        Ok(store)
    }

    /// Warns if other users have any access to the data directory. Only commands that are run
    /// seldom, or for all of the data, say it: with each change it would be said for nothing.
    pub(crate) fn warn_of_access_by_others(&self) {
        if let Some(mode) = DataDirectory::new(&self.dir).permissions_of_others() {
            let dir = crate::output::sanitize_line(&self.dir.display().to_string());
            self.print_warning(format!(
                "other users can access the data directory {dir} (mode {mode:04o}); to end that: \
                 chmod 700 {dir}"
            ));
        }
    }

    /// Prints no warnings of interrupted work, for a command that reports or finishes it.
    pub(crate) fn without_work_warnings(&self) {
        self.has_reported_work.set(true);
    }

    /// Warns once of work that was interrupted, with the command that finishes it.
    pub(crate) fn warn_of_pending_work(&self, pending: &[PendingWork]) {
        if pending.is_empty() || self.has_reported_work.replace(true) {
            return;
        }
        for work in pending {
            let step = match work {
                PendingWork::StaleIndex => "to rebuild it",
                _ => "to finish it",
            };
            self.print_warning(format!("{work}; {step}: larder {}", work.command()));
        }
    }

    /// Returns the options to open the store with.
    pub(crate) fn store_options(&self, create: bool) -> StoreOptions {
        StoreOptions {
            create,
            locale: self.locale.clone(),
            locale_if_new: self.locale_if_new.clone(),
            zones: Arc::clone(&self.settings.user_locale.zones),
            requester: LockRequester {
                command: self.command.clone(),
                on_wait: (!self.quiet).then(|| Arc::new(print_wait) as WaitNotice),
            },
            last_commit: self.last_commit.clone(),
            ..StoreOptions::default()
        }
    }

    /// Returns the options to open an index with, whose operations are not in the log.
    pub(crate) fn index_options(&self, create: bool) -> StoreOptions {
        StoreOptions { last_commit: LastCommit::default(), ..self.store_options(create) }
    }

    /// Returns the last operation that the command committed.
    pub(crate) fn committed_operation(&self) -> Option<OperationId> {
        self.last_commit.operation()
    }

    /// Returns the collation locale for the programs that `larder serve` answers.
    pub(crate) fn collation_locale(&self) -> Option<String> {
        self.locale.clone().or_else(|| self.locale_if_new.clone())
    }

    /// Returns the address of the D-Bus session bus.
    pub(crate) fn session_bus_address(&self) -> Result<String, CommandFailure> {
        if let Some(address) = non_empty_env("DBUS_SESSION_BUS_ADDRESS") {
            return Ok(address.to_string_lossy().into_owned());
        }
        let Some(dir) = non_empty_env("XDG_RUNTIME_DIR") else {
            return Err(CommandFailure::new(
                FailureKind::Source,
                "cannot find the D-Bus session bus",
            )
            .with_hint("set DBUS_SESSION_BUS_ADDRESS to its address"));
        };
        Ok(format!("unix:path={}/bus", dir.to_string_lossy()))
    }

    /// Returns the user's cache directory, which other programs read.
    pub(crate) fn cache_dir(&self) -> Result<PathBuf, CommandFailure> {
        let bases = etcetera::base_strategy::Xdg::new();
        bases.map(|xdg| xdg.cache_dir()).map_err(|_| {
            CommandFailure::new(
                FailureKind::Usage,
                "cannot determine the home directory, so there is no cache directory",
            )
        })
    }

    /// Returns the directory of mu that the environment names.
    pub(crate) fn mu_home(&self) -> Option<PathBuf> {
        non_empty_env("MUHOME").map(PathBuf::from)
    }

    /// Returns the file with the bookmarks of mu.
    pub(crate) fn mu_bookmarks(&self, home: Option<&Path>) -> Result<PathBuf, CommandFailure> {
        if let Some(home) = home {
            return Ok(home.join("bookmarks"));
        }
        let bases = etcetera::base_strategy::Xdg::new();
        bases.map(|xdg| xdg.config_dir().join("mu/bookmarks")).map_err(|_| {
            CommandFailure::new(FailureKind::Usage, "cannot determine the home directory")
                .with_hint("name the directory of mu with --muhome DIR")
        })
    }

    /// Opens an output that the user named.
    pub(crate) fn create_output(
        &mut self,
        path: &OutputPath,
        privacy: FilePrivacy,
    ) -> Result<OutputFile, CommandFailure> {
        let target = path.to_target(&mut self.out)?;
        Ok(OutputFile::create(&DataDirectory::new(&self.dir), &target, privacy)?)
    }

    /// Writes an output that the user named, in one piece.
    pub(crate) fn write_output(
        &mut self,
        path: &OutputPath,
        privacy: FilePrivacy,
        bytes: &[u8],
    ) -> Result<(), CommandFailure> {
        let mut file = self.create_output(path, privacy)?;
        file.write_all(bytes).map_err(|error| file.to_error(error))?;
        file.commit()?;
        Ok(())
    }

    /// Returns the D-Bus service files that start this program for this store: names and texts.
    pub(crate) fn service_files(&self) -> Result<Vec<(String, String)>, CommandFailure> {
        let program = std::env::current_exe()
            .map_err(|error| CommandFailure::new(FailureKind::Source, error))?;
        let store = std::path::absolute(&self.dir).unwrap_or_else(|_| self.dir.clone());
        let files = larder_serve::eds::service_files(&program, &store);
        Ok(files.into_iter().map(|(name, text)| (name.to_string(), text)).collect())
    }

    /// Reads the saved searches, if a search line may use one.
    pub(crate) fn read_saved_searches(&mut self, line: &str) -> Result<(), CommandFailure> {
        if SavedSearches::can_be_in(line) && DataDirectory::new(&self.dir).has_store() {
            let searches = SavedSearches::read(&self.open_reader()?)?;
            self.settings.saved_searches = Arc::new(searches);
        }
        Ok(())
    }

    /// Follows the saved searches of a search line, as they were read last; `None`: it uses none.
    pub(crate) fn follow_saved_searches(&self, line: &str) -> Option<SavedSearchFollower> {
        let zones = Arc::clone(&self.settings.user_locale.zones);
        let searches = &self.settings.saved_searches;
        SavedSearchFollower::open(DataDirectory::new(&self.dir), line, searches, zones)
    }

    /// Runs a query and appends it to the query log, where `client` names the caller.
    pub(crate) fn run_query(
        &self,
        client: &str,
        reader: &Reader,
        find: &SearchRequest,
    ) -> Result<ResultSet, larder_query::Error> {
        let began = Timer::now();
        let answer = larder_query::find(reader, find)?;
        if let Some(log) = &self.log {
            let number = self.answer_count.get() + 1;
            self.answer_count.set(number);
            log.record(&QueryLogEvent::Query(ResultRecord::from_result_set(
                client,
                find,
                &answer,
                number,
                began.elapsed(),
            )));
        }
        Ok(answer)
    }

    /// Flushes the query log.
    pub(crate) fn flush_query_log(&self) {
        if let Some(log) = &self.log {
            log.flush();
        }
    }

    /// Prints a note on standard error.
    pub(crate) fn print_note(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            crate::output::print_message("note", text);
        }
    }

    /// Warns of the saved searches that name a thing by its former name.
    pub(crate) fn warn_of_search_users<'n>(
        &self,
        former: &str,
        users: impl Iterator<Item = &'n str>,
    ) {
        let users: Vec<String> = users.map(|name| format!("@{name}")).collect();
        if !users.is_empty() {
            let (users, former) = (users.join(", "), crate::output::sanitize_line(former));
            self.print_warning(format!("saved searches that name {former}: {users}"));
            crate::output::print_message(
                "hint",
                "to define one anew: larder searches add NAME QUERY",
            );
        }
    }

    /// Prints a warning on standard error.
    pub(crate) fn print_warning(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            crate::output::print_message("warning", text);
        }
    }
}

impl CommandContext {
    /// Adds the nearest collection name to a failure about a missing collection.
    pub(crate) fn with_nearest_collection(&self, failure: CommandFailure) -> CommandFailure {
        let Some(name) = failure.missing_collection() else { return failure };
        let there = self.open_reader().and_then(|reader| Ok(reader.collections().list()?));
        let there = there.unwrap_or_default().into_iter().map(|collection| collection.name);
        let asked = name.to_lowercase();
        let is_near = |known: &String| {
            let known = known.to_lowercase();
            known.starts_with(&asked) || asked.starts_with(&known)
        };
        let near = there.filter(is_near).min_by_key(|known| known.len().abs_diff(name.len()));
        match near {
            Some(near) => {
                failure.with_hint(format!("did you mean {near:?}? `larder collections` lists them"))
            }
            None => failure.with_hint("`larder collections` lists the collections"),
        }
    }
}

/// Prints who a command waits for.
fn print_wait(holder: Option<&LockHolder>) {
    let holder = holder.map_or_else(|| "another program".into(), ToString::to_string);
    crate::output::print_message("note", format!("waiting for {holder}"));
}

/// Returns random bytes for a UID.
pub(crate) fn random_bytes() -> std::io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}

/// Returns the current time, the zone and the language of this machine.
fn read_user_locale() -> UserLocale {
    let database = ZoneDatabase::with_opener(machine_time::zone_database);
    let zones = Arc::new(match tzdata_version() {
        Some(version) => database.of_version(version),
        None => database,
    });
    if let Some(zone) = machine_time::linked_zone()
        && let Some(name) = zone.iana_name().map(str::to_string)
    {
        zones.add(Zone::from_system(zone, &name));
    }
    let local = machine_time::local_zone();
    let local = match local.iana_name().and_then(|name| zones.get(name)) {
        Some(zone) => zone,
        None => Zone::from_system(local, "local"),
    };
    let language = Language::from_locale(&locale_for_category("LC_TIME").unwrap_or_default());
    let now = Instant::from_seconds_clamped(now_milliseconds().div_euclid(1000));
    UserLocale { now, zone: local, zones, language }
}

/// Returns the version of the system's zone data, which saves comparing zones one by one.
fn tzdata_version() -> Option<String> {
    let mut first = String::new();
    let file = std::fs::File::open("/usr/share/zoneinfo/tzdata.zi").ok()?;
    std::io::BufRead::read_line(&mut std::io::BufReader::with_capacity(64, file), &mut first)
        .ok()?;
    let version = first.trim().strip_prefix("# version ")?;
    non_empty_env("TZDIR").is_none().then(|| format!("tzdata {version}"))
}

/// Returns the locale that the environment sets for a category.
fn locale_for_category(category: &str) -> Option<String> {
    ["LC_ALL", category, "LANG"].into_iter().find_map(non_empty_env)?.into_string().ok()
}

/// Returns the region of a locale: `AT` for `de_AT.UTF-8`.
fn region_from_locale(locale: &str) -> Option<String> {
    let (_, rest) = locale.split_once('_')?;
    let region = rest.split(['.', '@']).next()?;
    (region.len() == 2 && region.bytes().all(|byte| byte.is_ascii_alphabetic()))
        .then(|| region.to_ascii_uppercase())
}

/// Expands `~/` in a path from the configuration, which no shell has read.
fn expand_tilde(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), etcetera::home_dir()) {
        (Ok(rest), Ok(home)) => home.join(rest),
        _ => path,
    }
}

fn non_empty_env(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::region_from_locale;

    #[test]
    fn the_region_is_read_from_a_locale() {
        let check = |locale: &str, expect: Option<&str>| {
            assert_eq!(region_from_locale(locale).as_deref(), expect, "{locale}");
        };
        check("de_AT.UTF-8", Some("AT"));
        check("sr_rs@latin", Some("RS"));
        check("C.UTF-8", None);
        check("eo", None);
        check("es_419", None);
    }
}
