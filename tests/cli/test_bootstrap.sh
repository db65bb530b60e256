#!/usr/bin/env bash
# scripts/bootstrap with made-up package tools: what it lists, installs, refuses. Nothing real is installed.
# SPDX-License-Identifier: MIT
set -uo pipefail
bootstrap=$(cd "$(dirname "$0")/../.." && pwd)/scripts/bootstrap
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# A PATH with nothing but what the script itself calls, and our made-up tools.
mkdir "$work/bin"
for tool in bash env cat rm; do
	ln -s "$(command -v "$tool")" "$work/bin/$tool"
done

# stub NAME: the made-up tool's text comes on stdin.
stub() {
	{
		echo '#!/usr/bin/env bash'
		cat
	} >"$work/bin/$1"
	chmod +x "$work/bin/$1"
}

# The packages that are "installed", and what apt-get was asked for.
reset() {
	rm -f "$work"/bin/{dpkg-query,apt-get,sudo,id,gcc,cmake,ninja}
	: >"$work/calls"
	installed=$*
	stub dpkg-query <<END
for name in $installed; do echo "\$name installed"; done
echo "removed-one config-files"
exit 1
END
	stub apt-get <<END
echo "apt-get \$*" >>"$work/calls"
END
	stub id <<END
echo 0
END
}

# run EXPECTED_CODE ARGUMENTS...: output to $work/out.
run() {
	local expected=$1 code=0
	shift
	PATH=$work/bin bash "$bootstrap" "$@" >"$work/out" 2>&1 </dev/null || code=$?
	[ $code -eq "$expected" ] || wrong "'bootstrap $*' ended with $code, not $expected"
}

wrong() {
	echo "line ${BASH_LINENO[1]}: $1" >&2
	cat "$work/out" "$work/calls" >&2
	failures=$((failures + 1))
}

says() {
	[[ $(<"$work/out") == *"$1"* ]] || wrong "the output lacks '$1'"
}

says_not() {
	[[ $(<"$work/out") != *"$1"* ]] || wrong "the output has '$1'"
}

calls() {
	[[ $(<"$work/calls") == "$1" ]] || wrong "apt-get should have been called as: ${1:-not at all}"
}

all_build='gcc libc6-dev cmake ninja-build zlib1g-dev libspng-dev libturbojpeg0-dev libdnnl-dev libopenmpi-dev openmpi-bin libcmocka-dev curl ca-certificates'

# Everything there: nothing to do.
reset "$all_build dataset-fashion-mnist gnuplot-nox"
run 0
says 'everything is there'
run 0 -y build demo
calls ''

# --check lists with reasons and never installs, even with -y.
reset gcc libc6-dev
run 1 --check -y
says 'libdnnl-dev'
says 'oneDNN'
says 'dataset-fashion-mnist'
says_not 'clang'
says_not 'C compiler'
calls ''
run 1 --check build
says_not 'dataset-fashion-mnist'
run 1 --check checks
says 'clang-tidy'
says_not 'libdnnl-dev'

# A package that was removed but left its settings is missing.
reset "${all_build/libdnnl-dev/}"
stub dpkg-query <<END
echo "libdnnl-dev config-files"
for name in ${all_build/libdnnl-dev/}; do echo "\$name installed"; done
END
run 1 --check build
says 'libdnnl-dev'

# Without -y and without a person nothing happens.
reset "${all_build/zlib1g-dev/}"
run 1 build
says 'add -y'
calls ''

# Only what is missing is installed, once.
run 0 -y build
calls 'apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=120 zlib1g-dev'

# Tools from elsewhere serve, but an old cmake does not.
reset "${all_build/cmake ninja-build/}"
stub ninja <<<'echo 1.11'
stub cmake <<<'echo "cmake version 3.28.3"'
run 0 build
stub cmake <<<'echo "cmake version 3.22.1"'
run 1 --check build
says 'cmake'
says_not 'ninja-build'
stub cmake <<<'echo "cmake version 4.0.1"'
run 0 build

# Old or missing lists: refreshed, then once more; a second failure is an error that names the packages.
reset "${all_build/libcmocka-dev/}"
stub apt-get <<END
echo "\$1" >>"$work/calls"
if [ "\$1" = update ]; then : >"$work/updated"; exit; fi
[ -e "$work/updated" ]
END
run 0 -y build
calls $'install\nupdate\ninstall'
rm "$work/updated"
stub apt-get <<END
[ "\$1" = update ]
END
run 1 -y build
says 'could not install: libcmocka-dev'

# People who are not root: through sudo, or told what to do.
reset "${all_build/libdnnl-dev/}"
stub id <<<'echo 1000'
run 1 -y build
says 'there is no sudo'
says 'apt-get install --no-install-recommends libdnnl-dev'
calls ''
stub sudo <<END
echo "sudo \$*" >>"$work/calls"
END
run 0 -y build
calls 'sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=120 libdnnl-dev'

# Not Debian: names the packages and stops.
reset
rm "$work"/bin/{dpkg-query,apt-get}
stub gcc <<<''
run 1 -y build
says 'libdnnl-dev'
says 'not Debian or Ubuntu'
says_not 'C compiler'

run 2 --frobnicate
says "unknown argument '--frobnicate'"
run 0 --help
says 'usage:'

[ $failures -eq 0 ] && echo 'bootstrap does what it says'
[ $failures -eq 0 ]
