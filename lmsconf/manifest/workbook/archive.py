"""The parts of a workbook, which is a zip file: unpacked within limits, whatever its directory says of their sizes."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from typing import Final

MEMBERS: Final = 5_000
"""Maximum number of parts of a workbook."""
UNPACKED: Final = 64 * 1024 * 1024
"""Maximum size of the parts that are read, unpacked, in bytes."""
_DIRECTORY_ENTRY: Final = b"PK\x01\x02"
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class WorkbookRefused(Exception):
    """Raised for a workbook that is damaged, encrypted, or larger than the limits. row, column: of a cell, from 0."""

    def __init__(self, message: str, hint: str, *, sheet: str = "", row: int = -1, column: int = -1) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.sheet = sheet
        self.row = row
        self.column = column


def damaged_workbook(reason: object) -> WorkbookRefused:
    """Return the error for a workbook that cannot be read."""
    return WorkbookRefused(f"this workbook cannot be read: {reason}", "Save it again, or save the sheet as CSV.")


class WorkbookArchive:
    """The parts of one workbook. Sizes are limited for all parts together."""

    def __init__(self, data: bytes) -> None:
        """Raises WorkbookRefused if the data is not a zip file."""
        # Each entry of the directory becomes an object, so they are counted first.
        if data.count(_DIRECTORY_ENTRY) > MEMBERS:
            raise WorkbookRefused(f"this workbook has more than {MEMBERS:,} parts", "Save the sheet as CSV.")
        self._left = UNPACKED
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise damaged_workbook(error) from error

    def has(self, name: str) -> bool:
        """Whether there is a part with that name."""
        return name in self._zip.NameToInfo

    def read(self, name: str) -> bytes:
        """Return a part. Raises WorkbookRefused if it is missing, damaged or encrypted, or exceeds the limit."""
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise damaged_workbook(f"it has no {name}") from None
        if info.flag_bits & 1:
            raise WorkbookRefused("this workbook is encrypted", "Save it without a password.")
        if info.compress_type not in _METHODS:
            raise damaged_workbook(f"{name} is compressed with method {info.compress_type}")
        if info.file_size > self._left:
            raise _too_large()
        try:
            with self._zip.open(info) as part:
                # The size in the directory may be wrong; no more than this is unpacked.
                content = part.read(self._left + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, RuntimeError) as error:
            raise damaged_workbook(error) from error
        self._left -= len(content)
        if self._left < 0:
            raise _too_large()
        return content


def _too_large() -> WorkbookRefused:
    message = f"this workbook is larger than {UNPACKED >> 20} MiB when it is unpacked"
    return WorkbookRefused(message, "Delete the sheets that are not needed, or save the sheet as CSV.")


def pack_workbook(parts: Mapping[str, bytes]) -> bytes:
    """Return a zip file with these parts alone, uncompressed, so that nothing else is parsed and nothing grows."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return packed.getvalue()
