//! The jobs of a script, each signed once by an analyst of its own for all lives of the process that is asked.

use std::sync::LazyLock;
use std::time::SystemTime;

use conclave_proto::ca::{self, Validity};
use conclave_proto::identity::{PeerIdentity, Role};
use conclave_proto::v1;

use super::PARTY;
use crate::recorder::signed_job;

/// Number of jobs.
pub const JOBS: usize = 2;

struct Signed {
    ca_pem: String,
    jobs: [v1::OpenJob; JOBS],
}

static SIGNED: LazyLock<Signed> = LazyLock::new(|| {
    let validity = || Validity { now: SystemTime::now(), days: 10 };
    let authority = ca::create_ca("crash tests", validity()).expect("a CA");
    let jobs = std::array::from_fn(|job| {
        let folder = tempfile::tempdir().expect("a folder");
        let name = PeerIdentity::new(Role::Analyst, &format!("analyst-{job}")).expect("a name");
        let issued = ca::issue(&authority, &name, &[], validity()).expect("a certificate");
        for (file, text) in [("certificate.pem", &issued.pem), ("key.pem", &issued.key_pem), ("ca.pem", &authority.pem)] {
            std::fs::write(folder.path().join(file), text).expect("a file");
        }
        signed_job(folder.path(), &spec(job))
    });
    Signed { ca_pem: authority.pem, jobs }
});

/// The CA that signed the analysts' certificates.
pub fn ca_pem() -> &'static str {
    &SIGNED.ca_pem
}

/// A job as a coordinator shows it.
pub fn open_job(job: usize) -> v1::OpenJob {
    SIGNED.jobs[job].clone()
}

/// A job's id.
pub fn id(job: usize) -> &'static str {
    &SIGNED.jobs[job].job
}

/// Which job has this id.
pub fn number(id: &str) -> Option<usize> {
    SIGNED.jobs.iter().position(|job| job.job == id)
}

/// One job's text.
pub fn spec(job: usize) -> String {
    format!(
        "name = \"mean {job}\"\nalgorithm = \"penalty\"\nparties = [\"{PARTY}\"]\n[model]\nkind = \"gaussian_mean\"\n\
         outcome = \"height\"\nsd = 10.0\n[columns]\nheight = {{ min = 100, max = 200 }}\n[prior]\ndefault = \"normal(0, 1)\"\n\
         [sampler]\nchains = 2\ndraws = 10\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\nnoise_sd = 1.0\n"
    )
}
