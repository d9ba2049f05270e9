#!/bin/bash
# Kills imports of a book and of a calendar in mid-write, many times: torture/kill.sh [N], 1,000 kills each if not said.
#
# The tests that `make test` runs with 50 kills (crates/cli/tests/kill.rs), with another number: what is checked
# after each kill is written there. LARDER_KILL_SEED repeats a run that failed; the run prints it.
set -euo pipefail
cd "$(dirname "$0")/.."
kills=${1:-1000}
echo "$kills kills each"
LARDER_KILL_POINTS=$kills cargo test --quiet -p larder --test runner -- kill:: --nocapture
