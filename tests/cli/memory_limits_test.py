"""Little memory: limits of a control group, and a small /dev/shm, made up in mount namespaces."""
import json
import os
import signal
import subprocess
import threading
import time
import unittest

from program import PROGRAM, ProgramTest, as_root, mpirun, needs_mpi, wait_until


def small_network():
    return {"format": "cputrain model 1", "name": "small", "recipe": {"image_size": 160},
            "layers": [{"type": "convolution", "filters": 4, "kernel": 3, "stride": 4}, {"type": "relu"},
                       {"type": "flatten"}, {"type": "dense", "units": "classes"}, {"type": "softmax"}]}


@as_root
class ControlGroup(ProgramTest):
    """Limits of memory in groups around the process's own, made up in a mount namespace as the kernel writes them."""
    PATH = "system.slice/slurmstepd.scope/job_7"
    # Files of version 2 and of version 1, whose controllers are mounted apart.
    VERSIONS = {"": ("0::", "memory.max", "memory.current", "max"),
                "memory": ("4:memory:", "memory.limit_in_bytes", "memory.usage_in_bytes", "9223372036854771712")}
    WORDS = ["--model", "dogcat", "--data", "synthetic:200", "--steps", "1"]

    def inside(self, mount, *words, ranks=0, prefix=(), used_by=""):
        name, limit, used, none = self.VERSIONS[mount]
        job = os.path.join("/sys/fs/cgroup", mount, self.PATH)
        self.write("group", f"{name}/{self.PATH}/step_0/task_0\n")
        script = f"""mount -t tmpfs none /sys/fs/cgroup && mkdir -p {job}/step_0/task_0 || exit 99
            echo 300000000 >{job}/{limit}; echo 40000000 >{job}/{used}; echo {none} >{job}/step_0/{limit}
            echo 1000000 >{job}/step_0/{used}
            [ -z "{used_by}" ] || mount --bind "{used_by}" {job}/{used} || exit 99
            mount --bind group /proc/$$/cgroup && exec "$@" || exit 99"""
        launch = [*mpirun(ranks), "sh", "-c", 'mount --bind group /proc/$$/cgroup; exec "$@"', "sh"] if ranks else []
        done = self.run_program(*words, launch=["unshare", "-m", "sh", "-c", script, "sh", *launch, *prefix])
        if done.returncode == 99 or "unshare:" in done.stderr:
            self.skipTest("no mount namespaces: " + done.stderr.strip())
        return done

    def test_is_what_a_training_has(self):
        for mount in self.VERSIONS:
            for more in (["--dry-run"], ["--out", "run"]):
                with self.subTest(mount=mount, more=more):
                    done = self.inside(mount, *self.WORDS, *more)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn("260 MB are available in its control group", done.stderr)
                    self.assertNotIn("ready in", done.stderr)  # no image was decoded
                    self.assertFalse(os.path.exists(self.path("run")))

    def test_is_what_images_have(self):
        done = self.inside("", *self.WORDS, "--data", "synthetic:20000", "--cache", "memory", "--dry-run")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("260 MB are available in its control group", done.stderr)
        self.assertIn("decoded once", done.stderr)

    def test_a_step_is_measured_where_none_has_room_beside_it(self):
        """What the group has taken is told by a pipe: much, as soon as the first step's memory was planned."""
        self.write("wide.json", {"format": "cputrain model 1", "name": "wide", "recipe": {"image_size": 64, "batch": 4},
                                 "layers": [{"type": "flatten"}, {"type": "dense", "units": 1000}, {"type": "relu"},
                                            {"type": "dense", "units": "classes"}, {"type": "softmax"}]})
        os.mkfifo(self.path("used"))
        over = threading.Event()

        def answer():
            while True:
                with open(self.path("used"), "w") as pipe:
                    if over.is_set():
                        return
                    first = "Exchange: " in self.text_of("said")
                    pipe.write("290000000\n" if first else "40000000\n")
                time.sleep(0.05)  # the reader takes the end of the pipe for that of the file

        self.write("said", "")
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            done = self.inside("", "bench", "step", "--model", "wide.json", "--threads", "1", "--repeat", "1",
                               "--freeze", "all-but-head", "--json", "-", used_by="used",
                               prefix=["sh", "-c", 'exec "$@" 2>said', "sh"])
        finally:
            over.set()
            with open(self.path("used")):
                thread.join()
        said = self.text_of("said")
        self.assertEqual(done.returncode, 0, said)
        self.assertIn("Features: a step that keeps them has no room beside the first: ", said)
        self.assertNotIn("features_kept", json.loads(done.stdout))

    # 4,000 images of 160 x 160 are 307 MB; the network is small.
    LARGE = ["--model", "small.json", "--data", "synthetic:4000", "--steps", "2", "--batch", "8", "--threads", "1",
             "--limit-val", "40", "--log-every", "1"]

    def large(self, *words, ranks=0, prefix=()):
        """What a plan or a training said; its exit code is 0."""
        self.write("small.json", small_network())
        done = self.inside("", *self.LARGE, *words, ranks=ranks, prefix=prefix)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_images_that_have_no_room_lie_on_disk(self):
        done = self.large("--dry-run", "--json", "-")
        (node,) = json.loads(done.stdout)["memory"]["nodes"]
        self.assertGreater(node["image_file"], 3640 * 160 * 160 * 3)
        self.assertEqual(node["image_cache"], 0)
        self.assertTrue(os.path.isdir(node["image_cache_folder"]))
        self.assertIn("Images: memory has no room for 280 MB", done.stderr)
        self.assertIn(f"they lie in a file in {node['image_cache_folder']}", done.stderr)

    @needs_mpi
    def test_images_that_have_no_room_lie_nowhere(self):
        """A limit on the length of files keeps them from the disk."""
        prefix = ["bash", "-c", 'ulimit -f 200000; exec "$@"', "bash"]
        for ranks in (0, 2):
            done = self.large("--out", "run", "--overwrite", ranks=ranks, prefix=prefix)
            self.assertIn("and no disk has it; host ", done.stderr)
            self.assertIn(" of 3,640 are kept", done.stderr)
            self.assertIn("Decoding makes some", done.stderr)
            losses = [s["loss"] for s in self.metrics("run", "step")]
            self.expect(0, *self.LARGE, "--out", "memory", "--overwrite", "--cache", "memory", ranks=ranks)
            self.assertEqual(losses, [s["loss"] for s in self.metrics("memory", "step")])

    def test_features_of_frozen_layers_keep_no_training_out(self):
        """An image's are 6.6 MB: kept as far as there is room, and not at all where a training needs all of it."""
        with open(self.path("wide.json"), "w") as f:
            json.dump({"format": "cputrain model 1", "name": "wide", "recipe": {"image_size": 160},
                       "layers": [{"type": "convolution", "filters": 64, "kernel": 3, "padding": "same"},
                                  {"type": "relu"}, {"type": "convolution", "filters": 2, "kernel": 3, "stride": 8},
                                  {"type": "flatten"}, {"type": "dense", "units": "classes"}, {"type": "softmax"}]}, f)
        words = ["--model", "wide.json", "--data", "synthetic:64", "--limit-val", "4", "--threads", "1", "--batch", "32",
                 "--dry-run"]
        said = set()
        for images in range(4, 33, 4):
            frozen = [*words, "--micro-batch", str(images), "--freeze", "conv2d"]
            # Each epoch has other pixels then, whose features nobody keeps.
            without = self.inside("", *frozen, "--augment", "crop:1")
            self.assertNotIn("Features:", without.stderr)
            done = self.inside("", *frozen)
            if without.returncode == 0:
                self.assertEqual(done.returncode, 0, f"{images}: {done.stderr}")
                said |= {words for words in ("as far as memory has room", "memory has no room to keep")
                         if words in done.stderr}
        self.assertEqual(len(said), 2, said)

    def test_is_what_a_plan_says(self):
        done = self.inside("", *self.WORDS, "--image-size", "64", "--dry-run", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        (node,) = json.loads(done.stdout)["memory"]["nodes"]
        self.assertEqual(node["available"], 260_000_000)

    @needs_mpi
    def test_is_what_ranks_have(self):
        done = self.inside("", *self.WORDS, "--dry-run", ranks=2)
        self.assertIn("260 MB are available in its control group", done.stderr)
        self.assertEqual(done.returncode, 2, done.stderr)


@as_root
@needs_mpi
class SmallSharedMemory(ProgramTest):
    """As in a container, where /dev/shm has 64 MB."""

    def inside(self, size, *words, mounts="", **environment):
        line = f"mount -t tmpfs -o size={size} tmpfs /dev/shm && {mounts} exec \"$@\""
        done = self.run_program(*words, launch=["unshare", "-m", "bash", "-c", line, "bash", *mpirun(2)], timeout=200,
                                **environment)
        if "unshare" in done.stderr or "mount:" in done.stderr:
            self.skipTest("no mount namespaces: " + done.stderr.strip())
        return done

    # 800 images of 160 x 160 are 61 MB; the network is small
    WORDS = ["--image-size", "160", "--data", "synthetic:800", "--steps", "2", "--batch", "8", "--threads", "1",
             "--limit-val", "40", "--log-every", "1"]

    def model(self):
        self.write("small.json", small_network())
        return ["--model", "small.json"]

    def test_images_lie_in_a_file_that_leaves_nothing(self):
        words = [*self.model(), *self.WORDS]
        os.mkdir(self.path("tmp"))
        plan = self.inside("48m", *words, "--dry-run", "--json", "-", TMPDIR=self.path("tmp"))
        self.assertEqual(plan.returncode, 0, plan.stderr)
        (node,) = json.loads(plan.stdout)["memory"]["nodes"]
        self.assertEqual(node["image_cache_folder"], self.path("tmp"))
        done = self.inside("48m", *words, "--out", "small", TMPDIR=self.path("tmp"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("lie in a file in " + self.path("tmp"), done.stderr)
        self.assertIn("--shm-size", done.stderr)
        self.assertEqual(os.listdir(self.path("tmp")), [])
        # The same figures as where shared memory is large.
        large = self.expect(0, *words, "--out", "large", ranks=2)
        self.assertNotIn("lie in a file", large.stderr)
        self.assertEqual([s["loss"] for s in self.metrics("small", "step")],
                         [s["loss"] for s in self.metrics("large", "step")])

    def test_no_room_anywhere_is_refused_by_plan_and_training(self):
        # Files of 40 MB at most, wherever they lie: the images are 61.
        for more in ([], ["--dry-run"]):
            done = self.inside("48m", *self.model(), *self.WORDS, "--out", "o", *more, mounts="ulimit -f 40000 &&")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("ulimit -f", done.stderr)

    def test_a_kill_leaves_nothing(self):
        os.mkdir(self.path("tmp"))
        words = [*self.model(), *self.WORDS[:4], "--epochs", "100000", "--batch", "8", "--threads", "1", "--out", "k"]
        line = 'mount -t tmpfs -o size=48m tmpfs /dev/shm && exec "$@"'
        running = subprocess.Popen(["unshare", "-m", "bash", "-c", line, "bash", *mpirun(2), PROGRAM, *words],
                                   cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": self.path("tmp")})
        wait_until(lambda: os.path.exists(self.path("k/metrics.jsonl")) and self.metrics("k", "step"))
        for rank in children_of(running.pid):
            os.kill(rank, signal.SIGKILL)
        running.wait(60)
        self.assertEqual([name for name in os.listdir(self.path("tmp")) if "images" in name], [])


def children_of(process):
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent == process:
            found.append(int(entry))
    return found


if __name__ == "__main__":
    unittest.main()
