#!/usr/bin/env bash
# mural report: a page and its pictures from a real study and a real run, and from what is left of damaged ones.
# SPDX-License-Identifier: MIT
set -uo pipefail
mural=$1
check=$(cd "$(dirname "$1")" && pwd)/programs/xml_check
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit
model=(--model mu --image-size 8 --patch 4 --channels 1 --classes 4 --data synthetic --synthetic-images 64 --threads 1)
failures=0
command -v gnuplot >/dev/null && gnuplot=yes || gnuplot=no

wrong() {
	echo "$1" >&2
	head -n 20 "$work/out" "$work/err" >&2
	failures=$((failures + 1))
}

# report EXPECTED_CODE ARGUMENTS...
report() {
	local expected=$1 code=0
	shift
	"$mural" report "$@" >"$work/out" 2>"$work/err" || code=$?
	[ $code = "$expected" ] || wrong "report $*: exit code $code, not $expected"
}

# says FILE TEXT
says() {
	grep -qF -- "$2" "$1" || wrong "$1 lacks '$2'"
}

# Every number of a table is shown by its figure, too; every figure has a table.
numbers_match() {
	awk -v RS='<figure ' -v drawn="$2" '
		NR > 1 {
			figures++
			titles = cells = ""
			rest = $0
			while (match(rest, /<title>[^<]*<\/title>/)) {
				titles = titles " " substr(rest, RSTART + 7, RLENGTH - 15)
				rest = substr(rest, RSTART + RLENGTH)
			}
			rest = $0
			n = 0
			while (match(rest, /<(td|small)>[0-9][^<]*</)) {
				number = substr(rest, RSTART, RLENGTH - 1)
				rest = substr(rest, RSTART + RLENGTH)
				sub(/^[^>]*>/, "", number)
				n++
				if (drawn == "yes" && !index(titles, number))
					print substr($0, 1, 40) ": " number " is in the table only"
			}
			if (n == 0)
				print substr($0, 1, 40) ": no table"
		}
		END { if (figures + 0 < 4) print figures + 0 " figures" }' "$1" >"$work/mismatch"
	[ ! -s "$work/mismatch" ] || wrong "$1: $(head -n 3 "$work/mismatch")"
}

"$mural" study strong --folder s --ranks 1 --batches 8,16 --rounds 2 --steps 4 --warm-up 1 "${model[@]}" >out 2>err || wrong 'no study'
"$mural" study batch --folder b --ranks 1 --batches 8,16,32 --rounds 1 --epochs 2 "${model[@]}" >out 2>err || wrong 'no study of batches'
"$mural" train --run-dir 'r & <b>' --batch 8 --epochs 4 --val 0.2 --quiet "${model[@]}" >out 2>err || wrong 'no run'

report 0 s b 'r & <b>' --output page/all.html --title '<i>"all" & more' --result made.json
says out 'limit'
says made.json '"studies": 2'
says page/all.html '<title>&lt;i&gt;&quot;all&quot; &amp; more</title>'
says page/all.html 'Run: r &amp; &lt;b&gt;'
says page/all.html 'Seconds per epoch'
says page/all.html 'Accuracy on the test images against images per rank'
says page/all.html 'Memory by part'
says page/all.html 'Timeline of a step'
says page/all.html 'Loss by epoch'
! grep -Eq '<script|https?://[^w]|src=' page/all.html || wrong 'the page needs something else'
! grep -qE '>(nan|-?inf)' page/all.html || wrong 'the page shows what is no number'
numbers_match page/all.html "$gnuplot"
[ "$gnuplot" = no ] || [ "$(find page/all-figures -name '*.svg' | wc -l)" = "$(grep -c '<figure ' page/all.html)" ] || wrong 'not a file per figure'
[ "$gnuplot" = no ] || "$check" page/all-figures/*.svg 2>err || wrong 'a picture is no XML'
[ -z "$(find . -name '*.part')" ] || wrong 'unfinished files are left'

# Without gnuplot: words and tables, and what to install.
mkdir none
PATH=none "$mural" report s --output plain.html >out 2>err || wrong 'no page without gnuplot'
says err 'gnuplot is not installed (Debian: gnuplot-nox)'
says plain.html 'gnuplot is not installed'
numbers_match plain.html no

# A gnuplot that fails is told with its last words.
mkdir bad
printf '#!/bin/sh\necho "no terminal here" >&2\nexit 3\n' >bad/gnuplot
chmod +x bad/gnuplot
PATH=$work/bad "$mural" report s --output plain.html >out 2>err || wrong 'no page with a broken gnuplot'
says err 'gnuplot failed (exit code 3): no terminal here'

# An interrupted study: what is missing is said, and is no failure.
cp -r s half
rm -r half/study.json half/points/strong-r1-b16-fp32.*
report 0 half
says half/report.html 'no comparison of its points'
cp -r s quarter
sed -i '0,/"rounds_measured": 2/s//"rounds_measured": 1/' quarter/study.json
report 0 quarter
says err '3 of 4 runs were measured'
mkdir sleeping
report 3 sleeping
says err 'neither a run (steps.csv) nor a study (study.json)'
[ ! -e sleeping/report.html ] || wrong 'a page of nothing'

# Damage: the rest is shown, the exit code is 3, what was there stays.
report 3 nowhere s --output some.html
says err 'nowhere: there is no such folder'
says some.html 'Strong scaling'
cp -r 'r & <b>' torn
truncate -s -10 torn/steps.csv
report 0 torn
says err 'the last line is not whole'
printf '\n9,9\n' >>torn/steps.csv
report 3 torn
says err 'torn/steps.csv:'
says torn/report.html 'Loss by epoch'
cp -r s broken
truncate -s 200 broken/study.json
report 3 broken
says err 'broken/study.json:'
says broken/report.html 'Run: strong-r1-b8-fp32.1'
: >torn/steps.csv
: >torn/result.json
cp torn/report.html kept.html
report 3 torn
cmp -s torn/report.html kept.html || wrong 'a page was replaced by nothing'

# Usage.
report 2
report 2 s --nonsense
report 2 s --output
report 2 s --placement both
report 2 s --cluster nowhere.json
report 1 s --output made.json/page.html
report 0 --help
says out '--output FILE'

[ $failures -eq 0 ] || exit 1
[ "$gnuplot" = yes ] || { echo 'no gnuplot: pictures were not looked at' && exit 77; }
