"""Requests to an S3 emulator, if `moto` is installed: its log has a line for each."""

import re
import socket
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest

from blocked_bloom import FileIndex

pytest.importorskip("moto.server")


class Emulator:
    """In a process of its own: deltalake holds the interpreter's lock while it waits."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url, self.log, self.read = f"http://127.0.0.1:{port}", folder / "requests", 0
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                stdout=log, stderr=log)
        for _ in range(600):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        self.arrow = fs.S3FileSystem(
            access_key="testing", secret_key="testing", endpoint_override=self.url,
            region="us-east-1", allow_bucket_creation=True)
        self.arrow.create_dir("bucket")
        self.options = {
            "AWS_ENDPOINT_URL": self.url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing",
            "aws_conditional_put": "etag",
        }

    def requests(self):
        """Method and path of each request since the last call."""
        time.sleep(0.3)
        text = self.log.read_text()[self.read:]
        self.read += len(text)
        return re.findall(r'"([A-Z]+) (\S+) HTTP', re.sub(r"\x1b\[[0-9;]*m", "", text))


@pytest.fixture
def emulator(tmp_path):
    found = Emulator(tmp_path)
    yield found
    found.process.kill()
    found.process.wait()


@pytest.mark.parametrize("folders", [False, True])
def test_datasets_of_pyarrow_are_one_listing(emulator, tmp_path, folders):
    for number in range(40):
        folder = f"bucket/d/day={number % 3}" if folders else "bucket/d"
        path = f"{folder}/{number}.parquet"
        pq.write_table(pa.table({"t": [f"v{number}"]}), path, filesystem=emulator.arrow)
    dataset = ds.dataset("bucket/d", filesystem=emulator.arrow, partitioning="hive")
    index = FileIndex.build(dataset, ["t"], tmp_path / "i")
    assert len(index) == 40
    emulator.requests()
    assert index.files(t="absent") == []
    [(method, path)] = emulator.requests()
    assert method == "GET" and "list-type=2" in path
    [file] = index.files(t="v7")
    assert file.row_groups == [0] and len(emulator.requests()) == 1
    assert index.fragments(dataset, t="absent") == [] and len(emulator.requests()) == 1


def test_lookups_of_a_delta_table_send_no_request(emulator, tmp_path):
    deltalake = pytest.importorskip("deltalake")
    url = "s3://bucket/a b/x"
    for part in ("x y%/é=1", "b"):
        rows = pa.table({"t": [part + "0", part + "1"], "p": [part] * 2})
        deltalake.write_deltalake(
            url, rows, partition_by=["p"], mode="append", storage_options=emulator.options)
    table = deltalake.DeltaTable(url, storage_options=emulator.options)
    index = FileIndex.build(table, ["t"], tmp_path / "i")
    assert index.left_out == {} and len(index) == 2
    emulator.requests()
    files = {part: index.files(t=part + "1") for part in ("x y%/é=1", "b", "absent")}
    assert [len(found) for found in files.values()] == [1, 1, 0]
    assert index.update() == 0 and emulator.requests() == []
    for part, found in files.items():
        assert all(file.row_groups == [0] for file in found)
        rows = index.rows(t=part + "1").to_pylist()
        assert {"t": part + "1", "p": part} in rows or part == "absent" and rows == []
        for file in found:
            assert pq.read_metadata(
                file.path.removeprefix("s3://"), filesystem=emulator.arrow).num_rows == 2
    dataset = table.to_pyarrow_dataset()
    emulator.requests()
    [part] = index.fragments(dataset, t="b1")
    assert "/p=b/" in "/" + part.path
    assert all(method == "GET" and ".parquet" in path for method, path in emulator.requests())
    assert index.fragments(dataset, t="absent") == [] and emulator.requests() == []
