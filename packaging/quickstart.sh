#!/usr/bin/env bash
# From a bare Debian 12 to the agent at work: installs what the build needs, builds, and shows on the shipped example
# what hunter-c does. It starts no service and leaves no process behind; run it as often as you like.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in
'') ;;
--help | -h)
	echo 'usage: packaging/quickstart.sh        builds in build/release and runs conf/example.yaml'
	exit 0
	;;
*) die "takes no arguments" ;;
esac

build=$top/build/release
install_needs $build_needs
mkdir -p "$build"
build_release "$build"

cd "$top"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HUNTER_CONFIG=conf/example.yaml EXAMPLE_STATE=$scratch/state.db
hunter=$build/hunter-c

# Shows a command as it would be typed, then its output.
show() {
	printf '\n$ hunter-c'
	printf ' %s' "$@"
	printf '\n'
	"$hunter" "$@"
}

# The same for a command that exits with 1 where it finds regressions; the example has some.
show_regressions() {
	local status=0
	show "$@" || status=$?
	[ $status = 1 ] || die "expected exit status 1 (regressions found), not $status"
	echo '(exit status 1: a CI job can stop here)'
}

say "The example: four benchmarks of a key-value store over 200 nightly builds (conf/example/README.md)"
show list-groups
show_regressions regressions smoke --since 2026-06-01
say "Where exactly? The table around one of the changes"
show analyze demo.read.inmem --since 2026-09-25 --until 2026-10-10
say "The agent, one round: it reads every test, decides what is news, and tells it once"
show run --once --log-level warn
say "The same again: all of that has been told, so there is nothing to say"
again=$(show run --once --log-level warn)
printf '%s\n' "$again"
[ "$(printf '%s\n' "$again" | sed 1,2d)" = '' ] || die "the second run was not silent"
echo '(nothing)'

say "Done. The program is $build/hunter-c, its manual: man -l $build/man/hunter-c.1"
