"""What every request must pass and every response carries: host, origin, token, and headers that bind the browser."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse

from bubblefinder.web.limits import RefusedError
from bubblefinder.web.refusal import refusal
from bubblefinder.web.render import COOKIE

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from bubblefinder.web.guesses import Guesses

PERFETTO: Final = "https://ui.perfetto.dev"
_SAFE_METHODS: Final = {"GET", "HEAD"}
_OPEN_PATHS: Final = {"/login", "/healthz", "/static/report.css", "/static/app.css", "/static/icon.svg"}
"""What needs no token: the page that asks for it with its looks, and the word that the server is alive."""
_LOOPBACK: Final = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' data: blob:; font-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
ALONE: Final = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:"
)
"""For a report on a page of its own: no origin, no network; its own policy says by hash which scripts run."""
_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin-allow-popups",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Safety:
    """ASGI middleware around the whole application.

    Without a token the server is reachable from this machine only: the Host header must then name it,
    so that a foreign name that resolves to 127.0.0.1 can't reach it through a browser. With a token
    every request needs it, as a bearer token or as the cookie that signing in sets.
    """

    def __init__(self, app: ASGIApp, *, token: str | None, guesses: Guesses) -> None:
        self._app = app
        self._token = token
        self._guesses = guesses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, pass it on, and add the headers to what comes back."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = scope.setdefault("state", {})["nonce"] = secrets.token_urlsafe(16)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                _guard(MutableHeaders(scope=message), nonce)
            await send(message)

        request = Request(scope)
        try:
            self._check(request)
        except RefusedError as error:
            wants_page = request.method in _SAFE_METHODS and not request.url.path.startswith("/api/")
            to_login = error.status == 401 and wants_page  # noqa: PLR2004 - unauthorised
            answer = RedirectResponse("/login", 303) if to_login else refusal(request, error)
            await answer(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)

    def _check(self, request: Request) -> None:
        if self._token is None:
            _check_host(request.headers)
        elif request.url.path not in _OPEN_PATHS and not self._is_signed_in(request, self._token):
            raise RefusedError(401, "This server needs a token.", hint="Send it as: Authorization: Bearer TOKEN")
        if request.method not in _SAFE_METHODS:
            _check_origin(request)

    def _is_signed_in(self, request: Request, token: str) -> bool:
        if same(request.cookies.get(COOKIE, ""), session(token)):
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not given.strip():
            return False
        self._guesses.check(address(request))
        if same(given.strip(), token):
            return True
        self._guesses.wrong(address(request))
        return False


def address(request: Request) -> str:
    """Return where a request comes from; behind a trusted proxy, what that says."""
    return request.client.host if request.client else "an unknown address"


def same(given: str, expected: str) -> bool:
    """Say whether two secrets are equal, in a time that tells nothing about where they differ."""
    return hmac.compare_digest(hashlib.sha256(given.encode()).digest(), hashlib.sha256(expected.encode()).digest())


def session(token: str) -> str:
    """Return what the cookie of somebody who knows the token holds; the token can't be had from it."""
    return hmac.new(token.encode(), b"bubblefinder session", hashlib.sha256).hexdigest()


def _check_host(headers: Headers) -> None:
    if not _LOOPBACK.fullmatch(headers.get("host", "")):
        raise RefusedError(421, "This server answers to 127.0.0.1 and localhost only.", hint="Open http://127.0.0.1")


def _check_origin(request: Request) -> None:
    """Refuse what another site's page sends; programs send neither header."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "none")
    own = {f"{scheme}://{request.headers.get('host', '')}" for scheme in ("http", "https")}
    if (origin is not None and origin not in own) or site not in {"same-origin", "none"}:
        raise RefusedError(403, "Another site's page sent this request.", hint="Use the page of this server.")


def _guard(headers: MutableHeaders, nonce: str) -> None:
    headers.setdefault("content-security-policy", _POLICY.format(nonce=nonce))
    headers.setdefault("cache-control", "no-store")
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
