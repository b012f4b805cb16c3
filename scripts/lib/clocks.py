"""Clocks of two machines in a trace, which has a file for each PE.

clocks.py shift SECONDS PPM FILE..   the clock of these PEs is so much ahead, and faster by so many millionths
clocks.py check CSV                  no message is received before it was sent; says how soon the soonest is
"""

import collections
import csv
import struct
import sys
import zlib

HEADER = 64


def shift(seconds, ppm, *files):
    first = None
    for name in files:
        with open(name, "rb") as file:
            data = bytearray(file.read())
        at = 0
        while at + HEADER <= len(data):
            assert data[at:at + 8] == b"vrtrace1", f"{name}: no block at {at}"
            length, = struct.unpack_from("<I", data, at + 24)
            time, = struct.unpack_from("<Q", data, at + 40)
            first = time if first is None else first
            struct.pack_into("<Q", data, at + 40, time + int(1e9 * float(seconds) + (time - first) * float(ppm) / 1e6))
            struct.pack_into("<I", data, at + 60, zlib.crc32(data[at:at + 60]))
            at += HEADER + length
        with open(name, "wb") as file:
            file.write(data)


def check(name):
    sent, received = collections.defaultdict(list), collections.defaultdict(list)
    with open(name, newline="") as file:
        for row in csv.DictReader(file):
            if row["event"] == "send":
                sent[row["rank"], row["partner"], row["tag"]].append(float(row["time_s"]))
            elif row["event"] == "receive":
                received[row["partner"], row["rank"], row["tag"]].append(float(row["time_s"]))
    assert {key: len(it) for key, it in sent.items()} == {key: len(it) for key, it in received.items()}
    after = [b - a for key in sent for a, b in zip(sorted(sent[key]), sorted(received[key]))]
    # Within a PE the same cycle counter tells both; between machines it is known to some microseconds.
    early = [it for it in after if it < -20e-6]
    assert after and not early, f"{len(early)} of {len(after)} messages come before they are sent: {min(after)} s"
    print(f"{len(after)} messages, the soonest {1e6 * min(after):.1f} us after it was sent")


if __name__ == "__main__":
    {"shift": shift, "check": check}[sys.argv[1]](*sys.argv[2:])
