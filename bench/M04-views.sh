#!/bin/bash
# M04: memory that live views hold and leave behind, compared with evolution-data-server.
#
#   bench/M04-views.sh [--quick] [--no-eds]
#
# Anonymous memory, with 20,000 generated events and 12,800 contacts: a calendar is opened, paged back 30 months in five
# kinds of view and closed, 50 times, with the answer cache and without; 10,000 different views are open; 1,000 clients
# open and close the same month, one after the other. Then the memory left in a service by clients that are killed with
# 180 open views: the calendar and the address book of evolution-data-server, and `larder serve --eds`. Last a short run
# under valgrind. The exit code is 1 if a goal is missed. --quick: 1,275 events, 1,280 contacts, 1,000 views, one killed
# client. --no-eds: without evolution-data-server. LARDER_BENCH_FIGURES=FILE: write the raw figures.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
events=20000
contacts_number=12800
open_views=10000
rounds=5
eds=yes
for option; do
	case $option in
	--quick) events=1275 contacts_number=1280 open_views=1000 rounds=1 ;;
	--no-eds) eds= ;;
	*) echo "bench/M04-views.sh [--quick] [--no-eds]" >&2 && exit 2 ;;
	esac
done
build
workplace
missed=0
figures=$work/figures
machine
echo "# M04 $(machine)" >"$figures"

goal() { # NAME VALUE LIMIT
	local verdict=ok
	if ! awk -v value="$2" -v limit="$3" 'BEGIN { exit !(value != "" && value != "-" && value <= limit) }'; then
		verdict=MISSED
		missed=1
	fi
	printf '%-76s %9s %9s  %s\n' "$1" "$2" "$3" $verdict
	printf 'larder\t%s\t%s\t%s\n' "$1" "$2" "$3" >>"$figures"
	case $1 in
	*bytes*) result "$1" bytes larder - "$2" ;;
	*"left open") result "$1" views larder - "$2" ;;
	*) result "$1" kB larder - "$2" ;;
	esac
}

print_figure() { # NAME VALUE
	printf '%-76s %9s\n' "$1" "$2"
	printf 'larder\t%s\t%s\n' "$1" "$2" >>"$figures"
}

# From lines "ROW TAB TIME TAB kB TAB OPEN ...": the memory at a time, and the maximum between two times.
at() { awk -F '\t' -v time="$2" '$2 == time { print $3 }' "$1"; }
peak() { awk -F '\t' -v from="$2" -v to="$3" '$2 >= from && $2 <= to && $3 > peak { peak = $3 } END { print peak + 0 }' "$1"; }
left_open() { awk -F '\t' '{ open += $4 } END { print open + 0 }' "$1"; }

browse() { # CACHE NAME
	local file=$work/browse-$1
	"$views" browse "$LARDER_DIR" 30 50 "$1" >"$file"
	cat "$file" >>"$figures"
	goal "browse, $2: after the 50th round, above the start" $(($(at "$file" 50) - $(at "$file" 0))) 1024
	goal "browse, $2: peak of the rounds 6 to 50, above the 5th" $(($(peak "$file" 6 50) - $(at "$file" 5))) 64
	goal "browse, $2: views left open" "$(left_open "$file")" 0
	print_figure "  start $(at "$file" 0) kB, round 1 $(at "$file" 1), 5 $(at "$file" 5), 50 $(at "$file" 50); items delivered" "$(awk -F '\t' 'NR == 2 { print $5 }' "$file")"
}

"$larder" measure generate calendar $events --events --output "$work/calendar.ics"
"$larder" measure generate contacts $contacts_number --seed 1 --output "$work/contacts.vcf"
"$larder" --quiet import --into calendar "$work/calendar.ics" >/dev/null
"$larder" --quiet import --into contacts "$work/contacts.vcf" >/dev/null

