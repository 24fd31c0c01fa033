//! Large bodies that many ask for leave without a copy.
//!
//! Such a body lies a second time in a file in memory, whose pages the kernel
//! sends as they are. An answer brings the file as an extension; hyper writes
//! the body's bytes, and the socket knows by where they lie that they are those
//! of the file.
//!
//! Always: a peer gets the bytes that were written. What is small, seldom asked
//! for, more than [`FILES_MAX`], or on a system that cannot do it, is copied.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A copy of fewer bytes costs no more than sending a file.
const BYTES_MIN: usize = 32 << 10;
/// Files at once, at most.
const FILES_MAX: u64 = 1024;

/// The bytes that may lie in files, in KiB.
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    /// For so many bytes, and no more than [`FILES_MAX`] files.
    pub(crate) fn new(bytes_max: u64) -> Self {
        let kib = (bytes_max >> 10).min(FILES_MAX * (BYTES_MIN as u64 >> 10));
        Self(Arc::new(Semaphore::new(kib as usize)))
    }
}

/// A body that lies in a file, too.
#[derive(Debug)]
pub(crate) struct Filed {
    bytes: Bytes,
    file: OwnedFd,
    _room: OwnedSemaphorePermit,
}

impl Filed {
    /// Puts `bytes` into a file as well, if that is worth it and there is room.
    pub(crate) fn new(bytes: &Bytes, room: &Room) -> Option<Arc<Self>> {
        if bytes.len() < BYTES_MIN {
            return None;
        }
        let kib = u32::try_from(bytes.len().div_ceil(1 << 10)).ok()?;
        let room = room.0.clone().try_acquire_many_owned(kib).ok()?;
        let file = system::file_of(bytes).ok()?;
        Some(Arc::new(Self { bytes: bytes.clone(), file, _room: room }))
    }

    /// Where in the file `slice` lies, if it is a part of the body.
    fn offset_of(&self, slice: &[u8]) -> Option<u64> {
        let own = self.bytes.as_ptr_range();
        let part = slice.as_ptr_range();
        let inside = own.start <= part.start && part.end <= own.end && !slice.is_empty();
        inside.then(|| (part.start.addr() - own.start.addr()) as u64)
    }
}

/// The body of a connection's last answer, if it lies in a file, until all of it
/// is sent.
#[derive(Clone, Default)]
pub(crate) struct Slot(Arc<Mutex<Option<Arc<Filed>>>>);

impl Slot {
    /// Keeps the file that an answer brings.
    pub(crate) fn take<B>(&self, mut answer: http::Response<B>) -> http::Response<B> {
        if let Some(filed) = answer.extensions_mut().remove::<Arc<Filed>>() {
            self.set(Some(filed));
        }
        answer
    }

    fn set(&self, filed: Option<Arc<Filed>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = filed;
    }

    fn get(&self) -> Option<Arc<Filed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A connection, as hyper reads and writes it.
pub(crate) struct Socket {
    stream: TokioIo<TcpStream>,
    slot: Slot,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, slot: Slot) -> Self {
        Self { stream: TokioIo::new(stream), slot }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut TokioIo<TcpStream>> {
        Pin::new(&mut self.get_mut().stream)
    }

    /// Sends what comes before a body in a file, or of the body itself; `None`
    /// where there is no such body, or it cannot be sent so.
    fn poll_send(
        &self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Option<io::Result<usize>>> {
        let Some((body, before)) = slices.split_last() else { return Poll::Ready(None) };
        let Some(filed) = self.slot.get() else { return Poll::Ready(None) };
        let Some(offset) = filed.offset_of(body) else { return Poll::Ready(None) };
        let stream = self.stream.inner();
        let send = || match before.first() {
            Some(head) => system::send_and_more(stream, head),
            None => system::send_file(stream, &filed.file, offset, body.len()),
        };
        loop {
            if let Err(error) = ready!(stream.poll_write_ready(context)) {
                return Poll::Ready(Some(Err(error)));
            }
            match stream.try_io(Interest::WRITABLE, send) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_unknown(&error) => {
                    self.slot.set(None);
                    return Poll::Ready(None);
                }
                sent => {
                    let through = sent.as_ref().map_or(0, |count| offset as usize + count);
                    if before.is_empty() && through == filed.bytes.len() {
                        self.slot.set(None);
                    }
                    return Poll::Ready(Some(sent));
                }
            }
        }
    }
}

/// Whether the system cannot do it, rather than the peer.
fn is_unknown(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}

impl Read for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(context, buffer)
    }
}

impl Write for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(sent) = ready!(self.poll_send(context, slices)) {
            return Poll::Ready(sent);
        }
        match slices {
            // One piece goes out by the shorter way.
            [one] => self.stream().poll_write(context, one),
            many => self.stream().poll_write_vectored(context, many),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }
}

