#!/usr/bin/env bash
# Builds the Python package in an environment of its own and tests it.
#
#   check.sh [all]      all: with the large packages that tests marked heavy need
#
# PYTHON chooses the interpreter. Without CPython 3.11 or later that can make environments
# nothing is tested, and a line says so.
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-python3}
can='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'
if ! "$python" -c "$can" 2>/dev/null; then
    echo "python: skipped, $python is not CPython 3.11 or later with venv"
    exit 0
fi
target=$(cd ../.. && pwd)/target
environment=$target/python
[ -x "$environment/bin/python" ] || "$python" -m venv "$environment"
export VIRTUAL_ENV=$environment PATH=$environment/bin:$PATH
pip install -q -r tests/requirements.txt
[ "${1:-}" != all ] || pip install -q -r tests/requirements-all.txt
CARGO_TARGET_DIR=$target/python-build maturin develop -q --profile dev
mypy
python -m mypy.stubtest holdall._core
python -m pytest ${1:+-m "heavy or not heavy"}
free=$(command -v python3.{13..15}t || true)
[ -n "$free" ] || echo "python: free-threaded builds skipped, there is no python3.13t or later (make wheels)"
