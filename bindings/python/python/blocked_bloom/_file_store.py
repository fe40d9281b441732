"""Reads and replaces the file of an index, which is local or at a URL of fsspec."""

# fsspec has no type information.
# mypy: ignore-errors

import contextlib
import os
import tempfile
import uuid
from collections.abc import Iterator
from typing import Any

from ._file_listing import Path, local_path, open_store
from ._native import FormatError, OpenedFileIndex


def index_path(path: Path) -> str:
    """A local path, or a URL of a store."""
    return local_path(os.fspath(path))


def open_index(path: str, name_suffices: bool) -> OpenedFileIndex:
    if "://" not in path:
        return OpenedFileIndex(path, name_suffices)
    store, inner = open_store(path)
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "index")
        store.invalidate_cache()
        try:
            store.get_file(inner, copy)
            return OpenedFileIndex(copy, name_suffices)
        except FileNotFoundError:
            raise FileNotFoundError(f"{path}: no such file") from None
        except FormatError as error:
            raise FormatError(str(error).replace(copy, path)) from None


@contextlib.contextmanager
def replaced(path: str) -> Iterator[str]:
    """Yields the local path at which to write a new index. At the end it replaces the one at `path`
    as a whole, unless an exception is raised."""
    if "://" not in path:
        # The writer has a temporary file of its own.
        yield path
        return
    store, inner = open_store(path)
    with tempfile.TemporaryDirectory() as folder:
        new = os.path.join(folder, "index")
        yield new
        _upload(store, new, inner)
    store.invalidate_cache()


def _upload(store: Any, new: str, path: str) -> None:
    """In one upload, which object stores complete or drop as a whole, or by a rename where the
    store has one. The default of fsspec is a copy."""
    from fsspec import AbstractFileSystem

    if type(store).mv is AbstractFileSystem.mv:
        store.put_file(new, path)
        return
    hidden = f"{path.rpartition('/')[0]}/.blocked-bloom-{uuid.uuid4().hex}"
    temporary, old = hidden + ".tmp", hidden + ".old"
    try:
        store.put_file(new, temporary)
        if store.info(temporary)["size"] != os.path.getsize(new):
            raise OSError(f"{temporary}: not all bytes were written")
        try:
            store.mv(temporary, path)
        except Exception:
            if not (store.exists(path) and store.exists(temporary)):
                raise
            # A store that does not replace files. Until the next rename there is no index.
            store.mv(path, old)
            try:
                store.mv(temporary, path)
            except BaseException:
                store.mv(old, path)
                raise
            store.rm_file(old)
    except BaseException:
        with contextlib.suppress(Exception):
            store.rm_file(temporary)
        raise
