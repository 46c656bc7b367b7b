//! The daemon's pages: metrics and the owner's page, if configured.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use conclave_ops::Endpoint;
use conclave_ops::web::{Site, Transport};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::config::PartyConfig;
use crate::error::StartError;
use crate::meters::{Meters, PartyPage};
use crate::page;
use conclave_vault::answer::thread::AnswerHandle;

/// Interval between measurements of sizes on the disk.
const SIZES: Duration = Duration::from_secs(15);

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

    /// Serves the metrics of `meters`, and the owner's page.
    pub(crate) fn show(self, meters: &Meters, answers: AnswerHandle) -> Operations {
        let mut tasks = JoinSet::new();
        let times = answers.times().clone();
        if let Some((endpoint, page)) = self.metrics {
            tasks.spawn(endpoint.serve(Arc::new(PartyPage { meters: meters.clone(), ..page })));
        }
        // Needed without a page too: a party that receives no messages still deletes idle keys.
        tasks.spawn(note_sizes(answers));
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

async fn note_sizes(answers: AnswerHandle) {
    let mut tick = tokio::time::interval(SIZES);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if answers.note_sizes().await.is_err() {
            return;
        }
    }
}
