//! How commands reach a server.

use super::capabilities::Capabilities;
use super::command::WireCommand;
use crate::bundle::ByteStream;
use crate::revision::ChangeError;

/// The longest answer that is kept in memory.
pub(super) const ANSWER_LIMIT_BYTES: usize = 1 << 28;

/// A connection to a server. A server's report that it failed is [`ChangeError::Aborted`].
pub(super) trait Transport {
    /// Returns what the server said when the connection began.
    fn capabilities(&self) -> &Capabilities;

    /// How many nodes the arguments of one command may have.
    fn node_limit(&self) -> usize;

    /// Sends a command, and returns the answer.
    fn call(&mut self, command: &WireCommand) -> Result<Vec<u8>, ChangeError>;

    /// Sends a command whose answer is a bundle. It is read from the connection as it is used.
    fn stream(&mut self, command: &WireCommand) -> Result<ByteStream<'_>, ChangeError>;

    /// Reads a file of the web; `None` where the transport does not reach it.
    fn open_url(&mut self, url: &str) -> Option<Result<ByteStream<'static>, ChangeError>>;
}
