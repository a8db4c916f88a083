"""File systems that lack calls, or fail: in trainings that go on from a checkpoint, each kind of call answers
an error once, or from then on. What is lacking changes no weights; what fails ends with a sentence, and all is kept."""
import collections
import concurrent.futures
import errno
import os
import shutil
import subprocess
import unittest

from program import PROGRAM
from trainings import LONG, WORDS, FaultTest

LIBRARY = os.environ["FILE_ERRORS_LIBRARY"]
ENOTSUPP = 524  # the kernel's own, which some of its file systems let out
LACKING = [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTTY, ENOTSUPP]
FULL = [errno.ENOSPC, errno.EDQUOT]
FAILING = [errno.EIO, errno.EROFS, errno.ESTALE, errno.EMFILE, errno.ENOMEM, errno.EBUSY, *FULL]
OTHERS = [errno.EBADF, errno.ENOENT, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ENOLCK, errno.EXDEV, errno.EMLINK,
          errno.ENODEV]
ONCE = [errno.EINTR]  # who asks again gets an answer
ANY = LACKING + FAILING + OTHERS
# Errors that change no weights and end nothing, by the call that answers them.
DONE_WITHOUT = {
    "fsync": LACKING + [errno.EBADF, errno.EACCES],
    "fsync_folder": LACKING + [errno.EBADF, errno.ENOENT, errno.EISDIR, errno.EACCES, errno.EPERM],
    "lock": LACKING + [errno.ENOLCK],
    "rename": LACKING + [errno.EXDEV],
    "rename_folder": LACKING + [errno.EXDEV],
    "exchange": LACKING + [errno.EXDEV],
    "link": ANY,
    "unlink": LACKING,
    "truncate": LACKING + [errno.EPERM],
    "chmod": ANY,
    "close": LACKING,
    "nlink": [1],
}
BASIC = ["mkdir", "create", "open", "open_folder", "write", "read"]  # that every file system has
# What the run folder is like before: empty, with a checkpoint, with a damaged newer one, with a file of such a name.
FRESH, GOES_ON, DAMAGED, TAKEN = "fresh", "goes-on", "damaged", "taken"
PLACES = {GOES_ON: [call for call in DONE_WITHOUT if call not in ("exchange", "chmod", "nlink")] + BASIC,
          DAMAGED: ["rename_folder", "unlink"], TAKEN: ["exchange", "rename_folder"],
          FRESH: ["lock", "chmod", "mkdir", "fsync_folder", "rename"]}
ENDS = {2, 65, 74}
Case = collections.namedtuple("Case", "place call error when")


