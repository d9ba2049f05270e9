#!/bin/bash
# T06: converting Mercurial repositories, compared with git-cinnabar and the floor.
#
#   bench/T06-mercurial.sh --keep DIR GITDIR...
#
# GITDIR: a git repository with a real history, such as those of nginx (8,692 changesets), sphinx (22,413) and pypy (71,395). Its branch
# HEAD is converted to a Mercurial repository by hg/git2hgbundle.py, and that to a bundle with the compression zstd; both are kept in DIR.
# Larder and git-cinnabar (0.7.5; `cargo install git-cinnabar`) then import the bundle into new repositories, with their metadata: CPU
# time, wall time, anonymous memory, size of the repository. The floor decompresses the bundle and hashes its bytes. All ids are compared;
# one that a side does not know counts as a difference. Goals: CPU time at most 1/3 of git-cinnabar's, and 1/3.5 in the geometric mean;
# memory 1/3.5; size 95 %, and 85 % in the mean; two processors busy for 1.5 of the wall time; no id differs.
#
# Then `hg serve` has all but the last 10 changesets: both clone it, and fetch the 10; Larder fetches nothing, and clones within 2 GiB of
# addresses. Goals: CPU time of the client at most twice that of the server, which sends the same bytes to curl, too; for 10 changesets
# 1/5 of git-cinnabar's CPU time, and 30 MB; for nothing 50 ms and 15 MB of git-remote-hg alone. The CPU time of a fetch is that of git with
# its processes; "alone" is git-remote-hg with the processes that it starts. The floor of a fetch of 10 is git's own, of the same commits
# from a repository of git: what takes less than that meets the goal. Exit code 1: a goal is missed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
keep=
repositories=()
status=0
while [ $# -gt 0 ]; do
	case $1 in
	--keep) keep=$(mkdir -p "$2" && cd "$2" && pwd) && shift ;;
	-*) echo "bench/T06-mercurial.sh --keep DIR GITDIR..." >&2 && exit 2 ;;
	*) repositories+=("$(cd "$1" && pwd)") ;;
	esac
	shift
