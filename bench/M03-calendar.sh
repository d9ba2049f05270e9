#!/bin/bash
# M03: how much memory calendars take to be asked, imported and kept, and how many bytes on disk.
#
#   bench/M03-calendar.sh [--quick]
#
# For 1,275, 20,000 and 1,000,000 generated events: the most anonymous memory of a process that has the store open and has answered
# 423 questions, of the import, and the size of the store. Then the predecessor's story: definitions of time zones alone, which leave nothing
# behind, and as many events with a copy of a definition before each, of which as many are kept as differ. Ends with 1 where a goal is
# missed: 16 MB for any question (24 MB at 1,000,000), 64 MB for the import, 3 MB above the empty process for the
# calendar of 1,275. --quick: without 1,000,000. LARDER_BENCH_FIGURES=FILE gets bare figures.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
sizes="1275 20000 1000000"
[ "${1:-}" != --quick ] || sizes="1275 20000"
build
workplace
missed=0
figures=$work/figures
machine
echo "# M03 $(machine)" >"$figures"

goal() { # N WHAT IS MOST
	local verdict=ok
	if ! awk -v is="$3" -v most="$4" 'BEGIN { exit !(is != "" && is <= most) }'; then
		verdict=MISSED
		missed=1
	fi
	printf '%10s %-48s %9s %9s  %s\n' "$1" "$2" "$3" "$4" $verdict
	echo "larder $1 $2 1 $3 $4 0 0" >>"$figures"
}

printf '\n%10s %-48s %9s %9s\n' events "" measured goal
for n in $sizes; do
	"$larder" measure generate calendar "$n" --events --output "$work/calendar.ics"
	"$larder" measure generate queries 423 --of "$n" --events --output "$work/queries"
	rm -rf "$LARDER_DIR"
	"$larder" --format json measure run --repeat 1 -- "$larder" --quiet import "$work/calendar.ics" >"$work/out"
	goal "$n" "import, MB" "$(sed -n 's/.*"anonymous_bytes":{[^}]*"max":\([0-9]*\)}.*/\1/p' "$work/out" | awk '{ printf "%.1f", $1 / 1e6 }')" 64
	read -r before most < <("$calendar" memory "$LARDER_DIR" "$work/queries" | awk -F '\t' '{ print $2, $3 }')
	limit=16
	[ "$n" -lt 1000000 ] || limit=24
	goal "$n" "any question, MB" "$(awk -v kb="$most" 'BEGIN { printf "%.1f", kb * 1024 / 1e6 }')" $limit
	if [ "$n" = 1275 ]; then
		grep -m 1 "^month" "$work/queries" >"$work/month"
		read -r before most < <("$calendar" memory "$LARDER_DIR" "$work/month" | awk -F '\t' '{ print $2, $3 }')
		goal "$n" "open and a month, above the empty process, MB" "$(awk -v kb=$((most - before)) 'BEGIN { printf "%.1f", kb * 1024 / 1e6 }')" 3
	fi
	bytes=$(stat -c %s "$LARDER_DIR/data.db")
	of=$(stat -c %s "$work/calendar.ics")
	printf '%10s %-48s %9s\n' "$n" "data.db, bytes for a byte of the calendar" "$(awk -v a="$bytes" -v b="$of" 'BEGIN { printf "%.2f", a / b }')"
done

printf '\n%s\n' "copies of time zones: defined and kept, as the import says"
for n in 538 814; do
	for events in "" --events; do
		rm -rf "$LARDER_DIR"
		"$larder" measure generate zones $n $events --output "$work/zones.ics"
		printf '%10s %-12s %s\n' $n "${events#--}" "$("$larder" --quiet import "$work/zones.ics" | grep -i "zone" || echo "no zone kept")"
	done
done
[ -z "${LARDER_BENCH_FIGURES:-}" ] || cp "$figures" "$LARDER_BENCH_FIGURES"
[ $missed = 0 ] && echo "all goals are met"
exit $missed
