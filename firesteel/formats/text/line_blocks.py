"""Reads a part of a file as blocks of whole lines, from any position."""

from __future__ import annotations

from typing import BinaryIO, NamedTuple

from firesteel.formats.file_split import FileSourceSplit
from firesteel.formats.text.line_codec import LineCodec, is_splittable_charset, line_codec

__all__ = ["LineBlock", "LineBlocks", "LineOffsets"]


class LineBlock(NamedTuple):
    """Whole lines as they are in the file; only the last of a file may lack its end."""

    data: bytes
    offset: int
    is_last: bool

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.offset + len(self.data)


class LineOffsets:
    """Where the lines of a block begin: found on demand, because it is rarely needed."""

    def __init__(self, block: LineBlock, codec: LineCodec) -> None:
        self.block = block
        self._codec = codec
        self._found: list[int] | None = None

    def __getitem__(self, line: int) -> int:
        if self._found is None:
            data, unit = self.block.data, self._codec.unit
            self._found = [0]
            while (end := self._codec.find_newline(data, self._found[-1] + unit - 1)) >= 0:
                self._found.append(end)
        return self.block.offset + self._found[line]


class LineBlocks:
    """Reads a piece and cuts it behind its last line end.

    Of a byte range, the lines are those that begin in it, wherever they end.
    """

    def __init__(
        self, stream: BinaryIO, split: FileSourceSplit, charset: str, piece_bytes: int, *, passes_mark: bool = False
    ) -> None:
        self._stream = stream
        self._end = split.end
        self._piece_bytes = piece_bytes
        self._tail = b""  # read but not yet given
        self.position = 0
        """Where the next block begins."""
        self._exhausted = False
        at_beginning = split.position is None and split.start == 0
        head = self._read_head() if at_beginning or not is_splittable_charset(charset) else b""
        self.codec: LineCodec = line_codec(charset, head, passes_mark=passes_mark)
        if split.position is not None:
            self._seek(split.position)
        elif split.start > 0:
            self._seek_first_line(split)
        else:
            self._seek(self.codec.bom_length)

    def next(self) -> LineBlock | None:
        """The next lines; None if there are none."""
        if self._exhausted:
            return None
        cut = self._next_cut()
        data, self._tail = self._tail[:cut], self._tail[cut:]
        block = LineBlock(data, self.position, self._exhausted)
        self.position += cut
        return block

    def _read_head(self) -> bytes:
        head = b""
        while len(head) < 4 and (piece := self._stream.read(4 - len(head))):
            head += piece
        return head

    def _seek(self, position: int) -> None:
        self._stream.seek(position)
        self.position = position

    def _seek_first_line(self, split: FileSourceSplit) -> None:
        """Passes over the line that the previous split reads to its end."""
        # One byte back: if that is a line end, the line at ``start`` is this split's own.
        self._seek(split.start - 1)
        if not self._read_until_newline(0):
            self._exhausted = True
            return
        cut = self.codec.find_newline(self._tail, 0)
        self._tail = self._tail[cut:]
        self.position += cut
        if split.end is not None and self.position >= split.end:
            self._exhausted = True

    def _next_cut(self) -> int:
        """Reads on to a whole line; returns where whole lines end, and notes if they are the last."""
        if not self._read_until_newline(0):
            self._exhausted = True
            return len(self._tail)
        if self._end is not None and self.position + len(self._tail) >= self._end:
            # The last line is the one that holds the split's last byte, however far it reaches beyond.
            last_byte = self._end - 1 - self.position
            self._exhausted = True
            if not self._read_until_newline(last_byte):
                return len(self._tail)
            return self.codec.find_newline(self._tail, last_byte)
        return self.codec.find_last_newline(self._tail)

    def _read_until_newline(self, start: int) -> bool:
        """Reads on until the tail has a line end behind ``start``; False if the file ends before one."""
        amount = self._piece_bytes
        while self.codec.find_newline(self._tail, start) < 0:
            piece = self._stream.read(amount)
            if not piece:
                return False
            self._tail += piece
            # Doubling: a very long line is copied and searched a few times, not once per piece.
            amount = max(amount, len(self._tail))
        return True
