#!/bin/bash
# Views that are told of more random changes than `make test` has time for: torture/views.sh [CASES], 4000 if not said.
set -euo pipefail
cd "$(dirname "$0")/.."
LARDER_TEST_CASES=${1:-4000} cargo test --package larder-query --test runner what_was_told_adds_up
