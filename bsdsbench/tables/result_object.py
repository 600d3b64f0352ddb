"""Base classes of results, which derive `repr`, summary and data frames from `tables()`."""

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


class TabularResult:
    """Base class of results. Subclasses must override `tables` or `numbers`."""

    __slots__ = ()

    def numbers(self) -> dict[str, float]:
        """Return the numbers of the result by name, for `repr` and for the default of `tables`."""
        raise NotImplementedError(f"{type(self).__name__}: its numbers are in tables()")

    def __repr__(self) -> str:
        """Return one line, such as "Name(ods=0.78, ap=0.8)", with at most ten numbers.

        Numbers with dotted names are skipped, except F: "ods.f" is printed as "ods".
        """
        texts = []
        for key, value in self.numbers().items():
            if "." not in key or key.endswith(".f"):
                number = "-" if math.isnan(value) else f"{value:.4g}"
                texts.append(f"{key.removesuffix('.f')}={number}")
        return f"{type(self).__name__}({', '.join(texts[:10])})"

    def tables(self) -> list[Table]:
        """Return the tables of the result. By default, this is one table of `numbers`."""
        columns = [Field("number", "Number"), Field("value", "Value", "", ".6g")]
        return [Table("numbers", type(self).__name__, columns, list(self.numbers().items()))]

    def summary(self) -> str:
        """Return the tables as text, at most 120 characters wide, without tables marked `aside`."""
        return to_text([table for table in self.tables() if not table.aside])

    def _repr_html_(self) -> str:
        """Return the tables as HTML for notebooks, without tables marked `aside`."""
        from bsdsbench.tables.forms import to_html

        return to_html([table for table in self.tables() if not table.aside])

    def to_dataframe(self, table: str | None = None) -> pd.DataFrame:
        """Convert a table to a pandas DataFrame, with NaN for undefined values.

        Parameters
        ----------
        table : str, optional
            The key of the table. By default the first table is converted.

        Raises
        ------
        DataError
            If pandas is not installed, if there are no tables, or if no table has this key.
        """
        tables = {t.key: t for t in self.tables()}
        if not tables:
            raise DataError(f"{type(self).__name__}: no tables, expected at least one image")
        if table is not None and table not in tables:
            raise DataError(f"table {table!r}: expected one of {', '.join(tables)}")
        return tables[table or next(iter(tables))].to_dataframe()


class TabularCurve(ReadOnly, TabularResult):
    """Base class of curves: dataclasses whose fields are arrays of points, and numbers."""

    __slots__ = ()

    def equals(self, other: object) -> bool:
        """Return True if `other` has the same type and equal fields. NaN is equal to NaN."""
        if type(other) is not type(self):
            return False
        for name, value in self._fields().items():
            array, other_array = np.asarray(value), np.asarray(getattr(other, name))
            if not np.array_equal(array, other_array, equal_nan=array.dtype.kind == "f"):
                return False
        return True

    def points(self) -> dict[str, NDArray[Any]]:
        """Return the 1-D arrays of the curve by field name, each (K,) for K points."""
        values = self._fields().items()
        return {k: v for k, v in values if isinstance(v, np.ndarray) and v.ndim == 1}

    def numbers(self) -> dict[str, float]:
        """Return the fields that are numbers, such as areas and totals, by name."""
        return {k: v for k, v in self._fields().items() if isinstance(v, int | float)}

    def _fields(self) -> dict[str, object]:
        """Return the values of the dataclass by field name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def tables(self) -> list[Table]:
        """Return a table with one row per point, marked `aside`, and a table of the numbers."""
        points = self.points()
        columns = [Field(name, name) for name in points]
        rows = list(zip(*points.values(), strict=True))
        return [Table("points", "Points", columns, rows, aside=True), *super().tables()]
