//! The daemon: checks everything it depends on, then starts the answering thread and the link.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use conclave_ops::files::check_closed_to;
use conclave_privacy::accounting::Adjacency;
use conclave_privacy::pass::Threads;
use conclave_proto::ca;
use conclave_proto::identity::{PeerIdentity, Role};
use conclave_proto::revoked::RevokedFile;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::config::PartyConfig;
use crate::error::StartError;
use crate::link::{Dial, IdentitySigner, Link, load_identity};
use crate::operations::Prepared;
use crate::permits::Permits;
use crate::presence::{Announcement, BEAT};
use crate::reload::{self, Reload};
use crate::reply_delay::SandboxMeter;
use conclave_ops::private_files;
use conclave_vault::answer::thread::{AnswerHandle, Command};
use conclave_vault::answer::{Answerer, Secrecy, thread};
use conclave_vault::config::{Approve, ReplyDelay};
use conclave_vault::consent::ConsentStore;
use conclave_vault::data::Shard;
use conclave_vault::ledger::{Ledger, Secret};
use conclave_vault::members::Members;
use conclave_vault::noise::Noise;
use conclave_vault::secure::MaskKeys;

/// Creates the ledger of a party's data; an explicit act, done once.
///
/// # Errors
/// [`conclave_vault::ledger::LedgerError::Exists`] if there is one; see [`conclave_vault::ledger::LedgerSettings::init`].
pub fn init_ledger(config: &PartyConfig) -> Result<(), StartError> {
    Ok(config.ledger_settings().init()?)
}

/// Makes a private key and a signing request in the identity folder unless a key exists; returns the request's path.
pub(crate) fn init_identity(config: &PartyConfig) -> Result<Option<PathBuf>, StartError> {
    let folder = &config.identity;
    let (key, request) = (&config.key, folder.join("request.pem"));
    if key.exists() {
        return Ok(None);
    }
    let system = |path: &Path, e: std::io::Error| StartError::System(format!("{}: {e}", path.display()));
    for folder in [Some(folder.as_path()), key.parent()].into_iter().flatten() {
        std::fs::create_dir_all(folder).map_err(|e| system(folder, e))?;
    }
    let made = ca::make_request(&PeerIdentity::new(Role::Party, &config.name)?, &[])?;
    std::fs::write(&request, made.pem).map_err(|e| system(&request, e))?;
    private_files::create(key, made.key_pem.as_bytes()).map_err(|e| system(key, e))?;
    Ok(Some(request))
}

/// Refuses private keys that others may read: their holder could act as this party and vouch for any ledger.
///
/// # Errors
/// Returns a sentence that names the file and the remedy.
pub(crate) fn check_key_permissions(config: &PartyConfig) -> Result<(), String> {
    [&config.key, &config.ledger_settings().secret].into_iter().try_for_each(|key| check_closed_to(0o077, key))
}

pub(crate) const NO_VECTORS: &str = "this processor lacks AVX2 or FMA, or a virtual machine hides them: without them the time of an answer depends \
                                 on the records; run the party on a processor with both, or give its machine the host's \
                                 processor model";

/// Prepares everything a party needs before it dials: identity, records, ledger, noise.
///
/// # Errors
/// Returns the first error, with the remedy.
pub(crate) fn prepare(config: &PartyConfig) -> Result<Answerer, StartError> {
    config.check_head_location().map_err(StartError::Input)?;
    if !conclave_privacy::pass::has_fused_multiply_add() {
        return Err(StartError::System(NO_VECTORS.into()));
    }
    check_key_permissions(config).map_err(StartError::Input)?;
    crate::expiry::warn(&load_identity(&config.identity, &config.key, &config.name)?);
    let shard = Shard::load(&config.data, config.policy.columns.as_deref())?;
    // The number of inert rows is for the owner only, and a log may be shared: `run --check` prints it.
    match config.budget.unit.adjacency {
        // The public number only: for persons, their number.
        Adjacency::Replace => {
            let units = if shard.persons().is_some() { "persons" } else { "records" };
            tracing::info!("{}: {} {units} read", shard.file().display(), shard.units());
        }
        Adjacency::AddRemove => tracing::info!("{}: records read; their number is not public", shard.file().display()),
    }
    match config.budget.unit.records_per_person() {
        Some(limit) => tracing::info!("protects one person, by at most {limit} rows"),
        None => tracing::info!("protects one row, not one person; set [data] person to protect persons"),
    }
    if config.policy.reply_delay == ReplyDelay::Off {
        tracing::warn!("[policy] reply_delay_ms is 0: the time of an answer is visible from outside");
    }
    if config.policy.approve == Approve::Manual {
        tracing::info!("every job waits for your decision: conclave-party jobs, approve, reject");
    }
    for limit in config.unlimited() {
        tracing::warn!("[policy] sets no {limit}: jobs are not limited by it");
    }
    let mut ledger = Ledger::open_kept(&config.ledger_settings())?;
    ledger.present_data(&shard.fingerprints(ledger.secret())?)?;
    let (spent, limit) = ledger.units();
    tracing::info!(party = %config.name, "ledger {}: {:.2}% of the budget spent", config.ledger.display(), 100.0 * spent as f64 / limit as f64);
    let noise =
        Noise::from_os().map_err(|e| StartError::System(format!("the operating system provides no random numbers: {e}")))?;
    let (name, policy) = (config.name.clone(), config.policy.clone());
    let consent = ConsentStore::open(&config.ledger)?;
    let members = Members::of(&config.identity, config.revoked.as_deref());
    let threads = Threads::new(config.threads).map_err(|e| StartError::System(format!("no threads for passes: {e}")))?;
    let answerer = Answerer::new(name, policy, config.budget, shard, ledger, noise).with_consent(consent).with_members(members);
    let settings = config.ledger_settings();
    let secrecy = Secrecy {
        settings: config.secure.clone(),
        keys: MaskKeys::beside(&settings.secret, Secret::load(&settings.secret)?),
        signer: Arc::new(IdentitySigner { party: config.name.clone(), folder: config.identity.clone(), key: config.key.clone() }),
        ca: config.identity.join("ca.pem"),
        revoked: config.revoked.clone(),
    };
    let answerer = answerer.with_secrecy(secrecy).map_err(|e| StartError::System(e.to_string()))?;
    Ok(answerer.with_threads(threads).with_delay_meter(Arc::new(SandboxMeter)).with_precision(config.precision))
}

