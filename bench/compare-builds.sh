#!/bin/bash
# Compares the CPU time of contacts, calendars and live views of two builds of Larder.
#
#   bench/compare-builds.sh BEFORE AFTER [--pairs N] [--quick]
#
# BEFORE and AFTER are directories with the release programs of two work trees (target/release). Larder's part of T01 to T04 is run
# by both in turn, in N pairs (nine unless given), and the order changes from pair to pair, so that other load and the temperature of
# the processor concern both. Both get the same input, which BEFORE generates. The figure of a row is its CPU time; of a script, the
# median over the pairs of the geometric mean of the ratios of its rows. The exit code is 1 if a script is more than 3 % above. Rows of less
# than two microseconds are printed and not counted: they are as long as the clock takes, and twice as long in one run as in another.
# LARDER_BENCH_FIGURES=FILE: write the raw figures. --quick: small input.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
pairs=9
contacts_number=12800
events=20000
open_views=10000
commits=40
changes=300
seconds=0.1
bins=()
while [ $# -gt 0 ]; do
	case $1 in
	--pairs) pairs=$2 && shift ;;
	--quick) contacts_number=1280 events=1275 open_views=1000 commits=10 changes=30 seconds=0.02 ;;
	*) bins+=("$(cd "$1" && pwd)") ;;
	esac
	shift
done
[ ${#bins[@]} = 2 ] || { echo "bench/compare-builds.sh BEFORE AFTER [--pairs N] [--quick]" >&2 && exit 2; }
larder=${bins[0]}/larder
workplace
machine
figures=$work/figures
"$larder" measure generate contacts $contacts_number --seed 1 --output "$work/contacts.vcf"
"$larder" measure generate calendar $events --events --output "$work/calendar.ics"
"$larder" measure generate queries 423 --of $events --events --output "$work/queries"
"${bins[0]}/larder-contacts-bench" search-terms "$work/contacts.vcf" >"$work/search_terms"
"${bins[0]}/larder-views-bench" months >"$work/months"

row() { # SCRIPT ROW COMMAND...: writes the CPU time of a process
	local name="$1 $2"
	shift 2
	"$larder" --format json measure run -- "$@" >"$work/out" || { cat "$work/out" >&2 && return 1; }
	echo "$name $(tail -1 "$work/out" | get cpu_us)" >>"$work/run"
}

run_build() { # BIN: writes the rows of one build to $work/run
	local bin=$1
	rm -rf "$LARDER_DIR" "$work/changed" "$work/log" "$work/run"
	row T01 import "$bin/larder" --quiet import "$work/contacts.vcf"
	row T01 import-again "$bin/larder" --quiet import "$work/contacts.vcf"
	"$bin/larder-contacts-bench" larder "$LARDER_DIR" "$work/search_terms" $seconds $contacts_number | awk '{ print "T02", $3, $7 / 1000 }' >>"$work/run"
	"$bin/larder-contacts-bench" single "$LARDER_DIR" "$work/contacts.vcf" 100 $contacts_number |
		awk '$7 { print "T02", $3, $7 / 1000 }' >>"$work/run"
	row T02 remove-all "$bin/larder" --quiet remove --query 'has:uid or -has:uid'
	rm -rf "$LARDER_DIR"
	row T03 import "$bin/larder" --quiet import --into calendar "$work/calendar.ics"
	"$bin/larder-calendar-bench" ask "$LARDER_DIR" "$work/queries" $seconds | awk -F '\t' 'NF == 7 && $4 && !/-append/ { print "T03", $1, $4 }' >>"$work/run"
	"$bin/larder" --quiet import --into contacts "$work/contacts.vcf" >/dev/null
	"$bin/larder-views-bench" open "$LARDER_DIR" "$work/months" 7 | views
	cp -r "$LARDER_DIR" "$work/changed"
	"$bin/larder-views-bench" commits "$work/changed" $open_views $commits | views
	"$bin/larder-views-bench" deliver "$work/changed" $open_views $changes | views
	"$bin/larder-views-bench" log "$LARDER_DIR" "$work/log" 15 | views
}

views() { # writes the rows of a program for live views, from standard input
	awk -F '\t' 'NF == 7 && $4 > 0 { print "T04", $1, $4 }' >>"$work/run"
}

for ((pair = 0; pair < pairs; pair++)); do
	for ((turn = 0; turn < 2; turn++)); do
		build=$(((pair + turn) % 2))
		run_build "${bins[$build]}"
		sed "s/^/$pair $build /" "$work/run" >>"$figures"
	done
done
[ -z "${LARDER_BENCH_FIGURES:-}" ] || cp "$figures" "$LARDER_BENCH_FIGURES"

awk -v pairs=$pairs '
	function median(values, n,    i, j, one) {
		for (i = 2; i <= n; i++) {
			one = values[i]
			for (j = i - 1; j > 0 && values[j] > one; j--) values[j + 1] = values[j]
			values[j + 1] = one
		}
		return (values[int((n + 1) / 2)] + values[int(n / 2) + 1]) / 2
	}
	{
		name = $3 " " $4
		if (!(name in place)) { place[name] = ++rows; names[rows] = name; script[rows] = $3 }
		cpu[$2, name, $1] = $5
	}
	END {
		printf "%-32s %12s %12s %8s\n", "CPU us, median of " pairs, "before", "after", "ratio"
		for (r = 1; r <= rows; r++) {
			n = 0
			for (p = 0; p < pairs; p++) {
				before = cpu[0, names[r], p]
				after = cpu[1, names[r], p]
				if (before > 0 && after > 0) {
					old[++n] = before
					new[n] = after
					quotient[n] = after / before
				}
			}
			is_counted = n && median(old, n) >= 2
			if (!n || is_counted && n != pairs) { printf "%s: not in each run of both builds\n", names[r]; missed = 1 }
			# Before their median is taken, which sorts them.
			for (p = 0; p < n && is_counted; p++) {
				sum[script[r], p] += log(quotient[p + 1])
				count[script[r], p]++
			}
			if (n) printf "%-32s %12.1f %12.1f %8.3f%s\n", names[r], median(old, n), median(new, n), median(quotient, n), (is_counted ? "" : " not counted")
		}
		print ""
		for (s = 1; s <= 4; s++) {
			name = "T0" s
			for (p = 0; p < pairs; p++) mean[p + 1] = exp(sum[name, p] / count[name, p])
			ratio = median(mean, pairs)
			missed += ratio > 1.03
			printf "%s: after / before %.3f, pairs from %.3f to %.3f (goal 1.03)%s\n", name, ratio, mean[1], mean[pairs], (ratio > 1.03 ? " missed" : "")
		}
		exit missed > 0
	}' "$figures"
