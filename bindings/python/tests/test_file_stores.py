"""Listings of stores and of the local disk: times, names, URLs, requests, damaged writes."""

import datetime
import pathlib
import pickle

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest

from blocked_bloom import FileIndex, FormatError

fsspec = pytest.importorskip("fsspec")
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

#: In the past, so that builds need not wait.
CHANGED = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=datetime.timezone.utc)


class Store(MemoryFileSystem):
    """A store that reports whole seconds for a file, and milliseconds in a listing."""

    protocol = "seconds"
    store, pseudo_dirs = {}, [""]
    etags, changed, calls = {}, {}, []

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("seconds://"))

    def _details(self, info):
        name = info["name"]
        if info["type"] != "file":
            return info
        etag = {"ETag": self.etags[name]} if name in self.etags else {}
        return {"name": name, "size": info["size"], "type": "file",
                "LastModified": self.changed.get(name, CHANGED), **etag}

    def info(self, path, **options):
        self.calls.append(("info", path))
        info = self._details(super().info(path, **options))
        if "LastModified" in info:
            info["LastModified"] = info["LastModified"].replace(microsecond=0)
        return info

    def ls(self, path, detail=True, **options):
        found = [self._details(info) for info in super().ls(path, detail=True, **options)]
        return found if detail else [info["name"] for info in found]

    def find(self, path, maxdepth=None, withdirs=False, detail=False, **options):
        self.calls.append(("find", path))
        found = super().find(path, maxdepth, withdirs, True, **options)
        found = {name: self._details(info) for name, info in found.items()}
        return found if detail else list(found)


fsspec.register_implementation("seconds", Store, clobber=True)


@pytest.fixture
def store():
    found = Store(skip_instance_cache=True)
    found.store.clear()
    found.etags.clear()
    found.changed.clear()
    found.calls.clear()
    return found


def put(store, path, values):
    store.makedirs(path.rpartition("/")[0], exist_ok=True)
    with store.open(path, "wb") as opened:
        pq.write_table(pa.table({"t": values}), opened)


def heads(store):
    """The files that were asked for one by one since the last call."""
    found = [path for kind, path in store.calls if kind == "info" and path.endswith(".parquet")]
    store.calls.clear()
    return found


def test_whole_seconds_of_a_file_and_milliseconds_of_a_listing(store, tmp_path):
    for letter in "abc":
        put(store, f"/d/{letter}.parquet", [letter])
    index = FileIndex.build("seconds:///d", ["t"], tmp_path / "i")
    assert index.left_out == {} and index.files(t="z") == [] and index.update() == 0
    # Another second is another version.
    store.changed["/d/a.parquet"] = CHANGED + datetime.timedelta(seconds=1)
    assert [file.row_groups for file in index.files(t="z")] == [None]
    assert index.update() == 1 and index.files(t="z") == [] and index.update() == 0


def test_equal_etags_of_contents_decide_alone(store, tmp_path):
    put(store, "/d/a.parquet", ["a"])
    store.etags["/d/a.parquet"] = '"9b74c9897bac770ffc029102a200c5de"'
    index = FileIndex.build("seconds:///d", ["t"], tmp_path / "i")
    store.changed["/d/a.parquet"] = CHANGED + datetime.timedelta(days=1)
    assert index.files(t="z") == [] and index.update() == 0
    store.etags["/d/a.parquet"] = '"00000000000000000000000000000000"'
    assert len(index.files(t="z")) == 1 and index.update() == 1


def test_urls_in_a_folder_that_is_gone(store, tmp_path):
    urls = [f"seconds:///d/{letter}.parquet" for letter in "ab"]
    for letter in "ab":
        put(store, f"/d/{letter}.parquet", [letter])
    index = FileIndex.build(urls, ["t"], tmp_path / "i")
    store.rm("/d", recursive=True)
    assert [file.row_groups for file in index.files(t="z")] == [None, None]
    with pytest.raises(FileNotFoundError):
        index.update()


def test_urls_are_shown_as_a_reader_opens_them(store, tmp_path):
    put(store, "/d/a.parquet", ["a"])
    index = FileIndex.build("seconds:///d", ["t"], tmp_path / "i")
    [file] = index.files(t="a")
    assert file.path == "seconds:///d/a.parquet"
    with fsspec.open(file.path) as opened:
        assert pq.read_table(opened)["t"].to_pylist() == ["a"]


