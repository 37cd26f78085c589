"""How hard the laws are tried: the same examples in every run, or with LAWS=search new ones each time.

With every other commit that is a twentieth of them, with TESTS=all all. In .ci/run each law is tried with every third
commit.

LAWS=quick stops at the first example that fails instead of making it smaller, which can take minutes.
"""

from __future__ import annotations

import os
import pkgutil
from importlib import import_module
from typing import Final

from hypothesis import HealthCheck, Phase, settings
from sampling import PARTS, WHOLE

SEARCH: Final = os.environ.get("LAWS") == "search"
_PHASES: Final = [Phase.explicit, Phase.generate, *([] if os.environ.get("LAWS") == "quick" else [Phase.shrink])]


def tried(number: int) -> settings:
    """Settings for so many examples at most, ten times as many in a search. What an example takes is not limited."""
    return settings(
        max_examples=number * 10 if SEARCH else number if WHOLE else max(1, number // PARTS),
        derandomize=not SEARCH,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        phases=_PHASES,
        report_multiple_bugs=False,
    )


def load_everything() -> None:
    """Imports all of lmsconf: hypothesis takes constants from what is loaded, so the examples would depend on order."""
    import lmsconf

    for found in pkgutil.walk_packages(lmsconf.__path__, "lmsconf."):
        if not found.name.endswith("__main__"):
            import_module(found.name)


load_everything()
