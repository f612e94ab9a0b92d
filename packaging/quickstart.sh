#!/usr/bin/env bash
# From a bare Debian 12 to a running agent: installs build dependencies, builds, and demonstrates hunter-c on the shipped
# example; at the end the agent runs, announces the example's changes, and is stopped. Somebody at a terminal can then look
# at its page for as long as he likes. It starts no service and leaves no process behind, and can be run repeatedly.
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
export HUNTER_CONFIG=conf/example.yaml EXAMPLE_STATE=$scratch/state.db EXAMPLE_LISTEN=127.0.0.1:0
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
# Fetches one of the agent's pages without curl, which may not be installed.
page() {
	exec 3<>"/dev/tcp/127.0.0.1/$port"
	printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3
	sed '1,/^\r$/d' <&3
	exec 3>&-
}

# Waits up to a minute for a text in the agent's log.
await() {
	local i
	for ((i = 0; i < 600; i++)); do
		! grep -q "$1" "$scratch/log" || return 0
		kill -0 "$agent" 2>/dev/null || break
		sleep 0.1
	done
	cat "$scratch/log" >&2
	die "the agent did not get as far as \"$1\""
}

# Starts the agent; $port is where it listens once it has logged that text.
start() {
	"$hunter" run >"$scratch/told" 2>"$scratch/log" &
	agent=$!
	trap 'kill "$agent" 2>/dev/null || true; rm -rf "$scratch"' EXIT
	await "$1"
	port=$(sed -n 's/.*msg=started .* port=\([0-9]*\).*/\1/p' "$scratch/log")
}

stop() {
	kill "$agent"
	wait "$agent"
	trap 'rm -rf "$scratch"' EXIT
}

say "The agent: runs every test on a schedule and reports each new change once (here: on the terminal)"
printf '\n$ hunter-c run\n'
start msg=sent
cat "$scratch/told" "$scratch/log"
say "Its own metrics, for Prometheus"
printf '\n$ curl -s http://127.0.0.1:%s/metrics\n' "$port"
page / | grep -q '<title>hunter-c' || die "the agent does not serve its page"
page /metrics | grep -E '^hunter_(build_info|tests|runs_total|changes|changes_found_total|deliveries_total)[ {]'
say "It stops on SIGTERM, after finishing what it is sending"
printf '\n$ kill %s\n' "$agent"
stop
tail -n 1 "$scratch/log"
say "Each change is reported once: a second run has nothing new"
again=$(show run --once --log-level warn)
printf '%s\n' "$again"
[ "$(printf '%s\n' "$again" | sed 1,2d)" = '' ] || die "the second run was not silent"
echo '(nothing)'

say "Done. The program is $build/hunter-c, its manual: man -l $build/man/hunter-c.1"
if [ -t 0 ] && [ -t 1 ] && [ -z "${CI:-}" ]; then
	start msg=started
	say "The changes with their plots, until you press Enter: http://127.0.0.1:$port/"
	read -r || true
	stop
else
	say "The changes with their plots: EXAMPLE_STATE=/tmp/example.db $build/hunter-c run --config conf/example.yaml, then http://127.0.0.1:9469/"
fi