def test_paths_that_are_urls_keep_them(store, tmp_path, monkeypatch):
    """As those of the HTTP file system are."""
    put(store, "/d/a.parquet", ["a"])
    url = "seconds://host/d/a.parquet"
    found = store._details({"name": url, "size": 5, "type": "file"})
    monkeypatch.setattr(Store, "_strip_protocol", classmethod(lambda cls, path: path))
    monkeypatch.setattr(Store, "find", lambda self, path, **options: {url: found})
    index = FileIndex.build(local(tmp_path, "a"), ["t"], tmp_path / "i")
    listed = FileIndex.open(tmp_path / "i", "seconds://host/d/a.parquet")
    assert [file.path for file in listed.files(t="a")] == [url] and len(index) == 1


def test_chains_of_stores_are_refused(tmp_path):
    for data in ("simplecache::seconds:///d", ["simplecache::seconds:///d/a.parquet"]):
        with pytest.raises(ValueError, match="a chain of stores"):
            FileIndex.build(data, ["t"], tmp_path / "i")


@pytest.mark.parametrize("arrow", [False, True])
def test_folders_of_columns_are_one_listing(store, tmp_path, arrow):
    """With one file in each folder, in two levels."""
    paths = [f"/h/day={day}/hour={day % 2}/a.parquet" for day in range(5)]
    for path in [*paths, "/h/day=9/hour=0/other.parquet"]:
        put(store, path, [path])
    if arrow:
        filesystem = fs.PyFileSystem(fs.FSSpecHandler(store))
        data = ds.dataset(paths, filesystem=filesystem, format="parquet")
    else:
        data = ["seconds://" + path for path in paths]
    index = FileIndex.build(data, ["t"], tmp_path / "i")
    heads(store)
    assert index.files(t="absent") == []
    assert [path for kind, path in store.calls if kind == "find"] == ["/h"]
    assert heads(store) == []
    # A single folder is listed alone.
    put(store, "/h/day=0/hour=0/b.parquet", ["b"])
    one = [f"seconds:///h/day=0/hour=0/{letter}.parquet" for letter in "ab"]
    FileIndex.open(tmp_path / "i", one).files(t="absent")
    assert ("find", "/h/day=0/hour=0") in store.calls and heads(store) == []


def test_an_empty_folder_of_a_store(store, tmp_path):
    put(store, "/d/a.parquet", ["a"])
    index = FileIndex.build("seconds:///d", ["t"], tmp_path / "i")
    store.rm("/d/a.parquet")
    store.makedirs("/d", exist_ok=True)
    assert index.files(t="a") == [] and index.info()["files_unknown"] == 0
    with pytest.raises(FileNotFoundError, match="seconds:///d"):
        index.update()


def local(tmp_path, *letters):
    folder = tmp_path / "d"
    folder.mkdir(exist_ok=True)
    for letter in letters:
        pq.write_table(pa.table({"t": [letter]}), folder / f"{letter}.parquet")
    return folder


def test_patterns_match_hidden_names(tmp_path):
    local(tmp_path, "a", ".b", "_c")
    (tmp_path / "d/.e").mkdir()
    pq.write_table(pa.table({"t": ["e"]}), tmp_path / "d/.e/e.parquet")
    for pattern, count in (("d/*.parquet", 3), ("d/**/*.parquet", 4)):
        index = FileIndex.build(tmp_path / pattern, ["t"], tmp_path / "i")
        assert len(index) == count and len(index.files(t=".b")) == 1


@pytest.mark.parametrize("arrow", [False, True])
def test_the_folder_of_a_dataset_is_listed_again(store, tmp_path, arrow):
    def write(name):
        if arrow:
            put(store, f"/h/{name}.parquet", [name])
        else:
            (tmp_path / "h" / name).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"t": [name]}), tmp_path / "h" / f"{name}.parquet")

    write("day=1/a")
    write("day=2/b")
    filesystem = fs.PyFileSystem(fs.FSSpecHandler(store)) if arrow else fs.LocalFileSystem()
    dataset = ds.dataset(
        "/h" if arrow else str(tmp_path / "h"), filesystem=filesystem, partitioning="hive")
    index = FileIndex.build(dataset, ["t"], tmp_path / "i")
    write("day=3/c")
    names = lambda found: [pathlib.Path(file.path).name for file in found]  # noqa: E731
    # A dataset keeps its files unless asked.
    assert index.update() == 0 and index.files(t="day=3/c") == []
    assert names(index.files(t="day=1/a")) == ["a.parquet"]
    found = index.files(t="day=3/c", refresh=True)
    assert [file.row_groups for file in found] == [None] and names(found) == ["c.parquet"]
    assert index.files(t="day=3/c") == found and index.update() == 1
    write("day=3/d")
    assert index.update(refresh=True) == 1 and len(index) == 4
    assert [file.row_groups for file in index.files(t="day=3/d")] == [[0]]
    # The column of the paths still does not prune.
    assert index._data.partitioning.schema.names == ["day"]


