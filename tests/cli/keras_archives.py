"""Zip archives as Keras writes them."""
import io
import zipfile


def archive(files, compressed=False):
    """Bytes of an archive with these files; Keras compresses none."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as z:
        for name, content in files.items():
            z.writestr(name, content)
    return data.getvalue()


def members(data):
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        return {name: z.read(name) for name in z.namelist()}
