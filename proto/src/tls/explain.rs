//! Messages for TLS errors, with the remedy.

use std::error::Error as StdError;
use std::io;

use rustls::{AlertDescription, CertificateError, Error};

use crate::chain::{EXPIRED, NOT_YET_VALID, UNKNOWN_ISSUER, WRONG_PURPOSE};
use crate::error::{ErrorCode, Fault};

/// Searches an error and its sources for one of our faults or a TLS error, and returns the fault for it.
pub fn explain_in_chain(error: &(dyn StdError + 'static)) -> Option<Fault> {
    let mut next = Some(error);
    while let Some(here) = next {
        if let Some(fault) = here.downcast_ref::<Fault>() {
            return Some(fault.clone());
        }
        if let Some(tls) = here.downcast_ref::<Error>() {
            return Some(explain(tls));
        }
        // An io::Error's source() skips the error that it wraps.
        if let Some(inner) = here.downcast_ref::<io::Error>().and_then(io::Error::get_ref)
            && let Some(found) = explain_in_chain(inner)
        {
            return Some(found);
        }
        next = here.source();
    }
    None
}

/// Returns the fault for a TLS error, seen from the client's side.
pub(crate) fn explain(error: &Error) -> Fault {
    match error {
        Error::InvalidCertificate(CertificateError::Other(other)) => {
            let reason = other.0.downcast_ref::<Fault>().map_or_else(|| other.to_string(), |fault| fault.message.clone());
            refused(format!("the server's certificate is refused: {reason}"))
        }
        Error::InvalidCertificate(why) => refused(format!("the server's certificate {}", describe(why))),
        Error::AlertReceived(alert) => explain_alert(*alert),
        Error::NoCertificatesPresented => refused("the server presented no certificate".to_owned()),
        Error::InvalidMessage(_) => {
            Fault::new(ErrorCode::Unreachable, "the server at this address does not speak TLS: check the URL and the port")
        }
        other => Fault::new(ErrorCode::Unreachable, format!("the TLS connection failed: {other}")),
    }
}

/// Returns a certificate's error and remedy as a phrase that follows the certificate's name.
pub(crate) fn describe(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => UNKNOWN_ISSUER.to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => EXPIRED.to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => NOT_YET_VALID.to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "is not for the host {:?} in the URL but for {}: use one of those in the URL, or have the \
             coordinator's certificate issued for this host",
            expected.to_str(),
            presented.join(", ")
        ),
        CertificateError::NotValidForName => "is not for the host in the URL: use the coordinator's own host name".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => WRONG_PURPOSE.to_owned(),
        CertificateError::Revoked => "has been revoked".to_owned(),
        other => format!("is not accepted ({other})"),
    }
}

fn explain_alert(alert: AlertDescription) -> Fault {
    let reason = match alert {
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            "it requires a certificate and received none: check certificate.pem and key.pem of the identity folder"
        }
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "this identity's certificate was not signed by the coordinator's CA: check with `conclave ca show` that \
             both ends hold the same consortium's ca.pem"
        }
        AlertDescription::CertificateExpired => {
            "this identity's certificate has expired: have a new one signed with `conclave ca sign`"
        }
        AlertDescription::CertificateRevoked => "this identity's certificate has been revoked",
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::AccessDenied => {
            "it does not accept this identity's certificate: have one issued with `conclave ca sign` by the \
             coordinator's CA"
        }
        other => {
            return Fault::new(ErrorCode::Unreachable, format!("the coordinator closed the TLS connection ({other:?})"));
        }
    };
    refused(format!("the coordinator refused the connection: {reason}"))
}

fn refused(message: String) -> Fault {
    Fault::new(ErrorCode::Unauthenticated, message)
}
