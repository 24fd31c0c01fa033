//! A tree of a real ZooKeeper, brought into ours.
//!
//! The first run installs Debian's package where it can be (`scripts/needs.sh`
//! says so). `TIDELINE_OFFLINE=1` leaves the test out.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::{Server, ok, run, tideline};

/// A server of its own, on loopback; killed when it is dropped.
struct Peer {
    child: Child,
    at: SocketAddr,
}

impl Peer {
    fn start(folder: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/needs.sh");
        let told = Command::new(script).arg("zookeeper").stderr(Stdio::inherit()).output().unwrap();
        assert!(told.status.success(), "needs.sh zookeeper: {}", told.status);
        let jar = String::from_utf8(told.stdout).unwrap();
        let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = folder.join("zoo.cfg");
        let text = format!(
            "tickTime=2000\ndataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\n\
             extendedTypesEnabled=true\nadmin.enableServer=false\n",
            folder.join("data").display(),
            at.port()
        );
        std::fs::write(&config, text).unwrap();
        let child = Command::new("java")
            .args(["-Xmx128m", "-cp", jar.trim()])
            .arg("org.apache.zookeeper.server.ZooKeeperServerMain")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, at }
    }

    /// A session; waits until the server is up.
    fn session(&mut self) -> Session {
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            if let Some(session) = Session::begin(self.at) {
                return session;
            }
            assert!(self.child.try_wait().unwrap().is_none(), "ZooKeeper has ended");
            assert!(Instant::now() < end, "ZooKeeper does not come up");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Enough of a client to make nodes: the protocol as its documents have it.
struct Session {
    stream: TcpStream,
    next: i32,
}

const EVERYBODY: &[(i32, &str, &str)] = &[(31, "world", "anyone")];
const PERSISTENT: i32 = 0;
const EPHEMERAL: i32 = 1;
const SEQUENTIAL: i32 = 2;
const CONTAINER: i32 = 4;

impl Session {
    fn begin(at: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(at).ok()?;
        // One that connects while the server begins may never be answered.
        stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
        let mut this = Self { stream, next: 1 };
        let mut hello = vec![0; 12];
        hello.extend(30_000_i32.to_be_bytes());
        hello.extend([0; 8]);
        hello.extend(16_i32.to_be_bytes());
        hello.extend([0; 17]);
        this.send(&hello).ok()?;
        this.receive().ok()?;
        this.stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
        Some(this)
    }

    /// Makes a node; its path.
    fn create(&mut self, path: &str, data: &[u8], acl: &[(i32, &str, &str)], how: i32) -> String {
        // Containers have a call of their own.
        let kind: i32 = if how == CONTAINER { 19 } else { 1 };
        let mut message = [self.next.to_be_bytes(), kind.to_be_bytes()].concat();
        self.next += 1;
        put(&mut message, path.as_bytes());
        put(&mut message, data);
        message.extend((acl.len() as i32).to_be_bytes());
        for (allowed, scheme, id) in acl {
            message.extend(allowed.to_be_bytes());
            put(&mut message, scheme.as_bytes());
            put(&mut message, id.as_bytes());
        }
        message.extend(how.to_be_bytes());
        self.send(&message).unwrap();
        let answer = self.receive().unwrap();
        let error = i32::from_be_bytes(answer[12..16].try_into().unwrap());
        assert_eq!(error, 0, "create {path}");
        let len = i32::from_be_bytes(answer[16..20].try_into().unwrap()) as usize;
        String::from_utf8(answer[20..20 + len].to_vec()).unwrap()
    }

    fn send(&mut self, message: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(&(message.len() as u32).to_be_bytes())?;
        self.stream.write_all(message)
    }

    fn receive(&mut self) -> std::io::Result<Vec<u8>> {
        let mut len = [0; 4];
        self.stream.read_exact(&mut len)?;
        let mut answer = vec![0; u32::from_be_bytes(len) as usize];
        self.stream.read_exact(&mut answer)?;
        Ok(answer)
    }
}

fn put(message: &mut Vec<u8>, bytes: &[u8]) {
    message.extend((bytes.len() as i32).to_be_bytes());
    message.extend(bytes);
}

#[test]
fn a_tree_of_zookeeper_comes_over_and_what_does_not_is_named() {
    if std::env::var_os("TIDELINE_OFFLINE").is_some_and(|set| set != "0") {
        eprintln!("TIDELINE_OFFLINE is set: ZooKeeper is not tried");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut peer = Peer::start(folder.path());
    let mut session = peer.session();
    let mut make = |path: &str, data: &[u8], acl, how| session.create(path, data, acl, how);
    make("/feed", b"v1", EVERYBODY, PERSISTENT);
    let binary: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    make("/feed/model", &binary, EVERYBODY, PERSISTENT);
    make("/feed/empty", b"", EVERYBODY, PERSISTENT);
    make("/feed/locks", b"", EVERYBODY, CONTAINER);
    for n in 0..3 {
        let made = make("/feed/locks/l-", b"", EVERYBODY, SEQUENTIAL);
        assert_eq!(made, format!("/feed/locks/l-000000000{n}"));
    }
    make("/feed/workers", b"", EVERYBODY, PERSISTENT);
    make("/feed/workers/w", b"alive", EVERYBODY, EPHEMERAL);
    make("/feed/workers/w-", b"alive", EVERYBODY, EPHEMERAL | SEQUENTIAL);
    make("/feed/wide", b"", EVERYBODY, PERSISTENT);
    for n in 0..250 {
        make(&format!("/feed/wide/{n}"), n.to_string().as_bytes(), EVERYBODY, PERSISTENT);
    }
    make("/feed/read-only", b"r", &[(1, "world", "anyone")], PERSISTENT);
    // Readable by one address that is not ours.
    make("/feed/secret", b"s", &[(31, "ip", "192.0.2.1")], PERSISTENT);
    make("/feed/large", &vec![7; 600 << 10], EVERYBODY, PERSISTENT);
    make("/other", b"not asked for", EVERYBODY, PERSISTENT);

    let data = tempfile::tempdir().unwrap();
    let grpc = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = tideline(&["serve", "--http", "127.0.0.1:0", "--grpc", &grpc.to_string()]);
    command.arg("--data").arg(data.path());
    let _server = Server::spawn(command);
    let url = format!("http://{grpc}");
    let from = format!("{}/feed", peer.at);
    let import = ["meta", "--grpc", &url, "import", "--zookeeper", &from, "/apps/feed"];
    let done = run(&import);
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{said}");
    for line in [
        "259 nodes imported to /apps/feed",
        "2 left out: ephemeral (/feed/workers/w, /feed/workers/w-0000000001)",
        "1 left out: over the limit of a value (/feed/large)",
        "1 left out: their ACL does not show them (/feed/secret)",
        "1 imported without their ACL (/feed/read-only)",
    ] {
        assert!(said.lines().any(|said| said == line), "{line:?} is not in: {said}");
    }
    let meta = |args: &[&str]| ok(&[&["meta", "--grpc", &url], args].concat());
    let get = |path| run(&["meta", "--grpc", &url, "get", path]).stdout;
    assert_eq!(get("/apps/feed"), b"v1");
    assert!(get("/apps/feed/model") == binary, "70,000 bytes as they were");
    assert_eq!(get("/apps/feed/wide/249"), b"249");
    let names = meta(&["ls", "/apps/feed", "--json"]);
    let names: Vec<String> = names
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["path"].to_string())
        .collect();
    let expected = ["empty", "locks", "model", "read-only", "wide", "workers"];
    assert_eq!(names, expected.map(|name| format!("\"/apps/feed/{name}\"")));
    assert_eq!(meta(&["ls", "/apps/feed/wide"]).lines().count(), 250);
    assert_eq!(meta(&["ls", "/apps/feed/workers"]), "");
    // Who waits for a lock over there waits in the same order here.
    let next = meta(&["create", "/apps/feed/locks/l-", "--sequential"]);
    assert_eq!(next, "/apps/feed/locks/l-0000000003\n");
}
