//! Accepting of a small number of simultaneous connections, for the pages that a daemon serves beside its work.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Pause after a connection that could not be accepted, for instance without free file descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// Handles each connection with `handle`, at most `limit` at a time; further ones are closed immediately. Runs until it is
/// dropped, which also ends all connections.
pub(crate) async fn serve_connections<F>(listener: &TcpListener, limit: usize, mut handle: impl FnMut(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(limit));
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
            while connections.try_join_next().is_some() {}
            let connection = handle(stream);
            connections.spawn(async move {
                connection.await;
                drop(permit);
            });
        }
    }
}
