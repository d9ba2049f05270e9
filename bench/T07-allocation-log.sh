#!/bin/bash
# T07: recording every allocator call, compared with heaptrack and with the program alone.
#
#   bench/T07-allocation-log.sh [--rounds N] [--samples] [--git GITDIR] [--hg REPOSITORY] [--spike MEMREC]
#
# Five deterministic programs: Python that parses JSON, Python that holds 300,000 objects of 1,040 bytes, SQLite with 600,000 rows, `git log
# --stat` of GITDIR (by default this repository), and `hg clone --pull` of REPOSITORY (left out without one). Each runs alone, under `larder
# measure record`, the same with the call stack of one request in 512 KiB, and under heaptrack, in turn, N times (7; heaptrack 3). Figures are
# CPU time of all processes, in medians; the time that a call adds is the median of the differences in a turn, as the speed of a shared machine
# changes by more than that. MEMREC is another recorder of the same calls, for the size of its log.
#
# --samples: each command runs a second time under perf, as root. The program's own code does the same work with and without a recorder. The
# time added is the CPU time alone, multiplied by the samples in libc, the kernel and the recorders for each one in that code, less the same of the
# program alone. A machine whose speed changes by more than a recorder adds only changes the scale of the figure.
#
# Then `larder measure alloc` reads each log. Goals: CPU time added per call at most a tenth of what heaptrack adds (heaptrack takes the
# call stacks, too), with stacks a third; the collector in 32 MB and 40 bytes for each object of the peak; the analysis reads 40 million calls in a second of CPU time,
# in 32 MB and 64 bytes for each object of the peak; the log at most 1.2 times that of MEMREC. Exit code 1: a goal is missed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
rounds=7
samples=
git_folder=$PWD
repository=
spike=
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2 && shift ;;
	--samples) samples=yes ;;
	--git) git_folder=$(cd "$2" && pwd) && shift ;;
	--hg) repository=$(cd "$2" && pwd) && shift ;;
	--spike) spike=$2 && shift ;;
	*) sed -n '4p' "${BASH_SOURCE[0]}" | cut -c5- >&2 && exit 2 ;;
	esac
	shift
done
for program in sqlite3 python3 heaptrack ${samples:+perf}; do
	command -v "$program" >/dev/null || { echo "left out: T07 ($program is not installed)" && exit 0; }
done
cargo build --quiet --release -p larder -p larder-alloclog
larder=${CARGO_TARGET_DIR:-$PWD/target}/release/larder
folder=$PWD/bench/alloc
workplace
machine
python=$(python3 -c 'import sys; print(sys.executable)')
status=0
# Not by env or sh in front of the program, which heaptrack would record in its place.
export PYTHONMALLOC=malloc PYTHONHASHSEED=0

run_of() { # NAME: sets $run to the command of a program
	case $1 in
	json) run=("$python" "$folder/parse_json.py" 3 800) ;;
	large) run=("$python" "$folder/large_objects.py") ;;
	sqlite) run=(sqlite3 :memory: ".read $folder/sqlite.sql") ;;
	gitlog) run=(git -C "$git_folder" log --stat -n 4000) ;;
	hg) run=(hg clone -q --pull -U "$repository" "$work/clone") ;;
	esac
}

cost() { # COMMAND...: prints CPU ms, and MB of anonymous memory of its first process, - if it was not measured
	rm -rf "$work/clone"
	"$larder" --format json measure run -- "$@" 2>"$work/err" | awk '
		function least(key) { match($0, "\"" key "\":{\"min\":[0-9]*"); s = substr($0, RSTART, RLENGTH); sub(/.*:/, "", s); return s }
		function megabytes(key) { s = least(key); return s == "" ? "-" : sprintf("%.1f", s / 1e6) }
		{ printf "%.1f %s\n", least("cpu_us") / 1000, megabytes("first_anonymous_bytes") }' || { cat "$work/err" >&2 && return 1; }
}

