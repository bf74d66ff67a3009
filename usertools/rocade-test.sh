#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs what the tests need, builds Rocade twice (release; address and undefined-behaviour
# sanitizers), runs all suites in both, and prints the totals.
#
#   usertools/rocade-test.sh [--ci]
#   usertools/rocade-test.sh --short
#   usertools/rocade-test.sh --symbols
#   usertools/rocade-test.sh --on bookworm|trixie [--short]
#   usertools/rocade-test.sh --packages
#
# Fetches root's rights by sudo or doas: to install, and to run the suites, which make network
# namespaces and the like. What is built belongs to who builds.
#
#   --ci  warnings are errors, style is checked, the fuzz targets run for a fixed number of
#         inputs (this needs clang), and a Linux kernel's rxe is talked to for a short while, where
#         there is a kit to boot one (doc/interop.md has the long form); and of the Debian that
#         this is not, a bare one is made for the short form, where it can be fetched
#
#   --short  one build, with warnings as errors, and of the suites unit, sim and symbols
#
#   --on  makes a bare Debian in a scratch folder and runs both of the README's commands there,
#         with mounts, processes, a network and a /run of its own; nothing stays. With --short, the
#         second one is the short form
#
#   --symbols  no suites: fetches all packages of the distribution that use RDMA and looks whether
#         our libraries have what their files import (doc/symbols.md). Needs no root
#
#   --packages  instead of all that: the packages of this release of Debian are built, installed,
#         upgraded and purged in a bare system (test/packages/packages.sh), which takes debootstrap
#
# Exit status: 0 when every build worked and no test failed; 77 when --on or --packages can't fetch
# Debian here.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
. "$root/usertools/rocade-root.sh"
builds=${ROCADE_BUILD_DIR:-$root/build}
purposes=(build test)
options=(-Dtests=true)
ci=false
short=false
symbols=false
if [ "${1:-}" = --on ]; then
	shift
	exec "$root/usertools/rocade-on.sh" "$@"
fi
if [ $# -gt 1 ]; then
	echo "rocade-test: one of --ci, --short, --symbols and --packages at a time" >&2
	exit 2
fi
for arg in "$@"; do
	case $arg in
	--ci)
		ci=true
		purposes+=(ci compare)
		options+=(-Dwerror=true)
		;;
	--short)
		short=true
		options+=(-Dwerror=true)
		;;
	--symbols)
		symbols=true
		purposes=(build)
		[ -e "$builds/release/build.ninja" ] && options=() || options=(-Dtests=false)
		;;
	--packages)
		"$root/usertools/rocade-setup.sh" on
		release=$(. /etc/os-release && echo "$VERSION_CODENAME")
		as_root "$root/test/packages/packages.sh" "$release"
		exit
		;;
	*)
		echo "usage: rocade-test.sh [--ci | --short | --symbols | --packages |" \
			"--on bookworm|trixie [--short]]" >&2
		exit 2
		;;
	esac
done

if ! $symbols && ! has_rights; then
	echo "rocade-test: the suites need root's rights (network namespaces and the like):" \
		"there is neither sudo nor doas here" >&2
	exit 1
fi
"$root/usertools/rocade-setup.sh" "${purposes[@]}"
mkdir -p "$builds"

# compile NAME [meson option...]: configures or reconfigures builds/NAME and compiles it
compile() {
	local dir=$builds/$1
	shift
	local mode=()
	[ -e "$dir/build.ninja" ] && mode=(--reconfigure)
	if ! meson setup "${mode[@]}" "$dir" "$root" "${options[@]}" "$@" \
		>"$builds/setup.log" 2>&1; then
		cat "$builds/setup.log" >&2
		return 1
	fi
	echo "rocade-test: building in $dir"
	ninja -C "$dir" --quiet
}
if $symbols; then
	compile release || exit 1
	# Debian's own, which has pyelftools.
	exec /usr/bin/python3 "$root/test/system/symbols.py" \
		"$builds"/release/lib/lib{ibverbs.so.1,rdmacm.so.1,ibumad.so.3}
fi

