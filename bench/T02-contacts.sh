#!/bin/bash
# T02: contacts saved, found, listed and deleted, beside the predecessor and the floor.
#
#   bench/T02-contacts.sh [--quick]
#
# For 100, 800, 3,200, 12,800 and 102,400 generated contacts without their photos: evolution-data-server (up to 12,800)
# adds them; what it keeps is read back, and Larder and the floor get exactly those cards. Then the same needles,
# parts of the cards' own values, are looked for in all of them. A table for each size, with the goals; ends with 1
# where one is missed. 12,800 of them are also saved with more and more indexes. --quick: 800 contacts, a tenth of the time.
# LARDER_BENCH_CHARTS=DIR gets charts, LARDER_BENCH_PAGE=FILE.md the tables, LARDER_BENCH_FIGURES=FILE bare figures.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
sizes="100 800 3200 12800 102400"
seconds=0.25
starts=50
ladder=12800
rounds=3
if [ "${1:-}" = --quick ]; then
	sizes=800
	seconds=0.05
	starts=10
	ladder=800
	rounds=1
fi
build
workplace
figures=$work/figures
machine
echo "# T02 $(machine)" >"$figures"
batch=$(sed -n 's/^pub const BATCH: usize = \([0-9_]*\);/\1/p' crates/sync/src/import.rs | tr -d _)

figure() { # WHO N ROW WALL-NS CPU-NS HITS: of one run
	echo "$1 $2 $3 1 $4 $4 $5 $6" >>"$figures"
}

limited() { # a command in 2 GiB of address space
	(ulimit -v 2097152 && exec "$@")
}

timed() { # COMMAND...: its time into $wall and $cpu (nanoseconds): what the shell tells is finer than what /proc does
	local TIMEFORMAT='%3R %3U %3S' line
	line=$({ time "$@" 2>"$work/errors" >&2; } 2>&1) || { cat "$work/errors" && return 1; }
	read -r wall cpu < <(awk '{ printf "%.0f %.0f\n", $1 * 1e9, ($2 + $3) * 1e9 }' <<<"$line")
}

ask_eds() { # N
	export contacts dir=$work
	bench/eds/private.sh "$work/book_ask" time "$work/book.vcf" "$work" \
		'"$contacts" needles "$dir/cards.vcf" >"$dir/needles"' "$seconds" 3200 >>"$figures" 2>"$work/eds.txt" && return
	echo "note: evolution-data-server failed with $1 contacts:"
	grep "^book_ask" "$work/eds.txt" || tail -3 "$work/eds.txt"
	return 1
}

ask_larder() { # N
	local wall cpu needle
	rm -rf "$LARDER_DIR"
	timed limited "$larder" --quiet import "$work/cards.vcf"
	figure larder "$1" save-batch $wall $cpu "$1"
	rm -rf "$LARDER_DIR"
	limited "$larder" --format json measure run -- "$larder" --quiet import "$work/cards.vcf" >"$work/out"
	figure larder "$1" written-batch "$(get written_bytes <"$work/out")" 0 0
	[ "$("$larder" find --count)" = "$1" ] || echo "note: not $1 contacts in the store"
	figure larder "$1" bytes-store "$(stat -c %s "$LARDER_DIR/data.db")" 0 0
	figure source "$1" bytes-source "$(stat -c %s "$work/cards.vcf")" 0 0
	limited "$contacts" larder "$LARDER_DIR" "$work/needles" "$seconds" "$1" >>"$figures"

	needle=$(awk -F '\t' '$1 == "exact" { print $4; exit }' "$work/needles")
	timed limited sh -c 'for i in $(seq "$3"); do "$1" find --sexp "$2" >"$4"; done' - "$larder" "$needle" "$starts" "$work/out"
	figure larder "$1" process-find $((wall / starts)) $((cpu / starts)) 1

	limited "$contacts" single "$LARDER_DIR" "$work/cards.vcf" 100 "$1" >>"$figures"
	timed limited "$larder" --quiet remove --query 'has:uid or -has:uid'
	figure larder "$1" delete-all $wall $cpu "$(($1 + 100))"
	[ "$("$larder" find --count || true)" = 0 ] || echo "note: something is left in the store"
}