def test_a_column_may_be_called_refresh(tmp_path):
    (tmp_path / "d").mkdir()
    pq.write_table(pa.table({"refresh": [True]}), tmp_path / "d/a.parquet")
    index = FileIndex.build(tmp_path / "d", ["refresh"], tmp_path / "i", false_row_groups=1e-6)
    assert len(index.files(refresh=True)) == 1 and index.files(refresh=False) == []


def test_compact_keeps_the_updates_of_others(tmp_path):
    folder = local(tmp_path, "a")
    index = FileIndex.build(folder, ["t"], tmp_path / "i")
    local(tmp_path, "b")
    assert FileIndex.open(tmp_path / "i", folder).update() == 1
    index.compact()
    assert len(index) == len(FileIndex.open(tmp_path / "i", folder)) == 2
    assert [pathlib.Path(file.path).name for file in index.files(t="b")] == ["b.parquet"]


def test_a_file_that_fails_between_two_columns(tmp_path):
    """Its first column is in the planes already, in row groups that are read column by column."""
    rows, folder = 40_000, tmp_path / "d"
    folder.mkdir()

    def table(letter):
        return pa.table({name: [f"{letter}{name}{row}" for row in range(rows)] for name in "tu"})

    options = {"use_dictionary": False, "compression": "none", "row_group_size": 20_000}
    for letter in "abc":
        pq.write_table(table(letter), folder / f"{letter}.parquet", **options)
    for group in range(2):
        path = folder / "b.parquet"
        pq.write_table(table("b"), path, **options)
        column = pq.ParquetFile(path).metadata.row_group(group).column(1)
        damaged = bytearray(path.read_bytes())
        damaged[column.data_page_offset : column.data_page_offset + 16] = b"\xff" * 16
        path.write_bytes(damaged)
        index = FileIndex.build(folder, ["t", "u"], tmp_path / "i", memory=1 << 20)
        assert list(index.left_out) == [str(path)] and len(index) == 2
        for letter in "ac":
            for name in "tu":
                [found, unknown] = sorted(
                    index.files(**{name: f"{letter}{name}{rows - 1}"}),
                    key=lambda file: file.row_groups is None)
                assert found == (str(folder / f"{letter}.parquet"), [1])
                assert unknown == (str(path), None)


def test_a_new_index_is_verified_before_it_replaces_the_old_one(tmp_path):
    folder = local(tmp_path, "a")
    index = FileIndex.build(folder, ["t"], tmp_path / "i")
    before = (tmp_path / "i").read_bytes()
    local(tmp_path, "b")

    def damage(done, count, path):
        [new] = tmp_path.glob(".blocked-bloom-*.tmp")
        # Longer than the index will be.
        new.write_bytes(b"\xff" * 100_000)

    with pytest.raises(FormatError):
        index.update(progress=damage)
    assert (tmp_path / "i").read_bytes() == before and index.files(t="a") != []
    assert list(tmp_path.glob(".blocked-bloom-*")) == []


class Renaming(Store):
    """A store that renames, and that replaces no file by that."""

    protocol = "renaming"
    replaces, moves = True, []

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("renaming://"))

    def mv(self, path1, path2, **options):
        self.moves.append((path1, path2))
        if not self.replaces and self.exists(path2):
            raise FileExistsError(path2)
        self.store[path2] = self.store.pop(path1)


fsspec.register_implementation("renaming", Renaming, clobber=True)


@pytest.fixture(params=["seconds", "renaming", "renaming once"])
def indexed(request, store, monkeypatch):
    """A store for indexes: one that cannot rename, one that replaces files, one that does not."""
    monkeypatch.setattr(Renaming, "replaces", request.param == "renaming")
    Renaming.moves.clear()
    return request.param.split()[0]


def test_an_index_in_a_store(store, tmp_path, indexed):
    url = f"{indexed}:///d/x.index"
    for letter in "ab":
        put(store, f"/d/{letter}.parquet", [letter])
    data = f"{indexed}:///d"
    index = FileIndex.build(data, ["t"], url)
    # The index is in the folder, and not one of its files.
    assert index.left_out == {} and len(index) == 2
    assert [file.path for file in index.files(t="a")] == [f"{data}/a.parquet"]
    put(store, "/d/c.parquet", ["c"])
    other = FileIndex.open(url, data)
    assert other.update() == 1 and other.update() == 0 and other.files(t="z") == []
    index.compact()
    assert len(index) == 3 and index.files(t="z") == []
    assert len(FileIndex.open(url, data)) == len(pickle.loads(pickle.dumps(index))) == 3
    # The same bytes as in a local file.
    (tmp_path / "i").write_bytes(store.cat("/d/x.index"))
    [file] = FileIndex.open((tmp_path / "i").as_uri(), data).files(t="z")
    assert file.path == url
    assert sorted(store.find("/d")) == [f"/d/{name}" for name in (
        "a.parquet", "b.parquet", "c.parquet", "x.index")]
    assert bool(Renaming.moves) == (indexed == "renaming")


