"""The specification's group Users, one method an operation.

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from lmsconf.api.endpoint_group import EndpointGroup, ListOf
from lmsconf.api.sdk.messages import (
    UsersCreateAnswer,
    UsersExtendedInfoAnswer,
    UsersListAnswer,
    UsersSearchAnswer,
    UsersSetOrderDetailsAddress,
)
from lmsconf.api.sdk.resources import (
    AllCustomFields,
    OrderDetails,
    User,
    UserExtendedEntry,
    UserListEntry,
    UserSearchEntry,
)


class Users(EndpointGroup):
    """Users."""

    def list(self, *, filter: str | None = None, skip: int | None = None, limit: int | None = None) -> UsersListAnswer:
        """Lists users.

        filter  Empty: all users. The rule of matching is not shown
        skip    left out: 0
        limit   The largest value is not shown; left out: 100

        GET /users
        Assumed: paging.limit, users.list.match-count
        """
        return cast("UsersListAnswer", self._ask("users.list", query={"filter": filter, "skip": skip, "limit": limit}))

    def list_all(self, *, filter: str | None = None) -> Iterator[UserListEntry]:
        """Every row of `list`, page after page. Raises InvalidResponse where not all came."""
        return cast(
            "Iterator[UserListEntry]",
            self._every(
                lambda skip, limit: self.list(filter=filter, skip=skip, limit=limit),
                rows="users",
                id="userId",
                total="matchCount",
            ),
        )

    def create(
        self,
        email: str,
        *,
        first_name: str | None = None,
        last_name: str | None = None,
        language: str | None = None,
        send_welcome_email: bool | None = None,
    ) -> UsersCreateAnswer:
        """Creates a user account.

        The e-mail has to be shaped like one, but needs no mailbox: addresses of the service's own domain for people
        without one never get mail.

        email               E-mail-shaped identifier
        language            Lowercase language code
        send_welcome_email  Whether a welcome e-mail is sent

        POST /users
        Assumed: users.create.email, users.create.firstName, users.create.lastName, users.create.language,
        users.create.sendWelcomeEmail
        """
        return cast(
            "UsersCreateAnswer",
            self._ask(
                "users.create",
                body={
                    "email": email,
                    "firstName": first_name,
                    "lastName": last_name,
                    "language": language,
                    "sendWelcomeEmail": send_welcome_email,
                },
            ),
        )

    def get(self, user_id: str) -> User:
        """Reads one user.

        user_id  A user's id

        GET /users/{userId}
        """
        return cast("User", self._ask("users.get", path={"userId": user_id}))

    def delete(self, user_id: str) -> None:
        """Deletes a user account.

        user_id  A user's id

        DELETE /users/{userId}
        """
        self._ask("users.delete", path={"userId": user_id})

    def archive(self, user_id: str) -> None:
        """Archives a user account.

        Sets archivedAt. An admin cannot be archived.

        user_id  A user's id

        Raises Rejected. 400: The user is an admin.

        POST /users/{userId}/archive
        """
        self._ask("users.archive", path={"userId": user_id})

    def unarchive(self, user_id: str) -> None:
        """Makes an archived account active again.

        user_id  A user's id

        POST /users/{userId}/unarchive
        """
        self._ask("users.unarchive", path={"userId": user_id})

    def set_custom_archived_date(self, user_id: str, date: int | None) -> None:
        """Sets or clears the date when an account will be archived.

        Not allowed for admins and managers.

        user_id  A user's id
        date     When the account will be archived, epoch milliseconds; null clears it

        POST /users/{userId}/set-custom-archived-date
        Assumed: users.set-custom-archived-date.date
        """
        self._ask("users.set-custom-archived-date", path={"userId": user_id}, nullable={"date": date})

    def extended_info(
        self, *, filter: str | None = None, skip: int | None = None, limit: int | None = None
    ) -> UsersExtendedInfoAnswer:
        """Lists users with their groups and applications.

        filter  Empty: all users. The rule of matching is not shown
        skip    left out: 0
        limit   The largest value is not shown; left out: 100

        GET /users/extended-info
        Assumed: paging.limit, users.list.match-count
        """
        return cast(
            "UsersExtendedInfoAnswer",
            self._ask("users.extended-info", query={"filter": filter, "skip": skip, "limit": limit}),
        )

    def extended_info_all(self, *, filter: str | None = None) -> Iterator[UserExtendedEntry]:
        """Every row of `extended_info`, page after page. Raises InvalidResponse where not all came."""
        return cast(
            "Iterator[UserExtendedEntry]",
            self._every(
                lambda skip, limit: self.extended_info(filter=filter, skip=skip, limit=limit),
                rows="users",
                id="userId",
                total="matchCount",
            ),
        )

    def search(
        self,
        *,
        text: str | None = None,
        metadata: dict[str, str] | None = None,
        skip: int | None = None,
        limit: int | None = None,
        include_groups: bool | None = None,
    ) -> UsersSearchAnswer:
        """Searches users by text and metadata.

        text            Part of a name or an e-mail
        metadata        Pairs that a user's metadata has to hold
        skip            left out: 0
        limit           The largest value is not shown; left out: 100
        include_groups  With groups and applications of each user; left out: false

        POST /users/search
        Assumed: users.search.text, users.search.skip, users.search.limit, paging.limit
        """
        return cast(
            "UsersSearchAnswer",
            self._ask(
                "users.search",
                body={
                    "text": text,
                    "metadata": metadata,
                    "skip": skip,
                    "limit": limit,
                    "includeGroups": include_groups,
                },
            ),
        )

    def search_all(
        self, *, text: str | None = None, metadata: dict[str, str] | None = None, include_groups: bool | None = None
    ) -> Iterator[UserSearchEntry]:
        """Every row of `search`, page after page. Raises InvalidResponse where not all came."""
        return cast(
            "Iterator[UserSearchEntry]",
            self._every(
                lambda skip, limit: self.search(
                    text=text, metadata=metadata, include_groups=include_groups, skip=skip, limit=limit
                ),
                rows="users",
                id="userId",
                total="matchCount",
            ),
        )

    def custom_field_choice(self) -> AllCustomFields:
        """Lists custom fields.

        Deprecated: GET /custom-fields replaces it.

        GET /users/custom-field-choice
        """
        return cast("AllCustomFields", self._ask("users.custom-field-choice"))

    def update_custom_field_choice(
        self,
        user_id: str,
        *,
        choice: dict[str, str | None] | None = None,
        multi_select: dict[str, ListOf[str]] | None = None,
        text: dict[str, str | None] | None = None,
    ) -> None:
        """Sets a user's answers to custom fields.

        Keys are ids of custom fields; what a value may be depends on the field: a choice, a list of choices, or a
        text. A choice is given by its id, or by its name where the dialect says so.

        user_id       A user's id
        choice        Id of a CHOICE field → id of the choice; None clears it
        multi_select  Id of a MULTI_SELECT field → ids; none clear it
        text          Id of a TEXT field → text; None clears it

        POST /users/{userId}/update-custom-field-choice
        Assumed: users.update-custom-field-choice.wrapper, users.update-custom-field-choice.value, users.update-
        custom-field-choice.value-multi-select, users.update-custom-field-choice.value-text, users.update-custom-
        field-choice.omitted, users.update-custom-field-choice.clear-choice, users.update-custom-field-choice.clear-
        multi-select, users.update-custom-field-choice.clear-text
        """
        self._ask(
            "users.update-custom-field-choice",
            path={"userId": user_id},
            nullable=self._answers(
                "users.update-custom-field-choice", CHOICE=choice, MULTI_SELECT=multi_select, TEXT=text
            ),
        )

    def update_email(self, user_id: str, email: str) -> None:
        """Changes a user's e-mail.

        The e-mail's format is validated.

        user_id  A user's id

        POST /users/{userId}/update-email
        """
        self._ask("users.update-email", path={"userId": user_id}, body={"email": email})

    def update_fullname(self, user_id: str, *, first_name: str | None = None, last_name: str | None = None) -> None:
        """Changes a user's first or last name, or both.

        user_id  A user's id

        POST /users/{userId}/update-fullname
        """
        self._ask(
            "users.update-fullname", path={"userId": user_id}, body={"firstName": first_name, "lastName": last_name}
        )

    def update_language(self, user_id: str, language: str) -> None:
        """Changes a user's language.

        user_id   A user's id
        language  Lowercase language code, as en, sv, de, no, nl, fi, uk or es; others are not shown

        POST /users/{userId}/update-language
        """
        self._ask("users.update-language", path={"userId": user_id}, body={"language": language})

    def update_metadata(self, user_id: str, metadata: dict[str, str]) -> None:
        """Replaces or updates a user's metadata.

        user_id   A user's id
        metadata  Customer-defined

        POST /users/{userId}/update-metadata
        Assumed: users.update-metadata.mode
        """
        self._ask("users.update-metadata", path={"userId": user_id}, body={"metadata": metadata})

    def order_details(self, user_id: str) -> OrderDetails:
        """Reads a user's order and contact details.

        user_id  A user's id

        GET /users/{userId}/order-details
        """
        return cast("OrderDetails", self._ask("users.order-details", path={"userId": user_id}))

    def set_order_details(
        self,
        user_id: str,
        *,
        email: str | None = None,
        first_name: str | None = None,
        last_name: str | None = None,
        company_name: str | None = None,
        company_number: str | None = None,
        company_email: str | None = None,
        phone: str | None = None,
        phone_code: str | None = None,
        address: UsersSetOrderDetailsAddress | None = None,
        company_payment: bool | None = None,
        note: str | None = None,
    ) -> OrderDetails:
        """Stores a user's order and contact details.

        user_id  A user's id

        PUT /users/{userId}/order-details
        Assumed: users.set-order-details.email, users.set-order-details.firstName, users.set-order-details.lastName,
        users.set-order-details.companyName, users.set-order-details.companyNumber, users.set-order-
        details.companyEmail, users.set-order-details.phone, users.set-order-details.phoneCode, users.set-order-
        details.address, users.set-order-details.companyPayment, users.set-order-details.note, users.set-order-
        details.address.street, users.set-order-details.address.city, users.set-order-details.address.country,
        users.set-order-details.address.phone, users.set-order-details.address.zip
        """
        return cast(
            "OrderDetails",
            self._ask(
                "users.set-order-details",
                path={"userId": user_id},
                body={
                    "email": email,
                    "firstName": first_name,
                    "lastName": last_name,
                    "companyName": company_name,
                    "companyNumber": company_number,
                    "companyEmail": company_email,
                    "phone": phone,
                    "phoneCode": phone_code,
                    "address": address,
                    "companyPayment": company_payment,
                    "note": note,
                },
            ),
        )

    def disable_payment(self, user_id: str, disable_payment: bool) -> OrderDetails:
        """Disables or enables a user's payment access in purchases.

        user_id          A user's id
        disable_payment  true disables, false enables

        PUT /users/{userId}/disable-payment
        Assumed: users.disable-payment.disablePayment
        """
        return cast(
            "OrderDetails",
            self._ask("users.disable-payment", path={"userId": user_id}, body={"disablePayment": disable_payment}),
        )
