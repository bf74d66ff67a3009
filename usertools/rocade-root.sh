# SPDX-License-Identifier: BSD-3-Clause
# Root's rights for the scripts beside this one, fetched only where they are needed: a container's
# root has them and has no sudo; what each says to --version; and what belongs to the tree. To be
# sourced; not a program.

if [ "${1:-}" = --version ]; then
	"$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/rocade" --version |
		sed "1s/^rocade /${0##*/} /"
	exit
fi

# The command that gives them; empty for root itself.
rocade_rights=()
if [ "$(id -u)" -ne 0 ]; then
	for program in sudo doas; do
		if command -v "$program" >/dev/null; then
			rocade_rights=("$program")
			break
		fi
	done
fi

# Whether root's rights are to be had at all.
has_rights() {
	[ "$(id -u)" -eq 0 ] || [ ${#rocade_rights[@]} -gt 0 ]
}

# as_root COMMAND...: runs it with root's rights, and with the variables of ours that matter
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
		return
	fi
	local kept=("PATH=$PATH")
	local name
	for name in DEBIAN_FRONTEND ROCADE_BUILD_DIR ROCADE_SCRATCH ROCADE_MIRROR \
		ROCADE_DPDK_SOURCE ASAN_OPTIONS UBSAN_OPTIONS; do
		[ -z "${!name:-}" ] || kept+=("$name=${!name}")
	done
	"${rocade_rights[@]}" env "${kept[@]}" "$@"
}

# tree_files FOLDER: the project's files in it, each ended by a zero byte
tree_files() {
	# Of this tree alone: a repository above it may be anybody's, with commands in its settings.
	if [ -e "$1/.git" ]; then
		git -c safe.directory="$1" -c core.fsmonitor=false -C "$1" \
			ls-files -z -co --exclude-standard |
			while IFS= read -r -d '' file; do
				if [ -e "$1/$file" ]; then printf '%s\0' "$file"; fi
			done
	else
		(cd "$1" && find . \( -path ./build -o -path ./.git -o -name __pycache__ \) -prune \
			-o \( -type f -o -type l \) -print0)
	fi
}
