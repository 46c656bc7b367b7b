//! `conclave predict`: its options.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use conclave_common::job::JobSpec;
use conclave_draws::Draws;
use conclave_pages::object::sentences;
use conclave_pages::released;
use conclave_pages::text::thousands;
use conclave_proto::error::{ErrorCode, Fault};
use serde_json::Value;

use super::answer::{Answer, Request, answer};
use super::{csv_file, input as rows, shown, structured};
use crate::client::{Connection, OptionalConnection};
use crate::ended::{fetch_job, interruptible};
use crate::faults::{input, internal};
use crate::files;
use crate::interval::IntervalArgs;
use crate::output::{note, say, say_json};
use crate::short_id::whole_id;

const AFTER_HELP: &str = "\
Everything is computed on this machine from the draws of a finished job, or with --from from those of `conclave rehearse` or \
`refit`: no party is queried, and nothing is charged. For each draw \
of the posterior the model gives an expected outcome; the table has its mean over the draws and an equal-tailed interval. An answer \
that is not adequate gives no prediction.

Rows: --at writes one on the command line, --data reads a CSV file whose header names the columns; further columns of the file are \
ignored. Values are in the data's own units, or names of levels. A row states every predictor. The exposure may be left out: the \
prediction is then per unit of it. A value outside the declared bounds is replaced by the nearest bound, as the model replaces those \
of records, and a warning names it. --data should hold public or made-up rows; it is read on this machine and sent nowhere.

Quantities: a probability (logistic, bernoulli, multinomial, naive_bayes), a mean (linear, student_t, gaussian_mean) or a rate (poisson, \
negative_binomial, poisson_mean); for weibull the median, for piecewise_exponential the mean up to the declared maximum, and with --times the survival probability. They describe the average \
outcome of such records. --outcome adds the interval of a single new record's outcome, which is wider.

Parties: in a job with parameters by party, --party predicts at one of its parties and --new-party at a party outside the job. \
Without either, a prediction is at the mean of the parameters over the parties.

--contrast compares each row with the first: the difference, and the ratio of odds (logistic) or of rates (counts). --average gives \
the mean change of the expected outcome over the rows: from 0 to 1, from the first level to each other, or per unit of a number.

Examples:
  conclave predict JOB --at \"age=60, treated=1\"
  conclave predict JOB --at \"age=60, treated=0\" --at \"age=60, treated=1\" --contrast
  conclave predict JOB --at 'age=60, ward=\"surgery, acute\"' --outcome --interval 0.95
  conclave predict JOB --data new.csv --out predictions.csv
  conclave predict JOB --data population.csv --average treated --average age
  conclave predict JOB --at \"age=60, treated=1\" --party hospital-a
  conclave predict JOB --times 1,2,5
  conclave predict --from rehearsal.zarr --job-file job.toml --result rehearsal.json --at \"age=60, treated=1\"";

/// Predict from a finished job: expected outcomes at covariates, contrasts, average effects
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PredictArgs {
    /// The job's id, or its first characters, as `conclave jobs` shows it
    #[arg(value_name = "JOB", required_unless_present = "from")]
    job: Option<String>,
    /// Predict from this store of draws, made by --out of `conclave rehearse` or `refit`, in place of a job's
    #[arg(long, value_name = "STORE", conflicts_with = "job", requires = "job_file", requires = "result")]
    from: Option<PathBuf>,
    /// The job file of --from; that of a refit is written by its --job-out
    #[arg(long, value_name = "JOB.toml", requires = "from")]
    job_file: Option<PathBuf>,
    /// The object of --from, as `conclave rehearse --json` or `refit --json` printed it
    #[arg(long, value_name = "FILE.json", requires = "from")]
    result: Option<PathBuf>,
    #[command(flatten)]
    connection: OptionalConnection,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// A row of covariates; may be given several times. Quote a value that contains a comma: ward="a, b"
    #[arg(long, value_name = "COLUMN=VALUE, …")]
    at: Vec<String>,
    /// CSV file or folder of raw columns with rows, after those of --at
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Predict at this party of a job with parameters by party
    #[arg(long, value_name = "PARTY", conflicts_with = "new_party")]
    party: Option<String>,
    /// Predict at a party outside the job, whose parameters are drawn from those over the parties
    #[arg(long)]
    new_party: bool,
    /// Add the interval of a new record's outcome
    #[arg(long)]
    outcome: bool,
    /// Compare each row with the first
    #[arg(long, conflicts_with = "average")]
    contrast: bool,
    /// Average the effect of this predictor over the rows, in place of the prediction at each; may be given several times
    #[arg(long, value_name = "PREDICTOR", conflicts_with = "outcome")]
    average: Vec<String>,
    /// Times at which survival is predicted, in the data's units
    #[arg(long, value_name = "T,…", value_delimiter = ',')]
    times: Vec<f64>,
    #[command(flatten)]
    interval: IntervalArgs,
    /// Seed of drawn outcomes and of a new party's parameters [default: the job's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write the result to this CSV file instead; must not exist
    #[arg(long, value_name = "FILE.csv")]
    out: Option<PathBuf>,
}

