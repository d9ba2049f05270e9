//! The protocol over HTTP.
//!
//! A command is the query `cmd`; its arguments are in headers of limited size, or in the body if
//! the server allows that, or in the query of very old servers. Answers are read from the
//! connection as they are used. See the help topic `internals.wireprotocol` and
//! `mercurial/httppeer.py` of Mercurial.

use super::capabilities::Capabilities;
use super::command::WireCommand;
use super::credentials::{CredentialSource, Login};
use super::http_request::{HttpRequest, node_limit};
use super::transport::{ANSWER_LIMIT_BYTES, Transport};
use super::wire_peer::WirePeer;
use crate::bundle::{ByteStream, decompress};
use crate::bundle_peer::BundlePeer;
use crate::byte_reader::{read_array, read_bytes};
use crate::peer::Peer;
use crate::percent;
use crate::revision::ChangeError;
use std::io::{self, BufReader, Read as _};
use std::time::Duration;
use ureq::ResponseExt as _;
use ureq::http::Response;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, Proxy};

/// Some hosts know clients of Mercurial by this beginning.
const USER_AGENT: &str = "mercurial/proto-1.0 (Larder)";

/// The buffer between the connection and a decoder.
const BUFFER_BYTES: usize = 1 << 16;

/// The longest message of a server that is shown.
const MESSAGE_LIMIT_BYTES: u64 = 1 << 16;

/// How many logins are tried for one request.
const MAX_LOGINS: usize = 2;

/// How servers are reached.
#[derive(Default)]
pub struct HttpSettings {
    /// The URL of a proxy; `None` for direct connections.
    pub proxy: Option<String>,
    /// The machines that are reached without the proxy: names, with commas between, each of which
    /// also stands for the machines below it; `*` stands for all.
    pub no_proxy: String,
    /// Certificates of authorities in PEM, in place of those of the system.
    pub authorities: Option<Vec<u8>>,
    /// Whether certificates are accepted without a check.
    pub accepts_any_certificate: bool,
    /// How long a connection may take to be made, and a server may be silent.
    pub timeout: Option<Duration>,
    /// Where names and passwords come from.
    pub credentials: Option<Box<dyn CredentialSource>>,
}

impl HttpSettings {
    fn agent(&self, base: &str) -> Result<Agent, ChangeError> {
        let proxy = match &self.proxy {
            Some(_) if is_in_list(base, &self.no_proxy) => None,
            Some(url) => Some(Proxy::new(url).map_err(|error| name_error(url, error))?),
            None => None,
        };
        let roots = match &self.authorities {
            Some(pem) => RootCerts::new_with_certs(&parse_authorities(pem)?),
            None => RootCerts::PlatformVerifier,
        };
        let tls = TlsConfig::builder()
            .root_certs(roots)
            .disable_verification(self.accepts_any_certificate)
            .build();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(proxy)
            .tls_config(tls)
            .user_agent(USER_AGENT)
            .accept("application/mercurial-0.1")
            .accept_encoding("")
            .timeout_connect(self.timeout)
            .timeout_per_read(self.timeout)
            .build();
        Ok(config.new_agent())
    }
}

/// Whether the machine of a URL, or one above it, is in a list of names.
fn is_in_list(url: &str, names: &str) -> bool {
    let uri: Option<ureq::http::Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(|uri| uri.host()).unwrap_or_default();
    names.split(',').map(str::trim).any(|name| {
        let name = name.trim_start_matches("*.").trim_start_matches('.');
        let above = host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
        name == "*" || !name.is_empty() && (host == name || above)
    })
}

fn parse_authorities(pem: &[u8]) -> Result<Vec<ureq::tls::Certificate<'static>>, ChangeError> {
    let mut certificates = Vec::new();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(certificate) =
            item.map_err(|error| name_error("certificates", error))?
        {
            certificates.push(certificate);
        }
    }
    Ok(certificates)
}

/// Names the URL in an error of the client.
fn name_error(url: &str, error: ureq::Error) -> ChangeError {
    let text = format!("{url}: {error}");
    ChangeError::Read(io::Error::new(error.into_io().kind(), text))
}

/// Connects to a repository, or to a bundle that a server has as a file.
pub fn connect_http(url: &str, settings: HttpSettings) -> Result<Box<dyn Peer>, ChangeError> {
    let mut connection = HttpConnection::new(url, settings)?;
    let command = WireCommand::new("capabilities", Vec::new());
    let response = connection.send(&command, &Capabilities::default())?;
    if !content_type(&response).starts_with("application/mercurial-") {
        return connect_bundle(connection, response);
    }
    // Later commands go where the first one was led to.
    connection.follow(&response.get_uri().to_string());
    let answer = read_answer(&connection.base, response)?;
    let capabilities = Capabilities::parse(&answer);
    Ok(Box::new(WirePeer::new(Box::new(HttpTransport { connection, capabilities }))))
}

