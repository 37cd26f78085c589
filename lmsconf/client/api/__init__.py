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

from lmsconf.client.api.analytics import Analytics
from lmsconf.client.api.auth import Auth
from lmsconf.client.api.certificates import Certificates
from lmsconf.client.api.content import Content
from lmsconf.client.api.content_targets import ContentTargets
from lmsconf.client.api.custom_fields import CustomFields
from lmsconf.client.api.groups import Groups
from lmsconf.client.api.smart_groups import SmartGroups
from lmsconf.client.api.user_access import UserAccess
from lmsconf.client.api.user_certificates import UserCertificates
from lmsconf.client.api.users import Users

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
