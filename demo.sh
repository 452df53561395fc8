#!/usr/bin/env bash
# The main job on real input: import a directory tree, list it, read a range, survive a kill,
# verify, export, compare. Usage: ./demo.sh [DIR]   (default: /usr/share)
set -euo pipefail
dir=${1:-/usr/share}
holdall=${HOLDALL:-$(dirname "$0")/target/release/holdall}
[ -x "$holdall" ] || { echo "build first: make demo"; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/holdall-demo.XXXXXX")
trap 'rm -rf "$work"' EXIT
store=$work/demo.holdall
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say "1. Import $dir into one file, and kill it on the way"
"$holdall" import "$store" "$dir" --report-acks >"$work/acks" 2>"$work/import.log" &
pid=$!
for _ in $(seq 200); do
  [ "$(grep -c '^ack ' "$work/acks" 2>/dev/null || true)" -ge 3 ] && break
  kill -0 $pid 2>/dev/null || break
  sleep 0.02
done
kill -9 $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
echo "killed after $(grep -c '^ack ' "$work/acks" || true) acknowledged batches; on disk:"
ls -l "$work" | awk '/demo.holdall/ {print "  " $5, $9}'

say "2. Verify what a kill left (nothing is written), then import again: it goes on"
"$holdall" verify "$store"
"$holdall" import "$store" "$dir"

say "3. List, look, read a range"
"$holdall" ls "$store" --long | head -5 || true
# Read to its end, so that no pipe breaks; the largest by size.
name=$("$holdall" ls "$store" --json | python3 -c '
import json, sys
print(max(json.load(sys.stdin), key=lambda o: o["size"])["name"])')
"$holdall" stat "$store" "$name"
"$holdall" get "$store" "$name" --range 100:164 | od -c | head -4

say "4. The store"
"$holdall" stat "$store"

say "5. Export and compare"
"$holdall" export "$store" "$work/out"
# Links and special files are not stored: compare what is.
(cd "$dir" && find . -type f -print0 | sort -z | xargs -0 sha256sum 2>/dev/null) >"$work/a" || true
(cd "$work/out" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$work/b"
if cmp -s "$work/a" "$work/b"; then
  echo "identical: $(wc -l <"$work/b") files"
else
  diff "$work/a" "$work/b" | head -5
  echo "DIFFERENT"
  exit 1
fi

say "6. Verify everything, checksums included"
"$holdall" verify "$store"
