//! What a start prints: where it listens, and what to try.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

/// The file that ships with the project for a first import.
const SAMPLE: &str = "samples/history.csv";
/// Where HTTP listens unless it is told otherwise.
const HTTP_DEFAULT: &str = "127.0.0.1:7766";

/// What there is to say.
pub(crate) struct Banner<'a> {
    pub(crate) http: SocketAddr,
    pub(crate) grpc: SocketAddr,
    pub(crate) data: &'a Path,
    /// Which page to open, from the address on.
    pub(crate) page: &'a str,
    /// The admin token of a first start.
    pub(crate) token: Option<&'a str>,
}

impl Banner<'_> {
    /// The text, ready to print.
    pub(crate) fn text(&self) -> String {
        let base = format!("http://{}", reachable(self.http));
        let program = program();
        let server = match self.http.to_string() == HTTP_DEFAULT {
            true => String::new(),
            false => format!(" --server {base}"),
        };
        let mut out = String::new();
        let version = env!("CARGO_PKG_VERSION");
        let _ = writeln!(out, "Tideline {version}, data in {}", self.data.display());
        let _ = writeln!(out, "  Page  {base}/{}   (open it in a browser)", self.page);
        let _ = writeln!(out, "  HTTP  {base}   (/openapi.json describes it)");
        let _ = writeln!(out, "  gRPC  {}", reachable(self.grpc));
        let mut header = String::new();
        if let Some(token) = self.token {
            let _ = writeln!(out, "\nThis is the admin token; it is not shown again:");
            let _ = writeln!(out, "  export TIDELINE_TOKEN={token}");
            header = " -H \"authorization: Bearer $TIDELINE_TOKEN\"".into();
        }
        let _ = writeln!(out, "\nTry, in another terminal:");
        let import = format!("{program} import history{server} --format csv");
        match Path::new(SAMPLE).exists() {
            true => {
                let _ = writeln!(out, "  {import} {SAMPLE}");
            }
            // Installed without the project's files: one mark by hand.
            false => {
                let mark = r"user,kind,id,title\nann,video,7,Tides\n";
                let _ = writeln!(out, "  printf '{mark}' | {import} -");
            }
        }
        let _ =
            writeln!(out, "  curl -s{header} '{base}/v1/users/ann/history?limit=5&enrich=true'");
        let _ = writeln!(out, "  {program} topic tail history{server} --from earliest");
        let _ = writeln!(out, "\nCtrl-C stops it.");
        out
    }
}

/// An address that is good for calling: a server that listens everywhere is
/// called on this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => ([127, 0, 0, 1], v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => {
            (std::net::Ipv6Addr::LOCALHOST, v6.port()).into()
        }
        address => address,
    }
}

/// This program, as it is typed from here.
fn program() -> String {
    let name = || "tideline".to_owned();
    let Ok(path) = std::env::current_exe() else { return name() };
    let on_path = std::env::var_os("PATH").is_some_and(|all| {
        let folder = path.parent();
        std::env::split_paths(&all).any(|one| Some(&*one) == folder)
    });
    if on_path {
        return name();
    }
    let here = std::env::current_dir().ok();
    let short = here.as_deref().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(&path);
    short.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_says_where_it_listens_and_three_things_to_try() {
        let banner = Banner {
            http: ([0, 0, 0, 0], 80).into(),
            grpc: ([127, 0, 0, 1], 7767).into(),
            data: Path::new("d"),
            page: "#/video/tide",
            token: Some("tl_x"),
        };
        let text = banner.text();
        assert!(text.contains("  HTTP  http://127.0.0.1:80 "), "{text}");
        assert!(text.contains("  Page  http://127.0.0.1:80/#/video/tide "), "{text}");
        assert!(text.contains("import history --server http://127.0.0.1:80 "), "{text}");
        assert!(text.contains("export TIDELINE_TOKEN=tl_x\n"), "{text}");
        assert!(text.contains("curl -s -H \"authorization: Bearer $TIDELINE_TOKEN\""), "{text}");
        let quiet = Banner { http: ([127, 0, 0, 1], 7766).into(), token: None, ..banner }.text();
        assert!(!quiet.contains("--server") && !quiet.contains("TOKEN"), "{quiet}");
    }
}
