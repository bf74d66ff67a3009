#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# From a fresh machine to the main job, as far as it exists: installs what is needed, builds, and
# shows rocade-dump at work on packets of a kernel's rdma_rxe.
#
#   sudo usertools/rocade-quickstart.sh
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
build=${ROCADE_BUILD_DIR:-$root/build}/release

"$root/usertools/rocade-setup.sh" build
echo "rocade-quickstart: building in $build"
if [ ! -e "$build/build.ninja" ]; then
	meson setup "$build" "$root" -Dtests=false >/dev/null
fi
ninja -C "$build" app/rocade-dump/rocade-dump >/dev/null

dump=$build/app/rocade-dump/rocade-dump
for capture in "$root"/test/vectors/kept-*.pcap; do
	echo
	echo "\$ rocade-dump $capture"
	"$dump" "$capture"
done
