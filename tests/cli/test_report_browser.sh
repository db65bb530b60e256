#!/usr/bin/env bash
# A report in a real browser: on a telephone and on a large screen nothing overlaps or sticks out, and the console stays empty. Passed
# over, aloud, where there is no Chromium or no gnuplot.
# SPDX-License-Identifier: MIT
set -uo pipefail
mural=$1
look=$(cd "$(dirname "$0")/../support" && pwd)/report_look.js
command -v chromium >/dev/null || { echo 'no chromium: nobody looked' && exit 77; }
command -v gnuplot >/dev/null || { echo 'no gnuplot: there is nothing to look at' && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit
model=(--model mu --image-size 8 --patch 4 --channels 1 --classes 4 --data synthetic --synthetic-images 64 --threads 1)
failures=0

wrong() {
	echo "$1" >&2
	failures=$((failures + 1))
}

# browse PAGE OPTIONS...: the page's DOM to stdout, what the console has to $work/console
browse() {
	local page=$1
	shift
	HOME=$work timeout 120 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
		--enable-logging=stderr --user-data-dir="$work/profile" --virtual-time-budget=5000 "$@" "file://$page" 2>"$work/console"
}

# A study with many points, made up, with long names and intervals: the worst that figures have to cope with.
made_up() {
	mkdir -p "$1"
	{
		echo '{"study": "strong", "environment": {"host": "a-host-with-a-rather-long-name.example.org", "cores": 128, "date": "2026-01-01T00:00:00Z"},'
		echo '"model": "vit_b_16", "data": "CIFAR-10", "arguments": ["--config", "a/very/long/path/without/any/space/in/it/configuration/file.json"],'
		echo '"rounds": 2, "steps": 10, "points": ['
		awk 'BEGIN { for (b = 16; b <= 256; b *= 4) for (r = 1; r <= 32; r *= 2) {
			s = 0.0123 * b + 0.004 * r
			printf "%s{\"name\": \"p%d-%d\", \"ranks\": %d, \"batch_per_rank\": %d, \"accumulation\": 1, \"precision\": \"fp32\", \"dataset_fraction\": 1,", (b + r > 17 ? "," : ""), r, b, r, b
			printf "\"rounds_measured\": 2, \"step_seconds\": %f, \"data_seconds\": 0.000001, \"forward_seconds\": %f, \"backward_seconds\": %f,", s, s / 4, s / 2
			printf "\"communication_exposed_seconds\": %f, \"communication_hidden_seconds\": %f, \"optimizer_seconds\": %f,", s / 6, s / 9, s / 12
			printf "\"images_per_second\": %f, \"epoch_seconds\": %f, \"speed_up\": %f, \"speed_up_low\": %f, \"speed_up_high\": %f,", r * b / s, 50000 * s / r / b, r * 0.9, r * 0.8, r * 1.3
			printf "\"efficiency\": 0.9, \"efficiency_low\": 0.8, \"efficiency_high\": 1.3, \"communication_fraction\": 0.1667}\n" } }'
		echo ']}'
	} >"$1/study.json"
}

made_up long
"$mural" study batch --folder b --ranks 1 --batches 4,8,16,32 --rounds 1 --epochs 2 "${model[@]}" >out 2>&1 || wrong "no study: $(tail -n 3 out)"
"$mural" train --run-dir run --batch 8 --epochs 4 --val 0.2 --quiet "${model[@]}" >out 2>&1 || wrong "no run: $(tail -n 3 out)"
long=a-run-with-a-name-that-nobody-would-give-but-somebody-does-$(printf '\303\244%.0s' {1..30})
cp -r run "$long"
mkdir all
mv long b run "$long" all
"$mural" report all --output report.html >out 2>&1 || wrong "no report: $(cat out)"
{
	cat report.html
	echo '<script>'
	cat "$look"
	echo '</script>'
} >looked.html

for width in 400 1600; do
	# A window has a least width, a frame has not.
	printf '<!DOCTYPE html><body style="margin:0"><iframe src="looked.html" style="border:0;width:%dpx;height:1000px"></iframe>
<script>const frame = document.querySelector("iframe");
const wait = setInterval(() => { const title = frame.contentDocument && frame.contentDocument.title;
if (title && title.startsWith("LOOKED")) { document.title = title; clearInterval(wait); } }, 50);</script></body>' $width >frame.html
	browse "$work/frame.html" --allow-file-access-from-files --window-size=1700,1100 --dump-dom >dom
	title=$(sed -n 's/.*<title>\(LOOKED.*\)<\/title>.*/\1/p' dom)
	[[ $title == "LOOKED $width "*' WRONG 0' ]] || wrong "$width pixels: ${title:-the browser did not look: $(tail -n 3 console)}"
	! grep -q 'CONSOLE' console || wrong "$width pixels: $(grep CONSOLE console | head -n 3)"
done
browse "$work/report.html" --print-to-pdf="$work/page.pdf" --no-pdf-header-footer >dom
[ "$(head -c 5 page.pdf)" = '%PDF-' ] || wrong 'it does not print'

[ $failures -eq 0 ] && echo "looked: $title"
[ $failures -eq 0 ]
