//! The program as a test runs it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// `tideline ARGS…`, without anything of the caller's environment that would
/// change what it does.
pub(crate) fn tideline(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tideline"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TIDELINE") {
            command.env_remove(name);
        }
    }
    command.args(args);
    command
}

/// Runs it to its end.
pub(crate) fn run(args: &[&str]) -> Output {
    tideline(args).stdin(Stdio::null()).output().expect("the program was built")
}

/// Runs it, demands success, and gives its standard output.
pub(crate) fn ok(args: &[&str]) -> String {
    let output = run(args);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tideline {}: {told}", args.join(" "));
    String::from_utf8(output.stdout).expect("text")
}

/// A running server; killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    /// What it printed before it was ready.
    pub(crate) banner: Vec<String>,
    /// `http://127.0.0.1:port`
    pub(crate) base: String,
    /// The same for gRPC.
    pub(crate) grpc: String,
    token: Option<String>,
}

impl Server {
    /// Starts it on `data` with more flags, and waits until it says where it
    /// listens.
    pub(crate) fn start(data: &Path, flags: &[&str]) -> Self {
        let mut command = tideline(&["serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]);
        command.arg("--data").arg(data).args(flags);
        Self::spawn(command)
    }

    /// Starts `command`, which is a `serve`.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program was built");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut banner = Vec::new();
        for line in out.lines() {
            let line = line.expect("text");
            let last = line.trim() == "Ctrl-C stops it.";
            banner.push(line);
            if last {
                break;
            }
        }
        let after = |mark: &str| {
            let line = banner.iter().find_map(|line| line.trim().strip_prefix(mark));
            line.and_then(|rest| rest.split_whitespace().next()).map(str::to_owned)
        };
        let base = after("HTTP").unwrap_or_else(|| panic!("it did not start: {banner:?}"));
        let grpc = format!("http://{}", after("gRPC").unwrap_or_default());
        let token = after("export TIDELINE_TOKEN=");
        Self { child, base, grpc, token, banner }
    }

    /// The admin token that a first start printed.
    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().expect("it printed one")
    }

    /// Power to the wall: no goodbye.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// SIGTERM; gives the exit status.
    pub(crate) fn stop(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().expect("kill is there");
        assert!(sent.success());
        self.child.wait().expect("it ends").code()
    }

    /// Flags that make a command talk to this server.
    pub(crate) fn at<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let mut all = args.to_vec();
        all.extend(["--server", &self.base]);
        all
    }

    /// Runs a command against this server and demands success.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        ok(&self.at(args))
    }

    /// Runs `tideline meta ARGS…` against this server and demands success.
    pub(crate) fn meta(&self, args: &[&str]) -> String {
        ok(&[&["meta", "--grpc", &self.grpc], args].concat())
    }

    /// One call: status and body.
    pub(crate) fn call(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let token = self.token.as_deref();
        call(&format!("{}{path}", self.base), method, body, token)
    }

    /// A GET that must be answered with 200.
    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, None);
        assert_eq!(status, 200, "GET {path}: {body}");
        body
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One call of `url`: status and body (a text, where it is no JSON).
pub(crate) fn call(
    url: &str,
    method: &str,
    body: Option<Value>,
    token: Option<&str>,
) -> (u16, Value) {
    static CALLS: OnceLock<(tokio::runtime::Runtime, reqwest::Client)> = OnceLock::new();
    let (runtime, client) = CALLS.get_or_init(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Runtime::new().expect("threads");
        (runtime, reqwest::Client::builder().no_proxy().build().expect("a client"))
    });
    let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
    let mut request = client.request(method, url);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if let Some(body) = body {
        request = request.json(&body);
    }
    runtime.block_on(async {
        let response = request.send().await.unwrap_or_else(|e| panic!("{url}: {e}"));
        let status = response.status().as_u16();
        let text = response.text().await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    })
}
