#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Gets what it takes to build a DPDK driver outside of DPDK: the internal headers of ethdev and of
# the vdev bus, and the tool that writes what dpdk-pmdinfo.py shows. Debian's packages do not have
# them (DPDK was built without enable_driver_sdk), its source package has: that of the version that
# is installed, without touching the machine's package sources.
#
#   rocade-driver-sdk.sh [FOLDER]    build/dpdk-driver-sdk of the checkout, unless said otherwise
#
# ROCADE_DPDK_SOURCE names an unpacked source tree of DPDK (of the line that is installed: 22.11,
# 24.11) to take them from, where no source package is to be had.
#
# Does nothing when the folder holds them for this version already. Needs no root.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
. "$here/rocade-root.sh"
folder=${1:-$here/../build/dpdk-driver-sdk}
files=(
	lib/ethdev/ethdev_driver.h
	lib/ethdev/ethdev_vdev.h
	lib/eal/include/dev_driver.h
	drivers/bus/vdev/bus_vdev_driver.h
	buildtools/gen-pmdinfo-cfile.py
	buildtools/pmdinfogen.py
	buildtools/coff.py
)

fail() {
	echo "rocade-driver-sdk: $*" >&2
	exit 1
}

version=$(dpkg-query -W -f '${Version}' libdpdk-dev 2>/dev/null) ||
	fail "libdpdk-dev is not installed: usertools/rocade-setup.sh build"
[ "$(cat "$folder/version" 2>/dev/null)" = "$version" ] && exit 0
# An update replaces a source package before all machines have it. Headers of other releases of the
# same line (22.11, 24.11) serve as well: what drivers are compiled with stays within it.
line=${version%%.*}.$(cut -d. -f2 <<<"$version")

# keep FOLDER: takes the files from a source tree, all or none, and notes for what version
keep() {
	rm -rf "$folder"
	mkdir -p "$folder" && (cd "$1" && cp "${files[@]}" "$folder") &&
		echo "$version" >"$folder/version"
}

folder=$(readlink -m "$folder")
if [ -n "${ROCADE_DPDK_SOURCE:-}" ]; then
	given=$(cat "$ROCADE_DPDK_SOURCE/VERSION" 2>/dev/null) ||
		fail "ROCADE_DPDK_SOURCE=$ROCADE_DPDK_SOURCE is no source tree of DPDK"
	if [[ $given == "$line".* ]]; then
		keep "$ROCADE_DPDK_SOURCE" || fail "ROCADE_DPDK_SOURCE has not all of the files"
		echo "rocade-driver-sdk: DPDK $version is installed, headers are those of $given"
		exit 0
	fi
	echo "rocade-driver-sdk: ROCADE_DPDK_SOURCE has DPDK $given, and $version is installed:" \
		"the source package is looked for"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/parts" "$work/lists/partial" "$work/source"
for list in /etc/apt/sources.list.d/*.sources; do
	[ -e "$list" ] && sed 's/^Types:.*/Types: deb-src/' "$list" >"$work/parts/${list##*/}"
done
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
	[ -e "$list" ] && sed -n 's/^deb /deb-src /p' "$list" >"$work/parts/${list##*/}.list"
done
options=(-o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$work/parts"
	-o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o "APT::Sandbox::User=root")
mkdir -p "$work/cache/archives/partial"
cd "$work/source"
apt-get "${options[@]}" update >"$work/log" 2>&1 || true
fetched=
for candidate in "$version" $(apt-cache "${options[@]}" showsrc dpdk 2>/dev/null |
	sed -n "s/^Version: \(${line//./\\.}[.-].*\)/\1/p" | sort -rVu); do
	if apt-get "${options[@]}" source --download-only "dpdk=$candidate" >>"$work/log" 2>&1; then
		fetched=$candidate
		break
	fi
	rm -f dpdk_*
done
if [ -z "$fetched" ]; then
	grep -E '^(E|W): ' "$work/log" | sort -u >&2 || true
	fail "the source package of DPDK $version can't be had"
fi
[ "$fetched" = "$version" ] ||
	echo "rocade-driver-sdk: DPDK $version is installed, headers are those of $fetched"
tar -xf dpdk_*.orig.tar.* --strip-components=1 --wildcards "${files[@]/#/*/}" ||
	fail "the source package of DPDK $version is not as expected"
keep . || fail "the headers can not be written to $folder"
