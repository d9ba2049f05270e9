#!/bin/bash
# M05: memory of indexing and searching a maildir.
#
#   bench/M05-mail.sh [--messages N] [--maildir DIR]
#
# Anonymous memory of a first index of N generated messages (10,000 unless given) by one, two and four readers, of a run without a
# change, and of searches; the size of the index. --maildir DIR: use this maildir instead of a generated one; it is not changed. The
# exit code is 1 if a goal is missed: 100 MB for the first index by two readers, 16 MB for a search.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
messages=10000
maildir=
while [ $# -gt 0 ]; do
	case $1 in
	--messages) messages=$2 && shift ;;
	--maildir) maildir=$(cd "$2" && pwd) && shift ;;
	*) echo "bench/M05-mail.sh [--messages N] [--maildir DIR]" >&2 && exit 2 ;;
	esac
	shift
done
build
workplace
machine
missed=0
if [ -z "$maildir" ]; then
	maildir=$work/mail
	python3 bench/mail/generate_maildir.py --out "$maildir" --n "$messages" --seed 100 >/dev/null
fi

row() { # NAME GOAL COMMAND...: prints the anonymous memory of a command in MB
	local name=$1 goal=$2 memory verdict= code=0
	shift 2
	"$larder" --format json measure run -- "$@" >"$work/out" 2>"$work/err" || code=$?
	# A search of few messages may find nothing: code 1.
	[ $code = 0 ] || { [ $code = 1 ] && [ "$2" = find ]; } || { cat "$work/err" >&2 && return 1; }
	memory=$(tail -1 "$work/out" | get anonymous_bytes | megabytes)
	if [ "$goal" != - ]; then
		verdict=ok
		awk -v memory="$memory" -v goal="$goal" 'BEGIN { exit !(memory == "-" || memory > goal) }' && verdict=MISSED && missed=1
	fi
	printf '%-40s %8s %6s %s\n' "$name" "$memory" "$goal" "$verdict"
	result "$name, anonymous memory" MB larder "$messages" "$memory"
}

printf '%-40s %8s %6s\n' "anonymous memory, MB" larder goal
for readers in 1 2 4; do
	rm -rf "$LARDER_DIR"
	"$larder" --quiet sources add "$maildir" >/dev/null
	row "first index, $readers readers" "$([ $readers = 2 ] && echo 100 || echo -)" "$larder" --quiet sync --tune-readers $readers
done
row "no change" - "$larder" --quiet sync
row "newest 50 of a common word" 16 "$larder" find --kind message -n 50 the
row "a part of a word" 16 "$larder" find --kind message -n 50 '*obnit*'
row "all messages" - "$larder" find --kind message -n 1000000 'size:0..'
du -sm "$LARDER_DIR"/index.db | sed 's/\t.*/ MB  index.db/'
leave_results messages
exit $missed
