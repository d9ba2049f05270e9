# What the scripts here share: the programs under measurement, a place on a real disk, medians. Sourced, not run.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build() { # the release programs, into $bin
	local target=${CARGO_TARGET_DIR:-$PWD/target}
	cargo build --quiet --release -p larder -p larder-floor
	bin=$target/release
	larder=$bin/larder
	floor=$bin/larder-floor
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
	echo "$(date -u +%Y-%m-%d), $(uname -sr), $(nproc) processors, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), load $(cut -d' ' -f1 /proc/loadavg)"
	"$larder" --version
}

book() { # N: the path of a book with N generated contacts, seed 1
	[ -e "$work/$1.vcf" ] || "$larder" measure generate contacts "$1" --seed 1 --output "$work/$1.vcf"
	echo "$work/$1.vcf"
}

get() { # KEY: its number in the line of JSON on standard input; the median where it has three; - if it is not there
	sed -n "s/.*\"$1\":\(\([0-9]*\)\|{\"min\":[0-9]*,\"median\":\([0-9]*\).*\)[,}].*/\2\3/p" | grep . || echo -
}

median() { # of the numbers on standard input, the lower one of two
	sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; else print "-" }'
}
