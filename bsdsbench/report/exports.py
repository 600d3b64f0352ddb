"""Export of results to files that others can verify, and their verification.

Each run becomes a folder OUT/NAME with result.json, counts.npz, the file of the format, and a
manifest.json with the hashes of all. Every format has task, signature, version and the hash of the
counts:

| format | file | who reads it |
|---|---|---|
| hf | .eval_results/TASK.yaml | the model hub |
| eee | every_eval_ever.json | the Every Eval Ever schema, 0.3.0 |
| csv | results.csv | a table: a row per score |
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bsdsbench import __version__
from bsdsbench.comparison.bootstrap import N_BOOT, SEED
from bsdsbench.comparison.compare import compare
from bsdsbench.files.bounded import FaultError, parse_json, reading
from bsdsbench.files.errors import DataError
from bsdsbench.files.writing import MANIFEST, WAIT, Manifest, locked, verified, write_results
from bsdsbench.loaders.official_txt import safe_name
from bsdsbench.metrics import registry
from bsdsbench.protocol.tasks import Task
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.record_store import content_hash, pack_records
from bsdsbench.runs.run_folder import load_runs, named_apart
from bsdsbench.tables.as_csv import to_csv
from bsdsbench.tables.table import Column, Table

SCHEMA_VERSION = "0.3.0"
EEE, CSV, HF = "every_eval_ever.json", "results.csv", ".eval_results"
LEVEL = 0.95
# Paths on the machine of the run are not exported.
PRIVATE = ("pred", "gt", "split", "photos", "official")
_UNBOUNDED = {"min_score": "-Infinity", "max_score": "Infinity"}
_SHARE = {"min_score": 0, "max_score": 1}


def export(
    runs: Iterable[Evaluation | str | Path],
    to: str,
    out: str | Path,
    names: Iterable[str] | None = None,
    *,
    dataset: str = "",
    n_boot: int = N_BOOT,
) -> list[Path]:
    """Write each run into OUT/NAME, with the file of a format.

    Parameters
    ----------
    runs : sequence of Evaluation or path
        Runs of a task, or their folders.
    to : str
        "hf", "eee" or "csv".
    out : path
        The folder that gets a folder for each run.
    names : sequence of str, optional
        Names of the runs; default: as stored.
    dataset : str
        For hf, the id of the benchmark's data set on the hub, ORG/NAME.
    n_boot : int
        For eee, samples of the intervals.

    Returns
    -------
    list of path
        The folders.

    Raises
    ------
    DataError
        For a run that belongs to no task, another format, or hf without a data set.
    """
    if to not in FORMATS:
        raise DataError(f"export to {to!r}: expected one of {', '.join(FORMATS)}")
    if to == "hf" and not dataset:
        raise DataError(
            "export to hf: expected the data set on the hub, such as --dataset ORG/NAME"
        )
    given: list[Any] = list(runs)
    loaded = [run if isinstance(run, Evaluation) else load_runs([run])[0] for run in given]
    if all(isinstance(run, str | Path) for run in given):
        loaded = named_apart(loaded, given)
    titles = list(names) if names else [run.name for run in loaded]
    if len(set(titles)) != len(loaded):
        raise DataError(f"{', '.join(titles)}: expected a different name for each run (--names)")
    bare = [run.name for run in loaded if not getattr(run, "records", ()) or not run.tasks]
    if bare:
        raise DataError.collect(
            [DataError(f"{n}: belongs to no task, expected a run of one") for n in bare]
        )
    folders = []
    for run, title in zip(loaded, titles, strict=True):
        folder = Path(out) / safe_name(title)
        kept = {k: v for k, v in run.provenance.items() if k not in PRIVATE}
        run = replace(run, name=title, provenance=kept)
        content = run.to_mapping() | {"counts": content_hash(run.records)}
        more = {"dataset": dataset, "n_boot": n_boot, "time": str(int(time.time()))}
        files: list[tuple[str, str | bytes]] = [
            ("result.json", _json(content)),
            ("counts.npz", pack_records(run.records)),
            *FORMATS[to](run, content, more),
        ]
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder, wait=WAIT):
            write_results(folder, files)
        folders.append(folder)
    return folders


def check_import(folder: str | Path, n_boot: int = N_BOOT) -> list[Evaluation]:
    """The runs of a results folder, each verified: its files are as its manifest says, the scores
    follow from the counts, the hash is that of the counts, and it is of the tasks that it says.

    folder : of one run, or of several. Raises DataError that lists every fault.
    """
    root = Path(folder)
    places = (
        [root]
        if (root / MANIFEST).is_file()
        else sorted(p.parent for p in root.glob(f"*/{MANIFEST}"))
    )
    if not places:
        raise DataError(f"{root}: no {MANIFEST}, expected a folder that `bsdsbench export` wrote")
    runs, faults = [], []
    for place in places:
        try:
            runs.append(_checked(place, n_boot))
        except DataError as error:
            faults.append(error)
    if faults:
        raise DataError.collect(faults)
    return runs


def _checked(folder: Path, n_boot: int) -> Evaluation:
    run = Evaluation.load(folder)
    named = Manifest.read(folder)
    others = [n for n in (named.files if named else {}) if n not in ("result.json", "counts.npz")]
    text, *more = verified(folder, "result.json", *others)
    with reading(folder / "result.json", "an exported result"):
        said = parse_json(text)
        again = json.loads(_json(run.to_mapping()))
        if said.get("scores") != again["scores"]:
            raise FaultError("scores do not follow from counts.npz, expected those of its counts")
        if said.get("counts") != content_hash(run.records):
            raise FaultError(
                f"counts: not the hash of counts.npz, expected {content_hash(run.records)}"
            )
        for key in ("tasks", "signature", "images"):
            mine = said.get(key), again[key]
            if key == "signature" and said.get("bsdsbench") != __version__:
                continue  # it names the version
            if mine[0] != mine[1]:
                raise FaultError(f"{key} do not follow from counts.npz, expected others")
        if not run.tasks:
            raise FaultError("belongs to no task, expected one that fits its truth and protocol")
    if said.get("bsdsbench") == __version__:
        _same_files(folder, run, said, dict(zip(others, more, strict=True)), n_boot)
    return run


def _same_files(
    folder: Path, run: Evaluation, content: dict[str, Any], files: dict[str, bytes], n_boot: int
) -> None:
    """Raise DataError unless the files of a format are what the run gives."""
    more = {"dataset": "", "n_boot": n_boot, "time": ""}
    for name, data in files.items():
        with reading(folder / name, "an exported file"):
            to = "hf" if name.startswith(f"{HF}/") else {EEE: "eee", CSV: "csv"}.get(name)
            if to is None:
                raise FaultError("not written by `bsdsbench export`, expected only its files")
            if to == "eee":
                found = parse_json(data)
                more["time"] = str(found.get("retrieved_timestamp"))
                more["n_boot"] = _samples(found, n_boot)
            elif to == "hf":
                first = data.decode("utf-8").partition("id: ")[2].partition("\n")[0]
                more["dataset"] = json.loads(first)
            made = dict(FORMATS[to](run, content, more)).get(name, "")
            if made.encode("utf-8") != data:
                raise FaultError("does not follow from counts.npz, expected what export writes")


def _samples(found: Any, usual: int) -> int:
    """How many bootstrap samples an Every Eval Ever file says it has."""
    try:
        told = found["evaluation_results"][0]["score_details"]["uncertainty"]
        return min(int(told["num_bootstrap_samples"]), N_BOOT)
    except (KeyError, IndexError, TypeError, ValueError):
        return usual


def _scores(run: Evaluation) -> Iterator[tuple[Task, Any, float]]:
    """Each task of a run with its score columns and their values; undefined ones are left out."""
    from bsdsbench.scores.score import at

    for task in run.tasks:
        columns = [c for c in registry.get(task.metric).columns if c.score and c.shown != "never"]
        score = run.score(task.metric).to_mapping()
        values = {c.key: at(score, c.key) for c in columns}
        yield from ((task, c, values[c.key]) for c in columns if values[c.key] is not None)


def _hf(run: Evaluation, content: Any, more: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """YAML whose values are JSON, which is YAML too: text of users cannot break out of it."""
    lines: dict[str, list[str]] = {}
    for task, column, value in _scores(run):
        of = task.name.replace("/", "-")
        notes = f"{task.name} v{task.version}; {content['signature']}; counts {content['counts']}"
        lines.setdefault(f"{HF}/{of}.yaml", []).append(
            "- dataset:\n"
            f"    id: {_text(more['dataset'])}\n"
            f"    task_id: {_text(f'{of}-{column.key}')}\n"
            f"  value: {value!r}\n"
            f"  evaluation_framework: {_text('bsdsbench')}\n"
            f"  notes: {_text(notes)}\n"
        )
    yield from ((name, "".join(entries)) for name, entries in lines.items())


def _eee(run: Evaluation, content: Any, more: dict[str, Any]) -> Iterator[tuple[str, str]]:
    told = compare([run], n_boot=more["n_boot"], seed=SEED, level=LEVEL)
    name, identity = content["name"], content["set"] or {}
    results = []
    for task, column, value in _scores(run):
        metric = registry.get(task.metric)
        shown = told.interval_of(run.name, f"{task.metric}.{column.key}")
        uncertainty: dict[str, Any] = {
            "num_samples": len(run.records),
            "num_bootstrap_samples": more["n_boot"],
        }
        if shown.low == shown.low and shown.high == shown.high:
            uncertainty["confidence_interval"] = {
                **{"lower": shown.low, "upper": shown.high, "confidence_level": LEVEL},
                "method": "percentile bootstrap over images, seed 0",
            }
        bounds = (
            _SHARE
            if task.metric in registry.with_curve([task.metric], run.protocol)
            else _UNBOUNDED
        )
        source = {"fingerprint": str(identity.get("fingerprint")), "images": str(len(run.records))}
        results.append(
            {
                "evaluation_name": task.name,
                "source_data": {
                    "dataset_name": task.set,
                    "source_type": "other",
                    "additional_details": source,
                },
                "metric_config": {
                    "evaluation_description": f"{metric.title}: {column.heading}",
                    "metric_id": f"bsdsbench.{task.metric}.{column.key}",
                    "metric_name": column.heading,
                    "lower_is_better": column.lower,
                    "score_type": "continuous",
                    **bounds,
                },
                "score_details": {"score": value, "uncertainty": uncertainty},
            }
        )
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    record = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{run.tasks[0].name}/{name}/{more['time']}",
        "retrieved_timestamp": more["time"],
        "source_metadata": {
            "source_name": "bsdsbench",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "bsdsbench",
            "version": content["bsdsbench"],
            "additional_details": {
                "task": ", ".join(f"{task.name} v{task.version}" for task in run.tasks),
                "signature": content["signature"],
                "counts_sha256": content["counts"],
            },
        },
        "model_info": {"name": name, "id": name, "additional_details": unknown},
        "evaluation_results": results,
    }
    yield EEE, _json(record)


def _csv(run: Evaluation, content: Any, more: dict[str, Any]) -> Iterator[tuple[str, str]]:
    columns = [
        *(Column(key, key) for key in ("task", "task_version", "name", "metric", "score")),
        *(Column(key, key, format=form) for key, form in (("value", ".4f"), ("n_images", "d"))),
        *(Column(key, key) for key in ("signature", "bsdsbench", "counts")),
    ]
    about = content["signature"], content["bsdsbench"], content["counts"]
    rows = [
        [task.name, str(task.version), content["name"], task.metric, column.key, value,
         len(run.records), *about]
        for task, column, value in _scores(run)
    ]  # fmt: skip
    yield CSV, to_csv(Table("results", "Results", columns, rows, n_labels=5))


FORMATS: dict[str, Callable[[Evaluation, Any, dict[str, Any]], Iterator[tuple[str, str]]]] = {
    "hf": _hf,
    "eee": _eee,
    "csv": _csv,
}


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=True)


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
