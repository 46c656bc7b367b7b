//! `conclave demo`: three data owners, a coordinator and an analyst, as processes of their own on this machine.

mod children;
mod folder;
mod shards;
mod truth;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use conclave_common::accounting::Budget;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::JobStatus;

use crate::client::Connection;
use crate::files;
use crate::follow::follow;
use crate::output::say;
use crate::result::RunResult;
use crate::submit::{failure, read_job, submit};
use crate::table::thousands;
use children::{Children, Daemon};
use folder::DemoFolder;
use truth::DATA_BUDGET_FACTOR;

/// See it work: three hospitals with made-up records on this machine, one posterior
///
/// Makes records of a known logistic model for every party, a throw-away CA with everyone's certificates, and ledgers;
/// starts the coordinator and the parties as processes of their own on the loopback interface; runs a job over mutual
/// TLS; and prints the posterior beside the true coefficients and what each party has spent. Everything stays in --out,
/// ready to be started again by hand.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoArgs {
    /// Data owners
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = parties)]
    parties: usize,
    /// Records of each party
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    rows: u64,
    /// Markov chains
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    chains: u32,
    /// Draws per chain, at most: the budget may end the run first
    #[arg(long, default_value_t = 5000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    draws: u64,
    /// What the job may spend at each party
    #[arg(long, default_value_t = 3.0)]
    epsilon: f64,
    /// The delta that goes with it
    #[arg(long, default_value_t = 1e-6)]
    delta: f64,
    /// How parties write their ledgers
    #[arg(long, value_enum, default_value_t = Durability::Strict)]
    durability: Durability,
    /// Seed of the records and of the chains; the noise never has one
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where everything is left; must be empty or not there
    #[arg(long, value_name = "DIR", default_value = "conclave-demo")]
    out: PathBuf,
    /// Serve the coordinator's dashboard and each party's page on this machine, on free ports, and say where
    #[arg(long)]
    pages: bool,
    /// Print one JSON object on standard output: the result, with the true coefficients under "true"
    #[arg(long)]
    json: bool,
}

/// The most parties that one demo starts.
const MAX_PARTIES: usize = 100;

