"""The corpus and every instruction of the `cpu` device's table on a card, as digests in a JSON file.

python tests/gpu/corpus_digests.py build FOLDER [ARCH]    PTX and machine code (sm_90); needs no card
python tests/gpu/corpus_digests.py run FOLDER OUT.json    runs them on the first card
python tests/gpu/corpus_digests.py compare OUT.json PTX   compares the `cpu` device with such a file on the PTX
                                                          that `build` left in FOLDER; 1 where it differs
python tests/gpu/corpus_digests.py one NAME PTX OUT.json  one kernel of the texts in PTX on the first card, its
                                                          outputs whole
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(arguments: list[str]) -> int:
    sys.path[:0] = [str(HERE / "corpus"), str(HERE.parent / "unit" / "devices_cpu")]
    import corpus_results

    match arguments:
        case ["build", folder, *arch]:
            corpus_results.build(Path(folder), arch[0] if arch else "sm_90")
        case ["run", folder, target]:
            corpus_results.run(Path(folder), Path(target))
        case ["one", name, texts, target]:
            corpus_results.run_one(name, Path(texts), Path(target))
        case ["compare", source, texts]:
            return corpus_results.compare(Path(source), Path(texts))
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
