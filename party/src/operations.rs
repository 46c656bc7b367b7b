//! What shows a party to its owner's monitoring, beside its work: the page of metrics, where the configuration asks for it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use conclave_ops::Endpoint;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::answer::thread::Desk;
use crate::config::PartyConfig;
use crate::daemon::StartError;
use crate::meters::{Meters, PartyPage};

/// How often sizes on the disk are noted.
const SIZES: Duration = Duration::from_secs(15);

/// The page's address, taken, and nothing served yet.
pub(crate) struct Prepared(Option<(Endpoint, PartyPage)>);

impl Prepared {
    /// Takes the address.
    ///
    /// # Errors
    /// [`StartError::System`] where it can't be had.
    pub(crate) async fn new(config: &PartyConfig) -> Result<Self, StartError> {
        let Some(address) = config.ops.metrics else { return Ok(Self(None)) };
        let endpoint = Endpoint::bind(address).await.map_err(StartError::System)?;
        let page = PartyPage {
            meters: Meters::default(),
            budget: config.budget,
            certificate: config.identity.join("certificate.pem"),
            started: SystemTime::now(),
        };
        Ok(Self(Some((endpoint, page))))
    }

    /// Serves what `meters` notes.
    pub(crate) fn show(self, meters: &Meters, desk: Desk) -> Operations {
        let mut tasks = JoinSet::new();
        if let Some((endpoint, page)) = self.0 {
            tasks.spawn(endpoint.serve(Arc::new(PartyPage { meters: meters.clone(), ..page })));
            tasks.spawn(note_sizes(desk));
        }
        Operations(tasks)
    }
}

/// Runs beside the party's work.
pub(crate) struct Operations(JoinSet<()>);

impl Operations {
    /// Ends it; nothing of it holds a desk any more then.
    pub(crate) async fn end(mut self) {
        self.0.shutdown().await;
    }
}

async fn note_sizes(desk: Desk) {
    let mut tick = tokio::time::interval(SIZES);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if desk.note_sizes().await.is_err() {
            return;
        }
    }
}
