"""What is installed: the manual and the completion say what the program's own help says, and the example is complete."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import textwrap

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("HUNTER_C", TOP / "build/release/hunter-c")).resolve()


def output(*command, **kwargs):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, **kwargs).stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    root = tmp_path_factory.mktemp("prefix")
    output("cmake", "--install", PROGRAM.parent, "--prefix", root)
    return root


@pytest.fixture(scope="module")
def commands():
    overview = output(PROGRAM, "--help")
    return re.findall(r"^  ([a-z][a-z-]+)  ", overview.split("Commands:")[1].split("\n\n")[0], re.M)


def flags_of(command):
    """The flags of `hunter-c COMMAND --help`, as at the beginning of its lines: {"--p-value": "-P", ...}."""
    text = output(PROGRAM, command, "--help")
    return {name: letter for letter, name in re.findall(r"^  (?:(-\w), )?(--[a-z][a-z0-9-]*)", text, re.M)}


def plain(roff):
    """The page without its markup."""
    text = re.sub(r"\\f[BIRP]", "", roff)
    return re.sub(r"^\.[A-Z]+ ?", "", text, flags=re.M).replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


def section_of(page, command):
    """The part of hunter-c(1) about one command."""
    start = re.search(rf"^\.SS {re.escape(command)}( .*)?$", page.replace("\\-", "-"), re.M)
    assert start, f"hunter-c(1) has no section about {command}"
    return plain(page.replace("\\-", "-")[start.end():].split("\n.S")[0])


def test_the_program_is_hardened():
    """What compiler and linker were told shows in the binary, or where it leaves no trace, in what they were told."""
    cache = (PROGRAM.parent / "CMakeCache.txt").read_text()
    if re.search(r"^HUNTER_SANITIZE:\w+=.+|^CMAKE_BUILD_TYPE:\w+=Debug|^HUNTER_HARDEN:BOOL=OFF", cache, re.M):
        pytest.skip("a build with sanitizers or without optimisation")
    if not shutil.which("readelf"):
        pytest.skip("readelf is not installed (Debian: apt install binutils)")
    known = set(re.findall(r"^HUNTER_HAS_*(\w+):INTERNAL=1", cache, re.M))
    assert re.search(r"Type: +DYN", output("readelf", "-hW", PROGRAM)), "no PIE"
    program_headers = output("readelf", "-lW", PROGRAM)
    assert "GNU_RELRO" in program_headers and re.search(r"GNU_STACK .* RW +0x", program_headers), program_headers
    dynamic = output("readelf", "-dW", PROGRAM)
    assert re.search(r"FLAGS.*\bBIND_NOW|FLAGS_1.*\bNOW\b", dynamic) and re.search(r"FLAGS_1.*\bPIE\b", dynamic), dynamic
    symbols = output("readelf", "--dyn-syms", "-W", PROGRAM)
    assert "__stack_chk_fail" in symbols
    if known & {"FORTIFY_3", "FORTIFY_2"}:
        assert "__memcpy_chk" in symbols or "__snprintf_chk" in symbols, symbols
    told = next(c["command"] for c in json.loads((PROGRAM.parent / "compile_commands.json").read_text())
                if c["file"].endswith("/agent/main.c"))
    for name, flag in {"FORTIFY_3": "-D_FORTIFY_SOURCE=3", "fstack_protector_strong": "-fstack-protector-strong",
                       "fstack_clash_protection": "-fstack-clash-protection", "fcf_protection_full": "-fcf-protection=full",
                       "mbranch_protection_standard": "-mbranch-protection=standard",
                       "ftrivial_auto_var_init_zero": "-ftrivial-auto-var-init=zero"}.items():
        assert name not in known or f" {flag} " in told, f"{flag}: {told}"
    if "fcf_protection_full" in known and shutil.which("objdump"):
        text = output("objdump", "-d", "--no-show-raw-insn", "--disassemble=main", PROGRAM)
        assert re.search(r"<main>:\n.*endbr64", text), text


def test_what_is_installed(prefix):
    installed = {str(p.relative_to(prefix)) for p in prefix.rglob("*") if p.is_file()}
    for path in ["bin/hunter-c", "share/man/man1/hunter-c.1", "share/man/man5/hunter.yaml.5",
                 "share/bash-completion/completions/hunter-c", "share/doc/hunter-c/LICENSE",
                 "share/doc/hunter-c/README.md", "share/doc/hunter-c/conf/hunter.yaml",
                 "share/doc/hunter-c/conf/example.yaml", "share/doc/hunter-c/conf/example/read.inmem.csv",
                 "share/doc/hunter-c/docs/design/architecture.md", "share/doc/hunter-c/docs/reference/webhook.schema.json", "share/doc/hunter-c/hunter-c-alerts.yaml",
                 "share/doc/hunter-c/arrivals.py", "lib/systemd/system/hunter-c.service", "lib/systemd/system/hunter-c@.service",
                 "lib/sysusers.d/hunter-c.conf", "lib/tmpfiles.d/hunter-c.conf"]:
        assert path in installed
    assert not [p for p in installed if p.endswith((".h", ".c", ".a"))]
    assert output(prefix / "bin/hunter-c", "--version") == output(PROGRAM, "--version")


def test_the_manual_has_every_command_and_flag(prefix, commands):
    page = (prefix / "share/man/man1/hunter-c.1").read_text()
    common = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", output(PROGRAM, "--help"), re.M))
    assert {"run", "regressions", "analyze", "detect"} <= set(commands)
    assert common
    for command in commands:
        section = section_of(page, command)
        flags = flags_of(command)
        assert common <= set(flags)
        for flag, letter in flags.items():
            where = plain(page) if flag in common else section
            assert re.search(rf"^{letter + ', ' if letter else ''}{flag}\b", where, re.M), (command, flag)
        documented = set(re.findall(r"^(?:-\w, )?(--[a-z-]+)", section, re.M))
        assert documented == set(flags) - common


def test_the_manual_of_the_configuration_has_every_detector_and_source(prefix):
    page = plain((prefix / "share/man/man5/hunter.yaml.5").read_text())
    for word in ["csv", "json", "histostat", "prometheus", "slack", "edivisive", "edivisive_permutation", "time_column",
                 "window", "p_value", "magnitude", "interval", "state", "max_age", "bearer_token_file"]:
        assert re.search(rf"^{word}\b", page, re.M), word


@pytest.mark.parametrize("page", ["man1/hunter-c.1", "man5/hunter.yaml.5"])
def test_the_manual_formats_without_a_warning(prefix, page):
    if not shutil.which("groff"):
        pytest.skip("groff is not installed")
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-cbou", str(prefix / "share/man" / page)],
                          capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "EXIT STATUS" in done.stdout or "SOURCES" in done.stdout


def complete(prefix, *words):
    """What the completion offers for the last word."""
    script = """
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _hunter_c
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    completion = prefix / "share/bash-completion/completions/hunter-c"
    return output("bash", "-c", script, "bash", completion, *words, cwd=TOP).split()


