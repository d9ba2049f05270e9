#!/bin/sh
# Checks formatting, lints and documentation, and runs all tests. A test that needs a program missing on this
# machine reports that it was left out; the end lists all of them. With LARDER_REQUIRE_ALL=1 that is a failure.
set -eu
cd "$(dirname "$0")/.."

LARDER_LEFT_OUT="$PWD/target/left-out.txt"
export LARDER_LEFT_OUT
mkdir -p target
: > "$LARDER_LEFT_OUT"

echo "formatting"
cargo fmt --all --check
echo "lints"
cargo clippy --quiet --workspace --all-targets -- -D warnings
cargo clippy --quiet --package larder --features toy-kind --bins --test toy_kind -- -D warnings
# Their programs are built where they run, by fuzz/run.sh.
cargo clippy --quiet --package larder-fuzz --features libfuzzer --bins -- -D warnings
echo "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --document-private-items
echo "tests"
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --workspace --no-fail-fast --status-level slow --final-status-level fail
else
    cargo test --quiet --workspace --no-fail-fast
fi
cargo test --quiet --workspace --doc
echo "toy kind"
cargo test --quiet --package larder --features toy-kind --test toy_kind
echo "torture"
torture/run.py --quick

if [ -s "$LARDER_LEFT_OUT" ]; then
    echo
    sort -u "$LARDER_LEFT_OUT"
    if [ "${LARDER_REQUIRE_ALL:-}" = 1 ]; then
        echo "error: tests were left out, and LARDER_REQUIRE_ALL=1 requires all of them" >&2
        exit 1
    fi
else
    echo "no test was left out"
fi
