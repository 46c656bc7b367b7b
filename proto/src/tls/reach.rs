//! A TCP connection to a host. Its name is resolved anew for each, so that a host that has moved is found again.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tonic::codegen::http::Uri;
use tower::{Service, ServiceExt, service_fn};

/// Looking the name up and connecting take no longer, all of a host's addresses together.
const REACH_TIMEOUT: Duration = Duration::from_secs(10);
/// What is left of it for the addresses, each of which gets a share: one that is dead must not keep the others from their turn.
const ADDRESSES_TIMEOUT: Duration = Duration::from_secs(8);

/// Connects to `authority` (`HOST:PORT`, an IPv6 address in brackets), to the first of its addresses that answers.
///
/// # Errors
/// Why not, as a phrase.
pub(super) async fn reach(authority: &str) -> Result<TcpStream, String> {
    let resolver = service_fn(|name: Name| async move {
        let addresses = lookup_host((name.as_str(), 0)).await.map_err(Unresolved)?;
        Ok::<_, Unresolved>(addresses.collect::<Vec<_>>().into_iter())
    });
    reach_by(HttpConnector::new_with_resolver(resolver), authority).await
}

async fn reach_by<R>(mut connector: HttpConnector<R>, authority: &str) -> Result<TcpStream, String>
where
    HttpConnector<R>: Service<Uri, Response = TokioIo<TcpStream>>,
    <HttpConnector<R> as Service<Uri>>::Error: StdError + 'static,
{
    let uri = Uri::try_from(format!("http://{authority}/")).map_err(|_| "it is no address".to_owned())?;
    // Queries and answers are small and every one is waited for.
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(ADDRESSES_TIMEOUT));
    match timeout(REACH_TIMEOUT, connector.oneshot(uri)).await {
        Ok(Ok(stream)) => Ok(stream.into_inner()),
        Ok(Err(error)) => Err(phrase(&error)),
        Err(_) => Err(format!("no answer within {} s", REACH_TIMEOUT.as_secs())),
    }
}

/// The innermost error says what happened; the others where.
fn phrase(error: &(dyn StdError + 'static)) -> String {
    let mut here = error;
    loop {
        match here.source() {
            _ if here.is::<Unresolved>() => return here.to_string(),
            Some(next) => here = next,
            None => return here.to_string(),
        }
    }
}

#[derive(Debug)]
struct Unresolved(std::io::Error);

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its name does not resolve: {}", self.0)
    }
}

impl StdError for Unresolved {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::SocketAddr;
    use std::sync::{Arc, Mutex};

    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_host_that_has_moved_is_found_at_its_new_address() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let moved = TcpListener::bind(("127.0.0.2", port)).await.unwrap();
        let place = Arc::new(Mutex::new(vec![SocketAddr::from(([127, 0, 0, 1], 0))]));
        let names = Arc::clone(&place);
        let resolver = service_fn(move |_: Name| {
            let addresses = names.lock().unwrap().clone();
            async move { Ok::<_, Unresolved>(addresses.into_iter()) }
        });
        let dial = || {
            reach_by(
                HttpConnector::new_with_resolver(resolver.clone()),
                "main.example:PORT".replace("PORT", &port.to_string()).leak(),
            )
        };
        let first = dial().await.unwrap();
        assert_eq!(first.peer_addr().unwrap(), listener.local_addr().unwrap());
        assert!(first.nodelay().unwrap());
        drop(listener);
        assert!(dial().await.unwrap_err().contains("refused"));
        *place.lock().unwrap() = vec![SocketAddr::from(([127, 0, 0, 2], 0))];
        assert_eq!(dial().await.unwrap().peer_addr().unwrap(), moved.local_addr().unwrap());
        // Where a name has several addresses, a dead one is no hindrance.
        *place.lock().unwrap() = [[127, 0, 0, 1], [127, 0, 0, 2]].map(|ip| SocketAddr::from((ip, 0))).to_vec();
        assert_eq!(dial().await.unwrap().peer_addr().unwrap(), moved.local_addr().unwrap());
    }

    #[tokio::test]
    async fn a_name_that_nobody_knows_is_told_from_a_host_that_does_not_answer() {
        let unknown = reach("no-such-host.invalid:443").await.unwrap_err();
        // Where names are asked of nobody who answers, that is said instead.
        assert!(unknown.starts_with("its name does not resolve") || unknown.starts_with("no answer within"), "{unknown}");
    }
}
