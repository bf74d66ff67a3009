#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Goal: the packages install, upgrade, reinstall and go, and break no program on the way.
#
# Method: two bare systems of the release, by debootstrap: in one the packages are built, and made a
# next version of; in the other they are installed beside programs that use RDMA and DPDK, and each
# step is looked at: which libraries programs load, that they work, which files there are. Each step
# runs with mounts, processes and a network of its own, so nothing is left but the folder. Takes
# minutes, root, and a mirror of Debian.
#
#   test/packages/packages.sh RELEASE [FOLDER]    bookworm or trixie
#
# FOLDER is kept, and its bare systems used again; without it, a temporary one goes at the end.
# Exit status: 0 when all steps went well; 77 when Debian can't be fetched here, and why is said.
#
# ROCADE_MIRROR names another mirror; for ROCADE_DPDK_SOURCE see usertools/rocade-driver-sdk.sh.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
. "$root/usertools/rocade-root.sh"
release=${1:?usage: packages.sh RELEASE [FOLDER]}
mirror=${ROCADE_MIRROR:-http://deb.debian.org/debian}
if [ $# -gt 1 ]; then
	folder=$(realpath -m "$2")
	mkdir -p "$folder"
else
	folder=$(mktemp -d)
	trap 'rm -rf "$folder"' EXIT
fi
count=0
failed=0

# enter NETWORK SYSTEM COMMAND...: a system with mounts and processes of its own; /src is the
# source, /packages the results. The network is "own" too, or "here".
enter() {
	local network=() system=$2
	[ "$1" = here ] || network=(--net)
	shift 2
	mkdir -p "$system/src" "$system/packages" "$folder/packages"
	unshare --mount --pid --fork --kill-child "${network[@]}" bash -euc '
		system=$1 source=$2 packages=$3
		shift 3
		ip link set lo up
		mount --rbind /dev "$system/dev"
		mount -t tmpfs tmpfs "$system/run"
		mount -t proc proc "$system/proc"
		mount -t sysfs -o ro sysfs "$system/sys" || mount --rbind /sys "$system/sys"
		mount --bind -o ro "$source" "$system/src"
		mount --bind "$packages" "$system/packages"
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive chroot "$system" "$@"
	' enter "$system" "$folder/source" "$folder/packages" "$@"
}

# alone LOG COMMAND...: runs it so that a failure in its middle ends it, which a condition around it
# would keep from happening; what it says goes into LOG, its status into $result
alone() {
	local log=$1
	shift
	set +e
	(
		set -e
		"$@"
	) >"$log" 2>&1
	result=$?
	set -e
}

# step NAME COMMAND...: a test, with what it said where it failed
step() {
	local name=$1
	shift
	count=$((count + 1))
	alone "$folder/log" "$@"
	if [ $result -eq 0 ]; then
		echo "ok $count - $name"
	else
		echo "not ok $count - $name"
		sed 's/^/# /' "$folder/log" | tail -40
		failed=$((failed + 1))
	fi
}

# bare: a system with nothing in it; what is cached would be old when the folder is used again
bare() {
	[ -e "$folder/bare/.complete" ] && return
	rm -rf "$folder/bare"
	if ! debootstrap --variant=minbase "$release" "$folder/bare" "$mirror" \
		>"$folder/log" 2>&1; then
		tail -3 "$folder/log" >&2
		grep -qE 'Failed getting release file|Could not resolve' "$folder/log" || exit 1
		echo "packages: SKIPPED, nothing was tested: $mirror does not answer"
		exit 77
	fi
	echo force-unsafe-io >"$folder/bare/etc/dpkg/dpkg.cfg.d/unsafe-io"
	cp /etc/resolv.conf "$folder/bare/etc"
	touch "$folder/bare/.complete"
}

# derive NAME PACKAGE...: a copy of the bare system with these packages
derive() {
	local system=$folder/$1
	shift
	[ -e "$system/.complete" ] && return
	rm -rf "$system"
	cp -a "$folder/bare" "$system"
	rm "$system/.complete"
	enter here "$system" apt-get update
	enter here "$system" apt-get install -y --no-install-recommends "$@"
	touch "$system/.complete"
}

# prepare: the systems, with what is needed to build and to try
prepare() {
	mapfile -t wanted < <(packages_for build package | xargs -n1)
	derive build "${wanted[@]}"
	if [ -n "${ROCADE_DPDK_SOURCE:-}" ]; then
		mkdir -p "$folder/packages/dpdk"
		tar -C "$ROCADE_DPDK_SOURCE" -c VERSION buildtools drivers/bus/vdev lib |
			tar -C "$folder/packages/dpdk" -x
	fi
	derive clean iproute2 ibverbs-utils rdmacm-utils perftest infiniband-diags rdma-core \
		ibverbs-providers dpdk-dev python3 procps
}

# packages_for PURPOSE...: what rocade-setup.sh would install
packages_for() {
	for purpose in "$@"; do
		awk -v purpose="[$purpose]=" 'index($0, purpose) { on = 1 } on { print }
			on && /"$/ { on = 0 }' "$root/usertools/rocade-setup.sh" |
			sed 's/.*="//; s/"$//'
	done
}

# build VERSION
build() {
	enter here "$folder/build" env ROCADE_BUILD_DIR=/packages/sdk \
		${ROCADE_DPDK_SOURCE:+ROCADE_DPDK_SOURCE=/packages/dpdk} \
		/src/usertools/rocade-package.sh --as "$1" /packages
}

# next_version: the same as version 2, for there to be something to upgrade to
next_version() {
	local work=$folder/next
	for deb in "$folder"/packages/{lib,}rocade*_1_*.deb; do
		rm -rf "$work"
		dpkg-deb -R "$deb" "$work"
		sed -i 's/^Version: 1$/Version: 2/; s/(= 1)/(= 2)/g' "$work/DEBIAN/control"
		dpkg-deb --root-owner-group -b "$work" "${deb/_1_/_2_}"
	done
	rm -rf "$work"
}

# same_tree: files of the packages, and of "meson install"; what packages alone have is listed here
same_tree() {
	enter own "$folder/build" bash -euc '
		rm -rf /tmp/tree /tmp/build
		meson setup /tmp/build /src --prefix=/usr --sysconfdir=/etc -Dtests=false \
			-Dbuildtype=plain -Ddriver_sdk=/packages/sdk/dpdk-driver-sdk >/dev/null
		DESTDIR=/tmp/tree meson install -C /tmp/build >/dev/null
		cd /tmp/tree && find . ! -type d | sed "s|^\.||" | sort >/tmp/installed
		for deb in /packages/{lib,}rocade*_1_*.deb; do
			case $deb in
			*-dbgsym_*) ;;
			*) dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -v "/$" ;;
			esac
		done | sed "s|^\.||; s|^/lib/|/usr/lib/|; s|\(/man/.*\)\.gz$|\1|" |
			grep -Ev "^/usr/share/doc/[^/]*/(changelog.gz|copyright)$" |
			grep -Ev "^/etc/|^/usr/share/(lintian|python3)/|/rocade/system$" |
			sort >/tmp/packaged
		diff /tmp/installed /tmp/packaged'
}

