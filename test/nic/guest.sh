#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the node does, in the guest of the kit: from a NIC of the kernel's to traffic, and back, by
# the commands of doc/node.md. Each step that held is told by a line; the first that did not ends
# it.
#
#   guest.sh ROCADED LIBRARIES ROOT DRIVER       addresses and the peer's are test_lab.py's
rocaded=$1 libraries=$2 root=$3 driver=$4
nic=0000:01:00.0 kept=0000:00:09.0
device=/sys/bus/pci/devices/$nic
driverctl=/lib/systemd/system/driverctl@.service
export ROCADE_ROCADED=$rocaded PATH=$root/usertools:$PATH LD_LIBRARY_PATH=
log=/run/rocade/rocaded.log

fail() {
	echo "step $1 FAILED"
	ip addr
	tail -50 "$log"
	rocade -d link
	exit 1
}

# once NAME COMMAND...: what is done has to work at once
once() {
	local name=$1
	shift
	"$@" || fail "$name"
	echo "step $name held at $SECONDS s"
}

# step NAME COMMAND...: retried for what takes its time
step() {
	local name=$1
	shift
	for _ in 1 2 3 4 5 6; do
		if "$@"; then
			echo "step $name held at $SECONDS s"
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

# The line that begins so in the documentation, with the NIC that is here.
documented() {
	local line
	line=$(sed -n "s/0000:03:00.0/$nic/; s/ *#.*//; /^$1/{p;q}" "$root/doc/node.md")
	[ -n "$line" ] && $line
}

echoes() {
	ping -q -c 3 -i 0.3 -W 5 "$@"
}

roce() {
	LD_LIBRARY_PATH=$libraries timeout 60 \
		ibv_rc_pingpong -g "$1" -p $((18514 + $1)) -d r0 -n 100 10.56.0.1
}

prepared() {
	local again
	documented 'rocade node prepare' && again=$(rocade node prepare) &&
		! grep -v '^hugepages of\|: ' <<<"$again"
}

# Also when udev has had its say.
nics_own() {
	udevadm settle --timeout=20
	says 'mtu 1500.*52:54:00:55:00:02' ip -o link show r0k
}

away() {
	rocade link del r0 && ! ip link show r0k 2>/dev/null
}

active() {
	rocade -d link >/run/links && says 'r0/1 state ACTIVE.*netdev r0k' cat /run/links
}

polls() {
	rocade -j engine | sed -n 's/.*"polls": *\([0-9]*\).*/\1/p' | head -1
}

polled() {
	local before after
	before=$(polls) && sleep 2 && after=$(polls) || return 1
	polled=$((after - before))
	echo "$polled polls in 2 s"
}

# By the NIC's interrupts: an lcore that looks for itself polls a thousand times in a second, or
# half as often where the machine is busy.
sleeps() {
	polled && [ "$polled" -lt 300 ]
}

# It found out that none comes.
looks() {
	echoes 10.78.0.1 && polled && [ "$polled" -ge 300 ] && [ "$(interrupts)" = 0 ]
}

# Of the NIC's, as VFIO has them.
interrupts() {
	awk -v nic="$nic" '
		/vfio-/ && index($0, nic) { for (i = 2; $i ~ /^[0-9]+$/; i++) sum += $i }
		END { print sum + 0 }' /proc/interrupts
}

# They are on only while an lcore sleeps.
wakes() {
	local before after
	before=$(interrupts) && echoes 10.78.0.1 && after=$(interrupts) || return 1
	echo "$((after - before)) interrupts by 3 pings"
	[ $((after - before)) -gt 0 ]
}

cable() {
	echo "$1" >/dev/ttyS1
}

no_link() {
	rocade -d link >/run/links && says 'r0/1 state DOWN' cat /run/links
}

lets_account_in() {
	[ "$(stat -c %U "/dev/vfio/$(basename "$(readlink "$device/iommu_group")")")" = rocade ]
}

# What the kernel has of the NIC: driver, netdev, MAC and MTU.
kernels() {
	local netdev
	basename "$(readlink "$device/driver")"
	for netdev in "$device"{,/virtio*}/net/*; do
		[ -e "$netdev" ] && basename "$netdev" && cat "$netdev/address" "$netdev/mtu"
	done
}

as_before() {
	[ "$(wc -w <<<"$before")" = 4 ] && [ "$(kernels)" = "$before" ] && return
	echo "was: $before; is: $(kernels)"
	return 1
}

# As at the next boot: the kernel's driver has the NIC, udev finds it, and what a rule of udev's
# wants is started, as systemd would. Then it has this driver.
next_boot() {
	local unit
	[ ! -e "$device/driver" ] || echo "$nic" >"$device/driver/unbind"
	echo >"$device/driver_override"
	echo "$nic" >/sys/bus/pci/drivers_probe
	udevadm settle --timeout=20
	as_before || return 1
	unit=$(udevadm test --action=add "$device" 2>&1 |
		sed -n 's/.*SYSTEMD_WANTS=driverctl@\(.*\)\.service.*/\1/p')
	if [ -n "$unit" ]; then
		$(sed -n "s|%I|${unit/-//}|; s/^ExecStart=//p" "$driverctl") || return 1
	fi
	[ "$(basename "$(readlink "$device/driver")")" = "$1" ]
}

# The file that the documentation shows by its path.
documented_file() {
	mkdir -p "$(dirname "$1")"
	sed -n "\\|^# $1|,/^\`\`\`/{/^\`/d; s/0000:03:00.0/$nic/; p}" "$root/doc/node.md" >"$1"
	[ -s "$1" ] || fail "documented_file"
}

# The account and its rights as the service's, and the configuration of the documentation.
serves() {
	local few
	few=-all$(sed -n 's/^AmbientCapabilities=//p' "$root/usertools/rocade.service" |
		tr A-Z a-z | sed 's/\(^\| \)cap_/,+/g')
	documented_file /etc/rocade/rocade.conf.d/r0.conf
	printf '[engine]\nidle = sleep\n' >/etc/rocade/rocade.conf
	eval "$(sed -n 's/^ExecStartPre=-+//p' "$root/usertools/rocade.service")"
	install -d -o rocade -g rocade /run/rocade
	ulimit -l unlimited
	RUNTIME_DIRECTORY=/run/rocade setpriv --reuid=rocade --regid=rocade --clear-groups \
		"--inh-caps=$few" "--ambient-caps=$few" "--bounding-set=$few" --no-new-privs \
		"$rocaded" --config /etc/rocade/rocade.conf >"$log" 2>&1 </dev/null &
	# A command that asks too early costs more than this.
	timeout 30 sh -c 'until [ -S /run/rocade/rocade.sock ]; do sleep 0.2; done'
}

# The kit loaded what it has of modules; this root has none of its kernel's.
rm -f /sbin/modprobe && printf '#!/bin/sh\n' >/sbin/modprobe && chmod +x /sbin/modprobe
grep -q ^rocade: /etc/passwd || useradd --system rocade
documented_file /etc/systemd/network/70-r0k.link
/lib/systemd/systemd-udevd --daemon
# It gives names and modes, as it had done at the boot of a whole system.
udevadm trigger --action=add $(ls -d "$device"{,/virtio*}/net/* 2>/dev/null) \
	/sys/class/misc/tun
udevadm settle --timeout=20
ip route add default via 10.56.0.1
before=$(kernels)
once prepare prepared
step default_route_is_left says 'default route' rocade node bind --force "$kept"
once bind documented 'rocade node bind'
step account lets_account_in
once up rocade up
once link documented 'rocade link add'
ip addr add 10.78.0.2/24 dev r0k
step active active
step driver says "driver $driver" cat /run/links
step mac_and_mtu nics_own
step ping echoes 10.78.0.1
step roce roce 1
once down rocade down
once next_boot_binds_it next_boot vfio-pci
step account_again lets_account_in
# This one sleeps, and leaves the emulated processors to the rest.
once service serves
step service_active active
step held says 'rocaded.* has it' rocade node unbind "$nic"
ip addr add 10.78.0.2/24 dev r0k
ip addr add fd78::2/64 dev r0k nodad
step ping6 echoes fd78::1
step service_roce roce 1
step roce6 roce 2
if [ "$driver" = net_e1000_em ]; then
	step jumbo ip link set r0k mtu 9000
	step jumbo_ping echoes -M do -s 8900 10.78.0.1
	step jumbo_roce roce 1
	# DPDK's driver does not tell the NIC which of its interrupts is that of the queue.
	step looks looks
else
	step sleeps sleeps
	step wakes wakes
fi
# While a program waits for events: the cable out and in; the NIC taken away, and put back, when the
# engine was there first.
LD_LIBRARY_PATH=$libraries ibv_asyncwatch -d r0 >/run/events 2>&1 &
watch=$!
step watches says 'async event FD' cat /run/events
once cable_out cable out
step no_link no_link
step no_carrier says NO-CARRIER ip -o link show r0k
step program_told_of_out says 'PORT_ERR (10)' cat /run/events
once cable_in cable in
step link_again active
step carrier_again says LOWER_UP ip -o link show r0k
step program_told_of_in says 'PORT_ACTIVE (9)' cat /run/events
step cable_ping echoes 10.78.0.1
step cable_roce roce 1
echo 1 >"$device/remove" &
remove=$!
step program_is_told says DEVICE_FATAL cat /run/events
wait $remove
kill $watch 2>/dev/null
step nic_is_gone test ! -e "$device"
echo 1 >/sys/bus/pci/rescan
once put_back documented 'rocade node bind'
once link_back documented 'rocade link add'
ip addr add 10.78.0.2/24 dev r0k
step mac_back nics_own
step roce_back roce 1
once del away
once unbind rocade node unbind "$nic"
step as_before as_before
once next_boot_leaves_it next_boot "${before%%$'\n'*}"
once service_ends rocade down
exit 0
