"""The API as typed methods, a module for each group of the specification.

auth               Authentication
users              Users
user_access        User Access
user_certificates  User Certificates
certificates       Certificate Management
groups             Manual Groups
smart_groups       Smart Groups
custom_fields      Custom Fields
content            Content Catalog
content_targets    Content Targeting
analytics          Analytics

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from lmsconf.api.sdk.analytics import Analytics
from lmsconf.api.sdk.auth import Auth
from lmsconf.api.sdk.certificates import Certificates
from lmsconf.api.sdk.content import Content
from lmsconf.api.sdk.content_targets import ContentTargets
from lmsconf.api.sdk.custom_fields import CustomFields
from lmsconf.api.sdk.groups import Groups
from lmsconf.api.sdk.smart_groups import SmartGroups
from lmsconf.api.sdk.user_access import UserAccess
from lmsconf.api.sdk.user_certificates import UserCertificates
from lmsconf.api.sdk.users import Users

__all__ = [
    "Analytics",
    "Auth",
    "Certificates",
    "Content",
    "ContentTargets",
    "CustomFields",
    "Groups",
    "SmartGroups",
    "UserAccess",
    "UserCertificates",
    "Users",
]
