//! Servers whose own certificate is one that the user names.
//!
//! The certificates in `certificates/` have one key. Most are those of authorities, as
//! `openssl req -x509` makes them:
//!
//! | file | for | |
//! |---|---|---|
//! | `named.pem` | the alternative name `localhost` | |
//! | `expired.pem` | the alternative name `localhost` | expired |
//! | `plain.pem` | the common name `localhost` | |
//! | `other_name.pem` | the alternative name `other.invalid` | has the common name `localhost` |
//! | `no_authority.pem` | the common name `localhost` | signed by itself, of no authority |
//! | `leaf.pem` | the alternative name `localhost` | signed by an authority that is in no file |
//! | `old_leaf.pem` | the alternative name `localhost` | likewise, expired |

use crate::servers::{MERCURIAL, answer};
use larder_hg::{HttpSettings, connect_http};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

const NAMED: &str = include_str!("certificates/named.pem");
const PLAIN: &str = include_str!("certificates/plain.pem");
const EXPIRED: &str = include_str!("certificates/expired.pem");
const OTHER_NAME: &str = include_str!("certificates/other_name.pem");
const NO_AUTHORITY: &str = include_str!("certificates/no_authority.pem");
const LEAF: &str = include_str!("certificates/leaf.pem");
const OLD_LEAF: &str = include_str!("certificates/old_leaf.pem");
const KEY: &str = include_str!("certificates/key.pem");

/// Starts a server of a repository with a certificate, and returns its port.
fn serve_with_tls(certificate: &str) -> u16 {
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(tls, stream.unwrap()));
            let mut request = String::new();
            // A client that does not accept the certificate ends the connection.
            while !request.ends_with("\r\n\r\n")
                && stream.read_line(&mut request).is_ok_and(|len| len > 0)
            {}
            drop(stream.get_mut().write_all(&answer("200 OK", MERCURIAL, b"lookup known")));
        }
    });
    port
}

/// Connects to a server with a certificate, and returns the error. `authorities` are the
/// certificates that the user names.
fn connect(certificate: &str, host: &str, authorities: Option<&str>) -> Result<(), String> {
    let port = serve_with_tls(certificate);
    let authorities = authorities.map(|pem| pem.as_bytes().to_vec());
    let settings = HttpSettings { authorities, ..HttpSettings::default() };
    let result = connect_http(&format!("https://{host}:{port}/"), settings);
    result.map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn a_certificate_that_the_user_names_is_accepted() {
    assert_eq!(connect(NAMED, "localhost", Some(NAMED)), Ok(()));
    assert_eq!(connect(PLAIN, "localhost", Some(PLAIN)), Ok(()), "by its common name");
    assert_eq!(connect(NO_AUTHORITY, "localhost", Some(NO_AUTHORITY)), Ok(()), "likewise");
    let both = [EXPIRED, NAMED, PLAIN].concat();
    assert_eq!(connect(NAMED, "localhost", Some(&both)), Ok(()));
}

#[test]
fn a_certificate_of_another_authority_is_accepted_if_the_user_names_it() {
    assert_eq!(connect(LEAF, "localhost", Some(LEAF)), Ok(()));
    let all = [NAMED, OLD_LEAF, LEAF].concat();
    assert_eq!(connect(LEAF, "localhost", Some(&all)), Ok(()));
    check(LEAF, "localhost", Some(NAMED), "its authority is not known");
    check(LEAF, "localhost", Some(OLD_LEAF), "its authority is not known");
    check(LEAF, "127.0.0.1", Some(LEAF), "it is for another name");
    check(OLD_LEAF, "localhost", Some(OLD_LEAF), "it has expired");
}

/// Checks the reason why a certificate is refused.
fn check(certificate: &str, host: &str, authorities: Option<&str>, reason: &str) {
    let error = connect(certificate, host, authorities).unwrap_err();
    assert!(error.contains(reason), "{error}");
}

#[test]
fn other_certificates_of_authorities_are_refused() {
    check(NAMED, "localhost", None, "the certificate of the server is not accepted");
    // The key and the subject are those of a certificate that the user names.
    check(NAMED, "localhost", Some(EXPIRED), "not in the file of GIT_SSL_CAINFO");
    check(NAMED, "localhost", Some(PLAIN), "not in the file of GIT_SSL_CAINFO");
    check(NAMED, "localhost", Some(""), "the certificate of the server is not accepted");
    check(NAMED, "127.0.0.1", Some(NAMED), "it is for another name");
    check(PLAIN, "127.0.0.1", Some(PLAIN), "it is for another name");
    check(NO_AUTHORITY, "127.0.0.1", Some(NO_AUTHORITY), "it is for another name");
    check(EXPIRED, "localhost", Some(EXPIRED), "it has expired");
    // Alternative names go before the common one.
    check(OTHER_NAME, "localhost", Some(OTHER_NAME), "it is for another name");
}
