"""SHA256SUMS, the tar file, the chain: equal evidence gives equal bytes, and a stranger's file does no harm."""

import io
import subprocess
import tarfile

import pytest

from kerneltrial.evidence import chain
from kerneltrial.evidence.history import lasting_measurements
from kerneltrial.evidence.manifest import differences, manifest, parse, sha256
from kerneltrial.evidence.members import present
from kerneltrial.evidence.problem import EvidenceProblem
from kerneltrial.evidence.tarball import pack, unpack
from kerneltrial.records.envelope import Envelope, MadeFrom
from kerneltrial.store import journal
from kerneltrial.store.problem import StoreProblem


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    (folder / "deep").mkdir(parents=True)
    for name, text in {"b.txt": "b", "a b.txt": "a", "deep/c.sh": "#!/bin/sh\n"}.items():
        (folder / name).write_text(text)
    return {name: folder / name for name in ("b.txt", "a b.txt", "deep/c.sh")}


def test_sums_are_what_sha256sum_checks(files, tmp_path):
    text = manifest({name: sha256(path) for name, path in files.items()})
    (tmp_path / "files/SHA256SUMS").write_bytes(text)
    done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=tmp_path / "files", capture_output=True)
    assert done.returncode == 0
    assert list(parse(text)) == sorted(files)
    assert not list(differences(parse(text), files))


def test_every_difference_is_named(files):
    stated = parse(manifest({name: sha256(path) for name, path in files.items()}))
    files["b.txt"].write_text("c")
    files["new.txt"] = files.pop("a b.txt")
    assert sorted(differences(stated, files)) == [
        "a b.txt: is missing",
        "b.txt: its bytes are not those that SHA256SUMS names",
        "new.txt: is extra, SHA256SUMS does not name it",
    ]


@pytest.mark.parametrize("name", ["a\nb", "a\\b", "a\rb"])
def test_a_name_that_sums_cannot_hold_is_refused(name):
    with pytest.raises(EvidenceProblem, match="rename"):
        manifest({name: "0" * 64})


@pytest.mark.parametrize("line", ["0  a", f"{'0' * 64} a", f"{'0' * 64}  a\n{'1' * 64}  a", f"\\{'0' * 64}  a"])
def test_sums_that_are_none_are_refused(line):
    with pytest.raises(EvidenceProblem, match="SHA256SUMS: line"):
        parse(line.encode())


