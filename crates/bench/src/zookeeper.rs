//! A peer of the metadata tree: Debian's ZooKeeper, one node, with its
//! defaults: a write is synced before it is answered.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;

use crate::BenchError;
use crate::drive::{Codec, Done};
use crate::process::{Process, free_port};

/// Where Debian puts it.
const JAR: &str = "/usr/share/java/zookeeper.jar";

/// A running ZooKeeper.
pub(crate) struct ZooKeeper {
    /// The process.
    pub(crate) process: Process,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl ZooKeeper {
    /// Starts one on `core` in `dir`, which must exist.
    pub(crate) fn start(core: usize, dir: &Path) -> Result<Self, BenchError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let config = dir.join("zoo.cfg");
        let text = format!(
            "tickTime=2000\ndataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\n\
             maxClientCnxns=0\nadmin.enableServer=false\n",
            dir.join("data").display(),
            address.port()
        );
        std::fs::write(&config, text).map_err(|e| BenchError::io("zoo.cfg", &e))?;
        let main = "org.apache.zookeeper.server.ZooKeeperServerMain";
        let config = config.display().to_string();
        let args = ["-Xmx512m", "-cp", JAR, main, &config];
        let (program, log) = (Path::new("java"), dir.join("log.txt"));
        let mut process = Process::start(core, program, &args, &[], &log)?;
        process.wait_ready(Duration::from_secs(60), || serves(address).unwrap_or(false))?;
        Ok(Self { process, address })
    }
}

/// Whether it says that it serves. It takes connections before, and may never
/// answer on one of those.
fn serves(address: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(b"srvr")?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said.contains("Mode:"))
}

/// A request that makes a node that everybody may do everything with.
pub(crate) fn create(path: &str, value: &[u8]) -> Bytes {
    let mut out = 1_i32.to_be_bytes().to_vec();
    put(path.as_bytes(), &mut out);
    put(value, &mut out);
    out.extend(1_i32.to_be_bytes());
    out.extend(31_i32.to_be_bytes());
    put(b"world", &mut out);
    put(b"anyone", &mut out);
    out.extend(0_i32.to_be_bytes());
    out.into()
}

/// A request that writes a node, whatever its version.
pub(crate) fn set(path: &str, value: &[u8]) -> Bytes {
    let mut out = 5_i32.to_be_bytes().to_vec();
    put(path.as_bytes(), &mut out);
    put(value, &mut out);
    out.extend((-1_i32).to_be_bytes());
    out.into()
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as i32).to_be_bytes());
    out.extend(bytes);
}

/// A session. Requests are their type and body; answers come in their order.
#[derive(Debug, Default)]
pub(crate) struct Session {
    sent: u32,
    answered: u64,
    begun: bool,
}

impl Codec for Session {
    fn open(&mut self, out: &mut Vec<u8>) {
        out.extend(45_i32.to_be_bytes());
        // Protocol 0, nothing seen, 40 s, a new session, no password.
        out.extend([0; 12]);
        out.extend(40_000_i32.to_be_bytes());
        out.extend([0; 8]);
        put(&[0; 16], out);
        out.push(0);
    }

    fn send(&mut self, payload: &Bytes, out: &mut Vec<u8>) {
        self.sent += 1;
        out.extend((payload.len() as i32 + 4).to_be_bytes());
        out.extend(self.sent.to_be_bytes());
        out.extend_from_slice(payload);
    }

    fn receive(
        &mut self,
        input: &[u8],
        _: &mut Vec<u8>,
        done: &mut Vec<Done>,
    ) -> Result<usize, BenchError> {
        let mut used = 0;
        while let Some((length, rest)) = input[used..].split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            let Some(answer) = rest.get(..length) else { break };
            used += 4 + length;
            if !std::mem::replace(&mut self.begun, true) {
                continue;
            }
            let head = answer.first_chunk::<16>().ok_or(BenchError::Protocol("a short answer"))?;
            let good = head[12..] == [0; 4];
            done.push(Done { number: self.answered, counted: 1, good });
            self.answered += 1;
        }
        Ok(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_after_the_session_has_begun() {
        let (mut session, mut out, mut done) = (Session::default(), Vec::new(), Vec::new());
        session.open(&mut out);
        assert_eq!(out.len(), 49);
        session.send(&set("/a", b"v"), &mut out);
        let answer = |error: u8| [&[0, 0, 0, 16][..], &[0; 15], &[error]].concat();
        let all = [[0, 0, 0, 4, 9, 9, 9, 9].to_vec(), answer(0), answer(1)].concat();
        let cut = all.len() - 1;
        let used = session.receive(&all[..cut], &mut out, &mut done).unwrap();
        assert_eq!((used, done.len(), done[0].good), (all.len() - 20, 1, true));
        session.receive(&all[used..], &mut out, &mut done).unwrap();
        assert_eq!((done.len(), done[1].good), (2, false));
    }
}
