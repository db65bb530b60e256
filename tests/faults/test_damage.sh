#!/bin/bash
# Whatever happens to the newest checkpoint (a flipped bit, a torn or missing file, a wrong or missing `latest`, no permission), it is
# refused by the name of the file, the set before it is used, and in the end there are the same bits. A set asked for by its own name is
# refused and nothing is touched; without a whole set nothing begins. SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
export TMPDIR=$work
task=(train --data synthetic --synthetic-images 24 --model mu --image-size 16 --patch 8 --channels 1 --classes 4 --batch 8 --epochs 4
	--ema 0.9 --seed 3 --threads 1 --quiet --eval-every 0 --checkpoint-every 3 --checkpoint-epochs 0 --keep 2)

"$program" "${task[@]}" --run-dir "$work/whole" >"$work/out" 2>&1 || { cat "$work/out"; fail "the undisturbed run"; }
newest=checkpoints/step-00000012 before=checkpoints/step-00000009
[ -e "$work/whole/$newest/manifest.json" ] && [ -e "$work/whole/$before/manifest.json" ] || fail "the sets are not where they should be"

fresh() {
	rm -rf "$work/run"
	cp -r "$work/whole" "$work/run"
	rm "$work/run/result.json" "$work/run/weights.safetensors"
}
# resume CODE ARGUMENTS...
resume() {
	local wanted=$1
	shift
	timeout 60 "$program" "${task[@]}" --run-dir "$work/run" "$@" >"$work/out" 2>"$work/err"
	local code=$?
	[ $code = "$wanted" ] || { cat "$work/err"; fail "$*: exit code $code, expected $wanted"; }
}
# falls_back WHAT PATTERN...: goes on from the set before; the warning has the patterns.
falls_back() {
	local what=$1
	shift
	resume 0 --resume auto
	expect "^mural: warning: not the latest checkpoint: going on from $work/run/$before\$" "$work/err"
	for pattern; do
		expect "$pattern" "$work/err"
	done
	[ "$(sed -n '2,$p' "$work/run/steps.csv" | wc -l)" = 12 ] || fail "$what: steps.csv has other steps"
	diff <(cut -d, -f1-6 "$work/whole/steps.csv") <(cut -d, -f1-6 "$work/run/steps.csv") || fail "$what: the steps differ"
	cmp "$work/whole/weights.safetensors" "$work/run/weights.safetensors" || fail "$what: the weights differ"
	[ "$(cat "$work/run/checkpoints/latest")" = "$(basename $newest)" ] || fail "$what: latest is wrong afterwards"
	cmp <(cd "$work/whole/$newest" && cat model.safetensors optimizer.safetensors) \
		<(cd "$work/run/$newest" && cat model.safetensors optimizer.safetensors) || fail "$what: the set was not made anew"
}
flip() { # one bit in the middle
	local at=$(($(stat -c %s "$1") / 2)) byte
	byte=$(od -An -tu1 -j $at -N 1 "$1")
	# shellcheck disable=SC2059
	printf "\\$(printf %o $((byte ^ 4)))" | dd of="$1" bs=1 seek=$at conv=notrunc status=none
}

files=$(cd "$work/whole/$newest" && ls)
[ "$(echo "$files" | wc -w)" -ge 4 ] || fail "expected four files or more in a set"
for file in $files; do
	path=$work/run/$newest/$file
	fresh
	flip "$path"
	falls_back "a flipped bit in $file" "^       $path: the (file|manifest) was (cut or )?changed: "
	fresh
	truncate -s -7 "$path"
	falls_back "a torn $file" "^       $path: the (file has [0-9]+ bytes, and the manifest says [0-9]+|manifest was cut or changed: .*)\$"
	fresh
	rm "$path"
	falls_back "no $file" "^       $path: cannot open the (file|checkpoint's manifest): No such file or directory\$"
	fresh
	truncate -s 0 "$path"
	falls_back "an empty $file" "^       $path: "
done

