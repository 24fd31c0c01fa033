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
  *)
    say "unknown task $1"
    exit 2
    ;;
esac