/// Takes an answer that is not Mercurial's for a bundle, if it begins as one.
fn connect_bundle(
    mut connection: HttpConnection,
    response: Response<Body>,
) -> Result<Box<dyn Peer>, ChangeError> {
    let url = connection.base.clone();
    let mut begin = [0; 4];
    let mut read: ByteStream<'static> = body(response);
    let is_bundle = read.read_exact(&mut begin).is_ok() && begin.starts_with(b"HG");
    if !is_bundle {
        return Err(ChangeError::new_unsupported(format!(
            "{url} is not a repository of Mercurial"
        )));
    }
    drop(read);
    Ok(Box::new(BundlePeer::new(Box::new(move || Ok(body(connection.get(&url)?))))))
}

/// The client, and what is known of the server.
struct HttpConnection {
    agent: Agent,
    /// The URL of the repository, without a query, a name or a password.
    base: String,
    /// The name in the URL.
    user: Option<String>,
    login: Option<Login>,
    credentials: Option<Box<dyn CredentialSource>>,
}

impl HttpConnection {
    fn new(url: &str, settings: HttpSettings) -> Result<HttpConnection, ChangeError> {
        let (base, user, password) = split_url(url);
        let agent = settings.agent(&base)?;
        let login = match (&user, password) {
            (Some(user), Some(password)) => Some(Login { user: user.clone(), password }),
            _ => None,
        };
        Ok(HttpConnection { agent, base, user, login, credentials: settings.credentials })
    }

    /// Sends a command, with a login if the server asks for one.
    fn send(
        &mut self,
        command: &WireCommand,
        capabilities: &Capabilities,
    ) -> Result<Response<Body>, ChangeError> {
        let request = HttpRequest::new(&self.base, command, capabilities)?;
        self.run(request)
    }

    /// Reads a file.
    fn get(&mut self, url: &str) -> Result<Response<Body>, ChangeError> {
        self.run(HttpRequest::of_file(url))
    }

    fn run(&mut self, mut request: HttpRequest) -> Result<Response<Body>, ChangeError> {
        for attempt in 0..=MAX_LOGINS {
            // A login is for the repository's server only.
            let is_own = has_same_origin(&request.url, &self.base);
            let login = self.login.clone().filter(|_| is_own);
            let response = request.send(&self.agent, login.as_ref());
            let response = response.map_err(|error| name_error(&request.url, error))?;
            let status = response.status().as_u16();
            self.report_login(login.as_ref(), status);
            if status != 401 || attempt == MAX_LOGINS || !is_own {
                return check_status(&request.url, response);
            }
            check_scheme(&response)?;
            // The client does not send a login where it was led to.
            let found = response.get_uri().to_string();
            if found != request.url && !self.follow(&found) {
                return check_status(&request.url, response);
            }
            request.url = found;
            let credentials = self.credentials.as_mut();
            let user = self.user.as_deref();
            self.login = credentials.and_then(|source| source.find_login(&self.base, user));
            if self.login.is_none() {
                return check_status(&request.url, response);
            }
        }
        Err(ChangeError::new_unsupported("a server that asks for a login again and again"))
    }

    /// Takes the URL that a request was led to for that of the repository. Returns false if that
    /// would give up encryption.
    fn follow(&mut self, found: &str) -> bool {
        let base = found.split('?').next().unwrap_or_default();
        if self.base.starts_with("https:") && !base.starts_with("https:") {
            return false;
        }
        if !has_same_origin(base, &self.base) {
            self.login = None;
        }
        base.clone_into(&mut self.base);
        true
    }

    /// Tells the source of logins what the server said about one.
    fn report_login(&mut self, login: Option<&Login>, status: u16) {
        if let (Some(login), Some(source)) = (login, &mut self.credentials) {
            match status {
                401 => source.forget_login(&self.base, login),
                200..=299 => source.keep_login(&self.base, login),
                _ => {}
            }
        }
    }
}

/// Whether two URLs have the same scheme, host and port.
fn has_same_origin(first: &str, second: &str) -> bool {
    let origin = |url: &str| {
        let uri: ureq::http::Uri = url.parse().ok()?;
        Some((uri.scheme_str()?.to_owned(), uri.authority()?.as_str().to_owned()))
    };
    origin(first).is_some_and(|found| Some(found) == origin(second))
}

/// Splits the name and the password off a URL, and drops a fragment.
fn split_url(url: &str) -> (String, Option<String>, Option<String>) {
    let url = url.split('#').next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else {
        return (url.to_owned(), None, None);
    };
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let Some((login, host)) = host.rsplit_once('@') else {
        return (url.to_owned(), None, None);
    };
    let decode =
        |text: &str| String::from_utf8_lossy(&percent::decode(text.as_bytes())).into_owned();
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(decode(password))),
        None => (login, None),
    };
    (format!("{scheme}://{host}{path}"), Some(decode(user)), password)
}

/// Refuses servers that want another kind of login than a name and a password.
fn check_scheme(response: &Response<Body>) -> Result<(), ChangeError> {
    let headers = response.headers().get_all("www-authenticate");
    let schemes: Vec<&str> = headers.iter().filter_map(|value| value.to_str().ok()).collect();
    let has_basic = |value: &&str| value.to_ascii_lowercase().contains("basic");
    if schemes.is_empty() || schemes.iter().any(has_basic) {
        return Ok(());
    }
    let scheme = schemes.join(", ");
    Err(ChangeError::new_unsupported(format!("the login that the server asks for ({scheme})")))
}

