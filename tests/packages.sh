#!/bin/sh
# Packages every crate that is to be published, and builds and runs a project outside this tree
# against what lies in the packages: README's first program, and the command.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
outside=$(mktemp -d)
trap 'rm -rf "$outside"' EXIT
cd "$root"
target=${CARGO_TARGET_DIR:-$root/target}
crates=$(grep -L '^publish = false' crates/*/Cargo.toml | xargs sed -n '/^\[package\]/,/^$/s/^name = "\(.*\)"/\1/p')
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
all=
for crate in $crates; do all="$all -p $crate"; done
# shellcheck disable=SC2086
cargo package --quiet --no-verify --allow-dirty $all
mkdir -p "$outside/.cargo" "$outside/project/src"
{
    echo '[patch.crates-io]'
    for crate in $crates; do
        tar -xf "$target/package/$crate-$version.crate" -C "$outside"
        for licence in LICENSE-MIT LICENSE-APACHE; do
            [ -s "$outside/$crate-$version/$licence" ] || { echo "$crate: no $licence" >&2; exit 1; }
        done
        echo "$crate = { path = \"$outside/$crate-$version\" }"
    done
} > "$outside/.cargo/config.toml"
cat > "$outside/project/Cargo.toml" << END
[package]
name = "outside"
edition = "2024"

[dependencies]
holdall = "$version"
holdall-object-store = "$version"
holdall-opendal = "$version"
END
{
    echo 'fn main() -> Result<(), Box<dyn std::error::Error>> {'
    sed -n '/^```rust$/,/^```$/p' README.md | grep -v '^```'
    echo 'println!("{}", store.stat()?.objects);'
    echo 'let _ = (std::any::type_name::<holdall_object_store::HoldallObjectStore>(), std::any::type_name::<holdall_opendal::Holdall>());'
    echo 'Ok(()) }'
} > "$outside/project/src/main.rs"
# The versions that the tests of the tree were run with.
cp Cargo.lock "$outside/project/Cargo.lock"
cd "$outside/project"
printed=$(CARGO_TARGET_DIR="$target/outside" cargo run --quiet)
[ "$printed" = 1 ] || { echo "the program printed: $printed" >&2; exit 1; }
cd "$outside/holdall-cli-$version"
CARGO_TARGET_DIR="$target/outside" cargo check --quiet
CARGO_TARGET_DIR="$target/outside" cargo check --quiet --no-default-features
echo "packages: $(echo "$crates" | wc -w) of version $version build outside this tree"
