"""What scripts/views compares: views.py trace FOLDER BROWSER, views.py monitor FOLDER BROWSER BIN."""

import json
import re
import subprocess
import sys

from browser import Browser


def perfetto(folder, job):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    trace = perfetto_trace_pb2.Trace()
    with open(f"{folder}/job.pftrace", "rb") as file:
        trace.ParseFromString(file.read())
    tracks = {packet.track_descriptor.uuid for packet in trace.packet if packet.HasField("track_descriptor")}
    events = [packet.track_event for packet in trace.packet if packet.HasField("track_event")]
    named = lambda name: [event for event in events if event.name == name]
    assert len(named("send")) == job["sent"] and len(named("receive")) == job["matched"]
    assert sum(" leaves for PE " in event.name for event in events) == job["moves"]
    assert {event.track_uuid for event in events} <= tracks, "events on tracks that there are not"
    begun = {flow for event in events for flow in event.flow_ids}
    ended = {flow for event in events for flow in event.terminating_flow_ids}
    assert begun == ended and len(begun) == job["sent"] + job["moves"], "arrows without an end"
    kinds = [sum(event.type == kind for event in events) for kind in (1, 2)]
    assert kinds[0] == kinds[1] > 0, f"{kinds[0]} slices begin, {kinds[1]} end"
    return f"{len(events)} Perfetto events on {len(tracks)} tracks"


def trace_page(browser, folder, job):
    browser.open(f"file://{folder}/job.html")
    for cell, value in [("n-sent", job["sent"]), ("n-matched", job["matched"] - job["put_back"]),
                        ("n-moves", job["moves"]), ("n-steps", job["steps"]), ("n-between", job["between_pes"])]:
        assert int(browser.text(cell)) == value, f"the page says {browser.text(cell)} for {cell}, the job {value}"
    for canvas, least in [("timeline", 5), ("curves", 5), ("imbalance", 3), ("matrix", 2)]:
        assert browser.colours(canvas) > least, f"{canvas} is blank"
    browser.picture(f"{folder}/job.png")
    browser.dark(True)
    browser.picture(f"{folder}/dark.png")
    browser.dark(False)
    # The page has every run of the trace, and no other.
    runs = browser.value("rows.ranks.reduce((n, row) => n + barsOf(row).what.reduce((m, it) => m + (it > 1 && !(it & 1)), 0), 0)")
    seconds = browser.value("rows.ranks.reduce((n, row) => { const { begin, end, what, count } = barsOf(row);"
                            " for (let k = 0; k < count; k++) if (what[k] > 1 && !(what[k] & 1)) n += end[k] - begin[k]; return n; }, 0) / 1e9")
    said = sum(it["run"] for it in job["ranks"].values())
    assert runs >= len(job["ranks"]) and abs(seconds - said) < 0.01 * said, f"{runs} runs, {seconds} s; the job says {said} s"
    # However closely somebody looks, each tick has another label.
    ticks = ("((from, to) => { const step = stepOf(to - from), all = [];"
             " for (let i = Math.ceil(from / step); i * step <= to; i++) all.push(tickTime(i * step, step, to));"
             " return [all.length, new Set(all).size]; })")
    end = browser.value("data.end")
    for part in [1, 1e-2, 1e-4, 1e-6]:
        labels, different = browser.value(f"{ticks}({end} / 2, {end} / 2 + {part} * {end} / 2)")
        assert different == labels > 1, f"{labels} ticks, {different} labels at a zoom of {part}"

    seen = lambda: browser.value("[from, to]")
    width = lambda: seen()[1] - seen()[0]
    whole = seen()
    assert whole == [0, browser.value("data.end")]
    x, y = browser.middle("timeline")
    browser.mouse("mouseMoved", x, y)
    under = browser.value(
        "(() => { const box = canvas.getBoundingClientRect();"
        f" return from + ({x} - box.x - LEFT) / (box.width - LEFT) * (to - from); }})()")
    for _ in range(6):
        browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
    Browser.until("the zoom", lambda: width() < 0.1 * (whole[1] - whole[0]))
    assert seen()[0] < under < seen()[1], "what was under the mouse is out of sight"
    before = seen()
    browser.drag(x, y, x - 100)
    Browser.until("the drag", lambda: seen()[0] > before[0])
    assert abs(width() - (before[1] - before[0])) < 1e-6 * whole[1], "dragging zooms"

    # The tip names the bar that the data have there.
    x, y = browser.value(
        "(() => { const bars = barsOf(rows.pes[0]), box = canvas.getBoundingClientRect(); let best = -1;"
        " for (let k = 0; k < bars.count; k++) if (bars.what[k] && bars.begin[k] >= from && bars.end[k] <= to"
        " && (best < 0 || bars.end[k] - bars.begin[k] > bars.end[best] - bars.begin[best])) best = k;"
        " return [box.x + LEFT + ((bars.begin[best] + bars.end[best]) / 2 - from) / (to - from) * (box.width - LEFT), box.y + TOP + rowHeight() / 2]; })()")
    browser.mouse("mouseMoved", x, y)
    Browser.until("the tip", lambda: re.match(r"PE 0: rank \d+\n", browser.text("tip")))
    browser.picture(f"{folder}/zoomed.png")
    browser.click("by-rank")
    assert browser.value("by") == "ranks" and browser.value("document.getElementById('by-rank').getAttribute('aria-pressed')") == "true"
    browser.click("whole")
    assert seen() == whole
    browser.picture(f"{folder}/ranks.png")

    # By keyboard: a rank is found, its next run is shown closely, and then all is shown again.
    browser.key("/")
    browser.write("rank 3")
    browser.key("Enter")
    assert browser.value("chosen && chosen.kind === 'ranks' && chosen.number === 3 && document.activeElement === canvas")
    browser.key("n")
    Browser.until("a run", lambda: width() < whole[1])
    assert browser.value("(() => { const { begin, end, what, count } = barsOf(chosen);"
                         " for (let k = 0; k < count; k++) if (begin[k] < to && end[k] > from && what[k] > 1 && !(what[k] & 1)) return true; return false; })()")
    browser.value("look((from + to) / 2 - 500, (from + to) / 2 + 500)")
    assert abs(width() - 1000) < 1, "a microsecond cannot be shown"
    browser.value("drawTimeline()")
    browser.picture(f"{folder}/run.png")
    browser.key("Home")
    Browser.until("the whole job", lambda: seen() == whole)
    browser.axe(folder)


