//! The word that the coordinator stops, as long streams hear it.

use tokio::sync::watch;

/// Resolves when the coordinator stops.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, and with it whoever could stop anything.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}
