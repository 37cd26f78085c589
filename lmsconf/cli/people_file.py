"""The file of `--people`: who gains and who loses what, by e-mail, as JSON or CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lmsconf.errors import UsageError

if TYPE_CHECKING:
    from lmsconf.model.plan import Plan


def check_people_file(file: Path, *, no_effects: bool, masked: bool) -> None:
    """Raise UsageError if the effects of a plan cannot be written to this file."""
    if file.suffix.lower() not in (".json", ".csv"):
        raise UsageError(f"--people {file}: the ending says the format", hint="Write FILE.json or FILE.csv.")
    if no_effects:
        raise UsageError("--people needs the effects of the plan", hint="Leave --no-effects or --people out.")
    if masked:
        raise UsageError("--people names people", hint="Leave --people or --mask-people out.")


def write_people(file: Path, plan: Plan) -> None:
    """Write the people whose access a plan changes, readable only by the owner (mode 0600).

    Raises LmsconfError if who they are is not known.
    """
    from lmsconf.documents.effect_values import people_csv, people_json
    from lmsconf.errors import LmsconfError
    from lmsconf.model.effects import Basis
    from lmsconf.support.atomic_files import write_atomically

    rows = plan.effects.rows
    if rows is None or plan.effects.basis is Basis.UNKNOWN:
        reasons = "; ".join(plan.effects.reasons)
        raise LmsconfError(f"who gains and who loses is not known: {reasons}", hint="Leave --people out.")
    write_atomically(file, people_json(rows) if file.suffix.lower() == ".json" else people_csv(rows))
