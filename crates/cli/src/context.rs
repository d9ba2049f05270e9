//! What the options, the environment and the configuration mean together: read once, passed down.

use crate::args::{Format, Global};
use crate::config::Config;
use crate::failure::{Failure, Kind};
use crate::output::Out;
use etcetera::BaseStrategy;
use larder_date_phrase::Language;
use larder_query::log::{Answered, Event, Sink};
use larder_query::views::CACHE;
use larder_query::{Answer, Asker, Find, Settings};
use larder_store::{Options, Reader, Store};
use larder_sync::event::Speaker;
use larder_time::civil::Instant;
use larder_time::zone::{Zone, Zones};
use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant as Timer;

/// Everything a command needs besides its own arguments.
pub(crate) struct Context {
    /// Where the store lies.
    pub(crate) dir: PathBuf,
    /// How answers are printed.
    pub(crate) format: Format,
    /// Print no progress, notes or warnings.
    pub(crate) quiet: bool,
    /// Standard output.
    pub(crate) out: Out,
    /// The editor to run, as a shell command.
    pub(crate) editor: Option<OsString>,
    /// What questions mean here.
    pub(crate) settings: Settings,
    /// Where it is noted what is asked.
    pub(crate) log: Option<Arc<dyn Sink>>,
    /// What kept answers of views may take in memory.
    pub(crate) cache: usize,
    answers: Cell<u64>,
    locale: Option<String>,
    locale_if_new: Option<String>,
}

impl Context {
    pub(crate) fn new(global: Global) -> Result<Context, Failure> {
        let bases = etcetera::base_strategy::Xdg::new();
        let config_dir = bases.as_ref().map(|xdg| xdg.config_dir().join("larder")).ok();
        let config = match &config_dir {
            Some(dir) => Config::read(&dir.join("config.toml"))?,
            None => Config::default(),
        };
        let dir = global
            .data_dir
            .or_else(|| non_empty("LARDER_DIR").map(PathBuf::from))
            .or_else(|| config.data_dir.map(below_home))
            .or_else(|| bases.as_ref().map(|xdg| xdg.data_dir().join("larder")).ok())
            .ok_or_else(|| {
                Failure::new(Kind::Usage, "no home directory is known, so no place for the store")
                    .hint("name one with --data-dir DIR")
            })?;
        if let Some(color) = global.color {
            crate::output::set_color(color);
        }
        let zone = non_empty("TZ").filter(|_| jiff::tz::TimeZone::system().is_unknown());
        if let Some(zone) = zone.filter(|_| !global.quiet) {
            let zone = crate::output::plain(&zone.to_string_lossy());
            crate::output::complain(
                "warning",
                format!("TZ={zone} names no known zone: UTC is used"),
            );
        }
        let log = match (global.query_log, config.query_log.enabled, config.query_log.file) {
            (Some(file), ..) => Some(file),
            (None, None | Some(true), Some(file)) => Some(below_home(file)),
            (None, Some(true), None) => {
                let states = bases.as_ref().ok().and_then(BaseStrategy::state_dir);
                states.map(|dir| dir.join("larder/queries.jsonl"))
            }
            (None, ..) => None,
        };
        Ok(Context {
            dir,
            log: log.map(|file| crate::query_log::sink(file, global.quiet)),
            cache: config.views.cache.map_or(CACHE, |bytes| bytes.0),
            answers: Cell::new(0),
            format: global.format,
            quiet: global.quiet,
            out: Out::new(),
            editor: config
                .editor
                .map(OsString::from)
                .or_else(|| non_empty("VISUAL"))
                .or_else(|| non_empty("EDITOR")),
            settings: Settings {
                region: config
                    .region
                    .map(|region| region.to_ascii_uppercase())
                    .or_else(|| region_of(&locale_for("LC_ADDRESS")?)),
                asker: asker(),
            },
            locale: config.locale,
            locale_if_new: locale_for("LC_COLLATE"),
        })
    }

    /// Opens the store for reading; one of an older version is migrated first.
    pub(crate) fn reader(&self) -> Result<Reader, Failure> {
        match Reader::open_with(&self.dir, Arc::clone(&self.settings.asker.zones)) {
            Err(larder_store::Error::Older { .. }) => Ok(self.store()?.reader()?),
            reader => Ok(reader?),
        }
    }

    /// Opens the store for writing, where there is one.
    pub(crate) fn store(&self) -> Result<Store, Failure> {
        self.open(false)
    }

    /// Opens the store for writing, made where there is none.
    pub(crate) fn store_or_new(&self) -> Result<Store, Failure> {
        self.open(true)
    }

    fn open(&self, create: bool) -> Result<Store, Failure> {
        Ok(Store::open(&self.dir, &self.options(create))?)
    }

    /// How this command's store is opened.
    pub(crate) fn options(&self, create: bool) -> Options {
        Options {
            create,
            locale: self.locale.clone(),
            locale_if_new: self.locale_if_new.clone(),
            zones: Arc::clone(&self.settings.asker.zones),
        }
    }

    /// The locale that texts are ordered by for programs that are served.
    pub(crate) fn collation(&self) -> Option<String> {
        self.locale.clone().or_else(|| self.locale_if_new.clone())
    }

