# What the tries of clients share: a server, a tree of files, and how one client is tried.
#
# To be sourced with `here` set to the folder of the script, and the program as first argument.
program=${1:-}
if [ -z "$program" ]; then
    (cd "$here/../.." && cargo build --release -p holdall-cli) || exit 1
    program=$here/../../target/release/holdall
fi
program=$(realpath "$program")
unset AWS_CA_BUNDLE
work=$(mktemp -d)
server=
cleanup() {
    for at in "$work"/mount-*; do fusermount3 -u "$at" 2>/dev/null; done
    [ -z "$server" ] || kill "$server" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
export HOLDALL_ACCESS_KEY=clients HOLDALL_SECRET_KEY=secret-of-the-clients
"$program" serve "$work/a.holdall" --listen 127.0.0.1:0 2> "$work/log" > "$work/out" &
server=$!
for _ in $(seq 100); do [ -s "$work/out" ] && break; sleep 0.1; done
url=$(sed 's/.* //' "$work/out")
# What is stored: small files, folders, names that need care, one of several parts.
mkdir -p "$work/tree/folder/inner"
for n in $(seq 200); do echo "file $n" > "$work/tree/folder/$n.txt"; done
echo x > "$work/tree/folder/inner/a b+c%d&é.txt"
: > "$work/tree/empty"
head -c 40000000 /dev/urandom > "$work/tree/large"

failed=0
try() {
    local name=$1
    if ! command -v "$2" > /dev/null; then
        echo "$name: skipped, $2 is not installed"
        return
    fi
    (set -e; "$3") > "$work/$3.log" 2>&1
    # Not as a condition: there "set -e" means nothing.
    if [ $? = 0 ]; then
        echo "$name: passed"
    else
        echo "$name: failed"
        tail -5 "$work/$3.log" | sed 's/^/    /'
        failed=1
    fi
}
