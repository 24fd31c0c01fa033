#!/usr/bin/env bash
# Makes sure that this machine has what the named task needs, and says what it
# installs. Without a name: what building needs.
set -euo pipefail

say() { echo "needs: $*" >&2; }

# has COMMAND PACKAGE: installs Debian's PACKAGE where there is no COMMAND.
has() {
  command -v "$1" >/dev/null && return
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    say "no $1: installing Debian's package $2"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$2" >/dev/null
  else
    say "no $1: please install it (on Debian: apt-get install $2)"
    exit 1
  fi
}

# has_font PACKAGE: as above, for what is no command.
has_font() {
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    say "no font for Chinese: installing Debian's package $1"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1" >/dev/null
  else
    say "no font for Chinese: please install one (on Debian: apt-get install $1)"
  fi
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
  node)
    has node nodejs
    has npm npm
    # What ui/package.json asks for.
    if ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)'; then
      say "Node.js is $(node --version), and the pages are built with 20.19 or newer: please install it"
      exit 1
    fi
    ;;
  chromium)
    has chromium chromium
    # So that Chinese is drawn as it is read.
    if ! fc-list :lang=zh 2>/dev/null | grep -q .; then
      has_font fonts-noto-cjk
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
        say "python3 makes no environments: installing Debian's package python3-venv"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
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
