"""The sandbox as an httpx transport: the same client, retries and errors run against it, without a socket.

httpx.Client(transport=Sandbox("workspace.db"), base_url="http://sandbox")
"""

from __future__ import annotations

import httpx

from lmsconf.sandbox.faults import ConnectionLost
from lmsconf.sandbox.service import SandboxService


class Sandbox(SandboxService, httpx.BaseTransport):
    """A workspace for clients in this process. `log` has every request."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request. A lost response raises the httpx error of a broken connection."""
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        try:
            answer = self.answer(request.method, path, query, dict(request.headers.items()), request.read())
        except ConnectionLost as error:
            raise httpx.RemoteProtocolError(str(error), request=request) from error
        return httpx.Response(answer.status, headers=answer.headers, stream=httpx.ByteStream(answer.body))
