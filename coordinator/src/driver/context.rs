//! What all drivers share.

use std::sync::Arc;

use super::deadline::Limits;
use crate::counters::Counters;
use crate::party_registry::PartyRegistry;
use crate::store::Store;

/// What a driver shares with all others: the parties attached, the store, the counters, the limits of patience.
#[derive(Debug, Clone)]
pub(crate) struct DriverContext {
    /// Who is attached.
    pub party_registry: Arc<PartyRegistry>,
    /// The iteration log.
    pub store: Store,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// How long parties are waited for.
    pub limits: Limits,
}
