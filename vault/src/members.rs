//! Decides whose jobs this party opens: those that an analyst of its own consortium has signed who is not revoked.
//!
//! The coordinator's claim about the analyst is not trusted. The policy's limits and the ledger's totals by analyst go by the name in a
//! certificate that this party's own CA has signed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::revoked::RevokedFile;
use conclave_proto::{submission, v1};

/// The consortium as this party knows it; clones share it.
#[derive(Debug, Clone)]
pub struct Members(Arc<dyn Admission>);

/// Decides whose jobs are opened.
trait Admission: std::fmt::Debug + Send + Sync {
    /// See [`Members::admit`].
    fn admit(&self, request: &v1::OpenJob, entered: bool) -> Result<(), NotAdmitted>;
}

/// No CA: no job is opened.
#[derive(Debug)]
struct Nobody;

/// The files of the CA and of revoked certificates.
#[derive(Debug)]
struct Consortium {
    ca: PathBuf,
    revoked: Option<RevokedFile>,
}

impl Default for Members {
    /// Admits no one.
    fn default() -> Self {
        Self(Arc::new(Nobody))
    }
}

/// Error: a job is not its analyst's.
#[derive(Debug)]
pub(crate) enum NotAdmitted {
    /// The job is not signed, or its signature does not count here.
    Unsigned(Fault),
    /// The job's signer has been revoked since.
    Revoked(Fault),
}

impl Members {
    /// Admits analysts whose certificates the CA in the identity folder has signed, except the revoked.
    pub fn of(identity: &Path, revoked: Option<&Path>) -> Self {
        Self(Arc::new(Consortium { ca: identity.join("ca.pem"), revoked: revoked.map(RevokedFile::at) }))
    }

    /// Checks that the named analyst signed the job, under the id that follows from the signature. A job that is `entered` in the ledger
    /// was signed while its certificate was valid: a later expiry ends no job.
    pub(crate) fn admit(&self, request: &v1::OpenJob, entered: bool) -> Result<(), NotAdmitted> {
        self.0.admit(request, entered)
    }
}

impl Admission for Nobody {
    fn admit(&self, _: &v1::OpenJob, _: bool) -> Result<(), NotAdmitted> {
        let fault = Fault::new(ErrorCode::Unauthenticated, "the party knows no consortium whose jobs it could open");
        Err(NotAdmitted::Unsigned(fault))
    }
}

impl Admission for Consortium {
    fn admit(&self, request: &v1::OpenJob, entered: bool) -> Result<(), NotAdmitted> {
        let Self { ca, revoked } = self;
        let id = submission::check(request.submission.as_ref(), &request.analyst, &request.spec_toml)
            .map_err(NotAdmitted::Unsigned)?;
        if id != request.job {
            let fault = Fault::new(ErrorCode::Unauthenticated, "the job's id is not the one that its analyst signed");
            return Err(NotAdmitted::Unsigned(fault));
        }
        let Some(signed) = &request.submission else { return Ok(()) };
        if let Some(revoked) = revoked {
            revoked.read().and_then(|list| list.check_pem(&signed.certificate)).map_err(|fault| {
                tracing::warn!(job = %id, "{fault}");
                // Only the owner can repair an unreadable file, and only the owner may know of it.
                let fault = match fault.code {
                    ErrorCode::Unauthenticated => Fault { code: ErrorCode::Revoked, ..fault },
                    _ => Fault::new(ErrorCode::Unreachable, "its owner has to repair its list of revoked certificates"),
                };
                NotAdmitted::Revoked(fault)
            })?;
        }
        if entered {
            return Ok(());
        }
        let unreadable = |e: std::io::Error| {
            tracing::error!("{}: {e}", ca.display());
            Fault::new(ErrorCode::Internal, "the party can't read its CA's certificate")
        };
        std::fs::read_to_string(ca)
            .map_err(unreadable)
            .and_then(|ca| submission::check_signer(signed, &ca, SystemTime::now()))
            .map_err(NotAdmitted::Unsigned)
    }
}

#[cfg(any(test, feature = "test-util"))]
mod testing {
    use super::*;

    /// Anybody's word is taken, for tests of what comes after.
    #[derive(Debug)]
    struct Anyone;

    impl Admission for Anyone {
        fn admit(&self, _: &v1::OpenJob, _: bool) -> Result<(), NotAdmitted> {
            Ok(())
        }
    }

    impl Members {
        /// Admits every job, signed or not.
        pub fn anyone() -> Self {
            Self(Arc::new(Anyone))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_consortium_nobodys_jobs_are_opened() {
        assert!(matches!(Members::default().admit(&v1::OpenJob::default(), true), Err(NotAdmitted::Unsigned(_))));
    }
}
