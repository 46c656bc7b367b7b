//! The jobs of a script, each signed once by its own analyst and used for all lives of the queried process.

use std::sync::LazyLock;
use std::time::SystemTime;

use conclave_common::job::JobSpec;
use conclave_common::query::QueryTerms;
use conclave_privacy::accounting::{BlockTerms, Budget, PrivacyUnit, Spent};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::secagg::MaskSecret;
use conclave_proto::ca::{self, Validity};
use conclave_proto::identity::{PeerIdentity, Role};
use conclave_proto::tls::IdentityDir;
use conclave_proto::{mask_key, roster, v1};

use super::PARTY;
use super::session::points;
use crate::recorder::signed_job;

/// Number of jobs: the first two are local, the next two have masked answers, and the last one makes subsampled releases.
pub const JOBS: usize = 5;

/// The job with subsampled releases, in places of blocks.
pub const SAMPLED: usize = 4;

/// The parties of masked jobs other than the queried one.
pub const OTHERS: [&str; 2] = ["hospital-b", "hospital-c"];

struct Signed {
    /// Contents of the party's folder: the CA's certificate, its own certificate and key, and the others' certificates.
    files: Vec<(String, String)>,
    jobs: [v1::OpenJob; JOBS],
    /// The other parties' signed mask keys, for each job.
    others: [Vec<v1::RosterEntry>; JOBS],
}

static SIGNED: LazyLock<Signed> = LazyLock::new(|| {
    let validity = || Validity { now: SystemTime::now(), days: 10 };
    let authority = ca::create_ca("crash tests", validity()).expect("a CA");
    let identity = |role, name: &str| {
        let issued =
            ca::issue(&authority, &PeerIdentity::new(role, name).expect("a name"), &[], validity()).expect("a certificate");
        let folder = tempfile::tempdir().expect("a folder");
        for (file, text) in [("certificate.pem", &issued.pem), ("key.pem", &issued.key_pem), ("ca.pem", &authority.pem)] {
            std::fs::write(folder.path().join(file), text).expect("a file");
        }
        (folder, issued)
    };
    let jobs = std::array::from_fn(|job| {
        let (folder, _) = identity(Role::Analyst, &format!("analyst-{job}"));
        signed_job(folder.path(), &spec(job))
    });
    let (_, own) = identity(Role::Party, PARTY);
    let mut files =
        vec![("ca.pem".to_owned(), authority.pem.clone()), ("certificate.pem".into(), own.pem), ("key.pem".into(), own.key_pem)];
    let mut others: [Vec<v1::RosterEntry>; JOBS] = Default::default();
    for (place, name) in (1..).zip(OTHERS) {
        let (folder, issued) = identity(Role::Party, name);
        let identity = IdentityDir::load(folder.path()).expect("an identity");
        let public = MaskSecret::from_bytes([place; 32].into()).public();
        for (entries, job) in others.iter_mut().zip(&jobs) {
            let job: &v1::OpenJob = job;
            let digest = job.spec_digest.as_slice().try_into().expect("32 bytes");
            let key = mask_key::sign(&identity, &job.job, digest, &public).expect("a signature");
            entries.push(v1::RosterEntry { name: name.into(), key: Some(key) });
        }
        files.push((format!("{name}.pem"), issued.pem));
    }
    Signed { files, jobs, others }
});

/// Returns the certificate of the CA that signed all certificates.
pub fn ca_pem() -> &'static str {
    &SIGNED.files[0].1
}

/// Returns the files of the party's folder, by name; the CA's certificate first.
pub fn files() -> &'static [(String, String)] {
    &SIGNED.files
}

/// Returns true for a job with masked answers.
pub fn is_masked(job: usize) -> bool {
    matches!(job, 2 | 3)
}

/// Returns the budget of the sampled job.
pub fn cap() -> Budget {
    JobSpec::parse(&spec(SAMPLED)).expect("a job").privacy.budget
}

/// Returns the delta reserve of that budget, in units of 2^-60.
pub fn reserve() -> u64 {
    cap().reserve_units
}

/// Returns the terms of its blocks and the cost of opening one.
pub fn block() -> &'static (BlockTerms, Spent) {
    static BLOCK: LazyLock<(BlockTerms, Spent)> = LazyLock::new(|| {
        let spec = JobSpec::parse(&spec(SAMPLED)).expect("a job");
        let (from, to) = points(0, 0);
        let kind = QueryKind::SampledRatio;
        let terms = QueryTerms::new(spec.build_model().as_ref(), &spec, PrivacyUnit::default(), kind, (&[from], &[to]));
        let priced = (terms.expect("a bound").sensitivity(), NoiseScale::from_sd(1.0).expect("a scale"));
        let terms = spec.block_terms(kind, PrivacyUnit::default(), priced).expect("a block");
        (terms, terms.cost().expect("a cost"))
    });
    &BLOCK
}

/// Returns the number of parties whose noise protects the opened sums of a job.
pub fn honest(job: usize) -> u64 {
    if is_masked(job) { 2 } else { 1 }
}

/// Returns the roster of a masked job, with the key that the party has announced.
pub fn roster(job: usize, own: v1::MaskKey) -> Vec<v1::Roster> {
    let mut entries = vec![v1::RosterEntry { name: PARTY.into(), key: Some(own) }];
    entries.extend(SIGNED.others[job].clone());
    roster::pieces(id(job), entries)
}

/// Returns a job as a coordinator sends it.
pub fn open_job(job: usize) -> v1::OpenJob {
    SIGNED.jobs[job].clone()
}

/// Returns a job's id.
pub fn id(job: usize) -> &'static str {
    &SIGNED.jobs[job].job
}

/// Returns the index of the job with this id.
pub fn number(id: &str) -> Option<usize> {
    SIGNED.jobs.iter().position(|job| job.job == id)
}

/// Returns one job's text.
pub fn spec(job: usize) -> String {
    if job == SAMPLED {
        // 22 planned releases in eight blocks: three places each.
        return spec(0)
            .replace("mean 0", "mean 4")
            .replace("\"penalty\"", "\"barker\"")
            .replace("draws = 10", "draws = 10\nwarmup = 1\nbatch = 0.9")
            .replace("delta = 1e-6", "delta = 1e-6\ndelta_reserve = 1e-7\nblocks = 8\nclip = 0.01");
    }
    let masked = is_masked(job);
    let others = if masked { format!(", \"{}\"", OTHERS.join("\", \"")) } else { String::new() };
    let aggregation = if masked { "[aggregation]\nmode = \"secure\"\ncolluders = 1\n" } else { "" };
    format!(
        "name = \"mean {job}\"\nalgorithm = \"penalty\"\nparties = [\"{PARTY}\"{others}]\n[model]\nkind = \"gaussian_mean\"\n\
         outcome = \"height\"\nsd = 10.0\n[columns]\nheight = {{ min = 100, max = 200 }}\n[prior]\ndefault = \"normal(0, 1)\"\n\
         [sampler]\nchains = 2\ndraws = 10\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\nnoise_sd = 1.0\n{aggregation}"
    )
}
