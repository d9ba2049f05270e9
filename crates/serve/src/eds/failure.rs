//! What clients are told when a call fails: GLib's errors, as D-Bus carries them.
//!
//! GLib knows an error by a domain and a number; on the bus that is a name, which the client libraries take apart again. What no
//! GLib program could have made wrong has one of D-Bus' own names.

use larder_query::Error as QueryError;
use larder_store::Error as StoreError;

/// An error, on its way to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// As it is called on the bus.
    pub(super) name: String,
    /// What it says to a person.
    pub(super) text: String,
}

/// One of GLib's errors: its domain and number.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "they are called as GLib's are")]
pub(super) enum Glib {
    /// `e-client-error-quark`
    Client(u8),
    /// `e-book-client-error-quark`
    Book(u8),
    /// `g-io-error-quark`
    Io(u8),
    /// `g-key-file-error-quark`
    KeyFile(u8),
}

pub(super) const INVALID_ARG: Glib = Glib::Client(0);
pub(super) const NOT_SUPPORTED: Glib = Glib::Client(11);
pub(super) const SIZE_LIMIT: Glib = Glib::Client(14);
pub(super) const INVALID_QUERY: Glib = Glib::Client(16);
pub(super) const OTHER: Glib = Glib::Client(19);
pub(super) const OUT_OF_SYNC: Glib = Glib::Client(21);
pub(super) const CONTACT_NOT_FOUND: Glib = Glib::Book(1);
pub(super) const ID_EXISTS: Glib = Glib::Book(2);
pub(super) const NO_SPACE: Glib = Glib::Book(4);
pub(super) const IO_FAILED: Glib = Glib::Io(0);
pub(super) const IO_NOT_FOUND: Glib = Glib::Io(1);
pub(super) const IO_EXISTS: Glib = Glib::Io(2);
pub(super) const IO_INVALID_ARGUMENT: Glib = Glib::Io(13);
pub(super) const IO_NOT_SUPPORTED: Glib = Glib::Io(15);
pub(super) const KEY_FILE_PARSE: Glib = Glib::KeyFile(1);
pub(super) const KEY_FILE_NO_GROUP: Glib = Glib::KeyFile(4);

impl Failure {
    pub(super) fn new(what: Glib, text: impl Into<String>) -> Failure {
        let (domain, code) = match what {
            Glib::Client(code) => ("e_2dclient_2derror_2dquark", code),
            Glib::Book(code) => ("e_2dbook_2dclient_2derror_2dquark", code),
            Glib::Io(code) => ("g_2dio_2derror_2dquark", code),
            Glib::KeyFile(code) => ("g_2dkey_2dfile_2derror_2dquark", code),
        };
        let name = format!("org.gtk.GDBus.UnmappedGError.Quark._{domain}.Code{code}");
        Failure { name, text: text.into() }
    }

    /// One of D-Bus' own: `UnknownMethod`, `InvalidArgs`, ...
    pub(super) fn of_bus(name: &str, text: impl Into<String>) -> Failure {
        Failure { name: format!("org.freedesktop.DBus.Error.{name}"), text: text.into() }
    }

    /// The same with what could not be done in front.
    pub(super) fn of(self, what: &str) -> Failure {
        Failure { text: format!("{what}: {}", self.text), ..self }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let what = match error {
            StoreError::Full { .. } => NO_SPACE,
            _ => OTHER,
        };
        Failure::new(what, error.to_string())
    }
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Failure {
        match error {
            QueryError::Store(error) => error.into(),
            error => Failure::new(INVALID_QUERY, error.to_string()),
        }
    }
}
