//! Errors of calls: GLib's errors in the encoding of D-Bus.
//!
//! GLib identifies an error by a domain and a number. On the bus both are encoded in a name, which
//! the client libraries decode. An error that no GLib program could cause has one of D-Bus' own
//! names.

use larder_query::Error as QueryError;
use larder_store::Error as StoreError;

/// The error of a call, to be sent to its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallError {
    /// Its name on the bus.
    pub(super) name: String,
    /// Its message for a person.
    pub(super) message: String,
}

/// One of GLib's errors: its domain and number.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "they are called as GLib's are")]
pub(super) enum GlibError {
    /// `e-client-error-quark`
    Client(u8),
    /// `e-book-client-error-quark`
    Book(u8),
    /// `g-io-error-quark`
    Io(u8),
    /// `g-key-file-error-quark`
    KeyFile(u8),
}

pub(super) const INVALID_ARG: GlibError = GlibError::Client(0);
pub(super) const NOT_SUPPORTED: GlibError = GlibError::Client(11);
pub(super) const SIZE_LIMIT: GlibError = GlibError::Client(14);
pub(super) const TIME_LIMIT: GlibError = GlibError::Client(15);
pub(super) const INVALID_QUERY: GlibError = GlibError::Client(16);
pub(super) const OTHER: GlibError = GlibError::Client(19);
pub(super) const OUT_OF_SYNC: GlibError = GlibError::Client(21);
pub(super) const CONTACT_NOT_FOUND: GlibError = GlibError::Book(1);
pub(super) const ID_EXISTS: GlibError = GlibError::Book(2);
pub(super) const NO_SPACE: GlibError = GlibError::Book(4);
pub(super) const IO_FAILED: GlibError = GlibError::Io(0);
pub(super) const IO_NOT_FOUND: GlibError = GlibError::Io(1);
pub(super) const IO_EXISTS: GlibError = GlibError::Io(2);
pub(super) const IO_INVALID_ARGUMENT: GlibError = GlibError::Io(13);
pub(super) const IO_NOT_SUPPORTED: GlibError = GlibError::Io(15);
pub(super) const KEY_FILE_PARSE: GlibError = GlibError::KeyFile(1);
pub(super) const KEY_FILE_NO_GROUP: GlibError = GlibError::KeyFile(4);

impl CallError {
    pub(super) fn new(what: GlibError, text: impl Into<String>) -> CallError {
        let (domain, code) = match what {
            GlibError::Client(code) => ("e_2dclient_2derror_2dquark", code),
            GlibError::Book(code) => ("e_2dbook_2dclient_2derror_2dquark", code),
            GlibError::Io(code) => ("g_2dio_2derror_2dquark", code),
            GlibError::KeyFile(code) => ("g_2dkey_2dfile_2derror_2dquark", code),
        };
        let name = format!("org.gtk.GDBus.UnmappedGError.Quark._{domain}.Code{code}");
        CallError { name, message: text.into() }
    }

    /// Creates an error with one of D-Bus' own names: `UnknownMethod`, `InvalidArgs`, ...
    pub(super) fn from_bus_error(name: &str, text: impl Into<String>) -> CallError {
        CallError { name: format!("org.freedesktop.DBus.Error.{name}"), message: text.into() }
    }

    /// The error of a call whose answer failed because of an error in the program.
    pub(super) fn from_internal_error() -> CallError {
        CallError::new(OTHER, "internal error: the call was not completed")
    }

    /// Prefixes the message with the operation that failed.
    pub(super) fn with_context(self, what: &str) -> CallError {
        CallError { message: format!("{what}: {}", self.message), ..self }
    }
}

impl From<StoreError> for CallError {
    fn from(error: StoreError) -> CallError {
        let what = match error {
            StoreError::DiskFull { .. } | StoreError::QuotaExceeded { .. } => NO_SPACE,
            _ => OTHER,
        };
        CallError::new(what, error.to_string())
    }
}

impl From<QueryError> for CallError {
    fn from(error: QueryError) -> CallError {
        match error {
            QueryError::Store(error) => error.into(),
            error @ QueryError::DamagedItems { .. } => CallError::new(OTHER, error.to_string()),
            QueryError::StepLimit { .. } => CallError::new(TIME_LIMIT, error.to_string()),
            error => CallError::new(INVALID_QUERY, error.to_string()),
        }
    }
}
