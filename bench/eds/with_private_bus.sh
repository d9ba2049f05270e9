#!/bin/bash
# Runs a command on a private session bus, with a private home directory: bench/eds/with_private_bus.sh COMMAND [ARGUMENT...]
# The services that the bus starts end with it; the home directory, which is in TMPDIR, is removed.
set -euo pipefail
private=$(mktemp -d)
trap 'rm -rf "$private"' EXIT
mkdir -p "$private/home/data" "$private/home/config" "$private/home/cache"
mkdir -m 700 "$private/run"
env -u DISPLAY -u WAYLAND_DISPLAY \
	HOME="$private/home" XDG_DATA_HOME="$private/home/data" XDG_CONFIG_HOME="$private/home/config" \
	XDG_CACHE_HOME="$private/home/cache" XDG_RUNTIME_DIR="$private/run" \
	LANG=C.UTF-8 GIO_USE_VFS=local GSETTINGS_BACKEND=memory \
	dbus-run-session -- "$@" 2>"$private/messages" || {
	cat "$private/messages" >&2
	exit 1
}
