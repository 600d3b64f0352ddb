"""Limits on the content of a nested file, shared by the readers of MATLAB 5 and 7.3."""

from __future__ import annotations

from bsdsbench.files import bounded
from bsdsbench.loaders.reading import FaultError

MAX_DEPTH = 8


class Budget:
    """The bytes a file may still decode to."""

    def __init__(self) -> None:
        self.left = bounded.MAX_DECODED_BYTES

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise FaultError(
                f"decodes to more than {bounded.MAX_DECODED_BYTES} bytes, expected less"
            )
