#!/usr/bin/env python3
"""Compare the line scanner with Python's json module on mutated messages.

usage: compare_scan.py SCAN_LINES [COUNT [SEED]]

SCAN_LINES is the stand-alone build of scan_fuzz.c (see there).  Python's
parser takes just what the scanner must take: RFC 8259 plus NaN, Infinity and
-Infinity, lone surrogates, and the last of duplicate keys.
"""
import json
import pathlib
import random
import subprocess
import sys

EMPTY, INVALID, BARE, ACTIVATE, BATCH, RECORD, SCHEMA, STATE = range(8)
CORPUS = pathlib.Path(__file__).parent / "corpus"
PIECES = [b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b" ", b"\t", b"\r",
          b"0", b"-", b"1.5", b"e9", b"null", b"true", b"NaN", b"-Infinity",
          b'"type":"STATE",', b'"stream":"s",', b'"value":{},', b"\\u00e9",
          b"\\ud800", b'"record":{},', b'"t\\u0079pe":"RECORD",', b"\xef\xbb\xbf"]
NAMES = {"ACTIVATE_VERSION": ACTIVATE, "BATCH": BATCH, "RECORD": RECORD,
         "SCHEMA": SCHEMA, "STATE": STATE}


def is_version(value):
    return isinstance(value, int) and not isinstance(value, bool)


def kind_of(message):
    """What a parsed line is, by the rules in scan.c."""
    kind = message.get("type")
    if isinstance(kind, str) and kind in NAMES:
        if kind == "STATE":
            return STATE if "value" in message else INVALID
        parts = {"ACTIVATE_VERSION": is_version(message.get("version"))
                 and len(str(message["version"])) <= 18,
                 "BATCH": isinstance(message.get("encoding"), dict)
                 and isinstance(message.get("manifest"), list),
                 "RECORD": isinstance(message.get("record"), dict),
                 "SCHEMA": isinstance(message.get("schema"), dict)}
        good = isinstance(message.get("stream"), str) and parts[kind]
        return NAMES[kind] if good else INVALID
    if "bookmarks" in message or "singer_state" in message:
        return BARE
    if isinstance(kind, str):
        return INVALID
    if isinstance(message.get("stream"), str) and (
            "record" in message or "schema" in message):
        return INVALID
    return BARE


def expected(line):
    text = line.decode("utf-8", "surrogateescape").rstrip("\n")
    text = text.removeprefix("\ufeff").strip(" \t\r")
    if text == "":
        return EMPTY, None
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return INVALID, None
    if not isinstance(message, dict):
        return INVALID, None
    return kind_of(message), message


def mutate(rng, lines):
    line = bytearray(rng.choice(lines))
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        at = rng.randrange(len(line) + 1)
        action = rng.randrange(4)
        if action == 0:
            line[at:at] = rng.choice(PIECES)
        elif action == 1:
            del line[at:at + rng.randrange(1, 4)]
        elif action == 2:
            line[at:at + 1] = rng.choice(PIECES)
        else:
            other = rng.choice(lines)
            line[at:at] = other[rng.randrange(len(other) + 1):][:20]
    return bytes(line).replace(b"\n", b"") + b"\n"


def main():
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200000
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    seeds = [line for path in sorted(CORPUS.iterdir())
             for line in path.read_bytes().split(b"\n")]
    lines = [mutate(rng, seeds) for _ in range(count)]
    run = subprocess.run([program], input=b"".join(lines),
                         stdout=subprocess.PIPE, check=True)
    answers = run.stdout.split(b"\n")[:-1]
    assert len(answers) == count, (len(answers), count)

    wrong, seen = 0, [0] * 8
    for line, answer in zip(lines, answers):
        kind, message = expected(line)
        fields = answer.split(b"\t", 3)
        good = int(fields[0]) == kind
        if good and kind in (BARE, STATE):
            state = message if kind == BARE else message["value"]
            text = fields[3].decode("utf-8", "surrogateescape")
            good = repr(json.loads(text)) == repr(state)
        seen[kind] += 1
        if not good:
            wrong += 1
            print("differs:", line, "expected", kind, "answer", answer)
    print(f"{count} lines, of each kind {seen}, {wrong} differ")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
