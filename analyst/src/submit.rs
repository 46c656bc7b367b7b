//! `conclave submit`, and the report of a job followed to its end.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use conclave_common::job::{JobError, JobSpec, with_lines};
use conclave_common::text::one_line;
use conclave_inference::sampler::with_chosen_table;
use conclave_ops::terminal;
use conclave_pages::short_id::{SHORT, first};
use conclave_predict::Level;
use conclave_proto::error::Fault;
use conclave_proto::submission;
use conclave_proto::tls::IdentityDir;
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::{JobStatus, SubmitRequest};
use serde_json::json;
use tonic::transport::Channel;

use crate::client::Connection;
use crate::faults::{failure, input, refused};
use crate::files;
use crate::follow::follow;
use crate::inadequate::AdequacyArgs;
use crate::interval::{IntervalArgs, at_level};
use crate::job::Overrides;
use crate::output::{note, say, say_json};
use crate::progress::{self, ProgressArgs, ProgressFormat};
use crate::result::RunResult;

/// Submit a job, and wait for its result with --wait
///
/// The job is checked on this machine first: an error in it is reported with its key before anything is sent or spent.
#[derive(Args)]
#[command(after_help = "Example:\n  conclave submit job.toml --coordinator https://coordinator.example \
    --identity identity/ --wait")]
pub(crate) struct SubmitArgs {
    /// The job file
    #[arg(value_name = "JOB.toml")]
    job: PathBuf,
    #[command(flatten)]
    connection: Connection,
    /// Show progress until the job has ended, then its posterior and the budget spent at each party
    #[arg(long)]
    wait: bool,
    /// Query the parties although no usable posterior can be expected at the job's budget: writes `force = true` under its
    /// [sampler]
    #[arg(long)]
    anyway: bool,
    /// Print one JSON object: the result with --wait, else the job's id
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    interval: IntervalArgs,
    #[command(flatten)]
    adequacy: AdequacyArgs,
    #[command(flatten)]
    progress: ProgressArgs,
}

pub(crate) async fn run(args: SubmitArgs) -> Result<ExitCode, Fault> {
    let text = complete(args.overrides.apply(files::read(&args.job)?)?, &args.job)?;
    let text = if args.anyway { forced(text)? } else { text };
    let mut client = args.connection.open().await?;
    let output = OutputOptions {
        extends: None,
        wait: args.wait,
        json: args.json,
        level: args.interval.other(),
        adequacy: args.adequacy,
        progress: args.progress.format,
    };
    submit_and_report(&mut client, &args.connection, text, &output).await
}

/// Output options of a submission.
pub(crate) struct OutputOptions<'a> {
    /// The job that this one continues.
    pub(crate) extends: Option<&'a str>,
    /// Follow the job to its end.
    pub(crate) wait: bool,
    /// Print one JSON object.
    pub(crate) json: bool,
    /// Level of the result's intervals, other than 90%.
    pub(crate) level: Option<Level>,
    /// Exit code of a result without an adequate answer.
    pub(crate) adequacy: AdequacyArgs,
    /// Format of the progress until the job has ended.
    pub(crate) progress: ProgressFormat,
}

