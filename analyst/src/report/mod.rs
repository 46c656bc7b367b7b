//! `conclave report`: a job's result as one HTML file that needs nothing else.

mod figures;
mod plots;
mod posterior;
mod privacy;
mod question;
mod repeat;
mod run;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use conclave_common::job::JobSpec;
use conclave_pages::page::{Page, Style, document};
use conclave_pages::text::{name, plain_name};
use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::v1::{JobRequest, JobStatus};
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::client::Connection;
use crate::draws::store::Draws;
use crate::draws::{fetch, partial_name};
use crate::files;
use crate::output::say;
use crate::submit::failure;
use crate::table::thousands;

/// Write a job's result as one HTML file
///
/// The question in words (model, priors, public bounds), the posterior on both scales, traces, densities and pairs, what the
/// diagnostics say, what was spent at each party and what that guarantees, and everything needed to repeat it, job file included.
/// The file needs no network and refers to nothing outside itself: mail it, archive it, print it. The same job gives the same file.
///
/// Works for every job that has ended with draws: finished, ended by a budget, cancelled. Its numbers are those of
/// `conclave summary JOB --json`, rounded; every digit stands in the page for programs, in <data value="..."> elements, and the
/// object itself at the end.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  conclave report JOB -o report.html\n  conclave report JOB -o report.html && xdg-open report.html"
)]
pub(crate) struct ReportArgs {
    /// The job's id, as `conclave jobs` shows it
    #[arg(value_name = "JOB")]
    job: String,
    /// Where to put it; must not be there yet
    #[arg(short = 'o', long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    connection: Connection,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What a report is made from.
struct Material<'a> {
    status: &'a JobStatus,
    /// The job file, byte for byte.
    source: &'a str,
    spec: &'a JobSpec,
    /// The run's object, as `summary --json` prints it.
    result: &'a Value,
    /// `None` where the coordinator has none any more.
    draws: Option<&'a Draws>,
    /// The coordinator's address.
    coordinator: &'a str,
}

pub(crate) async fn run(args: ReportArgs) -> Result<ExitCode, Fault> {
    if args.out.exists() {
        return Err(input(format!("{} is there already: name a place that is not taken", args.out.display())));
    }
    let mut client = args.connection.open().await?;
    let request = || JobRequest { job: args.job.clone() };
    let fault = |status: tonic::Status| from_status(&status);
    let status = client.get(request()).await.map_err(fault)?.into_inner();
    let result = result_of(&status, &args.connection.options())?;
    let source = client.source(request()).await.map_err(fault)?.into_inner().spec_toml;
    let spec = JobSpec::parse(&source).map_err(|e| {
        Fault::new(ErrorCode::Internal, format!("this version cannot read the job file ({e}): use that of the run"))
    })?;
    let partial = partial_name(&args.out);
    if partial.exists() {
        return Err(input(format!("{} is in the way of the draws that the report needs: move it away", partial.display())));
    }
    let fetched = fetch(&mut client, &args.job, &partial).await;
    let draws = read(&partial, fetched)?;
    let page = page(&Material {
        status: &status,
        source: &source,
        spec: &spec,
        result: &result,
        draws: draws.as_ref(),
        coordinator: &args.connection.coordinator,
    });
    files::write_new(&args.out, &page)?;
    let out = args.out.display().to_string();
    if args.json {
        say!("{}", json!({ "job": args.job, "report": out, "bytes": page.len() }));
    } else {
        say!("{out}: {} bytes", thousands(page.len() as u64));
    }
    Ok(ExitCode::SUCCESS)
}

/// The run's object; where there is none, why, and what to do.
fn result_of(status: &JobStatus, options: &str) -> Result<Value, Fault> {
    if !status.result_json.is_empty() {
        return serde_json::from_str(&status.result_json).map_err(|e| {
            Fault::new(ErrorCode::Internal, format!("the coordinator's result cannot be read ({e}): it may run another version"))
        });
    }
    let job = &status.job;
    Err(match status.state.as_str() {
        "failed" => failure(status),
        "cancelled" => Fault::new(
            ErrorCode::NotFound,
            format!("job {job} was cancelled before its first draw, so there is nothing to report: submit it anew"),
        ),
        state => Fault::new(
            ErrorCode::NotFound,
            format!(
                "job {job} is {state} and has no result yet: follow it to its end with `conclave watch {job}{options}`, then ask again"
            ),
        ),
    })
}

/// The fetched draws; the folder that they were fetched into is removed, whatever comes of it.
fn read(folder: &Path, fetched: Result<(u64, u64), Fault>) -> Result<Option<Draws>, Fault> {
    let draws = match fetched {
        Ok(_) => Draws::read(folder).map(Some),
        // A result without draws is one still: the coordinator's draws may have been removed.
        Err(fault) if fault.code == ErrorCode::NotFound => Ok(None),
        Err(fault) => Err(fault),
    };
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|e| files::fault(folder, "be removed", &e))?;
    }
    draws
}

/// A section of the page: its anchor, its name and what it holds.
struct Section {
    anchor: &'static str,
    heading: &'static str,
    body: Markup,
}

/// The report.
fn page(material: &Material<'_>) -> String {
    let sections = [
        Section { anchor: "question", heading: "The question", body: question::section(material) },
        Section { anchor: "posterior", heading: "The posterior", body: posterior::section(material) },
        Section { anchor: "diagnostics", heading: "Can the draws be relied on?", body: posterior::diagnostics(material) },
        Section { anchor: "plots", heading: "The draws", body: plots::section(material) },
        Section { anchor: "run", heading: "How the run went", body: run::section(material) },
        Section { anchor: "privacy", heading: "Privacy", body: privacy::section(material) },
        Section { anchor: "repeat", heading: "To check and repeat it", body: repeat::section(material) },
    ];
    let body = html! {
        h1 { (name(&material.spec.name)) }
        p.lead { "A Bayesian posterior over the records of " (parties(material.spec.parties.len())) ", none of which left its owner" }
        (run::tiles(material))
        (posterior::verdict(material))
        nav aria-label="Sections" { ul { @for section in &sections { li { a href={ "#" (section.anchor) } { (section.heading) } } } } }
        @for section in &sections {
            section aria-labelledby=(section.anchor) { h2 id=(section.anchor) { (section.heading) } (section.body) }
        }
    };
    let title = format!("{} – a report by Conclave", plain_name(&material.spec.name));
    document(&Page { title: &title, style: Style::Inside, script: None, body: &body })
}

fn parties(count: usize) -> String {
    if count == 1 { "one data owner".to_owned() } else { format!("{count} data owners") }
}

fn input(message: String) -> Fault {
    Fault::new(ErrorCode::InvalidInput, message)
}
