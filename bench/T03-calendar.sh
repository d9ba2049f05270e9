#!/bin/bash
# T03: a calendar opened, asked, changed and imported, beside the predecessor, libical and the floor.
#
#   bench/T03-calendar.sh [--quick]
#
# For 1,275, 20,000 and 1,000,000 generated events: evolution-data-server (up to 20,000) imports them; what it keeps is read back, and
# libical (up to 20,000), the floor and Larder get exactly that. Then all are asked the same 423 questions: windows of a day, a week,
# a month and thirty days, with and without expansion, alarms, words, UIDs; and years; and change single events.
# A table for each size: medians of wall and means of processor time (service and client together), in microseconds; libical,
# the floor and Larder have five turns each (three at 1,000,000), and of a row's figures the least are shown: what else runs on a machine only adds to them. At 20,000 and
# 1,000,000 goals stand beside Larder's; ends with 1 where one is missed. Goals were set where libical parses 52 MB/s of
# story.py's calendar: what it parses here, before Larder's turn, says what the same processor time is here.
# --quick: 1,275 events, a fifth of the time. LARDER_BENCH_FIGURES=FILE gets the bare figures.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
sizes="1275 20000 1000000"
seconds=0.5
rounds=5
questions=423
if [ "${1:-}" = --quick ]; then
	sizes=1275
	seconds=0.1
	rounds=1
fi
build
workplace
figures=$work/figures
machine
echo "# T03 $(machine)" >"$figures"
batch=$(sed -n 's/^pub const BATCH: usize = \([0-9_]*\);/\1/p' crates/sync/src/import.rs | tr -d _)

figures_of() { # WHO N: what a program prints on standard input, as figures
	awk -F '\t' -v OFS='\t' -v OFMT=%.1f -v who="$1" -v n="$2" 'NF >= 5 { print who, n, $1, $2, $3 + $4, $5, $6; next } { print "# " who, n, $0 }' >>"$figures"
}

ask_eds() { # N
	bench/eds/private.sh "$work/calendar_ask" "$work/generated.ics" "$work/queries" "$work/calendar.ics" "$seconds" 500 \
		>"$work/out" 2>"$work/eds.txt" && figures_of eds "$1" <"$work/out" && grep "^kept" "$work/out" && return
	echo "note: evolution-data-server failed with $1 events:"
	tail -3 "$work/eds.txt"
	return 1
}

ask_libical() { # N
	"$work/ical_ask" "$work/calendar.ics" "$work/queries" "$seconds" | figures_of libical "$1"
}

# Of the same row of several rounds the least of each figure; of the pace the greatest.
best() {
	awk -F '\t' -v OFS='\t' '
		/^#/ || NF < 3 { if (!seen[$0]++) print; next }
		{
			row = $1 OFS $2 OFS $3
			if ($1 == "pace") row = $1 OFS $2
			if (!(row in known)) { known[row] = $0; order[++rows] = row; next }
			split(known[row], least, OFS)
			if ($1 == "pace") { if ($3 > least[3]) known[row] = $0; next }
			for (i = 4; i <= 5; i++) if ($i > least[i]) $i = least[i]
			known[row] = $0
		}
		END { for (i = 1; i <= rows; i++) print known[order[i]] }' "$1" >"$1.best"
	mv "$1.best" "$1"
}

pace() { # N: how many MB a second libical parses now, the median of five
	local bytes
	bytes=$(stat -c %s "$work/story.ics")
	for _ in 1 2 3 4 5; do
		"$work/ical_ask" "$work/story.ics" /dev/null 0.01 | awk -F '\t' -v bytes="$bytes" '$1 == "parse" { print bytes / $4 }'
	done | sort -n | sed -n 3p | awk -v OFS='\t' -v n="$1" '{ print "pace", n, $1 }' >>"$figures"
}

ask_floor() { # N
	rm -rf "$work/floor"
	"$floor" calendar "$work/calendar.ics" "$work/queries" "$work/floor" "$seconds" "$batch" | figures_of floor "$1"
	echo "# floor $1 bytes $(stat -c %s "$work/floor/calendar.db") of $(stat -c %s "$work/calendar.ics")" >>"$figures"
}

ask_larder() { # N
	rm -rf "$LARDER_DIR"
	local TIMEFORMAT='%R %U %S'
	{ time "$larder" --quiet import "$work/calendar.ics" >/dev/null; } 2>"$work/time"
	tail -1 "$work/time" | awk -v n="$1" '{ printf "import\t%.1f\t0\t%.1f\t%d\t1\t0\n", $1 * 1e6, ($2 + $3) * 1e6, n }' | figures_of larder "$1"
	"$calendar" ask "$LARDER_DIR" "$work/queries" "$seconds" | figures_of larder "$1"
	echo "# larder $1 bytes $(stat -c %s "$LARDER_DIR/data.db") of $(stat -c %s "$work/calendar.ics")" >>"$figures"
}

