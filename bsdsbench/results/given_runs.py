"""Load runs given as evaluations, folders, files or names of reference runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from bsdsbench.arguments import check_list, kind_of_value
from bsdsbench.errors import DataError
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.references import with_common_rules
from bsdsbench.results.sharing import is_address
from bsdsbench.text import quantity


def as_runs(
    runs: Iterable[Evaluation | str | os.PathLike[str]],
    names: Iterable[str] | None = None,
    groups: object = None,
    group_by: str | None = None,
) -> list[Evaluation]:
    """Load runs, give them distinct names, and prepare them for a comparison.

    - If loaded runs have the same name, the part in which their paths differ is appended to it.
    - If `groups` or `group_by` is given, the images of all runs are assigned to groups.
    - Reference runs get the AP and ODS rules of the other runs, see `with_common_rules`.

    Parameters
    ----------
    runs : iterable of Evaluation, str or path
        The runs, or folders, files, URLs or `ref:NAME` as in `Evaluation.load`.
    names : iterable of str, optional
        New names, one per run.
    groups, group_by : optional
        The groups of the images: a table (CSV file, mapping or data frame), and a regular
        expression with named groups that is searched for in the image ids.

    Raises
    ------
    DataError
        If a run cannot be loaded, or if the number of names is wrong.
    """
    given = check_list(runs, "runs", "a list of runs or of their folders")
    new_names: list[str | None] = [None] * len(given)
    if names:
        new_names = check_list(names, "names", "a list of names")
        for name in new_names:
            if not isinstance(name, str) or not name:
                raise DataError(f"names: {kind_of_value(name)}, expected text")
    if len(new_names) != len(given):
        names_and_runs = f"{quantity(len(new_names), 'name')} for {quantity(len(given), 'run')}"
        raise DataError(f"{names_and_runs}, expected one name per run")
    loaded: list[Evaluation] = []
    places: dict[int, str] = {}  # index of a loaded run -> its URL or absolute path
    for k, (run, name) in enumerate(zip(given, new_names, strict=True)):
        if isinstance(run, str | Path):
            places[k] = str(run) if is_address(run) else os.path.abspath(run)
            run = Evaluation.load(run)
        elif not isinstance(run, Evaluation):
            # The result of `run`, for example, holds the Evaluation as an attribute
            fix = "its attribute evaluation" if hasattr(run, "evaluation") else ()
            raise DataError(f"runs: {kind_of_value(run)}, expected runs or their folders", fix=fix)
        loaded.append(replace(run, name=name) if name else run)
    # Append the differing part of the paths to equal names of loaded runs: runs "hed" in out/a and
    # out/b become "hed (a)" and "hed (b)". Beside a run of a URL, it is the whole URL or path
    loaded_names = [run.name for run in loaded]
    for k, place in places.items():
        same_name = [other for i, other in places.items() if loaded_names[i] == loaded_names[k]]
        if len(same_name) > 1:
            suffix = place
            if not any(map(is_address, same_name)):  # relative to the folder that holds them all
                suffix = Path(os.path.relpath(place, os.path.commonpath(same_name))).as_posix()
            loaded[k] = replace(loaded[k], name=f"{loaded_names[k]} ({suffix})")
    # The table of groups may have a row for any image of any run
    image_ids = {image_id for run in loaded for image_id in (*run.image_ids, *run.left_out)}
    loaded = [run.with_groups(groups, group_by, image_ids) for run in loaded]
    return with_common_rules(loaded)
