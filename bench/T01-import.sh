#!/bin/bash
# T01: the time of imports, compared with evolution-data-server and the floor; the time that other commands wait.
#
#   bench/T01-import.sh [--quick]
#
# Prints three tables: (1) the import of 12,800 and 102,400 generated contacts into a new store by Larder, by
# evolution-data-server (12,800 only) and by the floor programs, interleaved, medians of three runs; (2) the time of an
# import, and of `larder add` during it, for several batch sizes; (3) 20 adds during an import of 102,400 contacts with
# the default batch size. --quick: one run each, 12,800 contacts only.
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

# ---- 1: comparison -------------------------------------------------------------------------------

note() { # PROGRAM N KEY VALUE: writes one figure of one run
	echo "$1 $2 $3 $4" >>"$work/figures"
}

note_all() { # PROGRAM N FILE: writes the figures of one run from a line of JSON
	local key
	for key in wall_us cpu_us anonymous_bytes written_bytes; do
		note "$1" "$2" "$key" "$(get $key <"$3")"
	done
}

run_larder() { # N
	rm -rf "$LARDER_DIR"
	"$larder" --format json measure run -- "$larder" --quiet import "$(book "$1")" >"$work/out"
	note_all larder "$1" "$work/out"
	[ "$("$larder" find --count)" = "$1" ] || echo "note: the store does not have $1 contacts"
}

run_again() { # N: imports the same file into the same store
	"$larder" --format json measure run -- "$larder" --quiet import "$(book "$1")" >"$work/out"
	note_all again "$1" "$work/out"
}

run_floor() { # MODE N: in the mode `same` the floor prints the time of writing without parsing
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
	if bench/eds/with_private_bus.sh "$work/book_add" "$(book "$1")" 3200 >"$work/out"; then
		note_all eds "$1" "$work/out"
	fi
}

result_of() { # PROGRAM MEASURE N KEY VALUE: notes a figure for the results
	case $4 in
	wall_us) result "$2, wall time" us "$1" "$3" "$5" ;;
	cpu_us) result "$2, CPU time" us "$1" "$3" "$5" ;;
	anonymous_bytes) result "$2, anonymous memory" bytes "$1" "$3" "$5" ;;
	written_bytes) result "$2, written" bytes "$1" "$3" "$5" ;;
	esac
}

print_table() { # N
	local who key values value
	printf '\n%s\n' "Import of $1 contacts ($(stat -c %s "$(book "$1")" | awk '{ printf "%.1f MB", $1 / 1e6 }')), batches of $batch, medians of $rounds"
	printf '%-44s %9s %9s %8s %8s %9s %9s %7s %7s\n' "" "wall ms" "CPU ms" "µs wall" "µs CPU" "anon MB" "write MB" "wall x" "CPU x"
	for who in larder again eds same plain copy; do
		values=
		for key in wall_us cpu_us anonymous_bytes written_bytes; do
			value=$(awk -v w=$who -v n="$1" -v k=$key '$1 == w && $2 == n && $3 == k { print $4 }' "$work/figures" | median)
			values+=" $value"
			case $who in
			again) result_of larder "the same file again" "$1" $key "$value" ;;
			same | plain | copy) result_of "floor ($who)" import "$1" $key "$value" ;;
			*) result_of $who import "$1" $key "$value" ;;
			esac
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
		function scaled(value, unit) { return value == "-" ? "-" : sprintf("%.1f", value / unit) }
		function ratio(value, larder) { return value == "-" || larder == 0 ? "-" : sprintf("%.2f", value / larder) }
		NR == 1 { wall = $2; cpu = $3 }
		{ printf "%-44s %9s %9s %8s %8s %9s %9s %7s %7s\n", name[$1], scaled($2, 1e3), scaled($3, 1e3), scaled($2, n), scaled($3, n),
			scaled($4, 1e6), scaled($5, 1e6), ratio($2, wall), ratio($3, cpu) }'
}

batch=$(rust_constant DEFAULT_BATCH_ITEMS crates/sync/src/import.rs)
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
x: ratio to larder import. anon: peak of anonymous memory. (*) CPU time and memory of service and client together; bytes
written by the service; without the start of the services. "the same rows": without reading and parsing.
END

# ---- 2 and 3: other commands during an import ----------------------------------------------------

milliseconds() { # prints the time since 1970
	local now=${EPOCHREALTIME/[.,]/}
	echo $((now / 1000))
}

card() { # NUMBER
	printf 'BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Anna Nebenbei %s\r\nN:Nebenbei %s;Anna;;;\r\nEND:VCARD\r\n' "$1" "$1"
}

import_and_add() { # N BATCH|"" ADDS: prints the time of the import, and the minimum, median and maximum of the adds, in ms
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

printf '\n%s\n' "Batch size: import of $busy contacts, with adds during the import"
printf '%8s %12s %8s %8s %10s %8s\n' batch "import ms" adds "min ms" "median ms" "max ms"
for size in 250 500 1000 2000 4000; do
	printf '%8s %12s %8s %8s %10s %8s\n' $size $(import_and_add "$busy" $size 1000)
done

printf '\n%s\n' "20 runs of larder add during the import of $busy contacts, default batch size (goal: at most 250 ms)"
printf '%12s %8s %8s %10s %8s\n' "import ms" adds "min ms" "median ms" "max ms"
read -r import adds least middle most < <(import_and_add "$busy" "" 20)
printf '%12s %8s %8s %10s %8s\n' "$import" "$adds" "$least" "$middle" "$most"
result "add during an import, median" ms larder "$busy" "$middle"
result "add during an import, longest" ms larder "$busy" "$most"
leave_results contacts
