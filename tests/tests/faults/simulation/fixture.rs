//! Fixtures of all lists: a consortium, parties whose ledgers are created once and copied for each list, and jobs signed once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use conclave_party::IdentitySigner;
use conclave_privacy::accounting::Budget;
use conclave_proto::ca::{self, Validity};
use conclave_proto::identity::{PeerIdentity, Role};
use conclave_proto::v1;
use conclave_tests::recorder::signed_job;
use conclave_vault::answer::Secrecy;
use conclave_vault::answer::simulated::SimulatedParty;
use conclave_vault::config::{Approve, Policy, ReplyDelay};
use conclave_vault::data::{BadRows, DataConfig, Format, Memory};
use conclave_vault::ledger::{Durability, LedgerSettings, Secret};
use conclave_vault::secure::{Fingerprint, MaskKeys, Pins, SecureSettings};
use tempfile::TempDir;

/// All parties; a job names the first two, or all three.
pub(crate) const NAMES: [&str; 3] = ["hospital-a", "hospital-b", "hospital-c"];
/// The analyst who submits all jobs.
pub(crate) const ANALYST: &str = "alice";
/// Maximal number of jobs in a list.
pub(crate) const JOBS: usize = 2;
/// Number of kinds of jobs.
pub(crate) const KINDS: usize = 11;
/// The first kind with masked answers; all later kinds have them, too.
pub(crate) const MASKED: usize = 9;

/// A kind of job, signed once for each job of a list.
pub(crate) struct Kind {
    pub(crate) parties: usize,
    /// True for a job with masked answers.
    pub(crate) masked: bool,
    pub(crate) signed: [v1::OpenJob; JOBS],
}

pub(crate) struct Fixture {
    folder: TempDir,
    pins: Pins,
    pub(crate) kinds: Vec<Kind>,
}

pub(crate) fn budget() -> Budget {
    Budget::new(90.0, 1e-6).expect("a budget")
}

pub(crate) fn keeping(folder: &Path, party: usize, durability: Durability) -> LedgerSettings {
    LedgerSettings { durability, ..LedgerSettings::beside(&folder.join("ledger.sqlite"), NAMES[party], &budget()) }
}

impl Fixture {
    pub(crate) fn new() -> Self {
        // Syncs are free in memory, and the disk is not under test here.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder");
        let validity = || Validity { now: SystemTime::now(), days: 10 };
        let authority = ca::create_ca("simulation", validity()).expect("a CA");
        let identity = |role, name: &str, folder: &Path| {
            let issued =
                ca::issue(&authority, &PeerIdentity::new(role, name).expect("a name"), &[], validity()).expect("a certificate");
            std::fs::create_dir_all(folder).expect("a folder");
            for (file, text) in [("certificate.pem", &issued.pem), ("key.pem", &issued.key_pem), ("ca.pem", &authority.pem)] {
                std::fs::write(folder.join(file), text).expect("a file");
            }
            Fingerprint(ca::key_digest(&issued.pem).expect("a key"))
        };
        identity(Role::Analyst, ANALYST, folder.path());
        let mut pins = Pins::default();
        for name in NAMES {
            pins.add(name, identity(Role::Party, name, &folder.path().join(format!("{name}.identity")))).expect("a pin");
        }
        let kinds = (0..KINDS).map(|kind| sign(folder.path(), kind)).collect();
        let fixture = Self { folder, pins, kinds };
        (0..NAMES.len()).for_each(|party| fixture.make_ledger(party));
        fixture
    }

    /// Creates a ledger that knows its data.
    fn make_ledger(&self, party: usize) {
        let rows: String = (0..12 + party).map(|row| format!("{}\n", 150 + (row * (7 + party)) % 40)).collect();
        std::fs::write(self.rows(party), format!("height\n{rows}")).expect("records");
        let folder = self.path(NAMES[party]);
        std::fs::create_dir_all(&folder).expect("a folder");
        keeping(&folder, party, Durability::Strict).init().expect("a ledger");
        self.start(&folder, party, Durability::Strict).stop();
    }