# Without them all but the drivers is built, and the tests that need one are skipped.
"$root/usertools/rocade-driver-sdk.sh" "$builds/dpdk-driver-sdk" ||
	echo "rocade-test: no headers for DPDK drivers: net_impair is NOT built, and NOT tested"
options+=("-Ddriver_sdk=$builds/dpdk-driver-sdk")
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
logs=()
broken=0

# suites NAME [meson argument...]: runs the tests of builds/NAME that the arguments choose; without
# any, all but those that boot a kernel, and those that do all again with engines of few rights
suites() {
	local dir=$builds/$1
	shift
	[ $# -gt 0 ] || set -- --no-suite interop --no-suite confined
	logs+=("$dir/meson-logs/testlog.json")
	rm -f "$dir/meson-logs/testlog.json"
	as_root meson test -C "$dir" --no-rebuild --print-errorlogs "$@" || broken=1
}

# The short form of what a kernel's rxe is asked.
interop() {
	local dir=$builds/release
	local log=$dir/meson-logs/interop
	logs+=("$log.json")
	rm -f "$log.json"
	as_root meson test -C "$dir" --no-rebuild --print-errorlogs --logbase interop \
		interop_short || broken=1
	if grep -q 'NO INTEROPERABILITY TESTS' "$log.txt"; then
		echo "rocade-test: NOT TESTED WITH A KERNEL: $(sed -n \
			's/.*NO INTEROPERABILITY TESTS: //p' "$log.txt" | head -1)"
	fi
}

# What judges metrics: of Debian's prometheus that program alone, as the package starts a server.
fetch_promtool() {
	local folder=$builds/promtool
	[ -x "$folder/usr/bin/promtool" ] && return
	rm -rf "$folder"
	mkdir -p "$folder"
	(cd "$folder" && apt-get download prometheus && dpkg-deb -x prometheus_*.deb . &&
		rm prometheus_*.deb usr/bin/prometheus) >"$builds/setup.log" 2>&1
}

if $ci && ! command -v promtool >/dev/null && ! fetch_promtool; then
	echo "rocade-test: no promtool to be had: metrics are NOT judged by it"
fi

if $short; then
	compile release && suites release --suite unit --suite sim --suite symbols || broken=1
else
	compile release && suites release || broken=1
	compile asan -Dbuildtype=debugoptimized -Db_sanitize=address,undefined &&
		suites asan || broken=1
fi
# The rings between engine and client, and an engine with live clients, watched for races.
rings() {
	local dir=$builds/tsan
	local mode=()
	[ -e "$dir/build.ninja" ] && mode=(--reconfigure)
	meson setup "${mode[@]}" "$dir" "$root" "${options[@]}" -Dbuildtype=debugoptimized \
		-Db_sanitize=thread >"$builds/setup.log" 2>&1 || return 1
	echo "rocade-test: building in $dir"
	ninja -C "$dir" --quiet test/unit/test_shmq app/rocaded/rocaded test/security/test_race ||
		return 1
	suites tsan shmq security_race
}

# The Debian that this is not, in the short form.
elsewhere() {
	local other=trixie status=0
	! grep -qx VERSION_CODENAME=trixie /etc/os-release || other=bookworm
	local log=$builds/$other.json
	rm -f "$log"
	"$root/usertools/rocade-on.sh" "$other" --short --results "$log" || status=$?
	if [ $status -eq 77 ]; then
		echo "rocade-test: NOT TESTED ON $other"
		return
	fi
	logs+=("$log")
	return $status
}

if $ci; then
	interop
	elsewhere || broken=1
	rings || broken=1
	CC=clang compile fuzz -Dbuildtype=debugoptimized -Db_sanitize=address,undefined \
		-Db_lundef=false -Dfuzz=true &&
		"$root/test/fuzz/run.sh" "$builds/fuzz" 300000 || broken=1
fi

"$(command -v python3)" "$root/test/harness/totals.py" "${logs[@]}" || broken=1
# What the suites wrote as root.
[ "$(id -u)" -eq 0 ] || as_root chown -R "$(id -u):$(id -g)" "$builds"
exit $broken