printf '\n%-76s %9s %9s\n' "anonymous memory, kB" measured goal
browse 0 "no cache"
cache=$(rust_constant DEFAULT_CACHE_BYTES crates/query/src/views/options.rs)
browse "$cache" "default cache"
"$views" mix "$LARDER_DIR" $open_views >"$work/mix"
"$views" held "$LARDER_DIR" "$work/mix" >"$work/held"
cat "$work/held" >>"$figures"
opened() { grep "^$1" "$work/held" | at /dev/stdin "$2"; }
goal "$open_views open views, bytes for each" $((($(opened open $open_views) - $(opened open 0)) * 1024 / open_views)) 2048
print_figure "  all closed: above the start, kB in all" $(($(opened again 0) - $(opened open 0)))
goal "closed and opened again: above the first time" $(($(opened again $open_views) - $(opened open $open_views))) 256
"$views" toggle "$LARDER_DIR" 1000 >"$work/toggle"
cat "$work/toggle" >>"$figures"
goal "1,000 clients open and close a month: peak after 100, above that at 100" $(($(peak "$work/toggle" 101 1000) - $(at "$work/toggle" 100))) 64
print_figure "  start $(at "$work/toggle" 0) kB, after 1 $(at "$work/toggle" 1), 100 $(at "$work/toggle" 100), 1,000 $(at "$work/toggle" 1000); views open" "$(left_open "$work/toggle")"

# Prints the output of a program that kills clients, lines of "ROUND TAB VIEWS TAB kB TAB MICROSECONDS".
leak() { # NAME FILE
	awk -F '\t' -v who="$1" '
		NR == 1 { printf "%-44s", who " (kB, CPU us/added item)" }
		{ printf " %7d %6d", $3, $4 }
		END { print "" }' "$2"
	awk -F '\t' -v OFS='\t' -v who="$1" '{ print "left", who, $0 }' "$2" >>"$figures"
}

printf '\n%-44s' "views left open by killed clients"
for ((round = 0; round <= rounds; round++)); do printf ' %14s' "$((round * 180)) left"; done
echo
if [ -n "$eds" ] && prepare_eds calendar_leak libecal-2.0 libecal2.0-dev && prepare_eds book_leak; then
	bench/eds/with_private_bus.sh "$work/calendar_leak" 1275 180 $rounds >"$work/leak" && leak "EDS, 1,275 events" "$work/leak"
	bench/eds/with_private_bus.sh "$work/book_leak" 1000 180 $rounds >"$work/leak" && leak "EDS, 1,000 contacts" "$work/leak"
fi
if ! "$larder" serve --help >/dev/null 2>&1; then
	echo "left out: larder serve --eds (not in this build)"
elif [ -x "$work/book_leak" ] || prepare_eds book_leak; then
	LARDER_DIR=$work/served bench/eds/with_private_bus.sh bench/eds/with_larder_serve.sh "$larder" "$work/book_leak" 1000 180 $rounds >"$work/leak"
	leak "larder serve --eds, 1,000 contacts" "$work/leak"
	goal "killed clients: peak above the first, kB" "$(awk -F '\t' 'NR == 2 { first = $3 } NR > 2 && $3 - first > peak { peak = $3 - first } END { print peak + 0 }' "$work/leak")" 256
fi

printf '\n'
if command -v valgrind >/dev/null || prepare_c bench/views/wake.c "" "valgrind gcc libc6-dev" valgrind; then
	valgrind --leak-check=full --num-callers=30 --log-file="$work/valgrind" "$views" browse "$LARDER_DIR" 2 2 1048576 >/dev/null
	for kind in definitely indirectly; do
		lost=$(sed -n "s/.*$kind lost: \([0-9,]*\) bytes.*/\1/p" "$work/valgrind" | tr -d ,)
		! grep -q "no leaks are possible" "$work/valgrind" || lost=0
		goal "valgrind, two rounds of browsing: bytes $kind lost" "${lost:--}" 0
	done
	cat "$work/valgrind" >>"$figures"
else
	echo "left out: valgrind (as root: apt-get install valgrind)"
fi
[ -z "${LARDER_BENCH_FIGURES:-}" ] || cp "$figures" "$LARDER_BENCH_FIGURES"
leave_results ""
[ $missed = 0 ] && echo "all goals are met" || echo "GOALS ARE MISSED"
exit $missed
