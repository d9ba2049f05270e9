#!/bin/bash
# T05: indexing and searching a maildir, compared with mu, notmuch and the floor.
#
#   bench/T05-mail.sh [--messages N] [--keep DIR] [--no-mu] [--no-notmuch]
#
# Generates a maildir of N messages (10,000 unless given) and gives each program a copy. Steps: a first index, a run without a
# change, a run after 1 % of changes (new messages, changed flags, moved and deleted files), one new message, and the queries of
# the list below, each as a process that prints the newest 50 messages or a count. The floor reads and parses each file once and
# writes nothing. Then a tenth of the messages gets a label, which is undone, and Larder indexes a copy without the HTML and
# the header fields that mu 1.8 does not read. At the end, queries in one warm process with their goals, a hundred processes for each of two searches,
# 10,000 messages that come one by one, and searches and labels during a first index. --keep DIR: keep the maildirs and the results in
# DIR; a step whose result is there is not run again. The exit code is 1 if a goal is missed; the goals are for 100,000 messages.
# For a million messages, let mail/multiply_maildir.py make DIR/mail, and leave out the others: --no-mu --no-notmuch.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
messages=10000
keep=
programs="larder mu notmuch"
while [ $# -gt 0 ]; do
	case $1 in
	--messages) messages=$2 && shift ;;
	--keep) keep=$(mkdir -p "$2" && cd "$2" && pwd) && shift ;;
	--no-mu) programs=${programs/mu/} ;;
	--no-notmuch) programs=${programs/notmuch/} ;;
	*) echo "bench/T05-mail.sh [--messages N] [--keep DIR] [--no-mu] [--no-notmuch]" >&2 && exit 2 ;;
	esac
	shift
done
build
workplace
machine
here=${keep:-$work}
for program in $programs; do
	package=$program
	[ "$program" != mu ] || package=maildir-utils
	if [ "$program" != larder ] && ! command -v "$program" >/dev/null; then
		{ [ "$(id -u)" = 0 ] && apt-get install -y -qq "$package" >"$work/apt.txt" 2>&1; } ||
			{ echo "left out: $program (not installed; as root: apt-get install $package)" && programs=${programs/$program/}; }
	fi
done
[ -d "$here/mail" ] || python3 bench/mail/generate_maildir.py --out "$here/mail" --n "$messages" --seed 100 >/dev/null
[ -d "$here/new" ] ||
	python3 bench/mail/generate_maildir.py --out "$here/new" --n $((messages < 100 ? 1 : messages / 100)) --seed 7 --years 0.2 --offset-days 3655 >/dev/null
one="$here/new/INBOX/cur"
for program in $programs; do
	[ -d "$here/$program" ] || cp -al "$here/mail" "$here/$program"
done
export LARDER_DIR=$here/larder.store MU_HOME=$here/mu.store NOTMUCH_CONFIG=$here/notmuch.config
figures=$here/figures
touch "$figures"

prepare() { # PROGRAM: deletes its index
	case $1 in
	larder) rm -rf "$LARDER_DIR" && "$larder" --quiet sources add "$here/larder" >/dev/null ;;
	mu) rm -rf "$MU_HOME" && mu init --muhome="$MU_HOME" --maildir="$here/mu" --my-address=me@example.org >/dev/null ;;
	notmuch)
		rm -rf "$here/notmuch/.notmuch"
		printf '[database]\npath=%s\n[user]\nname=Me\nprimary_email=me@example.org\n[maildir]\nsynchronize_flags=true\n' \
			"$here/notmuch" >"$NOTMUCH_CONFIG"
		;;
	esac
}

finds_nothing() { # CODE COMMAND...: succeeds if a command that ended with this code only found nothing, as in a mailbox of few messages
	case "$1 ${2##*/} $3 ${4:-}" in
	"1 larder find "* | "1 larder --quiet edit" | "1 larder --quiet undo" | [24]" mu find "*) ;;
	*) return 1 ;;
	esac
}

measure() { # PROGRAM STEP REPEAT COMMAND...: adds the CPU time in ms, the wall time, the memory in MB and the MB written
	local program=$1 step=$2 repeat=$3 code=0
	shift 3
	! grep -q "^$program	$step	" "$figures" || return 0
	"$larder" --format json measure run --repeat "$repeat" -- "$@" >"$work/out" 2>"$work/err" || code=$?
	[ $code = 0 ] || finds_nothing $code "$@" || { cat "$work/err" >&2 && return 1; }
	tail -1 "$work/out" | awk -v OFS='\t' -v program="$program" -v step="$step" '
		function least(key) { match($0, "\"" key "\":{\"min\":[0-9]*"); s = substr($0, RSTART, RLENGTH); sub(/.*:/, "", s); return s }
		function megabytes(key) { s = least(key); return s == "" ? "-" : s / 1e6 }
		{ print program, step, least("cpu_us") / 1000, least("wall_us") / 1000, megabytes("anonymous_bytes"),
			megabytes("written_bytes") }' >>"$figures"
}

