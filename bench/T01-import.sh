#!/bin/bash
# T01: how long an import takes, beside the predecessor and the floor, and how long others wait meanwhile.
#
#   bench/T01-import.sh [--quick]
#
# Three tables, printed as they are made: (1) import of 12,800 and 102,400 generated contacts into a fresh store
# by Larder, by evolution-data-server (12,800 only), and by the floor programs, interleaved, medians of three runs;
# (2) the size of a batch against the time of the import and of a `larder add` meanwhile; (3) 20 adds during the
# import of 102,400 in batches of the default size. --quick: one run each, 12,800 contacts only.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
rounds=3
sizes="12800 102400"
busy=102400
if [ "${1:-}" = --quick ]; then
	rounds=1
	sizes=12800
	busy=12800
fi
build
workplace
machine

# ---- 1: beside others ----------------------------------------------------------------------------

note() { # WHO N KEY VALUE: one figure of one run
	echo "$1 $2 $3 $4" >>"$work/figures"
}

note_all() { # WHO N FILE: the figures of one run from a line of JSON
	local key
	for key in wall_us cpu_us anonymous_bytes written_bytes; do
		note "$1" "$2" "$key" "$(get $key <"$3")"
	done
}

run_larder() { # N
	rm -rf "$LARDER_DIR"
	"$larder" --format json measure run -- "$larder" --quiet import "$(book "$1")" >"$work/out"
	note_all larder "$1" "$work/out"
	[ "$("$larder" find --count)" = "$1" ] || echo "note: not $1 contacts in the store"
}

run_again() { # N: the same file into the same store
	"$larder" --format json measure run -- "$larder" --quiet import "$(book "$1")" >"$work/out"
	note_all again "$1" "$work/out"
}

run_floor() { # MODE N; the floor called `same` prints the time of the writing alone
	rm -rf "$work/floor"
	"$larder" --format json measure run -- sh -c 'exec "$0" "$@" >"$TMPDIR/writing"' \
		"$floor" "$1" "$(book "$2")" "$work/floor" "$batch" >"$work/out"
	if [ "$1" = same ]; then
		cat "$work/writing" >>"$work/out"
		note same "$2" wall_us "$(get wall_us <"$work/writing")"
		note same "$2" cpu_us "$(get cpu_us <"$work/writing")"
		note same "$2" anonymous_bytes -
		note same "$2" written_bytes "$(head -1 "$work/out" | get written_bytes)"
	else
		note_all "$1" "$2" "$work/out"
	fi
	rm -rf "$work/floor"
}

run_eds() { # N
	if bench/eds/private.sh "$work/book_add" "$(book "$1")" 3200 >"$work/out"; then
		note_all eds "$1" "$work/out"
	fi
}

print_table() { # N
	local who key values
	printf '\n%s\n' "Import of $1 contacts ($(stat -c %s "$(book "$1")" | awk '{ printf "%.1f MB", $1 / 1e6 }')), batches of $batch, medians of $rounds"
	printf '%-44s %9s %9s %8s %8s %9s %9s %7s %7s\n' "" "wall ms" "CPU ms" "µs wall" "µs CPU" "anon MB" "write MB" "wall x" "CPU x"
	for who in larder again eds same plain copy; do
		values=
		for key in wall_us cpu_us anonymous_bytes written_bytes; do
			values+=" $(awk -v w=$who -v n="$1" -v k=$key '$1 == w && $2 == n && $3 == k { print $4 }' "$work/figures" | median)"
		done
		[ "$values" = " - - - -" ] || echo "$who $values"
	done | awk -v n="$1" '
		BEGIN {
			name["larder"] = "larder import"
			name["again"] = "larder import, the same file again"
			name["eds"] = "evolution-data-server, batches of 3200 (*)"
			name["same"] = "floor: the same rows in SQLite, no parsing"
			name["plain"] = "floor: bytes, item, 18 keys in SQLite"
			name["copy"] = "floor: the bytes in a file, one fsync"
		}
		function by(value, unit) { return value == "-" ? "-" : sprintf("%.1f", value / unit) }
		function ratio(value, own) { return value == "-" || own == 0 ? "-" : sprintf("%.2f", value / own) }
		NR == 1 { wall = $2; cpu = $3 }
		{ printf "%-44s %9s %9s %8s %8s %9s %9s %7s %7s\n", name[$1], by($2, 1e3), by($3, 1e3), by($2, n), by($3, n),
			by($4, 1e6), by($5, 1e6), ratio($2, wall), ratio($3, cpu) }'
}

batch=$(sed -n 's/^pub const BATCH: usize = \([0-9_]*\);/\1/p' crates/sync/src/import.rs crates/sync/src/*.rs | head -1 | tr -d _)
eds=yes
prepare_eds book_add || eds=
for n in $sizes; do
	for round in $(seq $rounds); do
		run_larder "$n"
		run_again "$n"
		[ -z "$eds" ] || [ "$n" -gt 12800 ] || run_eds "$n"
		for mode in same plain copy; do run_floor $mode "$n"; done
	done
	print_table "$n"
done
cat <<'END'
x: ratio to larder import. anon: the peak of anonymous memory. (*) Processor time and memory of service and client
together; written by the service; the start of the services is not counted. "same" leaves out reading and parsing.
END

# ---- 2 and 3: others meanwhile -------------------------------------------------------------------

milliseconds() { # since some moment
	local now=${EPOCHREALTIME/[.,]/}
	echo $((now / 1000))
}

card() { # NUMBER
	printf 'BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Anna Nebenbei %s\r\nN:Nebenbei %s;Anna;;;\r\nEND:VCARD\r\n' "$1" "$1"
}

import_and_add() { # N BATCH|"" ADDS: prints the import's time and the least, median, most time of an add, in ms
	local importer begin before i times=$work/adds
	rm -rf "$LARDER_DIR"
	: >"$times"
	card first | "$larder" --quiet add - >/dev/null
	begin=$(milliseconds)
	"$larder" --quiet import ${2:+--batch "$2"} "$(book "$1")" >/dev/null &
	importer=$!
	for i in $(seq "$3"); do
		sleep 0.05
		kill -0 $importer 2>/dev/null || break
		card "$i" >"$work/card.vcf"
		before=$(milliseconds)
		"$larder" --quiet add "$work/card.vcf" >/dev/null
		echo $(($(milliseconds) - before)) >>"$times"
	done
	wait $importer
	echo "$(($(milliseconds) - begin)) $(wc -l <"$times") $(sort -n "$times" | awk '{ v[NR] = $1 } END { print v[1], v[int((NR + 1) / 2)], v[NR] }')"
}

printf '\n%s\n' "Batch size: import of $busy contacts with adds meanwhile"
printf '%8s %12s %8s %8s %10s %8s\n' batch "import ms" adds least "median ms" most
for size in 250 500 1000 2000 4000; do
	printf '%8s %12s %8s %8s %10s %8s\n' $size $(import_and_add "$busy" $size 1000)
done

printf '\n%s\n' "20 times larder add while $busy contacts are imported as usual (goal: 250 ms at most)"
printf '%12s %8s %8s %10s %8s\n' "import ms" adds least "median ms" most
printf '%12s %8s %8s %10s %8s\n' $(import_and_add "$busy" "" 20)
