"""Damages files that jaxanon reads, and checks the result of reading them.

Every file must be read, or raise an error that names it. Another exception, a hang, or
running out of memory is a finding.

    python tests/fuzz/fuzz_files.py --runs 2000                 # all targets
    python tests/fuzz/fuzz_files.py --target "own data" --atheris --runs 100000

With ``--atheris`` (``pip install 'jaxanon[fuzz]'``) coverage of jaxanon guides the
changes; the run ends at the first finding, as libFuzzer does.
"""

import argparse
import collections
import contextlib
import pathlib
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings

sys.path.append(str(pathlib.Path(__file__).resolve().parent))

import fuzz_bytes
import fuzz_targets

ALLOWED = (ValueError, TypeError, OSError)  # FileNotFoundError is a subclass.
LONGEST_S = 20
MEMORY = 12 << 30  # Bytes of address space, fewer than a false header requests.


class Hang(BaseException):
    """Reading took too long; not an Exception, so no reader handles it as damage."""


@contextlib.contextmanager
def limited(seconds=LONGEST_S):
    """Raises Hang after this time."""

    def late(*_):
        raise Hang

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def wrong(target, folder: pathlib.Path) -> str | None:
    """Returns the fault in reading a folder, or None."""
    names = {p.name for p in folder.rglob("*")} | {str(folder)}
    try:
        with warnings.catch_warnings(), limited():
            warnings.simplefilter("ignore")
            target.read(folder)
    except ALLOWED as error:
        if not any(name in str(error) for name in names):
            return f"names no file\n{traceback.format_exc()}"
    except Hang:
        return f"hangs\n{traceback.format_exc()}"
    except Exception:
        return traceback.format_exc()
    return None


class Fuzz:
    """A folder of valid files, one of which is damaged at a time.

    A class because it owns the folder.
    """

    def __init__(self, name: str, folder: pathlib.Path):
        self.target, self.folder = fuzz_targets.TARGETS[name], folder
        self.target.make(folder)
        self.good = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        self.victims = fuzz_targets.victims(self.target, folder)
        if not self.victims:
            raise LookupError(f"{name} has made no file to damage in {folder}")
        if (found := wrong(self.target, folder)) is not None:
            raise AssertionError(f"{name}: good files are refused: {found}")
        self.restore()

    def restore(self):
        """Restores the folder."""
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_file() and path not in self.good:
                path.unlink()
        for path, content in self.good.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def try_one(self, seed) -> tuple[pathlib.Path, bytes, str | None]:
        """Damages one file; returns the file, its content, and the fault."""
        draw = random.Random(seed)
        path, kind = draw.choice(self.victims)
        content = fuzz_bytes.mutated(draw, self.good[path], kind)
        return path, content, self.judge(path, content)

    def judge(self, path, content) -> str | None:
        """Returns the fault in reading this content."""
        path.write_bytes(content)
        try:
            return wrong(self.target, self.folder)
        finally:
            self.restore()


def fuzz(name: str, runs: int, seed: int = 0, tell=print) -> collections.Counter:
    """Tries seeded damage; counts findings by the line that raised."""
    found = collections.Counter()
    with tempfile.TemporaryDirectory() as place:
        at = Fuzz(name, pathlib.Path(place))
        for number in range(runs):
            path, _, finding = at.try_one(f"{name} {seed + number}")
            if finding is None:
                continue
            where = [line for line in finding.splitlines() if line.startswith("  File")]
            last = finding.strip().splitlines()[-1][:200]
            ours = [line for line in where if "tests/fuzz" not in line]
            about = (ours or where)[-1].strip(), finding.split("\n")[0][:40], last[:40]
            if not found[about]:
                tell(f"{name}, {path.name}, damage {seed + number}: {last}")
                tell("\n".join(["", *(line.strip() for line in where[-6:]), ""]))
            found[about] += 1
    return found


def with_atheris(name: str, runs: int) -> None:
    """Fuzzes under the guidance of coverage; does not return."""
    import atheris

    with atheris.instrument_imports(include=["jaxanon"]):
        at = Fuzz(name, pathlib.Path(tempfile.mkdtemp()))  # Imports its reader.
    corpus = pathlib.Path(tempfile.mkdtemp())
    for number, (path, _) in enumerate(at.victims):
        (corpus / str(number)).write_bytes(bytes([number]) + at.good[path])

    def changed(data, size, seed):
        number = data[0] % len(at.victims) if data else 0
        kind = at.victims[number][1]
        draw = random.Random(seed)
        if draw.random() < 0.3:
            return bytes([number]) + atheris.Mutate(data[1:], size - 1)
        return (bytes([number]) + fuzz_bytes.mutated(draw, data[1:], kind))[:size]

    def one(data):
        path, _ = at.victims[data[0] % len(at.victims) if data else 0]
        if (finding := at.judge(path, data[1:])) is not None:
            raise AssertionError(finding)

    words = [sys.argv[0], f"-runs={runs}", "-max_len=100000", f"-timeout={LONGEST_S}"]
    words += ["-rss_limit_mb=8000", f"-artifact_prefix={corpus}/found-", str(corpus)]
    atheris.Setup(words, one, custom_mutator=changed)
    atheris.Fuzz()


def main():
    """Fuzzes some targets; exits with status 1 after a finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="damages of each target")
    parser.add_argument("--target", choices=[*fuzz_targets.TARGETS], action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--atheris", action="store_true", help="of one --target")
    options = parser.parse_args()
    if options.atheris:
        if len(options.target or ()) != 1:
            parser.error("--atheris takes one --target")
        with_atheris(options.target[0], options.runs)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    total = 0
    for name in options.target or fuzz_targets.TARGETS:
        start = time.monotonic()
        found = fuzz(name, options.runs, options.seed)
        total += len(found)
        seconds = time.monotonic() - start
        print(
            f"{name}: {options.runs} damages in {seconds:.1f} s, {len(found)} findings "
            f"({sum(found.values())} damages)",
            flush=True,
        )
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
