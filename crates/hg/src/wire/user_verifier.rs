//! The check of a server's certificate by the certificates that the user names.
//!
//! Those are authorities, as a rule, and the library checks servers by them. It refuses a server
//! whose own certificate the user names, if another authority signed it, or if it is marked as that
//! of an authority, which is how `openssl req -x509` makes them. git and curl accept it, and so
//! does this check, because a certificate that is trusted by its bytes needs no authority. Its
//! dates and its name are checked.

use super::tls_error::is_authority_fault;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::net::IpAddr;
use std::sync::Arc;

/// The identifier of the attribute "common name" (RFC 5280, appendix A.1), in DER.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// The tag of an object identifier in DER.
const IDENTIFIER_TAG: u8 = 0x06;

/// Checks servers by certificates that the user names.
#[derive(Debug)]
pub(super) struct UserVerifier {
    certificates: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
    inner: Arc<WebPkiServerVerifier>,
}

impl UserVerifier {
    /// Returns `None` if none of the certificates can be read.
    pub(super) fn new(
        certificates: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Option<UserVerifier> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        let builder =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let algorithms = provider.signature_verification_algorithms;
        Some(UserVerifier { certificates, algorithms, inner: builder.build().ok()? })
    }

    /// Checks a certificate that the user names, whoever signed it.
    fn verify_known(
        &self,
        known: &CertificateDer<'static>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let mut roots = RootCertStore::empty();
        roots.add(known.clone())?;
        let certificate = ParsedCertificate::try_from(known)?;
        let algorithms = self.algorithms.all;
        let verified =
            verify_server_cert_signed_by_trust_anchor(&certificate, &roots, &[], now, algorithms);
        match verified {
            // The library looks at the dates first, and for an issuer last.
            Err(Error::InvalidCertificate(fault))
                if fault == CertificateError::UnknownIssuer || is_authority_fault(&fault) => {}
            verified => verified?,
        }
        check_name(known, &certificate, name)
    }
}

impl ServerCertVerifier for UserVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let mut certificates = self.certificates.iter();
        if let Some(known) = certificates.find(|known| known.as_ref() == end_entity.as_ref()) {
            self.verify_known(known, server_name, now)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Checks the name of a server: by the alternative names of its certificate or, without any, by
/// the common name, which is where `openssl req -x509` puts it.
fn check_name(
    certificate: &CertificateDer<'_>,
    parsed: &ParsedCertificate<'_>,
    name: &ServerName<'_>,
) -> Result<(), Error> {
    let result = verify_server_name(parsed, name);
    match &result {
        Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            presented,
            ..
        })) if presented.is_empty() && has_common_name(certificate, name) => Ok(()),
        _ => result,
    }
}

/// Whether the last common name of a certificate is the name of a server.
fn has_common_name(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> bool {
    let mut store = RootCertStore::empty();
    if store.add(certificate.clone().into_owned()).is_err() {
        return false;
    }
    let subject = store.roots.first().map_or(&[][..], |anchor| anchor.subject.as_ref());
    let found = common_names(subject).last().map(str::to_owned);
    let wanted = match name {
        ServerName::DnsName(name) => name.as_ref().trim_end_matches('.').to_owned(),
        ServerName::IpAddress(address) => IpAddr::from(*address).to_string(),
        _ => return false,
    };
    found.is_some_and(|found| found.eq_ignore_ascii_case(&wanted))
}

/// Returns the common names of a subject (RFC 5280, 4.1.2.4).
fn common_names(subject: &[u8]) -> impl Iterator<Item = &str> {
    let sets = DerValues(subject);
    let attributes = sets.flat_map(|(_, set)| DerValues(set));
    attributes.filter_map(|(_, attribute)| {
        let mut parts = DerValues(attribute);
        let is_name = parts.next()? == (IDENTIFIER_TAG, COMMON_NAME.as_slice());
        let (_, text) = parts.next().filter(|_| is_name)?;
        std::str::from_utf8(text).ok()
    })
}

/// The tags and the contents of values in DER, one after the other (X.690, 8.1). Damage ends them.
struct DerValues<'a>(&'a [u8]);

impl<'a> Iterator for DerValues<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (len, rest) = match *self.0 {
            [_, len @ 0..=0x7f, ref rest @ ..] => (usize::from(len), rest),
            [_, 0x81, len, ref rest @ ..] => (usize::from(len), rest),
            [_, 0x82, high, low, ref rest @ ..] => {
                (usize::from(high) << 8 | usize::from(low), rest)
            }
            _ => return None,
        };
        let tag = *self.0.first()?;
        let (content, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some((tag, content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_names_are_read_from_subjects() {
        let subject = b"\x31\x0a\x30\x08\x06\x03\x55\x04\x0a\x0c\x01o\
            \x31\x81\x0b\x30\x09\x06\x03\x55\x04\x03\x0c\x02h1\
            \x31\x82\x00\x0b\x30\x09\x06\x03\x55\x04\x03\x13\x02h2";
        let found: Vec<&str> = common_names(subject).collect();
        assert_eq!(found, ["h1", "h2"]);
        for len in 0..subject.len() {
            assert!(common_names(&subject[..len]).count() < 2);
        }
    }
}
