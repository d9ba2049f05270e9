//! Requests: a command and its arguments in a URL, headers and a body.

use super::capabilities::Capabilities;
use super::command::WireCommand;
use super::credentials::Login;
use crate::percent;
use crate::revision::ChangeError;
use ureq::http::Response;
use ureq::{Agent, Body};

/// The most headers with arguments. Servers in Python accept about 100 headers in all.
const MAX_ARGUMENT_HEADERS: usize = 80;

/// The most bytes of all these headers: proxies accept requests of 32 KB.
const MAX_ARGUMENT_BYTES: usize = 24 << 10;

/// The bytes of a header with arguments that are not part of its value.
const HEADER_OVERHEAD_BYTES: usize = "X-HgArg-000: \r\n".len();

/// The bytes that a node takes in arguments, with the space after it.
const NODE_BYTES: usize = 41;

/// Returns how many nodes the arguments of one request may have.
pub(super) fn node_limit(capabilities: &Capabilities) -> usize {
    if capabilities.has("httppostargs") {
        return 1 << 16;
    }
    match capabilities.number("httpheader") {
        // The other arguments take less than a header of the usual 1,024 bytes.
        Some(limit) => {
            let headers = (MAX_ARGUMENT_BYTES / limit.max(1)).clamp(1, MAX_ARGUMENT_HEADERS);
            let room = limit.min(MAX_ARGUMENT_BYTES).saturating_sub(HEADER_OVERHEAD_BYTES);
            (headers * room).saturating_sub(1024) / NODE_BYTES
        }
        // Servers and proxies accept URLs of 8,000 bytes.
        None => 6000 / NODE_BYTES,
    }
}

/// A request, which may be sent again with a login.
pub(super) struct HttpRequest {
    pub(super) url: String,
    headers: Vec<(String, String)>,
    /// The body of a POST.
    body: Option<Vec<u8>>,
}

impl HttpRequest {
    /// Creates the request of a file.
    pub(super) fn of_file(url: &str) -> HttpRequest {
        let headers = vec![("Accept".to_owned(), "*/*".to_owned())];
        HttpRequest { url: url.to_owned(), headers, body: None }
    }

    /// Creates the request of a file from a byte on, if it has this mark still.
    pub(super) fn of_rest(url: &str, position: u64, mark: &str) -> HttpRequest {
        let mut request = HttpRequest::of_file(url);
        request.headers.push(("Range".to_owned(), format!("bytes={position}-")));
        request.headers.push(("If-Range".to_owned(), mark.to_owned()));
        request
    }

    /// Creates the request of a command.
    pub(super) fn new(
        base: &str,
        command: &WireCommand,
        capabilities: &Capabilities,
    ) -> Result<HttpRequest, ChangeError> {
        let mut request = HttpRequest {
            url: format!("{base}?cmd={}", command.name),
            headers: protocol_headers(capabilities),
            body: None,
        };
        let mut arguments = String::new();
        for (name, value) in command.all_arguments() {
            if !arguments.is_empty() {
                arguments.push('&');
            }
            let value = percent::encode_argument(value);
            arguments.extend([name, "=", &String::from_utf8_lossy(&value)]);
        }
        if arguments.is_empty() {
            return Ok(request);
        }
        if capabilities.has("httppostargs") {
            request.headers.push(("X-HgArgs-Post".to_owned(), arguments.len().to_string()));
            let media_type = "application/mercurial-0.1";
            request.headers.push(("Content-Type".to_owned(), media_type.to_owned()));
            request.body = Some(arguments.into_bytes());
        } else if let Some(limit) = capabilities.number("httpheader") {
            request.add_argument_headers(&arguments, limit)?;
        } else {
            request.url = format!("{}&{arguments}", request.url);
        }
        Ok(request)
    }

    /// Cuts arguments into headers of at most `limit` bytes, names included.
    fn add_argument_headers(&mut self, arguments: &str, limit: usize) -> Result<(), ChangeError> {
        let room = limit.saturating_sub(HEADER_OVERHEAD_BYTES).max(1);
        if arguments.len().div_ceil(room) > MAX_ARGUMENT_HEADERS {
            let len = arguments.len();
            return Err(ChangeError::new_unsupported(format!(
                "arguments of {len} bytes in headers"
            )));
        }
        let mut names = Vec::new();
        // The encoded arguments are ASCII.
        for (value, number) in arguments.as_bytes().chunks(room).zip(1..) {
            let name = format!("X-HgArg-{number}");
            names.push(name.clone());
            self.headers.push((name, String::from_utf8_lossy(value).into_owned()));
        }
        self.headers.push(("Vary".to_owned(), names.join(",")));
        Ok(())
    }