index() { # PROGRAM STEP
	case $1 in
	larder) measure larder "$2" 1 "$larder" --quiet sync ;;
	mu) measure mu "$2" 1 mu index --muhome="$MU_HOME" --quiet ;;
	notmuch) measure notmuch "$2" 1 notmuch new --quiet ;;
	esac
}

settle() { # PROGRAM: a run when the folders are at rest; those that changed in the seconds before the last run are listed again
	sleep 2.1
	case $1 in
	larder) "$larder" --quiet sync ;;
	mu) mu index --muhome="$MU_HOME" --quiet ;;
	notmuch) notmuch new --quiet ;;
	esac
}

search() { # STEP MU-QUERY NOTMUCH-QUERY COUNT|LIST
	local count=() limit=()
	[ "$4" != COUNT ] || count=(--count)
	measure larder "$1" 5 "$larder" find --kind message "${count[@]}" -n 50 "$2"
	case " $programs " in *" mu "*) measure mu "$1" 5 mu find --muhome="$MU_HOME" -n 50 -z -s date "$2" ;; esac
	case "$programs $4" in
	*notmuch*COUNT) measure notmuch "$1" 5 notmuch count "$3" ;;
	*notmuch*) measure notmuch "$1" 5 notmuch search --limit=50 --output=summary "$3" ;;
	esac
}

measure floor "read and parse" 1 "$floor" mail "$here/mail"
for program in $programs; do
	grep -q "^$program	index	" "$figures" || prepare "$program"
	index "$program" index
	index "$program" "no change"
	if ! grep -q "^$program	1 % changed	" "$figures"; then
		python3 bench/mail/change_maildir.py --maildir "$here/$program" --add "$here/new" >/dev/null
	fi
	index "$program" "1 % changed"
	if ! grep -q "^$program	one message	" "$figures"; then
		settle "$program"
		file=$(for folder in "$one" "$here/new" "$here/mail"; do
			find "$folder" -type f -path '*/cur/*' 2>/dev/null | sort || true
		done | sed -n 1p)
		mkdir -p "$here/$program/INBOX"/{cur,new,tmp}
		sed 's/^Message-I[dD]:.*/Message-ID: <one-more@example.org>/' "$file" >"$here/$program/INBOX/new/1999999999.one.host"
	fi
	index "$program" "one message"
done
search "report" report report LIST
search "the" the the LIST
search "frobnitzel" frobnitzel frobnitzel LIST
search "a phrase" '"annual walrus audit"' '"annual walrus audit"' LIST
search "from:mary*" 'from:mary*' 'from:mary*' LIST
search "four months" 'date:2019-03-01..2019-06-30' 'date:2019-03-01..2019-06-30' LIST
search "unread, subject" 'flag:unread subject:report' 'tag:unread subject:report' LIST
search "perf*" 'perf*' 'perf*' LIST
search "boolean" '(report or invoice) and from:james and not budget' '(report or invoice) and from:james and not budget' LIST
search "count of the" the the COUNT
# A tenth of the messages. What the steps before have written is not to be written by the syncs of this one.
sync -f "$here"
measure larder "label 10 %" 1 "$larder" --quiet edit --query date:2019 --label +bench
measure larder "undo of it" 1 "$larder" --quiet undo
case $programs in
*notmuch*)
	measure notmuch "label 10 %" 1 notmuch tag +bench -- date:2019
	measure notmuch "undo of it" 1 notmuch tag -bench -- date:2019
	;;
esac

if [[ " $programs " = *" mu "* ]] && ! grep -q "^larder	content as in mu	" "$figures"; then
	python3 bench/mail/reduce_maildir.py "$here/mail" "$work/reduced"
	export LARDER_DIR=$work/reduced.store
	"$larder" --quiet sources add "$work/reduced" >/dev/null
	index larder "content as in mu"
	export LARDER_DIR=$here/larder.store
	rm -rf "$work/reduced" "$work/reduced.store"
fi

printf '\nin one warm process, CPU ms, least of five, and goal at 100,000 messages\n'
missed=0
"$mail" queries "$LARDER_DIR" | tee "$work/warm" || missed=1
processes() { # NAME GOAL QUERY: prints the CPU time of a process, the mean of a hundred, because the clock of one is too coarse
	"$larder" --format json measure run -- sh -c 'for i in $(seq 100); do "$1" find --kind message -n 50 "$2" >"$3" 2>"$3.err" || [ $? = 1 ] || { cat "$3.err" >&2 && exit 4; }; done' - \
		"$larder" "$3" "$work/list" >"$work/out" || { echo "a process, $1: failed" && return 1; }
	[ -s "$work/list" ] || { echo "left out: a process, $1 (nothing is found)" && return 0; }
	result "a process, $1, CPU time" us larder "$messages" "$(($(tail -1 "$work/out" | get cpu_us) / 100))"
	tail -1 "$work/out" | get cpu_us | awk -v name="$1" -v goal="$2" -v messages="$messages" '{
		is_missed = messages == 100000 && $1 / 1e5 > goal
		printf "a process, %s: %.1f ms CPU, goal %.0f%s\n", name, $1 / 1e5, goal, is_missed ? " missed" : ""
		exit is_missed
	}'
}
processes "newest 50 of a common word" 8 the || missed=1
processes "newest 50 with a part of a word" 10 '*obnit*' || missed=1
cp -r "$LARDER_DIR" "$work/single"
# Otherwise the first checkpoint would write the copied pages to the disk, and be the slowest of all.
sync -f "$work/single"
"$mail" single "$work/single" "$here/mail" 10000 | tee "$work/out"
result "one message of 10,000, mean CPU time" ms larder "$messages" "$(sed -n 's/.*mean \([0-9.]*\).*/\1/p' "$work/out")"
python3 bench/mail/search_during_sync.py "$larder" "$here/mail" || missed=1

