"""Who may use the application, tried as a browser, a program and a foreign page would."""

from __future__ import annotations

import pytest
from fastapi import APIRouter
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from starlette.websockets import WebSocketDisconnect

from pren.foundation.errors import PrenError
from pren.review.app import RefusedError, make_app
from pren.review.guard import Access

HERE = "http://127.0.0.1:8000"
FORGED = ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example", "evil@127.0.0.1"]
FORGED += ["", "[", "10.1.2.3"]
FOREIGN = ["https://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8000", "["]
router = APIRouter()
written: list[str] = []


@router.get("/")
def page() -> str:
    return "the page"


@router.get("/labels")
def read() -> str:
    return "labels"


@router.post("/labels")
def write() -> str:
    written.append("label")
    return "written"


@router.get("/health")
def health() -> str:
    return "ok"


@router.get("/wrong")
def wrong(how: str) -> None:
    if how == "defect":
        raise RuntimeError("secret of the inside")
    if how == "refused":
        raise RefusedError(503, "busy", "Too much.", {"Retry-After": "2"})
    raise PrenError("bad", "A \x1b[31m name.")


def client(access: Access, base: str = HERE) -> TestClient:
    return TestClient(make_app(access, [router]), base, raise_server_exceptions=False, follow_redirects=False)


@pytest.fixture
def access() -> Access:
    return Access.at("127.0.0.1")


@pytest.fixture
def outside(access):
    """A client that knows nothing."""
    return client(access)


@pytest.fixture
def inside(access):
    """A browser that has opened the printed address."""
    browser = client(access)
    assert browser.get("/", params={"token": access.token}).status_code == 303
    return browser


def bearer(access: Access) -> dict[str, str]:
    return {"Authorization": f"Bearer {access.token}"}


def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(access, outside):
    entered = outside.get("/", params={"token": access.token})
    assert (entered.status_code, entered.headers["location"], entered.content) == (303, "/", b"")
    cookie = entered.headers["set-cookie"]
    assert access.token not in cookie
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert entered.headers["referrer-policy"] == "no-referrer"
    assert outside.get("/labels").json() == "labels"


def test_a_program_sends_the_token_in_a_header(access, outside):
    assert outside.get("/labels", headers=bearer(access)).json() == "labels"
    assert outside.post("/labels", headers=bearer(access)).json() == "written"


@pytest.mark.parametrize("token", ["", "x", "Ω", "%00"])
def test_a_wrong_token_opens_nothing(outside, token):
    for answer in (
        outside.get("/", params={"token": token}),
        outside.get("/labels"),
        outside.get("/labels", headers={"Authorization": f"Bearer {token}".encode()}),
        outside.get("/labels", headers={"Authorization": token.encode()}),
        outside.get("/labels", headers={"Cookie": f"pren-8000={token}".encode()}),
        outside.get("/no-such-address"),
        outside.get("/openapi.json"),
    ):
        assert answer.status_code == 401
        assert answer.json()["code"] == "token"
        assert "set-cookie" not in answer.headers
    assert outside.get("/health").json() == "ok"


def test_the_token_counts_in_the_first_address_only(access, outside):
    assert outside.get("/labels", params={"token": access.token}).status_code == 401
    assert outside.post("/", params={"token": access.token}).status_code == 401


def test_two_applications_of_one_machine_have_cookies_of_their_own(access, inside):
    other = client(Access.at("127.0.0.1"), "http://127.0.0.1:8001")
    other.cookies.update(inside.cookies)  # browsers do not tell ports apart
    assert other.get("/labels").status_code == 401
    assert inside.get("/labels", headers={"Host": "127.0.0.1:8001"}).status_code == 401


