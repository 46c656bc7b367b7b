//! Connections that come in one by one and are few at a time, for the small pages that a daemon serves beside its work.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// After a connection that could not be accepted, as where no file handles are left.
const PAUSE: Duration = Duration::from_millis(200);

/// Has every connection talked to by `converse`, at most `places` at a time: more are closed at once. Goes on until it is dropped,
/// and every conversation with it.
pub(crate) async fn attend<F>(listener: &TcpListener, places: usize, mut converse: impl FnMut(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(places));
    let mut conversations = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            while conversations.try_join_next().is_some() {}
            let conversation = converse(stream);
            conversations.spawn(async move {
                conversation.await;
                drop(place);
            });
        }
    }
}
