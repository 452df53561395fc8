#!/usr/bin/env bash
# MinIO over a folder: `eval "$(tests/servers/minio.sh start DIR [PORT])"` builds it, if DIR has it not,
# starts it and sets what clients need. `stop DIR` ends it and removes its data, `remove DIR` the
# program too. Its project is archived: it is a server for tests, no advice.
# shellcheck source=tests/servers/common.sh
. "$(dirname "$0")/common.sh"
: "${dir:=}" "${access:?}" "${secret:?}"
port=9000

start_server() {
    go_install minio github.com/minio/minio@latest
    mkdir "$dir/run/data"
    MINIO_ROOT_USER=$access MINIO_ROOT_PASSWORD=$secret MINIO_BROWSER=off keep minio \
        "$dir/bin/minio" server --quiet --address "127.0.0.1:$port" "$dir/run/data"
}

main "$@"
