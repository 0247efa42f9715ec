"""Builds the site of the docs: `make docs` writes it to `build/site`, `make docs-serve` shows it.

Zensical reads `mkdocs.yml`. Its source is a copy of `docs/` with the pages of the root folder beside them, so that links
lead from one to the other, and without what only tests read. The site has a Markdown twin of every page, and `llms.txt`.
"""

import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE, SITE = ROOT / "build" / "docs", ROOT / "build" / "site"
_OF_ROOT = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
_FOR_TESTS = re.compile(r"<!-- (?:setup\n.*?|not run: [^>]*|spark|filled lake) ?-->\n*", re.DOTALL)
_LINK = re.compile(r"(!?\[[^\]]*\])\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
_SHOWN = (".md", ".svg", ".png")


def build(source: Path = SOURCE, site: Path = SITE) -> Path:
    """Write the site; a warning is an error."""
    prepare(source)
    config = _config(source, site)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", str(config)],
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    if done.returncode or re.search(r"\bwarning\b", said, re.IGNORECASE):
        raise SystemExit(f"the site does not build without warnings:\n{said}")
    for page in source.rglob("*.md"):
        twin = site / page.relative_to(source)
        twin.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, twin)
    (site / "llms.txt").write_text(_overview(source), encoding="utf-8")
    return site


def serve() -> None:
    """Show the site on this machine, until it is stopped; pages are as they were at the start."""
    prepare(SOURCE)
    subprocess.run([sys.executable, "-m", "zensical", "serve", "-f", str(_config(SOURCE, SITE))], check=False)


def prepare(source: Path) -> None:
    """Write the source of the site."""
    shutil.rmtree(source, ignore_errors=True)
    pages = {page: page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*") if page.suffix in _SHOWN}
    pages |= {ROOT / name: Path(target) for name, target in _OF_ROOT.items()}
    for page, target in pages.items():
        place = source / target
        place.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix == ".md":
            text = _FOR_TESTS.sub("", page.read_text(encoding="utf-8"))
            place.write_text(_LINK.sub(partial(_link, page), text), encoding="utf-8")
        else:
            shutil.copyfile(page, place)


def _link(page: Path, match: re.Match[str]) -> str:
    """A link as it is on the site; to what the site does not have, none."""
    target, anchor = (page.parent / match[2]).resolve(), match[3] or ""
    here = (ROOT / "docs") if page.parent == ROOT else page.parent
    if target.parent == ROOT and target.name in _OF_ROOT:
        target = ROOT / "docs" / _OF_ROOT[target.name]
    elif not target.is_relative_to(ROOT / "docs") or target.suffix not in _SHOWN:
        return match[1].strip("![]")
    relative = Path(*[".."] * len(here.relative_to(ROOT / "docs").parts), target.relative_to(ROOT / "docs"))
    return f"{match[1]}({relative.as_posix()}{anchor})"


def _config(source: Path, site: Path) -> Path:
    """The configuration with these folders, beside them: Zensical takes relative ones alone."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    place = source.parent / "mkdocs.yml"
    text = re.sub(r"^docs_dir: .*$", f"docs_dir: {source.name}", text, flags=re.MULTILINE)
    decisions = "".join(f"\n          - decisions/{each.name}" for each in sorted((source / "decisions").glob("*.md")))
    text = re.sub(r"(- Decisions:) decisions\b.*$", rf"\1{decisions}", text, flags=re.MULTILINE)
    place.write_text(re.sub(r"^site_dir: .*$", f"site_dir: {site.name}", text, flags=re.MULTILINE), encoding="utf-8")
    return place


def _overview(source: Path) -> str:
    """All pages with their first sentences, for programs that read."""
    lines = ["# icefloe", "", "> Apache Iceberg tables, v1 to v4, in Python and on Spark.", ""]
    for page in sorted(source.glob("*.md")):
        title, _, rest = page.read_text(encoding="utf-8").removeprefix("# ").partition("\n")
        paragraph = next((each for each in rest.split("\n\n") if re.match(r"\s*[`A-Z]", each)), "").strip()
        first = re.match(r".*?\.(?=\s|$)", " ".join(paragraph.split()))
        lines.append(f"- [{title}]({page.name}){': ' + first[0] if first else ''}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else build()
