"""Tests that need scripts/two_hosts."""
import subprocess
import unittest


def main(two_hosts):
    """The exit code of the tests of the caller's module: 77 where the script, with these words, can make no hosts."""
    tried = subprocess.run([*two_hosts, "true"], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    if tried.returncode == 77:
        print(tried.stderr, end="")
        return 77
    return 0 if unittest.main(module="__main__", exit=False).result.wasSuccessful() else 1
