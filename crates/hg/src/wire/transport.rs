//! How commands reach a server.

use super::capabilities::Capabilities;
use super::command::WireCommand;
use crate::bundle::ByteStream;
use crate::received_bytes::ReceivedBytes;
use crate::revision::ChangeError;
use std::io::Read;

/// The longest answer that is kept in memory.
pub(super) const ANSWER_LIMIT_BYTES: usize = 1 << 28;

/// Reads an answer that `url` gives. One of more bytes than the limit is refused: a part of it
/// could be taken for the whole.
pub(super) fn read_answer(
    read: impl Read,
    limit_bytes: usize,
    url: &str,
) -> Result<Vec<u8>, ChangeError> {
    let mut answer = Vec::new();
    read.take(limit_bytes as u64 + 1).read_to_end(&mut answer)?;
    if answer.len() > limit_bytes {
        let what = format!("{url} answers with more than {limit_bytes} bytes");
        return Err(ChangeError::new_damaged(what));
    }
    Ok(answer)
}

/// A connection to a server. A server's report that it failed is [`ChangeError::Aborted`].
pub(super) trait Transport {
    /// Returns what the server said when the connection began.
    fn capabilities(&self) -> &Capabilities;

    /// How many nodes the arguments of one command may have.
    fn node_limit(&self) -> usize;

    /// Sends a command, and returns the answer.
    fn call(&mut self, command: &WireCommand) -> Result<Vec<u8>, ChangeError>;

    /// Sends a command whose answer is a bundle. It is read from the connection as it is used. The
    /// command is made for a number of nodes that its arguments may have.
    fn stream(
        &mut self,
        make: &dyn Fn(usize) -> WireCommand,
    ) -> Result<ByteStream<'_>, ChangeError>;

    /// Reads a file of the web; `None` where the transport does not reach it.
    fn open_url(&mut self, url: &str) -> Option<Result<ByteStream<'static>, ChangeError>>;

    /// Returns the counter of what arrives.
    fn received_bytes(&self) -> ReceivedBytes;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whole_or_refused() {
        let read = |len: u64| read_answer(std::io::repeat(b'x').take(len), 100, "https://h/r");
        assert_eq!(read(100).unwrap(), [b'x'; 100]);
        let expected = "damaged changes: https://h/r answers with more than 100 bytes";
        assert_eq!(read(101).unwrap_err().to_string(), expected);
    }
}
