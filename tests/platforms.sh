#!/bin/sh
# Checks that the published crates compile with the compilers that they declare, and for systems
# other than this one; and the licences of what they depend on. Says what is missing for each.
set -eu
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/outside"
library="-p holdall -p holdall-report -p holdall-object-store -p holdall-control"
check() { echo "checked: $1"; }
skip() { echo "skipped: $1"; }

# Compiler $1 for the rest of the arguments.
declared() {
    version=$1
    shift
    if cargo "+$version" --version > /dev/null 2>&1 ||
        timeout 120 rustup toolchain install "$version" --profile minimal > /dev/null 2>&1; then
        cargo "+$version" check --quiet "$@"
        check "Rust $version"
    else
        skip "Rust $version"
    fi
}
# shellcheck disable=SC2086
declared 1.89 $library -p holdall-bucket
declared 1.92 -p holdall-cli -p holdall-opendal

for system in aarch64-apple-darwin x86_64-unknown-freebsd; do
    if timeout 120 rustup target add "$system" > /dev/null 2>&1; then
        # shellcheck disable=SC2086
        cargo check --quiet $library --target "$system"
        check "$system"
    else
        skip "$system"
    fi
done

if command -v cargo-deny > /dev/null; then
    for manifest in $(grep -l '^\[workspace\]' Cargo.toml */Cargo.toml); do
        cargo deny --config "$PWD/deny.toml" --manifest-path "$manifest" -L error check \
            --hide-inclusion-graph bans licenses sources
        check "licences and sources of $manifest"
    done
    # Reported, no failure: the same tree must pass on every day.
    if timeout 120 cargo deny fetch db > /dev/null 2>&1; then
        cargo deny check advisories || echo "found: advisories, named above"
    else
        skip "advisories: the database of them cannot be fetched"
    fi
else
    skip "licences and sources: cargo-deny (cargo install cargo-deny --locked)"
fi
