"""Random histories of a folder: queries through an index return the engine's own rows.

`FILE_HISTORIES` sets the number of histories (300); each has its own folder, on the local disk or
in fsspec's memory file system, and some on an S3 emulator if `moto` and `s3fs` are installed.
"""

import itertools
import logging
import os
import random
import shutil

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest

from blocked_bloom import FileIndex

HISTORIES = int(os.environ.get("FILE_HISTORIES", 300))
STEPS = 8
NAMES = ("a", "b", "_c", ".d", "day=1/a", "day=2/a", "day=1/_e")
VALUES = [f"v{i}" for i in range(8)]
fsspec = pytest.importorskip("fsspec")


class History:
    """A folder on one file system, and its index."""

    def __init__(self, source, filesystem, folder, index_path, url):
        self.source, self.fs, self.folder = source, filesystem, folder
        self.index_path, self.url, self.index = index_path, url, None
        self.arrow = fs.PyFileSystem(fs.FSSpecHandler(filesystem))
        self.away = False
        # Asking an S3 emulator would take most of a history's time.
        self.names = set()
        self.fs.makedirs(folder, exist_ok=True)

    def path(self, name):
        return f"{self.folder}/{name}.parquet"

    def existing(self):
        return [] if self.away else sorted(self.names)

    def add(self, name=None):
        if self.away:
            return
        name = name or self.source.choice(NAMES)
        # All files have the same length.
        table = pa.table({
            "t": [self.source.choice(VALUES) for _ in range(2)],
            "day": pa.array([self.source.randrange(1, 4)] * 2, pa.int32()),
        })
        options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
        written = pa.BufferOutputStream()
        pq.write_table(table, written, row_group_size=1, **options)
        self.fs.makedirs(self.path(name).rpartition("/")[0], exist_ok=True)
        with self.fs.open(self.path(name), "wb") as opened:
            opened.write(written.getvalue().to_pybytes())
        self.names.add(name)

    def replace(self):
        if names := self.existing():
            self.add(self.source.choice(names))

    def rename(self):
        if names := self.existing():
            name, to = self.source.choice(names), self.source.choice(NAMES)
            if name != to:
                self.fs.makedirs(self.path(to).rpartition("/")[0], exist_ok=True)
                self.fs.mv(self.path(name), self.path(to))
                self.names = self.names - {name} | {to}

    def remove(self):
        if names := self.existing():
            name = self.source.choice(names)
            self.fs.rm(self.path(name))
            self.names.remove(name)

    def move_away(self):
        """Moves the folder away, or back if it is away."""
        if self.url.startswith("s3://") or (not self.away and not self.existing()):
            return
        pair = (self.folder, self.folder + ".away")
        self.fs.mv(*(pair[::-1] if self.away else pair), recursive=True)
        self.away = not self.away

    def build(self):
        if self.existing():
            self.index = FileIndex.build(self.url, ["t", "day"], self.index_path)
            assert self.index.left_out == {}

    def update(self):
        if self.index is None:
            return
        if not self.existing() and len(self.index):
            with pytest.raises(FileNotFoundError):
                self.index.update()
        else:
            self.index.update()
            assert self.index.update() == 0

    def compact(self):
        if self.index is not None:
            self.index.compact()

    def check(self):
        names = self.existing()
        if self.index is None or not names:
            return 0
        dataset = ds.dataset(
            sorted(map(self.path, names)), filesystem=self.arrow, format="parquet",
            partitioning=ds.partitioning(pa.schema({"day": pa.int32()}), flavor="hive"))
        value, day = self.source.choice(VALUES), self.source.randrange(1, 4)
        checked = 0
        # With and without path columns.
        plain = ds.dataset(
            dataset.files, filesystem=self.arrow, format="parquet", schema=dataset.schema)
        contents = [read(source, ["t", "day", "__filename"]) for source in (dataset, plain)]
        for given in ({"t": value}, {"day": day}, {"t": [value, "absent"], "day": day}):
            expected = matching(contents[0], given)
            left = ds.FileSystemDataset(
                self.index.fragments(dataset, **given), dataset.schema, dataset.format,
                dataset.filesystem)
            assert matching(read(left), given) == expected
            # The same for `files`.
            inner = [file.path.partition("://")[2] or file.path
                     for file in self.index.files(**given)]
            inner = [path if path in dataset.files else "/" + path for path in inner]
            assert set(inner) <= set(dataset.files)
            for rows in contents:
                of_files = [row for row in rows if row["__filename"] in inner]
                assert matching(of_files, given) == matching(rows, given)
            checked += 1
        return checked


