"""bsdsbench certify: this installation against the official tables, on the user's own copy."""

from __future__ import annotations

import click

from bsdsbench.cli.options import format_option


@click.command("certify", short_help="Check this installation against the official tables.")
@click.argument("bench_data", type=click.Path())
@format_option("table", "json")
def command(bench_data: str, form: str) -> int:
    """Run the official self-test in BENCH_DATA and compare every table with the MATLAB program's.

    BENCH_DATA is the folder bench/data of the BSDS500 archive (five images). Boundary tables may
    differ by 0.001, one image by 0.0015, as the official matching is random; region tables by
    1e-5 of the value. Exit status 0 if all agree, 1 otherwise.
    """
    import bsdsbench as bb
    from bsdsbench.cli.show import print_json, print_tables
    from bsdsbench.integrations.certificate import certificate
    from bsdsbench.integrations.detectors import machine
    from bsdsbench.tables.table import Column, Table

    rows = certificate(bench_data)
    passed = all(row.passed for row in rows)
    if form == "json":
        fields = ("test", "table", "numbers", "largest", "allowed", "passed")
        listed = [{name: getattr(row, name) for name in fields} for row in rows]
        print_json({"bsdsbench": bb.__version__, "passed": passed, "tables": listed})
        return 0 if passed else 1
    columns = [
        Column("test", "Test"),
        Column("table", "Table"),
        Column("numbers", "Numbers", "", "d"),
        Column("largest", "Largest difference", "", ".1e"),
        Column("allowed", "Allowed", "", "g"),
        Column("passed", "Passed"),
    ]
    cells = [
        [r.test, r.table, r.numbers, r.largest, r.allowed, "ok" if r.passed else "FAIL"]
        for r in rows
    ]
    print_tables([Table("certificate", "Official self-test", columns, cells, n_labels=2)])
    print(f"bsdsbench {bb.__version__}, {machine()}: {'all agree' if passed else 'FAILED'}")
    return 0 if passed else 1
