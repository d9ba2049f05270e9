#!/bin/bash
# Kills imports of an address book and of a calendar while they write: torture/kill.sh [N], by default 1,000 kills each.
#
# These are the tests that `make test` runs with 50 kills (crates/cli/tests/crash_recovery.rs); the checks after each kill are
# there. LARDER_KILL_SEED repeats a failed run; the run prints its seed.
set -euo pipefail
cd "$(dirname "$0")/.."
kills=${1:-1000}
echo "$kills kills of each import"
LARDER_KILL_POINTS=$kills cargo test --quiet -p larder --test runner -- crash_recovery:: --nocapture
