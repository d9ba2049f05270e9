#!/bin/sh
# Runs the unmodified test programs of evolution-data-server's address books against `larder serve --eds`, and without
# program names also against evolution-data-server itself. Each program has a bus and a home directory of its own.
#
#     scripts/eds-clients.sh target/debug/larder                     all test-book-client-* programs, with the number that pass
#     scripts/eds-clients.sh target/debug/larder test-book-client-get-view ...      these; fails if one of them does not pass
#
# Exit codes: 0 all named programs pass; 1 a named program does not pass; 77 a needed program is not installed.
set -eu

installed=/usr/share/installed-tests/evolution-data-server
larder=${1:?usage: eds-clients.sh LARDER [PROGRAM...]}
[ -x "$larder" ] || { echo "$larder is not an executable file" >&2; exit 2; }
larder=$(realpath "$larder")
shift

missing() {
    echo "$1 is not installed: apt-get install $2" >&2
    exit 77
}
command -v dbus-run-session >/dev/null || missing dbus-run-session dbus
[ -d "$installed" ] || missing "the test programs of evolution-data-server" evolution-data-server-tests
locale -a 2>/dev/null | grep -qi '^en_us\.utf-\{0,1\}8$' ||
    echo "note: one program needs the locale en_US.UTF-8, which is missing; run localedef -i en_US -f UTF-8 en_US.UTF-8" >&2

named=$#
if [ "$named" = 0 ]; then
    # shellcheck disable=SC2046  # the names of the programs have no blanks
    set -- $(cd "$installed" && ls test-book-client-*.test | sed 's/\.test$//')
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# Starts a bus with the system's services, or with larder's only.
bus() { # SERVICES
    cat <<XML
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type><keep_umask/><listen>unix:tmpdir=$dir</listen><auth>EXTERNAL</auth>
  $1
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
  </policy>
</busconfig>
XML
}
bus "<standard_session_servicedirs/>" >"$dir/eds.conf"
bus "<servicedir>$dir/services</servicedir>" >"$dir/larder.conf"

# Runs one program, prints the number of its tests that passed, and fails if the program fails.
try() { # SERVICE PROGRAM
    home=$dir/home
    rm -rf "$home"
    mkdir -p "$home/run" "$home/tmp" "$home/.local/share" "$home/.config" "$home/.cache"
    chmod 700 "$home/run"
    "$larder" --quiet --data-dir "$home/.local/share/larder" serve --eds --service-files "$dir/services" >/dev/null
    command=$(sed -n 's/^Exec=//p' "$installed/$2.test")
    code=0
    (
        cd "$home/tmp"
        exec env -i PATH="$PATH" HOME="$home" TMPDIR="$home/tmp" XDG_RUNTIME_DIR="$home/run" \
            XDG_DATA_HOME="$home/.local/share" XDG_CONFIG_HOME="$home/.config" XDG_CACHE_HOME="$home/.cache" \
            LANG=C.UTF-8 GIO_USE_VFS=local GSETTINGS_BACKEND=memory ${LLVM_PROFILE_FILE:+LLVM_PROFILE_FILE="$LLVM_PROFILE_FILE"} \
            timeout 60 dbus-run-session --config-file="$dir/$1.conf" -- sh -c "exec $command"
    ) >"$dir/out" 2>&1 </dev/null || code=$?
    passed=$(grep -c '^ok [0-9]' "$dir/out" || true)
    if [ "$code" = 0 ]; then
        echo "pass $passed"
        return 0
    fi
    echo "fail after $passed"
    [ "$named" = 0 ] || sed 's/^/    /' "$dir/out" | tail -n 25 >&2
    return 1
}

if [ "$named" != 0 ]; then
    failed=0
    for program in "$@"; do
        by_larder=$(try larder "$program") || failed=1
        printf '%-44s %s\n' "$program" "$by_larder"
    done
    exit $failed
fi

printf '%-44s %-24s %s\n' program evolution-data-server larder
theirs=0 ours=0
for program in "$@"; do
    by_eds=$(try eds "$program") && theirs=$((theirs + 1))
    by_larder=$(try larder "$program") && ours=$((ours + 1))
    printf '%-44s %-24s %s\n' "$program" "$by_eds" "$by_larder"
done
printf '%-44s %-24s %s\n' "programs that pass" "$theirs of $#" "$ours of $#"
