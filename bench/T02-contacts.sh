#!/bin/bash
# T02: the time to save, find, list and delete contacts, compared with evolution-data-server and the floor.
#
#   bench/T02-contacts.sh [--quick]
#
# For 100, 800, 3,200, 12,800 and 102,400 generated contacts without photos: evolution-data-server (up to 12,800) adds
# them, and Larder and the floor get the cards that it stored. All answer the same queries, whose texts are
# parts of the values of the cards. Prints a table with goals for each size; the exit code is 1 if a goal is missed.
# Also saves 12,800 contacts with an increasing number of indexes. --quick: 800 contacts, a tenth of the time.
# LARDER_BENCH_PAGE=FILE.md: update its tables; LARDER_BENCH_FIGURES=FILE: write the raw figures.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
sizes="100 800 3200 12800 102400"
seconds=0.25
starts=50
index_contacts=12800
rounds=3
if [ "${1:-}" = --quick ]; then
	sizes=800
	seconds=0.05
	starts=10
	index_contacts=800
	rounds=1
fi
build
workplace
figures=$work/figures
machine
echo "# T02 $(machine)" >"$figures"
batch=$(rust_constant DEFAULT_BATCH_ITEMS crates/sync/src/import.rs)

figure() { # PROGRAM N ROW WALL-NS CPU-NS HITS: writes the figures of one run
	echo "$1 $2 $3 1 $4 $4 $5 $6" >>"$figures"
}

limited() { # COMMAND...: runs a command in 2 GiB of address space
	(ulimit -v 2097152 && exec "$@")
}

timed() { # COMMAND...: sets $wall and $cpu to its times in nanoseconds; those of the shell are finer than those of /proc
	local TIMEFORMAT='%3R %3U %3S' line
	line=$({ time "$@" 2>"$work/errors" >&2; } 2>&1) || { cat "$work/errors" && return 1; }
	read -r wall cpu < <(awk '{ printf "%.0f %.0f\n", $1 * 1e9, ($2 + $3) * 1e9 }' <<<"$line")
}

ask_eds() { # N
	export contacts dir=$work
	bench/eds/with_private_bus.sh "$work/book_bench" time "$work/book.vcf" "$work" \
		'"$contacts" search-terms "$dir/cards.vcf" >"$dir/search_terms"' "$seconds" 3200 >>"$figures" 2>"$work/eds.txt" && return
	echo "note: evolution-data-server failed with $1 contacts:"
	grep "^book_bench" "$work/eds.txt" || tail -3 "$work/eds.txt"
	return 1
}

ask_larder() { # N
	local wall cpu search_term
	rm -rf "$LARDER_DIR"
	timed limited "$larder" --quiet import "$work/cards.vcf"
	figure larder "$1" save-batch $wall $cpu "$1"
	rm -rf "$LARDER_DIR"
	limited "$larder" --format json measure run -- "$larder" --quiet import "$work/cards.vcf" >"$work/out"
	figure larder "$1" written-batch "$(get written_bytes <"$work/out")" 0 0
	[ "$("$larder" find --count)" = "$1" ] || echo "note: the store does not have $1 contacts"
	figure larder "$1" bytes-store "$(stat -c %s "$LARDER_DIR/data.db")" 0 0
	figure source "$1" bytes-source "$(stat -c %s "$work/cards.vcf")" 0 0
	limited "$contacts" larder "$LARDER_DIR" "$work/search_terms" "$seconds" "$1" >>"$figures"

	search_term=$(awk -F '\t' '$1 == "exact" { print $4; exit }' "$work/search_terms")
	timed limited sh -c 'for i in $(seq "$3"); do "$1" find --sexp "$2" >"$4"; done' - "$larder" "$search_term" "$starts" "$work/out"
	figure larder "$1" process-find $((wall / starts)) $((cpu / starts)) 1

	limited "$contacts" single "$LARDER_DIR" "$work/cards.vcf" 100 "$1" >>"$figures"
	timed limited "$larder" --quiet remove --query 'has:uid or -has:uid'
	figure larder "$1" delete-all $wall $cpu "$(($1 + 100))"
	[ "$("$larder" find --count || true)" = 0 ] || echo "note: the store is not empty"
}

