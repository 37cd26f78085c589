"""The specification's group Custom Fields, one method an operation.

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from __future__ import annotations

from typing import cast

from lmsconf.api.endpoint_group import LEFT_OUT, EndpointGroup, LeftOut, ListOf
from lmsconf.api.sdk.messages import CustomFieldsCreateChoice, CustomFieldsReplaceChoice
from lmsconf.api.sdk.resources import AllCustomFields, CustomField, CustomFieldType


class CustomFields(EndpointGroup):
    """Custom Fields."""

    def list(self) -> AllCustomFields:
        """Lists custom fields.

        GET /custom-fields
        """
        return cast("AllCustomFields", self._ask("custom-fields.list"))

    def create(
        self,
        name: str,
        type: CustomFieldType,
        *,
        choices: ListOf[CustomFieldsCreateChoice] | None = None,
        description: str | LeftOut | None = LEFT_OUT,
        is_hidden: bool | None = None,
        is_locked: bool | None = None,
        is_optional: bool | None = None,
    ) -> CustomField:
        """Creates a custom field.

        A customer can have at most 10 custom fields.

        choices  Required for CHOICE and MULTI_SELECT; TEXT has none

        POST /custom-fields
        """
        return cast(
            "CustomField",
            self._ask(
                "custom-fields.create",
                body={
                    "name": name,
                    "type": type,
                    "choices": choices,
                    "isHidden": is_hidden,
                    "isLocked": is_locked,
                    "isOptional": is_optional,
                },
                nullable={"description": description},
            ),
        )

    def replace(
        self,
        custom_field_id: str,
        name: str,
        type: CustomFieldType,
        *,
        choices: ListOf[CustomFieldsReplaceChoice] | None = None,
        description: str | LeftOut | None = LEFT_OUT,
        is_hidden: bool | None = None,
        is_locked: bool | None = None,
        is_optional: bool | None = None,
    ) -> CustomField:
        """Replaces a custom field.

        Existing choices carry their choiceId; new ones omit it and the service makes it.

        custom_field_id  A custom field's id
        choices          Required for CHOICE and MULTI_SELECT; TEXT has none

        Raises Rejected. 403: The field is in use.

        PUT /custom-fields/{customFieldId}
        Assumed: custom-fields.in-use, custom-fields.clear-description
        """
        return cast(
            "CustomField",
            self._ask(
                "custom-fields.replace",
                path={"customFieldId": custom_field_id},
                body={
                    "name": name,
                    "type": type,
                    "choices": choices,
                    "isHidden": is_hidden,
                    "isLocked": is_locked,
                    "isOptional": is_optional,
                },
                nullable={"description": description},
            ),
        )

    def delete(self, custom_field_id: str) -> None:
        """Deletes a custom field.

        custom_field_id  A custom field's id

        Raises Rejected. 403: The field is in use.

        DELETE /custom-fields/{customFieldId}
        Assumed: custom-fields.in-use
        """
        self._ask("custom-fields.delete", path={"customFieldId": custom_field_id})