    /// Sends the request with the headers of the user and a login, which goes before a header that
    /// is one, too.
    pub(super) fn send(
        &self,
        agent: &Agent,
        login: Option<&Login>,
        user_headers: &[(String, String)],
    ) -> Result<Response<Body>, ureq::Error> {
        let authorization = login.map(|login| ("Authorization".to_owned(), login.header_value()));
        let is_kept = |(name, _): &&(String, String)| {
            authorization.is_none() || !name.eq_ignore_ascii_case("Authorization")
        };
        let user_headers = user_headers.iter().filter(is_kept);
        let headers = self.headers.iter().chain(user_headers).chain(&authorization);
        match &self.body {
            Some(body) => {
                let mut request = agent.post(&self.url);
                for (name, value) in headers {
                    request = request.header(name, value);
                }
                request.send(body)
            }
            None => {
                let mut request = agent.get(&self.url);
                for (name, value) in headers {
                    request = request.header(name, value);
                }
                request.call()
            }
        }
    }
}

/// Tells a server which forms of answers are understood.
fn protocol_headers(capabilities: &Capabilities) -> Vec<(String, String)> {
    if !capabilities.has("httpmediatype") {
        return Vec::new();
    }
    let is_named = capabilities.has_word("httpmediatype", "0.2tx");
    let forms = if is_named { "0.1 0.2 comp=zstd,zlib,none,bzip2" } else { "0.1" };
    vec![("X-HgProto-1".to_owned(), forms.to_owned())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(capabilities: &str, value: &str) -> Result<HttpRequest, ChangeError> {
        let arguments = vec![("key", value.as_bytes().to_vec()), ("a", b"/ ".to_vec())];
        let command = WireCommand::new("lookup", arguments);
        HttpRequest::new("http://h/r", &command, &Capabilities::parse(capabilities.as_bytes()))
    }

    #[test]
    fn arguments_are_in_headers_of_limited_size() {
        let limited =
            request("httpheader=20 httpmediatype=0.1rx,0.1tx,0.2tx", "value").expect("few");
        assert_eq!(limited.url, "http://h/r?cmd=lookup");
        let headers: Vec<_> =
            limited.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let expected = [
            "X-HgProto-1: 0.1 0.2 comp=zstd,zlib,none,bzip2",
            "X-HgArg-1: a=%2F",
            "X-HgArg-2: +&key",
            "X-HgArg-3: =valu",
            "X-HgArg-4: e",
            "Vary: X-HgArg-1,X-HgArg-2,X-HgArg-3,X-HgArg-4",
        ];
        assert_eq!(headers, expected);
        assert!(request("httpheader=1024", &"x".repeat(100_000)).is_err());
    }

    #[test]
    fn arguments_are_in_the_body_or_the_query() {
        let body = request("httppostargs httpheader=1024", "v").expect("a body");
        assert_eq!(body.body.as_deref(), Some(b"a=%2F+&key=v".as_slice()));
        assert_eq!(body.headers.first(), Some(&("X-HgArgs-Post".to_owned(), "12".to_owned())));
        let query = request("", "v").expect("a query");
        assert_eq!(query.url, "http://h/r?cmd=lookup&a=%2F+&key=v");
        assert!(query.headers.is_empty());
    }

    #[test]
    fn as_many_nodes_as_allowed_fit_in_a_request() {
        for text in ["httpheader=1024", "httpheader=64", "httpheader=70000", ""] {
            let capabilities = Capabilities::parse(text.as_bytes());
            let nodes = vec![crate::object_id::Node::NULL; node_limit(&capabilities)];
            let nodes = super::super::command::join_nodes(&nodes);
            let bundle = ("bundlecaps", vec![b'x'; 300]);
            let command =
                WireCommand::with_options("getbundle", vec![("heads", nodes)], vec![bundle]);
            let request = HttpRequest::new("http://h/", &command, &capabilities).expect("few");
            let len: usize =
                request.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
            assert!(len + request.url.len() < 26 << 10, "{text}: {len}");
        }
    }
}