done
[ -n "$keep" ] && [ ${#repositories[@]} -gt 0 ] || { echo "bench/T06-mercurial.sh --keep DIR GITDIR..." >&2 && exit 2; }
for program in hg zstd curl git-cinnabar; do
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

result_pair() { # MEASURE UNIT CHANGESETS LARDER CINNABAR: notes two figures for the results
	result "$1" "$2" larder "$3" "$4"
	result "$1" "$2" git-cinnabar "$3" "$5"
}

measure() { # COMMAND...: prints CPU ms, wall ms and MB of anonymous memory, of the largest process or what $memory names; - if it was not measured
	"$larder" --format json measure run -- "$@" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2 && return 1; }
	tail -1 "$work/out" | awk -v memory="${memory:-anonymous_bytes}" '
		function least(key) { match($0, "\"" key "\":{\"min\":[0-9]*"); s = substr($0, RSTART, RLENGTH); sub(/.*:/, "", s); return s }
		function megabytes(key) { s = least(key); return s == "" ? "-" : s / 1e6 }
		{ print least("cpu_us") / 1000, least("wall_us") / 1000, megabytes(memory) }'
}

name_of() { # GITDIR: prints the name of a repository
	local name
	name=$(basename "$1" .git)
	[ "$name" != repo ] || name=$(basename "$(dirname "$1")")
	echo "$name"
}

for repository in "${repositories[@]}"; do
	name=$(name_of "$repository")
	prepare "$name" "$repository"
	git init -q --bare "$work/larder.git"
	git init -q --bare "$work/cinnabar.git"
	# The frame follows "HG20", the length of the parameters, and "Compression=ZS".
	floor=$(measure sh -c "tail -c +23 '$keep/$name.zstd' | zstd -dc --long=31 | sha1sum")
	ours=$(measure "$larder" --quiet hg --repository "$work/larder.git" unbundle "$keep/$name.zstd")
	theirs=$(GIT_DIR=$work/cinnabar.git measure git-cinnabar unbundle "$keep/$name.zstd")
	"$larder" hg --repository "$work/larder.git" hg2git --batch <"$keep/$name.nodes" >"$work/ours"
	GIT_DIR=$work/cinnabar.git git-cinnabar hg2git --batch <"$keep/$name.nodes" >"$work/theirs"
	# A commit that neither side knows is no agreement.
	differing=$(paste "$work/ours" "$work/theirs" "$keep/$name.nodes" |
		awk -F'\t' '$1 != $2 || $1 !~ /[1-9a-f]/ { n++ } END { print n + 0 }')
	echo "$name $(wc -l <"$keep/$name.nodes") $ours $(du -sk "$work/larder.git" | cut -f1) $theirs $(du -sk "$work/cinnabar.git" | cut -f1) $floor $differing"
	rm -rf "$work/larder.git" "$work/cinnabar.git"
done | tee "$work/figures" | awk '{ print "done: " $1 > "/dev/stderr" }'
while read -r _ changesets our_cpu our_wall our_memory our_size their_cpu their_wall their_memory their_size floor_cpu _; do
	result_pair "import, CPU time" ms "$changesets" "$our_cpu" "$their_cpu"
	result "import, CPU time" ms floor "$changesets" "$floor_cpu"
	result_pair "import, wall time" ms "$changesets" "$our_wall" "$their_wall"
	result_pair "import, anonymous memory" MB "$changesets" "$our_memory" "$their_memory"
	result_pair "size of the repository" kB "$changesets" "$our_size" "$their_size"
done <"$work/figures"

awk '
	function mb(x, digits) { return x == "-" ? x : sprintf("%." digits "f", x) }
	BEGIN { printf "%-16s %10s | %8s %8s %6s | %8s %8s %6s | %8s | %5s %6s %5s %5s %s\n", "", "changesets", "larder", "wall", "MB", "cinnabar",
		"wall", "MB", "floor", "CPU", "memory", "size", "busy", "differing ids" }
	{
		cpu = $7 / $3; memory = $5 > 0 ? $9 / $5 : 0; size = $6 / $10; busy = $3 / $4
		printf "%-16s %10d | %8d %8d %6s | %8d %8d %6s | %8d | %5.1f %6.1f %4.0f%% %5.2f %d\n",
			$1, $2, $3, $4, mb($5, 0), $7, $8, mb($9, 0), $11, cpu, memory, 100 * size, busy, $14
		logs += log(cpu); sizes += size; n++
		if (cpu < 3 || memory < 3.5 || size > 0.95 || $14 > 0 || busy < 1.5) missed = 1
	}
	END {
		mean = exp(logs / n)
		printf "geometric mean of the CPU ratios: %.1f, goal 3.5; mean size: %.0f %%, goal 85\n", mean, 100 * sizes / n
		if (missed || mean < 3.5 || sizes / n > 0.85) { print "a goal is missed"; exit 1 }
	}' "$work/figures" || status=1

# The programs that git starts for hg:: URLs.
mkdir "$work/larder" "$work/cinnabar"
ln -s "$larder" "$work/larder/git-remote-hg"
ln -s "$(command -v git-cinnabar)" "$work/cinnabar/git-remote-hg"
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT

serve() { # REPOSITORY: serves it; sets $server (process) and $url
	local port
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	hg -R "$1" serve --address 127.0.0.1 --port "$port" --daemon --pid-file "$work/pid" --accesslog /dev/null
	server=$(cat "$work/pid")
	url=http://127.0.0.1:$port/
}

server_cpu() { # prints the CPU ms of the server so far
	awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13 + $14 + $15) * 1000 / hz }' "/proc/$server/stat"
}

client() { # PROGRAMS COMMAND...: measures git with the programs of a folder
	local programs=$1
	shift
	PATH=$programs:$PATH measure "$@"
}

helper() { # TOOL DIALOGUE: measures a remote helper alone, its memory without git's, in the copy of its repository
	memory=first_anonymous_bytes GIT_DIR=$work/$1.copy/.git measure sh -c "exec '$work/$1/git-remote-hg' origin '$url' <'$work/$2'"
}

download() { # fetches all changesets by curl, as Larder asks for them: heads that are not named are all
	curl -sS -o /dev/null -H 'Accept: application/mercurial-0.1' -H 'X-HgProto-1: 0.1 0.2 comp=zstd,zlib,none,bzip2' \
		-H "X-HgArg-1: bundlecaps=HG20%2Cbundle2%3DHG20%250Achangegroup%253D01%252C02%252C03&cg=1&common=$(printf '0%.0s' {1..40})" \
		"${url}?cmd=getbundle"
}

