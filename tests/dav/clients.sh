#!/usr/bin/env bash
# Tries WebDAV clients that are installed on `holdall serve`, one line for each.
#
#   tests/dav/clients.sh [HOLDALL]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../serving.sh"
dav=$url/-/dav
user=$HOLDALL_ACCESS_KEY
secret=$HOLDALL_SECRET_KEY

with_litmus() {
    curl -sf -u "$user:$secret" -X MKCOL "$dav/litmus"
    cd "$work"
    litmus -k "$dav/litmus/" "$user" "$secret" > litmus.out
    grep summary litmus.out
    ! grep -q FAIL litmus.out
    [ "$(grep -c ' 0 failed' litmus.out)" = 5 ]
}

with_rclone() {
    export RCLONE_CONFIG=$work/rclone.conf
    rclone config create d webdav url="$dav" vendor=owncloud user="$user" pass="$secret" > /dev/null
    rclone mkdir d:rclone
    rclone sync "$work/tree" d:rclone
    rclone check --download "$work/tree" d:rclone
    echo more >> "$work/tree/large"
    rm "$work/tree/folder/7.txt"
    rclone sync "$work/tree" d:rclone
    rclone check "$work/tree" d:rclone
    rclone copy d:rclone "$work/rclone-back"
    diff -r "$work/tree" "$work/rclone-back"
    rclone moveto d:rclone/folder d:rclone/moved
    [ "$(rclone ls d:rclone/moved | wc -l)" = 200 ]
    rclone purge d:rclone
}

with_rclone_mount() {
    export RCLONE_CONFIG=$work/rclone.conf
    rclone mkdir d:mounted
    rclone copy "$work/tree" d:mounted
    mkdir -p "$work/mount-rclone"
    timeout 60 rclone mount d:mounted "$work/mount-rclone" --daemon --vfs-cache-mode writes
    sleep 2
    diff -r "$work/tree" "$work/mount-rclone"
    echo written > "$work/mount-rclone/new"
    sleep 7
    fusermount3 -u "$work/mount-rclone"
    [ "$(rclone cat d:mounted/new)" = written ]
}

with_cadaver() {
    printf 'machine 127.0.0.1\nlogin %s\npassword %s\n' "$user" "$secret" > "$work/.netrc"
    chmod 600 "$work/.netrc"
    echo body > "$work/one"
    printf '%s\n' "mkcol cadaver" "cd cadaver" "put $work/one one" "copy one two" "move two three" \
        "lock one" "unlock one" "propset one colour red" "propget one colour" "ls" \
        "get three $work/three" "delete one" "cd .." "rmcol cadaver" "quit" > "$work/script"
    HOME=$work cadaver "$dav/" < "$work/script" > "$work/cadaver.out" 2>&1
    cat "$work/cadaver.out"
    ! grep -qi "failed\|error" "$work/cadaver.out"
    grep -q "Value of colour is: red" "$work/cadaver.out"
    cmp "$work/one" "$work/three"
}

with_davfs() {
    mkdir -p "$work/mount-davfs"
    printf '%s %s %s\n' "$dav/davfs" "$user" "$secret" > "$work/secrets"
    chmod 600 "$work/secrets"
    printf 'use_locks 1\nask_auth 0\nsecrets %s\n' "$work/secrets" > "$work/davfs.conf"
    curl -sf -u "$user:$secret" -X MKCOL "$dav/davfs"
    mount.davfs -o conf="$work/davfs.conf" "$dav/davfs" "$work/mount-davfs"
    cp -r "$work/tree/folder" "$work/mount-davfs/"
    mv "$work/mount-davfs/folder" "$work/mount-davfs/moved"
    umount "$work/mount-davfs"
    curl -sf -u "$user:$secret" "$dav/davfs/moved/8.txt" | cmp - "$work/tree/folder/8.txt"
}

try litmus litmus with_litmus
try "rclone webdav" rclone with_rclone
if [ -e /dev/fuse ] && command -v fusermount3 > /dev/null; then
    try "rclone mount" rclone with_rclone_mount
else
    echo "rclone mount: skipped, there is no FUSE"
fi
try cadaver cadaver with_cadaver
if [ -e /dev/fuse ] && [ "$(id -u)" = 0 ]; then
    try davfs2 mount.davfs with_davfs
else
    echo "davfs2: skipped, it needs FUSE and root"
fi
exit "$failed"
