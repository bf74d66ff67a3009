#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Compares Rocade with what else this machine has, in one run, one after the other, round by round:
# perftest on Rocade (embedded wire, and veth between two namespaces), TCP over the same kind of
# veth (iperf3, qperf), UCX over TCP, and the kernel's rxe where there is one. Writes a table and
# plots into a folder.
#
#   usertools/rocade-compare.sh [--rounds N] [--seconds S] [--quick] [--rxe-peer KIT] [FOLDER]
#
# KIT boots a Linux kernel with rdma_rxe in a virtual machine, for machines whose kernel has none.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
build=${ROCADE_BUILD_DIR:-$root/build}/release

. "$root/usertools/rocade-root.sh"

case " $* " in
*" -h "* | *" --help "*) exec python3 "$root/usertools/rocade_compare.py" --help ;;
esac
if [ "$(id -u)" -ne 0 ]; then
	has_rights || {
		echo "rocade-compare: engines and namespaces need root's rights: there is" \
			"neither sudo nor doas here" >&2
		exit 1
	}
	as_root "$0" "$@"
	exit
fi
"$root/usertools/rocade-setup.sh" build demo compare
"$root/usertools/rocade-driver-sdk.sh" >/dev/null
[ -e "$build/build.ninja" ] || meson setup "$build" "$root" -Dtests=false >/dev/null
ninja -C "$build" >/dev/null
exec python3 "$root/usertools/rocade_compare.py" --build "$build" "$@"
