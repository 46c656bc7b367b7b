//! `conclave rehearse`: a job from start to end in this process, on records that its user holds.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use conclave_common::accounting::PrivacyUnit;
use conclave_common::job::JobSpec;
use conclave_common::model::ModelData;
use conclave_common::planner::Guess;
use conclave_common::rehearsal::{Answer, Rehearsal};
use conclave_common::sampler::{self, ClipWatch, Phase, Sampler, SamplerError, Totals};
use conclave_common::schema::ColumnSpec;
use conclave_draws::attributes;
use conclave_draws::result::{self, Outcome, PartyOutcome, RunResult, StoppedBy};
use conclave_draws::spent::Spent;
use conclave_draws::zarr::DrawStore;
use conclave_party::config::{BadRows, DataConfig, Memory};
use conclave_party::data::{Shard, bind};
use conclave_proto::error::{ErrorCode, Fault};
use indicatif::{ProgressBar, ProgressStyle};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use crate::files;
use crate::output::say;
use crate::result::RunResult as ShownResult;
use crate::submit::read_job;

/// Run a job in this process on files of your own: no network, no real budget
///
/// The sampler, the models, the noise and the accounting are those of a real run; only the owners' ledgers are missing,
/// so nobody's budget is spent and nothing here is private. For a look at a job before it is submitted, on the
/// analyst's own or on made-up records. Ctrl-C ends the run and keeps what was drawn.
#[derive(Args)]
#[command(after_help = "Examples:\n  conclave rehearse job.toml --data a.csv --data b.csv --data c.csv\n  \
    conclave rehearse job.toml --data a.csv --data b.csv --data c.csv --json > rehearsal.json\n  \
    conclave plan job.toml --rehearsal rehearsal.json")]