ask_floor() { # N
	local one=$work/one.vcf
	rm -rf "$work/floor"
	limited "$larder" --format json measure run -- sh -c 'exec "$0" "$@" >"$TMPDIR/writing"' \
		"$floor" same "$work/cards.vcf" "$work/floor" "$batch" >"$work/out"
	figure floor "$1" written-batch "$(get written_bytes <"$work/out")" 0 0
	figure floor "$1" save-batch "$(($(get wall_us <"$work/writing") * 1000))" "$(($(get cpu_us <"$work/writing") * 1000))" "$1"
	figure floor "$1" bytes-store "$(stat -c %s "$work/floor/floor.db")" 0 0
	"$contacts" floor "$work/floor/floor.db" "$work/needles" "$seconds" "$1" >>"$figures"
	awk '{ print } /^END:VCARD/ && ++n == 100 { exit }' "$work/cards.vcf" >"$one"
	"$larder" --format json measure run -- sh -c 'exec "$0" "$@" >"$TMPDIR/writing"' "$floor" same "$one" "$work/floor" 1 >"$work/out"
	figure floor "$1" written-one "$(($(get written_bytes <"$work/out") / 100))" 0 0
	figure floor "$1" save-one "$(($(get wall_us <"$work/writing") * 10))" "$(($(get cpu_us <"$work/writing") * 10))" 1
}

with_indexes() { # N: the same cards saved with more and more indexes; once to count the bytes, then for the time
	local round step summary wall cpu out=$work/ladder
	: >"$out"
	for round in $(seq 0 $rounds); do
		while IFS=$'\t' read -r step summary; do
			rm -rf "$LARDER_DIR"
			"$larder" --quiet collections create contacts --index "$summary" >/dev/null
			if [ "$round" = 0 ]; then
				limited "$larder" --format json measure run -- "$larder" --quiet import "$work/cards.vcf" >"$work/out"
				figure larder "$1" "index-$step-written" "$(get written_bytes <"$work/out")" 0 0
				figure larder "$1" "index-$step-store" "$(stat -c %s "$LARDER_DIR/data.db")" 0 0
			else
				timed limited "$larder" --quiet import "$work/cards.vcf"
				echo "$step $wall $cpu" >>"$out"
			fi
		done < <("$contacts" summaries)
	done
	while IFS=$'\t' read -r step summary; do
		wall=$(awk -v step="$step" '$1 == step { print $2 }' "$out" | median)
		cpu=$(awk -v step="$step" '$1 == step { print $3 }' "$out" | median)
		figure larder "$1" "index-$step" "$wall" "$cpu" "$1"
	done < <("$contacts" summaries)
	[ -z "$eds" ] || bench/eds/private.sh "$work/book_ask" indexes "$work/cards.vcf" $rounds 3200 >>"$figures" 2>"$work/eds.txt" ||
		{ echo "note: evolution-data-server failed with more and more indexes:" && grep "^book_ask" "$work/eds.txt" || tail -3 "$work/eds.txt"; }
	"$contacts" indexes "$figures"
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
	[ "$n" != $ladder ] || with_indexes "$n"
done
cat <<'END'

Hits are a mean over the needles that there was time for. CPU is a mean, of service and client together. Saving in
batches and deleting: one run, for Larder with its process; the goal of saving is for wall and CPU. The floor's saving is
without parsing; it answers without reading questions and without testing what it found; it does not delete.
EDS cannot be asked for at most 20, for fields alone (who wants some gets cards), or for the letters that there are.
By what is indexed: medians, for Larder with its process; "more" is what a step adds to the one before, of CPU and of
the store. EDS with a summary of its own that has the same fields in all steps; it has no index of substrings.
END
show "$figures"
[ $missed = 0 ] && echo "all goals are met" || echo "GOALS ARE MISSED"
exit $missed
