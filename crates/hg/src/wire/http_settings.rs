//! How servers are reached over HTTP.

use super::credentials::CredentialSource;
use super::speed_limit::SpeedLimit;
use super::stream_use::StreamUse;
use super::tls_connector::agent_with_tls;
use super::user_verifier::UserVerifier;
use crate::revision::ChangeError;
use crate::url_authority::check_port;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ALL_VERSIONS, ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};
use ureq::{Agent, Proxy};

/// Some hosts know clients of Mercurial by this beginning.
const USER_AGENT: &str = "mercurial/proto-1.0 (Larder)";

/// How many redirects of one request are followed.
const MAX_REDIRECTS: u32 = 10;

/// The name of a setting in messages.
const CLIENT_CERTIFICATE: &str = "the client certificate";

/// How servers are reached.
#[derive(Default)]
pub struct HttpSettings {
    /// The URL of a proxy; `None` for direct connections.
    pub proxy: Option<String>,
    /// The machines that are reached without the proxy: names, with commas between, each of which
    /// also stands for the machines below it; `*` stands for all.
    pub no_proxy: String,
    /// Certificates of authorities in PEM, in place of those of the system. A server whose own
    /// certificate is among them is accepted, too, whoever signed it.
    pub authorities: Option<Vec<u8>>,
    /// Whether certificates are accepted without a check.
    pub accepts_any_certificate: bool,
    /// The certificate of this side, others that lead to its authority, and its private key, in
    /// PEM.
    pub client_certificate: Option<Vec<u8>>,
    /// Names and values of headers for the server of the repository.
    pub headers: Vec<(String, String)>,
    /// Whether a server that leads to another URL is an error.
    pub refuses_redirects: bool,
    /// How long a connection may take to be made, and a server may be silent.
    pub timeout: Option<Duration>,
    /// The least speed of a server; `None`: any.
    pub speed_limit: Option<SpeedLimit>,
    /// When the files of a store are taken in place of changes.
    pub stream_use: StreamUse,
    /// Where names and passwords come from.
    pub credentials: Option<Box<dyn CredentialSource>>,
}

impl HttpSettings {
    /// Creates the client for the server of a URL.
    pub(super) fn agent(&self, base: &str) -> Result<Agent, ChangeError> {
        check_port(base)?;
        let proxy = match &self.proxy {
            Some(_) if is_in_list(base, &self.no_proxy) => None,
            // The client would leave it out, and show the server where the user is.
            Some(url) if is_socks(url) => {
                return Err(ChangeError::new_unsupported("a proxy of the kind SOCKS"));
            }
            Some(url) => {
                check_port(url).map_err(|error| unreadable("the proxy", error))?;
                Some(Proxy::new(url).map_err(|error| unreadable("the proxy", error))?)
            }
            None => None,
        };
        let own = self.client_certificate.as_deref().map(ClientIdentity::parse).transpose()?;
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .client_cert(own.as_ref().map(ClientIdentity::to_client_cert))
            .disable_verification(self.accepts_any_certificate)
            .build();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(if self.refuses_redirects { 0 } else { MAX_REDIRECTS })
            .proxy(proxy)
            .tls_config(tls)
            .user_agent(USER_AGENT)
            .accept("application/mercurial-0.1")
            .accept_encoding("")
            .timeout_connect(self.timeout)
            .timeout_per_read(self.timeout)
            .build();
        match &self.authorities {
            Some(pem) if !self.accepts_any_certificate => {
                Ok(agent_with_tls(config, user_tls(pem, own)?))
            }
            _ => Ok(config.new_agent()),
        }
    }
}

/// Whether the URL of a proxy has a scheme of the kind SOCKS. Without a scheme it is that of a
/// proxy for HTTP.
fn is_socks(proxy: &str) -> bool {
    let scheme = proxy.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    scheme.is_some_and(|scheme| scheme.starts_with("socks"))
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

/// Returns the error of a setting that cannot be used.
fn unreadable(name: &str, error: impl std::fmt::Display) -> ChangeError {
    ChangeError::Settings { what: format!("{name}: {error}") }
}

/// Returns how TLS is spoken where the user names certificates.
fn user_tls(pem: &[u8], own: Option<ClientIdentity>) -> Result<ClientConfig, ChangeError> {
    let name = "certificates of authorities";
    let certificates = parse_certificates(pem, name)?;
    let provider = Arc::new(default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(ALL_VERSIONS)
        .map_err(|error| unreadable("TLS", error))?;
    let builder = match UserVerifier::new(certificates, &provider) {
        Some(verifier) => builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)),
        // No server is accepted then.
        None => builder.with_root_certificates(RootCertStore::empty()),
    };
    Ok(match own {
        Some(ClientIdentity { chain, key, .. }) => builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| unreadable(CLIENT_CERTIFICATE, error))?,
        None => builder.with_no_client_auth(),
    })
}

fn parse_certificates(pem: &[u8], name: &str) -> Result<Vec<CertificateDer<'static>>, ChangeError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    certificates.map_err(|error| unreadable(name, error))
}

/// A certificate of this side, others that lead to its authority, and its private key.
struct ClientIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// The key in the form of the client.
    client_key: PrivateKey<'static>,
}

