# Functions that the benchmarks share: the measured programs, a directory on a real disk, medians. Sourced, not run.

set -euo pipefail
# Before anything is built or measured.
start_time=$(date -u +%Y-%m-%dT%H:%M:%SZ)
start_load=$(cut -d' ' -f1 /proc/loadavg)
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build() { # builds the release programs; sets $bin and the name of each
	local target=${CARGO_TARGET_DIR:-$PWD/target}
	cargo build --quiet --release -p larder -p larder-floor -p larder-contacts-bench -p larder-calendar-bench -p larder-views-bench -p larder-mail-bench
	bin=$target/release
	larder=$bin/larder
	floor=$bin/larder-floor
	contacts=$bin/larder-contacts-bench
	calendar=$bin/larder-calendar-bench
	views=$bin/larder-views-bench
	mail=$bin/larder-mail-bench
}

workplace() { # sets $work to an empty directory in LARDER_BENCH_DIR, by default in target/
	local parent=${LARDER_BENCH_DIR:-${CARGO_TARGET_DIR:-$PWD/target}}
	mkdir -p "$parent"
	work=$(mktemp -d "$parent/bench.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	export XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state LARDER_DIR=$work/store LC_ALL=C.UTF-8
	export TMPDIR=$work
	case $(stat -f -c %T "$work") in
	tmpfs | ramfs) echo "note: $work is in memory, so nothing is written to a disk; set LARDER_BENCH_DIR to a directory on a disk" ;;
	esac
}

machine() { # prints the date, the machine and the version that is measured
	echo "$(date -u +%Y-%m-%d), $(uname -s) $(uname -r | cut -d. -f1,2), $(nproc) processors, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), load $(cut -d' ' -f1 /proc/loadavg), $("$larder" --version)"
}

result() { # MEASURE UNIT PROGRAM SIZE|- VALUE|- [more]: notes a figure for the results; `more`: more is better
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$5" "${6:-less}" >>"$work/results"
}

program_version() { # PROGRAM: prints its version, or nothing if it has none
	case $1 in
	larder* | floor) "$larder" --version | cut -d' ' -f2 ;;
	eds*) pkg-config --modversion libebook-1.2 ;;
	libical) pkg-config --modversion libical ;;
	mu | notmuch | git-cinnabar | heaptrack) "$1" --version ;;
	esac 2>/dev/null | grep -oE '[0-9]+(\.[0-9]+)+[0-9a-z.-]*' | head -1 || true
}

