//! Real parties of one masked job, each with its own disk, and a coordinator that sends each of them arbitrary messages.
//!
//! The first parties of a job may be colluders, which the test simulates: they have identities and keys, but no process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use conclave_common::job::JobSpec;
use conclave_common::query::Query;
use conclave_party::IdentitySigner;
use conclave_privacy::accounting::Budget;
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::secagg::{MaskSecret, Member, PairKeys, Roster};
use conclave_proto::ca::{self, KeyedPem, Validity};
use conclave_proto::convert::query_to_wire;
use conclave_proto::identity::{PeerIdentity, Role};
use conclave_proto::tls::IdentityDir;
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::party_frame::Body as Said;
use conclave_proto::{mask_key, roster, v1};
use conclave_tests::recorder::signed_job;
use conclave_vault::answer::Secrecy;
use conclave_vault::answer::simulated::SimulatedParty;
use conclave_vault::config::{Approve, Policy, ReplyDelay};
use conclave_vault::data::{BadRows, DataConfig, Format, Memory};
use conclave_vault::ledger::{Durability, Ledger, LedgerSettings, Secret};
use conclave_vault::secure::{Fingerprint, MaskKeys, Pins, SecureSettings};
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// Chains of the job, which is the number of integers in an answer.
pub(super) const LANES: u32 = 32;

/// A consortium, its parties and one job.
pub(super) struct Lab {
    pub(super) folder: TempDir,
    pub(super) authority: KeyedPem,
    pub(super) spec: JobSpec,
    pub(super) job: v1::OpenJob,
    pub(super) seats: Vec<Seat>,
    pub(super) colluders: usize,
}

/// One party of the job, by its place.
pub(super) struct Seat {
    pub(super) name: String,
    /// The ledger's path; the identity with all keys is stored apart from it.
    pub(super) ledger: PathBuf,
    pub(super) identity: PathBuf,
    pub(super) rows: PathBuf,
    pub(super) durability: Durability,
    /// Memory limit for the copies of records in open jobs, if not the default.
    pub(super) memory_mib: Option<u64>,
    pub(super) settings: SecureSettings,
    pub(super) process: Option<SimulatedParty>,
}

pub(super) fn name(place: usize) -> String {
    format!("hospital-{}", char::from(b'a' + place as u8))
}

/// Returns a colluder's secret mask key.
pub(super) fn secret(place: usize) -> MaskSecret {
    MaskSecret::from_bytes([place as u8 + 1; 32].into())
}

fn text(parties: usize, aggregation: &str) -> String {
    let names: Vec<String> = (0..parties).map(|place| format!("\"{}\"", name(place))).collect();
    format!(
        "name = \"masked\"\nalgorithm = \"penalty\"\nparties = [{}]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"height\"\nsd = 50.0\n\
         [columns]\nheight = {{ min = 100, max = 200 }}\n[prior]\ndefault = \"normal(0, 1)\"\n[sampler]\nchains = {LANES}\ndraws = 6\nwarmup = 2\n\
         seed = 1\nproposal = {{ kind = \"guided\", radius = 0.05 }}\nstart = {{ mean = 0.1 }}\n[privacy]\nepsilon = 60.0\ndelta = 1e-6\n{aggregation}",
        names.join(", ")
    )
}

/// Returns the `[aggregation]` table of a masked job.
pub(super) fn secure(colluders: usize) -> String {
    format!("[aggregation]\nmode = \"secure\"\ncolluders = {colluders}\n")
}

/// Writes the identity of a consortium member.
pub(super) fn identity(authority: &KeyedPem, folder: &Path, role: Role, name: &str, days: u32) {
    std::fs::create_dir_all(folder).expect("a folder");
    let validity = Validity { now: SystemTime::now(), days };
    let issued = ca::issue(authority, &PeerIdentity::new(role, name).expect("a name"), &[], validity).expect("a certificate");
    for (file, text) in [("certificate.pem", &issued.pem), ("key.pem", &issued.key_pem), ("ca.pem", &authority.pem)] {
        std::fs::write(folder.join(file), text).expect("a file");
    }
}

pub(super) fn authority(name: &str) -> KeyedPem {
    ca::create_ca(name, Validity { now: SystemTime::now(), days: 10 }).expect("a CA")
}

impl Lab {
    /// Creates a masked job of `parties` parties; the maximal number of colluders is simulated by the test.
    pub(super) fn masked(parties: usize, colluders: usize) -> Self {
        Self::of(parties, colluders, &secure(colluders))
    }

    /// Creates a job; the test simulates its first parties.
    pub(super) fn of(parties: usize, colluders: usize, aggregation: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder");
        let authority = authority("town");
        identity(&authority, &folder.path().join("alice"), Role::Analyst, "alice", 10);
        let text = text(parties, aggregation);
        let job = signed_job(&folder.path().join("alice"), &text);
        let mut lab = Self { spec: JobSpec::parse(&text).expect("a job"), job, folder, authority, seats: Vec::new(), colluders };
        for place in 0..parties {
            let seat = Seat::new(&lab.authority, lab.folder.path(), place);
            lab.seats.push(seat);
        }
        let pins = lab.pins();
        for (place, seat) in lab.seats.iter_mut().enumerate() {
            seat.settings.pins = pins.clone();
            if place >= colluders {
                seat.start();
            }
        }
        lab
    }

