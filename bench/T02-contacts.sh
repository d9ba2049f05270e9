#!/bin/bash
# T02: contacts saved, found, listed and deleted, beside the predecessor and the floor.
#
#   bench/T02-contacts.sh [--quick]
#
# For 100, 800, 3,200, 12,800 and 102,400 generated contacts without their photos: evolution-data-server (up to 12,800)
# adds them; what it keeps is read back, and Larder and the floor get exactly those cards. Then the same needles,
# parts of the cards' own values, are looked for in all of them. A table for each size, with the goals; ends with 1
# where one is missed. Charts go to LARDER_BENCH_CHARTS, or nowhere. --quick: 800 contacts, a tenth of the time.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
sizes="100 800 3200 12800 102400"
seconds=0.25
starts=50
if [ "${1:-}" = --quick ]; then
	sizes=800
	seconds=0.05
	starts=10
fi
build
workplace
machine
figures=$work/figures
batch=$(sed -n 's/^pub const BATCH: usize = \([0-9_]*\);/\1/p' crates/sync/src/import.rs | tr -d _)

figure() { # WHO N ROW WALL-NS CPU-NS HITS: of one run
	echo "$1 $2 $3 1 $4 $4 $5 $6" >>"$figures"
}

from_run() { # WHO N ROW FILE HITS: from the line of JSON that `larder measure run` printed
	figure "$1" "$2" "$3" "$(($(get wall_us <"$4") * 1000))" "$(($(get cpu_us <"$4") * 1000))" "$5"
}

limited() { # a command in 2 GiB of address space
	(ulimit -v 2097152 && exec "$@")
}

ask_eds() { # N
	export contacts dir=$work
	bench/eds/private.sh "$work/book_ask" time "$work/book.vcf" "$work" \
		'"$contacts" needles "$dir/cards.vcf" >"$dir/needles"' "$seconds" 3200 >>"$figures" 2>"$work/eds.txt" && return
	echo "note: evolution-data-server failed with $1 contacts:"
	head -3 "$work/eds.txt"
	return 1
}

ask_larder() { # N
	rm -rf "$LARDER_DIR"
	limited "$larder" --format json measure run -- "$larder" --quiet import "$work/cards.vcf" >"$work/out"
	from_run larder "$1" save-batch "$work/out" "$1"
	figure larder "$1" written-batch "$(get written_bytes <"$work/out")" 0 0
	[ "$("$larder" find --count)" = "$1" ] || echo "note: not $1 contacts in the store"
	figure larder "$1" bytes-store "$(stat -c %s "$LARDER_DIR/data.db")" 0 0
	figure source "$1" bytes-source "$(stat -c %s "$work/cards.vcf")" 0 0
	limited "$contacts" larder "$LARDER_DIR" "$work/needles" "$seconds" "$1" >>"$figures"

	# The kernel counts a process's time in hundredths of a second: so many of them, and the shell around them, at once.
	local needle
	needle=$(awk -F '\t' '$1 == "exact" { print $4; exit }' "$work/needles")
	limited "$larder" --format json measure run -- sh -c 'for i in $(seq "$3"); do "$1" find --sexp "$2"; done' - "$larder" "$needle" "$starts" >"$work/out"
	figure larder "$1" process-find "$(($(get wall_us <"$work/out") * 1000 / starts))" "$(($(get cpu_us <"$work/out") * 1000 / starts))" 1

	limited "$contacts" single "$LARDER_DIR" "$work/cards.vcf" 100 "$1" >>"$figures"
	limited "$larder" --format json measure run -- "$larder" --quiet remove --query 'has:uid or -has:uid' >"$work/out"
	from_run larder "$1" delete-all "$work/out" "$(($1 + 100))"
	[ "$("$larder" find --count || true)" = 0 ] || echo "note: something is left in the store"
}

ask_floor() { # N
	local one=$work/one.vcf
	rm -rf "$work/floor"
	limited "$larder" --format json measure run -- sh -c 'exec "$0" "$@" >"$TMPDIR/writing"' \
		"$floor" same "$work/cards.vcf" "$work/floor" "$batch" >"$work/out"
	figure floor "$1" written-batch "$(get written_bytes <"$work/out")" 0 0
	from_run floor "$1" save-batch "$work/writing" "$1"
	figure floor "$1" bytes-store "$(stat -c %s "$work/floor/floor.db")" 0 0
	"$contacts" floor "$work/floor/floor.db" "$work/needles" "$seconds" "$1" >>"$figures"
	awk '{ print } /^END:VCARD/ && ++n == 100 { exit }' "$work/cards.vcf" >"$one"
	"$larder" --format json measure run -- sh -c 'exec "$0" "$@" >"$TMPDIR/writing"' "$floor" same "$one" "$work/floor" 1 >"$work/out"
	figure floor "$1" written-one "$(($(get written_bytes <"$work/out") / 100))" 0 0
	figure floor "$1" save-one "$(($(get wall_us <"$work/writing") * 10))" "$(($(get cpu_us <"$work/writing") * 10))" 1
}

eds=yes
missed=0
prepare_eds book_ask || eds=
for n in $sizes; do
	without_photos <"$(book "$n")" >"$work/book.vcf"
	rm -f "$work/$n.vcf" "$work/cards.vcf"
	if [ -z "$eds" ] || [ "$n" -gt 12800 ] || ! ask_eds "$n"; then
		echo "note: $n contacts: without evolution-data-server, the generator's cards"
		mv "$work/book.vcf" "$work/cards.vcf"
		"$contacts" needles "$work/cards.vcf" >"$work/needles"
	fi
	ask_larder "$n"
	ask_floor "$n"
	"$contacts" table "$figures" "$n" || missed=1
done
cat <<'END'
Hits are a mean over the needles that there was time for. CPU is a mean, of service and client together. Saving in
batches and deleting: one run, for Larder with its process; the goal of saving is for wall and CPU. The floor's saving is
without parsing; it answers without reading questions and without testing what it found; it does not delete.
EDS cannot be asked for at most 20. Left out: saving against the number of indexes, which cannot be chosen yet.
END
if [ -n "${LARDER_BENCH_CHARTS:-}" ]; then
	"$contacts" chart "$figures" "$LARDER_BENCH_CHARTS"
	echo "charts: $LARDER_BENCH_CHARTS"
fi
[ -z "${LARDER_BENCH_FIGURES:-}" ] || cp "$figures" "$LARDER_BENCH_FIGURES"
[ $missed = 0 ] && echo "all goals are met" || echo "GOALS ARE MISSED"
exit $missed
