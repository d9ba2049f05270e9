#!/bin/bash
# M06: memory and CPU time of a conversion of Mercurial changes, by phase.
#
#   bench/M06-mercurial.sh [--samples DIR] BUNDLE...
#
# Each bundle (those that T06 keeps in its DIR) is imported into a new repository by Larder and by git-cinnabar, whose phases are those
# that they show as progress; anonymous memory is sampled every 10 ms. --samples DIR: writes the samples of each run, one a line: seconds,
# CPU seconds, megabytes, phase. Then the bytes of the objects that are metadata, of both. Goal: at most 1/3.5 of git-cinnabar's memory;
# the exit code is 1 if it is missed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
usage="bench/M06-mercurial.sh [--samples DIR] BUNDLE..."
samples=
bundles=()
while [ $# -gt 0 ]; do
	case $1 in
	--samples) samples=$(mkdir -p "$2" && cd "$2" && pwd) && shift ;;
	-*) echo "$usage" >&2 && exit 2 ;;
	*) bundles+=("$(realpath "$1")") ;;
	esac
	shift
done
[ ${#bundles[@]} -gt 0 ] || { echo "$usage" >&2 && exit 2; }
command -v git-cinnabar >/dev/null || { echo "left out: M06 (git-cinnabar is not installed)" && exit 0; }
cargo build --quiet --release -p larder
larder=${CARGO_TARGET_DIR:-$PWD/target}/release/larder
workplace
machine
export GIT_CINNABAR_CHECK=no-version-check GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
status=0

metadata_bytes() { # GITDIR REF: prints the bytes in packs of the objects below a ref that are not below the other refs
	git -C "$1" rev-list --objects --no-object-names "$2" --not "${@:3}" |
		git -C "$1" cat-file --batch-check='%(objectsize:disk)' | awk '{ sum += $1 } END { printf "%.1f", sum / 1e6 }'
}

phases() { # NAME COMMAND...: prints the phases of a command; sets $peak
	local name=$1
	shift
	python3 bench/hg/phases.py --samples "$work/samples" -- "$@" >"$work/phases"
	[ -z "$samples" ] || cp "$work/samples" "$samples/$name"
	cat "$work/phases"
	peak=$(awk '/^all / { print $NF }' "$work/phases")
}

for bundle in "${bundles[@]}"; do
	name=$(basename "$bundle" | cut -d. -f1)
	git init -q --bare "$work/larder.git"
	git init -q --bare "$work/cinnabar.git"
	echo && echo "$name, larder"
	phases "$name.larder" "$larder" hg --repository "$work/larder.git" unbundle "$bundle"
	ours=$peak
	echo && echo "$name, git-cinnabar"
	GIT_DIR=$work/cinnabar.git phases "$name.cinnabar" git-cinnabar unbundle "$bundle"
	history=$(git -C "$work/larder.git" rev-parse refs/larder/hg/metadata^1)
	echo "metadata: larder $(metadata_bytes "$work/larder.git" refs/larder/hg/metadata "$history") MB," \
		"git-cinnabar $(metadata_bytes "$work/cinnabar.git" refs/cinnabar/metadata $(git -C "$work/cinnabar.git" rev-parse refs/cinnabar/metadata^1^@)) MB"
	awk "BEGIN { printf \"memory: %.1f of git-cinnabar's %.1f MB, ratio %.1f, goal 3.5\n\", $ours, $peak, $peak / $ours; exit !($peak >= 3.5 * $ours) }" || status=1
	result "$name: import, anonymous memory" MB larder - "$ours"
	result "$name: import, anonymous memory" MB git-cinnabar - "$peak"
	rm -rf "$work/larder.git" "$work/cinnabar.git"
done
leave_results ""
exit "$status"
