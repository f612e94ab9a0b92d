"""The date that agents are given by clock_shim.c."""
import pathlib
import re
import struct
import subprocess


class Clock:
    """A date that agents are given; without a compiler, or with a sanitizer in the program, it is the true one."""

    def __init__(self, folder, program):
        self.file, shim = folder / "clock", folder / "clock.so"
        self.turn(0)
        self.environment, self.problem = {}, None
        source = pathlib.Path(__file__).with_name("clock_shim.c")
        if re.search(rb"__(asan|tsan|msan)_init", pathlib.Path(program).read_bytes()):
            self.problem = "the program has a sanitizer, which wants to be loaded first"
        elif subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source], check=False, capture_output=True).returncode != 0:
            self.problem = "no C compiler (cc) makes the clock"
        else:
            self.environment = {"LD_PRELOAD": str(shim), "TEST_CLOCK": str(self.file)}

    def turn(self, seconds):
        with open(self.file, "r+b" if self.file.exists() else "w+b") as out:  # in place: it is mapped
            out.write(struct.pack("q", int(seconds * 1000)))
