"""The documents that scripts rely on. They print exactly as they are saved."""

from __future__ import annotations

from lmsconf.core.planfile import dumps as plan_json
from lmsconf.core.problemsfile import dumps as problems_json
from lmsconf.core.reportfile import dumps as apply_json

__all__ = ["apply_json", "plan_json", "problems_json"]
