#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs every libFuzzer target of a build for a fixed number of inputs from a fixed seed, beginning
# with the kept corpus; a failure can be repeated. On a slow machine a minute for each is the end,
# unless another time is given. As many run at once as there are processors.
#
# A target that drives a whole engine takes longer for each input: it gets a fortieth of them.
#
#   run.sh BUILD_FOLDER INPUTS [SECONDS]
set -euo pipefail
build=$1
inputs=$2
seconds=${3:-60}
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fuzz TARGET: says afterwards what it did
fuzz() {
	local name runs=$inputs
	name=$(basename "$1")
	mkdir "$work/$name"
	case $name in
	fuzz_ctrl | fuzz_segment) runs=$((inputs / 40)) ;;
	esac
	# Without entropy, the account of which takes most of the time, and finds nothing more in
	# so few inputs.
	if ! "$1" -seed=1 -runs="$runs" -max_total_time="$seconds" -max_len=1500 -entropic=0 \
		-artifact_prefix="$build/crash-$name-" \
		"$work/$name" "$here/corpus/${name#fuzz_}" >"$work/$name.log" 2>&1; then
		echo "fuzz: $name FAILED"
		tail -n 60 "$work/$name.log" >&2
		return 1
	fi
	echo "fuzz: $name, $(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\) .*/\1 inputs in \2 s/p' \
		"$work/$name.log")"
}

running=0
failed=0
for target in "$build"/test/fuzz/fuzz_*; do
	[ -x "$target" ] && [ -f "$target" ] || continue
	if [ "$running" -ge "$(nproc)" ]; then
		wait -n || failed=1
		running=$((running - 1))
	fi
	fuzz "$target" &
	running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
	wait -n || failed=1
	running=$((running - 1))
done
exit $failed
