#!/usr/bin/env bash
# Versity S3 Gateway over a folder: `eval "$(tests/servers/versitygw.sh start DIR [PORT])"` builds it,
# if DIR has it not, starts it and sets what clients need. `stop DIR` ends it and removes its data,
# `remove DIR` the program too. DIR must lie on a file system with extended attributes.
# shellcheck source=tests/servers/common.sh
. "$(dirname "$0")/common.sh"
: "${dir:=}" "${access:?}" "${secret:?}"
port=7070

start_server() {
    go_install versitygw github.com/versity/versitygw/cmd/versitygw@latest
    mkdir "$dir/run/data"
    ROOT_ACCESS_KEY=$access ROOT_SECRET_KEY=$secret keep versitygw \
        "$dir/bin/versitygw" --port "127.0.0.1:$port" --quiet posix "$dir/run/data"
}

main "$@"