# state SYSTEM: all files but what apt, dpkg and ldconfig keep of their own
state() {
	(cd "$1" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./sys -o -path ./run \
		-o -path ./tmp -o -path ./src -o -path ./packages -o -path ./var/cache \
		-o -path ./var/log -o -path ./var/lib/dpkg -o -path ./var/lib/apt \
		-o -path ./var/lib/systemd \) -prune -o -printf '%p %m %u %g %l\n' |
		grep -Ev '^./etc/(passwd|shadow|group|gshadow|subuid|subgid)-? ' | sort
	cut -d: -f1 "$1/etc/passwd" "$1/etc/group")
}

try() {
	enter own "$folder/try" "$@"
}

# dependencies: what the packages want is there before they are: it stays when they go
dependencies() {
	enter here "$folder/try" bash -euc '
		apt-get install -s --no-install-recommends /packages/{lib,}rocade*_1_*.deb |
			awk "/^Inst/ && \$2 !~ /^(lib)?rocade/ { print \$2 }" |
			xargs apt-get install -y --no-install-recommends'
}

# install VERSION PACKAGE...
install() {
	try bash -euc '
		version=$1
		shift
		debs=()
		for name; do debs+=(/packages/"${name}_${version}_"*.deb); done
		apt-get install -y --no-install-recommends --reinstall \
			-o Dpkg::Options::=--force-confold "${debs[@]}"
		for name; do
			[ "$(dpkg-query -W -f "\${Version} \${db:Status-Status}" "$name")" = \
				"$version installed" ]
		done' install "$@"
}

