//! Context shared by all drivers.

use std::sync::Arc;

use super::deadline::Limits;
use crate::counters::Counters;
use crate::party_registry::PartyRegistry;
use crate::store::Store;

/// Handles that all drivers share: parties, store, counters and time limits.
#[derive(Debug, Clone)]
pub(crate) struct DriverContext {
    /// Attached parties.
    pub party_registry: Arc<PartyRegistry>,
    /// Jobs and the iteration log.
    pub store: Store,
    /// Metrics counters.
    pub counters: Arc<Counters>,
    /// Time limits for parties.
    pub limits: Limits,
}