/// Turns an answer that reports a failure into its message.
fn check_status(url: &str, response: Response<Body>) -> Result<Response<Body>, ChangeError> {
    let status = response.status();
    let is_message = content_type(&response).starts_with("application/hg-error");
    if status.is_success() && !is_message {
        return Ok(response);
    }
    let message = if is_message {
        let mut text = Vec::new();
        body(response).take(MESSAGE_LIMIT_BYTES).read_to_end(&mut text)?;
        String::from_utf8_lossy(&text).trim().to_owned()
    } else {
        let reason = status.canonical_reason().unwrap_or_default();
        format!("{} {reason} ({url})", status.as_u16())
    };
    Err(ChangeError::Aborted { message })
}

fn content_type(response: &Response<Body>) -> &str {
    let header = response.headers().get("content-type");
    header.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn body(response: Response<Body>) -> ByteStream<'static> {
    let reader = response.into_body().into_with_config().limit(u64::MAX).reader();
    Box::new(BufReader::with_capacity(BUFFER_BYTES, reader))
}

/// Reads an answer that is not compressed.
fn read_answer(url: &str, response: Response<Body>) -> Result<Vec<u8>, ChangeError> {
    let found = content_type(&response).to_owned();
    if !found.starts_with("application/mercurial-0.1") && !found.starts_with("application/hg-") {
        return Err(ChangeError::new_damaged(format!("{url} answers with {found}")));
    }
    let mut answer = Vec::new();
    body(response).take(ANSWER_LIMIT_BYTES as u64).read_to_end(&mut answer)?;
    Ok(answer)
}

/// Returns the decoded bytes of an answer that is a stream. Its type names the form: 0.1 is zlib,
/// 0.2 begins with the name of a compression after its length.
fn decode_stream(url: &str, response: Response<Body>) -> Result<ByteStream<'static>, ChangeError> {
    let found = content_type(&response).to_owned();
    let mut read = body(response);
    if found.starts_with("application/mercurial-0.2") {
        let [len] = read_array(&mut read)?;
        let mut name = Vec::new();
        read_bytes(&mut read, usize::from(len), &mut name)?;
        let name = match name.as_slice() {
            b"zstd" => "ZS",
            b"zlib" => "GZ",
            b"bzip2" => "BZ",
            b"none" => "UN",
            other => {
                let other = other.escape_ascii();
                return Err(ChangeError::new_unsupported(format!("compression {other}")));
            }
        };
        return decompress(name, read);
    }
    if found.starts_with("application/mercurial-0.1") || found.starts_with("application/hg-") {
        return decompress("GZ", read);
    }
    Err(ChangeError::new_damaged(format!("{url} answers with {found}")))
}

/// A server of repositories.
struct HttpTransport {
    connection: HttpConnection,
    capabilities: Capabilities,
}

impl Transport for HttpTransport {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn node_limit(&self) -> usize {
        node_limit(&self.capabilities)
    }

    fn call(&mut self, command: &WireCommand) -> Result<Vec<u8>, ChangeError> {
        let response = self.connection.send(command, &self.capabilities)?;
        read_answer(&self.connection.base, response)
    }

    fn stream(&mut self, command: &WireCommand) -> Result<ByteStream<'_>, ChangeError> {
        let response = self.connection.send(command, &self.capabilities)?;
        decode_stream(&self.connection.base, response)
    }

    fn open_url(&mut self, url: &str) -> Option<Result<ByteStream<'static>, ChangeError>> {
        Some(self.connection.get(url).map(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_split_off_urls() {
        let check = |url: &str, base: &str, user: Option<&str>, password: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            assert_eq!(split_url(url), (base.to_owned(), owned(user), owned(password)));
        };
        check("https://h/r#branch", "https://h/r", None, None);
        check("https://u@h:8/r/@x", "https://h:8/r/@x", Some("u"), None);
        check("http://u%40d:p%3A@h", "http://h", Some("u@d"), Some("p:"));
        check("nothing", "nothing", None, None);
    }

    #[test]
    fn machines_below_a_name_are_in_the_list() {
        for names in ["h.org", "x, .h.org", "*.org", "*", "a.h.org,"] {
            assert!(is_in_list("https://a.h.org:8/r", names), "{names}");
        }
        for names in ["", " , ", "b.h.org", "rg", "aa.h.org"] {
            assert!(!is_in_list("https://a.h.org:8/r", names), "{names}");
        }
    }

    #[test]
    fn logins_are_for_one_origin() {
        assert!(has_same_origin("https://h/a?cmd=x", "https://h/b"));
        assert!(!has_same_origin("http://h/a", "https://h/a"));
        assert!(!has_same_origin("https://h:1/a", "https://h/a"));
        assert!(!has_same_origin("h", "h"));
    }
}
