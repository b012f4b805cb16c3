"""What scripts/views looks at: views.py trace|many|replay|demo FOLDER BROWSER, views.py monitor FOLDER BROWSER BIN,
views.py figures FOLDER BROWSER FILE.."""

import json
import os
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


def many(folder, program):
    """A page of very many ranks and events stays usable: how long it takes to appear, and to be zoomed."""
    with open(f"{folder}/many.json") as file:
        job = json.load(file)
    with Browser(program, folder) as browser:
        browser.open(f"file://{folder}/many.html")
        assert int(browser.text("n-ranks")) == len(job["ranks"]) >= 1000
        paint = Browser.until("the first paint", lambda: browser.value(
            "(performance.getEntriesByName('first-contentful-paint')[0] || {}).startTime"))
        drawn = lambda: browser.value(
            "(() => { const begin = performance.now(); drawTimeline(); drawCurves(); return performance.now() - begin; })()")
        said = []
        for rows in ("by-pe", "by-rank"):
            browser.click(rows)
            for what, part in [("all", 1), ("a hundredth", 1e-2)]:
                browser.value(f"look({browser.value('END')} * .5, {browser.value('END')} * (.5 + {part} / 2))")
                said.append(f"{rows[3:]}s, {what}: {drawn():.0f} ms")
        browser.click("whole")
        browser.picture(f"{folder}/many.png")
        print(f"{len(job['ranks'])} ranks, {job['sent'] + job['matched']} sends and receives,"
              f" {os.path.getsize(f'{folder}/many.html') / 1e6:.1f} MB: first paint after {paint:.0f} ms; drawn anew: {'; '.join(said)}")


def replay(folder, program):
    with Browser(program, folder) as browser:
        browser.open(f"file://{folder}/replay.html")
        rows = browser.value("data.rows.map(it => it.name)")
        assert len(rows) > 3, rows
        for canvas in ("curve", "before", "after"):
            assert browser.colours(canvas) > 3, f"{canvas} is blank"
        browser.value("document.querySelectorAll('#rows button')[1].click()")
        assert browser.text("name") == rows[1]
        browser.picture(f"{folder}/replay.png")
        browser.axe(folder)
        browser.dark(True)
        browser.picture(f"{folder}/replay-dark.png")
    print(f"the page of a replay shows {len(rows)} rows; a picture: {folder}/replay.png")


def demo(folder, program):
    with Browser(program, folder) as browser:
        browser.open(f"file://{folder}/demo.html")
        rows = browser.value("[...document.querySelectorAll('table tr')].slice(1).map(it => it.cells[0].textContent)")
        pages = browser.value("[...document.querySelectorAll('a')].map(it => it.getAttribute('href'))")
        assert len(rows) == len(pages) == 4, (rows, pages)
        assert browser.value("document.querySelectorAll('svg circle').length") >= 5
        browser.picture(f"{folder}/demo.png")
        browser.axe(folder)
        browser.dark(True)
        browser.picture(f"{folder}/demo-dark.png")
        browser.dark(False)
        for page in pages:
            browser.open(f"file://{folder}/{page}")
            assert browser.colours("timeline") > 3, page
    print(f"the demo's page shows {', '.join(rows)}; a picture: {folder}/demo.png")


def figures(folder, program, *files):
    """No label of a figure is cut off or written over another one."""
    with Browser(program, folder) as browser:
        wrong = []
        for file in files:
            browser.open(f"file://{os.path.realpath(file)}")
            texts = browser.value(
                "(() => { const all = document.documentElement.getBoundingClientRect();"
                " return [[all.left, all.top, all.right, all.bottom, ''], ...[...document.querySelectorAll('text')].map(it => {"
                " const box = it.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom, it.textContent.trim()]; })]; })()")
            whole, *texts = texts
            for box in texts:
                if box[0] < whole[0] - 1 or box[1] < whole[1] - 1 or box[2] > whole[2] + 1 or box[3] > whole[3] + 1:
                    wrong.append(f"{file}: {box[4]} is cut off")
            for at, a in enumerate(texts):
                for b in texts[at + 1:]:
                    wide = min(a[2], b[2]) - max(a[0], b[0])
                    high = min(a[3], b[3]) - max(a[1], b[1])
                    # The box of a text has room above and below its letters.
                    if wide > 2 and high > 6:
                        wrong.append(f"{file}: {a[4]} and {b[4]} are in one place")
        assert not wrong, "\n".join(wrong)
    print(f"{len(files)} figures: no label is cut off or on another one")


if __name__ == "__main__":
    looks = {"trace": trace, "monitor": monitor, "many": many, "replay": replay, "demo": demo, "figures": figures}
    looks[sys.argv[1]](*sys.argv[2:])
