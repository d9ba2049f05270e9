//! Errors of TLS in plain words, with the settings that lead on.

use rustls::{CertificateError, Error, InvalidMessage};

/// The setting that leads on after any certificate that is not accepted.
const NO_CHECK: &str = "http.sslVerify false turns the check off";

/// Returns the reason of a client's error, if it is one of TLS.
pub(super) fn tls_reason(error: &ureq::Error) -> Option<String> {
    let error = match error {
        ureq::Error::Rustls(error) => error,
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref::<Error>()?,
        _ => return None,
    };
    Some(match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the server does not speak TLS; is it http://?".to_owned()
        }
        Error::InvalidMessage(_) | Error::PeerMisbehaved(_) => {
            "the server does not follow the rules of TLS".to_owned()
        }
        Error::InvalidCertificate(error) => certificate_reason(error),
        Error::PeerIncompatible(_) => {
            "the server has no version or cipher of TLS that is supported here".to_owned()
        }
        Error::AlertReceived(_) => "the server refused the connection; it may ask for a \
                                    certificate of this side (http.sslCert, http.sslKey)"
            .to_owned(),
        error => format!("TLS: {error}"),
    })
}

/// Whether a certificate is that of an authority, and a server has it as its own.
pub(super) fn is_authority_fault(error: &CertificateError) -> bool {
    // The type of the inner error is that of another crate.
    matches!(error, CertificateError::Other(error)
        if format!("{error:?}").contains("CaUsedAsEndEntity"))
}

fn certificate_reason(error: &CertificateError) -> String {
    use CertificateError as Fault;
    let fault = match error {
        Fault::UnknownIssuer => {
            return format!(
                "the certificate of the server is not accepted: its authority is not known \
                 (http.sslCAInfo names a file of authorities; {NO_CHECK})"
            );
        }
        Fault::Expired | Fault::ExpiredContext { .. } => "it has expired",
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => "it is not valid yet",
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => "it is for another name",
        Fault::Revoked => "it was revoked",
        error if is_authority_fault(error) => {
            return format!(
                "the certificate of the server is not accepted: it is that of an authority, or \
                 signed by itself, and not in the file of GIT_SSL_CAINFO or http.sslCAInfo \
                 ({NO_CHECK})"
            );
        }
        _ => "it could not be verified",
    };
    format!("the certificate of the server is not accepted: {fault} ({NO_CHECK})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{AlertDescription, PeerIncompatible};
    use std::io;

    fn reason(error: Error) -> String {
        let error = ureq::Error::Io(io::Error::new(io::ErrorKind::InvalidData, error));
        tls_reason(&error).expect("an error of TLS")
    }

    #[test]
    fn certificates_that_are_not_accepted_name_settings() {
        let unknown = reason(CertificateError::UnknownIssuer.into());
        assert!(unknown.contains("http.sslCAInfo names"), "{unknown}");
        for (error, words) in [
            (CertificateError::Expired, "it has expired"),
            (CertificateError::NotValidForName, "it is for another name"),
            (CertificateError::BadSignature, "it could not be verified"),
        ] {
            let text = reason(error.into());
            let start = "the certificate of the server is not accepted: ";
            assert_eq!(text, format!("{start}{words} ({NO_CHECK})"));
        }
    }

    #[test]
    fn no_name_of_the_library_is_shown() {
        let alert = reason(Error::AlertReceived(AlertDescription::CertificateRequired));
        assert!(alert.contains("http.sslCert") && !alert.contains("Required"), "{alert}");
        let version =
            reason(Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13));
        assert!(!version.contains("Tls12"), "{version}");
        let other = ureq::Error::Io(io::Error::other("walrus"));
        assert_eq!(tls_reason(&other), None);
    }
}
