//! The daemon's pages: metrics and the owner's page, if configured.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use conclave_ops::Endpoint;
use conclave_ops::long_log::LongLog;
use conclave_ops::web::{Site, Transport};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::config::PartyConfig;
use crate::error::StartError;
use crate::meters::{Meters, PartyPage};
use crate::page;
use conclave_vault::answer::thread::{AnswerHandle, Command};
use conclave_vault::ledger::LONG_LOG;

/// Interval between measurements of sizes on the disk, and between attempts to empty a long log of the ledger.
const SIZES: Duration = Duration::from_secs(15);
/// Pause after a warning of a long log: the first, and the longest. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// Bound addresses, before anything is served.
pub(crate) struct Prepared {
    metrics: Option<(Endpoint, PartyPage)>,
    site: Option<(Site, PartyConfig)>,
}

impl Prepared {
    /// Binds the addresses.
    ///
    /// # Errors
    /// [`StartError::System`] if an address can't be bound.
    pub(crate) async fn new(config: &PartyConfig) -> Result<Self, StartError> {
        let metrics = match config.ops.metrics {
            None => None,
            Some(address) => {
                let endpoint = Endpoint::bind(address).await.map_err(StartError::System)?;
                let page = PartyPage {
                    meters: Meters::default(),
                    budget: config.budget,
                    certificate: config.identity.join("certificate.pem"),
                    started: SystemTime::now(),
                };
                Some((endpoint, page))
            }
        };
        let site = match config.page {
            None => None,
            Some(address) => {
                let site = Site::bind("page", address, &page::token_of(config), &[], Transport::Plain).await;
                Some((site.map_err(StartError::System)?, config.clone()))
            }
        };
        Ok(Self { metrics, site })
    }

    /// Serves the metrics of `meters`, and the owner's page. Watches sizes on the disk.
    pub(crate) fn show(self, meters: &Meters, answers: AnswerHandle, ledger: &Path) -> Operations {
        let mut tasks = JoinSet::new();
        let times = answers.times().clone();
        if let Some((endpoint, page)) = self.metrics {
            tasks.spawn(endpoint.serve(Arc::new(PartyPage { meters: meters.clone(), ..page })));
        }
        // Needed without a page too: a party that receives no messages still deletes idle keys, and empties its ledger's log.
        tasks.spawn(note_sizes(answers, ledger.to_owned()));
        if let Some((site, config)) = self.site {
            let meters = meters.clone();
            // Not on the answering thread: a visitor must not delay answers.
            tasks.spawn(site.serve(page::pages(config, times), Arc::new(move || meters.is_well())));
        }
        Operations(tasks)
    }
}

/// Tasks that run beside the party's work.
pub(crate) struct Operations(JoinSet<()>);

impl Operations {
    /// Stops the tasks; none holds a handle on the answers any more.
    pub(crate) async fn end(mut self) {
        self.0.shutdown().await;
    }
}

async fn note_sizes(answers: AnswerHandle, ledger: PathBuf) {
    let mut warnings = LogWarnings { ledger, pause: FIRST_PAUSE, not_before: Instant::now() };
    let mut tick = tokio::time::interval(SIZES);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if answers.send(Command::Sizes).await.is_err() {
            return;
        }
        // Not on the answering thread: it looks at every process of this machine.
        let looked = tokio::task::spawn_blocking(move || {
            warnings.look(Instant::now());
            warnings
        });
        let Ok(back) = looked.await else { return };
        warnings = back;
    }
}

/// Warnings of a log of the ledger that a reader keeps long.
struct LogWarnings {
    ledger: PathBuf,
    pause: Duration,
    not_before: Instant,
}

impl LogWarnings {
    fn look(&mut self, now: Instant) {
        if now < self.not_before {
            return;
        }
        match LongLog::find(&self.ledger, LONG_LOG, None) {
            None => self.pause = FIRST_PAUSE,
            Some(log) => {
                tracing::warn!("the ledger's log can't be emptied while a read stays open: {log}");
                self.not_before = now + self.pause;
                self.pause = (2 * self.pause).min(LONGEST_PAUSE);
            }
        }
    }
}
