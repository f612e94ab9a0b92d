#!/usr/bin/env python3
"""statements.py ROOT COMPILER: the SQL statements of the state, a line each: its file, the types of its parameters, its text.

They are the string literals of the files that use them, as the preprocessor joins them, which begin as a statement does. A type is
that of the value which is bound beside the text, or "unknown".
"""
import ast
import pathlib
import re
import subprocess
import sys

TEXT = r'"(?:[^"\\]|\\.)*"'
LITERALS = re.compile(rf"'(?:[^'\\]|\\.)+'|({TEXT}(?:\s*{TEXT})*)")
STATEMENT = re.compile(r"(SELECT|INSERT|UPDATE|DELETE|WITH) \S+ .*\w|@[<+=]?[a-z_]+$")
TYPES = {"v_int": "bigint", "v_null": "bigint", "v_number": "double precision", "v_text": "text", "v_owners": "text",
         "v_one": "text", "v_names": "text", "v_bytes": "bytea"}
# Texts that are made into statements, and those of one database in its own words.
NOT_HERE = ("sql/statements.c", "sqlite/", "postgresql/statements.c")


def parts(text):
    """What is between the commas of a list that ends with the brace of its beginning."""
    depth, start, out = 0, 0, []
    for i, c in enumerate(text):
        if c in "({":
            depth += 1
        elif c in ")}" and depth > 0:
            depth -= 1
        elif c in ",}" and depth == 0:
            out.append(text[start:i])
            start = i + 1
            if c == "}":
                return out


def types_of(rest):
    """Of the values in the C statement that follows."""
    list_of = rest.partition(";")[0].partition("(const struct value[]){")[2]
    found = [re.search(r"\bv_\w+", value) for value in parts(list_of) or [] if value.strip()]
    return [TYPES[name[0]] if name else "unknown" for name in found]


def own_code(preprocessed, path):
    """What the preprocessor has made of the file itself."""
    inside, out = False, []
    for line in preprocessed.splitlines():
        if marker := re.match(r'# \d+ "([^"]*)"', line):
            inside = marker[1] == str(path)
        elif inside:
            out.append(line)
    return "\n".join(out)


def statements(code):
    for literals in LITERALS.finditer(code):
        text = "".join(ast.literal_eval(part) for part in re.findall(TEXT, literals[1] or ""))
        if STATEMENT.match(text) and "%" not in re.sub(r"% (\?|\d)", "", text):
            yield types_of(code[literals.end():]), text


def main():
    root = pathlib.Path(sys.argv[1])
    for path in sorted((root / "agent/store").rglob("*.c")):
        name = str(path.relative_to(root / "agent/store"))
        if name.startswith(NOT_HERE):
            continue
        done = subprocess.run([*sys.argv[2:], "-E", f"-I{root}", "-std=c17", "-D_GNU_SOURCE", path], check=True,
                              capture_output=True, text=True)
        for types, text in statements(own_code(done.stdout, path)):
            print(name, ",".join(types), text, sep="\t")


main()
