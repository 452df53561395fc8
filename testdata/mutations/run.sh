#!/bin/sh
# Breaks the rules of crash safety one by one and expects the simulation to notice.
# Arguments go to holdall-sim, e.g. `--only 15-`. See docs/testing.md.
set -eu
cd "$(dirname "$0")/../.."
exec cargo run --quiet --release -p holdall-sim -- --mutants testdata/mutations "$@"
