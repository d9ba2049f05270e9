# What the scripts here share: the programs under measurement, a place on a real disk, medians. Sourced, not run.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build() { # the release programs, into $bin
	local target=${CARGO_TARGET_DIR:-$PWD/target}
	cargo build --quiet --release -p larder -p larder-floor -p larder-contacts-bench -p larder-calendar-bench -p larder-views-bench
	bin=$target/release
	larder=$bin/larder
	floor=$bin/larder-floor
	contacts=$bin/larder-contacts-bench
	calendar=$bin/larder-calendar-bench
	views=$bin/larder-views-bench
}

workplace() { # an empty directory in $work, on the disk of LARDER_BENCH_DIR, else of target/
	local parent=${LARDER_BENCH_DIR:-${CARGO_TARGET_DIR:-$PWD/target}}
	mkdir -p "$parent"
	work=$(mktemp -d "$parent/bench.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	export XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state LARDER_DIR=$work/store LC_ALL=C.UTF-8
	export TMPDIR=$work
	case $(stat -f -c %T "$work") in
	tmpfs | ramfs) echo "note: $work is in memory, so that nothing is written to a disk; LARDER_BENCH_DIR=DIR names another place" ;;
	esac
}

machine() { # what the figures were made on
	echo "$(date -u +%Y-%m-%d), $(uname -s) $(uname -r | cut -d. -f1,2), $(nproc) processors, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), load $(cut -d' ' -f1 /proc/loadavg), $("$larder" --version)"
}

show() { # FIGURES: as charts into LARDER_BENCH_CHARTS, as tables into the page LARDER_BENCH_PAGE, bare into LARDER_BENCH_FIGURES
	if [ -n "${LARDER_BENCH_CHARTS:-}" ]; then
		"$contacts" chart "$1" "$LARDER_BENCH_CHARTS"
		echo "charts: $LARDER_BENCH_CHARTS/index.html"
	fi
	[ -z "${LARDER_BENCH_PAGE:-}" ] || "$contacts" page "$1" "$LARDER_BENCH_PAGE"
	[ -z "${LARDER_BENCH_FIGURES:-}" ] || cp "$1" "$LARDER_BENCH_FIGURES"
}

book() { # N: the path of a book with N generated contacts, seed 1
	[ -e "$work/$1.vcf" ] || "$larder" measure generate contacts "$1" --seed 1 --output "$work/$1.vcf"
	echo "$work/$1.vcf"
}

prepare_eds() { # PROGRAM [LIBRARY PACKAGE]: builds bench/eds/PROGRAM.c to $work; false, and said why, where that cannot be
	local library=${2:-libebook-1.2}
	local packages="evolution-data-server ${3:-libebook1.2-dev} dbus dbus-daemon gcc pkg-config"
	if ! prepare_c "bench/eds/$1.c" "$library" "$packages" dbus-run-session; then
		echo "left out: evolution-data-server (not installed, or $1.c does not build; as root: apt-get install $packages)"
		return 1
	fi
}

prepare_c() { # FILE LIBRARY PACKAGES [NEEDED]: builds a program to $work; what it needs is installed where it is not and can be
	if { [ -n "$2" ] && ! pkg-config --exists "$2" 2>/dev/null; } || ! command -v gcc >/dev/null || ! command -v "${4:-gcc}" >/dev/null; then
		if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null ||
			! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $3; } >"$work/apt.txt" 2>&1; then
			return 1
		fi
	fi
	gcc -O2 -w -o "$work/$(basename "$1" .c)" "$1" $([ -z "$2" ] || pkg-config --cflags --libs "$2")
}

without_photos() { # a book on standard input without its PHOTO properties and the folded lines behind them
	awk '/^([A-Za-z0-9-]+\.)?PHOTO[;:]/ { skip = 1; next } skip && /^[ \t]/ { next } { skip = 0; print }'
}

get() { # KEY: its number in the line of JSON on standard input; the median where it has three; - if it is not there
	sed -n "s/.*\"$1\":\(\([0-9]*\)\|{\"min\":[0-9]*,\"median\":\([0-9]*\).*\)[,}].*/\2\3/p" | grep . || echo -
}

median() { # of the numbers on standard input, the lower one of two
	sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; else print "-" }'
}
