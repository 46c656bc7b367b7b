//! The demo's folder: certificates, configurations, ledgers, the job. Every path in a configuration is relative to its
//! folder, so that the demo can be moved and started again by hand.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use conclave_common::job::KeyFingerprint;
use conclave_party::PartyConfig;
use conclave_proto::ca::{KeyedPem, key_digest};
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::identity::{PeerIdentity, Role};

use super::options::{DemoAlgorithm, DemoArgs, name};
use super::shards;
use super::truth::{
    ANALYST, COORDINATOR, DATA_BUDGET_FACTOR, ENOUGH_ESS, ENOUGH_RHAT, MAX_DRAWS, OPS_DRAWS, OUTCOME, PREDICTORS, TOTAL_NOISE_SD,
    WARMUP_SWEEPS, party_name,
};

use crate::ca::{create_ca, create_identity};
use crate::files;

/// Days until the demo's certificates expire: long enough for later use.
const DAYS: u32 = 365;
/// Host names of the demo's coordinator.
const HOSTS: [&str; 2] = ["127.0.0.1", "localhost"];

pub(super) struct DemoFolder {
    pub(super) root: PathBuf,
    pub(super) parties: Vec<String>,
}

impl DemoFolder {
    /// Creates certificates, shards and the job. The folder must be missing or empty: ledgers are never overwritten.
    pub(super) fn create(args: &DemoArgs) -> Result<Self, Fault> {
        let root = args.out.clone();
        if !files::is_vacant(&root)? {
            return Err(Fault::new(
                ErrorCode::InvalidInput,
                format!(
                    "{} is not empty, and a demo never overwrites a ledger: remove it, or choose another folder with \
                     --out",
                    root.display()
                ),
            ));
        }
        let parties: Vec<String> = (0..args.parties).map(party_name).collect();
        let folder = Self { root, parties };
        folder.write_identities()?;
        files::make_folder(&folder.logs())?;
        for (index, party) in folder.parties.iter().enumerate() {
            let path = folder.party(party).join("admissions.csv");
            shards::write(&path, args.rows, args.seed, index as u64)?;
        }
        files::write_new(&folder.job(), &job_toml(args, &folder.parties))?;
        Ok(folder)
    }

    fn write_identities(&self) -> Result<(), Fault> {
        let ca = create_ca(&self.root.join("ca"), "Conclave demo", DAYS)?;
        let identity = |ca: &KeyedPem, folder: &Path, role, name: &str, hosts: &[String]| {
            create_identity(folder, ca, &PeerIdentity::new(role, name)?, hosts, DAYS)
        };
        let hosts = HOSTS.map(str::to_owned);
        let coordinator = self.coordinator().join("identity");
        identity(&ca, &coordinator, Role::Coordinator, COORDINATOR, &hosts)?;
        identity(&ca, &self.analyst(), Role::Analyst, ANALYST, &[])?;
        for party in &self.parties {
            identity(&ca, &self.party(party).join("identity"), Role::Party, party, &[])?;
        }
        Ok(())
    }

    /// Writes the coordinator's configuration; `listen` is an address and port (0: chosen by the kernel), `pages` enables the
    /// dashboard.
    pub(super) fn write_coordinator(&self, listen: &str, pages: bool) -> Result<PathBuf, Fault> {
        let path = self.coordinator().join("coordinator.toml");
        let dashboard = if pages { "dashboard = \"127.0.0.1:0\"\n" } else { "" };
        let text = format!(
            "listen = \"{listen}\"\nidentity = \"identity/\"\nstore = \"coordinator.sqlite\"\ndraws = \"draws/\"\n{dashboard}"
        );
        files::overwrite(&path, &text)?;
        Ok(path)
    }