    fn rows(&self, party: usize) -> PathBuf {
        self.path(&format!("{}.csv", NAMES[party]))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Creates a folder for one list.
    pub(crate) fn scratch(&self) -> TempDir {
        tempfile::tempdir_in(self.folder.path()).expect("a folder")
    }

    /// Copies a party's unused ledger into `folder`.
    pub(crate) fn copy_ledger(&self, party: usize, folder: &Path) {
        std::fs::create_dir_all(folder).expect("a folder");
        for entry in std::fs::read_dir(self.path(NAMES[party])).expect("a ledger") {
            let entry = entry.expect("a file");
            std::fs::copy(entry.path(), folder.join(entry.file_name())).expect("a copy");
        }
    }

    /// Starts a party on the ledger in `folder`.
    pub(crate) fn start(&self, folder: &Path, party: usize, durability: Durability) -> SimulatedParty {
        let data = DataConfig {
            path: self.rows(party),
            format: Format::default(),
            bad_rows: BadRows::Stop,
            text: Vec::new(),
            person: None,
            unit: budget().unit,
            memory: Memory::default(),
            snapshot: std::env::temp_dir(),
        };
        let policy = Policy { approve: Approve::Automatic, reply_delay: ReplyDelay::Off, ..Policy::default() };
        let keeping = keeping(folder, party, durability);
        let identity = self.path(&format!("{}.identity", NAMES[party]));
        let secrecy = Secrecy {
            settings: SecureSettings {
                allow: true,
                colluders_at_least: Some(1),
                pins: self.pins.clone(),
                ..SecureSettings::default()
            },
            keys: MaskKeys::beside(&keeping.secret, Secret::load(&keeping.secret).expect("a secret")),
            signer: Arc::new(IdentitySigner {
                party: keeping.party.clone(),
                folder: identity.clone(),
                key: identity.join("key.pem"),
            }),
            ca: identity.join("ca.pem"),
            revoked: None,
        };
        let party = SimulatedParty::start(&keeping, &data, policy, &identity);
        party.and_then(|party| party.with_secrecy(secrecy)).expect("a party that starts")
    }
}

fn sign(analyst: &Path, kind: usize) -> Kind {
    // Parties, chains, draws, epsilon. A small epsilon ends the job before its last draw, or before its first.
    let (parties, chains, draws, epsilon) = [
        (2, 1, 6, 20.0),
        (2, 2, 5, 20.0),
        (3, 1, 4, 20.0),
        (3, 2, 3, 20.0),
        (2, 1, 9, 20.0),
        (2, 2, 40, 2.0),
        (3, 1, 40, 0.8),
        (2, 2, 4, 20.0),
        (2, 1, 6, 20.0),
        (3, 2, 4, 20.0),
        (3, 1, 40, 1.2),
    ][kind];
    let (algorithm, sampler) = match kind {
        7 => ("penalty-exp-family", "proposal = { kind = \"componentwise\" }"),
        8 => ("penalty-exp-family", "proposal = { kind = \"guided\" }"),
        _ => ("penalty", "proposal = { kind = \"guided\", radius = 0.05 }\nstart = { mean = 0.1 }"),
    };
    let names: Vec<String> = NAMES[..parties].iter().map(|name| format!("\"{name}\"")).collect();
    let text = format!(
        "name = \"simulated {kind}\"\nalgorithm = \"{algorithm}\"\nparties = [{}]\n[model]\nkind = \"gaussian_mean\"\n\
         outcome = \"height\"\nsd = 50.0\n[columns]\nheight = {{ min = 100, max = 200 }}\n[prior]\ndefault = \"normal(0, 1)\"\n\
         [sampler]\nchains = {chains}\ndraws = {draws}\nwarmup = 2\nseed = {kind}\n{sampler}\n[privacy]\nepsilon = {epsilon}\n\
         delta = 1e-6\n{}",
        names.join(", "),
        if kind >= MASKED { "[aggregation]\nmode = \"secure\"\ncolluders = 1\n" } else { "" }
    );
    // Ids depend on random nonces. Sorting them makes everything that follows their order the same in every run.
    let mut signed = std::array::from_fn(|_| signed_job(analyst, &text));
    signed.sort_by(|a, b| a.job.cmp(&b.job));
    Kind { parties, masked: kind >= MASKED, signed }
}
