#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Tries Rocade on another Debian than this one: makes a bare system in a scratch folder, and in it
# runs both commands of the README, with mounts, processes, a network and a /run of its own. Nothing
# of this machine is changed, and nothing stays.
#
#   rocade-on.sh bookworm|trixie [--short] [--results FILE]
#
#   --short  instead of all suites: built with warnings as errors, unit, sim, symbols
#   --results FILE  where the results of the suites in the release build go, as meson's JSON
#
# ROCADE_SCRATCH names the folder to work in (/var/tmp unless it is set; it takes 4 GiB), and
# ROCADE_MIRROR where Debian comes from, unless it is where this machine's packages do. For
# ROCADE_DPDK_SOURCE see rocade-driver-sdk.sh; the tree is seen, unchangeable, in the bare system.
#
# Exit status: that of the tests; 77 when Debian can't be fetched here, and why is said.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
. "$root/usertools/rocade-root.sh"
name=rocade-on

usage() {
	echo "usage: rocade-test.sh --on bookworm|trixie [--short]" >&2
	exit 2
}

# skip REASON...: ends where this machine can't
skip() {
	echo "$name: SKIPPED, nothing was tested: $*"
	exit 77
}

# quietly COMMAND...: says what it said only if it fails; a network that is not there is no failure,
# all else that keeps a file from being fetched is one (no room, a wrong sum, a file that is gone)
quietly() {
	local status=0
	"$@" >"$work/log" 2>&1 || status=$?
	[ $status -ne 0 ] || return 0
	if grep -qE -e 'Failed getting release file|Could not resolve|Temporary failure resolving' \
		-e 'Unable to connect|Could not connect' "$work/log"; then
		skip "$(grep -E '^E: |^W: ' "$work/log" | head -1)"
	fi
	cat "$work/log" >&2
	exit 1
}

# in_it COMMAND...: runs it in the bare system, with nothing of this one's environment
in_it() {
	chroot "$system" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
		LANG=C.UTF-8 TERM="${TERM:-dumb}" DEBIAN_FRONTEND=noninteractive \
		${http_proxy:+http_proxy="$http_proxy"} \
		${ROCADE_DPDK_SOURCE:+ROCADE_DPDK_SOURCE=/usr/src/dpdk} "$@"
}

