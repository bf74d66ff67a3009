#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the node does, in the guest of the kit: from a NIC of the kernel's to traffic, and back. Each
# step that held is told by a line; the first that did not ends it.
#
#   guest.sh ROCADED LIBRARIES USERTOOLS DRIVER       addresses and the peer's are test_lab.py's
rocaded=$1 libraries=$2 tools=$3 driver=$4
nic=0000:00:08.0 kept=0000:00:09.0
export ROCADE_ROCADED=$rocaded ROCADE_SOCKET=/run/lab/rocade.sock LD_LIBRARY_PATH=
log=/run/lab/rocaded.log
udevd=/lib/systemd/systemd-udevd
mkdir -p /run/lab

rocade() {
	"$tools/rocade" --log "$log" "$@"
}

fail() {
	echo "step $1 FAILED"
	ip addr
	tail -50 "$log"
	rocade -d link
	exit 1
}

# step NAME COMMAND...: retried for what takes its time
step() {
	local name=$1
	shift
	for _ in 1 2 3 4 5 6; do
		if "$@"; then
			echo "step $name held"
			return
		fi
		sleep 1
	done
	fail "$name"
}

says() { # says PATTERN COMMAND...
	local pattern=$1
	shift
	local said
	said=$("$@" 2>&1) || true
	grep -qe "$pattern" <<<"$said" && return
	echo "$* said: $said"
	return 1
}

echoes() {
	ping -q -c 3 -i 0.3 -W 5 "$@"
}

roce() {
	LD_LIBRARY_PATH=$libraries timeout 60 ibv_rc_pingpong -g "$1" -d r0 -n 100 10.56.0.1
}

prepared() {
	rocade node prepare "$nic" && ! rocade node prepare "$nic" | grep -v '^hugepages of\|: '
}

linked() {
	rocade link add r0 type port "$nic" kernel r0k
}

away() {
	rocade link del r0 && ! ip link show r0k 2>/dev/null
}

polls() {
	rocade -j engine | sed -n 's/.*"polls": *\([0-9]*\).*/\1/p' | head -1
}

# By the NIC's interrupts: an lcore that looks for itself polls a thousand times in a second.
sleeps() {
	local before after
	before=$(polls) && sleep 2 && after=$(polls) || return 1
	echo "$((after - before)) polls in 2 s"
	[ $((after - before)) -lt 1000 ]
}

lets_account_in() {
	local group
	group=$(basename "$(readlink "/sys/bus/pci/devices/$nic/iommu_group")")
	[ "$(stat -c %U "/dev/vfio/$group")" = rocade ]
}

# The kit loaded what it has of modules; this root has none of its kernel's.
rm -f /sbin/modprobe && printf '#!/bin/sh\n' >/sbin/modprobe && chmod +x /sbin/modprobe
if [ -x "$udevd" ] && ! [ -S /run/udev/control ]; then
	grep -q ^rocade: /etc/passwd || useradd --system rocade
	"$udevd" --daemon
fi
ip route add default via 10.56.0.1
step prepare prepared
step default_route_is_left says 'default route' rocade node bind --force "$kept"
step bind rocade node bind "$nic"
if [ -S /run/udev/control ]; then
	step account lets_account_in
fi
step bound_once says 'bound to vfio-pci already' rocade node bind "$nic"
step up rocade up -c /dev/null -o idle=sleep -- -a "$nic"
step link linked
step held says 'rocaded.* has it' rocade node unbind "$nic"
ip addr add 10.78.0.2/24 dev r0k
ip addr add fd78::2/64 dev r0k nodad
step active says 'state ACTIVE.*netdev r0k' rocade link
step driver says "driver $driver" rocade -d link
step sleeps sleeps
step mac_and_mtu says 'mtu 1500.*52:54:00:55:00:02' ip -o link show r0k
step ping echoes 10.78.0.1
step ping6 echoes fd78::1
step roce roce 1
step roce6 roce 2
if [ "$driver" = net_e1000_em ]; then
	step jumbo ip link set r0k mtu 9000
	step jumbo_ping echoes -M do -s 8900 10.78.0.1
	step jumbo_roce roce 1
fi
step del away
step unbind rocade node unbind "$nic"
step kernels says 'driver \(e1000e\|vmxnet3\)' rocade node show "$nic"
step again rocade node bind "$nic"
step link_again linked
ip addr add 10.78.0.2/24 dev r0k
step ping_again echoes 10.78.0.1
# Taken away while a program waits for events, and put back.
LD_LIBRARY_PATH=$libraries ibv_asyncwatch -d r0 >/run/lab/events 2>&1 &
step watches says 'event' cat /run/lab/events
echo 1 >"/sys/bus/pci/devices/$nic/remove" &
step taken_away says '^$' rocade link
step program_is_told says DEVICE_FATAL cat /run/lab/events
wait %2
step nic_is_gone test ! -e "/sys/bus/pci/devices/$nic"
echo 1 >/sys/bus/pci/rescan
step put_back rocade node bind "$nic"
step link_back linked
ip addr add 10.78.0.2/24 dev r0k
step roce_back roce 1
step down rocade down
exit 0