leave_results() { # THINGS: writes the figures that were noted to LARDER_BENCH_RESULTS; sizes are numbers of THINGS
	local commit name program
	[ -n "${LARDER_BENCH_RESULTS:-}" ] && [ -s "$work/results" ] || return 0
	commit=$(git describe --always --dirty --exclude '*' --abbrev=12 2>/dev/null || echo unknown)
	name=$(basename "$0" .sh)
	mkdir -p "$LARDER_BENCH_RESULTS"
	{
		cut -f3 "$work/results" | sort -u | while read -r program; do printf '%s\t%s\n' "$program" "$(program_version "$program")"; done
		# Each figure has more columns than a version.
		cat "$work/results"
	} | tr '"\\' "'/" | awk -F '\t' -v script="$name" -v date="$start_time" -v commit="$commit" -v larder="$(program_version larder)" \
		-v machine="$(machine_name | tr '"\\' "'/")" -v processors="$(nproc)" -v release="$(uname -s) $(uname -r | cut -d. -f1,2)" -v load="$start_load" \
		-v things="$1" '
		function text(name, value) { return "\"" name "\":\"" value "\"" }
		BEGIN {
			printf "{%s,\"version\":1,%s,%s,%s,%s,\n%s,%s,\"processors\":%d,\"load\":%s,%s,\n\"rows\":[", text("format", "larder-benchmark"), text("script", script),
				text("date", date), text("commit", commit), text("larder", larder), text("machine", machine), text("system", release), processors, load,
				text("size_of", things)
		}
		NF == 2 { version[$1] = $2; next }
		# What was not measured has no value, and a difference may be below zero, which is noise.
		$5 !~ /^[0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?$/ { next }
		{
			printf "%s\n{%s,%s,%s,%s,\"size\":%s,\"value\":%s,\"less_is_better\":%s}", n++ ? "," : "", text("measure", $1), text("unit", $2),
				text("program", $3), text("version", version[$3]), $4 == "-" ? "null" : $4, $5, $6 == "more" ? "false" : "true"
		}
		END { print "]}" }' >"$LARDER_BENCH_RESULTS/$name-${start_time//:/}.json"
	echo "results: $LARDER_BENCH_RESULTS/$name-${start_time//:/}.json"
}

machine_name() { # prints LARDER_BENCH_MACHINE, or the name of the processor
	echo "${LARDER_BENCH_MACHINE:-$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)}"
}

show() { # FIGURES: writes results to LARDER_BENCH_RESULTS, tables to LARDER_BENCH_PAGE, and raw figures to LARDER_BENCH_FIGURES
	"$contacts" results "$1" >>"$work/results"
	leave_results contacts
	[ -z "${LARDER_BENCH_PAGE:-}" ] || "$contacts" page "$1" "$LARDER_BENCH_PAGE"
	[ -z "${LARDER_BENCH_FIGURES:-}" ] || cp "$1" "$LARDER_BENCH_FIGURES"
}

rust_constant() { # NAME FILE: prints the integer value of a public constant
	local value
	value=$(sed -n "s/^pub const $1: [a-z0-9]* = \([0-9_ <]*\);/\1/p" "$2" | tr -d _)
	[ -n "$value" ] || { echo "error: no constant $1 in $2" >&2 && return 1; }
	echo $((value))
}

book() { # N: prints the path of a file with N generated contacts, seed 1
	[ -e "$work/$1.vcf" ] || "$larder" measure generate contacts "$1" --seed 1 --output "$work/$1.vcf"
	echo "$work/$1.vcf"
}

prepare_eds() { # PROGRAM [LIBRARY PACKAGE]: builds bench/eds/PROGRAM.c into $work; if that fails, prints why and fails
	local library=${2:-libebook-1.2}
	local packages="evolution-data-server ${3:-libebook1.2-dev} dbus dbus-daemon gcc pkg-config"
	if ! prepare_c "bench/eds/$1.c" "$library" "$packages" dbus-run-session; then
		echo "left out: evolution-data-server (not installed, or $1.c does not build; as root: apt-get install $packages)"
		return 1
	fi
}

prepare_c() { # FILE LIBRARY PACKAGES [COMMAND]: builds a program into $work; installs missing packages if it may
	if { [ -n "$2" ] && ! pkg-config --exists "$2" 2>/dev/null; } || ! command -v gcc >/dev/null || ! command -v "${4:-gcc}" >/dev/null; then
		if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null ||
			! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $3; } >"$work/apt.txt" 2>&1; then
			return 1
		fi
	fi
	gcc -O2 -w -o "$work/$(basename "$1" .c)" "$1" $([ -z "$2" ] || pkg-config --cflags --libs "$2")
}

without_photos() { # copies vCards without the PHOTO properties and their folded lines
	awk '/^([A-Za-z0-9-]+\.)?PHOTO[;:]/ { skip = 1; next } skip && /^[ \t]/ { next } { skip = 0; print }'
}

get() { # KEY: prints its number in a line of JSON, or the median of its three numbers, or - if it is missing
	sed -n "s/.*\"$1\":\(\([0-9]*\)\|{\"min\":[0-9]*,\"median\":\([0-9]*\).*\)[,}].*/\2\3/p" | grep . || echo -
}

most() { # KEY: prints the largest of its three numbers in a line of JSON, or - if it is missing
	sed -n "s/.*\"$1\":{[^}]*\"max\":\([0-9][0-9]*\)}.*/\1/p" | grep . || echo -
}

megabytes() { # prints a number of bytes in MB, and - as it is, which was not measured
	awk '{ print $1 == "-" ? $1 : sprintf("%.1f", $1 / 1e6) }'
}

median() { # prints the median of numbers, of an even number of them the lower one
	sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; else print "-" }'
}
