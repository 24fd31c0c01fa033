//! As much of a ZooKeeper client as reading a subtree takes: a session, the
//! children of a node, its data.
//!
//! Messages are big-endian, each with its length before it; a string is its
//! length and its bytes, -1 for none. Whatever a server sends is a value or an
//! error, never a panic.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What can befall a read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The connection.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// No answer in time.
    #[error("no answer within {} s", WAIT.as_secs())]
    Late,
    /// The server refused, by number; -101 is a node that is not there.
    #[error("the server answered error {0}")]
    Refused(i32),
    /// What came is no answer.
    #[error("not an answer of ZooKeeper: {0}")]
    Odd(&'static str),
}

const WAIT: Duration = Duration::from_secs(10);
const MESSAGE_BYTES_MAX: usize = 64 << 20;
const NO_NODE: i32 = -101;
const NO_AUTH: i32 = -102;

const GET_DATA: i32 = 4;
const GET_ACL: i32 = 6;
const GET_CHILDREN: i32 = 8;
const CLOSE: i32 = -11;

/// A node as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// What it holds; none is empty.
    pub(super) data: Vec<u8>,
    /// It goes with somebody's session.
    pub(super) ephemeral: bool,
}

/// What came of asking for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told<T> {
    /// This.
    Found(T),
    /// It is not there.
    Gone,
    /// Its ACL does not let us.
    Hidden,
}

/// A session.
pub(super) struct ZooKeeper {
    stream: TcpStream,
    next: i32,
}

impl ZooKeeper {
    /// Connects to `host:port`.
    pub(super) async fn connect(address: &str) -> Result<Self, Error> {
        let connected = tokio::time::timeout(WAIT, TcpStream::connect(address)).await;
        let mut this = Self { stream: connected.map_err(|_| Error::Late)??, next: 1 };
        let mut hello = Vec::new();
        // Protocol 0, nothing seen, a timeout of 30 s, a new session, no password.
        hello.extend(0_i32.to_be_bytes());
        hello.extend(0_i64.to_be_bytes());
        hello.extend(30_000_i32.to_be_bytes());
        hello.extend(0_i64.to_be_bytes());
        hello.extend(16_i32.to_be_bytes());
        hello.extend([0; 16]);
        hello.push(0);
        this.send(&hello).await?;
        let answer = this.receive().await?;
        if Reader(&answer).i32()? != 0 {
            return Err(Error::Odd("another protocol"));
        }
        Ok(this)
    }

    /// The names of the children of `path`, in order.
    pub(super) async fn children(&mut self, path: &str) -> Result<Told<Vec<String>>, Error> {
        let mut told = self.ask(GET_CHILDREN, path, true, read_children).await?;
        if let Told::Found(names) = &mut told {
            names.sort_unstable();
        }
        Ok(told)
    }

    /// The node at `path`.
    pub(super) async fn get(&mut self, path: &str) -> Result<Told<Found>, Error> {
        self.ask(GET_DATA, path, true, read_data).await
    }

    /// Whether everybody may do everything with the node at `path`.
    pub(super) async fn is_open(&mut self, path: &str) -> Result<Told<bool>, Error> {
        self.ask(GET_ACL, path, false, read_acl).await
    }

    /// Ends the session.
    pub(super) async fn close(mut self) -> Result<(), Error> {
        let message = [self.next.to_be_bytes(), CLOSE.to_be_bytes()].concat();
        self.send(&message).await
    }

    /// Asks about `path`, without a watch where the call `can_watch`.
    async fn ask<T>(
        &mut self,
        kind: i32,
        path: &str,
        can_watch: bool,
        read: impl FnOnce(&[u8]) -> Result<T, Error>,
    ) -> Result<Told<T>, Error> {
        let number = self.next;
        self.next += 1;
        let mut message = [number.to_be_bytes(), kind.to_be_bytes()].concat();
        message.extend((path.len() as i32).to_be_bytes());
        message.extend(path.as_bytes());
        message.extend(can_watch.then_some(0));
        self.send(&message).await?;
        loop {
            let answer = self.receive().await?;
            let mut reader = Reader(&answer);
            let (of, _, error) = (reader.i32()?, reader.i64()?, reader.i32()?);
            match (of == number, error) {
                // A ping's answer, or an event.
                (false, _) => {}
                (true, 0) => return read(reader.0).map(Told::Found),
                (true, NO_NODE) => return Ok(Told::Gone),
                (true, NO_AUTH) => return Ok(Told::Hidden),
                (true, error) => return Err(Error::Refused(error)),
            }
        }
    }

