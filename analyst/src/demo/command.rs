//! `conclave demo` from start to end: makes records and certificates, starts the daemons, runs one job and shows it.

use std::path::Path;
use std::process::ExitCode;

use conclave_ops::web::link;
use conclave_pages::text::thousands;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::JobStatus;

use super::children::{Children, Daemon};
use super::folder::DemoFolder;
use super::next_steps::{next_steps, with_truth};
use super::options::{DemoArgs, check};
use super::truth;
use crate::client::Connection;
use crate::faults::failure;
use crate::files;
use crate::follow::follow;
use crate::interval::at_level;
use crate::output::{note, say, say_json};
use crate::progress::ProgressFormat;
use crate::result::RunResult;
use crate::submit::{read_job, submit};

pub(crate) async fn run(args: DemoArgs) -> Result<ExitCode, Fault> {
    check(&args)?;
    note!("Creating {} parties with {} records each in {}", args.parties, thousands(args.rows), args.out.display());
    let folder = DemoFolder::create(&args)?;
    let mut children = Children::default();
    let outcome = tokio::select! {
        outcome = run_job(&args, &folder, &mut children) => outcome,
        _ = tokio::signal::ctrl_c() => Err(Fault::new(ErrorCode::Internal, "interrupted")),
    };
    let shown = outcome.and_then(|(status, url)| show_result(&args, &folder, &status, &url));
    let ended = match shown {
        Ok(()) if args.pages => keep_pages_up(&folder, &mut children).await,
        other => other,
    };
    note!("Stopping the daemons");
    children.stop().await;
    ended.map(|()| ExitCode::SUCCESS).map_err(|fault| Fault {
        message: format!("{}\nAll files made so far are in {}", fault.message, args.out.display()),
        ..fault
    })
}

/// Keeps the pages available until Ctrl-C.
async fn keep_pages_up(folder: &DemoFolder, children: &mut Children) -> Result<(), Fault> {
    print_pages(folder, "The job has ended, and the pages stay up until Ctrl-C:");
    tokio::select! {
        _ = tokio::signal::ctrl_c() => Ok(()),
        fault = children.watch() => Err(fault),
    }
}

/// Starts the daemons, submits the job and follows it; returns its last status and the coordinator's URL.
async fn run_job(args: &DemoArgs, folder: &DemoFolder, children: &mut Children) -> Result<(JobStatus, String), Fault> {
    let logs = folder.logs();
    let config = folder.write_coordinator("127.0.0.1:0", args.pages)?;
    children.start(&Daemon { name: "coordinator", word: "__coordinator", config: &config, logs: &logs })?;
    let address = children.ready().await?;
    // For a restart by hand, the coordinator must listen on the address in the parties' configurations.
    folder.write_coordinator(&address, args.pages)?;
    let url = format!("https://{address}");
    for party in &folder.parties {
        let config = folder.write_party(party, &url, args)?;
        children.start(&Daemon { name: party, word: "__party", config: &config, logs: &logs })?;
    }
    children.ready().await?;
    note!("The coordinator listens on {address}; {} parties are attached, each in its own process.", folder.parties.len());
    if args.pages {
        print_pages(folder, "Pages to watch the run:");
    }
    let connection = Connection { coordinator: url.clone(), identity: folder.analyst() };
    let run = async {
        let mut client = connection.open().await?;
        let job = submit(&mut client, &connection.identity()?, read_job(&folder.job())?).await?;
        note!("Job {job}: at most epsilon = {} at each party.", args.epsilon);
        let status = follow(&mut client, &job, ProgressFormat::Text).await?;
        at_level(&mut client, status, args.interval.other()).await
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

/// Prints links to the pages, which open them once; addresses and token files are read from the daemons' logs.
fn print_pages(folder: &DemoFolder, heading: &str) {
    let print = |log: &str, key: &str| {
        let text = std::fs::read_to_string(folder.logs().join(format!("{log}.log"))).unwrap_or_default();
        let found =
            text.rsplit_once(&format!("{key} at ")).and_then(|(_, rest)| rest.lines().next()?.split_once("; its token is in "));
        let link = found.map(|(address, token)| match link(Path::new(token)) {
            Ok(link) => format!("{}{link}", address.trim_end_matches('/')),
            Err(_) => format!("{address}; its token is in {token}"),
        });
        note!("  {log}: {}", link.unwrap_or_else(|| "not known yet; see its log".to_owned()));
    };
    note!("{heading}");
    print("coordinator", "dashboard");
    folder.parties.iter().for_each(|party| print(party, "page"));
    note!("Each link opens its pages once, within an hour; after that, the token in the file that the log names opens them.");
}

/// Prints the result and the suggested next commands.
fn show_result(args: &DemoArgs, folder: &DemoFolder, status: &JobStatus, url: &str) -> Result<(), Fault> {
    let truth = truth::coefficients();
    let json = with_truth(&status.result_json, &truth)?;
    files::overwrite(&folder.root.join("result.json"), &format!("{json}\n"))?;
    if args.json {
        say_json(&json);
    } else {
        let result = RunResult::parse(&status.result_json)?;
        say!("\n{}", result.report(Some(&truth)));
        say!("{}", next_steps(folder, status, url));
    }
    Ok(())
}