# The bare system as debootstrap makes it, with updates, and the checkout in it.
make_it() {
	local mirror=${ROCADE_MIRROR:-}
	if [ -z "$mirror" ]; then
		mirror=$(apt-get indextargets --format '$(SITE)' 2>/dev/null |
			grep -m 1 -E '/debian/?$' || true)
	fi
	mirror=${mirror:-http://deb.debian.org/debian}
	mirror=${mirror%/}
	echo "$name: making a bare $suite from $mirror"
	quietly debootstrap --variant=minbase --include=ca-certificates \
		"$suite" "$system" "$mirror"
	printf 'deb %s %s main\n' "$mirror" "$suite" "$mirror" "$suite-updates" \
		"${mirror%/debian}/debian-security" "$suite-security" \
		>"$system/etc/apt/sources.list"
	# By which way, and what is believed, is for who runs this machine to say.
	apt-config dump Acquire |
		grep -E '::(Proxy|Check-|Verify|Retries|Timeout)[^ ]* "[^"]' \
			>"$system/etc/apt/apt.conf.d/99rocade-on" || true
	cp -L /etc/resolv.conf "$system/etc/resolv.conf" 2>/dev/null || true
	# Nobody needs it after a loss of power.
	echo force-unsafe-io >"$system/etc/dpkg/dpkg.cfg.d/rocade-on"
	mkdir "$system/rocade"
	tree_files "$root" | tar -C "$root" --null --ignore-failed-read -T - -c |
		tar -C "$system/rocade" --no-same-owner -x
}

# What of a machine a bare system has not.
furnish() {
	# Namespaces of mounts are made in it, which want a mount for a root.
	mount --bind "$system" "$system"
	mount -t proc proc "$system/proc"
	mount --rbind /dev "$system/dev"
	mount -t tmpfs -o mode=1777 tmpfs "$system/dev/shm"
	mount -t tmpfs -o mode=755 tmpfs "$system/run"
	if [ -n "${ROCADE_DPDK_SOURCE:-}" ]; then
		mkdir -p "$system/usr/src/dpdk"
		mount --bind "$ROCADE_DPDK_SOURCE" "$system/usr/src/dpdk"
		mount -o remount,bind,ro "$system/usr/src/dpdk"
	fi
}

# Inside, still with the machine's network: all that is fetched.
inside() {
	make_it
	furnish
	quietly in_it apt-get update
	quietly in_it apt-get -y upgrade
	echo "$name: installing what the commands need"
	quietly in_it /rocade/usertools/rocade-setup.sh build demo test
	in_it /rocade/usertools/rocade-driver-sdk.sh >"$work/log" 2>&1 || tail -1 "$work/log"
	echo "$name: $(in_it sh -c '. /etc/os-release; echo "$PRETTY_NAME"')," \
		"$(in_it dpkg-query -W -f '${Package} ${Version}, ' libdpdk-dev libibverbs-dev gcc \
			meson | sed 's/, $//')"
	unshare --net "$0" --within "$work" "$suite" "$short" "$results"
}

# Inside, with a network that nobody else is in: all that is run.
within() {
	local status=0
	local options=()
	# As the second command will have it, which otherwise compiles all of it again.
	[ -z "$short" ] || options=(-Dwerror=true)
	mount -t sysfs sysfs "$system/sys"
	in_it ip link set lo up
	in_it /rocade/usertools/rocade-quickstart.sh "${options[@]}" >"$work/log" 2>&1 || status=$?
	if [ $status -ne 0 ]; then
		cat "$work/log" >&2
		echo "$name: the first command, rocade-quickstart.sh: FAILED"
	else
		sed -n '/on this machine, in this run/,$p' "$work/log"
		echo "$name: the first command, rocade-quickstart.sh: passed"
	fi
	local second=0
	in_it /rocade/usertools/rocade-test.sh $short || second=$?
	if [ -n "$results" ]; then
		cp "$system/rocade/build/release/meson-logs/testlog.json" "$results" ||
			second=1
	fi
	echo "$name: the second command, rocade-test.sh $short: status $second"
	[ $status -eq 0 ] && [ $second -eq 0 ]
}

case ${1:-} in
--inside | --within)
	step=${1#--}
	work=$2
	suite=$3
	short=$4
	results=$5
	system=$work/system
	"$step"
	exit
	;;
bookworm | trixie) suite=$1 ;;
*) usage ;;
esac
shift
short=
results=
while [ $# -gt 0 ]; do
	case $1 in
	--short) short=--short ;;
	--results)
		[ $# -gt 1 ] || usage
		results=$(readlink -m "$2")
		shift
		;;
	*) usage ;;
	esac
	shift
done

has_rights || skip "a bare system is made with root's rights, and there is neither sudo nor doas"
command -v apt-get >/dev/null || skip "this is no Debian"
"$root/usertools/rocade-setup.sh" on || skip "debootstrap is not here, and can't be had"
if [ "$(id -u)" -ne 0 ]; then
	as_root "$0" "$suite" $short ${results:+--results "$results"}
	exit
fi
unshare --mount --pid --ipc --uts --net --fork true 2>/dev/null ||
	skip "this machine lets root make no namespaces"
work=$(mktemp -d "${ROCADE_SCRATCH:-/var/tmp}/rocade-on.XXXXXX")
unshare --mount --pid --ipc --uts --fork --kill-child "$0" --inside "$work" "$suite" \
	"$short" "$results" &
child=$!
# Mounts go with their namespace, and so do processes; unshare listens to no other signal.
trap 'kill -KILL "$child" 2>/dev/null || true; wait || true; rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM
wait "$child"