def test_completion_of_commands_flags_and_values(prefix, commands):
    program = prefix / "bin/hunter-c"
    assert complete(prefix, program, "") == commands
    assert complete(prefix, program, "reg") == ["regressions"]
    for command in commands:
        offered = set(complete(prefix, program, command, "-"))
        expected = flags_of(command)
        assert offered == set(expected) | {letter for letter in expected.values() if letter}
    assert "json" in complete(prefix, program, "analyze", "--output", "")
    assert complete(prefix, program, "run", "--log-level", "deb") == ["debug"]
    assert complete(prefix, program, "--log-format", "") == ["text", "json"]


def test_completion_of_tests_and_groups(prefix):
    program, config = prefix / "bin/hunter-c", "conf/example.yaml"
    assert set(complete(prefix, program, "--config", config, "analyze", "demo.w")) == {
        "demo.write.rf1", "demo.write.batch-10"}
    assert complete(prefix, program, "regressions", "--config", config, "smo") == ["smoke"]
    assert complete(prefix, program, "analyze", "--since", "") == []
    assert complete(prefix, program, "--config", config, "changes", "--test", "demo.write.r") == ["demo.write.rf1"]
    assert complete(prefix, program, "--config", config, "list-tests", "") == ["reads", "smoke", "writes"]
    assert "smoke" not in complete(prefix, program, "--config", config, "list-metrics", "")


