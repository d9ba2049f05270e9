#!/bin/bash
# M04: what live views take in memory, and leave behind, beside the predecessor.
#
#   bench/M04-views.sh [--quick] [--no-eds]
#
# Of 20,000 generated events and 12,800 contacts, in anonymous memory: a calendar that is opened, looked through 30 months back in five kinds of view,
# and closed, 50 times, with kept answers and without; 10,000 open views, no two alike; the same month opened and closed by 1,000 clients, one
# after the other. Then what is left of clients that are killed with 180 views open: in the calendar and the address book of evolution-data-server, and in
# `larder serve --eds`. Last a short run under valgrind. Ends with 1 where a goal is missed. --quick: 1,275 events, 1,280 contacts,
# 1,000 views, one client killed. LARDER_BENCH_FIGURES=FILE gets the bare figures.
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

goal() { # WHAT IS MOST
	local verdict=ok
	if ! awk -v is="$2" -v most="$3" 'BEGIN { exit !(is != "" && is != "-" && is <= most) }'; then
		verdict=MISSED
		missed=1
	fi
	printf '%-76s %9s %9s  %s\n' "$1" "$2" "$3" $verdict
	printf 'larder\t%s\t%s\t%s\n' "$1" "$2" "$3" >>"$figures"
}

told() { # WHAT IS
	printf '%-76s %9s\n' "$1" "$2"
	printf 'larder\t%s\t%s\n' "$1" "$2" >>"$figures"
}

# Of lines "ROW TAB TIME TAB kB TAB OPEN ...": the memory at a time, the most in a stretch of times.
at() { awk -F '\t' -v time="$2" '$2 == time { print $3 }' "$1"; }
most() { awk -F '\t' -v from="$2" -v to="$3" '$2 >= from && $2 <= to && $3 > most { most = $3 } END { print most + 0 }' "$1"; }
left_open() { awk -F '\t' '{ open += $4 } END { print open + 0 }' "$1"; }

browse() { # CACHE NAME
	local file=$work/browse-$1
	"$views" browse "$LARDER_DIR" 30 50 "$1" >"$file"
	cat "$file" >>"$figures"
	goal "browse, $2: closed for the 50th time, above before the first" $(($(at "$file" 50) - $(at "$file" 0))) 1024
	goal "browse, $2: most from the 6th to the 50th time, above the 5th" $(($(most "$file" 6 50) - $(at "$file" 5))) 64
	goal "browse, $2: views that are open after it" "$(left_open "$file")" 0
	told "  before $(at "$file" 0) kB, after the 1st $(at "$file" 1), the 5th $(at "$file" 5), the 50th $(at "$file" 50); items told" "$(awk -F '\t' 'NR == 2 { print $5 }' "$file")"
}

"$larder" measure generate calendar $events --events --output "$work/calendar.ics"
"$larder" measure generate contacts $contacts_number --seed 1 --output "$work/contacts.vcf"
"$larder" --quiet import --into calendar "$work/calendar.ics" >/dev/null
"$larder" --quiet import --into contacts "$work/contacts.vcf" >/dev/null

printf '\n%-76s %9s %9s\n' "anonymous memory, kB" measured goal
browse 0 "no answer kept"
browse "$(sed -n 's/^pub const CACHE: usize = \(.*\);/\1/p' crates/query/src/views.rs | tr -d _ | awk -F ' << ' '{ print (NF > 1) ? $1 * 2 ^ $2 : $1 }')" "answers kept"
"$views" mix "$LARDER_DIR" $open_views >"$work/mix"
"$views" held "$LARDER_DIR" "$work/mix" >"$work/held"
cat "$work/held" >>"$figures"
opened() { grep "^$1" "$work/held" | at /dev/stdin "$2"; }
goal "$open_views open views, bytes each" $((($(opened open $open_views) - $(opened open 0)) * 1024 / open_views)) 2048
told "  all closed: above before, kB in all" $(($(opened again 0) - $(opened open 0)))
goal "closed, and as many opened again: above the first time" $(($(opened again $open_views) - $(opened open $open_views))) 256
"$views" toggle "$LARDER_DIR" 1000 >"$work/toggle"
cat "$work/toggle" >>"$figures"
goal "1,000 toggles: most from the 100th on, above the 100th" $(($(most "$work/toggle" 101 1000) - $(at "$work/toggle" 100))) 64
told "  before $(at "$work/toggle" 0) kB, after the 1st $(at "$work/toggle" 1), the 100th $(at "$work/toggle" 100), the 1,000th $(at "$work/toggle" 1000); open" "$(left_open "$work/toggle")"

# ROUND TAB VIEWS LEFT BEHIND TAB kB TAB us, from a program that kills clients.
leak() { # WHO FILE
	awk -F '\t' -v who="$1" '
		NR == 1 { printf "%-44s", who " (kB, CPU us an added item)" }
		{ printf " %7d %6d", $3, $4 }
		END { print "" }' "$2"
	awk -F '\t' -v OFS='\t' -v who="$1" '{ print "left", who, $0 }' "$2" >>"$figures"
}

printf '\n%-44s' "clients killed with 180 views open each"
for ((round = 0; round <= rounds; round++)); do printf ' %14s' "$((round * 180)) dead"; done
echo
if [ -n "$eds" ] && prepare_eds calendar_leak libecal-2.0 libecal2.0-dev && prepare_eds book_leak; then
	bench/eds/private.sh "$work/calendar_leak" 1275 180 $rounds >"$work/leak" && leak "EDS, 1,275 events" "$work/leak"
	bench/eds/private.sh "$work/book_leak" 1000 180 $rounds >"$work/leak" && leak "EDS, 1,000 contacts" "$work/leak"
fi
if ! "$larder" serve --help >/dev/null 2>&1; then
	echo "left out: larder serve --eds (this larder has none)"
elif [ -x "$work/book_leak" ] || prepare_eds book_leak; then
	LARDER_DIR=$work/served bench/eds/private.sh bench/eds/served.sh "$larder" "$work/book_leak" 1000 180 $rounds >"$work/leak"
	leak "larder serve --eds, 1,000 contacts" "$work/leak"
	goal "killed clients: above the first, kB, most" "$(awk -F '\t' 'NR == 2 { first = $3 } NR > 2 && $3 - first > most { most = $3 - first } END { print most + 0 }' "$work/leak")" 256
fi

printf '\n'
if command -v valgrind >/dev/null || prepare_c bench/views/wake.c "" "valgrind gcc libc6-dev" valgrind; then
	valgrind --leak-check=full --num-callers=30 --log-file="$work/valgrind" "$views" browse "$LARDER_DIR" 2 2 1048576 >/dev/null
	for kind in definitely indirectly; do
		lost=$(sed -n "s/.*$kind lost: \([0-9,]*\) bytes.*/\1/p" "$work/valgrind" | tr -d ,)
		! grep -q "no leaks are possible" "$work/valgrind" || lost=0
		goal "valgrind, a calendar looked through twice: bytes $kind lost" "${lost:--}" 0
	done
	cat "$work/valgrind" >>"$figures"
else
	echo "left out: valgrind (as root: apt-get install valgrind)"
fi
[ -z "${LARDER_BENCH_FIGURES:-}" ] || cp "$figures" "$LARDER_BENCH_FIGURES"
[ $missed = 0 ] && echo "all goals are met" || echo "GOALS ARE MISSED"
exit $missed
