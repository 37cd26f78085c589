"""A hundred mistakes of a first day: each message names what is wrong, where it is, and what to do next.

The messages are in tests/golden/first_day.txt; to write it:
`pytest tests/views/test_first_day.py --update-golden`, without -n.
"""

import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from pathlib import Path

import pytest
from flow.shell import Ran, lmsconf
from views.first_day import MISTAKES, Mistake

from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox

GOLDEN = Path(__file__).parent.parent / "golden" / "first_day.txt"


def sections() -> dict[str, str]:
    """The golden file: title → command line, exit code and message."""
    found = {}
    for part in GOLDEN.read_text(encoding="utf-8").split("=== ")[1:]:
        title, _, rest = part.partition("\n")
        found[title] = rest
    return found


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's proxies and certificates."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A workspace on the network."""
    sandbox = Sandbox(":memory:")
    with serve(sandbox) as server:
        yield server.url
    sandbox.close_workspace()


def made(mistake: Mistake, root: Path, url: str) -> str:
    """The command line, the exit code, and all that is written to the terminal."""
    mistake.write(root)
    secured = url.replace("http", "https")
    env = {name: value.replace("SERVED", url).replace("SECURED", secured) for name, value in mistake.env.items()}
    with ExitStack() as streams:
        kept = ("stdin", "stdout", "stderr")
        if mistake.stdout:
            kept = ("stdin", "stderr")
            streams.enter_context(redirect_stdout(streams.enter_context(Path(mistake.stdout).open("w"))))
        ran = lmsconf(root / mistake.folder, *mistake.command, env=env, streams=kept)
    return f"$ {line(mistake)}\n{shown(ran, root, url)}[exit {ran.code}]\n\n"


def line(mistake: Mistake) -> str:
    """The command line as it is typed."""
    env = [f"{name}={shlex.quote(value)}" for name, value in mistake.env.items()]
    to = [f"> {mistake.stdout}"] if mistake.stdout else []
    return " ".join([*env, "lmsconf", *(shlex.quote(word) for word in mistake.command), *to])


def shown(ran: Ran, root: Path, url: str) -> str:
    """Its output without what differs from run to run: folders, ports, digests, times and tries."""
    text = re.sub(r"Topics are .*\.", "Topics are ….", ran.out + ran.err)
    text = text.replace(str(root), "/home/anna/lms").replace(url.partition("://")[2], "HOST:PORT")
    text = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", re.sub(r" \(tried \d+ times\)", "", text))
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)


@pytest.mark.sampled
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_is_explained(mistake: Mistake, tmp_path: Path, url: str, request: pytest.FixtureRequest) -> None:
    """The message is the one of the golden file, which was read by eyes that had not seen the code."""
    text = made(mistake, tmp_path, url)
    if request.config.getoption("--update-golden", default=False):
        known = {**sections(), mistake.title: text} if GOLDEN.exists() else {mistake.title: text}
        GOLDEN.write_text("".join(f"=== {one.title}\n{known[one.title]}" for one in MISTAKES if one.title in known))
    assert sections()[mistake.title] == text


def test_each_message_says_what_and_what_next() -> None:
    """Each mistake that is refused has an error with its code, and below it what to do; none is a traceback."""
    written = sections()
    assert list(written) == [mistake.title for mistake in MISTAKES]
    assert len(written) >= 100
    for title, text in written.items():
        errors = re.findall(r"^.*\berror: .*", text, re.MULTILINE)
        if errors:
            assert all(re.search(r" \[[\w/-]+\]$", error) for error in errors), title
            assert re.search(r" \[[\w/-]+\]\n(  .*\n)+", text), title
        assert "[exit 0]" in text or errors, title
        assert "Traceback" not in text
