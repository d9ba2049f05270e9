#!/bin/bash
# Runs a command on the current session bus with `larder serve --eds` in place of evolution-data-server:
# with_larder_serve.sh LARDER COMMAND [ARGUMENT...]
set -euo pipefail
larder=$1
shift
"$larder" --quiet serve --eds &
served=$!
trap 'kill $served 2>/dev/null && wait $served || true' EXIT
owned() {
	dbus-send --session --print-reply --dest=org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus.NameHasOwner \
		"string:org.gnome.evolution.dataserver.$1" 2>/dev/null | grep -q "boolean true"
}
for ((i = 0; i < 200; i++)); do
	owned Sources5 && owned AddressBook10 && break
	sleep 0.05
done
"$@"
