//! The signal that the coordinator stops, for long streams.

use tokio::sync::watch;

/// Resolves when the coordinator stops.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, and the coordinator with it.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}
