#!/usr/bin/env bash
# Builds hunter-c (Release) and runs every test: the C unit tests, the fuzz targets on their corpus, and the tests that
# start the program and real servers. On a bare Debian 12 it first installs its dependencies. It ends with a summary.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
	cat <<'TEXT'
usage: packaging/test.sh [--full] [--no-install] [--build-dir DIR] [-- PYTEST-ARGUMENT...]

  --full           also fuzz each target for a minute (clang), and repeat kill, reload and shutdown tests
                   ten times as often
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

[ $install = no ] || install_needs $build_needs $test_needs
mkdir -p "$build"
build_release "$build"
unpack_prometheus
unpack_exim
unpack_postgres
if [ $full = yes ]; then
	[ $install = no ] || install_needs $fuzz_needs
	say "Fuzzing each target for a minute"
	"$top/tests/fuzz/run" 60
fi
say "Testing"
cd "$top"
[ $full = no ] || export HUNTER_TEST_FULL=1
test_at_once "$build" "$@"
