#!/bin/bash
# Tests live views with more random changes than `make test`: torture/views.sh [CASES], by default 4000.
set -euo pipefail
cd "$(dirname "$0")/.."
LARDER_TEST_CASES=${1:-4000} cargo test --package larder-query --test runner events_add_up_to_the_answer
