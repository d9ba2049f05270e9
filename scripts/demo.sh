#!/bin/sh
# The main job, on the sample address books or on one's own: take in, see what was left out, ask.
# `demo.sh [FILE.vcf]`
set -eu
cd "$(dirname "$0")/.."

echo "building (the first time takes a few minutes) ..."
cargo build --quiet --release --package larder
PATH="$PWD/target/release:$PATH"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT INT TERM
export LARDER_DIR="$scratch/store"
rejects="$scratch/rejects.vcf"

# Shows a command, runs it, and prints the time and memory it took. The exit code of a search that finds
# nothing, or of an import that left something out, is part of what is shown.
show() {
    printf '\n$ %s\n' "$*"
    code=0
    larder measure run --quiet -- "$@" 2>&1 || code=$?
    [ $code -le 3 ] || exit $code
}

if [ $# -gt 0 ]; then
    book=$1
    if [ ! -e "$book" ]; then
        echo "error: $book: there is no such file; make demo BOOK=FILE.vcf" >&2
        exit 1
    fi
    show larder import "$book" --rejects "$rejects"
    show larder find --limit 10
    show larder find --explain a
else
    show larder import samples/contacts --rejects "$rejects"
    show larder find anna
    show larder find --explain anna
    show larder find 王
    show larder import samples/contacts
fi
if [ -s "$rejects" ]; then
    printf '\n$ head -n 5 rejects.vcf\n'
    head -n 5 "$rejects"
fi
show larder check
