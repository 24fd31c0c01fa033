#!/usr/bin/env bash
# Lets every fuzz target look for a crash, SECONDS each (300 by default), from
# its kept corpus. What it newly finds stays beside the build, not in the
# corpus; a crash is printed with the command that shows it again, and ends it.
#
#   scripts/fuzz.sh [SECONDS] [TARGET…]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds="${1:-300}"
shift || true
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for file in fuzz/fuzz_targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi

echo "fuzz: ${#targets[@]} targets, $seconds s each"
# The decoders hold no unsafe code: no sanitizer, for speed.
for target in "${targets[@]}"; do
  found="fuzz/target/corpus/$target"
  mkdir -p "$found"
  echo "fuzz: $target"
  cargo +nightly fuzz run --sanitizer none "$target" "$found" "fuzz/corpus/$target" -- \
    -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 -print_final_stats=0
done
