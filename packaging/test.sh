#!/usr/bin/env bash
# Builds hunter-c (Release) and runs every test: the C unit tests, the fuzz targets on their corpus, and the tests that
# start the program and real servers. On a bare Debian 12 it first installs its dependencies. It ends with a summary.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
	cat <<'TEXT'
usage: packaging/test.sh [--full] [--no-install] [--build-dir DIR] [-- PYTEST-ARGUMENT...]

  --full           also fuzz each target for a minute (clang), repeat kill, reload and shutdown tests
                   ten times as often, run all tests of the agent with their state in PostgreSQL,
                   of which otherwise some are run, and plant the faults that the tests must find
                   (tests/mutations/run)
  --no-install     install nothing; tests whose dependencies are missing are skipped and listed
  --build-dir DIR  build there (build/release)

HUNTER_REFERENCE_DATA names a folder of reference data; tests that need it are skipped without it.
TEXT
}

install=yes full=no build=$top/build/release
while [ $# -gt 0 ]; do
	case $1 in
	--full) full=yes ;;
	--no-install) install=no ;;
	--build-dir)
		[ $# -gt 1 ] || die "--build-dir needs a folder"
		mkdir -p "$2"
		build=$(cd "$2" && pwd)
		shift
		;;
	--help | -h)
		usage
		exit 0
		;;
	--)
		shift
		break
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
	shift
done

# Servers come as Debian's packages, unpacked beside the build: installing them would start and enable services.
tools=$build/tools

# Unpacks packages there; fails if that is not possible or not wanted.
unpack() {
	if [ $install = no ] || ! command -v apt-get >/dev/null; then
		say "No $1: the tests against it will be skipped"
		return 1
	fi
	say "Unpacking Debian's $* in $tools (nothing of it is installed, no service started)"
	mkdir -p "$tools"
	if ! (cd "$tools" && apt-get download -q "$@" >/dev/null 2>&1); then
		as_root apt-get update -q >/dev/null
		(cd "$tools" && apt-get download -q "$@" >/dev/null 2>&1) || die "apt-get download $* failed"
	fi
	local package
	for package in "$@"; do
		dpkg-deb -x "$tools/$package"_*.deb "$tools"
		rm -f "$tools/$package"_*.deb
	done
}

# PostgreSQL does not run as root; where nobody else may look into the build folder, it runs from a copy elsewhere.
open_to_others() {
	[ "$(id -u)" = 0 ] && [ -d "$tools/usr/lib/postgresql" ] || return 0
	! setpriv --reuid=65534 --regid=65534 --clear-groups test -d "$tools/usr/lib/postgresql" || return 0
	copy=$(mktemp -d)
	trap 'rm -rf "$copy"' EXIT
	chmod 755 "$copy"
	cp -a "$tools/usr" "$copy"
	tools=$copy
}

unpack_prometheus() {
	export PATH=$tools/usr/bin:$PATH
	command -v prometheus >/dev/null && command -v promtool >/dev/null || unpack prometheus || return 0
	command -v victoria-metrics >/dev/null || unpack victoria-metrics || return 0
	command -v prometheus-alertmanager >/dev/null && command -v amtool >/dev/null || unpack prometheus-alertmanager || return 0
}

