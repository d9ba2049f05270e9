#!/bin/bash
# T04: the time to open live views, to notify them of changes, and to log queries, compared with evolution-data-server and
# the floor.
#
#   bench/T04-views.sh [--quick] [--no-eds]
#
# With 20,000 generated events and 12,800 contacts: 180 views on different months are opened and deliver their initial
# results, by evolution-data-server through its own library (takes minutes; --no-eds skips it), by the floor (the same time
# ranges in plain SQLite) and by Larder, without shared or cached answers. Then the cost of a change that notifies 0 to 100
# of 10,000 open views in the same process, compared with no open view; the time from a commit until a view in another
# process is notified, with one view open and with 10,000; and the cost that the query log adds to a query. Larder and the
# floor run several rounds, interleaved, and each figure is the minimum of the medians. The exit code is 1 if a goal is
# missed. --quick: 1,275 events, 1,280 contacts, 1,000 views, without goals. LARDER_BENCH_FIGURES=FILE: write the raw
# figures.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
events=20000
contacts_number=12800
open_views=10000
rounds=3
opened=7
commits=40
changes=300
turns=15
eds=yes
for option; do
	case $option in
	--quick) events=1275 contacts_number=1280 open_views=1000 rounds=1 opened=3 commits=20 changes=50 turns=5 ;;
	--no-eds) eds= ;;
	*) echo "bench/T04-views.sh [--quick] [--no-eds]" >&2 && exit 2 ;;
	esac
done
build
workplace
figures=${LARDER_BENCH_FIGURES:-$work/figures}
machine
echo "# T04 $(machine)" >"$figures"

# Figures: program, row, wall (median), wall (minimum), CPU, hits, repetitions, p99; in microseconds.
figures_of() { # PROGRAM: writes the output of a program, on standard input, as figures
	awk -F '\t' -v OFS='\t' -v who="$1" 'NF == 7 { print who, $0; next } { print "# " who, $0 }' >>"$figures"
}

ask_eds() {
	bench/eds/with_private_bus.sh "$work/views_bench" "$work/generated.ics" "$work/months" "$work/calendar.ics" 500 20 >"$work/out" 2>"$work/eds.txt" &&
		awk -F '\t' -v OFS='\t' 'NF == 7 { print "eds", $1, $2, $2, $3 + $4, $5, $6, $7 }' "$work/out" >>"$figures" &&
		grep "^kept" "$work/out" && return
	echo "note: evolution-data-server failed:"
	tail -3 "$work/eds.txt"
	return 1
}

ask_floor() {
	rm -rf "$work/floor"
	"$floor" calendar "$work/calendar.ics" "$work/months" "$work/floor" 0.5 1000 |
		awk -F '\t' -v OFS='\t' -v n="$(wc -l <"$work/months")" '
			/^month-/ { print "floor", $1 == "month-ids" ? "open-rows" : "open-bytes", $2 * n, $2 * n, $4 * n, $5 * n, $6, $7 * n }' >>"$figures"
	[ ! -x "$work/wake" ] || "$work/wake" "$work/woken" $changes | figures_of floor
}

# Reduces the figures of several rounds to the minimum of each row.
reduce_rounds() {
	awk -F '\t' -v OFS='\t' '
		/^#/ { if (!seen[$0]++) print; next }
		!(($1, $2) in known) { known[$1, $2] = $0; order[++rows] = $1 SUBSEP $2; next }
		{
			split(known[$1, $2], minimum, OFS)
			for (i = 3; i <= 8; i++) if (i != 6 && minimum[i] < $i) $i = minimum[i]
			known[$1, $2] = $0
		}
		END { for (i = 1; i <= rows; i++) print known[order[i]] }' "$1" >"$1.reduced"
	mv "$1.reduced" "$1"
}

"$larder" measure generate calendar $events --events --output "$work/generated.ics"
"$larder" measure generate contacts $contacts_number --seed 1 --output "$work/contacts.vcf"
"$views" months >"$work/months"
[ -z "$eds" ] || prepare_eds views_bench libecal-2.0 libecal2.0-dev || eds=
[ -z "$eds" ] || ask_eds || eds=
[ -n "$eds" ] || mv "$work/generated.ics" "$work/calendar.ics"
prepare_c bench/views/wake.c "" "gcc libc6-dev" || echo "left out: the time to wake another process (no C compiler)"
"$larder" --quiet import --into calendar "$work/calendar.ics" >/dev/null
"$larder" --quiet import --into contacts "$work/contacts.vcf" >/dev/null
for ((round = 0; round < rounds; round++)); do
	ask_floor
	"$views" open "$LARDER_DIR" "$work/months" $opened | figures_of larder
	rm -rf "$work/changed"
	cp -r "$LARDER_DIR" "$work/changed"
	"$views" commits "$work/changed" $open_views $commits | figures_of larder
	"$views" deliver "$work/changed" 1 $changes | figures_of larder
	"$views" deliver "$work/changed" $open_views $changes | figures_of larder
	"$views" log "$LARDER_DIR" "$work/log" $turns | figures_of larder
done
reduce_rounds "$figures"

