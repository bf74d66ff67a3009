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

# compile NAME [meson option...]: configures or reconfigures builds/NAME and compiles it, or of it
# what targets names
compile() {
	local dir=$builds/$1
	shift
	local mode=()
	[ -e "$dir/build.ninja" ] && mode=(--reconfigure)
	if ! meson setup "${mode[@]}" "$dir" "$root" "${options[@]}" "$@" \
		>"$dir.setup.log" 2>&1; then
		cat "$dir.setup.log" >&2
		return 1
	fi
	echo "rocade-test: building in $dir"
	ninja -C "$dir" --quiet ${targets[@]+"${targets[@]}"}
}
targets=()
if $symbols; then
	compile release || exit 1
	# Debian's own, which has pyelftools.
	exec /usr/bin/python3 "$root/test/system/symbols.py" \
		"$builds"/release/lib/lib{ibverbs.so.1,rdmacm.so.1,ibumad.so.3}
fi

# Without them all but the drivers is built, and the tests that need one are skipped.
"$root/usertools/rocade-driver-sdk.sh" "$builds/dpdk-driver-sdk" ||
	echo "rocade-test: no headers for DPDK drivers: they are NOT built, and NOT tested"
options+=("-Ddriver_sdk=$builds/dpdk-driver-sdk")
# Tests begin hundreds of programs in Python. Where python3 is a script that looks for one each time
# (pyenv), that costs more than most of them.
PATH=$(dirname "$(python3 -c 'import sys; print(sys.executable)')"):$PATH
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
logs=()
broken=0
unsure=()

