//! A member's connection: it can be cut from outside, and it has to start in time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::connections::ConnectionSlot;

/// Time limit for the HTTP/2 preface, after the handshake.
const PREFACE_WITHIN: Duration = Duration::from_secs(10);

/// A member's connection.
pub(super) struct Connection {
    inner: TlsStream<TcpStream>,
    slot: ConnectionSlot,
    /// Timer until the first byte arrives.
    silence: Option<Pin<Box<Sleep>>>,
}

impl Connection {
    pub(super) fn new(inner: TlsStream<TcpStream>, slot: ConnectionSlot) -> Self {
        Self { inner, slot, silence: Some(Box::pin(sleep(PREFACE_WITHIN))) }
    }

    /// Returns an error once the connection has to end.
    fn poll_cut(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let ended = |why: &str| Err(io::Error::new(io::ErrorKind::ConnectionAborted, why.to_owned()));
        // A sent value and a dropped sender both mean that the register wants the connection closed.
        if Pin::new(&mut self.slot.cut).poll(context).is_ready() {
            return ended("cut by the coordinator");
        }
        match self.silence.as_mut().map(|silence| silence.as_mut().poll(context)) {
            Some(Poll::Ready(())) => ended("no data after the handshake"),
            _ => Ok(()),
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = <TlsStream<TcpStream> as Connected>::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.inner.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.poll_cut(context)?;
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.inner).poll_read(context, buffer);
        if buffer.filled().len() > before {
            this.silence = None;
        }
        polled
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.poll_cut(context)?;
        Pin::new(&mut this.inner).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.poll_cut(context)?;
        Pin::new(&mut this.inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // A connection that is to be cut says no goodbye to a peer that may not read it.
        this.poll_cut(context)?;
        Pin::new(&mut this.inner).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.poll_cut(context)?;
        Pin::new(&mut this.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
