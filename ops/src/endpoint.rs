//! `GET /metrics` and `GET /healthz` over plain HTTP/1: one request per connection, small and short.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use crate::listen::serve_connections;
use crate::page::{self, Source};

/// Maximum number of simultaneous connections; further ones are closed immediately. A collector needs one.
const CONNECTIONS: usize = 8;
/// Maximum size of a request's head: hyper's minimum, and more than a collector sends.
const REQUEST_BYTES: usize = 8 << 10;
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a request and its answer together.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);

/// A listening port that does not serve yet.
#[derive(Debug)]
pub struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
}

impl Endpoint {
    /// Binds the address, with a warning if other machines can reach it.
    ///
    /// # Errors
    /// A message that names the key and the address.
    pub async fn bind(address: SocketAddr) -> Result<Self, String> {
        let unusable = |e: std::io::Error| format!("`metrics` = \"{address}\": can't listen there ({e})");
        let listener = TcpListener::bind(address).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        if !address.ip().is_loopback() {
            tracing::warn!(%address, "metrics are served without a password at this address: admit only your own monitoring");
        }
        tracing::info!("metrics at http://{address}/metrics");
        Ok(Self { listener, address })
    }

    /// Returns the address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is dropped.
    pub async fn serve(self, source: Arc<dyn Source>) {
        serve_connections(&self.listener, CONNECTIONS, |stream| {
            let source = Arc::clone(&source);
            async move {
                // An invalid or slow request gets no answer and does not affect other connections.
                let _ = tokio::time::timeout(CONNECTION_TIMEOUT, serve_connection(stream, &source)).await;
            }
        })
        .await;
    }
}

async fn serve_connection(stream: TcpStream, source: &Arc<dyn Source>) -> Result<(), hyper::Error> {
    let service = service_fn(|request| std::future::ready(Ok::<_, Infallible>(answer(&request, source))));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(REQUEST_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

fn answer(request: &Request<Incoming>, source: &Arc<dyn Source>) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; charset=utf-8";
    if request.method() != Method::GET {
        let mut refusal = reply(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET is allowed\n".into());
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        return refusal;
    }
    match request.uri().path() {
        "/metrics" => match page::render(source) {
            Ok(page) => reply(StatusCode::OK, page::CONTENT_TYPE, page),
            Err(_) => reply(StatusCode::INTERNAL_SERVER_ERROR, TEXT, "the page could not be written\n".into()),
        },
        "/healthz" => match source.health() {
            Ok(()) => reply(StatusCode::OK, TEXT, "ok\n".into()),
            Err(why) => reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
        },
        _ => reply(StatusCode::NOT_FOUND, TEXT, "not found: the pages are /metrics and /healthz\n".into()),
    }
}

fn reply(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::page::tests::Sample;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn served(health: Result<(), String>) -> SocketAddr {
        let endpoint = Endpoint::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = endpoint.address();
        tokio::spawn(endpoint.serve(Arc::new(Sample(health))));
        address
    }

    async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    fn get(path: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")
    }

    #[tokio::test]
    async fn two_pages_and_nothing_else() {
        let address = served(Ok(())).await;
        let page = ask(address, &get("/metrics")).await;
        assert!(
            page.starts_with("HTTP/1.1 200") && page.contains("openmetrics-text") && page.contains("rounds_total 7"),
            "{page}"
        );
        assert!(ask(address, &get("/healthz")).await.starts_with("HTTP/1.1 200"));
        assert!(ask(address, &get("/")).await.starts_with("HTTP/1.1 404"));
        let post = ask(address, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello").await;
        assert!(post.starts_with("HTTP/1.1 405") && post.contains("allow: GET"), "{post}");
        let sick = served(Err("the store failed".to_owned())).await;
        let text = ask(sick, &get("/healthz")).await;
        assert!(text.starts_with("HTTP/1.1 503") && text.ends_with("the store failed\n"), "{text}");
    }

    #[tokio::test]
    async fn a_request_without_end_and_a_crowd_are_cut_off() {
        let address = served(Ok(())).await;
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(2 * REQUEST_BYTES));
        let text = ask(address, &long).await;
        assert!(!text.contains(" 200 "), "{text}");
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let mut turned_away = TcpStream::connect(address).await.unwrap();
        let read = turned_away.read_u8().await;
        assert!(read.is_err(), "a connection beyond the limit was kept");
        drop(idle);
    }
}
