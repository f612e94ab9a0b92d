#!/usr/bin/env bash
# Builds hunter-c (Release) and runs every test: the C unit tests, the fuzz targets on their corpus, and the tests that
# start the program and real servers. On a bare Debian 12 it first installs what it needs. One summary ends it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
	cat <<'TEXT'
usage: packaging/test.sh [--full] [--no-install] [--build-dir DIR] [-- PYTEST-ARGUMENT...]

  --full           fuzz each target for a minute besides (clang)
  --no-install     install nothing; tests whose needs are missing are skipped, visibly
  --build-dir DIR  build there (build/release)

HUNTER_REFERENCE_DATA may name the folder of reference data; tests that want it are skipped without.
TEXT
}

install=yes full=no build=$top/build/release
while [ $# -gt 0 ]; do
	case $1 in
	--full) full=yes ;;
	--no-install) install=no ;;
	--build-dir)
		[ $# -gt 1 ] || die "--build-dir wants a folder"
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

# Prometheus comes as Debian's package, unpacked beside the build: installing it would start and enable a service.
unpack_prometheus() {
	local tools=$build/tools
	export PATH=$tools/usr/bin:$PATH
	if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
		return
	fi
	if [ $install = no ] || ! command -v apt-get >/dev/null; then
		say "No prometheus in PATH: the tests against it will be skipped"
		return
	fi
	say "Unpacking Debian's prometheus in $tools (nothing of it is installed, no service started)"
	mkdir -p "$tools"
	if ! (cd "$tools" && apt-get download -q prometheus >/dev/null 2>&1); then
		as_root apt-get update -q >/dev/null
		(cd "$tools" && apt-get download -q prometheus >/dev/null 2>&1) || die "apt-get download prometheus failed"
	fi
	dpkg-deb -x "$tools"/prometheus_*.deb "$tools"
	rm -f "$tools"/prometheus_*.deb
}

[ $install = no ] || install_needs $build_needs $test_needs
mkdir -p "$build"
build_release "$build"
unpack_prometheus
if [ $full = yes ]; then
	[ $install = no ] || install_needs $fuzz_needs
	say "Fuzzing each target for a minute"
	"$top/tests/fuzz/run" 60
fi
say "Testing"
cd "$top"
export HUNTER_C=$build/hunter-c
exec pytest-3 -q -rs -p no:cacheprovider --build="$build" "$@" tests
