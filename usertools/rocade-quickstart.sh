#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# From a fresh machine to the main job, as far as it exists: installs what is needed, builds,
# starts the engine on its embedded wire, shows it, and stops it again.
#
#   sudo usertools/rocade-quickstart.sh
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
build=${ROCADE_BUILD_DIR:-$root/build}/release
rocade=$root/usertools/rocade

"$root/usertools/rocade-setup.sh" build
echo "rocade-quickstart: building in $build"
if [ ! -e "$build/build.ninja" ]; then
	meson setup "$build" "$root" -Dtests=false >/dev/null
fi
ninja -C "$build" >/dev/null

# run COMMAND...: shows a command and what it prints
run() {
	echo
	echo "\$ $*"
	"$@"
}

run "$build/app/rocade-dump/rocade-dump" "$root/test/vectors/kept-v4.pcap" | tail -n 5
run "$rocade" up
trap '"$rocade" down' EXIT
run "$rocade" -d link show
run "$rocade" dev
run "$rocade" engine
run "$rocade" doctor || true
echo
echo "rocade-quickstart: the engine works; stopping it (sudo usertools/rocade up starts it again)"
