#!/usr/bin/env bash
# `mural data`: inspect, verify and fetch say what they find, name what is broken, and end with the right code.
# SPDX-License-Identifier: MIT
set -uo pipefail
mural=$(realpath "$1")
here=$(cd "$(dirname "$0")/../golden" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

wrong() {
	echo "line ${BASH_LINENO[1]}: $1" >&2
	cat "$work/out" "$work/err" >&2
	failures=$((failures + 1))
}

# run CODE ARGUMENTS...
run() {
	local expected=$1 code=0
	shift
	"$mural" data "$@" >"$work/out" 2>"$work/err" || code=$?
	[ $code -eq "$expected" ] || wrong "'mural data $*' ended with $code, not $expected"
}

# has FILE PATTERN
has() {
	grep -Eq -- "$2" "$work/$1" || wrong "$1 lacks '$2'"
}

run 0 --help
has out 'mural data verify PATH'
run 2
has err "expected inspect, verify or fetch, found ''"
run 2 frobnicate
run 2 inspect
has err "a data set is missing behind 'inspect'"
run 2 inspect a b
run 2 inspect a --format
run 2 inspect a --format=gif
has err "no data format 'gif'; there are auto, idx, synthetic, cifar10, cifar100, folder"
run 3 inspect nowhere
has err 'cannot open the data folder'

run 0 inspect "$here/cifar/cifar-10-batches-py"
has out '^training set: cifar10 in '
has out '^  images +11$'
has out '^  of +32 x 32 pixels, 3 channels$'
has out '^ +9 truck'
run 3 inspect "$here/cifar"
has err 'more than one data set: cifar10 and cifar100'
run 0 verify --format cifar100 "$here/cifar" --result out.json
has out '^  a class +0 to 1 images$'
has out '^  verified +3 readable, 0 broken$'
has out.json '^    "classes": 100'
has out.json '^    "readable": 2'
[ "$(grep -c '"fine_' out.json)" -eq 200 ] || wrong 'the result lacks names of classes'

# Class folders: one picture is broken, in the second of three places.
mkdir -p set/train/cat set/train/dog set/val/dog set/train/emu
cp "$here/pictures/rgb.png" set/train/cat/1.png
head -c 60 "$here/pictures/rgb.png" >set/train/cat/2.png
cp "$here/pictures/palette.png" set/train/dog/3.png
cp "$here/pictures/grey.png" set/val/dog/4.png
run 0 inspect set
has out '^training set: none \(.*found none; remove the folder or fill it: set/train/emu\)$'
rmdir set/train/emu
run 0 inspect set
has out '^  of +3 channels, any size$'
has out '^ +0 cat'
run 3 verify set
if grep -q 'this build cannot read PNG' err; then
	echo 'no libspng in this build: pictures are not verified'
else
	has err 'the PNG image is cut; fetch the file again'
	has err 'set/train/cat/2.png:'
	has err '1 image cannot be read: mend or remove it'
	has out '^  verified +2 readable, 1 broken$'
	has out '^ +0 cat +1 images$'
	rm set/train/cat/2.png
	run 0 verify set
fi
rm -r set/val
run 0 inspect set
has out '^test set: none \(the folder with the test images is missing'
run 3 verify set

run 2 fetch imagenet
has err 'there are cifar10, cifar100 and fashion-mnist'
run 2 fetch
run 2 fetch cifar10 --result x
export http_proxy=http://127.0.0.1:1 https_proxy=http://127.0.0.1:1 no_proxy='' NO_PROXY=''
run 1 fetch cifar10 --to here
has err 'is this machine offline\?'
has err 'cifar-10-binary.tar.gz'

[ $failures -eq 0 ] && echo 'mural data says what it finds'
exit $((failures > 0))
