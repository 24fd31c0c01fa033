#!/usr/bin/env bash
# The pages for browsers, in ui/.
#
#   scripts/ui.sh build     builds them into ui/built, if anything changed
#   scripts/ui.sh check     types, lints, unit tests
#   scripts/ui.sh browser   tests in a headless Chromium, against a server of
#                           their own; `browser --shots` also takes the pictures of
#                           docs/ui again
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "ui: $*" >&2; }

# A Node.js that is new enough.
node_here() {
  local newer
  newer=$(scripts/needs.sh node)
  [ -z "$newer" ] || PATH="$newer:$PATH"
}

# What was installed is what the lock file says.
packages() {
  local mark=ui/node_modules/.tideline-lock
  if ! cmp -s ui/package-lock.json "$mark"; then
    say "installing the packages that ui/package-lock.json names, with npm"
    (cd ui && npm ci --silent --no-audit --no-fund)
    cp ui/package-lock.json "$mark"
  fi
}

# What the pages are built from, as one number.
sources() {
  find ui/src ui/web/src ui/public ui/index.html ui/vite.config.ts ui/tsconfig.json ui/package-lock.json \
    -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
}

build() {
  local mark=ui/built/sources
  [ "$(cat "$mark" 2>/dev/null)" = "$(sources)" ] && return
  packages
  say "building the pages"
  (cd ui && npm run --silent build -- --logLevel warn)
  sources >"$mark"
}

case "${1:-}" in
  build)
    node_here
    build
    ;;
  check)
    node_here
    packages
    (cd ui && npm run --silent check)
    ;;
  browser)
    node_here
    scripts/needs.sh chromium
    build
    packages
    # Whoever has just built the program says where it is.
    [ -n "${TIDELINE_PROGRAM:-}" ] || "${CARGO:-cargo}" build --locked -p tideline-server --bin tideline
    TIDELINE_CHROMIUM=$(command -v chromium) && export TIDELINE_CHROMIUM
    [ "${2:-}" = --shots ] && export TIDELINE_SHOTS=1
    (cd ui && npm run --silent browser)
    ;;
  *)
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