@pytest.mark.parametrize("host", FORGED)
def test_a_forged_host_is_refused_with_and_without_the_token(access, inside, host):
    for headers in ({}, bearer(access)):
        answer = inside.get("/labels", headers={"Host": host, **headers})
        assert (answer.status_code, answer.json()["code"]) == (421, "host")
    assert inside.get("/health", headers={"Host": host}).status_code == 421
    everyone = client(Access.at("127.0.0.1", token=False))
    assert everyone.get("/labels", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:1", "127.0.0.2", "LOCALHOST:8000", "[::1]:8000"])
def test_all_names_of_this_machine_are_known(access, outside, host):
    assert outside.get("/labels", headers={"Host": host, **bearer(access)}).json() == "labels"


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8000", "["]
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_another_sites_page_neither_reads_nor_writes(inside, origin, method):
    written.clear()
    answer = inside.request(method, "/labels", headers={"Origin": origin})
    assert (answer.status_code, answer.json()["code"]) == (403, "origin")
    assert "access-control-allow-origin" not in answer.headers
    everyone = client(Access.at("127.0.0.1", token=False))
    assert everyone.request(method, "/labels", headers={"Origin": origin}).status_code == 403
    assert not written


@pytest.mark.parametrize("site", ["cross-site", "same-site", "?"])
def test_an_embedded_resource_of_another_site_is_refused_but_a_link_is_not(inside, site):
    embedded = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    framed = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert inside.get("/labels", headers=embedded).status_code == 403
    assert inside.get("/labels", headers=framed).status_code == 403
    assert inside.get("/labels", headers=link).status_code == 200
    assert inside.post("/labels", headers=link).status_code == 403


def test_a_browser_writes_from_our_page_only(inside):
    written.clear()
    assert inside.post("/labels").status_code == 403  # no word where it comes from
    assert not written
    assert inside.post("/labels", headers={"Origin": HERE}).json() == "written"
    assert inside.post("/labels", headers={"Sec-Fetch-Site": "same-origin"}).json() == "written"


def test_web_sockets_are_closed(access, outside):
    with pytest.raises(WebSocketDisconnect), outside.websocket_connect("/labels", headers=bearer(access)):
        pass


def test_a_browser_without_access_sees_a_sentence(outside):
    answer = outside.get("/", headers={"Accept": "text/html,*/*"})
    assert answer.status_code == 401
    assert answer.headers["content-type"].startswith("text/html")
    assert "needs its token" in answer.text


@pytest.mark.parametrize("path", ["/", "/labels", "/no-such-address", "/wrong?how=refused"])
@pytest.mark.parametrize("known", [True, False])
def test_every_answer_has_the_headers(access, outside, path, known):
    answer = outside.get(path, headers=bearer(access) if known else {})
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["x-frame-options"] == "DENY"


def test_other_machines_need_a_token_and_a_known_name():
    with refused("token-needed 0.0.0.0"):
        Access.at("0.0.0.0", token=False)
    access = Access.at("0.0.0.0", names=["Birds.example"])
    assert access.token is not None
    known = {"birds.example", "birds.example:80", "192.168.0.7:8000", "[2001:db8::7]:8000", "localhost"}
    assert {
        host for host in (*known, "evil.example", "birds.example.evil.example") if access.admits_host(host)
    } == known


@given(st.text(max_size=40))
def test_no_text_is_a_host_by_accident(text):
    admitted = Access.at("127.0.0.1").admits_host(text)
    assert admitted == (
        text.lower().rstrip("0123456789").rstrip(":") in ("localhost", "[::1]") or text.startswith("127.")
    )


def test_errors_are_sentences(access, outside):
    def answer(path: str) -> tuple[int, str, str]:
        found = outside.get(path, headers=bearer(access))
        return found.status_code, found.json()["code"], found.json()["message"]

    assert answer("/wrong?how=error") == (400, "bad", "A \\x1b[31m name.")
    assert answer("/wrong?how=refused") == (503, "busy", "Too much.")
    assert answer("/wrong")[:2] == (422, "request")
    assert answer("/no-such-address")[:2] == (404, "http")
    status, code, message = answer("/wrong?how=defect")
    assert (status, code) == (500, "defect")
    assert "secret" not in message


def test_the_interface_describes_itself(access, outside):
    described = outside.get("/openapi.json", headers=bearer(access)).json()
    assert set(described["paths"]) == {"/", "/labels", "/health", "/wrong"}
    assert described["components"]["securitySchemes"]