def read(dataset, columns=None):
    """The rows of a dataset. Threads would wait for each other in the file system's Python code."""
    return dataset.to_table(columns, use_threads=False).to_pylist()


def matching(rows, given):
    """The rows with the values of a query, in one order."""
    def has(row, name, values):
        return row[name] in (values if isinstance(values, list) else [values])

    return sorted(
        f"{row['t']} {row['day']}" for row in rows
        if all(has(row, name, values) for name, values in given.items())
    )


def run(seed, filesystem, folder, index_path, url):
    source = random.Random(seed)
    history = History(source, filesystem, folder, index_path, url)
    history.add()
    history.build()
    checked = 0
    for _ in range(STEPS):
        step = source.choices(
            ["add", "replace", "rename", "remove", "move_away", "build", "update", "compact"],
            [4, 6, 3, 2, 1, 2, 3, 1])[0]
        getattr(history, step)()
        checked += history.check()
    return checked


def test_local_disk(tmp_path):
    checked, local = 0, fsspec.filesystem("file")
    for seed in range(HISTORIES // 2):
        folder = str(tmp_path / "d")
        checked += run(seed, local, folder, str(tmp_path / "i"), folder)
        for path in (folder, folder + ".away"):
            shutil.rmtree(path, ignore_errors=True)
    assert checked > 8 * (HISTORIES // 2)


def test_memory_file_system(tmp_path):
    checked, memory = 0, fsspec.filesystem("memory")
    for seed in range(HISTORIES // 2, HISTORIES):
        folder = f"/d{seed}"
        checked += run(seed, memory, folder, str(tmp_path / "i"), f"memory://{folder}")
        for path in (folder, folder + ".away"):
            if memory.exists(path):
                memory.rm(path, recursive=True)
    assert checked > 8 * (HISTORIES - HISTORIES // 2)


@pytest.fixture
def s3(monkeypatch):
    server = pytest.importorskip("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    s3fs = pytest.importorskip("s3fs")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    found = s3fs.S3FileSystem()
    if not found.exists("bucket"):
        found.mkdir("bucket")
    yield found
    running.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def test_s3_emulator(tmp_path, s3):
    checked = 0
    for seed in range(max(3, HISTORIES // 40)):
        checked += run(seed, s3, f"bucket/d{seed}", str(tmp_path / "i"), f"s3://bucket/d{seed}")
    assert checked > 20


def test_a_lookup_on_s3_is_one_listing(tmp_path, s3, monkeypatch):
    history = History(random.Random(1), s3, "bucket/many", str(tmp_path / "i"), "s3://bucket/many")
    for number in range(40):
        history.add(f"day=1/{number}")
    index = FileIndex.build(history.url, ["t"], history.index_path)
    assert len(index) == 40
    calls = []
    call = type(s3)._call_s3

    async def counted(self, method, *rest, **kept):
        calls.append(method)
        return await call(self, method, *rest, **kept)

    monkeypatch.setattr(type(s3), "_call_s3", counted)
    requests = type(s3)._iterdir
    pages = itertools.count()

    def listed(self, *rest, **kept):
        next(pages)
        return requests(self, *rest, **kept)

    monkeypatch.setattr(type(s3), "_iterdir", listed)
    assert index.files(t="absent") == []
    assert "head_object" not in calls and next(pages) == 1, calls


def test_files_and_patterns_of_a_store(tmp_path):
    memory = fsspec.filesystem("memory")
    history = History(random.Random(2), memory, "/p", str(tmp_path / "i"), "memory:///p")
    for name in ("a", "_c", ".d"):
        history.add(name)
    two = ["memory:///p/a.parquet", "memory:///p/_c.parquet"]
    for url, count in (("memory:///p/*.parquet", None), ("memory:///p/_c.parquet", 1),
                       ("memory:///p", 3), (two, 2)):
        index = FileIndex.build(url, ["t"], tmp_path / "i")
        assert index.files(t="absent") == [] and index.update() == 0
        assert len(index) == (count or len(memory.glob("/p/*.parquet")))
    with pytest.raises(ValueError, match="no files in memory:///none"):
        FileIndex.build("memory:///none", ["t"], tmp_path / "i")
    memory.rm("/p", recursive=True)
