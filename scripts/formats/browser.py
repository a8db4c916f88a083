"""Pages of a folder in a Chromium without a window, and JavaScript in them. Python's standard library only: DevTools'
protocol goes through a pipe, which needs neither a port nor WebSockets."""
import functools
import http.server
import json
import os
import subprocess
import tempfile
import threading
import time


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Browser:
    """Serves a folder to a Chromium of its own, which reaches nothing else. Use it with `with`."""

    def __init__(self, folder):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}/"
        self.profile = tempfile.TemporaryDirectory(prefix="cputrain-chromium-", ignore_cleanup_errors=True)
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        # Containers have little shared memory.
        chromium = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                    "--remote-debugging-pipe", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                    "--user-data-dir=" + self.profile.name]
        # Chromium takes descriptors 3 and 4.
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "-", *chromium],
                                        pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.out, self.answers, self.calls = os.fdopen(ours_out, "wb", 0), os.fdopen(ours_in, "rb", 0), 0
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.out.close()
        self.answers.close()
        self.server.shutdown()
        self.server.server_close()
        self.profile.cleanup()

    def message(self):
        while b"\0" not in self.rest:
            read = self.answers.read(1 << 16)
            if not read:
                raise RuntimeError("Chromium ended")
            self.rest += read
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        self.calls += 1
        call = {"id": self.calls, "method": method, "params": parameters}
        self.out.write(json.dumps({**call, "sessionId": session} if session else call).encode() + b"\0")
        while (answer := self.message()).get("id") != self.calls:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, path, ready, seconds=30):
        """A new page of the folder, once the JavaScript `ready` is true in it; TimeoutError after `seconds`."""
        target = self.call("Target.createTarget", url=self.address + path)["targetId"]
        page = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        end = time.monotonic() + seconds
        while self.run(page, f"document.readyState == 'complete' && Boolean({ready})") is not True:
            if time.monotonic() > end:
                raise TimeoutError(f"{path} was not ready in {seconds} s")
            time.sleep(0.1)
        return page

    def darken(self, page):
        """Asks the page for dark colours, and waits until it knows."""
        dark = "matchMedia('(prefers-color-scheme: dark)')"
        self.run(page, f"window.darkened = new Promise(done => {dark}.addEventListener('change', done)); 0")
        self.call("Emulation.setEmulatedMedia", page, features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.run(page, "darkened.then(() => 0)")

    def run(self, page, script):
        """The value of a JavaScript expression, of its promise too; what it throws is RuntimeError."""
        done = self.call("Runtime.evaluate", page, expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            thrown = done["exceptionDetails"]
            raise RuntimeError(thrown.get("exception", {}).get("description", thrown["text"]).split("\n")[0])
        return done["result"].get("value")