def test_an_index_in_a_store_is_replaced_as_a_whole(store, indexed, monkeypatch):
    url, data = f"{indexed}:///d/x.index", f"{indexed}:///d"
    put(store, "/d/a.parquet", ["a"])
    index = FileIndex.build(data, ["t"], url)
    before = store.cat("/d/x.index")
    put(store, "/d/b.parquet", ["b"])

    def fail(done, count, path):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.update(progress=fail)
    kind = fsspec.get_filesystem_class(indexed)
    with monkeypatch.context() as patched:
        if indexed == "renaming":
            patched.setattr(kind, "mv", lambda *paths, **options: 1 / 0)
        else:
            patched.setattr(kind, "put_file", lambda *paths, **options: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            index.update()
    if indexed == "renaming":
        with monkeypatch.context() as patched:
            def half(self, local, path, **options):
                self.pipe(path, pathlib.Path(local).read_bytes()[:-1])

            patched.setattr(kind, "put_file", half)
            with pytest.raises(OSError, match="not all bytes"):
                index.update()
    assert store.cat("/d/x.index") == before and index.files(t="a") != []
    assert sorted(store.find("/d")) == ["/d/a.parquet", "/d/b.parquet", "/d/x.index"]
    assert index.update() == 1 and store.cat("/d/x.index") != before


def test_errors_of_an_index_in_a_store(store):
    put(store, "/d/a.parquet", ["a"])
    with pytest.raises(FileNotFoundError, match="seconds:///none"):
        FileIndex.open("seconds:///none", "seconds:///d")
    store.pipe("/d/x.index", b"no index")
    with pytest.raises(FormatError, match="seconds:///d/x.index"):
        FileIndex.open("seconds:///d/x.index", "seconds:///d")
    with pytest.raises(ValueError, match="a chain of stores"):
        FileIndex.build("seconds:///d", ["t"], "simplecache::seconds:///d/x.index")


@pytest.mark.parametrize("scheme", ["memory://", "memory:///"])
def test_an_index_of_a_dataset_is_none_of_its_files(tmp_path, scheme):
    memory = fsspec.filesystem("memory")
    filesystem = fs.PyFileSystem(fs.FSSpecHandler(memory))
    memory.makedirs("/own", exist_ok=True)
    with memory.open("/own/a.parquet", "wb") as opened:
        pq.write_table(pa.table({"t": ["a"]}), opened)
    dataset = lambda: ds.dataset("/own", filesystem=filesystem)  # noqa: E731
    for data in (dataset, lambda: "memory://own"):
        FileIndex.build(data(), ["t"], scheme + "own/x.index")
        index = FileIndex.open(scheme + "own/x.index", data())
        assert [len(index.files(t=t)) for t in "az"] == [1, 0], data
        memory.rm("/own/x.index")
    memory.rm("/own", recursive=True)


def test_a_dataset_for_folders_of_columns_without_any(tmp_path):
    """pyarrow calls all of its columns those of the folders."""
    folder = local(tmp_path, "a")
    dataset = ds.dataset(folder, partitioning="hive")
    assert dataset.partitioning.schema.names == ["t"]
    index = FileIndex.build(dataset, ["t"], tmp_path / "i")
    assert [len(index.files(t=t)) for t in "az"] == [1, 0] == [
        len(index.fragments(dataset, t=t)) for t in "az"]


def test_an_index_is_moved_back_if_its_replacement_fails(store, monkeypatch):
    put(store, "/d/a.parquet", ["a"])
    index = FileIndex.build("renaming:///d", ["t"], "renaming:///d/x.index")
    before = store.cat("/d/x.index")
    put(store, "/d/b.parquet", ["b"])
    move = Renaming.mv

    def mv(self, path1, path2, **options):
        if path1.endswith(".tmp"):
            raise PermissionError(path2)
        move(self, path1, path2)

    monkeypatch.setattr(Renaming, "mv", mv)
    with pytest.raises(PermissionError):
        index.update()
    assert store.cat("/d/x.index") == before
    assert sorted(store.find("/d")) == ["/d/a.parquet", "/d/b.parquet", "/d/x.index"]
