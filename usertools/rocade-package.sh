#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds Debian packages of Rocade for the system it runs on, and has lintian look at them.
#
#   usertools/rocade-package.sh [--as VERSION] [FOLDER]
#
# They land in FOLDER (build/packages of the checkout, unless said otherwise). What is packaged is
# the checkout as it is: what git tracks, and what is new and not ignored. The packaging is in
# usertools/packaging/debian. Fetches root's rights by sudo or doas to install what this takes.
#
# Exit status: 0 when all was built and lintian has neither error nor warning.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
. "$root/usertools/rocade-root.sh"
version=
folder=

usage() {
	echo "usage: rocade-package.sh [--as VERSION] [FOLDER]" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	case $1 in
	--as)
		version=${2:-}
		shift
		[ $# -gt 0 ] && [ -n "$version" ] || usage
		;;
	-*) usage ;;
	*) folder=$1 ;;
	esac
	shift
done
folder=$(realpath -m "${folder:-${ROCADE_BUILD_DIR:-$root/build}/packages}")
version=${version:-$(sed -n "s/^ *version: '\([^']*\)',$/\1/p" "$root/meson.build" | head -1)}

"$root/usertools/rocade-setup.sh" build package
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source=$work/rocade-$version
mkdir -p "$source" "$folder"

tree_files "$root" | tar -C "$root" --null -T - -c | tar -C "$source" -x
cp -r "$source/usertools/packaging/debian" "$source/debian"

# Where the headers for DPDK drivers can't be had all but the drivers is built.
export DEB_BUILD_PROFILES=${DEB_BUILD_PROFILES:-}
sdk=${ROCADE_BUILD_DIR:-$root/build}/dpdk-driver-sdk
if "$root/usertools/rocade-driver-sdk.sh" "$sdk"; then
	mkdir -p "$source/build"
	cp -r "$sdk" "$source/build/dpdk-driver-sdk"
else
	echo "rocade-package: no headers for DPDK drivers: rocade-dpdk is NOT built" >&2
	DEB_BUILD_PROFILES+=" pkg.rocade.nodrivers"
fi

# The same source gives the same packages: the date is that of the last change.
date=$(date -R)
if [ -e "$root/.git" ]; then
	date=$(git -c safe.directory="$root" -c log.showSignature=false -C "$root" \
		log -1 --format=%cD 2>/dev/null || echo "$date")
fi
maintainer=$(sed -n 's/^Maintainer: //p' "$source/debian/control")
cat >"$source/debian/changelog" <<END
rocade ($version) $(. /etc/os-release && echo "$VERSION_CODENAME"); urgency=medium

  * Built from a checkout by usertools/rocade-package.sh.

 -- $maintainer  $date
END

echo "rocade-package: building rocade $version"
cd "$source"
if ! dpkg-buildpackage -b -us -uc >"$work/log" 2>&1; then
	tail -50 "$work/log" >&2
	cp "$work/log" "$folder/rocade_$version.log"
	echo "rocade-package: the build failed, all of it is in $folder/rocade_$version.log" >&2
	exit 1
fi
rm -f "$folder"/{lib,}rocade*_"${version}"_*
cp "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$folder"
lintian --fail-on error,warning --tag-display-limit 0 "$folder"/rocade_"${version}"_*.changes
ls "$folder"/*_"${version}"_*.deb
