#!/bin/bash
# M01: peak memory of imports of valid and of malformed files; traces left by a purge.
#
#   bench/M01-import.sh
#
# Prints for each input the peak of anonymous memory, the exit code, the time and the first messages. Then purges a
# card with a unique word and searches every file of the data directory for the word. The exit code is 1 if a goal is
# missed: 64 MB for 102,400 contacts; exit code 3 for malformed input, with little more memory than twice --max-item
# (32 MB); no trace of the word after the purge.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
build
workplace
machine
missed=0

import() { # NAME GOAL-MB CODE FILE [OPTION...]
	local name=$1 goal=$2 expected=$3 file=$4 code=0 anonymous verdict
	shift 4
	rm -rf "$LARDER_DIR"
	"$larder" --format json measure run -- "$larder" --quiet import "$file" "$@" >"$work/out" 2>"$work/messages" || code=$?
	anonymous=$(get anonymous_bytes <"$work/out")
	result "import of $name, anonymous memory" bytes larder - "$anonymous"
	verdict=ok
	if [ "$code" != "$expected" ] || ! awk -v a="$anonymous" -v g="$goal" 'BEGIN { exit !(a != "-" && a <= g * 1e6) }'; then
		verdict=MISSED
		missed=1
	fi
	printf '%-46s %8s %8s %5s %9s  %s\n' "$name" "$(megabytes <<<"$anonymous")" "$goal" "$code" \
		"$(get wall_us <"$work/out" | awk '{ printf "%.0f", $1 / 1e3 }')" "$verdict"
	head -2 "$work/messages" | cut -c1-150 | sed "s|$work/||; s/^/    /"
	[ "$(wc -l <"$work/messages")" -le 2 ] || echo "    ... $(wc -l <"$work/messages") messages"
	if ! "$larder" check >"$work/check" 2>&1; then
		sed 's/^/    check: /' "$work/check"
		missed=1
	fi
}

card() { # UID: wraps the lines on standard input in a card
	printf 'BEGIN:VCARD\r\nVERSION:3.0\r\nUID:%s\r\nFN:Big %s\r\n' "$1" "$1"
	cat
	printf 'END:VCARD\r\n'
}

repeat() { # TEXT BYTES: repeats a line up to a number of bytes
	yes "$1" 2>/dev/null | head -c "$2" || true
}

printf '\n%-46s %8s %8s %5s %9s\n' "import of" "anon MB" "goal MB" exit ms
many=$(book 102400)
import "102,400 contacts" 64 0 "$many"
# The goal is that of the default batch size; the largest batch may not use much more.
import "102,400 contacts, batches of 4000" 64 0 "$many" --batch 4000
rm -f "$many"

head -c 100000000 /dev/urandom >"$work/noise.vcf"
import "100 MB of noise" 64 3 "$work/noise.vcf"
import "100 MB of noise, rejects kept" 64 3 "$work/noise.vcf" --rejects "$work/rejects"
cmp -s "$work/noise.vcf" "$work/rejects" || echo "    note: the rejects have $(stat -c %s "$work/rejects") of $(stat -c %s "$work/noise.vcf") bytes"
rm -f "$work/noise.vcf" "$work/rejects"
head -c 100000000 /dev/zero >"$work/zeros.vcf"
import "100 MB of zeros" 64 3 "$work/zeros.vcf"
tr '\0' a <"$work/zeros.vcf" >"$work/line.vcf"
import "100 MB in one line" 64 3 "$work/line.vcf"
rm -f "$work/zeros.vcf" "$work/line.vcf"
repeat 'NOTE:this line is outside every card' 100000000 >"$work/lines.vcf"
import "100 MB of lines outside cards" 64 3 "$work/lines.vcf"
repeat $'BEGIN:VCARD\r\nVERSION:3.0\r\nEND:VCARD\r' 20000000 >"$work/empty.vcf"
import "20 MB of empty cards" 64 3 "$work/empty.vcf"
repeat 'END:VCARD' 20000000 >"$work/ends.vcf"
import "20 MB of END lines" 64 3 "$work/ends.vcf"
rm -f "$work/lines.vcf" "$work/empty.vcf" "$work/ends.vcf"

{ printf 'PHOTO;ENCODING=b:'; head -c 37500000 /dev/urandom | base64 -w 74 | sed '1!s/^/ /'; } | card folded >"$work/photo.vcf"
import "a card of 50 MB" 70 3 "$work/photo.vcf"
{ printf 'NOTE:'; head -c 50000000 /dev/zero | tr '\0' n; echo; } | card line >"$work/note.vcf"
import "a card of 50 MB, in one line" 70 3 "$work/note.vcf" --rejects "$work/rejects"
cmp "$work/note.vcf" "$work/rejects" || missed=1
import "a card of 50 MB, with --max-item 64M" 500 0 "$work/note.vcf" --max-item 64M
rm -f "$work/photo.vcf" "$work/note.vcf" "$work/rejects"
{ printf 'NOTE:'; head -c 30000000 /dev/zero | tr '\0' n; echo; } | card line >"$work/note.vcf"
import "a card of 30 MB" 200 0 "$work/note.vcf"
rm -f "$work/note.vcf"
seq 1000000 | sed 's/.*/TEL:+43 1 &\r/' | card million >"$work/million.vcf"
import "a card with a million properties" 200 3 "$work/million.vcf"
rm -f "$work/million.vcf"
{ printf 'ORG:'; seq 1000000 | tr '\n' ';'; echo; } | card parts >"$work/parts.vcf"
import "a card with a value of a million parts" 400 0 "$work/parts.vcf"
{ printf 'TEL'; seq 1000000 | sed 's/.*/;TYPE=t&/' | tr -d '\n'; echo ':1'; } | card parameters >"$work/parameters.vcf"
import "a card with a million parameters" 400 0 "$work/parameters.vcf"
rm -f "$work/parts.vcf" "$work/parameters.vcf"

# ---- purge ---------------------------------------------------------------------------------------

printf '\n%s\n' "purge of a card that was modified, removed and added again"
token=Zwetschkenknoedel
rm -rf "$LARDER_DIR"
planted() { # REVISION
	{ printf 'NICKNAME:%s %s\r\nNOTE:' $token "$1"; head -c 70000 /dev/urandom | base64 -w 0; printf ' %s\r\n' $token; } | card planted
}
count_files_with_word() {
	{ grep -rlai "$token" "$LARDER_DIR" || true; } | wc -l
}
"$larder" --quiet import "$(book 12800)" >/dev/null
for revision in 1 2 3; do
	planted $revision >"$work/planted.vcf"
	"$larder" --quiet import "$work/planted.vcf" >/dev/null
done
"$larder" --quiet remove uid:planted >/dev/null
"$larder" --quiet import "$work/planted.vcf" >/dev/null
before=$(count_files_with_word)
"$larder" --format json measure run -- "$larder" --quiet purge --yes uid:planted >"$work/out" || missed=1
after=$(count_files_with_word)
echo "files with the word: before $before, after $after; $(get wall_us <"$work/out" | awk '{ printf "%.0f ms", $1 / 1e3 }')"
[ "$before" -gt 0 ] && [ "$after" = 0 ] || missed=1
"$larder" check
leave_results ""
[ $missed = 0 ] && echo "all goals are met" || echo "GOALS ARE MISSED"
exit $missed
