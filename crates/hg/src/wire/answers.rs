//! A server whose answers are given: for tests of what a client does with any answers.

use super::capabilities::Capabilities;
use super::command::WireCommand;
use super::transport::Transport;
use super::wire_peer::WirePeer;
use crate::bundle::ByteStream;
use crate::received_bytes::ReceivedBytes;
use crate::revision::ChangeError;
use std::collections::VecDeque;
use std::io::Cursor;

struct GivenAnswers {
    capabilities: Capabilities,
    answers: VecDeque<Vec<u8>>,
}

impl Transport for GivenAnswers {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn node_limit(&self) -> usize {
        100
    }

    fn call(&mut self, _: &WireCommand) -> Result<Vec<u8>, ChangeError> {
        Ok(self.answers.pop_front().unwrap_or_default())
    }

    fn stream(&mut self, _: &dyn Fn(usize) -> WireCommand) -> Result<ByteStream<'_>, ChangeError> {
        Ok(Box::new(Cursor::new(self.answers.pop_back().unwrap_or_default())))
    }

    fn open_url(&mut self, _: &str) -> Option<Result<ByteStream<'static>, ChangeError>> {
        None
    }

    fn received_bytes(&self) -> ReceivedBytes {
        ReceivedBytes::default()
    }
}

/// Connects to a server that gives these answers; the first one is its capabilities.
pub(crate) fn peer_of_answers(answers: &[&[u8]]) -> WirePeer {
    let capabilities = Capabilities::parse(answers.first().copied().unwrap_or_default());
    let answers = answers.iter().skip(1).map(|answer| answer.to_vec()).collect();
    WirePeer::new(Box::new(GivenAnswers { capabilities, answers }))
}
