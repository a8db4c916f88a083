"""Local imitations of the metadata services of Google Cloud, AWS and Azure, after their documentation."""
import http.server
import json
import threading
import time


class Service(http.server.ThreadingHTTPServer):
    """At self.url; its `notice` is what it tells, and requests without the right headers are refused."""
    daemon_threads = True

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.notice, self.asked = None, []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, code, text="", **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        self.server.asked.append(self.path)
        self.get()

    def do_PUT(self):
        self.answer(404)


class Google(Handler):
    """`notice`: True once the VM is preempted. A question with the tag of the last answer waits for another."""

    def get(self):
        if self.headers["Metadata-Flavor"] != "Google":
            return self.answer(403, "Missing Metadata-Flavor:Google header.")
        if self.path == "/computeMetadata/v1/instance/id":
            return self.answer(200, "17", Metadata_Flavor="Google")
        if not self.path.startswith("/computeMetadata/v1/instance/preempted?"):
            return self.answer(404)
        words = dict(w.split("=") for w in self.path.split("?")[1].split("&"))
        value = "TRUE" if self.server.notice else "FALSE"
        end = time.time() + float(words["timeout_sec"])
        while words.get("wait_for_change") == "true" and words["last_etag"] == f"tag{value}" and time.time() < end:
            time.sleep(0.02)
            value = "TRUE" if self.server.notice else "FALSE"
        self.answer(200, value, Metadata_Flavor="Google", ETag=f"tag{value}")


class Aws(Handler):
    """`notice`: an instance-action. A recommendation to rebalance is always there. Tokens may run out."""
    token = "secret=="

    def do_PUT(self):
        if self.path != "/latest/api/token" or not self.headers["X-aws-ec2-metadata-token-ttl-seconds"]:
            return self.answer(400)
        self.answer(200, Aws.token)

    def get(self):
        if self.headers["X-aws-ec2-metadata-token"] != Aws.token:
            return self.answer(401)
        if self.path == "/latest/meta-data/events/recommendations/rebalance":
            return self.answer(200, '{"noticeTime": "2030-01-01T00:00:00Z"}')
        if self.path == "/latest/meta-data/spot/instance-action" and self.server.notice:
            return self.answer(200, json.dumps(self.server.notice))
        self.answer(404)


class Azure(Handler):
    """`notice`: a list of events."""

    def get(self):
        if self.headers["Metadata"] != "true":
            return self.answer(400)
        if self.path == "/metadata/instance/compute/name?api-version=2021-02-01&format=text":
            return self.answer(200, "vm-1")
        if self.path != "/metadata/scheduledevents?api-version=2020-07-01":
            return self.answer(404)
        self.answer(200, json.dumps({"DocumentIncarnation": 1, "Events": self.server.notice or []}))


def azure_event(kind, *vms):
    return {"EventId": "A123BC45-1234-5678-AB90-ABCDEF123456", "EventType": kind, "ResourceType": "VirtualMachine",
            "Resources": list(vms), "EventStatus": "Scheduled", "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT",
            "Description": "", "EventSource": "Platform", "DurationInSeconds": -1}
