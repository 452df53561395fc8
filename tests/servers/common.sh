# shellcheck shell=bash
# What the scripts of servers share: the command line, and what a started server tells.
#
# To be sourced, with functions `start_server` and, if need be, `stop_server` and `replace_part`, and
# `port` set before `main "$@"`. DIR is absolute then, `run` in it is all that a server writes, and the rest what was
# installed.
set -euo pipefail
access=test secret=secret-of-tests bucket=test

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Keeps a process going without this one, and remembers it under a name.
keep() {
    local name=$1
    shift
    setsid nohup "$@" > "$dir/run/$name.log" 2>&1 < /dev/null &
    echo $! > "$dir/run/$name.pid"
}

# Installs a program of Go modules into DIR.
go_install() {
    local go=go
    [ ! -x "$dir/bin/$1" ] || return 0
    command -v go > /dev/null || go=/usr/local/go/bin/go
    command -v "$go" > /dev/null || fail "needs Go, to build $1"
    echo "building $1; this takes minutes" >&2
    GOPATH=$dir/go GOBIN=$dir/bin GOCACHE=$dir/go-cache GOFLAGS=-modcacherw \
        nice "$go" install -p 1 "$2" >&2
    rm -rf "$dir/go" "$dir/go-cache"
}

# Waits until the server answers, and makes the bucket.
make_bucket() {
    local code
    : > "$dir/run/answer"
    for _ in $(seq 150); do
        code=$(curl -s -o "$dir/run/answer" -w '%{http_code}' -X PUT "$url/$bucket" \
            --aws-sigv4 aws:amz:us-east-1:s3 --user "$access:$secret" \
            -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD') || code=0
        [ "$code" != 200 ] || return 0
        sleep 0.2
    done
    fail "the server makes no bucket: $code $(cat "$dir/run/answer"); see $dir/run"
}

# Takes a part of a server away with its data and puts an empty one there; few have such parts.
replace_part() {
    fail "nothing of this server can be replaced"
}

stop_server() {
    local file
    for file in "$dir"/run/*.pid; do
        [ -e "$file" ] || continue
        kill "$(cat "$file")" 2> /dev/null || true
        # Some wait without end for those that ended before.
        timeout 20 tail --pid="$(cat "$file")" -f /dev/null || kill -9 "$(cat "$file")" || true
    done
}

main() {
    local what=${1:-}
    [ $# -ge 2 ] || fail "start DIR [PORT], stop DIR or remove DIR"
    mkdir -p "$2"
    dir=$(cd "$2" && pwd)
    [ "$what" = replace ] || port=${3:-$port}
    url=http://127.0.0.1:$port
    case $what in
        start)
            [ ! -e "$dir/run" ] || fail "$dir has a server already; stop it first"
            mkdir -p "$dir/run"
            start_server
            make_bucket
            echo "export AWS_ENDPOINT_URL=$url AWS_DEFAULT_REGION=us-east-1"
            echo "export AWS_ACCESS_KEY_ID=$access AWS_SECRET_ACCESS_KEY=$secret"
            echo "export HOLDALL_TEST_S3=s3://$bucket/x"
            ;;
        stop | remove)
            stop_server
            rm -rf "$dir/run"
            [ "$what" = stop ] || rm -rf "$dir"
            ;;
        replace) replace_part "${3:-}" ;;
        *) fail "start, stop or remove, not $what" ;;
    esac
}
