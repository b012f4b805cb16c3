"""A browser without a window that is clicked in and asked what it shows, by its DevTools protocol."""

import base64
import itertools
import json
import re
import subprocess
import time
import urllib.request

import websocket


class Browser:
    """Chromium with one page. What a page complains of is an error."""

    def __init__(self, program, folder, width=1250, height=1400):
        self.log = open(f"{folder}/browser.err", "w+")
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
             f"--user-data-dir={folder}/profile", f"--window-size={width},{height}",
             "--remote-debugging-port=0", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=self.log)
        port = self.until("the browser", self.port)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            pages = [it for it in json.load(answer) if it["type"] == "page"]
        self.socket = websocket.create_connection(pages[0]["webSocketDebuggerUrl"], suppress_origin=True, timeout=60)
        self.numbers = itertools.count(1)
        self.complaints = []
        self.call("Runtime.enable")
        self.call("Page.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def port(self):
        with open(self.log.name) as log:
            found = re.search(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", log.read())
        return found and found[1]

    @staticmethod
    def until(what, is_so, seconds=60):
        """What a function gives once it gives something."""
        end = time.monotonic() + seconds
        while True:
            found = is_so()
            if found:
                return found
            assert time.monotonic() < end, f"waited in vain for {what}"
            time.sleep(0.05)

    def call(self, method, **parameters):
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("method") == "Runtime.exceptionThrown":
                self.complaints.append(message["params"]["exceptionDetails"])
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message}"
                return message["result"]

    def open(self, address):
        self.call("Page.navigate", url=address)
        self.until(address, lambda: self.value("document.readyState === 'complete' && location.href !== 'about:blank'"))

    def value(self, expression):
        """What an expression has in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, f"{expression}: {result['exceptionDetails']}"
        assert not self.complaints, self.complaints
        return result["result"].get("value")

    def text(self, element):
        return self.value(f"document.getElementById('{element}').textContent")

    def middle(self, element):
        """The middle of an element, which is scrolled to."""
        box = self.value(
            f"(() => {{ const it = document.getElementById('{element}'); it.scrollIntoView({{ block: 'center' }});"
            " const box = it.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; })()")
        return box[0] + box[2] / 2, box[1] + box[3] / 2

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, element):
        x, y = self.middle(element)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def drag(self, x, y, to_x):
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseMoved", to_x, y, button="left", buttons=1)
        self.mouse("mouseReleased", to_x, y, button="left", clickCount=1)

    def key(self, key):
        """Presses a key: one letter, or a name such as Enter."""
        text = {"text": key} if len(key) == 1 else {}
        code = {"Enter": 13, "Home": 36, "Escape": 27}.get(key, ord(key[0].upper()))
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **(text if kind == "keyDown" else {}))

    def write(self, text):
        self.call("Input.insertText", text=text)

    def dark(self, is_dark):
        scheme = "dark" if is_dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        # What is drawn follows before the next picture.
        self.value("1")
        time.sleep(0.2)

    def axe(self, folder):
        """What axe-core (npm) finds: no serious fault, light or dark. Its file is in the folder above, if it could be had."""
        try:
            with open(f"{folder}/axe.min.js") as file:
                source = file.read()
        except FileNotFoundError:
            print("axe-core is not there: accessibility is not checked")
            return
        for is_dark in (False, True):
            self.dark(is_dark)
            self.value(source + "; true")
            result = self.call("Runtime.evaluate", expression="axe.run().then(it => it.violations.map(it => [it.impact, it.id, it.nodes.length, it.nodes[0].html]))",
                               returnByValue=True, awaitPromise=True)
            found = result["result"]["value"]
            serious = [it for it in found if it[0] in ("serious", "critical")]
            assert not serious, serious
        self.dark(False)

    def colours(self, canvas):
        """How many colours a canvas has; a blank one has one."""
        return self.value(
            f"(() => {{ const it = document.getElementById('{canvas}');"
            " const all = new Uint32Array(it.getContext('2d').getImageData(0, 0, it.width, it.height).data.buffer);"
            " return new Set(all).size; })()")

    def picture(self, file):
        self.value("scrollTo(0, 0)")
        # The window is as high as the page for it: what lies beyond a window is not always drawn.
        width, before, height = self.value("[innerWidth, innerHeight, document.documentElement.scrollHeight]")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        shot = self.call("Page.captureScreenshot", format="png")
        self.call("Emulation.clearDeviceMetricsOverride")
        self.until("the window's own height", lambda: self.value("innerHeight") == before)
        with open(file, "wb") as out:
            out.write(base64.b64decode(shot["data"]))
