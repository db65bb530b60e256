#!/usr/bin/env bash
# Documents name what is there: every test that docs/coming-from-deepspeed.md names exists, its forty answers are forty and each
# says where Mural stands, and every file that a page links to is in the repository.
# SPDX-License-Identifier: MIT
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
failures=0

wrong() {
	echo "$1" >&2
	failures=$((failures + 1))
}

page=docs/coming-from-deepspeed.md
mapfile -t numbers < <(sed -n 's/^| \([0-9][0-9]*\) |.*/\1/p' $page)
[ "${numbers[*]}" = "$(seq -s ' ' 40)" ] || wrong "$page does not answer 1 to 40: ${numbers[*]}"
while IFS= read -r row; do
	[[ $row =~ \*\*(Here|By\ design|Not\ yet|Partly|Out\ of\ scope)\.?\*\* ]] || wrong "no standing in: $row"
done < <(grep '^| [0-9]' $page)
while read -r name; do
	compgen -G "tests/$name.[cs]*" >/dev/null || wrong "$page names the test $name, which is not there"
done < <(grep -Eo '(unit|kernels|golden|ranks|faults|cli)/test_[a-z_]+' $page | sort -u)

while read -r file link; do
	target=$(dirname "$file")/${link%%#*}
	[ -z "${link%%#*}" ] || [ -e "$target" ] || wrong "$file links to $link, which is not there"
done < <(grep -o '](\([^)]*\))' ./*.md docs/*.md | grep -v '://' | sed 's/^\([^:]*\):](\(.*\))$/\1 \2/')

[ $failures -eq 0 ] && echo 'documents name what is there'
[ $failures -eq 0 ]