# `latest` is only a hint: the newest whole set is the same one.
for what in missing garbage another; do
	fresh
	case $what in
	missing) rm "$work/run/checkpoints/latest" ;;
	garbage) head -c 300 /dev/urandom >"$work/run/checkpoints/latest" ;;
	another) echo step-00000099 >"$work/run/checkpoints/latest" ;;
	esac
	resume 0 --resume auto
	expect "^mural: warning: not the latest checkpoint: going on from $work/run/$newest\$" "$work/err"
	expect "^       $work/run/checkpoints/latest: " "$work/err"
	cmp "$work/whole/weights.safetensors" "$work/run/weights.safetensors" || fail "latest $what: the weights differ"
done

# By its own name a set must be whole; nothing is changed.
fresh
flip "$work/run/$newest/model.safetensors"
(cd "$work/run" && find . -type f | sort | xargs cksum) >"$work/sums"
resume 3 --resume "$work/run/$newest"
expect "^mural: the file was changed: its checksum is [0-9a-f]{16}, and the manifest says [0-9a-f]{16}\$" "$work/err"
expect "^       $work/run/$newest/model.safetensors\$" "$work/err"
(cd "$work/run" && find . -type f | sort | xargs cksum) | cmp - "$work/sums" || fail "a refused resume changed the run"

# None is whole: nothing begins, whatever was asked for, and nothing is changed.
flip "$work/run/$before/state.json"
(cd "$work/run" && find . -type f | sort | xargs cksum) >"$work/sums"
for how in "--resume auto" "--resume-if-any"; do
	# shellcheck disable=SC2086
	resume 3 $how
	expect "^mural: none of the 2 checkpoints of '$work/run' is whole\$" "$work/err"
	expect "^       $work/run/$newest/model.safetensors: the file was changed: " "$work/err"
	expect "^       $work/run/$before/state.json: the file was changed: " "$work/err"
done
(cd "$work/run" && find . -type f | sort | xargs cksum) | cmp - "$work/sums" || fail "a refused resume changed the run"

# Permissions, which root does not obey.
as=()
if [ "$(id -u)" = 0 ]; then
	as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	chmod 755 "$work"
	"${as[@]}" "$program" --version >/dev/null 2>&1 || { echo "note: permissions are not tested: nobody cannot run the program"; exit 0; }
fi
mine() {
	fresh
	[ ${#as[@]} = 0 ] || chown -R 65534:65534 "$work/run"
}
program_as() {
	timeout 60 "${as[@]}" env TMPDIR="$work/run" "$program" "${task[@]}" --run-dir "$work/run" "$@" >"$work/out" 2>"$work/err"
}
mine
chmod 000 "$work/run/$newest/optimizer.safetensors"
program_as --resume auto || { cat "$work/err"; fail "an unreadable file"; }
expect "^mural: warning: not the latest checkpoint: going on from $work/run/$before\$" "$work/err"
expect "^       $work/run/$newest/optimizer.safetensors: cannot open the file: Permission denied\$" "$work/err"
mine
chmod 000 "$work/run/$newest"
program_as --resume auto --max-steps 12
expect "^       $work/run/$newest/manifest.json: cannot open the checkpoint's manifest: Permission denied\$" "$work/err"
chmod 700 "$work/run/$newest"

# The folder of sets may not be written: that is told at once, not after hours.
mine
chmod 555 "$work/run/checkpoints"
program_as --resume "$work/run/$before"
code=$?
[ $code = 1 ] || { cat "$work/err"; fail "a folder that may not be written: exit code $code"; }
expect '^mural: .*: Permission denied$' "$work/err"
expect "^       $work/run/checkpoints/" "$work/err"
chmod 755 "$work/run/checkpoints"
program_as --resume auto || { cat "$work/err"; fail "it cannot go on afterwards"; }
cmp "$work/whole/weights.safetensors" "$work/run/weights.safetensors" || fail "permissions: the weights differ"
exit 0
