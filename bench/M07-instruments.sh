#!/bin/bash
# M07: Larder under its own instruments, and the memory that these take.
#
#   bench/M07-instruments.sh [--messages N] [--bundle BUNDLE] [--pages DIR]
#
# Five commands run alone, and under `larder measure record --stacks 64k`: the import of 102,400 generated contacts, a search in them, the
# first index of N generated messages (20,000), a search in them, and `larder hg convert` of a BUNDLE of Mercurial (left out without one; T06
# keeps some in its DIR). Then `larder measure alloc` reads each log. Goals: the collector in 32 MB and 40 bytes for each object of the peak, the
# analysis in 32 MB and 64 bytes for each. --pages DIR: keeps the logs and writes the page of each analysis there. Exit code 1: a goal is missed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
messages=20000
bundle=
pages=
while [ $# -gt 0 ]; do
	case $1 in
	--messages) messages=$2 && shift ;;
	--bundle) bundle=$(realpath "$2") && shift ;;
	--pages) pages=$(mkdir -p "$2" && cd "$2" && pwd) && shift ;;
	*) sed -n '4p' "${BASH_SOURCE[0]}" | cut -c5- >&2 && exit 2 ;;
	esac
	shift
done
build
cargo build --quiet --release -p larder-alloclog
workplace
machine
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
maildir=$work/mail
python3 bench/mail/generate_maildir.py --out "$maildir" --n "$messages" --seed 100 >/dev/null
cards=$(book 102400)
status=0

prepare() { # NAME: makes the state from which a command starts
	case $1 in
	import | sync | clone) rm -rf "$LARDER_DIR" "$work/clone" ;;
	esac
	[ "$1" != sync ] || "$larder" --quiet sources add "$maildir" >/dev/null
}

run_of() { # NAME: sets $run to the command
	case $1 in
	import) run=("$larder" --quiet import "$cards") ;;
	contacts) run=("$larder" find --kind contact -n 100000 e) ;;
	sync) run=("$larder" --quiet sync) ;;
	messages) run=("$larder" find --kind message -n 50 the) ;;
	clone) run=("$larder" --quiet hg convert "$bundle" "$work/clone") ;;
	esac
}

memory_of() { # COMMAND...: prints MB of anonymous memory of its first process
	"$larder" --format json measure run -- "$@" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2 && return 1; }
	tail -1 "$work/out" | get first_anonymous_bytes | megabytes
}

value() { # KEY: prints a number of the analysis
	python3 -c 'import json, sys; print(json.load(open(sys.argv[2]))[sys.argv[1]])' "$1" "$work/json"
}

printf '%-9s %10s %9s %9s %8s %9s | %9s %8s | %9s %8s\n' '' calls 'asked MB' 'live MB' objects 'alone MB' collector limit analysis limit
for name in import contacts sync messages ${bundle:+clone}; do
	run_of "$name"
	prepare "$name"
	alone=$(memory_of "${run[@]}")
	prepare "$name"
	collector=$(memory_of "$larder" --quiet measure record --stacks 64k --out "$work/log" -- "${run[@]}")
	analysis=$(memory_of "$larder" measure alloc "$work/log")
	"$larder" --format json measure alloc "$work/log" >"$work/json"
	[ -z "$pages" ] || { cp "$work/log" "$pages/$name.alloclog" && "$larder" measure alloc "$work/log" --html "$pages/$name.html" >"$pages/$name.txt"; }
	awk -v name="$name" -v calls="$(value calls)" -v asked="$(value upper_bytes)" -v live="$(value peak_bytes)" -v objects="$(value peak_objects)" \
		-v alone="$alone" -v collector="$collector" -v analysis="$analysis" '
		BEGIN {
			collector_limit = 32 + 40 * objects / 1e6; analysis_limit = 32 + 64 * objects / 1e6
			printf "%-9s %10d %9.1f %9.1f %8d %9s | %9s %8.1f | %9s %8.1f\n", name, calls, asked / 1e6, live / 1e6, objects, alone,
				collector, collector_limit, analysis, analysis_limit
			exit collector == "-" || analysis == "-" || collector > collector_limit || analysis > analysis_limit
		}' || status=1
	result "$name, live memory" MB larder - "$(awk -v bytes="$(value peak_bytes)" 'BEGIN { print bytes / 1e6 }')"
	result "$name, anonymous memory of the collector" MB larder - "$collector"
	result "$name, anonymous memory of the analysis" MB larder - "$analysis"
done
leave_results ""
[ "$status" = 0 ] || echo "a goal is missed"
exit "$status"
