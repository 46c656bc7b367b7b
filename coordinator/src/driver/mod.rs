//! One task per running job: ask every party, wait for all, absorb, go on.
//!
//! A party that can't answer pauses the chains and is asked the same round again: going on without it, or with another
//! proposal, would change the posterior.

pub(crate) mod attributes;
mod chain;
mod deadline;
mod draws;
mod ending;
mod members;
mod report;
mod stopwatch;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use conclave_common::job::JobSpec;
use conclave_common::sampler::PartyMetadata;
use conclave_proto::convert::query_to_wire;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1;
use conclave_proto::v1::coordinator_frame::Body;
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, watch};

use crate::hub::{Event, Hub, PartyEvent};
use crate::live::Live;
use crate::meters::Meters;
use crate::status::Status;
use crate::store::Store;
use chain::Chain;
pub(crate) use deadline::Limits;
use members::{Members, Told};
pub(crate) use report::queued;
use stopwatch::Stopwatch;

/// What a driver needs to know of its job.
#[derive(Debug)]
pub(crate) struct Job {
    /// In the form of a UUID; it follows from what the analyst signed.
    pub id: Arc<str>,
    /// Who submitted it.
    pub analyst: String,
    /// The job, parsed.
    pub spec: JobSpec,
    /// The job file, byte for byte.
    pub spec_toml: String,
    /// Its analyst's signature.
    pub submission: v1::Submission,
    /// Unix time in milliseconds.
    pub submitted_ms: i64,
    /// Where its Zarr store is.
    pub draws: PathBuf,
    /// What is shown of its chains, where somebody may watch.
    pub live: Option<Arc<Live>>,
}

impl Job {
    /// The folder of a job's draws below the folder of all draws.
    pub(crate) fn draws_folder(all: &Path, id: &str) -> PathBuf {
        draws::folder(all, id)
    }

    fn draws_fault(&self, error: &std::io::Error) -> Fault {
        Fault::new(ErrorCode::Internal, format!("the draws in {} can't be written: {error}", self.draws.display()))
    }
}

/// Why a driver is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The analyst ends the job; its draws are kept.
    Cancel,
    /// The coordinator ends; the job goes on when it is back.
    Shutdown,
}

/// How a run ends.
#[derive(Debug, PartialEq)]
pub(crate) enum Ending {
    /// All draws are made.
    Finished,
    /// A party's budget does not admit the next round.
    Budget { party: usize, message: String },
    /// The analyst's wish.
    Cancelled,
    /// A party's owner refuses it, or refuses that it goes on: what was drawn before is kept.
    Refused(Fault),
    /// The job's clip cuts too much: what was drawn is kept, and marked.
    Clipped(Fault),
    /// It can't go on.
    Failed(Fault),
    /// It can't go on here and now; a restarted coordinator takes it up.
    Stopped(Fault),
    /// The coordinator ends.
    Shutdown,
}

/// What a driver works with.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// Who is attached.
    pub hub: Arc<Hub>,
    /// The iteration log.
    pub store: Store,
    /// What is counted.
    pub meters: Arc<Meters>,
    /// How long parties are waited for.
    pub limits: Limits,
}

/// The driver of one job.
pub(crate) struct Driver {
    job: Arc<Job>,
    hub: Arc<Hub>,
    store: Store,
    meters: Arc<Meters>,
    limits: Limits,
    events: mpsc::UnboundedReceiver<PartyEvent>,
    members: Members,
    chain: Option<Chain>,
    /// What opens the job, ready to send.
    opening: Arc<Body>,
    /// The round being asked, ready to send as the first attempt.
    query: Option<Arc<Body>>,
    stopwatch: Stopwatch,
    status: watch::Sender<Status>,
    stop: watch::Receiver<Option<Stop>>,
    published: Instant,
}

impl Driver {
    /// A driver ready to [`Self::run`]. `holdings` are what parties reported when the job was opened before.
    pub(crate) fn new(
        job: Arc<Job>,
        holdings: &[Option<PartyMetadata>],
        surroundings: Surroundings,
        status: watch::Sender<Status>,
        stop: watch::Receiver<Option<Stop>>,
    ) -> Self {
        let Surroundings { hub, store, meters, limits } = surroundings;
        let events = hub.subscribe(Arc::clone(&job.id), &job.spec.parties);
        let members = Members::new(&job.spec.parties, holdings, limits, Moment::now());
        let opening = Arc::new(open_job(&job));
        Self {
            job,
            hub,
            store,
            meters,
            limits,
            events,
            members,
            chain: None,
            opening,
            query: None,
            stopwatch: Stopwatch::new(),
            status,
            stop,
            published: Instant::now(),
        }
    }

    /// Runs the job to its end, or until the coordinator stops.
    pub(crate) async fn run(mut self) {
        tracing::info!(job = %self.job.id, name = self.job.spec.name, analyst = self.job.analyst, "job taken up");
        let _traced = tracing::info_span!(target: conclave_ops::EXPORTED, "job", job = %self.job.id);
        // `steps` returns by its error alone.
        let Err(ending) = self.steps().await;
        self.end(ending).await;
    }

