#!/usr/bin/env bash
# Runs ceph/s3-tests against `holdall serve` and compares the outcome with the kept lists.
#
#   tests/s3/s3-tests.sh CHECKOUT [HOLDALL]
#
# CHECKOUT is a checkout of s3-tests; without it nothing is run. HOLDALL is the program, built
# where it is not given. LISTS=write writes the lists anew from what happens.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
checkout=${1:-}
if [ -z "$checkout" ] || [ ! -d "$checkout/s3tests" ]; then
    echo "s3-tests: skipped, no checkout given (tests/s3/s3-tests.sh CHECKOUT)"
    exit 0
fi
program=${2:-}
if [ -z "$program" ]; then
    (cd "$here/../.." && cargo build --release -p holdall-cli)
    program=$here/../../target/release/holdall
fi
program=$(realpath "$program")
unset AWS_CA_BUNDLE
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q -r "$checkout/requirements.txt" pytest pytest-timeout

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
python3 "$here/settings.py" "$port" "$work/server.toml" "$work/s3tests.conf"
"$program" serve "$work/a.holdall" --listen "127.0.0.1:$port" --config "$work/server.toml" \
    2> "$work/server.log" > "$work/server.out" &
server=$!
for _ in $(seq 100); do
    [ -s "$work/server.out" ] && break
    sleep 0.1
done

cd "$checkout"
S3TEST_CONF=$work/s3tests.conf timeout 3000 "$work/venv/bin/python" -m pytest -q \
    -p no:cacheprovider --timeout 90 --tb=line --junitxml="$work/result.xml" \
    s3tests/functional/test_s3.py s3tests/functional/test_headers.py > "$work/pytest.log" 2>&1 || true
grep -c panicked "$work/server.log" > /dev/null && { echo "s3-tests: the server panicked"; exit 1; }
python3 "$here/compare.py" "$checkout" "$work/result.xml" "$here" "${LISTS:-compare}"
