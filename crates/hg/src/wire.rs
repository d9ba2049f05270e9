//! Mercurial's wire protocol, version 1: repositories behind HTTP, ssh and pipes.
//!
//! A [`WirePeer`] sends commands through a [`transport::Transport`]. Commands have the same names,
//! arguments and answers on all transports, which differ in how they write these. See the help
//! topic `internals.wireprotocol` and `mercurial/wireprotov1peer.py` of Mercurial.

mod capabilities;
mod clone_bundle;
mod command;
mod credentials;
mod http;
mod http_request;
mod pipe;
mod ssh_location;
mod transport;
mod wire_peer;

pub use credentials::{CredentialSource, Login};
pub use http::{HttpSettings, connect_http};
pub use pipe::{PipeServer, ServerOutput, SshCommand, connect_pipe};
pub use ssh_location::SshLocation;
pub use wire_peer::WirePeer;
