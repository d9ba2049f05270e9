#!/bin/bash
# The study of the options that tune a first index of mail.
#
#   bench/mail/tuning.sh [--messages N] [--seconds N] [--page FILE] [--picture FILE]
#
# Indexes a generated maildir of N messages (10,000 unless given) with batches of 256 to 8,192 messages in each mode of
# --tune-synchronous, and with 1, 2 and 4 readers in the order of inodes and of dates; with the files in memory, and, as root, with
# empty caches (/proc/sys/vm/drop_caches). Up to three interleaved rounds; no round begins that would end after --seconds (220).
# Replaces the table of docs/mail.md (--page), between its two markers, and writes docs/tuning.svg (--picture).
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
messages=10000
seconds=220
page=docs/mail.md
picture=docs/tuning.svg
while [ $# -gt 0 ]; do
	case $1 in
	--messages) messages=$2 && shift ;;
	--seconds) seconds=$2 && shift ;;
	--page) page=$2 && shift ;;
	--picture) picture=$2 && shift ;;
	*) echo "bench/mail/tuning.sh [--messages N] [--seconds N] [--page FILE] [--picture FILE]" >&2 && exit 2 ;;
	esac
	shift
done
build
workplace
states="warm cold"
if [ "$(id -u)" != 0 ] || [ ! -w /proc/sys/vm/drop_caches ]; then
	echo "left out: runs with empty caches (only root can empty them)"
	states=warm
fi
python3 bench/mail/generate_maildir.py --out "$work/mail" --n "$messages" --seed 100 >/dev/null
megabytes=$(du -sm --apparent-size "$work/mail" | cut -f1)
figures=$work/figures
{
	echo "# $(sed ':a; s/\B[0-9]\{3\}\>/,&/; ta' <<<"$messages") messages, $megabytes MB; $(machine)"
	printf 'processors\t%s\n' "$(nproc)"
} >"$figures"
batch=$(rust_constant DEFAULT_MAIL_BATCH crates/sync/src/mail_sync.rs)
readers=$(nproc)
combinations=$({
	for size in 256 1024 2048 8192; do
		for mode in off normal full; do echo "$size $readers true $mode"; done
	done
	for count in 1 2 4; do
		for sort in true false; do echo "$batch $count $sort normal"; done
	done
} | sort -u)

index() { # STATE BATCH READERS SORT SYNCHRONOUS: adds a line of figures
	rm -rf "$LARDER_DIR"
	"$larder" --quiet sources add "$work/mail" >/dev/null
	sync
	if [ "$1" = cold ]; then
		echo 3 >/proc/sys/vm/drop_caches
		# The program itself is not measured.
		cat "$larder" >/dev/null
	fi
	"$larder" --format json measure run -- "$larder" --quiet sync --tune-batch "$2" --tune-readers "$3" \
		--tune-sort-inodes "$4" --tune-synchronous "$5" >"$work/out"
	tail -1 "$work/out" >"$work/cost"
	for key in cpu_us wall_us anonymous_bytes written_bytes; do get $key <"$work/cost"; done |
		paste -s -d '\t' | sed "s/^/$1\t$2\t$3\t$4\t$5\t/" >>"$figures"
}

began=$SECONDS
last=0
for round in 1 2 3; do
	start=$SECONDS
	[ $((start - began + last)) -le "$seconds" ] || break
	for state in $states; do
		cat "$work/mail"/*/*/* >/dev/null 2>&1 || true
		while read -r combination; do index "$state" $combination; done <<<"$combinations"
	done
	last=$((SECONDS - start))
	echo "round $round: $last s"
done
[ -z "${LARDER_BENCH_FIGURES:-}" ] || cp "$figures" "$LARDER_BENCH_FIGURES"
"$mail" tuning "$figures" "$page" "$picture"
echo "written: $page, $picture"