/// What the kernel is asked for.
#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::io::{self, Write as _};
    use std::os::fd::OwnedFd;

    use rustix::fs::{MemfdFlags, memfd_create, sendfile};
    use rustix::net::{SendFlags, send};
    use tokio::net::TcpStream;

    pub(super) fn file_of(bytes: &[u8]) -> io::Result<OwnedFd> {
        let mut file = File::from(memfd_create("tideline-body", MemfdFlags::CLOEXEC)?);
        file.write_all(bytes)?;
        Ok(file.into())
    }

    /// Sends `head`, which waits for what is sent next.
    pub(super) fn send_and_more(stream: &TcpStream, head: &[u8]) -> io::Result<usize> {
        Ok(send(stream, head, SendFlags::MORE | SendFlags::NOSIGNAL)?)
    }

    pub(super) fn send_file(
        stream: &TcpStream,
        file: &OwnedFd,
        mut offset: u64,
        length: usize,
    ) -> io::Result<usize> {
        Ok(sendfile(stream, file, Some(&mut offset), length)?)
    }
}

/// Elsewhere no body lies in a file.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;
    use std::os::fd::OwnedFd;

    use tokio::net::TcpStream;

    const NO: io::ErrorKind = io::ErrorKind::Unsupported;

    pub(super) fn file_of(_: &[u8]) -> io::Result<OwnedFd> {
        Err(NO.into())
    }

    pub(super) fn send_and_more(_: &TcpStream, _: &[u8]) -> io::Result<usize> {
        Err(NO.into())
    }

    pub(super) fn send_file(_: &TcpStream, _: &OwnedFd, _: u64, _: usize) -> io::Result<usize> {
        Err(NO.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::future::poll_fn;

    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";

    fn body(length: usize) -> Bytes {
        (0..length).map(|at| (at * 31 % 251) as u8).collect::<Vec<_>>().into()
    }

    /// What a peer gets of a head and a body, written as hyper does, and in how
    /// many bytes the first write ended.
    async fn sent(slot: Slot, body: Bytes) -> (Vec<u8>, usize) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mine, mut peer) = (listener.accept().await.unwrap().0, peer);
        let reader = tokio::spawn(async move {
            let mut all = Vec::new();
            peer.read_to_end(&mut all).await.unwrap();
            all
        });
        let mut socket = Socket::new(mine, slot);
        let (mut done, mut first) = (0, None);
        while done < HEAD.len() + body.len() {
            let head = IoSlice::new(&HEAD[done.min(HEAD.len())..]);
            let rest = IoSlice::new(&body[done.saturating_sub(HEAD.len())..]);
            let slices = [head, rest];
            let slices = if head.is_empty() { &slices[1..] } else { &slices[..] };
            let write = poll_fn(|cx| Pin::new(&mut socket).poll_write_vectored(cx, slices));
            let count = write.await.unwrap();
            first.get_or_insert(count);
            done += count;
        }
        drop(socket);
        (reader.await.unwrap(), first.unwrap())
    }

    #[tokio::test]
    async fn a_peer_gets_the_same_bytes_from_a_file_and_from_memory() {
        let body = body(3 << 20);
        let want = [HEAD, &body].concat();
        let room = Room::new(64 << 20);
        let slot = Slot::default();
        slot.set(Filed::new(&body, &room));
        let (got, first) = sent(slot.clone(), body.clone()).await;
        assert!(got == want);
        assert_eq!(first, HEAD.len(), "the head goes out before the file");
        assert!(slot.get().is_none(), "all of it is sent");
        let other = Slot::default();
        other.set(Filed::new(&Bytes::copy_from_slice(&body), &room));
        assert!(sent(other, body.clone()).await.0 == want, "the file is another body's");
        assert!(sent(Slot::default(), body).await.0 == want);
    }

    #[test]
    fn only_parts_of_a_body_lie_in_its_file() {
        let body = body(40 << 10);
        let filed = Filed::new(&body, &Room::new(1 << 20)).unwrap();
        assert_eq!(filed.offset_of(&body), Some(0));
        assert_eq!(filed.offset_of(&body[7..9]), Some(7));
        assert_eq!(filed.offset_of(&body[7..7]), None);
        assert_eq!(filed.offset_of(&[1, 2, 3]), None);
    }

    #[test]
    fn small_bodies_and_those_for_which_there_is_no_room_lie_in_no_file() {
        let room = Room::new(100 << 10);
        assert!(Filed::new(&body(BYTES_MIN - 1), &room).is_none());
        let first = Filed::new(&body(60 << 10), &room);
        assert!(first.is_some());
        assert!(Filed::new(&body(60 << 10), &room).is_none());
        drop(first);
        assert!(Filed::new(&body(60 << 10), &room).is_some());
    }
}