def test_completion_of_known_values(prefix):
    program = prefix / "bin/hunter-c"
    assert complete(prefix, program, "store", "") == ["check", "backup", "copy", "prune", "audit"]
    assert complete(prefix, program, "bisect", "--direction", "") == ["either", "up", "down"]
    assert complete(prefix, program, "store", "check", "--state-file", "x", "") == []
    for command in ("changes", "list-groups", "detect", "validate"):
        assert complete(prefix, program, "--config", "conf/example.yaml", command, "") == []
    for command in ("analyze", "regressions", "detect"):
        assert complete(prefix, program, command, "--profile", "") == ["default", "otava"]
        assert complete(prefix, program, command, "--detector", "") == [
            "edivisive", "edivisive_permutation", "kernel", "stepfit", "modes", "lookback"]
    assert complete(prefix, program, "changes", "--state", "") == ["confirmed", "moved", "withdrawn", "candidate", "recovered"]


def test_the_revision_is_the_commit_of_a_git_checkout(tmp_path):
    def git(*words):
        return output("git", "-c", "user.name=x", "-c", "user.email=x@example.com", *words, cwd=tmp_path).strip()

    def revision(*words):
        found = output("cmake", "-S", tmp_path, "-B", tmp_path / "build", *words)
        return re.search(r"-- revision (\S+)", found)[1]

    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(x NONE)\n"
                                             f"include({TOP}/packaging/revision.cmake)\nmessage(STATUS \"revision ${{revision}}\")\n")
    assert revision() == "unknown"
    git("init", "-q")
    for name in "first", "second":
        git("commit", "-q", "--allow-empty", "-m", name)
        commit = git("rev-parse", "--short=12", "HEAD")
        assert revision() == commit
    git("commit", "-q", "--allow-empty", "-m", "third")
    assert git("rev-parse", "--short=12", "HEAD") in output("cmake", "--build", tmp_path / "build")  # which configures again
    assert revision("-DHUNTER_REVISION=1.0-2") == "1.0-2"


def test_summaries_are_alike(commands):
    lines = re.findall(r"^  \S+ {2,}(\S.*)$", output(PROGRAM, "--help").split("Commands:")[1].split("Common")[0], re.M)
    assert len(lines) == len(commands)
    assert [line for line in lines if not re.match(r"[A-Z][a-z]+,? .*[^.]$", line) or re.match(r"\w+s\b", line)] == []
    assert sum(line.startswith("List the ") for line in lines) == 4


INJECTED = {
    ("demo.read.inmem", "2026-07-19"): {"throughput", "p50", "p90", "p95", "p99"},
    ("demo.read.inmem", "2026-10-02"): {"throughput", "p90", "p95", "p99"},
    ("demo.read.range", "2026-06-19"): {"throughput", "p50", "p90", "p95", "p99"},
    ("demo.read.range", "2026-07-04"): {"throughput", "p50", "p90", "p95", "p99"},
    ("demo.write.batch-10", "2026-08-28"): {"throughput", "p50", "p90", "p95", "p99"},
}


def test_the_example_has_the_changes_that_were_injected_and_no_others():
    document = json.loads(
        output(PROGRAM, "analyze", "smoke", "--config", "conf/example.yaml", "--output", "json", cwd=TOP))
    found = {}
    for test in document["tests"]:
        for change in test["changes"]:
            found.setdefault((test["name"], change["time"][:10]), set()).add(change["metric"])
    assert len(document["tests"]) == 4
    assert found == INJECTED


def test_the_agent_tells_the_example_once(tmp_path):
    """The end of the change of 19 June is told with it, in the first message, and not as a change of its own."""
    environment = os.environ | {"EXAMPLE_STATE": str(tmp_path / "state.db")}
    command = [PROGRAM, "run", "--once", "--config", "conf/example.yaml"]
    told, test, over = {}, None, set()
    for line in output(*command, cwd=TOP, env=environment).splitlines():
        if match := re.match(r"  (\S+)$", line):
            test = match[1]
        elif match := re.match(r"    (\w+): [+-].* since (\d{4}-\d\d-\d\d) ", line):
            day = match[2]
            told.setdefault((test, day), set()).add(match[1])
            over |= {(test, day, match[1])} if ", back to " in line else set()
    fixed = INJECTED[("demo.read.range", "2026-07-04")]
    assert told == {where: metrics for where, metrics in INJECTED.items() if where != ("demo.read.range", "2026-07-04")}
    assert over == {("demo.read.range", "2026-06-19", metric) for metric in fixed} and len(fixed) == 5
    listed = json.loads(output(PROGRAM, "changes", "--config", "conf/example.yaml", "--output", "json", cwd=TOP, env=environment))["changes"]
    ids = {(change["time"][:10], change["metric"]): change["id"] for change in listed if change["test"] == "demo.read.range"}
    ends = [change for change in listed if change["ends"]]
    assert len(ends) == 5 and all(change["ends"] == ids[("2026-06-19", change["metric"])] for change in ends)
    waiting = json.loads(output(PROGRAM, "changes", "--open", "--config", "conf/example.yaml", "--output", "json", cwd=TOP, env=environment))["changes"]
    assert {change["test"] for change in waiting} == {"demo.read.inmem"}
    assert output(*command, cwd=TOP, env=environment) == ""


