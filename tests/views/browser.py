"""A real browser, driven through a pipe: what a page asks for, what it complains about, and what its script does."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--mute-audio"),
    *("--disable-dev-shm-usage", "--window-size=1280,1000", "--remote-debugging-pipe"),
)
PATIENCE = 60.0


class Navigated(AssertionError):
    """The page went to another address while it was asked."""


class Browser:
    """One browser with one page."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._number = 0
        self._rest = b""
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def open(self, page: Path, scheme: str = "light") -> None:
        """Shows a page that is a file, for somebody who likes it light or dark."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.complaints, self.requests = [], []
        self.call("Page.navigate", url=page.as_uri())
        self.until("location.href !== 'about:blank' && document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """What an expression comes to in the page; promises are awaited."""
        told = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def until(self, condition: str) -> None:
        """Until an expression is true in the page, also in one whose own scripts do not run."""
        end = time.monotonic() + PATIENCE
        while not self._is_true(condition):
            assert time.monotonic() < end, f"it never came: {condition}"

    def _is_true(self, condition: str) -> bool:
        try:
            return bool(self.run(condition))
        except Navigated:
            return False

    def press(self, key: str) -> None:
        """One key, as a person presses it."""
        text = {"Enter": "\r", "Escape": ""}.get(key, key)
        code = {"Enter": 13, "Escape": 27}.get(key, ord(key.upper()) if len(key) == 1 else 0)
        for type_ in ("keyDown", "keyUp"):
            down = {"text": text} if type_ == "keyDown" and text else {}
            self.call("Input.dispatchKeyEvent", type=type_, key=key, windowsVirtualKeyCode=code, **down)

    def settle(self) -> None:
        """Until the page has painted what it was told."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """One command and its answer; events that come meanwhile are taken down."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._write(message)
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                if "Inspected target navigated" in str(answer.get("error")):
                    raise Navigated(answer)
                assert "error" not in answer, answer
                return dict(answer["result"])
            self._event(answer)

    def _write(self, message: object) -> None:
        text = memoryview(json.dumps(message).encode() + b"\0")
        while text:
            text = text[os.write(self._to, text) :]

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._back], [], [], PATIENCE)
            assert ready, "the browser does not answer"
            part = os.read(self._back, 1 << 20)
            assert part, "the browser went away"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(text))

    def _event(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser for as long as the `with` lasts."""
    assert CHROMIUM is not None
    (theirs, to), (back, answers) = os.pipe(), os.pipe()

    def joined() -> None:
        # It reads commands from descriptor 3 and writes answers to 4; none of ours stands in the way up here.
        commands, told = fcntl.fcntl(theirs, fcntl.F_DUPFD, 100), fcntl.fcntl(answers, fcntl.F_DUPFD, 100)
        os.dup2(commands, 3)
        os.dup2(told, 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(3, 4),
            preexec_fn=joined,  # nothing else runs in this process
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(answers)
        try:
            yield Browser(to, back)
        finally:
            os.close(to)
            os.close(back)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
