"""Version, date and citation of a release agree wherever they stand."""

import re
import tomllib
from pathlib import Path

import bsdsbench as bb

ROOT = Path(__file__).parent.parent
HEADING = re.compile(r"^## \[([0-9.]+)\] - ([0-9]{4}-[0-9]{2}-[0-9]{2})$", re.M)


def read(name):
    return (ROOT / name).read_text("utf-8")


def test_version_and_date_agree():
    version, date = HEADING.search(read("CHANGELOG.md")).groups()
    assert tomllib.loads(read("pyproject.toml"))["project"]["version"] == version
    assert bb.__version__ == version
    citation = dict(re.findall(r"(?m)^([a-z-]+): (.+)$", read("CITATION.cff")))
    assert (citation["version"], citation["date-released"]) == (version, date)
    entry = re.search(r"@misc\{.*?\n\}", read("CITATION.bib"), re.S)[0]
    fields = dict(re.findall(r"(\w+)\s*=\s*\{+([^{}]+)\}+", entry))
    assert fields["year"] == date[:4]
    assert version in entry
    assert entry in read("README.md")


def test_an_address_stands_everywhere_or_nowhere():
    """None is made up: as soon as the project has one, whoever cites it must find it."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    address = project.get("urls", {}).get("Source")
    entry = read("CITATION.bib").partition("\n}")[0]
    shown = {
        "CITATION.cff": re.findall(r"(?m)^repository-code: (\S+)$", read("CITATION.cff")),
        "CITATION.bib": re.findall(r"\burl\s*=\s*\{([^}]+)\}", entry),
    }
    assert shown == dict.fromkeys(shown, [address] if address else [])
    page = " ".join(read("docs/reference/cite.md").split())
    assert ("no public address of its own yet" in page) == (address is None)


def test_the_changelog_is_what_a_release_offers():
    text = read("CHANGELOG.md")
    assert len(text.splitlines()) <= 80
    assert "Unreleased" not in text