# loads FOLDER PROGRAM [ARGUMENT...]: the libibverbs that does the work is in this folder
loads() {
	local where=$1
	shift
	try bash -euc 'where=$1; shift
		export LD_DEBUG=files LD_DEBUG_OUTPUT=/tmp/loads
		timeout 60 "$@" </dev/null >/tmp/out 2>&1 || true
		unset LD_DEBUG
		got=$(sed -n "s|.*calling init: \(.*/libibverbs\.so\.1.*\)|\1|p" /tmp/loads.* |
			xargs -rn1 realpath | grep -v /rocade/default/ | xargs -rn1 dirname |
			sort -u)
		rm -f /tmp/loads.*
		echo "$* loads libibverbs from $got"
		[ "${got#/usr}" = "${where#/usr}" ] || { cat /tmp/out; exit 1; }
	' loads "$where" "$@"
}

# programs: each file of the distribution that needs one of our libraries finds all it needs
programs() {
	try bash -euc '
		found=0
		for file in $(grep -lsE "lib(ibverbs|rdmacm|ibumad)\.so\.[0-9]" /usr/bin/* \
			/usr/sbin/* /usr/lib/*/lib*.so.* /usr/lib/*/libibverbs/*); do
			needs=$(ldd -r "$file" 2>&1) || continue
			found=$((found + 1))
			case $needs in *"not found"*|*"undefined symbol"*)
				echo "$file: $needs"; exit 1 ;; esac
		done
		echo "$found files"
		[ "$found" -ge 30 ]'
}

testpmd=(timeout -s INT 10 dpdk-testpmd --no-huge -m 256 --no-pci --vdev net_null0 -- --tx-first
	--stats-period 1 --total-num-mbufs 4096)

# testpmd_works [EAL_OPTION...]: it starts with all of DPDK's drivers, and forwards
testpmd_works() {
	loads "$system" "${testpmd[@]:0:5}" "$@" "${testpmd[@]:5}"
	grep -q 'TX-packets: [1-9]' "$folder/try/tmp/out"
}

# traffic [PREFIX...]: an engine, and unmodified programs that find it and its library
traffic() {
	try bash -euc '
		rocade up -- --no-huge -m 512
		trap "rocade down" EXIT
		for pid in $(pidof rocaded); do
			if grep -q "/rocade/lib.*\.so" "/proc/$pid/maps"; then exit 1; fi
		done
		"$@" ibv_devices | grep -q roce0
		"$@" ib_send_bw -d roce0 -x 1 -F -s 4096 -n 1000 >/tmp/server 2>&1 &
		server=$!
		for _ in $(seq 50); do
			sleep 0.2
			if "$@" ib_send_bw -d roce1 -x 1 -F -s 4096 -n 1000 127.0.0.1; then
				wait $server
				exit 0
			fi
		done
		cat /tmp/server
		exit 1' traffic "$@"
}

# shell_of_a_user: "rocade enable" in a home folder, a new shell, and back
shell_of_a_user() {
	try bash -euc '
		export HOME=/tmp/home
		rm -rf $HOME; mkdir $HOME; cp /etc/skel/.??* $HOME; find $HOME | sort >/tmp/before
		rocade enable
		rocade up -- --no-huge -m 512
		trap "rocade down" EXIT
		bash -lc "ibv_devices" | grep -q roce0
		bash -lc "rocade doctor" | grep -q "^ok *default *programs get Rocade"
		rocade disable
		find $HOME | sort | diff /tmp/before -'
	loads "$system" bash -c 'HOME=/tmp/home ibv_devices'
}

# kept: what an administrator wrote is there still
kept() {
	grep -q '^# mine$' "$folder/try/etc/rocade/rocade.conf"
}

# unchanged FILE: the state is that in FILE, or it says what differs
unchanged() {
	state "$folder/try" | diff "$folder/$1" -
}

purge() {
	try dpkg --purge "$@"
}

mine=(rocade rocade-verbs rocade-dev rocade-dpdk librocade-engine0.1 librocade-engine-dev)
all=("${mine[@]}" rocade-verbs-default)
impair=(-d "/usr/lib/TRIPLET/rocade/pmds/librte_net_impair.so" --vdev "net_impair0,port=net_null0")
bare
# The project's files, which a bare system has no git to tell from others.
rm -rf "$folder/source"
mkdir "$folder/source"
tree_files "$root" | tar -C "$root" --null -T - -c | tar -C "$folder/source" --no-same-owner -x
alone "$folder/setup.log" prepare
[ $result -eq 0 ] || {
	tail -30 "$folder/setup.log" >&2
	exit 1
}
rm -rf "$folder/try" "$folder/packages"/*.deb
cp -a "$folder/clean" "$folder/try"
triplet=$(enter own "$folder/build" dpkg-architecture -qDEB_HOST_MULTIARCH)
system=/usr/lib/$triplet
ours=$system/rocade
impair[1]=${impair[1]/TRIPLET/$triplet}

step "packages are built, and lintian has nothing to say" build 1
cp "$folder/log" "$folder/lintian.log"
step "and are made a next version of" next_version
step "meson install installs the same files" same_tree
step "what they depend on comes first" dependencies
state "$folder/try" >"$folder/before"

step "installed" install 1 "${mine[@]}"
step "and nobody's default: ibv_devices" loads "$system" ibv_devices
step "unmodified programs by rocade run" traffic rocade run --
step "dpdk-testpmd with the driver of rocade-dpdk" testpmd_works "${impair[@]}"
step "the engine as a library, found by its name" try python3 -c '
import ctypes
version = ctypes.CDLL("librocade-engine.so.0.1").rcd_engine_version
version.restype = ctypes.c_char_p
print(version().decode())'
step "the default is installed" install 1 rocade-verbs-default
step "ibv_devices" loads "$ours" ibv_devices
step "ib_send_bw" loads "$ours" ib_send_bw --version
step "unmodified programs without being told, and an engine" traffic
step "dpdk-testpmd keeps the system's" testpmd_works
step "every program finds all it needs" programs
echo '# mine' >>"$folder/try/etc/rocade/rocade.conf"
state "$folder/try" >"$folder/installed"

step "upgraded" install 2 "${all[@]}"
step "to the same files" unchanged installed
step "with the configuration as it was" kept
step "unmodified programs after that" traffic
rm "$folder/try/usr/sbin/rocaded" "$folder/try$ours/libibverbs.so.1"
step "reinstalled" install 2 "${all[@]}"
step "all files are there" unchanged installed
step "and the configuration" kept

step "the default is removed" try apt-get remove -y rocade-verbs-default
step "ibv_devices has the system's" loads "$system" ibv_devices
step "rocade enable and disable by a user" shell_of_a_user
step "all is removed" try apt-get remove -y "${mine[@]}"
step "every program still finds all" programs
step "ibv_devices still" loads "$system" ibv_devices
step "dpdk-testpmd still" testpmd_works
step "purged" purge "${all[@]}"
step "nothing is left" unchanged before
step "installed again" install 2 "${all[@]}"
step "and purged at once" purge "${all[@]}"
step "nothing is left of that" unchanged before

echo "1..$count"
[ "$failed" -eq 0 ]