impl ClientIdentity {
    /// Reads a certificate and its key. The client takes only what belongs together.
    fn parse(pem: &[u8]) -> Result<ClientIdentity, ChangeError> {
        let chain = parse_certificates(pem, CLIENT_CERTIFICATE)?;
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| match &error {
            rustls::pki_types::pem::Error::NoItemsFound => {
                unreadable(CLIENT_CERTIFICATE, "there is no private key that is not encrypted")
            }
            error => unreadable(CLIENT_CERTIFICATE, error),
        })?;
        CertifiedKey::from_der(chain.clone(), key.clone_key(), &default_provider())
            .map_err(|error| unreadable(CLIENT_CERTIFICATE, error))?;
        let client_key = PrivateKey::from_pem(pem);
        let client_key = client_key.map_err(|error| unreadable(CLIENT_CERTIFICATE, error))?;
        Ok(ClientIdentity { chain, key, client_key })
    }

    /// Returns the form that the client has for it.
    fn to_client_cert(&self) -> ClientCert {
        let chain = self.chain.iter().map(|found| Certificate::from_der(found).to_owned());
        ClientCert::new_with_certs(&chain.collect::<Vec<_>>(), self.client_key.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn proxies_that_cannot_be_used_are_refused() {
        let agent = |proxy: &str| {
            let settings =
                HttpSettings { proxy: Some(proxy.to_owned()), ..HttpSettings::default() };
            settings.agent("http://h/").map(drop).map_err(|error| error.to_string())
        };
        for proxy in ["http://h:3128", "socks-gw.local:3199", "http://socks:3199"] {
            assert_eq!(agent(proxy), Ok(()), "{proxy}");
        }
        for proxy in ["socks5://h:9050", "SOCKS4A://h", "socks5h://h:9050"] {
            let expected = "not supported: a proxy of the kind SOCKS";
            assert_eq!(agent(proxy), Err(expected.to_owned()), "{proxy}");
        }
        assert!(agent("http://h:99999").unwrap_err().contains("the port of http://h:99999"));
        let message = HttpSettings::default().agent("http://h:99999/").map(drop).unwrap_err();
        assert_eq!(message.to_string(), "not supported: the port of http://h:99999/");
    }

    /// A certificate that expires in 2126, and its key.
    const OWN_CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBejCCAR+gAwIBAgIUBG2lmEXS1QDDR7DKMs3oSNkBIEowCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbGFyZGVyMCAXDTI2MTEyODE3NDgzNFoYDzIxMjYxMTA0MTc0
ODM0WjARMQ8wDQYDVQQDDAZsYXJkZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAT07yYDaJf0/k/d7z+ol5mHQ+JauAW0Yfu+0f4rMRWlwwcopxXCAZwp7azLVGno
EJx2f7HdbK4HwmbJ69XwsY5go1MwUTAdBgNVHQ4EFgQU66FrVnT4dfCYGs3urGhP
Qk/+RcUwHwYDVR0jBBgwFoAU66FrVnT4dfCYGs3urGhPQk/+RcUwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAwjwLkLuP5sMiUEOL/WJQxOven8rU
/f1nGvhj02rMfRICIQCjdlSix//M4V7wPOkSES0YVtwDpYY7Y/3u4cpxmnShEw==
-----END CERTIFICATE-----
";
    const OWN_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgrTfAxBNX1ev99JNM
/wVh7Yna4DKZ1eKGRoVIMim5S3mhRANCAAT07yYDaJf0/k/d7z+ol5mHQ+JauAW0
Yfu+0f4rMRWlwwcopxXCAZwp7azLVGnoEJx2f7HdbK4HwmbJ69XwsY5g
-----END PRIVATE KEY-----
";
    /// The key of another certificate.
    const OTHER_KEY: &str = "\
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIOru3T92xXLFUO6kcLIN0A239mFZQwKOIdB7wKhXv89yoAoGCCqGSM49
AwEHoUQDQgAETe2YXPiMzJTjzTFhnsU8DyuYBtzYu0cRndSdp5aWSyKSfKAJOVKX
Gl4C9vEPC+J7+uhq5JKsIzvY/BCNgSx2Eg==
-----END EC PRIVATE KEY-----
";

    #[test]
    fn a_certificate_has_its_key() {
        let parse = |pem: &[&str]| match ClientIdentity::parse(pem.concat().as_bytes()) {
            Ok(found) => found.to_client_cert().certs().len().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(parse(&[OWN_CERTIFICATE, OWN_KEY]), "1");
        assert_eq!(parse(&[OWN_KEY, OWN_CERTIFICATE, OWN_CERTIFICATE]), "2");
        let message = "the client certificate: ";
        let no_key = "there is no private key that is not encrypted";
        assert_eq!(parse(&[OWN_CERTIFICATE]), format!("{message}{no_key}"));
        for pem in [&[OWN_CERTIFICATE, OTHER_KEY][..], &[OWN_KEY], &[OWN_CERTIFICATE, "-----BEGIN"]]
        {
            let text = parse(pem);
            assert!(text.starts_with(message), "{text}");
        }
    }
}