for repository in "${repositories[@]}"; do
	name=$(name_of "$repository")
	count=$(wc -l <"$keep/$name.nodes")
	hg init "$work/served"
	hg -R "$work/served" pull -q $(hg -R "$keep/$name" log -r "heads(0:$((count - 11)))" -T '-r {node} ') "$keep/$name"
	serve "$work/served"
	before=$(server_cpu)
	curl_wall=$(measure bash -c "$(declare -f download); url=$url; download" | cut -d' ' -f2)
	server_ms=$(awk "BEGIN { print $(server_cpu) - $before }")
	clone=(git -c gc.auto=0 clone -q --no-checkout "hg::$url")
	ours=$(client "$work/larder" "${clone[@]}" "$work/larder.git")
	theirs=$(client "$work/cinnabar" "${clone[@]}" "$work/cinnabar.git")
	hg -R "$work/served" pull -q "$keep/$name"
	# The memory of the helpers alone, which read what git writes to them, in copies.
	printf 'capabilities\nlist\n\n' >"$work/nothing"
	unknown=$(GIT_DIR=$work/larder.git/.git "$work/larder/git-remote-hg" origin "$url" <"$work/nothing" | sed -n 's/^? /import /p')
	printf 'capabilities\nlist\n%s\n\n' "$unknown" >"$work/import"
	for copy in larder cinnabar floor; do cp -r "$work/${copy/floor/larder}.git" "$work/$copy.copy"; done
	read -r our_alone _ our_memory < <(helper larder import)
	read -r their_alone _ their_memory < <(helper cinnabar import)
	fetch=(git -c gc.auto=0 fetch -q origin)
	our_fetch=$(cd "$work/larder.git" && client "$work/larder" "${fetch[@]}")
	their_fetch=$(cd "$work/cinnabar.git" && client "$work/cinnabar" "${fetch[@]}")
	floor_fetch=$(cd "$work/floor.copy" && measure git -c gc.auto=0 fetch -q "$work/larder.git" "refs/remotes/origin/*:refs/remotes/origin/*")
	no_op=$(helper larder nothing)
	their_no_op=$(helper cinnabar nothing)
	kill "$server"
	server=
	limited=ends
	(ulimit -v 2097152 && PATH=$work/larder:$PATH git clone -q --bare "hg::$keep/$name.zstd" "$work/limited.git") 2>"$work/err" || limited="fails: $(tail -1 "$work/err")"
	echo "$name $ours $server_ms $curl_wall $theirs $our_fetch $their_fetch $no_op $their_no_op $our_memory $their_memory $our_alone $their_alone ${floor_fetch%% *} $limited"
	rm -rf "$work/served" "$work"/*.git "$work"/*.copy
done >"$work/figures"

awk '
	function mb(x) { return x == "-" ? x : sprintf("%.1f", x) }
	BEGIN {
		printf "\n%-10s | %-43s | %-49s | %-31s |\n", "", "clone from hg serve: CPU, wall ms", "fetch of 10: CPU ms (alone), MB", "fetch of nothing: CPU ms, MB"
		printf "%-10s | %6s %6s %6s %6s %8s %6s | %6s %5s %5s %8s %5s %5s %5s %5s | %6s %5s %8s %5s | %s\n", "", "larder", "wall", "server", "curl", "cinnabar",
			"ratio", "larder", "alone", "MB", "cinnabar", "alone", "MB", "floor", "ratio", "larder", "MB", "cinnabar", "MB", "2 GiB"
	}
	{
		printf "%-10s | %6d %6d %6d %6d %8d %6.1f | %6d %5d %5s %8d %5d %5s %5d %5.1f | %6d %5s %8d %5s |", $1, $2, $3, $5, $6, $7, $2 / $5,
			$10, $24, mb($22), $13, $25, mb($23), $26, $13 / $10, $16, mb($18), $19, mb($21)
		for (i = 27; i <= NF; i++) printf " %s", $i
		print ""
		if ($2 > 2 * $5 || ($10 * 5 > $13 && $10 > $26) || $22 == "-" || $22 > 30 || $16 > 50 || $18 == "-" || $18 > 15 || $27 != "ends") missed = 1
	}
	END { if (missed) { print "a goal is missed"; exit 1 } }' "$work/figures" || status=1
while read -r name our_cpu our_wall _ _ _ their_cpu their_wall _ our_fetch _ _ their_fetch _ _ no_op _ no_op_memory their_no_op _ their_no_op_memory our_memory their_memory _ _ floor_fetch _; do
	changesets=$(wc -l <"$keep/$name.nodes")
	result_pair "clone, CPU time" ms "$changesets" "$our_cpu" "$their_cpu"
	result_pair "clone, wall time" ms "$changesets" "$our_wall" "$their_wall"
	result_pair "fetch of 10, CPU time" ms "$changesets" "$our_fetch" "$their_fetch"
	result "fetch of 10, CPU time" ms floor "$changesets" "$floor_fetch"
	result_pair "fetch of 10, anonymous memory" MB "$changesets" "$our_memory" "$their_memory"
	result_pair "fetch of nothing, CPU time" ms "$changesets" "$no_op" "$their_no_op"
	result_pair "fetch of nothing, anonymous memory" MB "$changesets" "$no_op_memory" "$their_no_op_memory"
done <"$work/figures"
leave_results changesets
exit "$status"