ask_floor() { # N
	local one=$work/one.vcf
	rm -rf "$work/floor"
	limited "$larder" --format json measure run -- sh -c 'exec "$0" "$@" >"$TMPDIR/writing"' \
		"$floor" same "$work/cards.vcf" "$work/floor" "$batch" >"$work/out"
	figure floor "$1" written-batch "$(get written_bytes <"$work/out")" 0 0
	figure floor "$1" save-batch "$(($(get wall_us <"$work/writing") * 1000))" "$(($(get cpu_us <"$work/writing") * 1000))" "$1"
	figure floor "$1" bytes-store "$(stat -c %s "$work/floor/floor.db")" 0 0
	"$contacts" floor "$work/floor/floor.db" "$work/search_terms" "$seconds" "$1" >>"$figures"
	awk '{ print } /^END:VCARD/ && ++n == 100 { exit }' "$work/cards.vcf" >"$one"
	"$larder" --format json measure run -- sh -c 'exec "$0" "$@" >"$TMPDIR/writing"' "$floor" same "$one" "$work/floor" 1 >"$work/out"
	figure floor "$1" written-one "$(($(get written_bytes <"$work/out") / 100))" 0 0
	figure floor "$1" save-one "$(($(get wall_us <"$work/writing") * 10))" "$(($(get cpu_us <"$work/writing") * 10))" 1
}

with_indexes() { # N: saves the cards with an increasing number of indexes, first to count bytes, then to measure time
	local round step config wall cpu out=$work/index-times
	: >"$out"
	for round in $(seq 0 $rounds); do
		while IFS=$'\t' read -r step config; do
			rm -rf "$LARDER_DIR"
			"$larder" --quiet collections create contacts --index "$config" >/dev/null
			if [ "$round" = 0 ]; then
				limited "$larder" --format json measure run -- "$larder" --quiet import "$work/cards.vcf" >"$work/out"
				figure larder "$1" "index-$step-written" "$(get written_bytes <"$work/out")" 0 0
				figure larder "$1" "index-$step-store" "$(stat -c %s "$LARDER_DIR/data.db")" 0 0
			else
				timed limited "$larder" --quiet import "$work/cards.vcf"
				echo "$step $wall $cpu" >>"$out"
			fi
		done < <("$contacts" configs)
	done
	while IFS=$'\t' read -r step config; do
		wall=$(awk -v step="$step" '$1 == step { print $2 }' "$out" | median)
		cpu=$(awk -v step="$step" '$1 == step { print $3 }' "$out" | median)
		figure larder "$1" "index-$step" "$wall" "$cpu" "$1"
	done < <("$contacts" configs)
	[ -z "$eds" ] || bench/eds/with_private_bus.sh "$work/book_bench" indexes "$work/cards.vcf" $rounds 3200 >>"$figures" 2>"$work/eds.txt" ||
		{ echo "note: evolution-data-server failed to save with several index configurations:" && grep "^book_bench" "$work/eds.txt" || tail -3 "$work/eds.txt"; }
	"$contacts" indexes "$figures"
}

eds=yes
missed=0
prepare_eds book_bench || eds=
for n in $sizes; do
	without_photos <"$(book "$n")" >"$work/book.vcf"
	rm -f "$work/$n.vcf" "$work/cards.vcf"
	if [ -z "$eds" ] || [ "$n" -gt 12800 ] || ! ask_eds "$n"; then
		echo "note: $n contacts: the generated cards, without evolution-data-server"
		mv "$work/book.vcf" "$work/cards.vcf"
		"$contacts" search-terms "$work/cards.vcf" >"$work/search_terms"
	fi
	ask_larder "$n"
	ask_floor "$n"
	"$contacts" table "$figures" "$n" || missed=1
	[ "$n" != $index_contacts ] || with_indexes "$n"
done
cat <<'END'

Hits are the mean over the search terms used. CPU is the mean, of service and client together. Saving in batches and deleting
are one run, for Larder with the start of its process; the goal of saving is for wall and CPU time. The floor saves
without parsing, does not parse or plan queries, does not verify candidates, and does not delete. EDS cannot limit an
answer to 20 items, return fields without the card, or count items by first letter. The table of index configurations has
medians, for Larder with the start of its process; "added" is the difference in CPU time and store size from the row
above. EDS has the same fields in its summary in all steps, and no index of substrings.
END
show "$figures"
[ $missed = 0 ] && echo "all goals are met" || echo "GOALS ARE MISSED"
exit $missed
