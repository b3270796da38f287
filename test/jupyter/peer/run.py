#!/usr/bin/env python3
"""Runs JupyterHub's own tests against the hub of this checkout, and prints how many of each file pass.

    npm run test:jupyterhub                         the tests that Debian's package jupyterhub has
    npm run test:jupyterhub -- test_api.py          one file of them
    npm run test:jupyterhub -- --newer ~/tests      the test files of a JupyterHub 5 in a folder of yours
    npm run test:jupyterhub -- --update             remember what passes now

Exits with 1 when a test that passed before, by `passes.txt`, does not pass.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEBIAN_TESTS = Path("/usr/lib/python3/dist-packages/jupyterhub/tests")
# Those that ask a running hub; the others are tests of Python code.
FILES = [
    "test_api.py",
    "test_auth_expiry.py",
    "test_metrics.py",
    "test_named_servers.py",
    "test_pages.py",
    "test_proxy.py",
    "test_roles.py",
    "test_scopes.py",
    "test_services.py",
    "test_services_auth.py",
    "test_shares.py",
]
FILE_SECONDS = 1800


def run_file(file, newer, only, scratch):
    """Runs one file, and returns what became of each of its tests, and why, by its name."""
    results = Path(scratch) / f"{file.name}.jsonl"
    command = [sys.executable, "-m", "pytest", "-p", "layer.plugin", "--noconftest"]
    command += ["-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(scratch)]
    command += ["-o", "asyncio_mode=auto", "--timeout=180", "--tb=short", "-q"]
    command += [f"--results={results}", *(["--newer"] if newer else []), str(file)]
    if only:
        command += ["-k", only]
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
    with open(Path(scratch) / f"{file.name}.txt", "wb") as output:
        try:
            subprocess.run(
                command, cwd=scratch, env=environment, stdout=output, stderr=output, timeout=FILE_SECONDS
            )
        except subprocess.TimeoutExpired:
            print(f"{file.name}: ended after {FILE_SECONDS} seconds", file=sys.stderr)
    outcomes = {}
    if results.exists():
        for line in results.read_text().splitlines():
            test = json.loads(line)
            outcomes[f"{file.name}::{test['name']}"] = (test["outcome"], test["reason"])
    if not outcomes and not only:
        print((Path(scratch) / f"{file.name}.txt").read_text()[-2000:], file=sys.stderr)
    return outcomes


def as_package(folder, scratch):
    """Test files of a folder as modules of the package that they name in their imports."""
    package = Path(scratch) / "newer" / "jupyterhub" / "tests"
    package.mkdir(parents=True)
    for directory in (package, package.parent):
        (directory / "__init__.py").touch()
    for file in Path(folder).resolve().glob("*.py"):
        (package / file.name).symlink_to(file)
    for helper in ("mockservice.py", "mocksu.py"):
        if not (package / helper).exists():
            (package / helper).symlink_to(DEBIAN_TESTS / helper)
    return package


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="*", help="names of test files")
    parser.add_argument("--newer", metavar="FOLDER", help="folder with test files of JupyterHub 5")
    parser.add_argument("-k", dest="only", metavar="EXPRESSION", help="only tests with such names")
    parser.add_argument("--jobs", type=int, default=2, help="files at once")
    parser.add_argument("--update", action="store_true", help="remember what passes now")
    parser.add_argument("--reasons", action="store_true", help="say why each test fails or is excluded")
    options = parser.parse_args()

    if not DEBIAN_TESTS.is_dir():
        sys.exit("Install what it runs: apt-get install jupyterhub python3-pytest python3-pytest-asyncio "
                 "python3-pytest-timeout python3-requests-mock python3-bs4")
    with tempfile.TemporaryDirectory(prefix="hub-peer-run-") as scratch:
        folder = as_package(options.newer, scratch) if options.newer else DEBIAN_TESTS
        files = [folder / name for name in options.files or FILES if (folder / name).exists()]
        if not files:
            sys.exit(f"There is no such test file in {folder}.")
        with ThreadPoolExecutor(options.jobs) as pool:
            runs = [
                pool.submit(run_file, file, bool(options.newer), options.only, scratch) for file in files
            ]
            outcomes = {}
            for file, run in zip(files, runs):
                of_file = run.result()
                outcomes.update(of_file)
                counts = Counter(outcome for outcome, _ in of_file.values())
                print(
                    f"{file.name:24} {counts['passed']:4} passed {counts['failed']:4} failed "
                    f"{counts['excluded']:4} excluded",
                    flush=True,
                )
    counts = Counter(outcome for outcome, _ in outcomes.values())
    print(f"{'all':24} {counts['passed']:4} passed {counts['failed']:4} failed {counts['excluded']:4} excluded")
    if options.reasons:
        for name, (outcome, reason) in sorted(outcomes.items()):
            if outcome != "passed":
                print(f"{outcome}: {name}: {reason}")

    passes = HERE / ("passes-5.txt" if options.newer else "passes.txt")
    before = set(passes.read_text().splitlines()) if passes.exists() else set()
    passing = {name for name, (outcome, _) in outcomes.items() if outcome == "passed"}
    if options.update:
        ran = {file.name for file in files}
        others = {name for name in before if name.partition("::")[0] not in ran or options.only}
        passes.write_text("".join(f"{name}\n" for name in sorted(others | passing)))
        return
    ran_now = {name for name in before if name.partition("::")[0] in {file.name for file in files}}
    broken = sorted(name for name in ran_now - passing if not options.only or name in outcomes)
    for name in broken:
        outcome, reason = outcomes.get(name, ("missing", ""))
        print(f"no longer passes: {name}: {outcome}: {reason}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