measure() { # KIND COMMAND...: notes the cost of a command; with --samples also the samples outside of the program's code for each one in it
	local kind=$1
	shift
	cost "$@" >"$work/one" && cut -d' ' -f1 "$work/one" >>"$work/$kind"
	[ -n "$samples" ] || return 0
	rm -rf "$work/clone"
	[ "$kind" != heaptrack ] || rm -f "$work"/heaptrack.log*
	perf record -q -N -F 1997 -o "$work/perf.data" -- "$@" >"$work/out" 2>"$work/err" &&
		perf report -i "$work/perf.data" --stdio --sort comm,dso -F sample,comm,dso 2>"$work/err" >"$work/report" ||
		{ cat "$work/err" >&2 && return 1; }
	awk '
		/^#/ || NF < 3 { next }
		$3 ~ /^\[k/ { kernel += $1 }
		$2 ~ /^(larder|heaptrack|zstd|gzip|sh|dash|perf)/ || $3 ~ /^(\[|ld-|libc[.-]|libstdc|libgcc|libunwind|libheaptrack|liblarder)/ { other += $1; next }
		{ own += $1 }
		END { if (!own || !kernel) { print "no samples of the program and of the kernel, which perf gives to root" >"/dev/stderr"; exit 1 }; print other / own }
		' "$work/report" >>"$work/$kind.samples"
}

added() { # KIND: prints the CPU ms that it adds, by the samples or as the median of the differences in a turn
	if [ -n "$samples" ]; then
		awk -v alone="$(median <"$work/alone")" -v before="$(median <"$work/alone.samples")" -v now="$(median <"$work/$1.samples")" \
			'BEGIN { print alone * (now - before) / (1 + before) }'
	else
		paste -d ' ' "$work/alone" "$work/$1" | awk 'NF == 2 { print $2 - $1 }' | median
	fi
}

value() { # KEY FILE: prints a number of a JSON object
	python3 -c 'import json, sys; print(json.load(open(sys.argv[2]))[sys.argv[1]])' "$1" "$2"
}

printf '%-8s %10s | %8s %8s %8s %8s | %9s %9s %9s %6s %6s | %7s %7s %7s | %8s %8s | %8s %8s\n' '' calls 'alone ms' larder stacks heaptrack \
	'ns a call' stacks heaptrack ratio stacks 'B/call' MEMREC heaptr. 'MB colle' limit 'Mcalls/s' 'MB anal.'
for name in json large sqlite gitlog ${repository:+hg}; do
	run_of "$name"
	for kind in alone larder stacks heaptrack memory; do : >"$work/$kind" && : >"$work/$kind.samples"; done
	for round in $(seq "$rounds"); do
		measure alone "${run[@]}"
		measure larder "$larder" --quiet measure record --out "$work/log" -- "${run[@]}"
		cut -d' ' -f2 "$work/one" | grep -v -e - >>"$work/memory" || true
		measure stacks "$larder" --quiet measure record --stacks 512k --out "$work/stacks.log" -- "${run[@]}"
		[ "$round" -le 3 ] || continue
		rm -f "$work"/heaptrack.log*
		measure heaptrack heaptrack -o "$work/heaptrack.log" "${run[@]}"
	done
	spike_bytes=-
	if [ -n "$spike" ]; then
		rm -rf "$work/spike"
		rm -rf "$work/clone"
		"$spike" record -o "$work/spike" -- "${run[@]}" >/dev/null 2>&1
		spike_bytes=$(du -cb "$work"/spike/* | tail -1 | cut -f1)
	fi
	for _ in 1 2 3; do cost "$larder" measure alloc "$work/log"; done | sort -n | sed -n 2p >"$work/analysis"
	"$larder" --format json measure alloc "$work/log" >"$work/json"
	awk -v name="$name" -v calls="$(value calls "$work/json")" -v objects="$(value peak_objects "$work/json")" \
		-v alone="$(median <"$work/alone")" -v larder="$(median <"$work/larder")" -v stacks="$(median <"$work/stacks")" -v heaptrack="$(median <"$work/heaptrack")" \
		-v larder_added="$(added larder)" -v stacks_added="$(added stacks)" -v heaptrack_added="$(added heaptrack)" \
		-v memory="$(median <"$work/memory")" -v bytes="$(stat -c %s "$work/log")" -v heap_bytes="$(du -cb "$work"/heaptrack.log* | tail -1 | cut -f1)" \
		-v results="$work/results" -v way="${samples:+, by samples}" -v spike="$spike_bytes" -v analysis="$(cut -d' ' -f1 "$work/analysis")" -v analysis_memory="$(cut -d' ' -f2 "$work/analysis")" '
		function note(measure, unit, program, value, better) {
			if (value != "-" && value >= 0) printf "%s: %s\t%s\t%s\t-\t%s\t%s\n", name, measure, unit, program, value, better == "" ? "less" : better >>results
		}
		BEGIN {
			own = larder_added * 1e6 / calls; sampled = stacks_added * 1e6 / calls; other = heaptrack_added * 1e6 / calls
			limit = 32 + 40 * objects / 1e6; speed = calls / analysis / 1e3
			printf "%-8s %10d | %8.0f %8.0f %8.0f %8.0f | %9.1f %9.1f %9.1f %6.1f %6.1f | %7.3f %7s %7.3f | %8s %8.1f | %8.1f %8s\n", name, calls, alone, larder, stacks,
				heaptrack, own, sampled, other, other / (own > 0 ? own : 0.1), other / (sampled > 0 ? sampled : 0.1), bytes / calls, spike == "-" ? "-" : sprintf("%.3f", spike / calls),
				heap_bytes / calls, memory, limit, speed, analysis_memory
			note("CPU time added to a call" way, "ns", "larder", own)
			note("CPU time added to a call, with stacks" way, "ns", "larder", sampled)
			note("CPU time added to a call" way, "ns", "heaptrack", other)
			note("bytes of the log for each call", "bytes", "larder", bytes / calls)
			note("bytes of the log for each call", "bytes", "heaptrack", heap_bytes / calls)
			note("anonymous memory of the collector", "MB", "larder", memory)
			note("analysis", "Mcalls/s", "larder", speed, "more")
			note("anonymous memory of the analysis", "MB", "larder", analysis_memory)
			missed = own * 10 > other || sampled * 3 > other || memory == "-" || memory > limit || speed < 40 || analysis_memory == "-" ||
				analysis_memory > 32 + 64 * objects / 1e6
			exit missed || (spike != "-" && bytes > spike * 1.2)
		}' || status=1
done
leave_results ""
[ -n "$spike" ] || echo "not checked: the size of the log, without --spike"
[ -n "$repository" ] || echo "not run: a clone by Mercurial, without --hg"
[ "$status" = 0 ] || echo "a goal is missed"
exit "$status"
