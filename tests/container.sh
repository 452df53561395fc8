#!/bin/sh
# Builds the container file, runs it, asks it for its health as the engine does, stores and reads an
# object.
# Needs podman or docker, and the base images; says what is missing otherwise.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
engine=
for name in podman docker; do
    if command -v "$name" > /dev/null && "$name" info > /dev/null 2>&1; then engine=$name; break; fi
done
[ -n "$engine" ] || { echo "skipped: podman or docker that runs containers"; exit 0; }
for image in $(sed -n 's/^FROM \([^ ]*\).*/\1/p' "$root/packaging/Containerfile"); do
    "$engine" image inspect "$image" > /dev/null 2>&1 || "$engine" pull -q "$image" > /dev/null 2>&1 || {
        echo "skipped: the image $image"
        exit 0
    }
done
tag=holdall-test-$$
container=
cleanup() {
    [ -z "$container" ] || "$engine" rm -f "$container" > /dev/null 2>&1 || true
    "$engine" rmi -f "$tag" > /dev/null 2>&1 || true
}
trap cleanup EXIT
# podman keeps a health check in images of docker's format only.
format=
[ "$engine" != podman ] || format="--format docker"
# shellcheck disable=SC2086
"$engine" build -q $format -t "$tag" -f "$root/packaging/Containerfile" "$root" > /dev/null
container=$("$engine" run -d -p 127.0.0.1::9000 -e HOLDALL_ACCESS_KEY=me -e HOLDALL_SECRET_KEY=a-long-secret "$tag")
address=$("$engine" port "$container" 9000 | head -n 1)
tries=0
until curl -fsS "http://$address/-/health" > /dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 120 ] || { "$engine" logs "$container"; echo "it does not answer"; exit 1; }
    sleep 0.5
done
[ "$("$engine" exec "$container" id -u)" = 10001 ] || { echo "it runs as another user"; exit 1; }
asked=$("$engine" inspect -f '{{index .Config.Healthcheck.Test 3}}' "$container")
"$engine" exec "$container" bash -c "$asked" || { echo "its health check fails"; exit 1; }
size=$("$engine" exec "$container" stat -c %s /usr/local/bin/holdall)
[ "$size" -lt 20000000 ] || { echo "the command has $size bytes: it is not stripped"; exit 1; }
keys=me:a-long-secret
curl -fsS -u "$keys" -X MKCOL "http://$address/-/dav/docs"
echo "hello from a container" | curl -fsS -u "$keys" -T - "http://$address/-/dav/docs/a"
[ "$(curl -fsS -u "$keys" "http://$address/-/dav/docs/a")" = "hello from a container" ]
"$engine" stop -t 30 "$container" > /dev/null
[ "$("$engine" inspect -f '{{.State.ExitCode}}' "$container")" = 0 ] || { echo "it did not stop cleanly"; exit 1; }
echo "built, answered and stopped by $engine"