    /// Returns the fingerprints of all parties.
    fn pins(&self) -> Pins {
        let mut pins = Pins::default();
        for seat in &self.seats {
            pins.add(&seat.name, seat.fingerprint()).expect("another fingerprint");
        }
        pins
    }

    /// Returns the places of honest parties.
    pub(super) fn honest(&self) -> std::ops::Range<usize> {
        self.colluders..self.seats.len()
    }

    /// Opens the job at a party; returns its key.
    pub(super) fn open(&mut self, place: usize) -> Result<Option<v1::MaskKey>, (String, String)> {
        let job = self.job.clone();
        match self.seats[place].say(Body::OpenJob(job)).pop() {
            Some(Said::JobOpened(opened)) => Ok(opened.mask_key),
            Some(Said::JobRefused(refused)) => Err((refused.code, refused.reason)),
            Some(Said::JobPending(pending)) => Err(("pending".into(), pending.reason)),
            other => panic!("{other:?}"),
        }
    }

    /// Returns a key of a colluder signed by its own identity, whatever key that is.
    pub(super) fn signed(&self, place: usize, public: &conclave_privacy::secagg::MaskPublic) -> v1::MaskKey {
        let identity = IdentityDir::load(&self.seats[place].identity).expect("an identity");
        mask_key::sign(&identity, &self.job.job, &self.digest(), public).expect("a signature")
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        self.job.spec_digest.as_slice().try_into().expect("32 bytes")
    }

    /// Opens the job everywhere; returns the entries of the true roster.
    pub(super) fn open_all(&mut self) -> Vec<v1::RosterEntry> {
        let key = |lab: &mut Self, place: usize| match place < lab.colluders {
            true => lab.signed(place, &secret(place).public()),
            false => lab.open(place).expect("a job that opens").expect("a key"),
        };
        (0..self.seats.len()).map(|place| v1::RosterEntry { name: name(place), key: Some(key(self, place)) }).collect()
    }

    /// Sends a party a roster; returns its reply.
    pub(super) fn show(&mut self, place: usize, entries: &[v1::RosterEntry]) -> Result<v1::RosterAccepted, (String, String)> {
        let mut said = Vec::new();
        for piece in roster::pieces(&self.job.job, entries.to_vec()) {
            said.extend(self.seats[place].say(Body::Roster(piece)));
        }
        match said.pop() {
            Some(Said::RosterAccepted(accepted)) => Ok(accepted),
            Some(Said::JobRefused(refused)) => Err((refused.code, refused.reason)),
            other => panic!("{other:?}"),
        }
    }

    /// Opens the job and enters one roster everywhere.
    pub(super) fn begin(&mut self) -> Vec<v1::RosterEntry> {
        let entries = self.open_all();
        for place in self.honest() {
            self.show(place, &entries).expect("a roster that is entered");
        }
        entries
    }

    /// Builds the roster from its entries.
    pub(super) fn roster(&self, entries: &[v1::RosterEntry]) -> Roster {
        let member = |entry: &v1::RosterEntry| {
            let key = entry.key.as_ref().expect("a key");
            let checked = mask_key::check(key, &self.job.job, &self.digest(), &entry.name).expect("a signed key");
            Member { name: entry.name.clone(), identity: checked.identity, public: checked.public }
        };
        let colluders = self.spec.aggregation.secure().expect("a masked job").colluders;
        Roster::new(&self.job.job, self.digest(), colluders, entries.iter().map(member).collect()).expect("a roster")
    }

    /// Returns a colluder's pair keys with all others.
    pub(super) fn keys_of(&self, place: usize, roster: &Roster) -> PairKeys {
        PairKeys::agree(roster, place, &secret(place)).expect("keys")
    }

    /// Returns the query of a round: a step of every chain.
    pub(super) fn query(&self, iteration: u64) -> v1::Query {
        query_to_wire(&self.job.job, iteration, &self.queries())
    }

    pub(super) fn queries(&self) -> Vec<Query> {
        let query =
            |chain| Query { chain, kind: QueryKind::Ratio, from: vec![0.1], to: vec![0.101], noise: self.spec.privacy.noise };
        (0..LANES).map(query).collect()
    }

