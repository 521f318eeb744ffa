"""Which plain requests pass: pages, scripts and styles are fetched, and nothing is ever sent here."""

from __future__ import annotations

METHODS = ("GET", "HEAD")
CORE = "/_stcore/"  # Streamlit's own routes, under whatever path the app is mounted
NEEDED = frozenset({"health", "host-config", "stream", "bidi-components"})  # not: upload_file, metrics, agent, ...
SIGN_IN = ("/auth/", "/oauth2callback")  # Streamlit's; nobody signs in here

# Components and Streamlit's page are scripts of this very server; Plotly and Streamlit's loader make some themselves.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' ws: wss: data: blob:",
        "worker-src 'self' blob:",
        "frame-ancestors 'self'",
        "base-uri 'self'",
        "form-action 'self'",
        "object-src 'none'",
    )
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),  # a link carries a prompt
)


def refusal(method: str, path: str) -> tuple[int, str] | None:
    """The status and the words for what does not pass; None for what does."""
    if method not in METHODS:
        return 405, "Nothing is uploaded or changed here by a request of this kind."
    core = path.partition(CORE)[2]
    if CORE in path and core.split("/")[0] not in NEEDED:
        return 404, "There is nothing here."
    if any(part in path for part in SIGN_IN):
        return 404, "There is nothing here."
    return None
