#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# From a fresh machine to the main job: installs what is needed, builds, starts the engine on its
# embedded wire, runs unmodified programs of the distribution on it, compares with TCP over veth,
# and stops the engine again.
#
#   usertools/rocade-quickstart.sh [MESON_OPTION...]
#
# Options are for a build that is not there yet.
#
# Fetches root's rights by sudo or doas to install, and to start the engine. Where neither is, the
# engine is one of the user's own.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
. "$root/usertools/rocade-root.sh"
build=${ROCADE_BUILD_DIR:-$root/build}/release
rocade=$root/usertools/rocade
work=$(mktemp -d)
rocade_log=()

"$root/usertools/rocade-setup.sh" build demo
echo "rocade-quickstart: building in $build"
if [ ! -e "$build/build.ninja" ]; then
	meson setup "$build" "$root" -Dtests=false "$@" >/dev/null
fi
ninja -C "$build" >/dev/null
if [ "$(id -u)" -ne 0 ] && has_rights; then
	rm -rf "$work"
	as_root "$0" "$@"
	exit
fi
if ! has_rights; then
	echo "rocade-quickstart: neither sudo nor doas here: the engine is this user's own," \
		"without hugepages, and TCP over veth is not measured" >&2
	export ROCADE_SOCKET=$work/run/rocade.sock
	rocade_log=(--log "$work/run/rocaded.log")
fi

# run COMMAND...: shows a command and what it prints
run() {
	echo
	echo "\$ $*"
	"$@"
}

# client COMMAND...: runs it until it finds the server $server, which on a busy machine takes its
# time to listen, and while that lives; what the last one said is kept
client() {
	local tries=0
	: >"$work/client"
	while kill -0 "$server" 2>/dev/null && [ $((++tries)) -le 100 ]; do
		sleep 0.3
		if timeout 60 "$rocade" run -- "$@" >"$work/client" 2>&1; then
			[ $tries -eq 1 ] || echo "(try $tries)"
			return
		fi
	done
	echo "rocade-quickstart: $1 failed $tries times; it and its server said:" >&2
	cat "$work/client" "$work/server" >&2
	kill "$server" 2>/dev/null || true
	exit 1
}

# served: the server has ended too, and well
served() {
	wait "$server" || { cat "$work/server" >&2; exit 1; }
}

# both PROGRAM OPTION...: server on roce0, client on roce1; the client's words are shown and kept
both() {
	local program=$1
	shift
	echo
	echo "\$ rocade run -- $program -d roce0 $* &"
	echo "\$ rocade run -- $program -d roce1 $* 127.0.0.1"
	timeout 60 "$rocade" run -- "$program" -d roce0 "$@" >"$work/server" 2>&1 &
	server=$!
	client "$program" -d roce1 "$@" 127.0.0.1
	served
	mv "$work/client" "$work/$program"
	cat "$work/$program"
}

# tcp: one stream of iperf3 between two namespaces, Gbit/s
tcp() {
	local a=rcdqs$$a b=rcdqs$$b
	ip netns add "$a" 2>/dev/null && ip netns add "$b" || return 0
	ip link add qa netns "$a" type veth peer name qb netns "$b"
	ip -n "$a" addr add 10.99.0.1/24 dev qa && ip -n "$a" link set qa up
	ip -n "$b" addr add 10.99.0.2/24 dev qb && ip -n "$b" link set qb up
	ip netns exec "$a" iperf3 -s -1 >/dev/null 2>&1 &
	local server=$!
	sleep 0.5
	ip netns exec "$b" iperf3 -c 10.99.0.1 -t 3 -f m 2>/dev/null |
		awk '/receiver/ { printf "%.1f", $7 / 1000 }' || true
	kill "$server" 2>/dev/null || true
	wait "$server" 2>/dev/null || true
	ip netns del "$a"
	ip netns del "$b"
}

run "$rocade" "${rocade_log[@]}" up
trap '"$rocade" "${rocade_log[@]}" down; rm -rf "$work"' EXIT
run "$rocade" link show
run "$rocade" run -- ibv_devices
run "$rocade" run -- ibv_devinfo -d roce0
both ibv_rc_pingpong -g 1
echo
echo "\$ rocade run -- rping -s -a 10.77.0.2 -C 3 &"
timeout 60 "$rocade" run -- rping -s -a 10.77.0.2 -C 3 >"$work/server" 2>&1 &
server=$!
echo
echo "\$ rocade run -- rping -c -a 10.77.0.2 -v -C 3"
client rping -c -a 10.77.0.2 -v -C 3
served
cat "$work/client"
for program in ib_send_bw ib_write_bw ib_read_bw ib_send_lat; do
	both "$program" -x 1 -F
done

# The last line of figures: bandwidth is its fourth column in MB/s, typical latency its fifth.
figure() {
	awk -v column="$2" '/^ *[0-9]+ +[0-9]+ / { val = $column } END { print val }' "$work/$1"
}
echo
echo "rocade-quickstart: on this machine, in this run"
for program in ib_send_bw ib_write_bw ib_read_bw; do
	printf '  %-12s 64 KiB   %8.1f Gbit/s\n' "$program" \
		"$(figure "$program" 4 | awk '{ print $1 * 8 * 1.048576 / 1000 }')"
done
printf '  %-12s 2 B      %8.2f us typical\n' ib_send_lat "$(figure ib_send_lat 5)"
stream=$(tcp)
[ -z "$stream" ] || printf '  %-12s veth     %8.1f Gbit/s\n' "TCP, iperf3" "$stream"
