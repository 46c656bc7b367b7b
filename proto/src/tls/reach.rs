//! TCP connections to a host. Every connection resolves the name again, so that a moved host is found.

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

/// Timeout of name resolution and connection, over all of a host's addresses.
const REACH_TIMEOUT: Duration = Duration::from_secs(10);
/// Part of that timeout for the addresses, which share it equally, so that a dead address does not block the others.
const ADDRESSES_TIMEOUT: Duration = Duration::from_secs(8);

/// Connects to the first address of `authority` (`HOST:PORT`, an IPv6 address in brackets) that answers.
///
/// # Errors
/// The reason for the failure, as a phrase.
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
    let uri = Uri::try_from(format!("http://{authority}/")).map_err(|_| "invalid address".to_owned())?;
    // Queries and answers are small, and each end waits for every one.
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(ADDRESSES_TIMEOUT));
    match timeout(REACH_TIMEOUT, connector.oneshot(uri)).await {
        Ok(Ok(stream)) => Ok(stream.into_inner()),
        Ok(Err(error)) => Err(phrase(&error)),
        Err(_) => Err(format!("no answer within {} s", REACH_TIMEOUT.as_secs())),
    }
}

/// Returns the innermost error, which states what happened; the outer ones state only where.
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
        write!(f, "the name does not resolve: {}", self.0)
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
        // A dead address among several does not prevent the connection.
        *place.lock().unwrap() = [[127, 0, 0, 1], [127, 0, 0, 2]].map(|ip| SocketAddr::from((ip, 0))).to_vec();
        assert_eq!(dial().await.unwrap().peer_addr().unwrap(), moved.local_addr().unwrap());
    }

    #[tokio::test]
    async fn an_unknown_name_is_distinguished_from_a_silent_host() {
        let unknown = reach("no-such-host.invalid:443").await.unwrap_err();
        // Without a name server that answers, the error is a timeout.
        assert!(unknown.starts_with("the name does not resolve") || unknown.starts_with("no answer within"), "{unknown}");
    }
}
