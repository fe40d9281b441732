import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self, TypeAlias

__all__ = ["FileIndex", "RowGroups"]

_Path: TypeAlias = str | os.PathLike[str]
# A path, several paths, or a pyarrow.dataset.FileSystemDataset, which is untyped.
_Data: TypeAlias = _Path | Iterable[_Path] | Any
_Progress: TypeAlias = Callable[[int, int, str], object]

class RowGroups(NamedTuple):
    path: str
    row_groups: list[int] | None

class FileIndex:
    left_out: dict[str, str]
    def __init__(
        self,
        path: _Path,
        data: _Data,
        root: _Path | None,
        name_suffices: bool,
        memory: int | None = None,
    ) -> None: ...
    @classmethod
    def build(
        cls,
        data: _Data,
        columns: Iterable[str],
        path: _Path,
        *,
        root: _Path | None = None,
        name_suffices: bool = False,
        false_row_groups: float | None = None,
        part_values: int | None = None,
        memory: int | None = None,
        progress: _Progress | None = None,
    ) -> Self: ...
    @classmethod
    def open(
        cls,
        path: _Path,
        data: _Data,
        *,
        root: _Path | None = None,
        name_suffices: bool = False,
        memory: int | None = None,
    ) -> Self: ...
    def update(
        self,
        *,
        allow_empty: bool = False,
        refresh: bool = False,
        memory: int | None = None,
        progress: _Progress | None = None,
    ) -> int: ...
    def compact(self) -> None: ...
    def info(self) -> dict[str, Any]: ...
    def files(self, /, **values: Any) -> list[RowGroups]: ...
    def rows(self, columns: list[str] | None = None, /, **values: Any) -> Any: ...
    def fragments(self, dataset: Any, /, **values: Any) -> list[Any]: ...
    @property
    def columns(self) -> list[str]: ...
    def __len__(self) -> int: ...