pub(crate) async fn run(args: PredictArgs) -> Result<ExitCode, Fault> {
    if let Some(out) = args.out.as_ref().filter(|out| out.exists()) {
        return Err(input(format!("{} already exists", out.display())).with_remedy("choose another path"));
    }
    let request = Request {
        tables: rows::tables(&args.at, args.data.as_deref())?,
        party: args.party,
        new_party: args.new_party,
        times: args.times,
        outcome: args.outcome,
        contrast: args.contrast,
        average: args.average,
        level: args.interval.level(),
        seed: args.seed,
    };
    let (out, json) = (args.out, args.json);
    let (job, answer) = match (args.from, args.job_file, args.result, args.job, args.connection.given()) {
        (Some(store), Some(file), Some(result), ..) => {
            interruptible(on_thread(move || of_files(&store, &file, &result, &request))).await??
        }
        (.., Some(job), Some(connection)) => interruptible(of_job(&connection, &job, request)).await?,
        // The parser requires these options.
        _ => return Err(input("give a job and its coordinator, or --from STORE")),
    };
    answer.warnings().iter().for_each(|warning| note!("warning: {warning}"));
    answer.of_result.iter().for_each(|warning| note!("warning: of the result: {warning}"));
    if let Some(out) = &out {
        let lines = csv_file::write(out, &answer)?;
        let object = serde_json::json!({ "job": job, "predictions": out.display().to_string(), "lines": lines });
        if json { say_json(&object) } else { say!("{}: {} lines", out.display(), thousands(lines)) }
    } else if json {
        say_json(&structured::object(&job, &answer));
    } else {
        say!("{}", shown::text(&job, &answer));
    }
    Ok(ExitCode::SUCCESS)
}

/// Predicts from a finished job of a coordinator; returns its id too.
async fn of_job(connection: &Connection, job: &str, request: Request) -> Result<(String, Answer), Fault> {
    let job = whole_id(connection, job).await?;
    let fetched = fetch_job(connection, &job).await?;
    check(&fetched.result, &job)?;
    let answer = on_thread(move || compute(&fetched.spec, &fetched.result, &fetched.draws.sampling.theta, &request)).await??;
    Ok((job, answer))
}

/// Predicts from a store, its job file and its object; returns the job's name in the object too.
fn of_files(store: &Path, file: &Path, result: &Path, request: &Request) -> Result<(String, Answer), Fault> {
    let spec = JobSpec::parse(&files::read(file)?).map_err(|e| input(format!("{}: {e}", file.display())))?;
    let object: Value = serde_json::from_str(&files::read(result)?).map_err(|e| {
        input(format!("{} is no object of a run: {e}", result.display())).with_remedy("write it by `conclave rehearse --json`")
    })?;
    let job = object["job"].as_str().unwrap_or_default().to_owned();
    check(&object, &job)?;
    let draws = Draws::read(store)?;
    let expected = spec.draw_names();
    if draws.parameters != expected {
        let message = format!("{} has other parameters than {}", store.display(), file.display());
        return Err(input(message).with_remedy("name the job file that the draws were made by"));
    }
    Ok((job, compute(&spec, &object, &draws.sampling.theta, request)?))
}

/// Refuses an answer that is not adequate, with the reasons.
pub(super) fn check(result: &Value, job: &str) -> Result<(), Fault> {
    if released::is_adequate(result) {
        return Ok(());
    }
    let reasons = sentences(&result["adequacy"], "reasons").join("; ");
    let message = format!(
        "job {job} has no adequate answer, so nothing is predicted from it: {reasons}. Next: {}",
        released::remedies(result)
    );
    Err(Fault::new(ErrorCode::Internal, message))
}

fn compute(spec: &JobSpec, result: &Value, samples: &[Vec<Vec<f64>>], request: &Request) -> Result<Answer, Fault> {
    let estimand = result["posterior"][0]["estimand"].as_str();
    let answer = answer(spec, samples, request).map_err(|e| input(e.to_string()))?;
    Ok(Answer { estimand: estimand.map(str::to_owned), of_result: sentences(result, "warnings"), ..answer })
}

/// Predicts from a run's object and its kept draws, `[value][chain][draw]`; returns the object of `predict --json`.
///
/// # Errors
/// An answer that is not adequate; a request that does not fit the job.
pub(crate) fn predicted(spec: &JobSpec, result: &Value, samples: &[Vec<Vec<f64>>], request: &Request) -> Result<Value, Fault> {
    let job = result["job"].as_str().unwrap_or_default();
    check(result, job)?;
    Ok(structured::object(job, &compute(spec, result, samples, request)?))
}

/// Runs a long computation beside the runtime, which still notices Ctrl-C.
async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    let (send, receive) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || drop(send.send(work())));
    receive.await.map_err(|_| internal("the prediction failed"))
}
