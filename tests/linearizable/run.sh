#!/usr/bin/env bash
# Proves that objects in a bucket are linearizable, of real processes on a real server:
# `tests/linearizable/run.sh SERVER DIR [OPTION...]`, with SERVER versitygw, minio or ceph, DIR the folder
# of its script in tests/servers, and options of `linearizable run`, as `-seconds 600 -seed 1`.
# Needs Go. Histories stay in DIR/histories.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
server=${1:?SERVER} dir=${2:?DIR}
shift 2
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
export SERVERS=$here/../servers
PATH=$PATH:/usr/local/go/bin
target=${CARGO_TARGET_DIR:-$here/../../target}
cargo build -q --profile test -p holdall-bucket --example histories
cp "$target/debug/examples/histories" "$dir/client"
(cd "$here" && go test . && go build -o "$dir/linearizable" .)
started=$("$SERVERS/$server.sh" start "$dir" ${PORT:+"$PORT"})
rm -rf "$dir/histories"
eval "$started"
trap '"$SERVERS/$server.sh" stop "$dir"' EXIT
"$dir/linearizable" run -server "$server" -dir "$dir" -out "$dir/histories" \
    -histories "$dir/client" "$@"
