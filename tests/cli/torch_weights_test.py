"""Weights as torch.save writes them."""
import collections
import io
import os
import pickle
import resource
import struct
import subprocess
import time
import unittest
import zipfile

from fine_tuning_test import NET
from formats import read_arrays, write_arrays
from program import PROGRAM
from tiny import TinyTest
from torch_files import Call, Storage, archive, array, dense, older, state_of

COUNTER = "norm.num_batches_tracked"


def as_type(dtype, data):
    """Bytes of F32 as those of another type."""
    numbers = struct.unpack(f"<{len(data) // 4}f", data)
    if dtype == "BF16":
        return b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4))
    return struct.pack(f"<{len(numbers)}{ {'F64': 'd', 'F16': 'e', 'F32': 'f'}[dtype]}", *numbers)


class TorchWeights(TinyTest):
    def setUp(self):
        super().setUp()
        self.write("net.json", NET)
        self.make("data", ant=12, bee=12)
        self.expect(0, "--model", "net.json", "--data", "data", "--threads", "1", "--out", "run")
        self.expect(0, "export", "--weights", "run", "--safetensors", "t.safetensors", "--export-layout", "torch")
        _, self.arrays = read_arrays(self.path("t.safetensors"))
        self.arrays[COUNTER] = ("I64", [], struct.pack("<q", 7))

    def taken(self, name):
        """Arrays that the program reads in a file."""
        self.expect(0, "export", "--model", "net.json", "--weights", name, "--safetensors", "out.safetensors")
        return read_arrays(self.path("out.safetensors"))[1]

    def taken_of(self, data):
        return self.taken(self.write("w.pth", data))

    def test_both_forms_have_the_numbers_of_safetensors(self):
        for dtype in ("F32", "F64", "F16", "BF16"):
            arrays = {n: t if n == COUNTER else (dtype, t[1], as_type(dtype, t[2])) for n, t in self.arrays.items()}
            write_arrays(self.path("w.safetensors"), arrays)
            wanted = self.taken("w.safetensors")
            state = state_of(arrays)
            for form, data in (("zip", archive(state)), ("zip of protocol 4", archive(state, 4)),
                               ("older", older(state))):
                with self.subTest(dtype=dtype, form=form):
                    self.assertEqual(self.taken_of(data), wanted)

    def test_strides_offsets_and_shared_storages(self):
        wanted = self.taken("t.safetensors")
        state = state_of(self.arrays)
        dtype, shape, data = self.arrays["wide.weight"]
        rows, columns = shape
        turned = b"".join(data[4 * (r * columns + c):][:4] for c in range(columns) for r in range(rows))
        state["wide.weight"] = array(dtype, shape, turned, strides=(1, rows))
        kernel = self.arrays["stem.weight"]
        out, inputs, height, width = kernel[1]
        last = b"".join(kernel[2][4 * (((o * inputs + i) * height + y) * width + x):][:4] for o in range(out)
                        for y in range(height) for x in range(width) for i in range(inputs))
        state["stem.weight"] = array(kernel[0], kernel[1], last,  # channels last
                                     strides=(height * width * inputs, 1, width * inputs, inputs))
        both = Storage("F32", b"gone" * 3 + self.arrays["norm.weight"][2] + self.arrays["norm.bias"][2])
        count = len(self.arrays["norm.weight"][2]) // 4
        for name, offset in (("norm.weight", 3), ("norm.bias", 3 + count)):
            state[name] = array("F32", [count], None, offset=offset, storage=both)
        body = self.arrays["body_norm.bias"]
        spread = b"".join(body[2][4 * i:4 * i + 4] + b"hole" for i in range(body[1][0]))
        state["body_norm.bias"] = array(*body[:2], spread, strides=(2,))
        for form in (archive, older):
            with self.subTest(form.__name__):
                self.assertEqual(self.taken_of(form(state)), wanted)

    def test_checkpoints_parameters_and_old_kinds_of_tensors(self):
        wanted = self.taken("t.safetensors")
        state, zeros = state_of(self.arrays), state_of({n: (d, s, bytes(len(b)))
                                                        for n, (d, s, b) in self.arrays.items()})
        flags = Call("argparse.Namespace", state={"lr": 0.1, "device": Call("torch.device", "cuda")})
        step = {"state": {0: {"step": array("F32", [], struct.pack("<f", 1))}}, "param_groups": [{"lr": 0.1}]}
        parameters = {n: Call("torch._utils._rebuild_parameter", t, True, collections.OrderedDict())
                      for n, t in state.items()}
        first = {n: Call("torch.nn.parameter.Parameter", t, state=(True, False, collections.OrderedDict()))
                 for n, t in state.items()}
        oldest = {n: Call("torch.LongTensor" if t[0] == "I64" else "torch.FloatTensor",
                          state=(Storage(t[0], t[2]), 0, tuple(t[1]), tuple(dense(t[1]))))
                  for n, t in self.arrays.items()}
        # Python 2 wrote an OrderedDict as the list of its pairs.
        listed = Call("collections.OrderedDict", [[n, t] for n, t in state.items()])
        inner = collections.OrderedDict(state)
        for name, value in (("state_dict", {"epoch": 3, "state_dict": inner, "optimizer": step, "args": flags}),
                            ("model", {"model": inner, "lr_scheduler": Call("collections.Counter", {30: 1})}),
                            ("averages", {"state_dict": zeros, "state_dict_ema": inner}),
                            ("averages of the model", {"model": zeros, "model_ema": inner}),
                            ("a network that is called model", {"arch": "net", "model": "net", "state_dict": inner}),
                            ("parameters", parameters), ("first parameters", first), ("oldest", oldest),
                            ("pairs", listed), ("behind a wrapper", {"module." + n: t for n, t in state.items()})):
            for form in (archive, older):
                with self.subTest(name, form=form.__name__):
                    self.assertEqual(self.taken_of(form(value)), wanted)

    def test_a_training_begins_with_it(self):
        self.write("w.pth", archive(state_of(self.arrays)))
        self.expect(0, "--model", "net.json", "--data", "data", "--threads", "1", "--out", "again", "--weights",
                    "w.pth", "--lr", "0", "--freeze", "*norm", says=["15 of 15 parameter arrays are those of w.pth"])
        self.assertEqual({n: t[2] for n, t in read_arrays(self.path("again/weights.safetensors"))[1].items()},
                         {n: t[2] for n, t in read_arrays(self.path("run/weights.safetensors"))[1].items()})
        self.expect(65, "eval", "--data", "data", "--weights", "w.pth", says=["does not say its format"])
        os.makedirs(self.path("files"))
        os.rename(self.path("w.pth"), self.path("files/w.pth"))
        self.expect(65, "eval", "--data", "data", "--weights", "files",
                    says=["holds w.pth: name the file, --weights files/w.pth"])

    def refused(self, data, says, remedy="save the arrays alone"):
        """With code 65, within 20 seconds of CPU time."""
        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        self.write("bad.pth", data)
        begin = time.monotonic()
        done = subprocess.run([PROGRAM, "--model", "net.json", "--data", "data", "--weights", "bad.pth", "--dry-run",
                               "--threads", "1"], cwd=self.folder, text=True, capture_output=True, timeout=100,
                              preexec_fn=limit)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertIn("(it cannot be loaded); " + remedy, done.stderr)
        self.assertNotIn("safetensors", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertLess(time.monotonic() - begin, 60)

    def test_a_program_is_not_run(self):
        for name in ("os.system", "posix.system", "builtins.eval", "__builtin__.exec", "subprocess.Popen",
                     "torch.load", "torch.hub.load", "torch._utils._rebuild_tensor_v2.__globals__", "net.Net"):
            for form in (archive, older):
                state = state_of(self.arrays)
                state["evil"] = Call(name, f"touch {self.path('made')}")
                with self.subTest(name, form=form.__name__):
                    self.refused(form(state), f"names {name}, and nothing of a program is run here")
        self.assertFalse(os.path.exists(self.path("made")))

    def test_bombs(self):
        with self.subTest("deep"):  # a tuple in a tuple in a tuple ...
            self.refused(self.of_pickle(b"\x80\x02)" + b"\x85" * 2_000_000 + b"."), "holds no arrays by name")
        with self.subTest("a list that has itself"):
            self.refused(self.of_pickle(b"\x80\x02]q\x00" + b"h\x00a" * 500_000 + b"."), "holds no arrays by name")
        with self.subTest("parts"):
            self.refused(self.of_pickle(b"\x80\x02" + b"N" * 5_000_000 + b"."), "over 4,000,000 parts")
        with self.subTest("kept values"):
            kept = b"".join(b"]r" + struct.pack("<I", i * 977) for i in range(900_000))
            self.refused(self.of_pickle(b"\x80\x02" + kept + b"."), "holds no arrays by name")
        with self.subTest("lists of a dict, each the same"):
            lists = b"(]q\x00" + b"h\x00" * 1_000_000 + b"tR."
            self.refused(self.of_pickle(b"\x80\x02ccollections\nOrderedDict\n" + lists), "a dict of several lists")
        with self.subTest("a long name"):
            self.refused(archive(state_of({"n" * 5000: ("F32", [1], bytes(4))})), "a name of over 4,096 bytes")
        with self.subTest("a text of many bytes"):
            self.refused(self.of_pickle(b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"."), "it ends too early")
        with self.subTest("long"):
            self.refused(self.of_pickle(b"\x80\x02" + (b"X" + struct.pack("<I", 1 << 20) + b"." * (1 << 20)) * 70 +
                                        b"."), "over 64 MB")
        with self.subTest("a compressed archive"):
            self.refused(archive(state_of({"a": ("F32", [25_000_000], bytes(100_000_000))}), compressed=True),
                         "compressed zip archive", "copy or fetch it again")

    @staticmethod
    def of_pickle(data):
        """An archive of this pickle alone."""
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as z:
            z.writestr("weights/data.pkl", data)
        return file.getvalue()

    def test_files_that_are_cut_or_none(self):
        for form, remedy in ((archive, "copy or fetch it again"), (older, "save the arrays alone")):
            whole = form(state_of(self.arrays))
            for part in (80, len(whole) // 3, len(whole) - 30):
                with self.subTest(form.__name__, bytes=part):
                    self.refused(whole[:part], "it cannot be loaded", remedy)
        damaged = bytearray(archive(state_of(self.arrays)))
        damaged[damaged.index(self.arrays["wide.weight"][2])] ^= 1
        self.refused(bytes(damaged), "has not the checksum that the archive has for it", "copy or fetch it again")
        self.refused(b"404: Not Found", "is no file of torch.save(), though it is called one", "check --weights")
        lost = state_of({"a": ("F32", [1], bytes(4)), "b": ("F32", [1], bytes(4))})
        key = lost["b"].parts[1][0].key
        self.refused(archive(lost, leave_out=[key]), f"lacks the numbers {key}")
        self.refused(pickle.dumps({"a": 1}, 2), "none that torch.save wrote")
        self.refused(archive({"epoch": 3, "net": {"x": 1}}), "holds no arrays by name (it has epoch, net)")
        self.refused(archive([1, 2]), "holds no arrays by name")
        self.refused(archive(state_of(self.arrays), byteorder=b"big"), "the highest byte first")
        self.refused(older(state_of(self.arrays), little=False), "the highest byte first")


if __name__ == "__main__":
    unittest.main()
