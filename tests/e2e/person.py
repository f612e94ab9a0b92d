"""Somebody at a terminal, who labels series with `hunter-c evaluate --label`."""
import fcntl
import os
import pty
import re
import struct
import termios

PROMPT = b'"?" for help): '


class Person:
    """Sits at a terminal on which the program runs."""

    def __init__(self, program, folder, *arguments):
        self.seen = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))  # before the program asks
            os.chdir(folder)
            os.execv(program, [str(program), "evaluate", *map(str, arguments)])

    def read(self):
        """What the program writes up to its next question, or its end."""
        seen = b""
        while not seen.endswith(PROMPT):
            try:
                more = os.read(self.terminal, 4096)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            seen += more
        return re.sub(r"\x1b\[[0-9]*m", "", seen.decode()).replace("\r\n", "\n")

    def type(self, text, end="\n"):
        os.write(self.terminal, (text + end).encode())
        return self.read()

    def code(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
