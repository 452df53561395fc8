#!/usr/bin/env bash
# A Ceph cluster on this machine (a monitor, a manager, three OSDs in sparse files, the S3 gateway):
# `eval "$(tests/servers/ceph.sh start DIR [PORT])"` as root, which installs packages of Debian or
# Ubuntu if they are missing. `stop DIR` ends it and removes its data. Three copies of each object.
# `replace DIR N` loses OSD N with its data and adds an empty one.
# shellcheck source=tests/servers/common.sh
. "$(dirname "$0")/common.sh"
: "${dir:=}" "${access:?}" "${secret:?}"
port=7480

start_server() {
    local missing=() program
    for program in ceph-mon ceph-mgr ceph-osd radosgw ceph; do
        command -v "$program" > /dev/null || missing+=("${program/%ceph/ceph-common}")
    done
    if [ ${#missing[@]} != 0 ]; then
        { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
            apt-get install -q -y --no-install-recommends "${missing[@]}"; } >&2
    fi
    fsid=$(cat /proc/sys/kernel/random/uuid)
    configuration > "$dir/run/ceph.conf"
    export CEPH_CONF=$dir/run/ceph.conf
    mkdir "$dir/run/mon.a" "$dir/run/mgr.a"
    start_monitor >&2
    keep mgr ceph-mgr -f -i a
    for n in 0 1 2; do start_osd $n >&2; done
    timeout 60 radosgw-admin user create --uid test --display-name test \
        --access-key "$access" --secret "$secret" > "$dir/run/user.json" 2> "$dir/run/user.log" ||
        fail "no user can be made; see $dir/run"
    keep radosgw radosgw -f -n client.rgw.a
}

configuration() {
    cat << CONF
[global]
fsid = $fsid
mon host = [v2:127.0.0.1:$((port + 1)),v1:127.0.0.1:$((port + 2))]
run dir = $dir/run
admin socket = $dir/run/\$name.asok
crash dir = $dir/run
log file = $dir/run/\$name.ceph.log
mon cluster log file = $dir/run/cluster.ceph.log
ms bind ipv6 = false
public addr = 127.0.0.1
osd crush chooseleaf type = 0
osd pool default size = 3
osd pool default min size = 2
osd pool default pg num = 8
osd pool default pg autoscale mode = off
mon max pg per osd = 1000
[mon]
mon data = $dir/run/mon.a
mon data avail crit = 1
mon data avail warn = 1
mon warn on insecure global id reclaim allowed = false
[mgr]
mgr data = $dir/run/mgr.a
keyring = $dir/run/keyring
[osd]
osd data = $dir/run/osd.\$id
osd memory target = 939524096
bluestore block size = 10737418240
[client]
keyring = $dir/run/keyring
[client.rgw.a]
rgw frontends = beast endpoint=127.0.0.1:$port tcp_nodelay=1
rgw data = $dir/run/rgw
rgw enable usage log = false
CONF
}

start_monitor() {
    local keyring=$dir/run/keyring
    ceph-authtool --create-keyring "$keyring" --gen-key -n mon. --cap mon 'allow *'
    ceph-authtool "$keyring" --gen-key -n client.admin \
        --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *'
    ceph-authtool "$keyring" --gen-key -n mgr.a --cap mon 'allow profile mgr' --cap osd 'allow *'
    ceph-authtool "$keyring" --gen-key -n client.rgw.a --cap mon 'allow rw' --cap osd 'allow rwx'
    monmaptool --create --fsid "$fsid" \
        --addv a "[v2:127.0.0.1:$((port + 1)),v1:127.0.0.1:$((port + 2))]" "$dir/run/monmap"
    ceph-mon -i a --mkfs --monmap "$dir/run/monmap" --keyring "$keyring"
    keep mon ceph-mon -f -i a
    timeout 60 ceph -s > /dev/null || fail "the monitor does not answer; see $dir/run"
}

start_osd() {
    local uuid key
    uuid=$(cat /proc/sys/kernel/random/uuid)
    key=$(ceph-authtool --gen-print-key)
    echo "{\"cephx_secret\": \"$key\"}" > "$dir/run/key.$1"
    timeout 60 ceph osd new "$uuid" "$1" -i "$dir/run/key.$1"
    mkdir "$dir/run/osd.$1"
    printf '[osd.%s]\nkey = %s\n' "$1" "$key" > "$dir/run/osd.$1/keyring"
    ceph-osd -i "$1" --mkfs --osd-uuid "$uuid" --key "$key" > "$dir/run/mkfs.$1.log" 2>&1 ||
        fail "no OSD can be made; see $dir/run"
    keep "osd.$1" ceph-osd -f -i "$1"
}

replace_part() {
    local pid
    export CEPH_CONF=$dir/run/ceph.conf
    pid=$(cat "$dir/run/osd.$1.pid")
    kill -9 "$pid" || true
    while grep -qv ') Z ' "/proc/$pid/stat" 2> /dev/null; do sleep 0.2; done
    timeout 60 ceph osd down "$1" >&2
    timeout 60 ceph osd purge "$1" --force --yes-i-really-mean-it >&2
    rm -rf "$dir/run/osd.$1" "$dir/run/key.$1"
    start_osd "$1" >&2
}

main "$@"
