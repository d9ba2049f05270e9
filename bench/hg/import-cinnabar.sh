#!/bin/bash
# Takes over repositories of git-cinnabar, and compares them with our own conversions:
#   bench/hg/import-cinnabar.sh FOLDER...
# FOLDER is a repository of Mercurial. git-cinnabar converts about half of its changesets; `larder hg
# import-cinnabar` takes the result over, `larder hg unbundle` adds the rest. The commits of all
# changesets have to be those of conversions without git-cinnabar, and `larder hg fsck --full` has to
# find nothing. Needs hg and git-cinnabar 0.7 in PATH, and a release build of larder (or LARDER=PROGRAM).
#
#   bench/hg/import-cinnabar.sh --fixtures EDGE
# makes crates/hg/tests/cinnabar/ again from the repositories that crates/hg/tests/edge/mkedge.py made
# in the folder EDGE.
set -euo pipefail

cd "$(dirname "$0")/../.."
root=$PWD
larder=${LARDER:-$root/target/release/larder}
export GIT_CINNABAR_CHECK=no-version-check HGPLAIN=1 HGRCPATH=$root/crates/hg/tests/edge/hgrc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cinnabar() { # REPOSITORY BUNDLE: converts by git-cinnabar
	git init -q --bare "$1"
	GIT_DIR=$1 git-cinnabar unbundle "$2" 2>"$work/err" || { cat "$work/err" >&2 && return 1; }
}

bundle() { # REPOSITORY REVISION: writes $work/bundle
	hg -R "$1" bundle -q --base null -r "$2" -t zstd-v2 "$work/bundle"
}

if [ "${1:-}" = --fixtures ]; then
	for name in raw:tip dblslash:tip cli:24; do
		repository=$2/${name%:*}
		[ "${name#*:}" = tip ] && revision='all()' || revision=${name#*:}
		bundle "$repository" "$revision"
		cinnabar "$work/git" "$work/bundle"
		git --git-dir "$work/git" repack -qadf --window=250 --depth=50
		git --git-dir "$work/git" bundle create -q "crates/hg/tests/cinnabar/${name%:*}.bundle" refs/cinnabar/metadata
		rm -rf "$work/git"
	done
	exit
fi

map() { # REPOSITORY: the commits of all changesets of $work/nodes
	"$larder" hg --repository "$1" hg2git --batch <"$work/nodes"
}

convert() { # REPOSITORY: adds $work/bundle
	[ -d "$1" ] || git init -q --bare "$1"
	"$larder" --quiet hg --repository "$1" unbundle "$work/bundle"
}

for repository; do
	half=$(($(hg -R "$repository" log -r tip -T '{rev}') / 2))
	bundle "$repository" $half
	hg -R "$repository" log -r "::$half" -T '{node}\n' >"$work/nodes"
	cinnabar "$work/taken" "$work/bundle"
	convert "$work/own"
	"$larder" --format json measure run -- "$larder" hg --repository "$work/taken" import-cinnabar >"$work/out"
	tail -1 "$work/out"
	cmp <(map "$work/taken") <(map "$work/own")
	"$larder" hg --repository "$work/taken" fsck --full
	rm -f "$work/bundle"
	bundle "$repository" 'all()'
	hg -R "$repository" log -r 'all()' -T '{node}\n' >"$work/nodes"
	rm -rf "$work/own"
	convert "$work/taken"
	convert "$work/own"
	cmp <(map "$work/taken") <(map "$work/own")
	"$larder" hg --repository "$work/taken" fsck --full
	git --git-dir "$work/taken" fsck --no-progress --connectivity-only --no-dangling
	echo "the same: $repository, $(wc -l <"$work/nodes") changesets"
	rm -rf "$work"/{own,taken,bundle}
done
