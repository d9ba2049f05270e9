//! Mercurial's wire protocol, version 1: repositories behind HTTP, ssh and pipes.
//!
//! A [`WirePeer`] sends commands through a [`transport::Transport`]. Commands have the same names,
//! arguments and answers on all transports, which differ in how they write these. See the help
//! topic `internals.wireprotocol` and `mercurial/wireprotov1peer.py` of Mercurial.

#[cfg(feature = "fuzz-checks")]
mod answers;
mod capabilities;
mod clone_bundle;
mod command;
mod credentials;
mod download;
mod http;
mod http_request;
mod http_settings;
mod pipe;
mod speed_limit;
mod ssh_location;
mod stream_use;
mod tls_connector;
mod tls_error;
mod transport;
mod user_verifier;
mod wire_peer;

#[cfg(feature = "fuzz-checks")]
pub(crate) use answers::peer_of_answers;
pub use credentials::{CredentialSource, Login};
pub use http::connect_http;
pub(crate) use http::open_web_file;
pub use http_settings::HttpSettings;
pub use pipe::{PipeServer, ServerOutput, SshCommand, connect_pipe};
pub use speed_limit::SpeedLimit;
pub use ssh_location::SshLocation;
pub use stream_use::StreamUse;
pub use wire_peer::WirePeer;
