"""Files with a line of JSON for each entry."""
import json
import os


def read_lines(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f if line.strip()]


def read_kept(path):
    """Lines that this tool wrote. The last may be half a line, and is not there then."""
    try:
        return read_lines(path)
    except ValueError:
        with open(path) as f:
            return [json.loads(line) for line in f.read().splitlines()[:-1]]


def write_lines(path, lines):
    """All or nothing."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path + ".new", "w") as f:
        f.writelines(json.dumps(line) + "\n" for line in lines)
    os.replace(path + ".new", path)
