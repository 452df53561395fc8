#!/usr/bin/env bash
# The main job on real input: import a directory tree, kill that on the way, verify, resume, list,
# read a range, export, compare. Needs bash, coreutils and the command, which HOLDALL may name.
# Usage: ./demo.sh [DIR]   (default: /usr/share)
set -euo pipefail
unset CDPATH
here=$(cd "$(dirname "$0")" && pwd -P)
holdall=${HOLDALL:-$here/target/release/holdall}
command -v "$holdall" >/dev/null || { echo "$holdall is missing. Build it first: make demo"; exit 1; }
holdall=$(command -v "$holdall")
case $holdall in /*) ;; *) holdall=$PWD/$holdall ;; esac
dir=$(cd -- "${1:-/usr/share}" && pwd -P)
work=$(mktemp -d "${TMPDIR:-/tmp}/holdall-demo.XXXXXX")
work=$(cd "$work" && pwd -P)
store=$work/demo.holdall
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
case $work/ in "${dir%/}"/*) echo "$dir holds $work, too: set TMPDIR to a directory outside"; exit 1 ;; esac
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

# Kills the import that runs as $pid, and finds out whether that was in time: a command that ended
# by itself has its own code, one that was killed has 137.
end_import() {
  kill -9 "$pid" 2>/dev/null || true
  code=0
  wait "$pid" 2>/dev/null || code=$?
  pid=
  [ "$code" = 137 ]
}

# How many batches the import has acknowledged; its last line is a summary.
batches() {
  local line count=0
  while IFS= read -r line; do
    case $line in "ack "*) count=$((count + 1)) ;; esac
  done <"$work/acks"
  echo "$count"
}

# Kills an import that runs freely, at three batches or 64 MiB in the store.
kill_on_the_way() {
  : >"$work/acks"
  "$holdall" import "$store" "$dir" --report-acks >"$work/acks" 2>"$work/log" &
  pid=$!
  local grown
  while kill -0 "$pid" 2>/dev/null; do
    grown=$(wc -c 2>/dev/null <"$store" || echo 0)
    if [ "$(batches)" -ge 3 ] || [ "$grown" -ge $((64 << 20)) ]; then break; fi
    sleep 0.01
  done
  end_import || return 1
  echo "killed after $(batches) acknowledged batches"
}

# Kills an import that cannot end: what it acknowledges goes to a pipe that is full already, so it
# waits there once its first batch is durable. --verbose says just before that it is.
kill_at_first_batch() {
  mkfifo "$work/full" "$work/said"
  exec 5<>"$work/full"
  # It ends with an error, when there is no room left.
  dd if=/dev/zero of="$work/full" bs=4096 oflag=nonblock 2>/dev/null || true
  "$holdall" import "$store" "$dir" --report-acks --verbose >"$work/full" 2>"$work/said" 5>&- &
  pid=$!
  local line durable=
  # The free run took less time than this.
  while [ -z "$durable" ] && IFS= read -r -t 60 line; do
    case $line in "holdall: acknowledged "*) durable=${line#holdall: acknowledged } ;; esac
  done <"$work/said"
  end_import && [ -n "$durable" ] || return 1
  echo "killed when its first batch was durable ($durable), before it could say so"
}

say "1. Import $dir into one file, and kill it on the way"
killed=yes
if ! kill_on_the_way; then
  [ "$code" -le 1 ] || { cat "$work/log"; echo "the import failed with code $code"; exit 1; }
  rm -f "$store" "$store-log"
  if [ "$(batches)" = 0 ]; then
    killed=
    echo "NOT KILLED: the import ended with nothing stored, so there is nothing to resume"
    "$holdall" import "$store" "$dir" || true
  else
    echo "it ended before it could be killed; another one is held at its first batch:"
    if ! kill_at_first_batch; then
      killed=
      echo "NOT KILLED: it ended, or stored nothing within a minute"
    fi
  fi
fi
ls -l "$work" | while read -r _ _ _ _ size rest; do
  case $rest in *demo.holdall*) echo "on disk: $size bytes, demo.holdall${rest##*demo.holdall}" ;; esac
done

say "2. Verify what is there (nothing is written), then import again: it goes on"
"$holdall" verify "$store"
failed=0
"$holdall" import "$store" "$dir" || failed=$?
case $failed in
  0) ;;
  1) echo "what is named above could not be stored; the rest is compared" ;;
  *) echo "the import failed with code $failed"; exit 1 ;;
esac

say "3. List, look, read a range"
"$holdall" ls "$store" --long | head -5 || true
most=-1 name=
while read -r size _ _ escaped; do
  if [ "$size" -gt "$most" ]; then most=$size name=$escaped; fi
done < <("$holdall" ls "$store" --long)
if [ "$most" -lt 0 ]; then
  echo "no objects"
else
  # As it is: `ls` escapes what terminals cannot show, and each backslash.
  printf -v name %b "$name"
  "$holdall" stat "$store" -- "$name"
  [ "$most" -lt 2 ] || "$holdall" get "$store" --range "$((most / 2)):$((most / 2 + 64 < most ? most / 2 + 64 : most))" -- "$name" | od -c
fi

say "4. The store"
"$holdall" stat "$store"

say "5. Export and compare"
"$holdall" export "$store" "$work/out"
# Adds the regular files below $1 to `files`; links and special files are not stored.
shopt -s dotglob nullglob
walk() {
  local f
  for f in "$1"/*; do
    if [ -L "$f" ]; then continue
    elif [ -d "$f" ]; then walk "$f"
    elif [ -f "$f" ]; then files+=("$f")
    fi
  done
}
# Prints a line for each file below $1, in order; 500 at once, as a command's arguments have room.
sums() (
  [ -d "$1" ] || exit 0
  cd "$1"
  files=()
  walk .
  for ((at = 0; at < ${#files[@]}; at += 500)); do
    sha256sum -- "${files[@]:at:500}" || true
  done | LC_ALL=C sort
)
sums "$dir" >"$work/a"
sums "$work/out" >"$work/b"
LC_ALL=C comm -23 "$work/a" "$work/b" >"$work/missing"
LC_ALL=C comm -13 "$work/a" "$work/b" >"$work/other"
if [ -s "$work/other" ] || { [ -s "$work/missing" ] && [ "$failed" = 0 ]; }; then
  head -5 "$work/missing" "$work/other"
  echo "DIFFERENT, or changed meanwhile"
  exit 1
fi
echo "identical: $(wc -l <"$work/b") files; not stored: $(wc -l <"$work/missing")"

say "6. Verify everything, checksums included"
"$holdall" verify "$store"
[ -n "$killed" ] || { echo; echo "Remember: no import was killed, so none was seen to resume."; }