missed=0
awk -F '\t' -v goals=$((events == 20000)) -v open=$open_views -v results="$work/results" '
	/^#/ { next }
	{ wall[$1, $2] = $3; minimum[$1, $2] = $4; cpu[$1, $2] = $5; hits[$1, $2] = $6; worst[$1, $2] = $8 }
	function shown(x, unit) {
		if (x == "" || x == "-") return "-"
		x /= unit
		return sprintf(x < 10 && x > -10 ? "%.2f" : x < 100 ? "%.1f" : "%.0f", x)
	}
	function ratio(a, b) { return a == "" || b == "" || b <= 0 ? "-" : shown(a / b, 1) }
	function note(name, program, value) {
		sub(/^ +/, "", name)
		printf "%s\tus\t%s\t-\t%s\tless\n", name, program, value >>results
	}
	# A row: name, microseconds in its unit, Larder, its CPU time, EDS, its CPU time, floor, goal.
	function row(name, unit, larder, larder_cpu, eds, eds_cpu, floor, limit,    verdict) {
		verdict = ""
		if (goals && limit != "") {
			verdict = larder <= limit * unit ? "ok" : "MISSED"
			missed += larder > limit * unit
		}
		printf "%-48s %8s %8s %8s %8s %8s %9s %9s %7s  %s\n", name, shown(larder, unit), shown(larder_cpu, unit), shown(eds, unit),
			shown(eds_cpu, unit), shown(floor, unit), ratio(eds, larder), ratio(larder, floor), limit, verdict
		note(name, "larder", larder)
		note(name, "eds", eds)
		note(name, "floor", floor)
		note(name ", CPU time", "larder", larder_cpu)
		note(name ", CPU time", "eds", eds_cpu)
	}
	function section(unit) {
		printf "\n%-48s %8s %8s %8s %8s %8s %9s %9s %7s\n", unit, "larder", "CPU", "eds", "CPU", "floor", "eds/lard", "lard/flr", "goal"
	}
	function opened(figure, name, limit) {
		row(name, 1e3, wall["larder", figure], cpu["larder", figure], wall["eds", figure], cpu["eds", figure], wall["floor", figure], limit)
	}
	function notified(kind, n,    figure) {
		figure = "look-" kind "-" n
		row(sprintf("  catching up: %s, %d views notified", kind, n), 1, wall["larder", figure], cpu["larder", figure])
		more = wall["larder", figure] - wall["larder", "look-none-open"]
		more_cpu = cpu["larder", figure] - cpu["larder", "look-none-open"]
	}
	END {
		section("ms, 180 views of different months, in total")
		opened("open-rows", sprintf("open, ids (%d)", hits["larder", "open-rows"]), 30)
		opened("open-heads", "open, stored fields", "")
		opened("open-bytes", sprintf("open, bytes (EDS %d)", hits["eds", "open-bytes"]), 120)
		section("us, a change of one item, " open " open views")
		row("commit, no view open", 1, wall["larder", "apply-alone"], "")
		row("commit, all views open", 1, wall["larder", "apply-beside"], "")
		row("  catching up, no view open", 1, wall["larder", "look-none-open"], cpu["larder", "look-none-open"])
		split("event contact", kind, " ")
		for (k = 1; k in kind; k++) {
			split("0 10 20 50 100", n, " ")
			for (i = 1; i in n; i++) {
				notified(kind[k], n[i])
				if (n[i] == 100) all = more
				if (n[i] == 10) { ten[kind[k]] = more; ten_cpu[kind[k]] = more_cpu }
			}
			slope[kind[k]] = (all - ten[kind[k]]) / 90
		}
		row("  contact, 10 notified, 100 views on short words", 1, wall["larder", "look-contact-10-short"], cpu["larder", "look-contact-10-short"])
		for (k = 1; k in kind; k++) {
			row(sprintf("added by open views: %s, 10 notified", kind[k]), 1, ten[kind[k]], ten_cpu[kind[k]], "", "", "", 50)
			row(sprintf("each further notified view: %s", kind[k]), 1, slope[kind[k]], "", "", "", "", 2)
			row(sprintf("delivery to ten clients: %s", kind[k]), 1, wall["larder", "told-" kind[k] "-10"], cpu["larder", "told-" kind[k] "-10"])
		}
		section("ms, from a commit to a view in another process")
		for (i = 1; i <= 2; i++) {
			number = i == 1 ? 1 : open
			name = "deliver-" number
			eds = i == 1 ? "deliver-1" : "deliver-all"
			with = sprintf("%d open%s", number, i == 2 ? " (EDS 180)" : "")
			row(with ", median", 1e3, wall["larder", name], "", wall["eds", eds], cpu["eds", eds], wall["floor", "wake-inotify"], 10)
			row(with ", p99", 1e3, worst["larder", name], "", worst["eds", eds], "", worst["floor", "wake-inotify"], 50)
			row("  from the start of the commit, " with ", median", 1e3, wall["larder", "begun-" number], "")
		}
		section("us of CPU, a query with and without the query log")
		split("run cached", answer, " ")
		for (i = 1; i in answer; i++) {
			log_name = "log-" answer[i]
			query = answer[i] == "run" ? "by UID" : "cached answer"
			row(query ", without", 1, wall["larder", log_name "-without"], "")
			row(query ", with", 1, wall["larder", log_name "-with"], "")
			row(query ", added, median", 1, wall["larder", log_name "-more"], "", "", "", "", 1.5)
			row(query ", added, minimum", 1, minimum["larder", log_name "-more"], "")
		}
		exit missed > 0
	}' "$figures" || missed=1
cat <<'END'

Figures are the minimum of the medians of three rounds; EDS runs once, with the CPU time of service and client. The floor
queries the same time ranges in plain SQLite and evaluates no recurrence rule, so it finds more. Its wake-up is one byte
written to a file that another process watches, from the call on. "catching up" reads a change and queues events in the
queues of the affected views; "added by open views" is the difference from the same with no view open. EDS waits a third
of a second before it notifies.
END
leave_results items
exit $missed
