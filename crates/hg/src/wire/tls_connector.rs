//! TLS with a configuration of our own, which the client has no setting for.

use rustls::client::{ClientConfig, ClientConnection};
use rustls::pki_types::ServerName;
use rustls::{Error as TlsError, StreamOwned};
use std::fmt;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout,
    TcpConnector, Transport as Connection, TransportAdapter,
};
use ureq::{Agent, config::Config};

/// Creates a client whose connections are those of the library, TLS aside.
pub(super) fn agent_with_tls(config: Config, tls: ClientConfig) -> Agent {
    let connector =
        ().chain(ConnectProxyConnector::default())
            .chain(TcpConnector::default())
            .chain(TlsConnector { config: Arc::new(tls) });
    Agent::with_parts(config, connector, DefaultResolver::default())
}

/// Encrypts the connections to https URLs.
#[derive(Debug)]
struct TlsConnector {
    config: Arc<ClientConfig>,
}

impl<In: Connection> Connector<In> for TlsConnector {
    type Out = Either<In, TlsConnection>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(connection) = chained else { return Ok(None) };
        if !details.needs_tls() || connection.is_tls() {
            return Ok(Some(Either::A(connection)));
        }
        let host = details.uri.host().unwrap_or_default();
        // Brackets are around addresses of IPv6.
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| TlsError::General(format!("{host}: {error}")))?;
        let mut tls = ClientConnection::new(Arc::clone(&self.config), name)?;
        let boxed: Box<dyn Connection> = Box::new(connection);
        let mut socket = TransportAdapter::new(boxed, Arc::clone(&details.current_time));
        socket.set_timeout(details.timeout);
        tls.complete_io(&mut socket)?;
        let input_len = details.config.input_buffer_size();
        let buffers = LazyBuffers::new(input_len, details.config.output_buffer_size());
        Ok(Some(Either::B(TlsConnection { buffers, stream: StreamOwned::new(tls, socket) })))
    }
}

/// An encrypted connection.
struct TlsConnection {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for TlsConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConnection").field("socket", self.stream.sock.get_ref()).finish()
    }
}

impl Connection for TlsConnection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        Ok(self.stream.write_all(output)?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