fn parties(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| (1..=MAX_PARTIES).contains(n)).ok_or_else(|| format!("a demo has 1 to {MAX_PARTIES} parties"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Durability {
    /// Every answer is on disk before it leaves
    Strict,
    /// A block of charge is on disk ahead, answers follow: faster; a crash forfeits the block
    Reserve,
}

pub(crate) async fn run(args: DemoArgs) -> Result<ExitCode, Fault> {
    check(&args)?;
    eprintln!("Making {} parties of {} records each in {}", args.parties, thousands(args.rows), args.out.display());
    let folder = DemoFolder::create(&args)?;
    let mut children = Children::default();
    let outcome = tokio::select! {
        outcome = run_job(&args, &folder, &mut children) => outcome,
        _ = tokio::signal::ctrl_c() => Err(Fault::new(ErrorCode::Internal, "interrupted")),
    };
    eprintln!("Stopping the daemons");
    children.stop().await;
    let (status, url) = outcome.map_err(|fault| Fault {
        message: format!("{}\nEverything so far is in {}", fault.message, args.out.display()),
        ..fault
    })?;
    tell(&args, &folder, &status, &url)
}

/// Everything that can be refused before anything is made.
fn check(args: &DemoArgs) -> Result<(), Fault> {
    let input = |message: String| Fault::new(ErrorCode::InvalidInput, message);
    for epsilon in [args.epsilon, DATA_BUDGET_FACTOR * args.epsilon] {
        let budget = Budget::new(epsilon, args.delta).map_err(|e| input(e.to_string()))?;
        conclave_common::accounting::PrivacyFilter::new(&budget).map_err(|e| input(e.to_string()))?;
    }
    Ok(())
}

/// Starts the daemons, submits the job and follows it; gives its last status and the coordinator's URL.
async fn run_job(args: &DemoArgs, folder: &DemoFolder, children: &mut Children) -> Result<(JobStatus, String), Fault> {
    let logs = folder.logs();
    let config = folder.write_coordinator("127.0.0.1:0", args.pages)?;
    children.start(&Daemon { name: "coordinator", word: "__coordinator", config: &config, logs: &logs })?;
    let address = children.ready().await?;
    // Started by hand, the coordinator will listen where the parties' configurations look for it.
    folder.write_coordinator(&address, args.pages)?;
    let url = format!("https://{address}");
    for party in &folder.parties {
        let config = folder.write_party(party, &url, args)?;
        children.start(&Daemon { name: party, word: "__party", config: &config, logs: &logs })?;
    }
    children.ready().await?;
    eprintln!("The coordinator listens on {address}; {} parties are attached, each a process of its own.", folder.parties.len());
    if args.pages {
        tell_pages(folder);
    }
    let connection = Connection { coordinator: url.clone(), identity: folder.analyst() };
    let run = async {
        let mut client = connection.open().await?;
        let job = submit(&mut client, &connection.identity()?, read_job(&folder.job())?).await?;
        eprintln!("Job {job}: at most epsilon = {} at each party.", args.epsilon);
        follow(&mut client, &job).await
    };
    let status = tokio::select! {
        status = run => status?,
        fault = children.watch() => return Err(fault),
    };
    if status.state == "failed" {
        return Err(failure(&status));
    }
    Ok((status, url))
}

/// Says where the pages are: the daemons have written it into their logs.
fn tell_pages(folder: &DemoFolder) {
    let says = |log: &str, key: &str| {
        let text = std::fs::read_to_string(folder.logs().join(format!("{log}.log"))).unwrap_or_default();
        let found = text.rsplit_once(&format!("{key} at ")).map(|(_, rest)| rest.lines().next().unwrap_or_default().to_owned());
        eprintln!("  {log}: {}", found.unwrap_or_else(|| "not told yet; see its log".to_owned()));
    };
    eprintln!("Pages to look at meanwhile:");
    says("coordinator", "dashboard");
    folder.parties.iter().for_each(|party| says(party, "page"));
}

/// Prints the result and what to type next.
fn tell(args: &DemoArgs, folder: &DemoFolder, status: &JobStatus, url: &str) -> Result<ExitCode, Fault> {
    let truth = truth::coefficients();
    let json = with_truth(&status.result_json, &truth)?;
    files::overwrite(&folder.root.join("result.json"), &format!("{json}\n"))?;
    if args.json {
        say!("{json}");
    } else {
        let result = RunResult::parse(&status.result_json)?;
        say!("\n{}", result.report(Some(&truth)));
        say!("{}", next_steps(folder, status, url));
    }
    Ok(ExitCode::SUCCESS)
}

/// The result's object with the true coefficients added, every number left exactly as it was written.
fn with_truth(result_json: &str, truth: &[(&str, f64)]) -> Result<String, Fault> {
    let truth: serde_json::Map<String, serde_json::Value> =
        truth.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    result_json
        .trim()
        .strip_suffix('}')
        .map(|body| format!("{body},\"true\":{}}}", serde_json::Value::Object(truth)))
        .ok_or_else(|| Fault::new(ErrorCode::Internal, "the coordinator sent no result"))
}

/// What to type next: commands that work as they stand.
fn next_steps(folder: &DemoFolder, status: &JobStatus, url: &str) -> String {
    let program = std::env::args_os().next().unwrap_or_else(|| "conclave".into());
    let program = quoted(Path::new(&program));
    let (root, job) = (&folder.root, &status.job);
    let run = |daemon: &str, config: PathBuf| format!("  {} run --config {}\n", command_of(daemon), quoted(&config));
    let mut text = format!(
        "Everything is in {}: configurations, ledgers, draws, logs.\n\nStart it again by hand, each in a terminal of \
         its own:\n",
        root.display()
    );
    text += &run("coordinator", folder.coordinator().join("coordinator.toml"));
    for party in &folder.parties {
        text += &run("party", folder.party(party).join("party.toml"));
    }
    text += &format!(
        "\nThen, as the analyst:\n  export CONCLAVE_COORDINATOR={url} CONCLAVE_IDENTITY={}\n  {program} jobs\n  \
         {program} summary {job}\n  {program} report {job} -o report.html\n  {program} draws {job} --format zarr --out draws\n  \
         {program} submit {} --wait\n",
        quoted(&folder.analyst()),
        quoted(&folder.job()),
    );
    if let Some(party) = folder.parties.first() {
        text += &format!(
            "\nAs a data owner:\n  {} budget --config {}\n",
            command_of("party"),
            quoted(&folder.party(party).join("party.toml"))
        );
    }
    text
}

/// The command that is a daemon: its own program where that was built beside this one, else this one's hidden word.
fn command_of(daemon: &str) -> String {
    let beside = std::env::current_exe()
        .ok()
        .map(|exe| exe.with_file_name(format!("conclave-{daemon}{}", std::env::consts::EXE_SUFFIX)))
        .filter(|path| path.exists());
    let program = std::env::args_os().next().map(PathBuf::from);
    match (beside, program) {
        (Some(beside), Some(program)) => {
            // As this program was named on the command line, so that the line stays short.
            let name = beside.file_name().map(PathBuf::from).unwrap_or_default();
            quoted(&program.with_file_name(name))
        }
        (_, program) => {
            format!("{} __{daemon}", quoted(&program.unwrap_or_else(|| "conclave".into())))
        }
    }
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    pub(super) fn args(out: &std::path::Path) -> DemoArgs {
        DemoArgs {
            parties: 2,
            rows: 20,
            chains: 2,
            draws: 10,
            epsilon: 3.0,
            delta: 1e-6,
            durability: Durability::Strict,
            seed: 1,
            out: out.to_owned(),
            pages: false,
            json: true,
        }
    }

    #[test]
    fn bad_arguments_are_refused_before_anything_is_made() {
        let good = args(std::path::Path::new("x"));
        check(&good).unwrap();
        for bad in [
            DemoArgs { epsilon: 0.0, ..good.clone() },
            DemoArgs { epsilon: -1.0, ..good.clone() },
            DemoArgs { epsilon: f64::NAN, ..good.clone() },
            DemoArgs { epsilon: 1e9, ..good.clone() },
            DemoArgs { delta: 1.0, ..good.clone() },
        ] {
            assert_eq!(check(&bad).unwrap_err().code, ErrorCode::InvalidInput, "{bad:?}");
        }
    }

    #[test]
    fn paths_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted(Path::new("a/b-c.toml")), "a/b-c.toml");
        assert_eq!(quoted(Path::new("my demo/it's")), "'my demo/it'\\''s'");
    }

    #[test]
    fn the_truth_is_added_and_nothing_else_changes() {
        let json = with_truth(" {\"a\":0.1000000000000000055}\n", &[("dose", 0.4)]).unwrap();
        assert_eq!(json, "{\"a\":0.1000000000000000055,\"true\":{\"dose\":0.4}}");
        assert!(with_truth("", &[]).is_err());
    }
}
