#!/bin/bash
# Fills the disk at many points of an import: torture/full-disk.sh [STEP-KB], by default every 150 KB.
#
# Each point is a tmpfs that is one step larger than the last one, from a size too small for a store to one that
# holds the whole import. The import must end with exit code 4 (or 0 if all fits) and leave a store that passes
# `larder check` and contains complete batches only. Once the disk is enlarged, the same import must complete.
# Mounting needs root; without it the script prints "left out".
set -euo pipefail
cd "$(dirname "$0")/.."
step=${1:-150}
cards=3000
batch=100

cargo build --quiet -p larder
larder=${CARGO_TARGET_DIR:-$PWD/target}/debug/larder
work=$(mktemp -d)
disk=$work/disk
mkdir "$disk"
trap 'mountpoint -q "$disk" && umount "$disk"; rm -rf "$work"' EXIT
if ! mount -t tmpfs -o size=64k none "$disk" 2>"$work/why"; then
	echo "left out: full disk (cannot mount a tmpfs: $(head -1 "$work/why"))"
	exit 0
fi
umount "$disk"
export LARDER_DIR=$disk/store XDG_CONFIG_HOME=$work/config LC_ALL=C.UTF-8
"$larder" measure generate contacts $cards --seed 5 --output "$work/book.vcf"

fail() {
	echo "FAILED with $size KB: $1"
	cat "$work/import" "$work/check" 2>/dev/null
	exit 1
}

points=0 full=0 unopened=0
for ((size = 100; ; size += step)); do
	mount -t tmpfs -o size=${size}k none "$disk"
	code=0
	"$larder" import --batch $batch "$work/book.vcf" >"$work/import" 2>&1 || code=$?
	[ $code = 0 ] || [ $code = 4 ] || fail "exit code $code"
	mount -o remount,size=256m "$disk"
	if "$larder" check >"$work/check" 2>&1; then
		kept=$("$larder" find --count 2>"$work/check") || [ $? = 1 ] || fail "find"
		[ $((${kept:-0} % batch)) = 0 ] || fail "$kept contacts are not a multiple of the batch size"
	else
		grep -q 'no store in' "$work/check" || fail "check"
		unopened=$((unopened + 1))
	fi
	"$larder" --quiet import --batch $batch "$work/book.vcf" >"$work/import" 2>&1 || fail "the second import"
	[ "$("$larder" find --count)" = $cards ] || fail "contacts are missing after the second import"
	"$larder" check >"$work/check" 2>&1 || fail "check after the second import"
	umount "$disk"
	points=$((points + 1))
	[ $code = 0 ] && break
	full=$((full + 1))
done
echo "$points disk sizes: $full ran full during the import, $unopened of these before the store was created"
