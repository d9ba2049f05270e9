#!/bin/bash
# M02: memory to hold, find, save and delete contacts, and the size of the store, compared with evolution-data-server.
#
#   bench/M02-contacts.sh [--quick]
#
# For 100, 800, 3,200, 12,800 and 102,400 generated contacts without photos. First the memory of a process that holds
# all contacts, minus its memory with an empty book: for Larder one process, for evolution-data-server (up to 12,800)
# service and client together, through D-Bus and with direct access. Then peaks of anonymous memory, and the size of the
# store. The exit code is 1 if a goal is missed: 16 MB for `larder find` (the maximum of 25 runs), 64 MB for the import,
# removal and undo of all, 2.5 bytes of data.db for each byte of the cards. --quick: 800 contacts only.
# LARDER_BENCH_PAGE=FILE.md: update its tables; LARDER_BENCH_FIGURES=FILE: write the raw figures.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
sizes="100 800 3200 12800 102400"
[ "${1:-}" != --quick ] || sizes=800
build
workplace
missed=0
figures=$work/figures
machine
echo "# M02 $(machine)" >"$figures"

limited() { # COMMAND...: runs a command in 2 GiB of address space
	(ulimit -v 2097152 && exec "$@")
}

held() { # FILE KIND: prints the kB of a kind of memory, from the output of a program
	awk -v kind="$2" '$1 == "held" && $2 == kind { print $3 }' "$1"
}

compare() { # PROGRAM N EMPTY FULL: prints a line of the table, and writes the figures
	local kind bytes line
	line=$(printf '%10s %-34s' "$2" "$1")
	for kind in rss pss vms anonymous; do
		bytes=$((($(held "$4" $kind) - $(held "$3" $kind)) * 1024 / $2))
		line+=$(printf ' %9s %10s' "$(held "$4" $kind)" $bytes)
		echo "${1%% *} $2 memory-$kind 1 $bytes 0 0 0" >>"$figures"
	done
	echo "$line"
}

peak() { # ROW NAME GOAL-MB REPEAT COMMAND...: measures the peak of REPEAT runs; discards their output
	local row=$1 name=$2 goal=$3 repeat=$4 anonymous megabytes verdict=ok
	shift 4
	limited "$larder" --format json measure run --repeat "$repeat" -- "$@" >"$work/out"
	anonymous=$(most anonymous_bytes <"$work/out")
	if ! awk -v a="$anonymous" -v g="$goal" 'BEGIN { exit !(a != "-" && a <= g * 1e6) }'; then
		verdict=MISSED
		missed=1
	fi
	megabytes=$(megabytes <<<"$anonymous")
	printf '%10s %-44s %8s %8s  %s\n' "$n" "$name" "$megabytes" "$goal" $verdict
	[ "$megabytes" = - ] || echo "larder $n peak-$row 1 $megabytes $goal 0 0" >>"$figures"
}

ask_eds() { # CARDS dbus|direct FILE: writes the memory for a book that another process has filled to FILE
	bench/eds/with_private_bus.sh bash -c '"$1" memory "$("$1" fill "$2" 3200)" "$3"' - "$work/book_bench" "$1" "$2" >"$3"
}

eds=yes
prepare_eds book_bench || eds=
LARDER_DIR=$work/empty "$larder" --quiet collections create contacts >/dev/null
limited "$contacts" memory "$work/empty" >"$work/larder.empty"
[ -z "$eds" ] || for access in dbus direct; do ask_eds /dev/null $access "$work/$access.empty"; done
printf '\n%s\n' "memory of a process that holds all contacts: kB in all, and bytes for each contact beyond an empty book"
printf '%10s %-34s %9s %10s %9s %10s %9s %10s %9s %10s\n' contacts "" RSS each PSS each VMS each anonymous each
for n in $sizes; do
	without_photos <"$(book "$n")" >"$work/cards-$n.vcf"
	rm -f "$work/$n.vcf"
	rm -rf "$LARDER_DIR"
	"$larder" --quiet import "$work/cards-$n.vcf" >/dev/null
	limited "$contacts" memory "$LARDER_DIR" >"$work/larder.full"
	compare larder "$n" "$work/larder.empty" "$work/larder.full"
	if [ -n "$eds" ] && [ "$n" -le 12800 ]; then
		for access in dbus direct; do ask_eds "$work/cards-$n.vcf" $access "$work/$access.full"; done
		compare "eds (service and client)" "$n" "$work/dbus.empty" "$work/dbus.full"
		compare "eds-direct (service and client)" "$n" "$work/direct.empty" "$work/direct.full"
	fi
done

printf '\n%10s %-44s %8s %8s\n' contacts "peak of anonymous memory" MB goal
for n in $sizes; do
	[ "$n" -ge 800 ] || continue
	rm -rf "$LARDER_DIR"
	peak import "larder import" 64 1 "$larder" --quiet import "$work/cards-$n.vcf"
	store=$(stat -c %s "$LARDER_DIR/data.db")
	source=$(stat -c %s "$work/cards-$n.vcf")
	peak find-name "larder find, one name" 16 25 "$larder" find 'full_name:=zofia lewandowska'
	peak find-word "larder find, two letters" 16 25 "$larder" find an
	peak find-any "larder find, any field" 16 25 "$larder" find any:department
	peak find-count "larder find --count" 16 25 "$larder" find --count
	peak find-all "larder find, all, sorted" 16 3 "$larder" find
	peak remove "larder remove, all" 64 1 "$larder" --quiet remove --query 'has:uid or -has:uid'
	peak undo "larder undo, all" 64 1 "$larder" --quiet undo
	verdict=ok
	if [ $((store * 10)) -gt $((source * 25)) ]; then
		verdict=MISSED
		missed=1
	fi
	share=$(awk -v a="$store" -v b="$source" 'BEGIN { printf "%.2f", a / b }')
	printf '%10s %-44s %8s %8s  %s\n' "$n" "data.db, space amplification" "$share" 2.5 $verdict
	echo "larder $n store-share 1 $share 2.5 0 0" >>"$figures"
done
show "$figures"
[ $missed = 0 ] && echo "all goals are met" || echo "GOALS ARE MISSED"
exit $missed