/// Submits a job and prints its id at once or its result once it has ended.
pub(crate) async fn submit_and_report(
    client: &mut JobsClient<Channel>,
    connection: &Connection,
    spec_toml: String,
    output: &OutputOptions<'_>,
) -> Result<ExitCode, Fault> {
    let warnings = JobSpec::parse(&spec_toml).map(|spec| spec.privacy.warnings([])).unwrap_or_default();
    let job = submit(client, &connection.identity()?, spec_toml).await?;
    for warning in warnings {
        terminal::print_error(&format_args!("warning: {warning}"));
    }
    let options = connection.options();
    if output.wait {
        let extension = output.extends.map(|extends| format!(", which extends {extends},")).unwrap_or_default();
        match output.progress {
            ProgressFormat::Text => note!("Submitted job {job}{extension}."),
            ProgressFormat::Json => progress::print("submitted", json!({ "job": job })),
        }
        let OutputOptions { json, level, adequacy, progress: format, .. } = *output;
        let extent = if json { Extent::Json } else { Extent::Screen };
        return wait(client, &job, &ResultOptions { options: &options, extent, level, adequacy, progress: format }).await;
    }
    if output.json {
        let object = match output.extends {
            Some(extends) => json!({ "job": job, "extends": extends }),
            None => json!({ "job": job }),
        };
        say_json(&object);
    } else {
        say!("{job}");
        note!("Submitted. Next:\n  conclave watch {job}{options}\n  conclave cancel {job}{options}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a job file and applies the checks of the coordinator and the parties.
///
/// If a job names no algorithm, adds `algorithm = "auto"`, or `hmc` if gradients are to drive the chains: the algorithm is then
/// part of the text that is signed, stored and shown to owners. Adds the boxes of possible values within the outcome's bounds
/// too, the prior of a survival model's scale, `release.table` where a table is expected to be better than scores, and the
/// weights of a regression.
pub(crate) fn read_job(path: &Path) -> Result<String, Fault> {
    complete(files::read(path)?, path)
}

fn complete(text: String, path: &Path) -> Result<String, Fault> {
    completed(&text).map_err(|e| input(format!("{}: {e}", path.display())))
}

/// Completes and checks the text of a job, as [`read_job`] does.
///
/// # Errors
/// A text that is no job, with the key.
pub(crate) fn completed(text: &str) -> Result<String, JobError> {
    let text = with_chosen_table(&JobSpec::with_scale_prior(&JobSpec::with_chosen_chains(&named(text.to_owned()))));
    let text = JobSpec::with_chosen_weights(&text);
    JobSpec::parse(&text).and_then(|spec| spec.check_new())?;
    Ok(JobSpec::with_possible_boxes(&text))
}

/// Adds `force = true` under `[sampler]`, visible to owners.
///
/// # Errors
/// Fails if `[sampler]` is not written as a separate table, or sets `force` to another value.
pub(crate) fn forced(text: String) -> Result<String, Fault> {
    let is_forced = |text: &str| JobSpec::parse(text).is_ok_and(|spec| spec.sampler.force);
    if is_forced(&text) {
        return Ok(text);
    }
    let written = with_lines(&text, "sampler", &["force = true"]);
    if is_forced(&written) {
        return Ok(written);
    }
    Err(input("--anyway: write force = true under [sampler] in the job file yourself"))
}

/// Adds the algorithm to a text; returns it unchanged if it names one or does not parse.
fn named(text: String) -> String {
    let names_none = text.parse::<toml::Table>().is_ok_and(|table| !table.contains_key("algorithm"));
    if names_none { format!("algorithm = \"auto\"\n{text}") } else { text }
}

/// Signs a job with the analyst's key, sends it and returns its id. Every party checks the signature: no coordinator can submit
/// in an analyst's name.
pub(crate) async fn submit(client: &mut JobsClient<Channel>, identity: &IdentityDir, spec_toml: String) -> Result<String, Fault> {
    let submission = Some(submission::sign(identity, &spec_toml)?);
    let reply = client.submit(SubmitRequest { spec_toml, submission }).await.map_err(refused)?;
    Ok(reply.into_inner().job)
}

/// Extent of a printed result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// One JSON object.
    Json,
    /// Text that fits one screen.
    Screen,
    /// Text with every parameter and all diagnostics.
    All,
}

/// Output options of a result.
pub(crate) struct ResultOptions<'a> {
    /// The connection options for suggested commands.
    pub(crate) options: &'a str,
    /// Extent of the output.
    pub(crate) extent: Extent,
    /// Level of the intervals, other than 90%.
    pub(crate) level: Option<Level>,
    /// Exit code of a result without an adequate answer.
    pub(crate) adequacy: AdequacyArgs,
    /// Format of the progress until the job has ended.
    pub(crate) progress: ProgressFormat,
}

/// Follows a job to its end and prints its result. Ctrl-C ends the watching, not the job.
pub(crate) async fn wait(client: &mut JobsClient<Channel>, job: &str, output: &ResultOptions<'_>) -> Result<ExitCode, Fault> {
    let options = output.options;
    let status = tokio::select! {
        status = follow(client, job, output.progress) => status?,
        _ = tokio::signal::ctrl_c() => {
            note!(
                "\nThe job continues to run. To follow it again or to end it:\n  conclave watch {job}{options}\n  \
                 conclave cancel {job}{options}"
            );
            return Ok(ExitCode::from(1));
        }
    };
    let status = at_level(client, status, output.level).await?;
    print_result(&status, output)
}

/// Prints the result of a job that has ended, and returns the exit code.
pub(crate) fn print_result(status: &JobStatus, output: &ResultOptions<'_>) -> Result<ExitCode, Fault> {
    let result = (!status.result_json.is_empty()).then(|| RunResult::parse(&status.result_json)).transpose()?;
    match &result {
        Some(_) if output.extent == Extent::Json => say_json(&status.result_json.trim()),
        Some(result) => {
            let more = format!("conclave summary {} --all{}", first(&status.job, SHORT), output.options);
            let text = if output.extent == Extent::All { result.report(None) } else { result.short_report(&more) };
            say!("{}", text.trim_end());
            if let Some(draws) = result.draws() {
                say!("\nDraws on the coordinator: {}", one_line(draws));
            }
        }
        None => {}
    }
    match status.state.as_str() {
        "finished" => Ok(result.map_or(ExitCode::SUCCESS, |result| output.adequacy.exit_code(result.grade()))),
        "cancelled" => {
            note!("The job was cancelled.");
            Ok(ExitCode::from(1))
        }
        _ => Err(failure(status)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_proto::error::ErrorCode;

    #[test]
    fn a_bad_job_is_named_by_file_and_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.toml");
        std::fs::write(&path, "nmae = \"x\"\n").unwrap();
        let fault = read_job(&path).unwrap_err();
        assert_eq!(fault.code, ErrorCode::InvalidInput);
        assert!(fault.message.contains("job.toml") && fault.message.contains("nmae"), "{fault}");
        let fault = read_job(&folder.path().join("none.toml")).unwrap_err();
        assert!(fault.message.contains("none.toml"), "{fault}");
    }

    /// A job of an earlier version may rotate its moves and is read as before.
    #[test]
    fn turned_moves_are_for_jobs_of_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.toml");
        let job = "name = \"m\"\nparties = [\"a\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"u\"]\n[columns]\ny = { binary = true }\n\
            u = { min = 0, max = 1 }\n[sampler]\nproposal = { rotate = true }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n";
        assert!(JobSpec::parse(job).unwrap().sampler.rotate);
        std::fs::write(&path, job).unwrap();
        let fault = read_job(&path).unwrap_err();
        assert!(fault.code == ErrorCode::InvalidInput && fault.message.contains("sampler.proposal.rotate"), "{fault}");
        std::fs::write(&path, job.replace("rotate = true", "rotate = false")).unwrap();
        read_job(&path).unwrap();
    }

    /// The text that is signed holds the choices made for a job: its table, and the prior of a scale.
    #[test]
    fn what_is_chosen_is_written_into_a_job() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.toml");
        let end = "[privacy]\nepsilon = 1.0\ndelta = 1e-6\n";
        let categories = "name = \"m\"\nparties = [\"a\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"u\", \"v\", \"w\"]\n[columns]\n\
            y = { binary = true }\nu = { binary = true }\nv = { binary = true }\nw = { binary = true }\n";
        let times = "name = \"m\"\nparties = [\"a\"]\n[model]\nkind = \"weibull\"\noutcome = \"y\"\nevent = \"d\"\n[columns]\n\
            y = { min = 0.01, max = 900 }\nd = { binary = true }\n";
        for (job, lines) in [(categories, vec!["table = true"]), (times, vec!["table = true", "scale = \"lognormal(0, 2.5)\""])] {
            std::fs::write(&path, format!("{job}{end}")).unwrap();
            let text = read_job(&path).unwrap();
            assert!(
                lines.iter().all(|line| text.contains(line)) && text.contains(job) && JobSpec::parse(&text).is_ok(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_job_that_is_submitted_anyway_says_so() {
        let job = "name = \"m\" # mine\nparties = [\"a\"]\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\ny = { binary = true }\n\
            [privacy]\nepsilon = 1.0\ndelta = 1e-6\n";
        for rest in ["", "[sampler]\ndraws = 10\n", "  [sampler] # more\n", "[sampler]\nforce = true\n"] {
            let text = forced(format!("{job}{rest}")).unwrap();
            assert!(JobSpec::parse(&text).unwrap().sampler.force && text.contains("# mine"), "{text}");
        }
        for rest in ["[sampler]\nforce = false\n", "[sampler.proposal]\nkind = \"guided\"\n[sampler]\nforce = false\n"] {
            assert!(forced(format!("{job}{rest}")).unwrap_err().message.contains("force = true"));
        }
        let inline = format!("sampler = {{ draws = 10 }}\n{job}");
        assert_eq!(forced(inline).unwrap_err().code, ErrorCode::InvalidInput);
    }

    #[test]
    fn a_failed_job_exits_by_its_code() {
        let output = ResultOptions {
            options: "",
            extent: Extent::Json,
            level: None,
            adequacy: AdequacyArgs::default(),
            progress: ProgressFormat::Text,
        };
        for (code, exit) in [("invalid_input", 2), ("budget", 3), ("unreachable", 4), ("", 1)] {
            let status = JobStatus { state: "failed".to_owned(), error_code: code.to_owned(), ..JobStatus::default() };
            assert_eq!(print_result(&status, &output).unwrap_err().code.exit_code(), exit);
        }
        let error = "a\n\u{1b}[2Jconclave: the job finished".to_owned();
        let forged = failure(&JobStatus { error, ..JobStatus::default() });
        assert_eq!(forged.message, "the job failed: a  [2Jconclave: the job finished");
    }
}
