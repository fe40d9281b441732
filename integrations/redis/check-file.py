#!/usr/bin/env python3
"""check-file.py FILE ...   lists the keys and commands of RDB and AOF files that a server with this
                         module cannot load

It reads files of Redis and Valkey, also an AOF with a preamble, without a server. It lists each
module type and each module command that other modules must provide, such as those of cuckoo
filters, count-min sketches and top-k lists. The exit status is 1 if it lists any, 2 for a file that
it cannot read."""
import sys

LOADED = {"MBbloom--": 4, "BlkdBloom": 1, "bloomfltr": 1}
COMMANDS = {"BF.RESERVE", "BF.ADD", "BF.MADD", "BF.INSERT", "BF.LOADCHUNK", "BF.LOAD"}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
# Values of these types are lists of strings, with this many strings for each element.
LISTS = {1: 1, 2: 1, 4: 2, 14: 1}
# Values that are one string.
STRINGS = {0, 9, 10, 11, 12, 13, 16, 17, 20}


class Reader:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, count):
        part = self.data[self.at : self.at + count]
        if len(part) < count:
            raise ValueError(f"the file ends at byte {len(self.data)}")
        self.at += count
        return part

    def byte(self):
        return self.take(1)[0]

    def length(self):
        """A length and whether it is the code of an encoded string."""
        first = self.byte()
        kind = first >> 6
        if kind == 0:
            return first & 63, False
        if kind == 1:
            return (first & 63) << 8 | self.byte(), False
        if kind == 3:
            return first & 63, True
        return int.from_bytes(self.take(8 if first == 0x81 else 4), "big"), False

    def string(self):
        length, is_encoded = self.length()
        if not is_encoded:
            return self.take(length)
        if length < 3:
            return str(int.from_bytes(self.take(1 << length), "little", signed=True)).encode()
        compressed, _ = self.length()
        plain, _ = self.length()
        return decompress(self.take(compressed), plain)

    def skip_module_value(self):
        while code := self.length()[0]:
            if code in (1, 2):
                self.length()
            elif code == 5:
                self.string()
            else:
                self.take(4 if code == 3 else 8)

    def skip_stream(self, kind):
        for _ in range(self.length()[0]):
            self.string(), self.string()
        for _ in range(3 if kind == 15 else 8):
            self.length()
        for _ in range(self.length()[0]):
            self.string(), self.length(), self.length()
            if kind != 15:
                self.length()
            for _ in range(self.length()[0]):
                self.take(24), self.length()
            for _ in range(self.length()[0]):
                self.string(), self.take(8 if kind < 21 else 16)
                for _ in range(self.length()[0]):
                    self.take(16)

    def skip_value(self, kind):
        if kind in STRINGS:
            self.string()
        elif kind in LISTS:
            for _ in range(LISTS[kind] * self.length()[0]):
                self.string()
        elif kind in (3, 5):
            for _ in range(self.length()[0]):
                self.string()
                score = 8 if kind == 5 else self.byte()
                self.take(0 if score > 252 else score)
        elif kind == 18:
            for _ in range(self.length()[0]):
                self.length(), self.string()
        elif kind in (24, 25):  # a hash of fields with expiry
            self.take(8)
            for _ in range(self.length()[0] if kind == 24 else 0):
                self.length(), self.string(), self.string()
            if kind == 25:
                self.string()
        elif kind == 22 and self.data[:6] == b"VALKEY":
            for _ in range(self.length()[0]):
                self.string(), self.string(), self.take(8)
        elif kind in (15, 19, 21):
            self.skip_stream(kind)
        else:
            raise ValueError(f"unknown type {kind} of a value at byte {self.at}")


def decompress(data, length):
    """LZF."""
    out, at = bytearray(), 0
    while at < len(data):
        control = data[at]
        at += 1
        if control < 32:
            out += data[at : at + control + 1]
            at += control + 1
            continue
        count = control >> 5
        if count == 7:
            count += data[at]
            at += 1
        start = len(out) - ((control & 31) << 8) - data[at] - 1
        at += 1
        for i in range(count + 2):
            out.append(out[start + i])
    if len(out) != length:
        raise ValueError("a compressed string is damaged")
    return bytes(out)


def type_name(identifier):
    letters = [LETTERS[identifier >> 10 + 6 * place & 63] for place in reversed(range(9))]
    return "".join(letters), identifier & 1023


def check_rdb(reader, report):
    reader.take(9)
    while True:
        kind = reader.byte()
        if kind == 255:
            return
        if kind in (250, 254, 251, 244):  # auxiliary field, database, sizes, slot
            if kind == 250:
                reader.string(), reader.string()
            for _ in range({250: 0, 254: 1, 251: 2, 244: 3}[kind]):
                reader.length()
        elif kind in (252, 253):  # expiry
            reader.take(8 if kind == 252 else 4)
        elif kind == 248:  # idle time
            reader.length()
        elif kind == 249:  # frequency
            reader.take(1)
        elif kind in (245, 246):  # function library
            reader.string()
        elif kind == 247:  # data of a module beside its keys
            name, version = type_name(reader.length()[0])
            report(f"data of the module type {name}, version {version}")
            reader.length(), reader.length()
            reader.skip_module_value()
        else:
            key = reader.string()
            if kind not in (6, 7):
                reader.skip_value(kind)
                continue
            name, version = type_name(reader.length()[0])
            if version > LOADED.get(name, -1) or kind == 6:
                report(f"key {key!r}: module type {name}, version {version}")
            if kind == 6:
                raise ValueError("a module value of Redis before 4.0.0, whose end is unknown")
            reader.skip_module_value()


def check_aof(reader, report):
    while reader.at < len(reader.data):
        if reader.data[reader.at : reader.at + 1] == b"#":
            reader.at = reader.data.index(b"\n", reader.at) + 1
            continue
        words = []
        for _ in range(line(reader, b"*")):
            words.append(reader.take(line(reader, b"$")))
            reader.take(2)
        name = words[0].decode("latin1").upper()
        if "." in name and name not in COMMANDS:
            report(f"command {name} of key {words[1] if len(words) > 1 else b''!r}")


def line(reader, start):
    end = reader.data.index(b"\r\n", reader.at)
    text = reader.take(end - reader.at)
    reader.take(2)
    if text[:1] != start:
        raise ValueError(f"a command that is not of the protocol at byte {end}")
    return int(text[1:])


def main(paths):
    if not paths:
        print(__doc__)
        return 2
    status = 0
    for path in paths:
        found = {}
        with open(path, "rb") as file:
            reader = Reader(file.read())
        try:
            is_rdb = reader.data[:5] in (b"REDIS", b"VALKE")
            if not is_rdb and reader.data[:1] not in (b"*", b"#", b""):
                raise ValueError("neither an RDB file nor an AOF")
            if is_rdb:
                check_rdb(reader, lambda text: found.setdefault(text))
                if reader.data[reader.at + 8 : reader.at + 9] in (b"*", b"#"):
                    reader.at += 8
            if reader.data[reader.at : reader.at + 1] in (b"*", b"#"):
                check_aof(reader, lambda text: found.setdefault(text))
        except (ValueError, IndexError) as error:
            print(f"{path}: cannot be read: {error}")
            status = 2
        for text in found:
            print(f"{path}: not loaded: {text}")
        if found:
            status = max(status, 1)
        elif status == 0:
            print(f"{path}: all keys and commands can be loaded")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
