"""Reads lines of text out of files, chunk by chunk, from any position."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import IO

from firesteel.common.connector import InputStatus, ReaderContext, ReaderOutput
from firesteel.connectors.local_paths import FileReadError
from firesteel.connectors.split_reader import SequentialSplitReader
from firesteel.connectors.text_line_format import (
    DECOMPRESSION_ERRORS,
    LineCodec,
    StreamFormat,
    is_compressed,
    open_bytes,
)

__all__ = ["FileSourceSplit", "TextLineReader"]

CHUNK_BYTES = 256 * 1024

_PREVIEW_BYTES = 120


@dataclass(frozen=True)
class FileSourceSplit:
    """The lines of a file that begin at a byte from ``start`` up to but not including ``end``, None for all.

    Once begun, ``position`` is the byte offset of a line's beginning and ``records_to_skip`` how many lines
    after it have been emitted already. Offsets in a compressed file are those of its decompressed bytes.
    """

    split_id: str
    path: str
    start: int = 0
    end: int | None = None
    position: int | None = None
    records_to_skip: int = 0


class TextLineReader(SequentialSplitReader[FileSourceSplit]):
    """Reads a chunk, cuts it behind its last line end, decodes and splits that in one go."""

    def __init__(
        self,
        context: ReaderContext,
        stream_format: StreamFormat,
        chunk_bytes: int = CHUNK_BYTES,
        ask_interval_ms: int | None = None,
    ) -> None:
        super().__init__(context, ask_interval_ms)
        self._format = stream_format
        self._chunk_bytes = chunk_bytes
        self._file: IO[bytes] | None = None
        self._codec: LineCodec
        self._tail = b""  # read but not yet decoded: follows the lines' bytes
        self._tail_position = 0
        self._exhausted = False
        self._lines: list[str] = []
        self._lines_position = 0
        self._emitted = 0

    def open_split(self, split: FileSourceSplit) -> None:
        """Opens the file and goes to the split's first line."""
        self._lines, self._emitted, self._tail, self._tail_position, self._exhausted = [], 0, b"", 0, False
        try:
            self._file = open_bytes(split.path)
            self._codec = self._format.codec_for(self._file.read(4))
            self._check_not_truncated(split)
            if split.position is not None:
                self._seek(split.position)
            elif split.start > 0:
                self._seek_first_line(split)
            else:
                self._seek(self._codec.bom_length)
        except FileNotFoundError as error:
            raise FileReadError(
                f"The input file '{split.path}' does not exist where it is to be read.",
                path=split.path,
                hint="Every worker must see the file under this path, until the job has ended.",
            ) from error
        except (OSError, *DECOMPRESSION_ERRORS) as error:
            raise self._unreadable(split, error) from error
        skip = split.records_to_skip
        while skip > len(self._lines) and not self._exhausted:
            skip -= len(self._lines)
            self._fill(split)
        self._emitted = min(skip, len(self._lines))

    def read_split(self, split: FileSourceSplit, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits lines that are already decoded, else those of the next chunk."""
        if self._emitted >= len(self._lines) and not self._exhausted:
            self._fill(split)
        begin = self._emitted
        lines = self._lines
        end = min(begin + max_records, len(lines))
        if end > begin:
            self._emitted = end
            output.collect(split.split_id, lines if end - begin == len(lines) else lines[begin:end])
        if self._exhausted and end >= len(lines):
            return InputStatus.END_OF_INPUT
        return InputStatus.MORE_AVAILABLE

    def snapshot_split(self, split: FileSourceSplit) -> FileSourceSplit:
        """The split from the next line on."""
        if self._emitted >= len(self._lines):
            return replace(split, position=self._tail_position, records_to_skip=0)
        return replace(split, position=self._lines_position, records_to_skip=self._emitted)

    def close_split(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lines, self._tail = [], b""

    def _seek(self, position: int) -> None:
        assert self._file is not None
        self._file.seek(position)
        self._tail_position = position

    def _seek_first_line(self, split: FileSourceSplit) -> None:
        """Passes over the line that the previous split reads to its end."""
        # One byte back: if that is a line end, the line at ``start`` is this split's own.
        self._seek(split.start - 1)
        if not self._read_until_newline(0):
            self._exhausted = True
            return
        cut = self._codec.find_newline(self._tail, 0)
        self._tail = self._tail[cut:]
        self._tail_position += cut
        if split.end is not None and self._tail_position >= split.end:
            self._exhausted = True

    def _fill(self, split: FileSourceSplit) -> None:
        """Reads and decodes the next whole lines."""
        try:
            cut = self._next_cut(split)
        except (OSError, *DECOMPRESSION_ERRORS) as error:
            raise self._unreadable(split, error) from error
        data, self._tail = self._tail[:cut], self._tail[cut:]
        try:
            self._lines = self._codec.split_lines(data)
        except UnicodeDecodeError as error:
            raise self._undecodable(split, data, error) from error
        self._emitted = 0
        self._lines_position = self._tail_position
        self._tail_position += cut

    def _next_cut(self, split: FileSourceSplit) -> int:
        """Reads on to a whole line; returns where whole lines end, and notes if they are the last."""
        if not self._read_until_newline(0):
            self._exhausted = True
            return len(self._tail)
        if split.end is not None and self._tail_position + len(self._tail) >= split.end:
            # The last line is the one that holds the split's last byte, however far it reaches beyond.
            last_byte = split.end - 1 - self._tail_position
            self._exhausted = True
            if not self._read_until_newline(last_byte):
                return len(self._tail)
            return self._codec.find_newline(self._tail, last_byte)
        return self._codec.find_last_newline(self._tail)

    def _read_until_newline(self, start: int) -> bool:
        """Reads on until the tail has a line end behind ``start``; False if the file ends before one."""
        assert self._file is not None
        amount = self._chunk_bytes
        while self._codec.find_newline(self._tail, start) < 0:
            piece = self._file.read(amount)
            if not piece:
                return False
            self._tail += piece
            # Doubling: a very long line is copied and searched a few times, not once per chunk.
            amount = max(amount, len(self._tail))
        return True

    def _check_not_truncated(self, split: FileSourceSplit) -> None:
        if split.position is None or is_compressed(split.path):
            return
        assert self._file is not None
        size = os.fstat(self._file.fileno()).st_size
        if size < split.position:
            raise FileReadError(
                f"The input file '{split.path}' has {size} bytes but was read up to byte {split.position}.",
                path=split.path,
                offset=split.position,
                hint="The file was changed since; a job can only go on in files that stay as they were.",
            )

    def _unreadable(self, split: FileSourceSplit, error: Exception) -> FileReadError:
        hint = None
        if is_compressed(split.path):
            hint = "The file's name says that it is compressed; it may be cut off, damaged, or plain after all."
        return FileReadError(
            f"The input file '{split.path}' cannot be read: {error}.",
            path=split.path,
            offset=self._tail_position,
            hint=hint,
        )

    def _undecodable(self, split: FileSourceSplit, data: bytes, error: UnicodeDecodeError) -> FileReadError:
        codec = self._codec
        line_begin = max(codec.find_last_newline(data[: error.start - error.start % codec.unit]), 0)
        line_end = codec.find_newline(data, error.start)
        line = data[line_begin : len(data) if line_end < 0 else line_end]
        window = max(0, error.start - line_begin - _PREVIEW_BYTES // 2)
        window -= window % codec.unit
        preview = line[window : window + _PREVIEW_BYTES].decode(codec.charset, "backslashreplace").rstrip("\r\n")
        offset = self._tail_position + error.start
        bad = " ".join(f"0x{byte:02x}" for byte in data[error.start : error.end][:4])
        return FileReadError(
            f"The input file '{split.path}' is not {codec.charset} text at byte {offset}: "
            f"{bad} ({error.reason}).\n"
            f"  line: {'…' if window else ''}{preview}",
            path=split.path,
            offset=offset,
            hint=(
                "If the file is in another charset, name it, for instance "
                "StreamFormat.text_line_format('latin-1') or 'cp1252'."
            ),
        )
