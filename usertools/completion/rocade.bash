# SPDX-License-Identifier: BSD-3-Clause
# Completion of rocade, rocaded, rocade-bench and rocade-dump for bash. What may come next is known
# to "rocade complete", which asks the running engine for links, devices and counters; this hands it
# the line. Without an engine it is silent about them.

_rocade_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$1")
}

_rocade() {
	local line=${COMP_LINE:0:COMP_POINT}
	local command=rocade answer typed lead
	[ "${1##*/}" != rocade ] || command=$1
	typed=${line##*[[:space:]]}
	# To bash a word begins behind = and : as well.
	lead=${typed%"${typed##*[=:]}"}
	COMPREPLY=()
	while IFS= read -r answer; do
		case $answer in
		:files)
			_rocade_files "${typed#"$lead"}"
			;;
		:command*)
			if declare -F _command_offset >/dev/null; then
				_command_offset "${answer#:command }"
			elif [ "$COMP_CWORD" -eq "${answer#:command }" ]; then
				mapfile -t COMPREPLY < <(compgen -c -- "$typed")
			else
				_rocade_files "$typed"
			fi
			;;
		*)
			[[ $answer != *= ]] || compopt -o nospace 2>/dev/null
			COMPREPLY+=("${answer#"$lead"}")
			;;
		esac
	done < <("$command" complete -- "$line" 2>/dev/null)
}

complete -F _rocade rocade rocaded rocade-bench rocade-dump