    /// Writes a party's configuration and creates its ledger, as `conclave-party init` does.
    pub(super) fn write_party(&self, party: &str, url: &str, args: &DemoArgs) -> Result<PathBuf, Fault> {
        let path = self.party(party).join("party.toml");
        files::write_new(&path, &(party_toml(party, url, args) + &self.secure_toml(party, args)?))?;
        let internal = |e: &dyn std::fmt::Display| Fault::new(ErrorCode::Internal, e.to_string()).at_party(party);
        let config = PartyConfig::load(&path).map_err(|e| internal(&e))?;
        conclave_party::init_ledger(&config).map_err(|e| internal(&e))?;
        Ok(path)
    }

    /// Returns a party's `[secure]` section with the pinned keys of the others; empty unless the demo's job is masked.
    fn secure_toml(&self, party: &str, args: &DemoArgs) -> Result<String, Fault> {
        let Some(colluders) = args.colluders() else { return Ok(String::new()) };
        let mut text = format!("\n[secure]\nallow = true\ncolluders_at_least = {colluders}\n\n[secure.pinned]\n");
        for other in self.parties.iter().filter(|other| *other != party) {
            let certificate = files::read(&self.party(other).join("identity").join("certificate.pem"))?;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{other} = \"{}\"", KeyFingerprint(key_digest(&certificate)?));
        }
        Ok(text)
    }

    pub(super) fn coordinator(&self) -> PathBuf {
        self.root.join("coordinator")
    }

    pub(super) fn party(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The analyst's identity folder.
    pub(super) fn analyst(&self) -> PathBuf {
        self.root.join(ANALYST).join("identity")
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    pub(super) fn job(&self) -> PathBuf {
        self.root.join("job.toml")
    }
}

/// Returns the job file of the demo.
pub(super) fn job_toml(args: &DemoArgs, parties: &[String]) -> String {
    let quoted = |names: &mut dyn Iterator<Item = &str>| names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let mut columns = format!("{OUTCOME} = {{ binary = true }}\n");
    for p in &PREDICTORS {
        // Writing to a String cannot fail.
        let _ = writeln!(columns, "{} = {{ min = {}, max = {} }}", p.name, p.min, p.max);
    }
    let noise_sd = TOTAL_NOISE_SD / (parties.len() as f64).sqrt();
    let until = match args.draws {
        None if args.chains() > 1 => format!(
            "until = {{ ess = {ENOUGH_ESS}, rhat = {ENOUGH_RHAT} }}      # enough for a demo; the defaults, 400 and 1.01, take \
             several times the budget\n"
        ),
        _ => String::new(),
    };
    let (sampler, noise) = match args.algorithm {
        DemoAlgorithm::Penalty => (
            format!("warmup = {WARMUP_SWEEPS}\nproposal = {{ kind = \"guided\", radius = \"auto\" }}\n{until}"),
            format!(
                "noise_sd = {noise_sd:.4}                        # below \"auto\": fewer rounds use the budget, and the demo \
                 ends sooner\n"
            ),
        ),
        // Its noise is set by the capacity of its test.
        DemoAlgorithm::Barker => {
            (format!("warmup = {WARMUP_SWEEPS}\nproposal = {{ kind = \"guided\", radius = \"auto\" }}\n{until}"), String::new())
        }
        DemoAlgorithm::DpHmc => ("friction = 0\n".to_owned(), String::new()),
        _ => Default::default(),
    };
    let aggregation = args.colluders().map(|colluders| {
        format!(
            "\n# Answers are masked and only their sum is opened: no single party's number is ever seen.\n[aggregation]\nmode = \
             \"secure\"\n\
             colluders = {colluders}\n"
        )
    });
    let aggregation = aggregation.unwrap_or_default();
    format!(
        "# The demo's job. Send it again with `conclave submit`; every run spends more of the parties' budgets.\n\
         name = \"readmission\"\n\
         algorithm = \"{}\"\n\
         parties = [{}]\n\n\
         [model]\n\
         kind = \"logistic\"\n\
         outcome = \"{OUTCOME}\"\n\
         predictors = [{}]\n\
         intercept = true\n\n\
         # Public bounds: values are clamped to them and coded to [-1, 1].\n\
         [columns]\n{columns}\n\
         [prior]\n\
         default = \"normal(0, 2.5)\"\n\n\
         [sampler]\n\
         chains = {}\n\
         draws = {}\n\
         {sampler}\
         seed = {}\n\n\
         [privacy]\n\
         epsilon = {:?}\n\
         delta = {:?}\n\
         {noise}{aggregation}",
        args.algorithm.name(),
        quoted(&mut parties.iter().map(String::as_str)),
        quoted(&mut PREDICTORS.iter().map(|p| p.name)),
        args.chains(),
        args.draws.unwrap_or(if args.algorithm == DemoAlgorithm::Ops { OPS_DRAWS } else { MAX_DRAWS }),
        args.seed,
        args.epsilon,
        args.delta
    )
}

/// Returns one party's configuration.
fn party_toml(party: &str, url: &str, args: &DemoArgs) -> String {
    let columns: Vec<String> =
        std::iter::once(OUTCOME).chain(PREDICTORS.iter().map(|p| p.name)).map(|name| format!("\"{name}\"")).collect();
    format!(
        "name = \"{party}\"\n\
         coordinator = \"{url}\"\n\
         identity = \"identity/\"\n\
         ledger = \"ledger.sqlite\"\n\
         durability = \"{}\"\n{}\n\
         [data]\n\
         path = \"admissions.csv\"\n\n\
         # The budget of the data, over all jobs and for all time.\n\
         [budget]\n\
         epsilon = {:?}\n\
         delta = {:?}\n\n\
         [policy]\n\
         approve = \"automatic\"\n\
         analysts = [\"{ANALYST}\"]\n\
         models = [\"logistic\"]\n\
         releases = [\"ratio\", \"score\", \"remainder\", \"choice\", \"table\"]\n\
         max_epsilon_per_job = {:?}\n\
         columns = [{}]\n\
         # Replies are sent at once: this demo's parties share one machine and would delay one another. The time of an\n\
         # answer is then visible from outside; for a party of your own, omit this line, which means \"auto\".\n\
         reply_delay_ms = 0\n",
        name(args.durability),
        if args.pages { "page = \"127.0.0.1:0\"\n" } else { "" },
        DATA_BUDGET_FACTOR * args.epsilon,
        args.delta,
        args.epsilon,
        columns.join(", ")
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::demo::tests::args;
    use conclave_common::job::JobSpec;
    use conclave_proto::tls::IdentityDir;

    #[test]
    fn the_folder_is_whole_and_never_overwritten() {
        let parent = tempfile::tempdir().unwrap();
        let args = args(&parent.path().join("demo"));
        let folder = DemoFolder::create(&args).unwrap();
        let spec = JobSpec::parse(&files::read(&folder.job()).unwrap()).unwrap();
        assert_eq!(spec.parties, folder.parties);
        assert_eq!(spec.privacy.budget.epsilon, args.epsilon);
        let coordinator = folder.write_coordinator("127.0.0.1:0", true).unwrap();
        conclave_coordinator::Config::load(&coordinator).unwrap();
        for party in &folder.parties {
            let config = folder.write_party(party, "https://127.0.0.1:1", &args).unwrap();
            let text = files::read(&config).unwrap();
            assert!(!text.contains(&*parent.path().to_string_lossy()), "{text}");
            assert!(folder.party(party).join("ledger.sqlite").exists());
            let identity = IdentityDir::load(&folder.party(party).join("identity")).unwrap();
            assert_eq!(identity.identity().name, *party);
        }
        IdentityDir::load(&folder.analyst()).unwrap();
        let again = DemoFolder::create(&args).err().unwrap();
        assert_eq!(again.code, ErrorCode::InvalidInput);
    }
}