goals() { # N: which of Larder's figures are not what they are to be
	awk -F '\t' -v n="$1" '
		$2 == n && $1 == "larder" && !/^#/ { wall[$3] = $4; cpu[$3] = $5; hits[$3] = $6 }
		$1 == "# larder" && $2 == n && $3 ~ /^# month:/ {
			split($3, of, /[ ,]+/) # "#", the kind, how many questions; then numbers, each before its name
			visits = (of[5] + of[7]) / of[3]
			found = of[9] / of[3]
		}
		$1 == "pace" && $2 == n { pace = $3 }
		function verdict(is, most) { return is <= most ? "ok" : "MISSED" }
		# What is not processor time does not depend on the pace.
		function goal(what, is, most, fixed) {
			printf "%10s %-34s %9.1f %9.1f  %-7s", n, what, is, most, verdict(is, most)
			missed += is > most
			if (pace) {
				here = fixed + (most - fixed) * 52 / pace
				printf " %9.1f  %s", here, verdict(is, here)
			}
			print ""
		}
		END {
			if (n == 20000) {
				goal("open and first answer, us", wall["open"], 400)
				goal("month, ids, us", wall["month-ids"], 150)
				goal("month, bytes, us", wall["month-bytes"], 600)
				goal("month, expanded, us", wall["month-expanded"], 2000)
				goal("by UID, us", wall["uid"], 5)
				for (i = split("create modify remove", kind, " "); i > 0; i--) {
					append = 1.5 * wall[kind[i] "-append"]
					goal(kind[i] ", us", wall[kind[i]], append + 300, append)
				}
				goal("import, CPU us an event", cpu["import"] / n, 30)
				rows = 1.5 * found + 50
				goal("month, rows and rules for " int(found), visits, rows, rows)
			}
			if (n == 1000000) {
				goal("day, ids, us", wall["day-ids"], 3000)
				goal("month, ids, us", wall["month-ids"], 10000)
				goal("month, bytes, us a hit", (wall["month-bytes"] - wall["month-ids"]) / hits["month-bytes"], 2)
			}
			if (pace) printf "%10s libical parses %.1f MB/s here, 52 where the goals were set: the last columns are goals at this pace\n", n, pace
			exit missed > 0
		}' "$figures"
}

table() { # N
	printf '\n%s events\n' "$1"
	awk -F '\t' -v n="$1" '
		BEGIN {
			rows = split("open day-ids day-bytes day-expanded week-ids week-bytes list-ids list-bytes month-ids month-bytes month-expanded " \
				"year-ids year-bytes alarms words uid mixed create modify remove import", row, " ")
			whos = split("larder eds libical floor", who, " ")
		}
		$2 == n && !/^#/ {
			name = $3
			if ($1 == "eds") {
				if (name == "open-cold") name = "open"
				# It has no question for ids alone.
				if (name ~ /^(day|week|list|month|year)$/) { put(name "-ids"); name = name "-bytes" }
			}
			# Of what is done to all, the share of one.
			if (name ~ /^(parse|import)$/) { $4 /= $6; $5 /= $6 }
			if (name == "parse") name = "import"
			if (name ~ /-append$/) { put(name); next }
			put(name)
		}
		function put(name) { wall[$1, name] = $4; cpu[$1, name] = $5; hits[$1, name] = $6 }
		function shown(us) { return us == "" ? "-" : sprintf(us < 100 ? "%.1f" : "%.0f", us) }
		END {
			printf "%-16s", "µs, wall and CPU"
			for (w = 1; w <= whos; w++) printf " %12s %10s %8s", who[w], "CPU", "hits"
			print ""
			for (r = 1; r <= rows; r++) {
				printf "%-16s", row[r]
				for (w = 1; w <= whos; w++)
					printf " %12s %10s %8s", shown(wall[who[w], row[r]]), shown(cpu[who[w], row[r]]), shown(hits[who[w], row[r]])
				print ""
			}
			for (r = rows - 3; r < rows; r++)
				printf "%-16s beside an append and fdatasync of as many bytes: %s, CPU %s\n", row[r],
					shown(wall["floor", row[r] "-append"]), shown(cpu["floor", row[r] "-append"])
		}' "$figures"
}

eds=yes
libical=yes
prepare_eds calendar_ask libecal-2.0 libecal2.0-dev || eds=
prepare_c bench/calendar/ical_ask.c libical "libical-dev gcc pkg-config" || { libical= && echo "left out: libical (as root: apt-get install libical-dev)"; }
python3 bench/calendar/story.py 1275 "$work/story.ics"
for n in $sizes; do
	"$larder" measure generate calendar "$n" --events --output "$work/generated.ics"
	"$larder" measure generate queries $questions --of "$n" --events --output "$work/queries"
	if [ -z "$eds" ] || [ "$n" -gt 20000 ] || ! ask_eds "$n"; then
		echo "note: $n events: without evolution-data-server, the generator's"
		mv "$work/generated.ics" "$work/calendar.ics"
	fi
	turns=$rounds
	[ "$n" -le 20000 ] || turns=3
	for ((turn = 0; turn < turns; turn++)); do
		[ -z "$libical" ] || [ "$n" -gt 20000 ] || ask_libical "$n"
		ask_floor "$n"
		[ -z "$libical" ] || pace "$n"
		ask_larder "$n"
	done
	best "$figures"
	table "$n"
done
missed=0
printf '\n%10s %-34s %9s %9s %18s\n' events "" measured goal "goal at this pace"
for n in $sizes; do goals "$n" || missed=1; done
cat <<'END'

The least of five turns, at 1,000,000 of three; of EDS the only one. Hits are a mean. Import and parsing: for one event, without reading the file for the floor; libical parses only. Opening is with an
answer of one day; for EDS in a service that has just started. EDS answers with bytes; it has no question for ids alone. The floor
evaluates no rule: its hits are candidates. EDS imports in batches of 500, and detached occurrences after their masters, which
is not part of the row. Its windows find a little more than there is: a day that begins as the window ends, and a series where a
detached occurrence has taken the place of the only one.
END
[ -z "${LARDER_BENCH_FIGURES:-}" ] || cp "$figures" "$LARDER_BENCH_FIGURES"
exit $missed
