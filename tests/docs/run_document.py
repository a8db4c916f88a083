"""Checks documents and runs their commands:

    python3 -B tests/docs/run_document.py [--rules] [--program FILE] FILE.md...

--rules         only the rules: nothing is run
--program FILE  the program that commands call [CPUTRAIN in the environment, else ./cputrain]

With no file named: all of the project's. It ends with 1 where a rule is broken or a command fails."""
import argparse
import os
import shutil
import sys

import blocks
import documents
import rules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--program", default=os.environ.get("CPUTRAIN", os.path.join(ROOT, "cputrain")))
    parser.add_argument("files", nargs="*")
    asked = parser.parse_args()
    if not os.access(asked.program, os.X_OK):
        parser.error(f"there is no program {asked.program}: build it with scripts/build, or name one with --program")
    mpirun = os.environ.get("CPUTRAIN_MPIRUN", "").split() or [p for p in [shutil.which("mpirun")] if p]
    flags = rules.all_flags(asked.program, ROOT)
    bad = 0
    for path in [os.path.relpath(os.path.abspath(f), ROOT) for f in asked.files] or documents.documents(ROOT):
        document = documents.Document(path, ROOT)
        found = rules.check(document, flags)
        for finding in found:
            print(finding)
        if not asked.rules and any(not getattr(s, "reason", "") for s in document.steps):
            with blocks.Workplace(ROOT, asked.program, mpirun) as workplace:
                failed = blocks.run(document, workplace, print)
            for finding in failed:
                print(finding)
            found += failed
        bad += len(found)
        print(f"{path}: {len(found)} findings" if found else f"{path}: as it should be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
