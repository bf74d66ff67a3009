#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs every libFuzzer target of a build for a fixed number of inputs from a fixed seed, beginning
# with the kept corpus; a failure can be repeated. On a slow machine a minute for each is the end.
#
# A target that drives a whole engine takes longer for each input: it gets a fortieth of them.
#
#   run.sh BUILD_FOLDER INPUTS
set -euo pipefail
build=$1
inputs=$2
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for target in "$build"/test/fuzz/fuzz_*; do
	[ -x "$target" ] && [ -f "$target" ] || continue
	name=$(basename "$target")
	mkdir "$work/$name"
	runs=$inputs
	case $name in
	fuzz_ctrl | fuzz_segment) runs=$((inputs / 40)) ;;
	esac
	echo "fuzz: $name, $runs inputs"
	if ! "$target" -seed=1 -runs="$runs" -max_total_time=60 -max_len=1500 \
		-artifact_prefix="$build/crash-$name-" \
		"$work/$name" "$here/corpus/${name#fuzz_}" >"$work/$name.log" 2>&1; then
		tail -n 60 "$work/$name.log" >&2
		exit 1
	fi
done
