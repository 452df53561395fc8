#!/usr/bin/env bash
# The page of `holdall serve` in headless Chromium; screenshots are kept in target/web.
#
#   tests/web/browse.sh [OBJECTS] [UPLOAD_MB]
set -euo pipefail
cd "$(dirname "$0")/../.."
for tool in chromium chromedriver; do
    if ! command -v "$tool" > /dev/null; then
        echo "web: skipped, $tool is not installed (apt-get install chromium chromium-driver)"
        exit 0
    fi
done
cargo build --release -q -p holdall-cli
tools=target/web-tools
[ -x "$tools/bin/python" ] || python3 -m venv "$tools"
"$tools/bin/pip" install -q selenium
"$tools/bin/python" tests/web/browse.py target/release/holdall target/web \
    --objects "${1:-3000}" --upload "${2:-100}"
