"""Base class of results: `repr`, summary and data frame, all derived from `tables()`."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import DataError
from bsdsbench.tables.read_only import ReadOnly
from bsdsbench.tables.table import Field, Table, to_text

if TYPE_CHECKING:
    import pandas as pd


class Shown:
    """A result with tables, of its numbers if it does not say which; the first one is the result
    itself."""

    __slots__ = ()

    def numbers(self) -> dict[str, float]:
        """Name -> number, those of a part as "ods.f"; by default ROW.COLUMN of the first table."""
        numbers: dict[str, float] = {}
        for table in self.tables()[:1]:
            columns, labels = table.plain(), [c.key for c in table.columns[: table.n_labels]]
            for number in range(len(table.rows)):
                row = ".".join(str(columns[label][number]) for label in labels)
                for key, column in columns.items():
                    if isinstance(column[number], int | float) and key not in labels:
                        numbers[f"{row}.{key}"] = column[number]
        return numbers

    def __repr__(self) -> str:
        """One line: the first numbers; a point of a curve by its F."""
        parts = []
        for key, value in self.numbers().items():
            if "." not in key or key.endswith(".f"):
                text = "-" if math.isnan(value) else f"{value:.4g}"
                parts.append(f"{key.removesuffix('.f')}={text}")
        return f"{type(self).__name__}({', '.join(parts[:10])})"

    def tables(self) -> list[Table]:
        """The result as tables."""
        columns = [Field("number", "Number"), Field("value", "Value", "", ".6g")]
        return [Table("numbers", type(self).__name__, columns, list(self.numbers().items()))]

    def summary(self) -> str:
        """The tables as text, of 120 characters at most."""
        return to_text([table for table in self.tables() if not table.aside])

    def _repr_html_(self) -> str:
        """The tables, for notebooks."""
        from bsdsbench.tables.forms import to_html

        return to_html([table for table in self.tables() if not table.aside])

    def to_dataframe(self, table: str | None = None) -> pd.DataFrame:
        """One table as a pandas DataFrame, the first or the one of that key. Raises DataError."""
        try:
            import pandas as pd
        except ImportError:
            words = "data frames need pandas: install the extra bsdsbench[pandas]"
            raise DataError(words) from None
        columns = {t.key: t.plain() for t in self.tables()}
        if not columns:
            raise DataError(f"{type(self).__name__}: no tables, expected at least one image")
        if table is not None and table not in columns:
            raise DataError(f"table {table!r}: expected one of {', '.join(columns)}")
        shown = columns[table or next(iter(columns))]
        return pd.DataFrame(
            {k: [math.nan if x is None else x for x in v] for k, v in shown.items()}
        )


class ShownCurve(ReadOnly, Shown):
    """A curve, of a dataclass: its arrays are the points, and its first table."""

    __slots__ = ()

    def equals(self, other: object) -> bool:
        """True if `other` has the same type and every field is equal, NaN equal to NaN."""
        if type(other) is not type(self):
            return False
        pairs = ((np.asarray(v), np.asarray(getattr(other, k))) for k, v in self._fields().items())
        return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)

    def points(self) -> dict[str, NDArray[Any]]:
        """Name -> array, each (K,)."""
        return {
            k: v for k, v in self._fields().items() if isinstance(v, np.ndarray) and v.ndim == 1
        }

    def numbers(self) -> dict[str, float]:
        """Name -> number: the areas and totals of the curve."""
        return {k: v for k, v in self._fields().items() if isinstance(v, int | float)}

    def _fields(self) -> dict[str, object]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def tables(self) -> list[Table]:
        points = self.points()
        columns = [Field(name, name) for name in points]
        rows = list(zip(*points.values(), strict=True))
        return [Table("points", "Points", columns, rows, aside=True), *super().tables()]
