#!/bin/sh
# Prints line coverage by crate, of all tests of the workspace.
set -eu
cd "$(dirname "$0")/.."

if ! cargo tarpaulin --version >/dev/null 2>&1; then
    echo "installing cargo-tarpaulin, which is missing ..." >&2
    cargo install --quiet --locked cargo-tarpaulin
fi
mkdir -p target/coverage
# The skipped test runs the program as another user, who cannot write the coverage profile into the target directory.
cargo tarpaulin --engine llvm --workspace --exclude larder-fuzz --exclude-files 'fuzz/*' 'bench/*' 'crates/*/tests/*' \
    --timeout 1800 --skip-clean --target-dir target/coverage --out Lcov --output-dir target/coverage \
    -- --skip error_messages::missing_permissions_are_explained \
    > target/coverage/log.txt 2>&1 || { tail -n 40 target/coverage/log.txt; exit 1; }
awk -F: '
    /^SF:/ { n = split($2, part, "/"); for (i = 1; i < n; i++) if (part[i] == "crates") crate = part[i + 1] }
    /^DA:/ { split($2, at, ","); lines[crate]++; if (at[2] > 0) hit[crate]++ }
    END { for (crate in lines) printf "%-10s %5.1f %%  %d of %d lines\n", crate, 100 * hit[crate] / lines[crate], hit[crate], lines[crate] }
' target/coverage/lcov.info | sort
