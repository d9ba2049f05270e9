//! The protocol over HTTP.
//!
//! A command is the query `cmd`; its arguments are in headers of limited size, or in the body if
//! the server allows that, or in the query of very old servers. Answers are read from the
//! connection as they are used. See the help topic `internals.wireprotocol` and
//! `mercurial/httppeer.py` of Mercurial.

use super::capabilities::Capabilities;
use super::command::WireCommand;
use super::credentials::{CredentialSource, Login};
use super::download::{Continuation, Download, DownloadLimits};
use super::http_request::{HttpRequest, node_limit};
use super::http_settings::HttpSettings;
use super::tls_error::tls_reason;
use super::transport::{ANSWER_LIMIT_BYTES, Transport, read_answer};
use super::wire_peer::WirePeer;
use crate::bundle::{ByteStream, decompress};
use crate::bundle_peer::BundlePeer;
use crate::byte_reader::{read_array, read_bytes};
use crate::peer::Peer;
use crate::percent;
use crate::received_bytes::ReceivedBytes;
use crate::revision::ChangeError;
use std::io::{self, BufReader, Read as _};
use ureq::http::Response;
use ureq::{Agent, Body, Proxy, ResponseExt as _};

/// The buffer between the connection and a decoder.
const BUFFER_BYTES: usize = 1 << 16;

/// The longest message of a server that is shown.
const MESSAGE_LIMIT_BYTES: u64 = 1 << 16;

/// How many logins are tried for one request.
const MAX_LOGINS: usize = 2;

/// The answers of servers and proxies to requests that are too long for them (RFC 9110, 15.5;
/// RFC 6585, 5), of which 400 has other reasons, too.
const LENGTH_STATUSES: [u16; 4] = [400, 413, 414, 431];

/// The part of the nodes in such a request that the next one has.
const REDUCTION: usize = 4;

/// Returns a URL without the command of the protocol.
fn strip_command(url: &str) -> &str {
    url.split_once("?cmd=").map_or(url, |(base, _)| base)
}

/// Names the URL, and the proxy if there is one, in an error of the client.
fn name_error(url: &str, proxy: Option<&Proxy>, error: ureq::Error) -> ChangeError {
    let url = strip_command(url);
    let way = proxy
        .map(|proxy| format!(" (through the proxy {}:{})", proxy.host(), proxy.port()))
        .unwrap_or_default();
    let reason = match (&error, tls_reason(&error)) {
        (_, Some(reason)) => reason.to_string(),
        (ureq::Error::Io(error), _) => error.to_string(),
        (ureq::Error::Timeout(_), _) => "the server did not answer in time".to_owned(),
        (error, _) => error.to_string(),
    };
    ChangeError::Read(io::Error::new(error.into_io().kind(), format!("{url}{way}: {reason}")))
}

/// Connects to a repository, or to a bundle that a server has as a file.
pub fn connect_http(url: &str, settings: HttpSettings) -> Result<Box<dyn Peer>, ChangeError> {
    let stream_use = settings.stream_use;
    let mut connection = HttpConnection::new(url, settings)?;
    let command = WireCommand::new("capabilities", Vec::new());
    let response = connection.send(&command, &Capabilities::default())?;
    if !content_type(&response).starts_with("application/mercurial-") {
        return connect_bundle(connection, response);
    }
    // Later commands go where the first one was led to.
    connection.follow(&response.get_uri().to_string());
    let answer = connection.read_answer(response)?;
    let capabilities = Capabilities::parse(&answer);
    let peer = WirePeer::new(Box::new(HttpTransport { connection, capabilities }));
    Ok(Box::new(peer.with_stream_use(stream_use)))
}

/// Reads a file of the web; `received` counts what arrives.
pub(crate) fn open_web_file(
    url: &str,
    settings: HttpSettings,
    received: ReceivedBytes,
) -> Result<ByteStream<'static>, ChangeError> {
    let mut connection = HttpConnection::new(url, settings)?;
    connection.received = received;
    let base = connection.base.clone();
    connection.open_file(&base)
}

/// Takes an answer that is not Mercurial's for a bundle, if it begins as one.
fn connect_bundle(
    mut connection: HttpConnection,
    response: Response<Body>,
) -> Result<Box<dyn Peer>, ChangeError> {
    let url = connection.base.clone();
    let mut begin = [0; 4];
    let mut read = connection.body(response);
    let is_bundle = read.read_exact(&mut begin).is_ok() && begin.starts_with(b"HG");
    if !is_bundle {
        return Err(ChangeError::new_not_mercurial(format!(
            "{url} is not a repository of Mercurial"
        )));
    }
    drop(read);
    Ok(Box::new(BundlePeer::new(Box::new(move || Ok(connection.open_file(&url)?)))))
}

