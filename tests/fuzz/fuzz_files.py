"""Damages files that jaxanon reads, and looks at what reading them does.

Whatever the file: it is read, or an error says which file is wrong. Never another
exception, a hang, or more memory than there is.

    python tests/fuzz/fuzz_files.py --runs 2000                 # all targets
    python tests/fuzz/fuzz_files.py --target "own data" --atheris --runs 100000

With ``--atheris`` (``pip install 'jaxanon[fuzz]'``) what is changed is led by which
lines of jaxanon were reached; it ends at the first finding, as libFuzzer does.
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

ALLOWED = (ValueError, TypeError, OSError)  # FileNotFoundError is one of the last.
LONGEST_S = 20
MEMORY = 12 << 30  # Bytes of address space; less than what a false header asks for.


class Hang(BaseException):
    """Reading took too long; not an Exception, so that nobody takes it for damage."""


@contextlib.contextmanager
def limited(seconds=LONGEST_S):
    """Ends with Hang after so long."""

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
    """What reading a folder does that it must not; None where all is well."""
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
    """A folder of good files, of which one at a time is damaged.

    A class because the folder is there.
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
        """The folder as it was made."""
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_file() and path not in self.good:
                path.unlink()
        for path, content in self.good.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def try_one(self, seed) -> tuple[pathlib.Path, bytes, str | None]:
        """Damages one file; which, to what, and what is wrong with what happened."""
        draw = random.Random(seed)
        path, kind = draw.choice(self.victims)
        content = fuzz_bytes.mutated(draw, self.good[path], kind)
        return path, content, self.judge(path, content)

    def judge(self, path, content) -> str | None:
        """What is wrong with what reading such a content does."""
        path.write_bytes(content)
        try:
            return wrong(self.target, self.folder)
        finally:
            self.restore()


def fuzz(name: str, runs: int, seed: int = 0, tell=print) -> collections.Counter:
    """Tries seeded damages; counts findings by the line that raised."""
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
    """The same, led by coverage; does not return."""
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
    """Fuzzes some targets; exit status 1 if anything was found."""
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