    async fn steps(&mut self) -> Result<Infallible, Ending> {
        if let Some(holdings) = self.members.holdings() {
            self.start(holdings).await?;
        }
        let patience = tokio::time::sleep(self.limits.shown);
        tokio::pin!(patience);
        let mut heard = Heard::News;
        loop {
            self.publish(heard);
            heard = Heard::News;
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => heard = self.handle(event).await?,
                    None => return Err(Ending::Shutdown),
                },
                ending = told_to_stop(&mut self.stop) => return Err(ending),
                () = &mut patience => {
                    let now = Moment::now();
                    patience.as_mut().reset(now.at + self.limits.shown);
                    self.members.hasten(&self.job.id, now);
                }
            }
        }
    }

    async fn handle(&mut self, event: PartyEvent) -> Result<Heard, Ending> {
        let party = event.party;
        match event.event {
            Event::Attached(outbox) => {
                outbox.send(Arc::clone(&self.opening));
                self.members.attach(party, outbox, Moment::now());
            }
            Event::Detached => {
                tracing::warn!(job = %self.job.id, party = self.members.list[party].name, "job paused: the party is away");
                self.members.detach(party, Moment::now());
            }
            Event::Said(message) => match self.members.hear(party, message, Moment::now())? {
                Told::Nothing => {}
                Told::FirstOpening(holding) => {
                    self.store.set_holding(&self.job.id, party, holding);
                    self.opened(party).await?;
                }
                Told::Opening => self.opened(party).await?,
                Told::Answered => {
                    if let Some(live) = &self.job.live {
                        live.replied(party, self.stopwatch.since_asked(), self.members.held_back(party));
                    }
                    if self.members.all_answered() {
                        self.advance()?;
                    }
                    return Ok(Heard::Answer);
                }
                Told::AskAgain => self.ask(party),
            },
        }
        Ok(Heard::News)
    }

    async fn opened(&mut self, party: usize) -> Result<(), Ending> {
        tracing::info!(job = %self.job.id, party = self.members.list[party].name, "job opened by the party");
        match self.members.holdings() {
            Some(holdings) if self.chain.is_none() => self.start(holdings).await,
            _ => {
                self.ask(party);
                Ok(())
            }
        }
    }

    /// Starts the chains, or continues them from the log.
    async fn start(&mut self, holdings: Vec<PartyMetadata>) -> Result<(), Ending> {
        let chain = Chain::start(Arc::clone(&self.job), self.store.clone(), holdings).await?;
        self.chain = Some(chain);
        self.ask_all()
    }

    /// Takes in a complete round and asks the next.
    fn advance(&mut self) -> Result<(), Ending> {
        let (Some(chain), Some((iteration, answers))) = (&mut self.chain, self.members.take_answers()) else {
            return Ok(());
        };
        let complete = self.stopwatch.complete();
        self.meters.round(complete.took);
        if let Some(live) = &self.job.live {
            live.round(self.stopwatch.of(complete));
        }
        let unsettled = chain.absorb(iteration, answers)?;
        // The next queries leave first; the books of the last round are done while the parties work.
        let asked = self.ask_all();
        if let Some(chain) = &mut self.chain {
            self.meters.kept(chain.settle(unsettled)?);
        }
        self.stopwatch.booked(complete);
        asked
    }

    fn ask_all(&mut self) -> Result<(), Ending> {
        let Some(chain) = &mut self.chain else { return Ok(()) };
        let Some(round) = chain.round() else {
            self.query = None;
            return Err(match chain.clip_stop() {
                Some(reason) => Ending::Clipped(Fault::new(ErrorCode::InvalidInput, reason)),
                None => Ending::Finished,
            });
        };
        self.members.ask(round.iteration, round.queries.len(), Moment::now());
        self.query = Some(Arc::new(Body::Query(query_to_wire(&self.job.id, round.iteration, &round.queries))));
        self.stopwatch.asks();
        (0..self.members.list.len()).for_each(|party| self.ask(party));
        // Looked up while the parties work.
        if let Some(chain) = &self.chain {
            self.members.expect(chain.questions());
        }
        Ok(())
    }

    /// Sends the round being asked to a party that is here, has opened the job and has not answered.
    fn ask(&mut self, party: usize) {
        let member = &self.members.list[party];
        if let (Some(query), Some(outbox), Some(chain)) = (&self.query, &member.outbox, &mut self.chain)
            && member.open
            && !self.members.answered(party)
        {
            chain.start_clock();
            // Only a party that has not answered is asked, and what was answered and logged is never asked again.
            match (member.attempt, &**query) {
                (attempt @ 1.., Body::Query(query)) => outbox.send(Body::Query(v1::Query { attempt, ..query.clone() })),
                _ => outbox.send(Arc::clone(query)),
            }
        }
    }
}

fn open_job(job: &Job) -> Body {
    Body::OpenJob(v1::OpenJob {
        job: job.id.to_string(),
        analyst: job.analyst.clone(),
        spec_toml: job.spec_toml.clone(),
        spec_digest: Sha256::digest(job.spec_toml.as_bytes()).to_vec(),
        submission: Some(job.submission.clone()),
    })
}

/// What a driver has just heard, as far as it may change how its job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// One of the answers of which a round is made: while the chains run, they go on running.
    Answer,
    /// Anything else.
    News,
}

async fn told_to_stop(stop: &mut watch::Receiver<Option<Stop>>) -> Ending {
    match stop.wait_for(Option::is_some).await.as_deref() {
        Ok(Some(Stop::Cancel)) => Ending::Cancelled,
        _ => Ending::Shutdown,
    }
}

/// A moment by both clocks: one to show, and one that nobody sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Unix time in milliseconds.
    pub ms: i64,
    /// To measure by.
    pub at: tokio::time::Instant,
}

impl Moment {
    /// This one.
    pub(crate) fn now() -> Self {
        Self { ms: now_ms(), at: tokio::time::Instant::now() }
    }
}

/// Unix time in milliseconds.
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = since.map(|d| d.as_millis() as i64).unwrap_or_default();
    #[cfg(feature = "test-util")]
    let now = now + crate::simulated::clock_skew_ms();
    now
}

#[cfg(test)]
mod tests;
