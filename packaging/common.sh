# shellcheck shell=bash disable=SC2034
# Shared by quickstart.sh, test.sh and .ci/run: messages, and installing missing packages. Sourced, not run.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# A line about what happens next, in bold on a terminal.
say() {
	if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
		printf '\033[1m==> %s\033[0m\n' "$*"
	else
		printf '==> %s\n' "$*"
	fi
}

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# What the build and the program need, as PROBE=PACKAGE; a probe is a command, a file, or one of the special ones in present().
build_needs='gcc=gcc cc=gcc lib:yaml-0.1=libyaml-dev cmake=cmake ninja=ninja-build pkg-config=pkg-config
	lib:libcurl=libcurl4-openssl-dev lib:jansson=libjansson-dev lib:libmicrohttpd=libmicrohttpd-dev
	lib:gnutls=libgnutls28-dev lib:libcrypt=libcrypt-dev lib:sqlite3=libsqlite3-dev lib:libpq=libpq-dev lib:libpcre2-8=libpcre2-dev lib:zlib=zlib1g-dev
	/usr/share/javascript/dygraphs/dygraph.min.js=libjs-dygraphs /usr/include/stdio.h=libc6-dev
	/etc/ssl/certs/ca-certificates.crt=ca-certificates'
fuzz_needs='clang=clang fuzzer=libclang-rt-dev'
# Graphite's service is disabled by Debian (CARBON_CACHE_ENABLED=false), so installing it starts nothing.
test_needs='/usr/bin/carbon-cache=graphite-carbon /usr/bin/graphite-manage=graphite-web gunicorn=gunicorn
	lib:cmocka=libcmocka-dev python3=python3 pytest-3=python3-pytest patch=patch
	/usr/lib/python3/dist-packages/psycopg2=python3-psycopg2
	/usr/lib/python3/dist-packages/xdist=python3-pytest-xdist curl=curl openssl=openssl systemd-analyze=systemd
	/usr/share/doc/libcairo2=libcairo2 /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf=fonts-dejavu-core'

# The page is tested in Debian's browser.
browser_needs='chromium=chromium node=nodejs npm=npm /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf=fonts-dejavu-core'

# Whether a probe finds what it asks for.
present() {
	case $1 in
	lib:*) command -v pkg-config >/dev/null && pkg-config --exists "${1#lib:}" ;;
	fuzzer) command -v clang >/dev/null && compgen -G "$(clang -print-resource-dir)/lib/linux/libclang_rt.fuzzer*" >/dev/null ;;
	/*) [ -e "$1" ] ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

# The packages of the needs that are not there.
missing() {
	local need
	for need in "$@"; do
		present "${need%%=*}" || printf '%s\n' "${need#*=}"
	done | sort -u
}

# Installs the packages of the needs that are missing, with apt; asks nothing.
install_needs() {
	local packages
	packages=$(missing "$@" | tr '\n' ' ')
	[ -n "$packages" ] || return 0
	command -v apt-get >/dev/null ||
		die "these Debian packages, or your system's equivalents, are missing: $packages"
	[ "$(id -u)" = 0 ] || command -v sudo >/dev/null ||
		die "not root and no sudo; as root: apt-get install --no-install-recommends $packages"
	say "Installing with apt: $packages"
	as_root apt-get update -q >/dev/null
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
		$packages </dev/null >/dev/null
}

# Configures and builds the Release build in the folder "$1", further arguments go to cmake.
build_release() {
	local build=$1 launcher=()
	shift
	command -v ccache >/dev/null && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
	say "Building (Release) in $build"
	cmake -S "$top" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release "${launcher[@]}" "$@" >"$build.log" 2>&1 &&
		cmake --build "$build" >>"$build.log" 2>&1 || {
		tail -n 40 "$build.log" >&2
		die "the build failed; see $build.log"
	}
}

# A command that starts the tests, if they need one.
wrapper=()

# The tests that are run.
tests=(tests)

# test_at_once BUILD PYTEST-ARGUMENT...: runs the tests with what was built there. Most of them wait for servers and
# timers, so six a core run at once where pytest-xdist is there. Up to ten that fail beside the others run once more,
# alone; those that pass then are listed as unstable, and are to be mended all the same.
test_at_once() {
	local build=$1 at_once=() failed again status=0
	shift
	# Asked of pytest itself: the first python3 in the path need not be the one that it runs with.
	! pytest-3 -p xdist --version >/dev/null 2>&1 || at_once=(-n $((6 * $(nproc))) --dist loadgroup)
	failed=$build/tests_failed
	rm -rf "$failed"
	set -- -q -o cache_dir="$failed" --rootdir="$top" --build="$build" "$@"
	HUNTER_C=$build/hunter-c "${wrapper[@]}" pytest-3 -rs "${at_once[@]}" "$@" "${tests[@]}" || status=$?
	[ $status = 1 ] || return $status
	# By name: --last-failed runs everything where it knows none of the names. pytest-xdist appends the group to them.
	mapfile -d '' again < <(python3 -c 'import json, re, sys
for name in json.load(open(sys.argv[1])): print(re.sub(r"@[^]@]*$", "", name), end="\0")' "$failed/v/cache/lastfailed")
	[ ${#again[@]} -gt 0 ] && [ ${#again[@]} -le 10 ] || return $status
	say "Unstable unless they fail again, alone:"
	printf '%s\n' "${again[@]}"
	HUNTER_C=$build/hunter-c "${wrapper[@]}" pytest-3 "$@" "${again[@]}"
}