    async fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        let mut bytes = (message.len() as u32).to_be_bytes().to_vec();
        bytes.extend(message);
        Ok(self.stream.write_all(&bytes).await?)
    }

    async fn receive(&mut self) -> Result<Vec<u8>, Error> {
        let read = async {
            let len = self.stream.read_u32().await? as usize;
            if len > MESSAGE_BYTES_MAX {
                return Err(Error::Odd("an answer over 64 MiB"));
            }
            let mut answer = vec![0; len];
            self.stream.read_exact(&mut answer).await?;
            Ok(answer)
        };
        tokio::time::timeout(WAIT, read).await.map_err(|_| Error::Late)?
    }
}

fn read_children(answer: &[u8]) -> Result<Vec<String>, Error> {
    let mut reader = Reader(answer);
    let count = reader.i32()?.max(0);
    (0..count).map(|_| reader.string()).collect()
}

fn read_data(answer: &[u8]) -> Result<Found, Error> {
    let mut reader = Reader(answer);
    let data = reader.bytes()?.to_vec();
    // czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner.
    reader.take(44)?;
    // A container, or a node with a time to live, stays; servers show most of
    // them as any other.
    let stays = |owner| matches!(owner, 0 | i64::MIN | -0x0100_0000_0000_0000..=-1);
    Ok(Found { data, ephemeral: !stays(reader.i64()?) })
}

fn read_acl(answer: &[u8]) -> Result<bool, Error> {
    let mut reader = Reader(answer);
    let mut open = false;
    for _ in 0..reader.i32()?.max(0) {
        let (allowed, scheme, id) = (reader.i32()?, reader.string()?, reader.string()?);
        open |= allowed & ALL == ALL && scheme == "world" && id == "anyone";
    }
    Ok(open)
}

/// Read, write, create, delete, administer.
const ALL: i32 = 0b1_1111;

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (head, tail) = self.0.split_at_checked(len).ok_or(Error::Odd("cut short"))?;
        self.0 = tail;
        Ok(head)
    }

    fn i32(&mut self) -> Result<i32, Error> {
        Ok(i32::from_be_bytes(self.take(4)?.try_into().expect("four bytes were taken")))
    }

    fn i64(&mut self) -> Result<i64, Error> {
        Ok(i64::from_be_bytes(self.take(8)?.try_into().expect("eight bytes were taken")))
    }

    fn bytes(&mut self) -> Result<&'a [u8], Error> {
        match usize::try_from(self.i32()?) {
            Ok(len) => self.take(len),
            Err(_) => Ok(&[]),
        }
    }

    fn string(&mut self) -> Result<String, Error> {
        let text = std::str::from_utf8(self.bytes()?);
        Ok(text.map_err(|_| Error::Odd("a name that is not UTF-8"))?.to_owned())
    }
}

/// For fuzzing: what a server answers.
pub(crate) fn fuzz_answer(bytes: &[u8]) {
    _ = (read_children(bytes), read_data(bytes), read_acl(bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_they_are_written_there() {
        let children = b"\0\0\0\x02\0\0\0\x01a\0\0\0\x02bc";
        assert_eq!(read_children(children).unwrap(), ["a", "bc"]);
        for (owner, ephemeral) in [
            (0, false),
            (7, true),
            // Server 200 of an ensemble began it.
            (-0x3800_0000_0000_0000, true),
            (i64::MIN, false),
            (-0x0100_0000_0000_0000 + 60_000, false),
        ] {
            let mut data = b"\0\0\0\x02hi".to_vec();
            data.extend([0; 44]);
            data.extend(i64::to_be_bytes(owner));
            data.extend([0; 16]);
            assert_eq!(read_data(&data).unwrap(), Found { data: b"hi".to_vec(), ephemeral });
        }
        let none = [&[0xff; 4][..], &[0; 68]].concat();
        assert_eq!(read_data(&none).unwrap(), Found { data: Vec::new(), ephemeral: false });
        let acl = |allowed: u8| {
            let who = b"\0\0\0\x05world\0\0\0\x06anyone";
            read_acl(&[&b"\0\0\0\x01\0\0\0"[..], &[allowed], who].concat()).unwrap()
        };
        assert_eq!((acl(31), acl(1)), (true, false));
    }

    #[test]
    fn what_is_cut_or_odd_is_an_error() {
        for bad in
            [&b""[..], b"\0\0\0\x02\0\0\0\x01a", b"\x7f\xff\xff\xff", b"\0\0\0\x01\0\0\0\x01\xff"]
        {
            assert!(read_children(bad).is_err());
            fuzz_answer(bad);
        }
    }
}
