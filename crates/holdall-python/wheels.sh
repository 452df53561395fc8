#!/usr/bin/env bash
# Builds the wheels for manylinux_2_28 into target/wheels, and tries them.
#
#   wheels.sh [TARGET..]    default: x86-64 and aarch64 Linux
#
# Zig links against the C library of that age. One wheel serves CPython 3.11 and later; builds
# of it without the interpreter lock have one each. What the machine lacks is left out, and a
# line says so.
set -euo pipefail
cd "$(dirname "$0")"
target=$(cd ../.. && pwd)/target
tools=$target/wheel-tools
out=$target/wheels
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu)
[ -x "$tools/bin/python" ] || python3 -m venv "$tools"
"$tools/bin/pip" install -q 'maturin>=1.9,<2' ziglang
rm -rf "$out"

# Where programs of a target run.
here=$(rustc -vV | sed -n 's/^host: //p')
libraries=$(rustc --print sysroot)/lib/rustlib

# Interpreters of a kind ("" or "t") on this machine, one each.
interpreters() {
    local name
    for name in python3.{11..15}"$1"; do
        command -v "$name" > /dev/null && "$name" -c 'import venv, ensurepip' 2> /dev/null &&
            echo "$name"
    done
    return 0
}

build() {
    env PATH="$tools/bin:$PATH" CARGO_TARGET_DIR="$target/python-build" \
        "$tools/bin/maturin" build -q --release --zig --compatibility manylinux_2_28 \
        --target "$1" -i "$2" --out "$out"
}

# Installs a wheel for an interpreter, and uses it.
try() {
    local environment=$target/wheel-tried
    rm -rf "$environment"
    "$2" -m venv "$environment"
    "$environment/bin/pip" install -q "$1"
    (cd "$environment" && bin/python - <<'PYTHON'
import sys
import threading
import holdall

with holdall.open("a.holdall", "x") as store:
    store.update({str(n): bytes([n]) * 9000 for n in range(200)})
    threads = [
        threading.Thread(target=lambda: [store.get_many([str(n) for n in range(200)])])
        for _ in range(8)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert store["7"] == b"\7" * 9000 and store.verify()["sound"]
if hasattr(sys, "_is_gil_enabled") and sys.version_info.releaselevel and "t" in sys.abiflags:
    assert not sys._is_gil_enabled(), "the module has turned the interpreter lock on"
PYTHON
    )
    echo "$(basename "$1"): works in $("$2" -V)"
}

for one in "${targets[@]}"; do
    if [ ! -d "$libraries/$one" ]; then
        echo "$one: skipped, its Rust library is not installed (rustup target add $one)"
        continue
    fi
    build "$one" python3.11
    if [ "$one" != "$here" ]; then
        echo "$one: built, not tried: programs for it do not run here"
        continue
    fi
    for python in $(interpreters ""); do
        try "$out"/*-abi3-*"${one%%-*}".whl "$python"
    done
    free=$(interpreters t)
    [ -n "$free" ] || echo "free-threaded builds: skipped, there is no python3.13t or later"
    for python in $free; do
        build "$one" "$python"
        try "$(ls -t "$out"/*.whl | head -1)" "$python"
    done
done
ls -l "$out"/*.whl
