"""Ends what a day started and removes its folder when the day is gone, even if SIGKILL ended it:

    guard.py TOKEN FOLDER, whose input ends when the day does
"""
import os
import shutil
import signal
import sys
import time

import processes


def end_politely(mark):
    """mpirun removes its own temporary files when it is asked to end."""
    for process, _ in processes.marked(mark):
        try:
            os.kill(process, signal.SIGTERM)
        except ProcessLookupError:
            pass
    until = time.monotonic() + processes.POLITE_SECONDS
    while time.monotonic() < until and any(processes.marked(mark)):
        time.sleep(0.05)
    processes.end_marked(mark)


def main():
    token, folder = sys.argv[1:]
    sys.stdin.buffer.read()
    end_politely(token + ".")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
