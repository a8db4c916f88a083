"""Archives as data: the losses of the folder that they hold, and what is refused of hostile ones, within bounds of time
and memory. Python's zipfile and tarfile write them."""
import io
import os
import resource
import shutil
import subprocess
import tarfile
import unittest
import zipfile

from images import made_pixels, write_bmp
from program import PROGRAM, mpirun, needs_mpi
from tiny import TinyTest

WORDS = ["--no-winograd", "--no-skip-zeros", "--epochs", "2"]  # no choice of kernels by measuring: losses are compared


READS_TAR = "libarchive" in subprocess.run([PROGRAM, "info"], capture_output=True, text=True, check=True).stdout
needs_tar = unittest.skipUnless(READS_TAR, "this build reads no tar archives")


class Unseekable(io.RawIOBase):
    """To such a file zipfile writes sizes and checksums behind each member (data descriptors)."""

    def __init__(self, file):
        self.file = file

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)


class Archives(TinyTest):
    def setUp(self):
        super().setUp()
        self.make("photos", cat=20, dog=20)
        self.write("photos/cat/notes.txt", "no image")

    def files(self):
        for folder, _, names in sorted(os.walk(self.path("photos"))):
            for name in sorted(names, reverse=True):
                yield os.path.relpath(os.path.join(folder, name), self.folder)

    def zip(self, name, method=zipfile.ZIP_STORED, zip64=False):
        with zipfile.ZipFile(self.path(name), "w", method) as z:
            for file in self.files():
                with z.open(zipfile.ZipInfo(file) if zip64 else file, "w", force_zip64=zip64) as member:
                    member.write(self.bytes_of(file))
        return name

    def tar(self, name, mode="w", form=tarfile.PAX_FORMAT, files=None):
        with tarfile.open(self.path(name), mode, format=form) as t:
            for file in files or self.files():
                t.add(self.path(file), file)
        return name

    def losses(self, data, *words, **options):
        self.tiny(0, "run", data, *WORDS, *words, **options)
        return [(m["loss"], m.get("accuracy")) for kind in ("step", "evaluation", "epoch")
                for m in self.metrics("run", kind)]

    def test_losses_are_those_of_the_folder(self):
        expected = self.losses("photos")
        self.assertTrue(expected)
        descriptors = self.path("descriptors.zip")
        with open(descriptors, "wb") as f, zipfile.ZipFile(Unseekable(f), "w", zipfile.ZIP_DEFLATED) as z:
            for file in self.files():
                z.write(self.path(file), file)
        archives = [self.zip("stored.zip"), self.zip("deflated.zip", zipfile.ZIP_DEFLATED),
                    self.zip("zip64.zip", zip64=True), "descriptors.zip"]
        if READS_TAR:
            archives += [self.tar("pax.tar"), self.tar("gnu.tar", form=tarfile.GNU_FORMAT),
                         self.tar("ustar.tar", form=tarfile.USTAR_FORMAT), self.tar("gzip.tar.gz", "w:gz"),
                         self.tar("xz.tar.xz", "w:xz"), self.tar("bzip2.tar.bz2", "w:bz2")]
        for archive in archives:
            with self.subTest(archive):
                self.assertEqual(self.losses(archive), expected)
        self.assertEqual(self.losses("zip64.zip/photos"), expected)
        self.assertEqual(self.losses("deflated.zip", "--cache", "none"), expected)

    @needs_tar
    def test_names_that_need_more_than_a_header(self):
        deep = "photos/cat/" + "/".join(["a long name of a folder"] * 8) + "/\u00e9.bmp"
        os.makedirs(os.path.dirname(self.path(deep)))
        write_bmp(self.path(deep), made_pixels(7, 20))
        expected = self.losses("photos")
        for archive in (self.tar("pax.tar"), self.tar("gnu.tgz", "w:gz", form=tarfile.GNU_FORMAT), self.zip("a.zip")):
            with self.subTest(archive):
                self.assertEqual(self.losses(archive), expected)

    @needs_tar
    def test_shards_and_a_compressed_archive_by_zstd_where_there_is_one(self):
        expected = self.losses("photos")
        files = list(self.files())
        for i in range(3):
            self.tar(f"train-{i:03}.tar", files=files[i::3])
        self.assertEqual(self.losses("train-{000..002}.tar"), expected)
        if shutil.which("zstd"):
            self.tar("photos.tar")
            subprocess.run(["zstd", "-q", "photos.tar"], cwd=self.folder, check=True)
            self.assertEqual(self.losses("photos.tar.zst"), expected)

    @needs_tar
    def test_webdataset(self):
        for label, name in enumerate(("cat", "dog")):
            os.makedirs(self.path("numbers", str(label)))
            for i in range(20):
                shutil.copy(self.path("photos", name, f"{i}.bmp"), self.path("numbers", str(label), f"{i:03}.bmp"))
        expected = self.losses("numbers")
        for i in range(2):
            with tarfile.open(self.path(f"s-{i}.tar"), "w") as t:
                for j in range(10 * i, 10 * i + 10):
                    for label, name in enumerate(("cat", "dog")):
                        t.add(self.path("photos", name, f"{j}.bmp"), f"{label}{j:03}.bmp")
                        text = tarfile.TarInfo(f"{label}{j:03}.cls")
                        text.size = 1
                        t.addfile(text, io.BytesIO(str(label).encode()))
        self.assertEqual(self.losses("s-{0..1}.tar"), expected)

    @needs_tar
    @needs_mpi
    def test_under_several_ranks(self):
        self.zip("photos.zip", zipfile.ZIP_DEFLATED)
        self.tar("photos.tgz", "w:gz")
        for words in ([], ["--cache", "none"]):
            expected = self.losses("photos", "--reproducible", *words, ranks=2)
            for archive in ("photos.zip", "photos.tgz"):
                with self.subTest(archive, words=words):
                    self.assertEqual(self.losses(archive, "--reproducible", *words, ranks=2), expected)

    def test_commands_read_them_and_a_run_knows_its_archive(self):
        self.zip("photos.zip")
        self.tiny(0, "run", "photos.zip", *WORDS)
        self.assertEqual(self.json_of("run", "config.json")["data"], self.path("photos.zip"))
        self.assertEqual(self.evaluate("photos.zip")["accuracy"], self.evaluate("photos")["accuracy"])
        self.expect(0, "eval", "--weights", "run", "--threads", "1", says=["held out from training"])
        self.expect(0, "data", "check", "photos.zip", says=["cat/notes.txt"])
        self.expect(0, "data", "info", "photos.zip", says=["Not read: text 1"])
        self.expect(0, "data", "pack", "photos.zip", "photos.ctpack", "--image-size", "16")
        self.assertEqual(self.losses("photos.ctpack"), self.losses("photos"))
        for word in ("photos.zip", "photos.zip/photos/cat/1.bmp"):
            self.expect(65, "predict", "--weights", "run", word, says=["archives are read as --data"])

    @needs_tar
    def test_an_archive_that_changes_stops_the_training(self):
        self.tar("photos.tar")
        words = ["--model", "tiny.json", "--data", "photos.tar", "--threads", "1", "--log-every", "1", "--out", "run",
                 "--epochs", "1000000", "--cache", "none", "--resume", "auto"]

        def ready():
            return os.path.exists(self.path("run", "metrics.jsonl")) and len(self.metrics("run", "step")) > 20

        def change():
            with open(self.path("photos.tar"), "r+b") as f:
                f.seek(-1, os.SEEK_END)
                f.write(b"\0")
        text = self.disturbed([PROGRAM, *words], ready, change)
        self.assertIn("photos.tar' has changed since it was opened", text)
        self.assertIn("Stopped after step", text)


