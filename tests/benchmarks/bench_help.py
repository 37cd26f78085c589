"""`lmsconf --help`, beside a click program with as many commands that do nothing.

python tests/benchmarks/bench_help.py [--repeat 31]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from measuring import LMSCONF, in_turn, middle, process, ratio, tell, verdict

from lmsconf.cli import COMMANDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=31, help="counted runs of each")
    repeat = parser.parse_args().repeat
    with tempfile.TemporaryDirectory() as temporary:
        empty = _program(Path(temporary) / "empty")
        ours, theirs = in_turn(repeat, lambda: process([LMSCONF, "--help"]), lambda: process([str(empty), "--help"]))
    tell(f"--help with {len(COMMANDS)} commands, medians of {repeat} runs in turn")
    tell(f"  lmsconf          {middle(ours).wall * 1000:5.0f} ms")
    tell(f"  empty commands   {middle(theirs).wall * 1000:5.0f} ms")
    tell(f"  lmsconf : empty  {ratio(ours, theirs):.2f}  {verdict(ratio(ours, theirs), 1.35)}")


def _program(path: Path) -> Path:
    """A program of click's alone, begun by a script as installers write them, its module compiled like any other."""
    lines = ["import click", "", "@click.group()", "def app():", '    """Nothing."""', ""]
    for name in COMMANDS:
        word = name.replace("-", "_")
        lines += [f"@app.command({name!r})", f"def {word}():", '    """Does nothing at all."""', ""]
    path.parent.joinpath("empty_commands.py").write_text("\n".join(lines), encoding="utf-8")
    script = f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(path.parent)!r})\n"
    path.write_text(script + "from empty_commands import app\nsys.exit(app())\n", encoding="utf-8")
    path.chmod(0o755)
    return path


if __name__ == "__main__":
    main()
