#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a test with a network of its own, where it may have one: then what gives addresses to the
# kernel, or listens at a port that others know, runs beside others of its kind.
#
#   apart.sh COMMAND...
if [ "$(id -u)" -eq 0 ] && unshare --net true 2>/dev/null; then
	exec unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$@"
fi
exec "$@"