    /// Where the session bus is.
    pub(crate) fn session_bus(&self) -> Result<String, Failure> {
        if let Some(address) = non_empty("DBUS_SESSION_BUS_ADDRESS") {
            return Ok(address.to_string_lossy().into_owned());
        }
        let Some(dir) = non_empty("XDG_RUNTIME_DIR") else {
            return Err(Failure::new(Kind::Source, "no session bus is known")
                .hint("DBUS_SESSION_BUS_ADDRESS says where it is"));
        };
        Ok(format!("unix:path={}/bus", dir.to_string_lossy()))
    }

    /// Below which other programs keep what can be made again.
    pub(crate) fn cache_of_others(&self) -> Result<PathBuf, Failure> {
        let bases = etcetera::base_strategy::Xdg::new();
        bases.map(|xdg| xdg.cache_dir()).map_err(|_| {
            Failure::new(Kind::Usage, "no home directory is known, so no place for caches")
        })
    }

    /// Writes the files that have the session bus start this program, for this store, into a folder that is made.
    pub(crate) fn write_service_files(&self, dir: &Path) -> Result<Vec<PathBuf>, Failure> {
        let program = std::env::current_exe().map_err(|error| Failure::new(Kind::Source, error))?;
        let store = std::path::absolute(&self.dir).unwrap_or_else(|_| self.dir.clone());
        let mut written = Vec::new();
        std::fs::create_dir_all(dir).map_err(|error| Failure::file(dir, &error))?;
        for (name, text) in larder_serve::eds::service_files(&program, &store) {
            let path = dir.join(name);
            std::fs::write(&path, text).map_err(|error| Failure::file(&path, &error))?;
            written.push(path);
        }
        Ok(written)
    }

    /// Answers a question, and notes it where that is wanted. `client` is who asks, for the log.
    pub(crate) fn ask(
        &self,
        client: &str,
        reader: &Reader,
        find: &Find,
    ) -> Result<Answer, larder_query::Error> {
        let began = Timer::now();
        let answer = larder_query::find(reader, find)?;
        if let Some(log) = &self.log {
            let number = self.answers.get() + 1;
            self.answers.set(number);
            log.note(&Event::Query(Answered::run(client, find, &answer, number, began.elapsed())));
        }
        Ok(answer)
    }

    /// Writes out what was noted.
    pub(crate) fn end_log(&self) {
        if let Some(log) = &self.log {
            log.rest();
        }
    }

    /// A remark for people, on standard error.
    pub(crate) fn note(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            crate::output::complain("note", text);
        }
    }

    /// A warning, on standard error.
    pub(crate) fn warn(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            crate::output::complain("warning", text);
        }
    }
}

impl Context {
    /// Who speaks, for what is said in words.
    pub(crate) fn speaker(&self) -> Speaker<'_> {
        let Asker { now, local, zones, language } = &self.settings.asker;
        Speaker { now: *now, local, zones, language }
    }
}

/// Random bytes, for a UID.
pub(crate) fn random() -> std::io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}

/// The time, in milliseconds since 1970.
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Who asks: now, by the clock and in the language of this machine.
fn asker() -> Asker {
    let database = jiff::tz::TimeZoneDatabase::from_env();
    let zones = Arc::new(match version_of_zones() {
        Some(version) => Zones::with_version(database, version),
        None => Zones::new(database),
    });
    let local = jiff::tz::TimeZone::system();
    let local = match local.iana_name().and_then(|name| zones.get(name)) {
        Some(zone) => zone,
        None => Zone::system(local, "local"),
    };
    let language = Language::of(&locale_for("LC_TIME").unwrap_or_default());
    let now = Instant::clamped(jiff::Timestamp::now().as_second());
    Asker { now, local, zones, language }
}

/// What the system's zones say of their version, so that they need not be looked at one by one.
fn version_of_zones() -> Option<String> {
    let mut first = String::new();
    let file = std::fs::File::open("/usr/share/zoneinfo/tzdata.zi").ok()?;
    std::io::BufRead::read_line(&mut std::io::BufReader::with_capacity(64, file), &mut first)
        .ok()?;
    let version = first.trim().strip_prefix("# version ")?;
    non_empty("TZDIR").is_none().then(|| format!("tzdata {version}"))
}

/// The locale for one of the categories that the environment knows.
fn locale_for(category: &str) -> Option<String> {
    ["LC_ALL", category, "LANG"].into_iter().find_map(non_empty)?.into_string().ok()
}

/// The country of a locale: `AT` of `de_AT.UTF-8`.
fn region_of(locale: &str) -> Option<String> {
    let (_, rest) = locale.split_once('_')?;
    let region = rest.split(['.', '@']).next()?;
    (region.len() == 2 && region.bytes().all(|byte| byte.is_ascii_alphabetic()))
        .then(|| region.to_ascii_uppercase())
}

/// A path in the configuration, which no shell has read: `~/` is the home directory there, too.
fn below_home(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), etcetera::home_dir()) {
        (Ok(rest), Ok(home)) => home.join(rest),
        _ => path,
    }
}

fn non_empty(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::region_of;

    #[test]
    fn the_country_of_a_locale() {
        let check = |locale: &str, expect: Option<&str>| {
            assert_eq!(region_of(locale).as_deref(), expect, "{locale}");
        };
        check("de_AT.UTF-8", Some("AT"));
        check("sr_rs@latin", Some("RS"));
        check("C.UTF-8", None);
        check("eo", None);
        check("es_419", None);
    }
}