class HostileArchives(TinyTest):
    """Each ends with 65, in seconds, with no more than 600 MB of memory, and no file is written."""

    def setUp(self):
        super().setUp()
        self.make("good", cat=2, dog=2)

    def refuse(self, name, *says):
        before = {*os.listdir(self.folder), "said"}
        with open(self.path("said"), "w") as said:
            process = subprocess.Popen([PROGRAM, "data", "check", name], cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=said, stderr=said, preexec_fn=lambda: resource.setrlimit(
                                           resource.RLIMIT_CPU, (30, 30)))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        text = self.text_of("said")
        self.assertEqual(process.returncode, 65, text)
        for words in says:
            self.assertIn(words, text)
        self.assertLess(usage.ru_maxrss, 600 << 10)  # kilobytes
        self.assertEqual({*os.listdir(self.folder)}, before)

    def zip(self, name, more):
        with zipfile.ZipFile(self.path(name), "w", zipfile.ZIP_DEFLATED) as z:
            for folder in ("cat", "dog"):
                for file in sorted(os.listdir(self.path("good", folder))):
                    z.write(self.path("good", folder, file), f"good/{folder}/{file}")
            more(z)
        return name

    def tar(self, name, members, mode="w"):
        with tarfile.open(self.path(name), mode) as t:
            t.add(self.path("good"), "good")
            for member in members:
                t.addfile(member)
        return name

    @needs_tar
    def test_paths(self):
        for path, why in (("../x.png", "leads out of the archive"), ("/tmp/x.png", "begins at the root"),
                          ("good/cat/0.bmp", "once more")):
            with self.subTest(path):
                self.refuse(self.zip("a.zip", lambda z: z.writestr(path, b"x")), why)
                self.refuse(self.tar("a.tar", [tarfile.TarInfo(path)]), why)
                self.refuse(self.tar("a.tgz", [tarfile.TarInfo(path)], "w:gz"), why)

    @needs_tar
    def test_links_and_devices_alone(self):
        with tarfile.open(self.path("a.tar"), "w") as t:
            for kind, name in ((tarfile.SYMTYPE, "cat/1.png"), (tarfile.LNKTYPE, "cat/2.png"),
                               (tarfile.CHRTYPE, "dog/1.png"), (tarfile.FIFOTYPE, "dog/2.png")):
                member = tarfile.TarInfo(name)
                member.type, member.linkname = kind, "/etc/passwd"
                t.addfile(member)
        self.refuse("a.tar", "devices or sockets 2", "links in archives 2")

    @needs_tar
    def test_bombs(self):
        def bomb(z):
            for i in range(12):
                z.writestr(f"good/cat/bomb{i}.png", bytes(32 << 20), compresslevel=9)
        self.refuse(self.zip("a.zip", bomb), "times its size")
        with tarfile.open(self.path("a.tar.xz"), "w:xz", preset=0) as t:
            for i in range(2):
                member = tarfile.TarInfo(f"good/cat/notes{i}.txt")
                member.size = 140 << 20
                t.addfile(member, io.BytesIO(bytes(member.size)))
        self.refuse("a.tar.xz", "times its size")

    @needs_tar
    def test_a_million_entries(self):
        with tarfile.open(self.path("a.tgz"), "w:gz", compresslevel=1) as t:
            header = tarfile.TarInfo("x").tobuf(tarfile.USTAR_FORMAT)
            for _ in range(1000):
                t.fileobj.write(header * 1000)
        self.refuse("a.tgz", "holds 'x' (so does")

    @needs_tar
    def test_cut_and_empty(self):
        self.write("empty.zip", b"")
        self.write("empty.tar", b"")
        self.refuse("empty.zip")
        self.refuse("empty.tar")
        with zipfile.ZipFile(self.path("none.zip"), "w"):
            pass
        with tarfile.open(self.path("none.tar"), "w"):
            pass
        self.refuse("none.zip", "no images")
        self.refuse("none.tar", "no images")
        for name in (self.zip("a.zip", lambda z: None), self.tar("a.tgz", [], "w:gz"), self.tar("a.tar", [])):
            whole = self.bytes_of(name)
            self.write("cut-" + name, whole[:len(whole) // 3])
            self.refuse("cut-" + name)

    def test_encrypted(self):
        self.zip("a.zip", lambda z: None)
        whole = bytearray(self.bytes_of("a.zip"))
        at = whole.index(b"PK\x01\x02")
        whole[at + 8] |= 1
        self.write("a.zip", bytes(whole))
        self.refuse("a.zip", "is encrypted")

    def test_wrong_sizes(self):
        self.zip("a.zip", lambda z: None)
        whole = bytearray(self.bytes_of("a.zip"))
        at = whole.index(b"PK\x01\x02")
        whole[at + 24] ^= 1
        self.write("a.zip", bytes(whole))
        self.refuse("a.zip", "not as many as it says")


if __name__ == "__main__":
    unittest.main()
