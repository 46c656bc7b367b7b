//! `conclave-party init`.

use std::path::{Path, PathBuf};

use clap::Args;
use conclave_proto::ca;
use conclave_proto::error::Fault;

use super::common::{Common, confirm, load, print, print_json};
use crate::config::PartyConfig;
use crate::daemon::{init_identity, init_ledger};
use crate::error::StartError;
use conclave_vault::ledger;
use conclave_vault::ledger::{LedgerError, reserve};

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    new: Option<NewConfig>,
    /// The budget of the data over all jobs, permanently: epsilon. For an existing configuration, the one named in it
    #[arg(long, requires = "delta")]
    epsilon: Option<f64>,
    /// Delta of that budget
    #[arg(long, requires = "epsilon")]
    delta: Option<f64>,
    /// Make the ledger for the configuration's budget without confirmation
    #[arg(long)]
    yes: bool,
    /// Make the ledger for an existing key: only if no job has ever been answered from the data. Restore a lost ledger instead: a
    /// new one would not contain past charges
    #[arg(long)]
    keep_identity: bool,
}

/// Options of a new configuration; the file named by `--config` is written if it does not exist.
#[derive(Debug, Args)]
struct NewConfig {
    /// Write the configuration too: the party's name, 1 to 63 of a-z, 0-9 and -
    #[arg(long, required = false, requires_all = ["coordinator", "data", "epsilon", "delta"])]
    name: String,
    /// The coordinator's address, https://HOST or https://HOST:PORT
    #[arg(long, value_name = "URL", required = false, requires = "name")]
    coordinator: String,
    /// The file of records, .csv, .csv.gz or .parquet; a relative path starts at the configuration's folder, as in the file
    /// itself
    #[arg(long, value_name = "FILE", required = false, requires = "name")]
    data: PathBuf,
    /// Columns that jobs may use, separated by commas; the others are never read
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "name")]
    columns: Vec<String>,
}

pub(super) fn init(args: &InitArgs) -> Result<(), StartError> {
    let common = &args.common;
    let given = args.epsilon.zip(args.delta);
    // The arguments' own rule: a new configuration requires a budget.
    let written = args.new.as_ref().zip(given).map(|(new, budget)| write_config(&common.config, new, budget)).transpose()?;
    let config = load(common).map_err(|e| match common.config.exists() {
        true => e,
        false => StartError::Input(format!("{e}; or let init write it: --name, --coordinator, --data, --epsilon, --delta")),
    })?;
    // Checked before the key is made, so that a refusal leaves no files behind.
    if config.ledger.exists() {
        return Err(LedgerError::Exists(config.ledger).into());
    }
    if config.key.exists() && !args.keep_identity {
        return Err(LedgerError::Earlier {
            file: config.key,
            what: "is the key of a party that was initialised here before, and its ledger is missing",
            remedy: "confirm with `conclave-party init --keep-identity`",
        }
        .into());
    }
    if !confirm_budget(args, &config, given)? {
        return print("nothing was created: write the budget of your choice under [budget], and run init again");
    }
    let request = init_identity(&config)?;
    if let Err(e) = init_ledger(&config) {
        // The key is unused; left behind, it would look like the key of an earlier ledger.
        if let Some(request) = &request {
            let _ = std::fs::remove_file(&config.key).and_then(|()| std::fs::remove_file(request));
        }
        return Err(e);
    }
    let fingerprint = request.as_deref().map(fingerprint).transpose()?;
    if common.json {
        return print_json(&serde_json::json!({
            "ledger": config.ledger, "identity": config.identity, "request": request, "fingerprint_sha256": fingerprint,
        }));
    }
    if written.is_some() {
        print(&format!("{}: written; every job will wait for your approval. Review it", common.config.display()))?;
        if !config.data.path.exists() {
            print(&format!("{}: missing; put the records there", config.data.path.display()))?;
        }
    }
    let reserved = match config.budget.reserve_units {
        0 => String::new(),
        units => format!("; {} of delta is reserved for subsampled releases", reserve(units)),
    };
    print(&format!(
        "{}: ledger created with epsilon = {}, delta = {}, permanently{reserved}",
        config.ledger.display(),
        config.budget.epsilon,
        ledger::written(config.budget.promised_delta())
    ))?;
    let folder = config.identity.display();
    match (request, fingerprint) {
        (Some(request), Some(fingerprint)) => print(&format!(
            "{}: private key created; it never leaves its folder\n{}: signing request created\nfingerprint of its key: \
             {}\n\nNext: send the request to the keeper of the consortium's CA, and read the fingerprint to them by telephone. \
             They run\n    conclave ca sign {} \
             --ca ca/\nand return certificate.pem and ca.pem. Put both into {folder}:\n    conclave-party install certificate.pem --ca \
             ca.pem --config {}",
            config.key.display(),
            request.display(),
            ca::grouped(&fingerprint),
            request.file_name().unwrap_or_default().display(),
            common.config.display()
        )),
        _ => print(&format!("{folder}: already has a key\n\nNext:\n    conclave-party run --config {}", common.config.display())),
    }
}