pub(crate) struct RehearseArgs {
    /// The job file
    #[arg(value_name = "JOB.toml")]
    job: PathBuf,
    /// A party's records, .csv or .parquet; one for each party, in the job's order
    #[arg(long, required = true, value_name = "FILE")]
    data: Vec<PathBuf>,
    /// Leave out rows with a missing, non-numeric or non-finite value, rather than stop at the first
    #[arg(long)]
    drop_bad_rows: bool,
    /// Put the draws there, a Zarr v3 store; must not be there yet
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Seed of the noise, to have the same run again; the system's randomness when not given
    #[arg(long, value_name = "N")]
    noise_seed: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A rehearsal's object: a finished run's, and what a plan is made from.
#[derive(Serialize)]
struct Rehearsed {
    #[serde(flatten)]
    result: RunResult,
    /// Record counts, and the posterior's mean and covariance.
    plan: Guess,
}

pub(crate) fn run(args: &RehearseArgs) -> Result<ExitCode, Fault> {
    let text = read_job(&args.job)?;
    let spec = JobSpec::parse(&text).map_err(|e| input(format!("{}: {e}", args.job.display())))?;
    if args.data.len() != spec.parties.len() {
        let (got, parties) = (args.data.len(), spec.parties.join(", "));
        return Err(input(format!("{got} times --data for {} parties ({parties}): give one file for each", spec.parties.len())));
    }
    let shards = args.data.iter().map(|path| shard(path, &spec, args.drop_bad_rows)).collect::<Result<Vec<_>, _>>()?;
    let rng = match args.noise_seed {
        Some(seed) => ChaCha20Rng::seed_from_u64(seed),
        None => ChaCha20Rng::from_rng(&mut rand::rng()),
    };
    if let Some(out) = &args.out
        && !files::is_vacant(out)?
    {
        return Err(input(format!("{} is not empty: name a folder that is not there yet", out.display())));
    }
    let rehearsed = rehearse(&spec, shards, rng, args.out.as_deref(), &*stop_on_ctrl_c()?)?;
    let json = serde_json::to_string(&rehearsed).map_err(|e| Fault::new(ErrorCode::Internal, e.to_string()))?;
    if args.json {
        say!("{json}");
    } else {
        say!("{}", ShownResult::parse(&json)?.report(None).trim_end());
        say!("\nA rehearsal: no ledger was charged. What the parties would have spent is shown above.");
        if let Some(out) = &args.out {
            say!("Draws: {}", out.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A party's records as the party itself would load them.
fn shard(path: &Path, spec: &JobSpec, drop: bool) -> Result<(ModelData, PrivacyUnit), Fault> {
    let used = spec.model.columns();
    let levels =
        spec.columns.iter().filter(|(name, column)| used.contains(&name.as_str()) && matches!(column, ColumnSpec::Levels(_)));
    let levels = levels.map(|(name, _)| name);
    let config = DataConfig {
        path: path.to_owned(),
        bad_rows: if drop { BadRows::Drop } else { BadRows::Stop },
        text: levels.cloned().collect(),
        person: None,
        unit: PrivacyUnit::default(),
        memory: Memory::default(),
    };
    let needed: Vec<String> = spec.model.columns().into_iter().map(str::to_owned).collect();
    let shard = Shard::load(&config, Some(&needed)).map_err(|e| input(e.to_string()))?;
    let data = bind(&shard, spec).map_err(|e| input(format!("{}: {e}", path.display())))?;
    Ok((data, config.unit))
}

/// A flag that Ctrl-C raises.
fn stop_on_ctrl_c() -> Result<Arc<AtomicBool>, Fault> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Fault::new(ErrorCode::Internal, format!("could not start the runtime: {e}")))?;
    std::thread::spawn(move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            raised.store(true, Ordering::Relaxed);
        }
    });
    Ok(flag)
}

fn rehearse(
    spec: &JobSpec,
    shards: Vec<(ModelData, PrivacyUnit)>,
    rng: ChaCha20Rng,
    out: Option<&Path>,
    stop: &AtomicBool,
) -> Result<Rehearsed, Fault> {
    let records: Vec<u64> = shards.iter().map(|(data, _)| data.records()).collect();
    let mut parties = Rehearsal::new(spec, shards, rng).map_err(|e| input(e.to_string()))?;
    let metadata = parties.metadata();
    let mut sampler = sampler::build(spec, &metadata).map_err(|e| input(e.to_string()))?;
    let names = spec.model.parameter_names();
    let chains = spec.sampler.chains as usize;
    let mut draws = match out {
        Some(out) => DrawStore::create(out, chains, &names, &attributes::at_start(spec, JOB)).map_err(|e| written(out, &e))?,
        None => DrawStore::in_memory(Path::new(""), chains, &names),
    };
    let (began, mut iterations, mut progress) = (Instant::now(), 0, Progress::new(spec.sampler.draws));
    let (mut stopped_by, mut budget_party) = (StoppedBy::Draws, None);
    loop {
        let round = match sampler.next_round() {
            Ok(Some(round)) => round,
            Ok(None) => break,
            // As in a real run: the draws are kept and marked.
            Err(SamplerError::Clipped(_)) => {
                stopped_by = StoppedBy::Clip;
                break;
            }
            Err(other) => return Err(input(other.to_string())),
        };
        if stop.load(Ordering::Relaxed) {
            stopped_by = StoppedBy::Cancelled;
            break;
        }
        match parties.answer(&round).map_err(|e| input(e.to_string()))? {
            Answer::Released(releases) => {
                let totals = Totals::of(&round, &releases);
                totals.and_then(|totals| sampler.absorb(&totals)).map_err(|e| input(e.to_string()))?;
            }
            Answer::Refused { party, .. } => {
                (stopped_by, budget_party) = (StoppedBy::Budget, Some(spec.parties[party].clone()));
                break;
            }
        }
        iterations += 1;
        sampler.take_draws().into_iter().for_each(|draw| draws.push(&draw.into()));
        progress.show(round.phase, iterations, draws.kept() as u64);
    }
    // Draws decided without a question, at the edge of the parameter box, are draws too.
    sampler.take_draws().into_iter().for_each(|draw| draws.push(&draw.into()));
    progress.finish();
    let spent = parties.spent().into_iter().map(|(queries, units)| Spent { queries, units });
    let parties = spec.parties.iter().zip(&metadata).zip(spent);
    let outcome = Outcome {
        stopped_by,
        budget_party,
        iterations,
        seconds: began.elapsed().as_secs_f64(),
        warnings: clip_warning(sampler.as_ref()).into_iter().collect(),
        radii: sampler.radii_by_parameter(),
        parties: parties
            .map(|((name, metadata), spent)| PartyOutcome { name: name.clone(), holding: Some(*metadata), spent })
            .collect(),
    };
    if draws.kept() == 0 {
        if let Some(reason) = sampler.clip_watch().and_then(ClipWatch::stop) {
            return Err(input(reason));
        }
        let message =
            "not one draw was kept: raise the job's epsilon, or shorten its warm-up; `conclave plan` tells what a budget holds";
        return Err(Fault::new(
            if stopped_by == StoppedBy::Budget { ErrorCode::Budget } else { ErrorCode::InvalidInput },
            message,
        ));
    }
    let result = result::build(spec, JOB, out, &draws, &outcome);
    if let Some(out) = out {
        draws.finish(&attributes::at_end(spec, JOB, &result)).map_err(|e| written(out, &e))?;
    }
    let plan = moments(&draws, names.len(), records);
    Ok(Rehearsed { result, plan })
}

/// What the analyst must know of an explicit clip.
fn clip_warning(sampler: &dyn Sampler) -> Option<String> {
    sampler.clip_watch().and_then(|watch| watch.stop().or_else(|| watch.warning()))
}

/// The id of a rehearsal, which no coordinator knows.
const JOB: &str = "rehearsal";

/// Posterior mean and covariance of the kept draws.
fn moments(draws: &DrawStore, parameters: usize, records: Vec<u64>) -> Guess {
    let columns: Vec<Vec<f64>> = (0..parameters).map(|i| draws.samples(i).concat()).collect();
    let count = columns.first().map_or(0, Vec::len) as f64;
    let mean: Vec<f64> = columns.iter().map(|c| c.iter().sum::<f64>() / count).collect();
    let covariance = |i: usize, j: usize| {
        let products = columns[i].iter().zip(&columns[j]).map(|(x, y)| (x - mean[i]) * (y - mean[j]));
        products.sum::<f64>() / (count - 1.0).max(1.0)
    };
    let covariance = (0..parameters).map(|i| (0..parameters).map(|j| covariance(i, j)).collect()).collect();
    Guess { records, mean, covariance }
}

/// A bar on a terminal, nothing elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
    shown: Instant,
}

impl Progress {
    fn new(draws: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(draws);
            // The template is a constant that is known to parse; a plain bar would do as well.
            if let Ok(style) = ProgressStyle::with_template("{prefix:>10} [{bar:30}] {msg}") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        Self { bar, shown: Instant::now() }
    }

    fn show(&mut self, phase: Phase, rounds: u64, kept: u64) {
        let Some(bar) = &self.bar else { return };
        if self.shown.elapsed() >= Duration::from_millis(100) {
            self.shown = Instant::now();
            bar.set_position(kept);
            bar.set_prefix(phase.as_str());
            bar.set_message(format!("{kept} draws per chain, {rounds} rounds"));
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn written(path: &Path, error: &std::io::Error) -> Fault {
    Fault::of_file(path, "be written", error)
}

fn input(message: String) -> Fault {
    Fault::new(ErrorCode::InvalidInput, message)
}
