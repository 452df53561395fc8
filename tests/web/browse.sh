#!/usr/bin/env bash
# The page of `holdall serve` in headless Chromium; screenshots are kept in target/web.
#
#   tests/web/browse.sh [OBJECTS] [UPLOAD_MB] [HOLDALL]
set -euo pipefail
cd "$(dirname "$0")/../.."
for tool in chromium chromedriver; do
    if ! command -v "$tool" > /dev/null; then
        echo "web: skipped, $tool is not installed (apt-get install chromium chromium-driver)"
        exit 0
    fi
done
if ! python3 -c 'import venv, ensurepip' 2> /dev/null; then
    echo "web: skipped, python3 makes no environments (apt-get install python3-venv)"
    exit 0
fi
program=${3:-target/release/holdall}
[ -n "${3:-}" ] || cargo build --release -q -p holdall-cli
tools=target/web-tools
[ -x "$tools/bin/python" ] || python3 -m venv "$tools"
"$tools/bin/pip" install -q selenium
"$tools/bin/python" tests/web/browse.py "$program" target/web \
    --objects "${1:-3000}" --upload "${2:-100}"