/// Confirms that the ledger's budget is the owner's choice, named on the command line or confirmed. A copied configuration has
/// somebody else's budget, and a ledger's budget is permanent.
fn confirm_budget(args: &InitArgs, config: &PartyConfig, given: Option<(f64, f64)>) -> Result<bool, StartError> {
    let (epsilon, delta) = (config.budget.epsilon, ledger::written(config.budget.promised_delta()));
    let named = format!("{} names a budget of epsilon = {epsilon}, delta = {delta}", args.common.config.display());
    match given {
        Some((given_epsilon, given_delta)) if (given_epsilon, ledger::written(given_delta)) == (epsilon, delta) => {
            return Ok(true);
        }
        Some((given_epsilon, given_delta)) => {
            let why = format!(
                "{named}, but the command line epsilon = {given_epsilon}, delta = {given_delta}: use the same values in both"
            );
            return Err(StartError::Input(why));
        }
        None if args.yes => return Ok(true),
        None => {}
    }
    let prompt =
        format!("{named}, for these records, over all jobs and permanently. It can never be changed. Make the ledger? [y/N] ");
    let no_terminal = || {
        format!(
            "nothing was created: {named}, which is permanent, and there is no terminal for confirmation; add --epsilon \
             {epsilon} --delta {delta}, or --yes to accept the file's values"
        )
    };
    confirm(&prompt, no_terminal)
}

fn fingerprint(request: &Path) -> Result<String, StartError> {
    let pem = std::fs::read_to_string(request).map_err(|e| StartError::System(format!("{}: {e}", request.display())))?;
    Ok(ca::read_request(&pem)
        .map_err(|e| Fault { message: format!("{}: {}", request.display(), e.message), ..e })?
        .key_fingerprint)
}

/// Writes a configuration in which every job waits for the owner's approval. An invalid one is not written.
fn write_config(path: &Path, new: &NewConfig, budget: (f64, f64)) -> Result<(), StartError> {
    let system = |path: &Path, e: std::io::Error| StartError::Input(format!("{}: {e}", path.display()));
    if path.exists() {
        let why = "already exists: omit --name and related options to use it, or move it away";
        return Err(StartError::Input(format!("{} {why}", path.display())));
    }
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let text = template(new, &new.data, budget);
    PartyConfig::parse(&text, folder).map_err(StartError::Input)?;
    std::fs::create_dir_all(folder).map_err(|e| system(folder, e))?;
    std::fs::write(path, text).map_err(|e| system(path, e))
}

fn template(new: &NewConfig, data: &Path, (epsilon, delta): (f64, f64)) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let columns: Vec<String> = new.columns.iter().map(|name| quoted(name.trim())).collect();
    let columns = match columns.is_empty() {
        true => "# columns = [\"age\", \"outcome\"]    # columns that jobs may use; without this line, all columns of the file\n"
            .to_owned(),
        false => format!("columns = [{}]    # columns that jobs may use; the others are never read\n", columns.join(", ")),
    };
    format!(
        "# A data owner's daemon. Paths are relative to this file's folder.\n\
         name = {}\n\
         coordinator = {}\n\
         identity = \"identity/\"                 # certificate, key, CA\n\
         ledger = \"ledger.sqlite\"               # the charges of the data; never restore an older copy\n\
         durability = \"strict\"\n\n\
         [data]\n\
         path = {}\n\
         bad_rows = \"stop\"                      # a missing, non-numeric or non-finite value prevents the start; \"drop\" \
         makes such rows inert\n\n\
         [budget]                               # of the data, over all jobs, permanent\n\
         epsilon = {:?}\n\
         delta = {:?}\n\n\
         [policy]\n\
         approve = \"manual\"                     # every job waits for `conclave-party approve`\n\
         {columns}",
        quoted(&new.name),
        quoted(&new.coordinator),
        quoted(&data.display().to_string()),
        epsilon,
        delta,
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_vault::config::Approve;

    fn new(name: &str, data: &Path) -> NewConfig {
        NewConfig {
            name: name.into(),
            coordinator: "https://c.example".into(),
            data: data.to_owned(),
            columns: vec!["age".into(), " odd \"name\"".into()],
        }
    }

    #[test]
    fn a_configuration_is_written_once_and_only_if_it_can_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d/party.toml");
        assert!(
            write_config(&path, &new("Hospital D", Path::new("a.csv")), (8.0, 1e-6)).unwrap_err().to_string().contains("name")
        );
        assert!(!path.exists());
        write_config(&path, &new("hospital-d", Path::new("records.csv")), (8.0, 1e-6)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("path = \"records.csv\""), "{text}");
        let config = PartyConfig::load(&path).unwrap();
        assert_eq!((config.name.as_str(), config.budget.epsilon, config.policy.approve), ("hospital-d", 8.0, Approve::Manual));
        assert_eq!(config.policy.columns, Some(vec!["age".to_owned(), "odd \"name\"".to_owned()]));
        assert!(write_config(&path, &new("hospital-e", Path::new("a.csv")), (8.0, 1e-6)).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        let elsewhere = folder.path().join("e.toml");
        write_config(&elsewhere, &new("hospital-e", Path::new("/srv/records.parquet")), (8.0, 1e-6)).unwrap();
        assert_eq!(PartyConfig::load(&elsewhere).unwrap().data.path, Path::new("/srv/records.parquet"));
    }
}