class FileErrors(FaultTest):
    def setUp(self):
        super().setUp()
        self.trained("whole-30", "--steps", "30")
        self.trained("whole-36", "--steps", "36")
        self.trained(GOES_ON, "--steps", "20")
        for copy in (DAMAGED, TAKEN):
            shutil.copytree(self.path(GOES_ON), self.path(copy))
        shutil.copytree(self.path("whole-30", "ckpt-000000030"), self.path(DAMAGED, "ckpt-000000030"))
        os.truncate(self.path(DAMAGED, "ckpt-000000030", "model.safetensors"), 50)
        open(self.path(TAKEN, "ckpt-000000030"), "w").close()

    def train(self, run, *words, errors=None):
        environment = {**os.environ, "LD_PRELOAD": LIBRARY}
        if errors:
            environment |= {"FILE_ERRORS": errors, "FILE_ERRORS_MET": self.path(run + ".met"),
                            "FILE_ERRORS_IN": os.path.join(os.path.realpath(self.folder), run)}
        command = [PROGRAM, *WORDS[:-1], run, "--reproducible", "--save-best", "--resume", "auto", *words]
        try:
            return subprocess.run(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "it comes to no end")

    def trained(self, run, *words):
        done = self.train(run, *words)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def weights(self, run):
        """Without what the file says of itself."""
        with open(self.path(run, "weights.safetensors"), "rb") as f:
            size = int.from_bytes(f.read(8), "little")
            f.seek(8 + size)
            return f.read()

    def met(self, run):
        return os.path.getsize(self.path(run + ".met")) if os.path.exists(self.path(run + ".met")) else 0

    def make_run(self, place, run):
        if place != FRESH:
            shutil.copytree(self.path(place), self.path(run))
        else:
            os.mkdir(self.path(run))
            os.chmod(self.path(run), 0o777)  # others may have its lock

    def what_is_wrong(self, number, case):
        """Nothing, or words; and how it ended."""
        run = f"case-{number}"
        self.make_run(case.place, run)
        done = self.train(run, "--steps", "30", errors=f"{case.call}:{case.error}:{case.when}")
        code, said = done.returncode, done.stdout
        if not self.met(run):
            return "no call met it", code
        if code == 0 and self.weights(run) != self.weights("whole-30"):
            return "other weights: " + said, code
        if code != 0 and (code not in ENDS or "cputrain: " not in said):
            return f"ended with {code}: {said[-800:]}", code
        whole = code == 0 and self.points(run) == [30] and "no checkpoint" not in said
        if not whole and case.error in DONE_WITHOUT.get(case.call, []):
            return f"is not done without ({code}): {said[-800:]}", code
        if code != 0 and case.error not in FULL and "free space" in said:
            return f"blames space: {said[-800:]}", code
        after = self.train(run, "--steps", "36")
        if after.returncode != 0 or self.weights(run) != self.weights("whole-36"):
            return f"does not go on ({after.returncode}): {said[-800:]}\n{after.stdout[-800:]}", code
        if case.place != FRESH and "Going on from" not in after.stdout:
            return "nothing was kept: " + said, code
        if self.litter(run):
            return f"leaves {self.litter(run)}: {said[-800:]}", code
        shutil.rmtree(self.path(run))
        return "", code

    def try_all(self, cases):
        ends = collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for case, (wrong, code) in zip(cases, pool.map(self.what_is_wrong, range(len(cases)), cases)):
                ends[case.call, code] += 1
                with self.subTest(**case._asdict()):
                    self.assertEqual(wrong, "")
        for call, code in sorted(ends):
            print(f"{call}: {ends[call, code]} ended with {code}")

    def calls_of(self, place, call):
        """How many of them a training makes."""
        run = f"counted-{place}-{call}"
        self.make_run(place, run)
        self.assertEqual(self.train(run, "--steps", "30", errors=f"{call}:0:1+").returncode, 0)
        return self.met(run)

    def test_what_is_lacking_and_what_fails(self):
        cases = [Case(GOES_ON, "nlink", 1, "1+"), Case(FRESH, "nlink", 1, "1+")]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for found in pool.map(self.cases, *zip(*((place, call) for place, calls in PLACES.items() for call in calls))):
                cases += found
        self.try_all(cases)

    def cases(self, place, call):
        n = self.calls_of(place, call)
        self.assertGreater(n, 0, f"{call} is never met")
        lacking = DONE_WITHOUT.get(call, [])
        if not LONG:
            some = lacking if call in ("fsync_folder", "lock") and place != FRESH else lacking[-2:]
            some = [e for e in some if e != errno.EACCES or call != "lock"]
            return [Case(place, call, e, "1+") for e in some] + \
                [Case(place, call, e, max(1, n // 2)) for e in (errno.EIO, errno.ENOSPC)]
        errors = ANY + ONCE if call in DONE_WITHOUT else FAILING
        # A lock that another one has is waited for.
        errors = [e for e in errors if call != "lock" or e != errno.EACCES]
        return [Case(place, call, e, when) for i, e in enumerate(errors)
                for when in [1 + i * n // len(errors), *(["1+"] if e not in ONCE else [])]]

    def test_exports_without_fsync_of_folders(self):
        for error in (errno.ENOTTY, errno.EBADF, ENOTSUPP):
            environment = {"LD_PRELOAD": LIBRARY, "FILE_ERRORS": f"fsync_folder:{error}:1+",
                           "FILE_ERRORS_MET": self.path("exports.met"),
                           "FILE_ERRORS_IN": os.path.realpath(self.folder)}
            weights = "whole-30/weights.safetensors"
            for words in (["export", "--weights", weights, "--safetensors", "e.safetensors"],
                          ["data", "pack", "data", f"packed-{error}.ctpack"],
                          ["sweep", "--plan-only", "--np", "1", "--batch", "8", "--out", f"sweep-{error}"],
                          ["predict", "--weights", weights, "--csv", "p.csv", "data"]):
                with self.subTest(error=error, command=words[0]):
                    done = self.run_program(*words, **environment)
                    self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(self.met("exports"), 5)


if __name__ == "__main__":
    unittest.main()
