#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the Debian packages that Rocade needs.
#
#   rocade-setup.sh build         to build and run it
#   rocade-setup.sh build test    to run its tests as well
#   rocade-setup.sh build demo    for the quickstart: programs that use RDMA
#   rocade-setup.sh build test ci what only continuous integration runs: style, fuzzing, and
#                                 servers that Debian starts where they are installed
#   rocade-setup.sh build demo compare  what rocade-compare.sh and test/perf measure with
#   rocade-setup.sh build package to make Debian packages of it
#   rocade-setup.sh on            to try it on another Debian (rocade-test.sh --on)
#   rocade-setup.sh test interop  to talk to a Linux kernel's rxe in a virtual machine
#
# Does nothing, and needs neither root nor a network, when all of them are there. Fetches root's
# rights by sudo or doas otherwise.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/rocade-root.sh"

declare -A packages=(
	[build]="gcc libc6-dev meson ninja-build pkgconf python3
		libisal-dev libjansson-dev libpcap-dev
		dpdk libdpdk-dev python3-pyelftools libnuma-dev libmnl-dev
		libsystemd-dev libseccomp-dev xz-utils
		clang libbpf-dev linux-libc-dev libibverbs-dev libibumad-dev librdmacm-dev"
	[demo]="ibverbs-utils rdmacm-utils perftest iperf3 iproute2"
	[test]="g++ libcunit1-dev tshark iproute2 iputils-ping ibverbs-utils rdmacm-utils perftest
		infiniband-diags valgrind ibverbs-providers python3-pyverbs driverctl
		man-db zsh tmux python3-prometheus-client
		python3-pytest python3-yaml"
	[ci]="clang-format doxygen libclang-rt-dev systemd nginx redis-server curl iperf3
		postgresql"
	[compare]="qperf ucx-utils gnuplot-nox rdma-core dpdk-dev"
	[package]="build-essential debhelper dh-python dpkg-dev fakeroot lintian"
	[on]="debootstrap debian-archive-keyring"
	[interop]="qemu-system-x86 tcpdump busybox-static cpio kmod rdma-core rdmacm-utils xz-utils
		zstd iperf3"
)

missing=()
for purpose in "$@"; do
	if [ -z "${packages[$purpose]:-}" ]; then
		echo "rocade-setup: no such purpose: $purpose (there are: ${!packages[*]})" >&2
		exit 2
	fi
	for package in ${packages[$purpose]}; do
		if ! dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null |
			grep -qx installed; then
			missing+=("$package")
		fi
	done
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
	echo "rocade-setup: no apt-get here; install what these Debian packages hold:" >&2
	echo "  ${missing[*]}" >&2
	exit 1
fi
if ! has_rights; then
	echo "rocade-setup: there is neither sudo nor doas here; root is to install" \
		"${missing[*]}" >&2
	exit 1
fi
echo "rocade-setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { as_root apt-get update &&
	as_root apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
	cat "$log" >&2
	exit 1
fi
