#!/usr/bin/env bash
# Manual pages and completion name every option that --help names, and no other; completion completes.
# SPDX-License-Identifier: MIT
set -uo pipefail
mural=$1
made=$(cd "$(dirname "$mural")/.." && pwd)/manuals
make=$(cd "$(dirname "$0")/../.." && pwd)/scripts/manuals/make
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

wrong() {
	echo "$1" >&2
	[ $# -lt 2 ] || head -n 20 "$2" >&2
	failures=$((failures + 1))
}

if [ ! -f "$made/made" ]; then # a build of the tests alone
	made=$work/made
	"$make" "$mural" "$made" || wrong 'they cannot be made'
fi

# same NAME <FOUND: as what --help names, in $work/help
same() {
	sort -u >"$work/found"
	diff "$work/help" "$work/found" >"$work/diff" || wrong "$1 and --help differ:" "$work/diff"
}

mapfile -t commands < <("$mural" --help | sed -n 's/^  \([a-z][a-z-]*\)  *.*/\1/p')
[ ${#commands[@]} -gt 3 ] || wrong 'mural --help names no commands'
for command in "${commands[@]}"; do
	# --[no-]x is two options
	"$mural" "$command" --help | sed -n 's/^  \(--[^ ]*\).*/\1/p' |
		sed '/\[no-\]/{s/--\[no-\]\(.*\)/--\1\n--no-\1/}' | sort -u >"$work/help"
	page=$made/man/man1/mural-$command.1
	sed -n 's/\\-/-/g; /^\.TP$/{n;s/\\-/-/g;s/\\f[BRI]/ /g;p}' "$page" | grep -o -- '--[^ ,]*' | same "mural-$command(1)"
	grep -q "^\\\\fBmural $command" "$page" || wrong "mural-$command(1) has no synopsis" "$page"
	sed -n "s/^\t\t$command:\*) words='\(.*\)' ;;/\1/p" "$made/bash/mural" | tr ' ' '\n' | same "bash's completion of $command"
	sed -n "/^$command)/,/;;/s/^\t\t'\(--[^[]*\)\[.*/\1/p" "$made/zsh/_mural" | same "zsh's completion of $command"
	sed -n "s/.*from $command' -l \([^ ]*\) .*/--\1/p" "$made/fish/mural.fish" | same "fish's completion of $command"
	grep -q "mural\\\\-$command\\\\fR(1)" "$made/man/man1/mural.1" || [ "$command" = mural ] || wrong "mural(1) does not name $command"
done

"$mural" train --help-config | sed -n 's/^\([^ ].*\)$/\1/p' | sort -u >"$work/help"
sed -n '/^\.TP$/{n;s/\\-/-/g;s/\\fB\(.*\)\\fR/\1/p}' "$made/man/man5/mural-config.5" | same 'mural-config(5)'

for page in "$made"/man/man?/*; do
	command -v groff >/dev/null || break
	groff -man -Tutf8 -ww "$page" >/dev/null 2>"$work/groff" || wrong "$page is no manual page"
	[ ! -s "$work/groff" ] || wrong "groff complains of $page" "$work/groff"
done
! command -v zsh >/dev/null || zsh -n "$made/zsh/_mural" || wrong "zsh does not read its completion"
! command -v fish >/dev/null || fish -n "$made/fish/mural.fish" || wrong "fish does not read its completion"

# completes EXPECTED WORD...: the last word is the one under way
completes() {
	local expected=$1
	shift
	COMP_WORDS=(mural "$@")
	COMP_CWORD=$#
	COMPREPLY=()
	_mural
	[ "${COMPREPLY[*]}" = "$expected" ] || wrong "'mural $*' completes to '${COMPREPLY[*]}', not '$expected'"
}
# shellcheck source=/dev/null
. "$made/bash/mural"
completes 'train' tr
completes '--version' --v
completes 'fp32 fp16' train --precision fp
completes '--overlap-comm' train --overlap
completes '--no-overlap-comm' train --no-overlap
completes '' train --config ''
completes 'inspect' data i
completes '--result' info --re

[ $failures -eq 0 ] && echo 'manual pages and completion say what --help says'
[ $failures -eq 0 ]
