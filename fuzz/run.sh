#!/bin/bash
# Fuzzes one parser, or all of them in turn: fuzz/run.sh TARGET|all [SECONDS], by default 60 seconds each.
#
# It needs a stable Rust and a C++ compiler (libFuzzer is built from source), no nightly and no cargo-fuzz: the
# coverage instrumentation is an LLVM pass that rustc runs on request. Inputs that reach new code are added to
# target/fuzz-corpus/TARGET, which starts with the samples. An input that makes a target panic is written to
# target/fuzz-found, and the exit code is 1. To repeat it, run the program with the name of that file.
set -euo pipefail
cd "$(dirname "$0")/.."
all=$(cd fuzz/src/bin && printf '%s ' *.rs | sed 's/\.rs / /g')
wanted=${1:-}
seconds=${2:-60}
case " $all all " in
*" $wanted "*) [ -n "$wanted" ] ;;
*) false ;;
esac || {
	echo "fuzz/run.sh TARGET|all [SECONDS], where TARGET is one of: $all" >&2
	exit 2
}
if ! command -v c++ >/dev/null; then
	echo "left out: fuzzing (no C++ compiler: apt-get install g++)" >&2
	exit 0
fi
[ "$wanted" = all ] || all=$wanted

host=$(rustc -vV | sed -n 's/^host: //p')
base=${CARGO_TARGET_DIR:-$PWD/target}
instrumented="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
	-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
# Assertions of mail-parser fail on damaged messages, which it then parses all the same.
assertions=(--config profile.release.debug-assertions=true --config profile.release.overflow-checks=true
	--config 'profile.release.package.mail-parser.debug-assertions=false')
# --target: build scripts and macros run on the host and must not be instrumented.
bins=$(printf -- '--bin %s ' $all)
RUSTFLAGS=$(tr -s '\n\t' '  ' <<<"$instrumented") CARGO_TARGET_DIR=$base/fuzz CARGO_PROFILE_RELEASE_LTO=off \
	cargo build --quiet --release "${assertions[@]}" --target "$host" -p larder-fuzz --features libfuzzer $bins

found=0
for target in $all; do
	corpus=$base/fuzz-corpus/$target
	mkdir -p "$corpus" "$base/fuzz-found"
	# Queries and addresses are a line long; the samples would only slow them down.
	seeds=samples/contacts
	length=8192
	case $target in line | mail_query | maildir_name | sexp | address | stored_formats | rule | series | phrase) seeds= length=256 ;; esac
	case $target in fold | decode | label_dump | commit | bundle) length=1024 ;; esac
	case $target in bundle | hg_* | pack_object) seeds=fuzz/seeds/$target ;; esac
	case $target in message | mbox | header_fields | html | snippets | tokenizer) seeds=samples/mail ;; esac
	echo "== $target, $seconds s"
	log=$base/fuzz-found/$target.log
	"$base/fuzz/$host/release/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
		-max_len=$length -artifact_prefix="$base/fuzz-found/$target-" -print_final_stats=1 \
		-dict=fuzz/words.dict "$corpus" $seeds >"$log" 2>&1 || found=1
	grep -aE -A3 'panicked' "$log" || true
	grep -aE 'ERROR|SUMMARY|Test unit written|DONE|stat::(number|average)' "$log" || true
done
exit $found