def test_the_picture_shows_what_the_program_prints():
    done = subprocess.run([TOP / "docs/picture.py", "--check"], env=os.environ | {"HUNTER_C": str(PROGRAM)})
    assert done.returncode == 0, "docs/picture.svg is stale: run docs/picture.py"


def test_the_configurations_in_the_readme_are_good(tmp_path):
    blocks = re.findall(r"^```yaml\n(.*?)^```", (TOP / "README.md").read_text(), re.M | re.S)
    assert len(blocks) == 2
    for i, block in enumerate(blocks):
        path = tmp_path / f"{i}.yaml"
        path.write_text(block)
        done = subprocess.run([PROGRAM, "validate", "--config", path], capture_output=True, text=True,
                              env=os.environ | {"SLACK_BOT_TOKEN": "xoxb-not-a-token"})
        assert (done.returncode, done.stderr) == (0, "")


def test_the_examples_look_at_all_data():
    """rate(x[5m]) at each full hour sees a twelfth of the data."""
    def seconds(text):
        return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[text[-1]]

    seen = 0
    for file in (TOP / "README.md", *TOP.glob("docs/**/*.md"), *TOP.glob("conf/**/*.yaml")):
        lines = file.read_text().splitlines()
        steps = {i: step[1] for i, line in enumerate(lines) if (step := re.match(r"\s*step: (\d+[smhd])\b", line))}
        for i, line in enumerate(lines):
            for window in re.findall(r"\[(\d+[smhd])\]", line) if re.search(r"query: .*(rate|increase)\(", line) else []:
                seen += 1
                step = steps[min(steps, key=lambda at: abs(at - i))]
                assert seconds(window) >= seconds(step), (file.name, line, step)
    assert seen >= 6


# The page of what has options of its own; those of all others are in configuration.md.
PAGES = {"graphite": "graphite", "prometheus": "prometheus", "postgres": "postgresql", "slack": "slack", "webhook": "webhook",
         "stdout": "agent", "group": "cluster", "change": "triage", "route": "routing", "web_config": "security",
         "tls_server_config": "security", "token": "security"}


def test_the_manual_names_every_option(names):
    """With each of the words that it may be, as code: in a table, a paragraph or an example."""
    def code(page):
        text = next(TOP.glob(f"docs/*/{page}.md")).read_text()
        return "\n".join(re.findall(r"^```.*?^```$|`[^`\n]+`|^    .*$", text, re.M | re.S))

    options = re.findall(r"^(key of|option of detector) (.+) (\w+): (?:one of (\S+)|.*)$", names, re.M)
    assert len(options) > 180
    missing = []
    for kind, owner, name, words in options:
        own = "detectors" if kind != "key of" else PAGES.get(owner.split()[-1], "configuration")
        pages = code(own) + code("configuration") + (code("receivers") if owner.startswith("receiver ") else "")
        missing += [f"{own}.md: {name}: {word}" for word in (name, *words.split("|")) if word and not re.search(rf"(?<![\w-]){word}(?![\w-])", pages)]
    assert missing == []


@pytest.mark.parametrize("page", ["README.md", "docs/operate/agent.md"])
def test_the_example_of_the_manual(tmp_path, page):
    """What its command prints is there, in this order; three dots stand for the rest."""
    command, shown = re.search(r"^    \$ .*hunter-c (run .*example.yaml)\n((?:(?:    (?!\$).*)?\n)+)", (TOP / page).read_text(), re.M).groups()
    done = subprocess.run([PROGRAM, *command.split(), "--once"], cwd=TOP, capture_output=True, text=True,
                          env=os.environ | {"EXAMPLE_STATE": str(tmp_path / "state.db")})
    assert done.returncode == 0, done.stderr
    parts = [re.escape(textwrap.dedent(part).strip()) for part in re.split(r"^ *\.\.\.$", textwrap.dedent(shown), flags=re.M)]
    assert len(parts) > 1 and re.match(r"(?s)\s*" + ".*".join(parts), done.stdout), done.stdout


