"""The folder that a pack is unpacked to. Nothing of it is left, however the day ends."""
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile

PREFIX = "cputrain-day-"
LOCK = "lock"
GUARD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guard.py")


class Workplace:
    """`lock` is held as long as this process lives. The guard cleans up after a day that was killed."""

    def __init__(self):
        remove_dead()
        self.folder = tempfile.mkdtemp(prefix=PREFIX)
        self.guard = None
        try:
            self.lock = locked(self.folder)
        except BaseException:
            self.remove()
            raise

    def start_guard(self, token):
        """It waits for the end of its input, which comes however this process ends."""
        self.guard = subprocess.Popen([sys.executable, "-B", GUARD, token, self.folder], stdin=subprocess.PIPE,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                      cwd="/")

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.guard:
            self.guard.stdin.close()
            self.guard.wait()


def locked(folder):
    """The lock has its name only once it is held, so that no other day takes this one for dead."""
    path = os.path.join(folder, LOCK)
    file = open(path + ".new", "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    os.rename(path + ".new", path)
    return file


def is_own_folder(entry):
    return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid()


def is_dead(folder):
    try:
        with open(os.path.join(folder, LOCK)) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except OSError:
        return False


def remove_dead():
    """Folders of earlier days whose guard was killed, too."""
    for entry in os.scandir(tempfile.gettempdir()):
        if entry.name.startswith(PREFIX) and is_own_folder(entry) and is_dead(entry.path):
            shutil.rmtree(entry.path, ignore_errors=True)