def test_a_bundle_has_the_same_bytes_whenever_it_is_made(files, tmp_path):
    pack(files, "t", tmp_path / "one.tar")
    for path in files.values():
        path.chmod(0o600)
        path.touch()
    pack(dict(reversed(files.items())), "t", tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    (tmp_path / "out").mkdir()
    folder = unpack(tmp_path / "one.tar", tmp_path / "out")
    assert {name: path.read_bytes() for name, path in present(folder).items()} == {
        name: path.read_bytes() for name, path in files.items()
    }


def hostile(tmp_path, *entries):
    path = tmp_path / "hostile.tar"
    with tarfile.open(path, "w") as tar:
        for name, kind in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            data = b"x" if kind == tarfile.REGTYPE else b""
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


@pytest.mark.parametrize(
    "entries",
    [
        [("/t/a", tarfile.REGTYPE)],
        [("t/../../a", tarfile.REGTYPE)],
        [("a", tarfile.REGTYPE)],
        [("t/a", tarfile.SYMTYPE)],
        [("t/a", tarfile.LNKTYPE)],
        [("t/a", tarfile.FIFOTYPE)],
        [("t/a", tarfile.REGTYPE), ("t/a", tarfile.REGTYPE)],
        [("t/a", tarfile.REGTYPE), ("u/a", tarfile.REGTYPE)],
        [],
    ],
)
def test_a_hostile_tar_is_refused_and_writes_nothing_outside(tmp_path, entries):
    into = tmp_path / "into"
    into.mkdir()
    before = sorted(tmp_path.iterdir())
    path = hostile(tmp_path, *entries)
    with pytest.raises(EvidenceProblem):
        unpack(path, into)
    assert sorted(p for p in tmp_path.iterdir() if p != path) == before


def test_what_is_no_tar_is_one_line(tmp_path):
    (tmp_path / "no.tar").write_bytes(b"no tar at all" * 100)
    with pytest.raises(EvidenceProblem, match="cannot be read as a tar file"):
        unpack(tmp_path / "no.tar", tmp_path)


def raw(name, kind=b"0", size=None):
    """A header block by hand, with a size as `tarfile` writes none: base 256, below zero."""
    block = bytearray(tarfile.TarInfo(name).tobuf(tarfile.GNU_FORMAT))
    block[156:157] = kind
    if size is not None:
        block[124:136] = b"\xff" + (256**11 + size).to_bytes(11, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize("kind", [b"0", b"x", b"g", b"L", b"K", b"S"])
@pytest.mark.parametrize("size", [-1024, -512])
def test_a_size_below_zero_is_one_line(tmp_path, kind, size):
    (tmp_path / "raw.tar").write_bytes(raw("t/a", kind, size) + bytes(10240))
    with pytest.raises(EvidenceProblem) as caught:
        unpack(tmp_path / "raw.tar", tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "headers",
    [
        {"path": "t/a\0b"},
        {"size": "-512"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "3", "GNU.sparse.name": "t/s"},
        {"GNU.sparse.map": "0,1,9,1", "GNU.sparse.size": "10"},
    ],
)
def test_headers_that_nobody_writes_in_good_faith_are_one_line(tmp_path, headers):
    with tarfile.open(tmp_path / "pax.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        entry = tarfile.TarInfo("t/a")
        entry.size, entry.pax_headers = 2, headers
        tar.addfile(entry, io.BytesIO(b"ab"))
    with pytest.raises(EvidenceProblem) as caught:
        unpack(tmp_path / "pax.tar", tmp_path)
    assert "\n" not in str(caught.value)


def test_one_path_in_two_spellings_is_there_twice(tmp_path):
    with pytest.raises(EvidenceProblem, match="twice"):
        unpack(hostile(tmp_path, ("t/a", tarfile.REGTYPE), ("t//a", tarfile.REGTYPE)), tmp_path)


def written(results, *names):
    for number, name in enumerate(names):
        event = {"stage": name, "usage": {"finished_at": f"2026-12-01T00:00:{number:02}"}}
        journal.append(results / "journal" / f"{name}.jsonl", event)


def test_the_chain_takes_each_line_once_and_in_order(tmp_path):
    written(tmp_path, "lock", "terms", "propose-0001", "lock")
    first = chain.extend(tmp_path)
    assert [(link.fragment, link.number) for link in chain.read(tmp_path)] == [
        ("lock", 1),
        ("terms", 1),
        ("propose-0001", 1),
        ("lock", 2),
    ]
    assert chain.extend(tmp_path) == first
    written(tmp_path, "decide")
    assert list(chain.differences(chain.read(tmp_path), chain.fragments(tmp_path), whole=True)) == [
        "journal/decide.jsonl: 1 lines are not in the chain"
    ]
    assert chain.extend(tmp_path) != first
    assert not list(chain.differences(chain.read(tmp_path), chain.fragments(tmp_path), whole=True))


def test_a_link_that_was_removed_or_moved_breaks_the_chain(tmp_path):
    written(tmp_path, "lock", "terms", "decide")
    chain.extend(tmp_path)
    path = tmp_path / "chain.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for broken in (lines[1:], [lines[1], lines[0], lines[2]], [lines[0], lines[2]]):
        path.write_bytes(b"".join(broken))
        with pytest.raises(StoreProblem, match="does not follow"):
            chain.read(tmp_path)


def test_a_journal_line_that_was_written_anew_is_named(tmp_path):
    written(tmp_path, "lock", "terms")
    chain.extend(tmp_path)
    (tmp_path / "journal/terms.jsonl").unlink()
    written(tmp_path, "terms")
    assert list(chain.differences(chain.read(tmp_path), chain.fragments(tmp_path), whole=True)) == [
        "journal/terms.jsonl: line 1 is missing, or is not what the chain holds"
    ]


def test_a_measurement_that_a_record_once_rested_on_is_missed():
    """As where the confirmation was measured again, until it pleased; what a record names now is missed there."""
    first, second, other = ("1" * 64, "2" * 64, "3" * 64)
    made_from = MadeFrom(code="0" * 64, config={}, inputs={})
    body = {"outcome": {"cases": [{"case": "square", "samples": [second]}]}}
    record = Envelope(schema_version=1, stage="confirm", iteration=0, made_from=made_from, body=body, sha256="0" * 64)
    lines = {
        ("confirm", 0): [journal.Line(previous="", event={"measurements": [first]}),
                         journal.Line(previous="", event={"measurements": [second]})],
        ("time", 3): [journal.Line(previous="", event={}), journal.Line(previous="", event={"measurements": [other]})],
    }  # fmt: skip
    assert not list(lasting_measurements({"confirmation.json": record}, lines, {first, second, other}))
    assert not list(lasting_measurements({"confirmation.json": record}, lines, {first, other}))
    problems = list(lasting_measurements({"confirmation.json": record}, lines, {second}))
    assert [line.partition(":")[0] for line in problems] == ["journal/confirm.jsonl", "journal/time-0003.jsonl"]
    assert first in problems[0]