def headings(page):
    """The names by which links lead to the headings of a page, as code hosting sites make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.+)$", text, re.M)}


@pytest.mark.parametrize("installed", [False, True])
def test_the_links_between_the_documents_lead_somewhere(prefix, installed):
    top, seen = prefix / "share/doc/hunter-c" if installed else TOP, 0
    for page in [*top.glob("*.md"), *top.glob("docs/**/*.md"), *top.glob("conf/**/*.md")]:
        for target, heading in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", page.read_text()):
            if installed and target.lstrip("./").startswith("tests/"):
                continue  # for those who have the source
            to = page.parent / target if target else page
            assert to.exists(), f"{page.relative_to(top)}: {target}"
            assert not heading or heading in headings(to), f"{page.relative_to(top)}: {target}#{heading}"
            seen += 1
    assert seen > 10


def test_the_architecture_names_what_there_is():
    """Each file exists; each function does, those of a row in the row's files."""
    files = [f for folder in ("agent", "conf", "detectors", "notifiers", "packaging", "sources", "tests")
             for f in [TOP / folder, *(TOP / folder).rglob("*")]]
    text = (TOP / "docs/design/architecture.md").read_text()
    sources = {f: set(re.findall(r"\w+", f.read_text())) for f in files if f.suffix in (".c", ".h", ".inc")}
    names, missing = set().union(*sources.values()), []
    for code in set(re.findall(r"`([^`\n]+)`", text)):
        if re.fullmatch(r"[\w./-]+(/|\.(c|h|inc|py))", code):
            missing += [] if any(str(f).endswith("/" + code.rstrip("/")) for f in files) else [code]
        elif re.fullmatch(r"\w+(_\w+)+", code):
            missing += [] if code in names else [code]
    rows = re.findall(r"^\| .*\|$", text.split("## Where do I find")[1].split("\n## ")[0], re.M)
    for row in rows[1:]:
        paths = [f for name in re.findall(r"`([\w./]+\.(?:c|h|inc))`", row) for f in sources if str(f).endswith("/" + name)]
        inside = set().union(*(sources[f] for f in paths))
        missing += [(row, name) for name in re.findall(r"`(\w+)`", row.rsplit(" | ", 1)[1]) if name not in inside]
    assert len(rows) > 20 and missing == []


@pytest.mark.parametrize("broken, code, again", [("odd", 0, 5), ("real", 1, 1), ("many", 1, 0)])
def test_what_fails_beside_others_runs_once_more_alone(tmp_path, broken, code, again):
    """test_at_once of packaging/common.sh, with each kind of name that a test has; whatever happens, not all tests run twice."""
    (tmp_path / "conftest.py").write_text('def pytest_addoption(parser):\n    parser.addoption("--build")\n')
    (tmp_path / "test_it.py").write_text(textwrap.dedent(f"""
        import os, pathlib, pytest

        def ran(name):
            with open(pathlib.Path(__file__).parent / "ran", "a") as out:
                out.write(name + "\\n")
            return (pathlib.Path(__file__).parent / "ran").read_text().splitlines().count(name)

        @pytest.mark.xdist_group("test_it.pyodd")
        @pytest.mark.parametrize("value", ["a@b", "a::b c/d", "\\u00e9[x]", "plain"])
        def test_grouped(value):
            assert ran(value) > 1 or "{broken}" != "odd"

        @pytest.mark.xdist_group("test_it.pyodd")
        def test_unstable():
            assert ran("unstable") > 1 or "{broken}" != "odd"

        def test_broken():
            assert ran("broken") and "{broken}" != "real"

        @pytest.mark.parametrize("value", range(11))
        def test_many(value):
            assert ran("many") and "{broken}" != "many"
    """))
    script = f". '{TOP}/packaging/common.sh'; top=$PWD; tests=(.); nproc() {{ echo 1 / 3; }}; test_at_once '{tmp_path}'"  # two at once
    done = subprocess.run(["bash", "-euc", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    assert len((tmp_path / "ran").read_text().splitlines()) == 17 + again, done.stdout
    assert ("Unstable" in done.stdout) == (again > 0)