for program in $programs; do
	case $program in
	larder) index=$LARDER_DIR ;;
	mu) index=$MU_HOME ;;
	notmuch) index=$here/notmuch/.notmuch ;;
	esac
	du -sm "$index" | sed 's/\t.*\// MB  /'
	result "size of the index" kB "$program" "$messages" "$(du -sk "$index" | cut -f1)"
done
# The columns of the program have fixed widths.
awk -v OFS='\t' -v n="$messages" '
	function trimmed(text) { sub(/ +$/, "", text); return text }
	{ split(substr($0, 64), number, " "); print "warm: " trimmed(substr($0, 1, 50)) ", " trimmed(substr($0, 52, 12)), "ms", "larder", n, number[2], "less" }
	' "$work/warm" >>"$work/results"
while IFS=$'\t' read -r program step cpu _ memory written; do
	case $step in
	index | "no change" | "1 % changed" | "one message" | "label 10 %" | "undo of it" | "content as in mu" | "read and parse") ;;
	*) step="search: $step" ;;
	esac
	result "$step, CPU time" ms "$program" "$messages" "$cpu"
	case $step in
	index | "no change" | "1 % changed" | "one message" | "label 10 %" | "undo of it")
		result "$step, anonymous memory" MB "$program" "$messages" "$memory"
		result "$step, written" MB "$program" "$messages" "$written"
		;;
	esac
done <"$figures"
leave_results messages

awk -F '\t' -v messages="$messages" -v missed="$missed" '
	{ cpu[$1, $2] = $3; wall[$1, $2] = $4; memory[$1, $2] = $5; written[$1, $2] = $6; if (!($2 in seen)) { seen[$2] = ++n; step[n] = $2 } }
	function ms(x) { return x == "" || x == "-" ? "-" : sprintf("%.1f", x) }
	function goal(name, value, bound,  is_missed) {
		is_missed = value == "-" || value > bound
		if (is_missed) missed = 1
		printf "%s: %s, goal %.1f%s\n", name, ms(value), bound, (is_missed ? " missed" : "")
	}
	function ratio(a, b) { return a == "" || !b ? "-" : sprintf("%.1f", a / b) }
	END {
		printf "\n%-18s %10s %10s %10s %10s %10s\n", "CPU ms", "larder", "mu", "notmuch", "mu/larder", "notmuch/l."
		for (i = 1; i <= n; i++) {
			s = step[i]
			if (("larder", s) in cpu)
				printf "%-18s %10s %10s %10s %10s %10s\n", s, ms(cpu["larder", s]), ms(cpu["mu", s]), ms(cpu["notmuch", s]),
					ratio(cpu["mu", s], cpu["larder", s]), ratio(cpu["notmuch", s], cpu["larder", s])
		}
		printf "%-18s %10s\n", "read and parse", ms(cpu["floor", "read and parse"])
		printf "\n%-18s %10s %10s %10s   anonymous MB / MB written\n", "", "larder", "mu", "notmuch"
		for (i = 1; i <= n && i <= 7; i++) {
			s = step[i]
			if (("larder", s) in cpu)
				printf "%-18s %10s %10s %10s\n", s, ms(memory["larder", s]) "/" ms(written["larder", s]),
					ms(memory["mu", s]) "/" ms(written["mu", s]), ms(memory["notmuch", s]) "/" ms(written["notmuch", s])
		}
		if (messages != 100000) exit
		print ""
		own = cpu["larder", "index"]
		if (cpu["mu", "index"] != "") goal("CPU ms of a first index, 1/16 of that of mu", own, cpu["mu", "index"] / 16)
		if (cpu["mu", "index"] != "") goal("CPU ms of a first index of what mu indexes, 1/22 of that of mu", cpu["larder", "content as in mu"], cpu["mu", "index"] / 22)
		if (cpu["notmuch", "index"] != "") goal("CPU ms of a first index, 1/20 of that of notmuch", own, cpu["notmuch", "index"] / 20)
		goal("anonymous MB of a first index", memory["larder", "index"], 100)
		goal("CPU ms without a change", cpu["larder", "no change"], 50)
		goal("CPU ms of 1 % of changes", cpu["larder", "1 % changed"], 500)
		goal("MB written for 1 % of changes", written["larder", "1 % changed"], 40)
		goal("CPU ms of a label on 10 %", cpu["larder", "label 10 %"], 100)
		exit missed
	}' "$figures"
