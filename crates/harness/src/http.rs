//! As much of HTTP/1.1 as the tests need, on one kept connection.
//!
//! Small on purpose: a lost answer must be seen as lost, never asked for again
//! behind the caller's back.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::ledger::Request;

/// No answer takes this long on a machine that is merely busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection.
#[derive(Debug)]
pub struct Http {
    stream: BufReader<TcpStream>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as JSON; `Null` where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The body as JSON, a value a line.
    pub fn lines(&self) -> Vec<Value> {
        let lines = self.body.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap_or(Value::Null)).collect()
    }
}

impl Http {
    /// Connects.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Asks and waits. An error means: no whole answer came.
    pub fn ask(&mut self, request: &Request) -> io::Result<Response> {
        let Request { method, path, body } = request;
        let body = body.as_deref().unwrap_or_default();
        let len = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: {len}\r\n\r\n"
        );
        self.stream.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
        self.answer()
    }

    /// GET.
    pub fn get(&mut self, path: impl Into<String>) -> io::Result<Response> {
        self.ask(&Request { method: "GET", path: path.into(), body: None })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 || !line.ends_with('\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn answer(&mut self) -> io::Result<Response> {
        let bad = || io::Error::from(io::ErrorKind::InvalidData);
        let status = self.line()?.split(' ').nth(1).and_then(|s| s.parse().ok()).ok_or_else(bad)?;
        let (mut len, mut chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(':') {
                None => break,
                Some(("content-length", value)) => {
                    len = value.trim().parse().map_err(|_| bad())?;
                }
                Some(("transfer-encoding", value)) => chunked = value.trim() == "chunked",
                Some(_) => (),
            }
        }
        let mut body = Vec::new();
        if chunked {
            loop {
                let size = self.line()?;
                let size = usize::from_str_radix(&size, 16).map_err(|_| bad())?;
                self.take(size, &mut body)?;
                self.line()?;
                if size == 0 {
                    break;
                }
            }
        } else {
            self.take(len, &mut body)?;
        }
        Ok(Response { status, body })
    }

    fn take(&mut self, len: usize, body: &mut Vec<u8>) -> io::Result<()> {
        let from = body.len();
        body.resize(from + len, 0);
        self.stream.read_exact(&mut body[from..])
    }
}