    /// Sends a query to a party, whose next noise is seeded by round and place.
    pub(super) fn ask(&mut self, place: usize, query: &v1::Query) -> v1::Answer {
        let seat = &mut self.seats[place];
        seat.process.as_mut().expect("a party that runs").seed_noise(query.iteration * 64 + place as u64);
        match seat.say(Body::Query(query.clone())).pop() {
            Some(Said::Answer(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }
}

impl Seat {
    fn new(authority: &KeyedPem, folder: &Path, place: usize) -> Self {
        let name = name(place);
        let folder = folder.join(&name);
        let (home, ledger, rows) = (folder.join("identity"), folder.join("data/ledger.sqlite"), folder.join("rows.csv"));
        std::fs::create_dir_all(folder.join("data")).expect("a folder");
        identity(authority, &home, Role::Party, &name, 10);
        let values: String = (0..12 + place).map(|row| format!("{}\n", 150 + (row * (7 + place)) % 40)).collect();
        std::fs::write(&rows, format!("height\n{values}")).expect("records");
        let settings = SecureSettings { allow: true, colluders_at_least: Some(1), ..SecureSettings::default() };
        let seat = Self {
            name,
            ledger,
            identity: home,
            rows,
            durability: Durability::Strict,
            memory_mib: None,
            settings,
            process: None,
        };
        seat.keeping().init().expect("a ledger");
        seat
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        let certificate = std::fs::read_to_string(self.identity.join("certificate.pem")).expect("a certificate");
        Fingerprint(ca::key_digest(&certificate).expect("a key"))
    }

    pub(super) fn keeping(&self) -> LedgerSettings {
        let budget = Budget::new(90.0, 1e-6).expect("a budget");
        LedgerSettings {
            durability: self.durability,
            secret: self.identity.join("ledger-secret.key"),
            head_file: self.identity.join("ledger-head"),
            ..LedgerSettings::beside(&self.ledger, &self.name, &budget)
        }
    }

    /// Returns the path of the list of revoked certificates.
    pub(super) fn revoked(&self) -> PathBuf {
        self.identity.with_file_name("revoked.txt")
    }

    pub(super) fn start(&mut self) {
        self.try_start().expect("a party that starts");
    }

    pub(super) fn try_start(&mut self) -> Result<(), String> {
        let keeping = self.keeping();
        let data = DataConfig {
            path: self.rows.clone(),
            format: Format::default(),
            bad_rows: BadRows::Stop,
            text: Vec::new(),
            person: None,
            unit: keeping.budget.unit,
            memory: Memory::default(),
            snapshot: std::env::temp_dir(),
        };
        let max_memory_mib = self.memory_mib;
        // Tests of keys open more jobs than the budget has room for.
        let policy = Policy {
            approve: Approve::Automatic,
            reply_delay: ReplyDelay::Off,
            max_memory_mib,
            over_commit: true,
            ..Policy::default()
        };
        if !self.revoked().exists() {
            std::fs::write(self.revoked(), "").expect("a list");
        }
        let secrecy = Secrecy {
            settings: self.settings.clone(),
            keys: self.keys(),
            signer: Arc::new(IdentitySigner {
                party: keeping.party.clone(),
                folder: self.identity.clone(),
                key: self.identity.join("key.pem"),
            }),
            ca: self.identity.join("ca.pem"),
            revoked: Some(self.revoked()),
        };
        self.process = Some(SimulatedParty::start(&keeping, &data, policy, &self.identity)?.with_secrecy(secrecy)?);
        Ok(())
    }

    pub(super) fn keys(&self) -> MaskKeys {
        let file = self.keeping().secret;
        MaskKeys::beside(&file, Secret::load(&file).expect("a secret"))
    }

    /// Returns the path of a job's key.
    pub(super) fn key_file(&self, job: &str) -> PathBuf {
        self.identity.join("mask-keys").join(job)
    }

    /// Kills the party: nothing more is flushed or settled.
    pub(super) fn kill(&mut self) {
        self.process = None;
    }

    /// Kills and restarts the party.
    pub(super) fn restart(&mut self) {
        self.kill();
        self.start();
    }

    /// Sends a frame; returns the party's replies.
    pub(super) fn say(&mut self, body: Body) -> Vec<Said> {
        let (outbox, mut replies) = mpsc::channel(64);
        self.process.as_mut().expect("a party that runs").take(v1::CoordinatorFrame { body: Some(body) }, &outbox);
        std::iter::from_fn(|| replies.try_recv().ok()).filter_map(|frame| frame.body).collect()
    }

    /// Returns the number of charged queries.
    pub(super) fn charges(&self) -> u64 {
        conclave_tests::books::charges(&self.read())
    }

    pub(super) fn read(&self) -> Connection {
        Connection::open(&self.ledger).expect("a ledger")
    }

    /// Returns the number of ledger entries of a kind.
    pub(super) fn events(&self, kind: &str) -> u64 {
        self.read().query_row("SELECT count(*) FROM events WHERE kind = ?1", [kind], |row| row.get(0)).expect("a count")
    }

    /// Verifies every entry of the ledger.
    pub(super) fn verify(&mut self) {
        self.kill();
        drop(Ledger::open_kept(&self.keeping()).expect("a ledger that verifies"));
    }
}

/// Returns an answer's releases, or the status of a refusal.
pub(super) fn released(answer: &v1::Answer) -> Result<&[i64], u32> {
    if answer.status == Some(0) { Ok(&answer.releases) } else { Err(answer.status.unwrap_or(u32::MAX)) }
}