def trace(folder, program):
    with open(f"{folder}/job.json") as file:
        job = json.load(file)
    told = perfetto(folder, job)
    with Browser(program, folder) as browser:
        trace_page(browser, folder, job)
    print(f"page and Perfetto file have the job's {job['sent']} messages and {job['moves']} moves; {told};"
          f" the page zooms; pictures: {folder}/job.png, zoomed.png, ranks.png")


def monitor(folder, program, binaries):
    ranks = 32
    job = subprocess.Popen(
        [f"{binaries}/rocket-mini", "jacobi", "--pes", "2", "--ranks", str(ranks), "--uneven", "0.25:8", "--size", "48",
         "--max-iterations", "1000000", "--tolerance", "0", "--lb", "greedy-refine", "--lb-period", "200ms",
         "--no-verify", "--monitor", "0"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        address = re.search(r"the monitor is at (\S+)", job.stderr.readline())[1]
        with Browser(program, folder) as browser:
            browser.open(address)
            number = lambda cell: int(browser.text(cell) or 0)
            Browser.until("moves", lambda: browser.value("shot && shot.moves.length > 0"))
            Browser.until("a curve", lambda: browser.value("history.length > 6"))
            browser.click("pause")
            Browser.until("the pause", lambda: browser.value("paused"))
            shot = browser.value("shot")
            assert (number("n-pes"), number("n-ranks"), number("n-ended")) == (2, ranks, 0)
            assert number("n-sent") == shot["messages"] == sum(it["messages"] for it in shot["ranks"]) > 0
            assert number("n-process") == job.pid
            once = subprocess.run([f"{binaries}/vrtrun", "top", str(job.pid)], capture_output=True, text=True, check=True)
            later = int(re.search(r"; (\d+) messages ", once.stdout)[1])
            assert later >= number("n-sent"), f"vrtrun top says {later} messages later, the page {number('n-sent')}"
            assert browser.colours("history") > 3, "the curves are blank"
            cells = lambda table, column: browser.value(
                f"[...document.getElementById('{table}').rows].slice(1).map(row => row.cells[{column}].textContent)")
            assert cells("ranks", 0) == [str(rank) for rank in range(ranks)]
            browser.click("by-load")
            loads = [float(text.rstrip(" %")) for text in cells("ranks", 3)]
            assert loads == sorted(loads, reverse=True) and loads[0] > 0, loads
            browser.click("by-load")
            assert [float(text.rstrip(" %")) for text in cells("ranks", 3)] == loads[::-1]
            for row, pe in zip(range(2), shot["pes"]):
                parts = [float(cells("pes", column)[row].rstrip(" %")) for column in (2, 3, 4)]
                assert abs(sum(parts) - 100) < 0.2, f"PE {pe['pe']}: {parts}"
            moves = shot["moves"]
            assert cells("moves", 1) == [str(it["rank"]) for it in moves] and moves
            browser.click("by-load")
            browser.picture(f"{folder}/monitor.png")
            browser.axe(folder)
            before = number("n-sent")
            browser.click("pause")
            Browser.until("another look", lambda: number("n-sent") > before)
            browser.open(address.rstrip("/") + "0/")
            assert "token" in browser.value("document.body.textContent")
            browser.open(address)
            Browser.until("the page", lambda: browser.value("shot !== null"))
            job.terminate()
            job.wait()
            Browser.until("the end", lambda: "The job has ended" in browser.text("state"))
        print(f"the monitor's page has the job's {ranks} ranks, {before} messages, {len(moves)} moves seen;"
              f" a picture: {folder}/monitor.png")
    finally:
        job.kill()


if __name__ == "__main__":
    {"trace": trace, "monitor": monitor}[sys.argv[1]](*sys.argv[2:])