/// Runs a party until `shutdown` completes; then the current answer is finished and sent, and the ledger is closed.
///
/// # Errors
/// [`StartError`] before anything is dialled. Once started, a lost connection is redialled indefinitely.
pub async fn run(config: PartyConfig, shutdown: impl Future<Output = ()>) -> Result<(), StartError> {
    run_reloading(config, None, None, shutdown).await
}

/// Runs the party as [`run`] does, and writes `ready_file` when the party is attached for the first time.
///
/// # Errors
/// As [`run`].
pub async fn run_with(
    config: PartyConfig,
    ready_file: Option<PathBuf>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), StartError> {
    run_reloading(config, ready_file, None, shutdown).await
}

/// Runs the party as [`run_with`] does, and reads the configuration again on request.
///
/// # Errors
/// As [`run`].
pub(crate) async fn run_reloading(
    config: PartyConfig,
    ready_file: Option<PathBuf>,
    reload: Option<Reload>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let operations = Prepared::new(&config).await?;
    let answerer = prepare(&config)?;
    // Only after the ledger's lock is held: one daemon announces itself and watches for decisions.
    let presence = Announcement::new(&config.ledger);
    let answerer = answerer.observed_by(Box::new(presence.clone()));
    let decisions = ConsentStore::open(&config.ledger)?;
    // Before anything is answered: a job whose permit expired while the party was away is not opened.
    let permits = Permits::open(&config.ledger)?;
    let answerer = answerer.permitted_by(Box::new(permits.clone()));
    let (answers, thread) = thread::start(answerer).map_err(|e| StartError::System(format!("no thread: {e}")))?;
    let operations = operations.show(presence.meters(), answers.clone(), &config.ledger);
    let mut tasks = JoinSet::new();
    tasks.spawn(watch_decisions(decisions, permits.clone(), answers.clone()));
    tasks.spawn(beat(presence.clone()));
    if let Some(reload) = reload {
        tasks.spawn(reload::watch(reload, config.clone(), answers.clone()));
    }
    let expiry = tokio::spawn(crate::expiry::watch(config.identity.clone(), config.key.clone()));
    let party = config.name.clone();
    let dial = Dial {
        party: config.name,
        coordinator: config.coordinator,
        proxy: config.proxy,
        identity: config.identity,
        key: config.key,
        revoked: config.revoked.as_deref().map(RevokedFile::at),
    };
    let mut link = Link { dial, answers, ready_file, presence, permits };
    let (stop, mut stopping) = tokio::sync::watch::channel(false);
    let kept = {
        let keep = link.keep(&mut stopping);
        tokio::pin!(keep, shutdown);
        tokio::select! {
            () = &mut shutdown => {
                tracing::info!(%party, "stopping");
                stop.send_replace(true);
                keep.await
            }
            kept = &mut keep => kept,
        }
    };
    drop(link);
    expiry.abort();
    operations.end().await;
    // The tasks hold handles, which keep the answering thread alive.
    tasks.shutdown().await;
    let joined = tokio::task::spawn_blocking(move || thread.join()).await;
    match joined {
        Ok(Ok(())) if kept.is_ok() => Ok(()),
        _ => Err(StartError::System("the answering thread ended; see the log above".into())),
    }
}

/// Writes a heartbeat at regular intervals, on the link's own thread: if that thread hangs the heartbeat stops, but computing
/// does not stop it.
async fn beat(presence: Announcement) {
    let mut tick = tokio::time::interval(BEAT);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let presence = presence.clone();
        // A hanging disk delays only the heartbeat itself.
        let _ = tokio::task::spawn_blocking(move || presence.beat()).await;
    }
}

/// Polling interval for the owner's decisions and the ends of permits.
const DECISIONS: Duration = Duration::from_millis(500);

/// Notifies the answering thread of every decision by the owner and of every end of a permit, and whenever the version can't be read.
async fn watch_decisions(store: ConsentStore, permits: Permits, answers: AnswerHandle) {
    let (mut seen, mut due) = (None, false);
    let mut tick = tokio::time::interval(DECISIONS);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let version = store.version().ok();
        let is_new = version.is_none() || version != seen;
        let unread = if is_new { permits.refresh().err() } else { None };
        due |= is_new;
        // A permit that is known ends on its day, whether or not the others can be read.
        for (job, why) in permits.lapsed() {
            if answers.send(Command::Lapse(job, why.to_string())).await.is_err() {
                return;
            }
        }
        if let Some(e) = unread {
            // No decision is passed on: an approval must not open a job whose last day is not known.
            tracing::error!("permits can't be read, and are read again: {e}");
            continue;
        }
        if due && answers.send(Command::Consent).await.is_err() {
            return;
        }
        (seen, due) = (version, false);
    }
}
