"""The JSON views: printed exactly as the documents that lmsconf saves."""

from __future__ import annotations

from lmsconf.documents.plan_file import dumps as plan_json
from lmsconf.documents.problems_file import dumps as problems_json
from lmsconf.documents.report_file import dumps as apply_json

__all__ = ["apply_json", "plan_json", "problems_json"]
