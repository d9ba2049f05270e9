#!/bin/bash
# T06: converting Mercurial repositories, compared with git-cinnabar and the floor.
#
#   bench/T06-mercurial.sh --keep DIR GITDIR...
#
# GITDIR: a git repository with a real history, such as those of nginx (8,692 changesets), sphinx (22,413) and pypy (71,395). Its
# branch HEAD is converted to a Mercurial repository by hg/git2hgbundle.py, and that to a bundle with the compression zstd; both are kept
# in DIR. Larder and git-cinnabar (0.7.5; `cargo install git-cinnabar`) then import the bundle into new repositories, with their
# metadata: CPU time, wall time, anonymous memory, size of the repository. The floor decompresses the bundle and hashes its bytes. All
# ids are compared. Exit code 1: a goal is missed (CPU time at most 1/3 of git-cinnabar's, and 1/3.5 in the geometric mean; memory
# 1/3.5; size 95 %, and 85 % in the mean; two processors busy for 1.5 of the wall time), or an id differs.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
keep=
repositories=()
while [ $# -gt 0 ]; do
	case $1 in
	--keep) keep=$(mkdir -p "$2" && cd "$2" && pwd) && shift ;;
	-*) echo "bench/T06-mercurial.sh --keep DIR GITDIR..." >&2 && exit 2 ;;
	*) repositories+=("$(cd "$1" && pwd)") ;;
	esac
	shift
done
[ -n "$keep" ] && [ ${#repositories[@]} -gt 0 ] || { echo "bench/T06-mercurial.sh --keep DIR GITDIR..." >&2 && exit 2; }
for program in hg zstd git-cinnabar; do
	command -v "$program" >/dev/null || { echo "left out: T06 ($program is not installed)" && exit 0; }
done
cargo build --quiet --release -p larder
larder=${CARGO_TARGET_DIR:-$PWD/target}/release/larder
workplace
machine
export HGPLAIN=1 HGRCPATH= GIT_CINNABAR_CHECK=no-version-check GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null

prepare() { # NAME GITDIR: makes the bundle and the list of nodes
	[ ! -s "$keep/$1.nodes" ] || return 0
	python3 bench/hg/git2hgbundle.py "$2" HEAD "$work/$1.hg" >/dev/null
	rm -rf "$keep/$1"
	hg init "$keep/$1"
	hg -R "$keep/$1" --config storage.revlog.reuse-external-delta=no unbundle -q "$work/$1.hg"
	rm "$work/$1.hg"
	hg -R "$keep/$1" bundle -q --all -t zstd-v2 "$keep/$1.zstd"
	hg -R "$keep/$1" log -r 'all()' -T '{node}\n' >"$keep/$1.nodes"
}

measure() { # COMMAND...: prints CPU ms, wall ms and MB of anonymous memory
	"$larder" --format json measure run -- "$@" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2 && return 1; }
	tail -1 "$work/out" | awk '
		function least(key) { match($0, "\"" key "\":{\"min\":[0-9]*"); s = substr($0, RSTART, RLENGTH); sub(/.*:/, "", s); return s }
		{ print least("cpu_us") / 1000, least("wall_us") / 1000, least("anonymous_bytes") / 1e6 }'
}

for repository in "${repositories[@]}"; do
	name=$(basename "$(dirname "$repository/x")" .git)
	[ "$name" != repo ] || name=$(basename "$(dirname "$repository")")
	prepare "$name" "$repository"
	git init -q --bare "$work/larder.git"
	git init -q --bare "$work/cinnabar.git"
	# The frame follows "HG20", the length of the parameters, and "Compression=ZS".
	floor=$(measure sh -c "tail -c +23 '$keep/$name.zstd' | zstd -dc --long=31 | sha1sum")
	ours=$(measure "$larder" --quiet hg --repository "$work/larder.git" unbundle "$keep/$name.zstd")
	theirs=$(GIT_DIR=$work/cinnabar.git measure git-cinnabar unbundle "$keep/$name.zstd")
	"$larder" hg --repository "$work/larder.git" hg2git --batch <"$keep/$name.nodes" >"$work/ours"
	GIT_DIR=$work/cinnabar.git git-cinnabar hg2git --batch <"$keep/$name.nodes" >"$work/theirs"
	differing=$(cmp -s "$work/ours" "$work/theirs" && echo 0 || diff "$work/ours" "$work/theirs" | grep -c '^<')
	echo "$name $(wc -l <"$keep/$name.nodes") $ours $(du -sk "$work/larder.git" | cut -f1) $theirs $(du -sk "$work/cinnabar.git" | cut -f1) $floor $differing"
	rm -rf "$work/larder.git" "$work/cinnabar.git"
done | tee "$work/figures" | awk '{ print "done: " $1 > "/dev/stderr" }'

awk '
	BEGIN { printf "%-16s %10s | %8s %8s %6s | %8s %8s %6s | %8s | %5s %6s %5s %5s %s\n", "", "changesets", "larder", "wall", "MB", "cinnabar",
		"wall", "MB", "floor", "CPU", "memory", "size", "busy", "differing ids" }
	{
		cpu = $7 / $3; memory = $9 / $5; size = $6 / $10; busy = $3 / $4
		printf "%-16s %10d | %8d %8d %6.0f | %8d %8d %6.0f | %8d | %5.1f %6.1f %4.0f%% %5.2f %d\n",
			$1, $2, $3, $4, $5, $7, $8, $9, $11, cpu, memory, 100 * size, busy, $14
		logs += log(cpu); sizes += size; n++
		if (cpu < 3 || memory < 3.5 || size > 0.95 || $14 > 0 || busy < 1.5) missed = 1
	}
	END {
		mean = exp(logs / n)
		printf "geometric mean of the CPU ratios: %.1f, goal 3.5; mean size: %.0f %%, goal 85\n", mean, 100 * sizes / n
		if (missed || mean < 3.5 || sizes / n > 0.85) { print "a goal is missed"; exit 1 }
	}' "$work/figures"
