"""What torch.save writes, made by Python's pickle module alone: the zip archive of today, and the pickles of PyTorch
before 1.6. Names of PyTorch are written, and nothing of it has to be there."""
import collections
import io
import pickle
import struct
import zipfile

KINDS = {"F32": ("FloatStorage", 4), "F64": ("DoubleStorage", 8), "F16": ("HalfStorage", 2),
         "BF16": ("BFloat16Storage", 2), "I64": ("LongStorage", 8)}
MAGIC, VERSION = 0x1950a86a20f9469cfc6c, 1001


class Global:
    """A name that a pickle has, which is not looked for as it is written."""

    def __init__(self, name):
        self.module, _, self.name = name.rpartition(".")

    def __call__(self):
        raise AssertionError("what is written is not called")


class Call:
    """An object that is made by a call of such a name; `state` is given to it then."""

    def __init__(self, function, *arguments, state=None):
        self.parts = (Global(function), arguments, *([state] if state is not None else []))

    def __reduce__(self):
        return self.parts


class Storage:
    def __init__(self, dtype, data, key=None, count=None):
        self.kind, size = KINDS[dtype]
        self.data, self.key = data, key or str(id(self))
        self.count = len(data) // size if count is None else count


def dense(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    return strides


def array(dtype, shape, data, strides=None, offset=0, storage=None):
    """A tensor, of its own bytes or of a storage that others read, too."""
    return Call("torch._utils._rebuild_tensor_v2", storage or Storage(dtype, data), offset, tuple(shape),
                tuple(dense(shape) if strides is None else strides), False, collections.OrderedDict())


class Pickler(pickle._Pickler):  # the one in Python, which can be taught names
    def __init__(self, file, protocol, older=False):
        super().__init__(file, protocol)
        self.storages, self.older = {}, older

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        self.storages[value.key] = value
        name = ("storage", Global("torch." + value.kind), value.key, "cpu", value.count)
        return (*name, None) if self.older else name

    def save(self, value, save_persistent_id=True):
        if isinstance(value, Global):
            return self.write(pickle.GLOBAL + f"{value.module}\n{value.name}\n".encode())
        return super().save(value, save_persistent_id)


def pickled(value, protocol=2, older=False):
    """(bytes, storages)"""
    file = io.BytesIO()
    pickler = Pickler(file, protocol, older)
    pickler.dump(value)
    return file.getvalue(), pickler.storages


def archive(value, protocol=2, compressed=False, byteorder=b"little", root="weights", leave_out=()):
    """The zip archive of PyTorch from 1.6 on."""
    data, storages = pickled(value, protocol)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as z:
        z.writestr(root + "/data.pkl", data)
        z.writestr(root + "/byteorder", byteorder)
        for key, storage in storages.items():
            if key not in leave_out:
                z.writestr(f"{root}/data/{key}", storage.data)
        z.writestr(root + "/version", "3\n")
    return file.getvalue()


def older(value, little=True):
    """Pickles, one behind the other, then the numbers."""
    data, storages = pickled(value, older=True)
    machine = {"protocol_version": VERSION, "little_endian": little, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    keys = sorted(storages)
    parts = [pickle.dumps(MAGIC, 2), pickle.dumps(VERSION, 2), pickle.dumps(machine, 2), data, pickle.dumps(keys, 2)]
    for key in keys:
        parts += [struct.pack("<q", storages[key].count), storages[key].data]
    return b"".join(parts)


def state_of(arrays):
    """Of {name: (dtype, shape, bytes)}, as formats.read_arrays() gives them."""
    return collections.OrderedDict((name, array(*parts)) for name, parts in arrays.items())