# run_tests NAME LOG [meson argument...]: runs the tests of builds/NAME that the arguments choose,
# and logs under that name; without any, all but those that boot a kernel, and those that do all
# again with engines of few rights
run_tests() {
	local dir=$builds/$1
	local log=$2
	shift 2
	[ $# -gt 0 ] || set -- --no-suite interop --no-suite confined
	# What runs beside others may take its time.
	as_root meson test -C "$dir" --no-rebuild --print-errorlogs --timeout-multiplier 3 \
		--logbase "$log" "$@"
}

# count NAME LOG: what is logged there, or will be, belongs to the totals
count() {
	local log=$builds/$1/meson-logs/$2.json
	logs+=("$log")
	rm -f "$log"
}

# suites NAME LOG [meson argument...]: runs tests, and counts them
suites() {
	count "$1" "$2"
	# Meson's status is how many failed.
	run_tests "$@" || unsure+=("$1 $2 $?")
}

# totals [option] LOG...
totals() {
	"$(command -v python3)" "$root/test/harness/totals.py" "$@"
}

# alone NAME LOG FAILED: what failed beside others runs once more with the machine to itself, as a
# kernel that is busy may drop or delay what a test has to count. Both results are shown. Not more
# than three programs, and none that crashed, took too long or was stopped by a sanitizer
alone() {
	local name=$1 log=$2 failed=$3
	local names
	mapfile -t names < <(totals --doubtful "$builds/$name/meson-logs/$log.json")
	[ "${#names[@]}" -eq "$failed" ] && [ "$failed" -le 3 ] || return 1
	count "$name" "$log-alone"
	run_tests "$name" "$log-alone" --num-processes 1 "${names[@]}"
}

# The short form of what a kernel's rxe is asked.
interop() {
	local log=$builds/release/meson-logs/interop.txt
	suites release interop interop_short interop_udp_short
	if grep -q 'NO INTEROPERABILITY TESTS' "$log"; then
		echo "rocade-test: NOT TESTED WITH A KERNEL: $(sed -n \
			's/.*NO INTEROPERABILITY TESTS: //p' "$log" | head -1)"
	fi
}

# What judges metrics: of Debian's prometheus that program alone, as the package starts a server.
fetch_promtool() {
	local folder=$builds/promtool
	[ -x "$folder/usr/bin/promtool" ] && return
	rm -rf "$folder"
	mkdir -p "$folder"
	(cd "$folder" && apt-get download prometheus && dpkg-deb -x prometheus_*.deb . &&
		rm prometheus_*.deb usr/bin/prometheus) >"$builds/promtool.log" 2>&1
}

if $ci && ! command -v promtool >/dev/null && ! fetch_promtool; then
	echo "rocade-test: no promtool to be had: metrics are NOT judged by it"
fi
# Asked for a password once, while somebody may be looking.
if $ci; then as_root true; fi

# What needs nobody's attention runs in the background, in processor time that the foreground leaves
# over: steps that wait for a network or a disk, builds for suites that come later, fuzzing.
declare -A pids=()
end_background() {
	for pid in "${pids[@]}"; do
		kill -TERM -- "-$pid" 2>/dev/null || true
	done
}
trap end_background EXIT
trap 'exit 130' INT TERM

# background NAME COMMAND...: begins it; what it says is kept
background() {
	local name=$1
	shift
	# A process group of its own, to be ended as a whole.
	set -m
	(
		renice -n 5 "$BASHPID" >/dev/null 2>&1 || true
		"$@"
	) </dev/null >"$builds/$name.log" 2>&1 &
	pids[$name]=$!
	set +m
}

# behind NAME COMMAND...: within the background, when that one has ended
behind() {
	tail --pid="${pids[$1]}" -f /dev/null
	shift
	"$@"
}

# join NAME: waits for it and shows what it said. Its status
join() {
	local status=0
	wait "${pids[$1]}" || status=$?
	unset "pids[$1]"
	cat "$builds/$1.log"
	return $status
}

# The Debian that this is not, in the short form.
other=trixie
! grep -qx VERSION_CODENAME=trixie /etc/os-release || other=bookworm
elsewhere() {
	rm -f "$builds/$other.json"
	"$root/usertools/rocade-on.sh" "$other" --short --results "$builds/$other.json"
}

join_elsewhere() {
	local status=0
	join elsewhere || status=$?
	if [ $status -eq 77 ]; then
		echo "rocade-test: NOT TESTED ON $other"
		return
	fi
	logs+=("$builds/$other.json")
	return $status
}

# Engines with live clients, and the rings between them, watched for races: a short form. Not the
# test of links, which starts many engines (two minutes), and not what registers memory of all
# kinds: the watcher has its own there.
watched=(shmq security_race security_cm security_network security_move semantics two_lcores
	hostile death fork local_lcore)
compile_tsan() {
	targets=(app/rocaded/rocaded test/unit/test_shmq
		test/engine/test_{semantics,wire,hostile,death,fork}
		test/security/test_{race,cm,network,move} test/node/test_local_lcore)
	compile tsan -Dbuildtype=debugoptimized -Db_sanitize=thread
}

# Of clang's build what is fuzzed; the rest is read, for clang's warnings.
fuzz() {
	targets=(fuzz)
	CC=clang compile fuzz -Dbuildtype=debugoptimized -Db_sanitize=address,undefined \
		-Db_lundef=false -Dfuzz=true || return 1
	local status=0
	python3 "$root/test/tidy/read_all.py" "$builds/fuzz" "${targets[@]}" || status=1
	"$root/test/fuzz/run.sh" "$builds/fuzz" 300000 300 && return $status
}

compile_asan() {
	compile asan -Dbuildtype=debugoptimized -Db_sanitize=address,undefined \
		"-Dclients=$builds/release"
}

if $short; then
	compile release && suites release testlog --suite unit --suite sim --suite symbols ||
		broken=1
elif $ci; then
	# What looks at the machine as a whole waits until nobody else is there.
	beside=(--no-suite interop --no-suite confined --no-suite alone)
	background elsewhere elsewhere
	compile release || broken=1
	background asan compile_asan
	background tsan behind asan compile_tsan
	background fuzz behind tsan fuzz
	suites release testlog "${beside[@]}"
	# The one that boots a kernel is alone in its suite, and leaves a core to these.
	if join tsan; then
		count tsan testlog
		background watched run_tests tsan testlog "${watched[@]}"
	else
		broken=1
	fi
	interop
	if join asan; then suites asan testlog "${beside[@]}"; else broken=1; fi
	[ -z "${pids[watched]:-}" ] || join watched || broken=1
	join fuzz || broken=1
	join_elsewhere || broken=1
	for build in release asan; do
		suites $build alone --suite alone
	done
else
	compile release && suites release testlog || broken=1
	compile_asan && suites asan testlog || broken=1
fi

for each in ${unsure[@]+"${unsure[@]}"}; do
	# shellcheck disable=SC2086  # three words
	alone $each || broken=1
done
totals "${logs[@]}" || broken=1
# What the suites wrote as root.
[ "$(id -u)" -eq 0 ] || as_root chown -R "$(id -u):$(id -g)" "$builds"
exit $broken
