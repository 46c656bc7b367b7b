//! The CAs by which `verify` checks an analyst's signature: those of today, and retired ones for jobs that this party entered earlier.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use conclave_proto::submission::check_signer;
use conclave_proto::v1::Submission;

/// Folder of the certificates of retired CAs, in the identity folder. Only `verify` reads it: no retired CA admits a job or a
/// connection.
pub(crate) const RETIRED: &str = "retired-ca";

/// The CAs that may have signed an analyst's certificate.
pub(super) struct Authorities {
    current: PathBuf,
    retired: Vec<PathBuf>,
}

impl Authorities {
    /// Lists the CAs of the identity folder and those in `more`, which the owner names.
    ///
    /// # Errors
    /// A message that names the folder that can't be read.
    pub(super) fn of(identity: &Path, more: &[PathBuf]) -> Result<Self, String> {
        let folder = identity.join(RETIRED);
        let mut retired = more.to_vec();
        if folder.is_dir() {
            let unreadable = |e: std::io::Error| format!("{}: {e}", folder.display());
            let files = std::fs::read_dir(&folder).map_err(unreadable)?;
            let mut found: Vec<PathBuf> =
                files.map(|file| file.map(|file| file.path())).collect::<Result<_, _>>().map_err(unreadable)?;
            found.retain(|file| file.extension().is_some_and(|extension| extension == "pem"));
            found.sort();
            retired.extend(found);
        }
        Ok(Self { current: identity.join("ca.pem"), retired })
    }

    /// Checks that a CA signed the analyst's certificate, which was valid when this party entered the job at `entered`. A retired CA
    /// counts for entered jobs alone. Returns the file of the retired CA that signed it, if it was one.
    ///
    /// # Errors
    /// A message.
    pub(super) fn check(&self, signed: &Submission, entered: Option<SystemTime>) -> Result<Option<&Path>, String> {
        let by = |ca: &Path| {
            let pem = std::fs::read_to_string(ca).map_err(|e| format!("{}: {e}", ca.display()))?;
            check_signer(signed, &pem, entered.unwrap_or_else(SystemTime::now)).map_err(|fault| fault.message)
        };
        let Err(why) = by(&self.current) else { return Ok(None) };
        if entered.is_none() {
            return Err(why);
        }
        let mut unreadable = None;
        for ca in &self.retired {
            match by(ca) {
                Ok(()) => return Ok(Some(ca)),
                Err(fault) if !ca.is_file() => unreadable = unreadable.or(Some(fault)),
                Err(_) => {}
            }
        }
        let hint =
            "if the CA was replaced since, name the file of the retired one with --ca, or put it into the identity folder's";
        Err(unreadable.unwrap_or_else(|| format!("{why}; {hint} {RETIRED}/")))
    }
}