# An installed PostgreSQL is used where it is; of an unpacked one the libraries must be there.
unpack_postgres() {
	local version depends
	compgen -G "$tools/usr/lib/postgresql/*/bin" >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || {
		version=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p')
		unpack "postgresql-${version:-15}" "postgresql-client-${version:-15}" || return 0
		rm -f "$tools"/usr/lib/postgresql/*/lib/llvmjit.so # the compiler it would load is large, and not needed
		depends=$(apt-cache depends "postgresql-${version:-15}" "postgresql-client-${version:-15}" |
			sed -n 's/^ *Depends: \(lib.*\)/\1/p' | grep -Ev '^lib(llvm|xslt)' | sort -u)
		say "Installing its libraries with apt:" $depends tzdata
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $depends tzdata \
			</dev/null >/dev/null
	}
	open_to_others
	for version in "$tools"/usr/lib/postgresql/*/bin; do
		[ ! -d "$version" ] || export PATH=$version:$PATH
	done
}

# Patroni, etcd and PgBouncer make a PostgreSQL that many agents share; their libraries, too, must be there.
unpack_fleet() {
	local depends
	export PATH=$PATH:$tools/usr/sbin
	command -v pgbouncer >/dev/null && command -v etcd >/dev/null &&
		[ -d "$tools/usr/lib/python3/dist-packages/patroni" ] && return 0
	unpack pgbouncer patroni etcd-server || return 0
	depends=$(apt-cache depends pgbouncer patroni | sed -n 's/^ *Depends: \(lib.*\|python3-[a-z0-9-]*\)$/\1/p' | sort -u | grep -v pysyncobj)
	say "Installing their libraries with apt:" $depends python3-etcd
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $depends python3-etcd </dev/null >/dev/null
}

# Of Exim, too, the libraries must be there; libnss-wrapper lets it run as any user.
unpack_exim() {
	local depends
	export PATH=$PATH:$tools/usr/sbin
	command -v exim4 >/dev/null && compgen -G "$tools/usr/lib/*/libnss_wrapper.so" >/dev/null && return 0
	unpack exim4-daemon-light libnss-wrapper || return 0
	depends=$(apt-cache depends exim4-daemon-light | sed -n 's/^ *Depends: \(lib.*\)/\1/p' | sort -u)
	say "Installing its libraries with apt:" $depends
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $depends </dev/null >/dev/null
}

# What drives a Chromium comes from npm, as tests/e2e/browser/package-lock.json names it. Without it the page is not tested.
fetch_browser() {
	local folder=$build/browser wanted=$top/tests/e2e/browser
	! cmp -s "$wanted/package-lock.json" "$folder/package-lock.json" || [ ! -d "$folder/node_modules" ] || return 0
	[ $install = yes ] && command -v npm >/dev/null || return 0
	say "Fetching playwright-core and axe-core with npm into $folder"
	rm -rf "$folder"
	mkdir -p "$folder"
	cp "$wanted/package.json" "$wanted/package-lock.json" "$folder"
	(cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null) || {
		rm -rf "$folder"
		say "npm cannot fetch them: the tests of the page will be skipped"
	}
}

[ $install = no ] || install_needs $build_needs $test_needs $browser_needs
mkdir -p "$build"
build_release "$build"
fetch_browser
unpack_prometheus
unpack_exim
unpack_fleet
unpack_postgres
if [ $full = yes ]; then
	[ $install = no ] || install_needs $fuzz_needs
	say "Fuzzing each target for a minute"
	"$top/tests/fuzz/run" 60
fi
say "Testing"
cd "$top"
[ $full = no ] || export HUNTER_TEST_FULL=1
failed=0
test_at_once "$build" "$@" || failed=1

# The agents of the tests once more, with what they know in a database instead of a file: without --full kills, faults and reloads only.
# Whatever has failed, all parts run: each says what it has found.
[ $# = 0 ] || exit $failed
tests=(tests/e2e)
[ $full = yes ] || tests=(tests/e2e/test_{kill,run,state,triage}.py)
say "Testing agents with their state in PostgreSQL"
HUNTER_TEST_STATE=postgresql test_at_once "$build" || failed=1
[ $full = yes ] || tests=(tests/e2e/test_state.py)
say "Testing agents with their state in PostgreSQL, behind PgBouncer"
HUNTER_TEST_STATE=pgbouncer test_at_once "$build" || failed=1
[ $full = yes ] && [ $failed = 0 ] || exit $failed
say "Planting faults that the tests must find"
env -u HUNTER_TEST_FULL tests/mutations/run
