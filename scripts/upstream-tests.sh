#!/bin/sh
# Runs the tests of git-cinnabar with larder in its place: scripts/upstream-tests.sh DIR [TEST...]
#
# DIR is a checkout of https://github.com/glandium/git-cinnabar. Its tests run in a copy, which names larder's ref of
# metadata where the tests name that of git-cinnabar. Needed: cram (`pip install cram`; or CRAM_PROGRAM names it), hg, git, patch,
# a build of larder (LARDER names another one than target/debug/larder), and the free ports 8000 and 8080.
#
# Pushes are not built: the commands from the first one that pushes, bundles or makes a tag on are counted apart. A
# command that gives another output before that is shown, and the exit code is 1.
set -eu

source=${1:?usage: scripts/upstream-tests.sh DIR [TEST...]}
shift
here=$(cd "$(dirname "$0")/.." && pwd)
larder=$(realpath "${LARDER:-${CARGO_TARGET_DIR:-$here/target}/debug/larder}")
[ $# -gt 0 ] || set -- casefolding ls-remote cinnabarclone conflicts tags
scratch=$(mktemp -d "${TMPDIR:-/tmp}/larder-upstream.XXXXXX")
trap 'rm -rf "$scratch"' EXIT INT TERM
cp -r "$source/tests" "$source/CI" "$source/mercurial" "$scratch"
ln -s "$larder" "$scratch/git-remote-hg"
ln -s "$larder" "$scratch/git-cinnabar"
# A state's predecessor is the second parent here, and the sixth one there.
sed -i -e '/refs\/cinnabar\/metadata/s/\^6/^2/g' -e 's#refs/cinnabar/metadata#refs/larder/hg/metadata#g' \
    "$scratch"/tests/*.t

status=0
for name; do
    test=$scratch/tests/$name.t
    GIT_CINNABAR_CHECK=no-version-check "${CRAM_PROGRAM:-cram}" "$test" > "$scratch/log" 2>&1 || true
    # The test with the outputs that were found. Only the differences show which patterns match.
    cp "$test" "$scratch/found"
    if [ -f "$test.err" ]; then
        patch --quiet "$scratch/found" "$scratch/log"
        # cram writes a tab so in each line that differs, and in those beside it.
        sed -i '/ (esc)$/{s/\\t/\t/g;s/ (esc)$//}' "$scratch/found"
    fi
    awk -v name="$name" '
        FNR == 1 { file++; count = 0 }
        /^  \$ / { count++; command[file, count] = $0 }
        /^  / && count { text[file, count] = text[file, count] $0 "\n" }
        END {
            for (i = 1; i <= count; i++) {
                if (command[1, i] ~ /git .* push |cinnabar bundle|cinnabar tag -[mfd]/) pushes = 1
                equal = text[1, i] == text[2, i]
                if (pushes) { later++; later_equal += equal; continue }
                total++; held += equal
                if (!equal) differing = differing "expected:\n" text[1, i] "found:\n" text[2, i]
            }
            printf "%-14s %3d of %3d commands hold; from the first push on, %d of %d\n", name, held, total, \
                later_equal, later
            printf "%s", differing
            exit held != total
        }' "$test" "$scratch/found" || status=1
done
exit $status
