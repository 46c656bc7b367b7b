//! One member's connection: it can be cut from outside, and it has to begin.

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

/// After its handshake a member has this long to say what HTTP/2 begins with.
const PREFACE_WITHIN: Duration = Duration::from_secs(10);

/// A member's connection.
pub(super) struct Connection {
    inner: TlsStream<TcpStream>,
    slot: ConnectionSlot,
    /// Until the first byte has come.
    silence: Option<Pin<Box<Sleep>>>,
}

impl Connection {
    pub(super) fn new(inner: TlsStream<TcpStream>, slot: ConnectionSlot) -> Self {
        Self { inner, slot, silence: Some(Box::pin(sleep(PREFACE_WITHIN))) }
    }

    /// An error once the connection is to end.
    fn poll_cut(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let ended = |why: &str| Err(io::Error::new(io::ErrorKind::ConnectionAborted, why.to_owned()));
        // Whether sent or dropped: the register wants it gone.
        if Pin::new(&mut self.slot.cut).poll(context).is_ready() {
            return ended("cut by the coordinator");
        }
        match self.silence.as_mut().map(|silence| silence.as_mut().poll(context)) {
            Some(Poll::Ready(())) => ended("nothing came after the handshake"),
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
        // What is to be cut takes no leave of a peer that may not read it.
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
