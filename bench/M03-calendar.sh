#!/bin/bash
# M03: memory to import and query calendars, and the size of the store.
#
#   bench/M03-calendar.sh [--quick]
#
# For 1,275, 20,000 and 1,000,000 generated events: the peak of anonymous memory of an import and of a process that
# answers 423 queries, and the size of the store. Then imports of many copies of the same time-zone definitions: without
# events nothing may be stored, with events each different definition once. The exit code is 1 if a goal is missed: 16 MB
# for any query (24 MB at 1,000,000), 64 MB for the import, 3 MB above the empty process for a month of 1,275 events.
# --quick: without 1,000,000. LARDER_BENCH_FIGURES=FILE: write the raw figures.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
sizes="1275 20000 1000000"
[ "${1:-}" != --quick ] || sizes="1275 20000"
build
workplace
missed=0
figures=$work/figures
machine
echo "# M03 $(machine)" >"$figures"

goal() { # N NAME VALUE LIMIT
	local verdict=ok
	if ! awk -v value="$3" -v limit="$4" 'BEGIN { exit !(value != "" && value != "-" && value <= limit) }'; then
		verdict=MISSED
		missed=1
	fi
	printf '%10s %-48s %9s %9s  %s\n' "$1" "$2" "$3" "$4" $verdict
	echo "larder $1 $2 1 $3 $4 0 0" >>"$figures"
	result "${2%, MB}, anonymous memory" MB larder "$1" "$3"
}

printf '\n%10s %-48s %9s %9s\n' events "" measured goal
for n in $sizes; do
	"$larder" measure generate calendar "$n" --events --output "$work/calendar.ics"
	"$larder" measure generate queries 423 --of "$n" --events --output "$work/queries"
	rm -rf "$LARDER_DIR"
	"$larder" --format json measure run --repeat 1 -- "$larder" --quiet import "$work/calendar.ics" >"$work/out"
	goal "$n" "import, MB" "$(most anonymous_bytes <"$work/out" | megabytes)" 64
	read -r before peak < <("$calendar" memory "$LARDER_DIR" "$work/queries" | awk -F '\t' '{ print $2, $3 }')
	limit=16
	[ "$n" -lt 1000000 ] || limit=24
	goal "$n" "any query, MB" "$(awk -v kb="$peak" 'BEGIN { printf "%.1f", kb * 1024 / 1e6 }')" $limit
	if [ "$n" = 1275 ]; then
		grep -m 1 "^month" "$work/queries" >"$work/month"
		read -r before peak < <("$calendar" memory "$LARDER_DIR" "$work/month" | awk -F '\t' '{ print $2, $3 }')
		goal "$n" "a month, above the empty process, MB" "$(awk -v kb=$((peak - before)) 'BEGIN { printf "%.1f", kb * 1024 / 1e6 }')" 3
	fi
	bytes=$(stat -c %s "$LARDER_DIR/data.db")
	source=$(stat -c %s "$work/calendar.ics")
	printf '%10s %-48s %9s\n' "$n" "data.db, bytes for each byte of the calendar" "$(awk -v a="$bytes" -v b="$source" 'BEGIN { printf "%.2f", a / b }')"
	result "size of the store" bytes larder "$n" "$bytes"
done

printf '\n%s\n' "copies of time zones: definitions in the file, and the message of the import"
for n in 538 814; do
	for events in "" --events; do
		rm -rf "$LARDER_DIR"
		"$larder" measure generate zones $n $events --output "$work/zones.ics"
		printf '%10s %-12s %s\n' $n "${events#--}" "$("$larder" --quiet import "$work/zones.ics" | grep -i "zone" || echo "no zone stored")"
	done
done
[ -z "${LARDER_BENCH_FIGURES:-}" ] || cp "$figures" "$LARDER_BENCH_FIGURES"
leave_results events
[ $missed = 0 ] && echo "all goals are met"
exit $missed