/// The client, and what is known of the server.
struct HttpConnection {
    agent: Agent,
    /// The URL of the repository, without a query, a name or a password.
    base: String,
    /// The name in the URL.
    user: Option<String>,
    /// The login in the URL, until the server asks for one.
    given_login: Option<Login>,
    /// The login that requests have.
    login: Option<Login>,
    /// Further headers, for the repository's server only.
    headers: Vec<(String, String)>,
    /// Whether the source of logins knows that the server takes this one.
    is_login_reported: bool,
    credentials: Option<Box<dyn CredentialSource>>,
    limits: DownloadLimits,
    received: ReceivedBytes,
}

impl HttpConnection {
    fn new(url: &str, settings: HttpSettings) -> Result<HttpConnection, ChangeError> {
        let (base, user, password) = split_url(url);
        let agent = settings.agent(&base)?;
        let given_login = match (&user, password) {
            (Some(user), Some(password)) => Some(Login { user: user.clone(), password }),
            _ => None,
        };
        let HttpSettings { timeout, speed_limit: speed, credentials, headers, .. } = settings;
        let limits = DownloadLimits { timeout, speed };
        let received = ReceivedBytes::default();
        let is_login_reported = false;
        Ok(HttpConnection {
            agent,
            base,
            user,
            given_login,
            login: None,
            headers,
            is_login_reported,
            credentials,
            limits,
            received,
        })
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

    /// Reads a file. A download that breaks off is continued, if the server allows that.
    fn open_file(&mut self, url: &str) -> Result<ByteStream<'static>, ChangeError> {
        let response = self.run(HttpRequest::of_file(url))?;
        let found = response.get_uri().to_string();
        let is_own = has_same_origin(&found, &self.base);
        let login = self.login.clone().filter(|_| is_own);
        let headers = if is_own { self.headers.clone() } else { Vec::new() };
        let (agent, rest) = (self.agent.clone(), found.clone());
        let continuation: Continuation = Box::new(move |position, mark| {
            let request = HttpRequest::of_rest(&rest, position, mark);
            request.send(&agent, login.as_ref(), &headers).map_err(ureq::Error::into_io)
        });
        let (received, limits) = (self.received.clone(), self.limits.clone());
        let download = Download::new(response, &found, received, limits, Some(continuation));
        Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, download)))
    }

    /// Returns the body of an answer.
    fn body(&self, response: Response<Body>) -> ByteStream<'static> {
        let (received, limits) = (self.received.clone(), self.limits.clone());
        let download = Download::new(response, &self.base, received, limits, None);
        Box::new(BufReader::with_capacity(BUFFER_BYTES, download))
    }

    /// Reads an answer that is not compressed.
    fn read_answer(&self, response: Response<Body>) -> Result<Vec<u8>, ChangeError> {
        let found = content_type(&response).to_owned();
        if !found.starts_with("application/mercurial-0.1") && !found.starts_with("application/hg-")
        {
            let url = &self.base;
            return Err(ChangeError::new_not_mercurial(format!("{url} answers with {found}")));
        }
        read_answer(self.body(response), ANSWER_LIMIT_BYTES, &self.base)
    }

    fn run(&mut self, request: HttpRequest) -> Result<Response<Body>, ChangeError> {
        check_status(self.find_answer(request)?)
    }

    /// Sends a request, again with a login if the server asks for one, and returns the answer,
    /// which may report a failure.
    fn find_answer(&mut self, mut request: HttpRequest) -> Result<Response<Body>, ChangeError> {
        // Another file says nothing about the login and the place of the repository.
        let is_base = strip_command(&request.url) == self.base;
        let mut refused_user = None;
        for attempt in 0..=MAX_LOGINS {
            // A login is for the repository's server only.
            let is_own = has_same_origin(&request.url, &self.base);
            let login = self.login.clone().filter(|_| is_own);
            let headers = if is_own { self.headers.as_slice() } else { &[] };
            let response = request.send(&self.agent, login.as_ref(), headers);
            let proxy = self.agent.config().proxy();
            let response = response.map_err(|error| name_error(&request.url, proxy, error))?;
            let status = response.status().as_u16();
            // The client does not send a login where it was led to.
            let is_led_on = request.url.parse().ok().as_ref() != Some(response.get_uri());
            if is_base && !is_led_on {
                self.report_login(login.as_ref(), status);
            }
            if status != 401 || !is_base {
                return Ok(response);
            }
            check_scheme(&response)?;
            refused_user = login.filter(|_| !is_led_on).map(|login| login.user).or(refused_user);
            if attempt == MAX_LOGINS {
                break;
            }
            if is_led_on {
                let found = response.get_uri().to_string();
                if !self.follow(&found) {
                    return Ok(response);
                }
                request.url = found;
                if self.login.is_some() {
                    continue;
                }
            }
            let credentials = self.credentials.as_mut();
            let user = self.user.as_deref();
            self.login = self
                .given_login
                .take()
                .or_else(|| credentials.and_then(|source| source.find_login(&self.base, user)));
            self.is_login_reported = false;
            if self.login.is_none() {
                break;
            }
        }
        Err(ChangeError::Login { url: self.base.clone(), user: refused_user })
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
            self.given_login = None;
            self.headers.clear();
        }
        base.clone_into(&mut self.base);
        true
    }

    /// Tells the source of logins what the server said about one; that it is right, once.
    fn report_login(&mut self, login: Option<&Login>, status: u16) {
        if let (Some(login), Some(source)) = (login, &mut self.credentials) {
            match status {
                401 => source.forget_login(&self.base, login),
                200..=299 if !self.is_login_reported => {
                    source.keep_login(&self.base, login);
                    self.is_login_reported = true;
                }
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

/// Splits the name and the password off a URL.
fn split_url(url: &str) -> (String, Option<String>, Option<String>) {
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
fn check_status(response: Response<Body>) -> Result<Response<Body>, ChangeError> {
    let status = response.status();
    let is_message = content_type(&response).starts_with("application/hg-error");
    if status.is_success() && !is_message {
        return Ok(response);
    }
    let message = if is_message {
        let mut text = Vec::new();
        let mut read = response.into_body().into_reader().take(MESSAGE_LIMIT_BYTES);
        read.read_to_end(&mut text)?;
        String::from_utf8_lossy(&text).trim().to_owned()
    } else {
        let reason = status.canonical_reason().unwrap_or_default();
        let url = response.get_uri().to_string();
        let is_redirect = status.is_redirection();
        let end = if is_redirect { ", and redirects are not followed" } else { "" };
        format!("{} {reason} ({}){end}", status.as_u16(), strip_command(&url))
    };
    Err(ChangeError::Aborted { message })
}

fn content_type(response: &Response<Body>) -> &str {
    let header = response.headers().get("content-type");
    header.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns the decoded bytes of an answer that is a stream. Its type names the form: 0.1 is zlib,
/// 0.2 begins with the name of a compression after its length.
fn decode_stream(
    connection: &HttpConnection,
    response: Response<Body>,
) -> Result<ByteStream<'static>, ChangeError> {
    let found = content_type(&response).to_owned();
    let mut read = connection.body(response);
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
    Err(ChangeError::new_not_mercurial(format!("{} answers with {found}", connection.base)))
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
        self.connection.read_answer(response)
    }

    fn stream(
        &mut self,
        make: &dyn Fn(usize) -> WireCommand,
    ) -> Result<ByteStream<'_>, ChangeError> {
        let mut limit = self.node_limit();
        let mut command = make(limit);
        let response = loop {
            let request = HttpRequest::new(&self.connection.base, &command, &self.capabilities)?;
            let response = self.connection.find_answer(request)?;
            limit /= REDUCTION;
            let smaller = make(limit);
            if !LENGTH_STATUSES.contains(&response.status().as_u16()) || smaller == command {
                break check_status(response)?;
            }
            command = smaller;
        };
        decode_stream(&self.connection, response)
    }

    fn open_url(&mut self, url: &str) -> Option<Result<ByteStream<'static>, ChangeError>> {
        Some(self.connection.open_file(url))
    }

    fn received_bytes(&self) -> ReceivedBytes {
        self.connection.received.clone()
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
        check("https://h/r", "https://h/r", None, None);
        check("https://u@h:8/r/@x", "https://h:8/r/@x", Some("u"), None);
        check("http://u%40d:p%3A@h", "http://h", Some("u@d"), Some("p:"));
        check("nothing", "nothing", None, None);
    }

    #[test]
    fn logins_are_for_one_origin() {
        assert!(has_same_origin("https://h/a?cmd=x", "https://h/b"));
        assert!(!has_same_origin("http://h/a", "https://h/a"));
        assert!(!has_same_origin("https://h:1/a", "https://h/a"));
        assert!(!has_same_origin("h", "h"));
    }
}
