#!/usr/bin/env bash
# scripts/study: every experiment is a study that the program understands, one that fails does not keep the others from being made, and
# scripts/study-tables writes their figures into a page. Nothing is trained but one small study. SPDX-License-Identifier: MIT
set -euo pipefail
mural=$(realpath "$1")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "$1" >&2
	exit 1
}

# A program in the place of Mural: says what it was asked for; fails for tesla-weak.
cat >"$work/mural" <<'END'
#!/bin/sh
echo "asked: $*"
case "$*" in *tesla-weak*) exit 1 ;; esac
END
chmod +x "$work/mural"
code=0
MURAL="$work/mural" scripts/study --folder "$work/a folder" >"$work/out" 2>"$work/err" || code=$?
[ $code = 1 ] || fail "one experiment failed: exit code $code: $(cat "$work/out" "$work/err")"
grep -q 'not everything went well: tesla-weak$' "$work/err" || fail "$(cat "$work/err")"
[ "$(grep -c '^asked: study' "$work/out")" = 12 ] || fail "not twelve experiments: $(cat "$work/out")"
for figure in 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do
	grep -Eq "^study: [a-z0-9-]+ \(figure ([0-9, ]*, )?$figure(,[0-9, ]*)?\)" "$work/out" || fail "no experiment for figure $figure"
done

# The configurations are whole, at the ranks of their first point.
for file in examples/studies/*.json; do
	"$mural" train --config "$file" --micro-batch 16 --batch 16 --show-config >"$work/out" 2>"$work/err" || fail "$file: $(cat "$work/err")"
	[ ! -s "$work/err" ] || fail "$file: $(cat "$work/err")"
done

for arguments in 'tesla' '--rounds 0' '--rounds' '--folder' '--quick'; do
	code=0
	# shellcheck disable=SC2086 # words
	MURAL="$work/mural" scripts/study $arguments >"$work/out" 2>"$work/err" || code=$?
	[ $code = 2 ] || fail "scripts/study $arguments: exit code $code"
done
scripts/study --help | grep -q '^  vector-nodes ' || fail 'help lists no experiments'

# Tables: what was measured, the paper's beside it, and nothing else of the page changes.
"$mural" study strong --folder "$work/f/tesla-strong" --ranks 1 --batches 16 --rounds 1 --steps 1 --warm-up 0 \
	--config examples/studies/tesla.json --synthetic-images 64 >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
printf 'before\n<!-- table tesla-strong -->\nold\n<!-- end -->\nbetween\n<!-- table vector-weak -->\nkept\n<!-- end -->\n' >"$work/page.md"
scripts/study-tables "$work/f" "$work/page.md" 2>"$work/err"
grep -q 'vector-weak stays' "$work/err" || fail "$(cat "$work/err")"
! grep -q old "$work/page.md" || fail "$(cat "$work/page.md")"
[ "$(sed -n '1p;$p' "$work/page.md")" = $'before\n<!-- end -->' ] || fail "$(cat "$work/page.md")"
grep -q '^kept$' "$work/page.md" || fail "$(cat "$work/page.md")"
grep -Eq '^\| 1 \| 16 \| [0-9.]+ \| [0-9.]+ \| 712\.9 \| ' "$work/page.md" || fail "$(cat "$work/page.md")"
grep -o '<!-- table [a-z0-9-]* -->' docs/paper.md | wc -l | grep -qx 15 || fail 'docs/paper.md has another number of tables'
