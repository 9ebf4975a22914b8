"""The service, as programs use and misuse it."""

from __future__ import annotations

import asyncio
import io
import json
from importlib.util import find_spec

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from PIL import Image

from pren.label.predictor import Predictor
from pren.methods.rivals.eszsl import ESZSL
from pren.review.admission import Limits
from pren.review.app import RefusedError
from pren.review.batching import Batcher, Wanted
from pren.review.guard import Access
from pren.review.serving import make_service

HERE = "http://127.0.0.1:8000"
LIMITS = Limits(bytes=200_000, pixels=10_000, count=4, seconds=20, queue=3)


def serving(run, limits=LIMITS):
    return TestClient(make_service(run, Access(token=None), limits), base_url=HERE, raise_server_exceptions=False)


@pytest.fixture(scope="module")
def of_features(make_problem, tmp_path_factory):
    folder = tmp_path_factory.mktemp("features") / "model"
    ESZSL().fit(make_problem()).save(folder)
    return folder


@pytest.fixture
def features(of_features):
    with serving(of_features) as client:
        yield client


@pytest.fixture(scope="module")
def pictures(piled):
    with serving(piled[0] / "run") as client:
        yield client


def picture(form="PNG", size=(12, 9), shade=90):
    out = io.BytesIO()
    Image.new("RGB", size, (shade, 20, 255 - shade)).save(out, form)
    return out.getvalue()


def told(answer):
    return answer.status_code, answer.json()["code"]


def test_features_get_the_labels_of_the_predictor(features, of_features):
    values = np.random.default_rng(0).normal(size=(3, 5)).round(3)
    expected = list(Predictor.load(of_features).label(values, 2).rows())
    answer = features.post("/predict?top=2", json={"features": values.tolist()})
    assert answer.status_code == 200
    for place, (found, row) in enumerate(zip(answer.json()["predictions"], expected, strict=True)):
        assert found["input"] == str(place)
        assert [(each["name"], each["score"]) for each in found["classes"]] == list(row.classes)
    alone = features.post("/predict?top=2", json={"features": values[1].tolist()}).json()["predictions"]
    assert alone[0]["classes"] == answer.json()["predictions"][1]["classes"]
    assert len(features.post("/predict?among=all&top=9", json={"features": values.tolist()}).json()["predictions"]) == 3


def test_photographs_come_as_bytes_or_as_a_form(pictures, piled):
    several = [picture(), picture("JPEG", shade=200)]
    expected = list(Predictor.load(piled[0] / "run").label(several).rows())
    files = [("images", (f"{place}.jpg", content)) for place, content in enumerate(several)]
    found = pictures.post("/predict", files=files).json()["predictions"]
    assert [each["input"] for each in found] == ["0.jpg", "1.jpg"]
    assert [each["classes"][0]["name"] for each in found] == [row.label for row in expected]
    one = pictures.post("/predict", content=several[0], headers={"content-type": "image/png"}).json()["predictions"]
    assert one[0]["classes"][0]["name"] == found[0]["classes"][0]["name"]
    assert [each["score"] for each in one[0]["classes"]] == pytest.approx(
        [each["score"] for each in found[0]["classes"]], abs=1e-4
    )


def test_hostile_files_are_refused_with_a_sentence(pictures):
    def send(*contents):
        return pictures.post("/predict", files=[("images", (f"<b>{n}.png", each)) for n, each in enumerate(contents)])

    whole = picture()
    assert told(send(whole[:40])) == (422, "input-unreadable")
    assert told(send(whole, b"GIF89a" + bytes(30))) == (422, "input-unreadable")
    assert told(send(b"")) == (422, "input-unreadable")
    assert told(send(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")) == (422, "input-unreadable")
    assert told(send(picture(size=(101, 100)))) == (413, "too-many-pixels")
    claims = bytearray(whole)
    claims[16:24] = (60_000).to_bytes(4, "big") * 2
    assert send(bytes(claims)).status_code in (413, 422)  # Pillow may notice the wrong checksum first
    assert told(send(*[whole] * 5))[0] in (400, 413)
    assert told(send()) in [(415, "content-type"), (422, "inputs-missing")]
    assert told(pictures.post("/predict", content=bytes(200_001))) == (413, "too-large")
    assert told(pictures.post("/predict", content=iter([bytes(150_000)] * 2))) == (413, "too-large")
    assert "<b>1.png" in send(whole, b"no").json()["message"]


FEATURES = [
    "", "[", "[]", "{}", '{"features": 1}', '{"features": []}', '{"features": [[]]}', '{"features": "12345"}',
    '{"features": [1,2,3,4]}', '{"features": [[1,2,3,4,5],[1]]}', '{"features": [NaN,1,2,3,4]}',
    '{"features": [1e400,1,2,3,4]}', '{"features": [1e10,1,2,3,4]}', '{"features": [null,1,2,3,4]}',
    '{"features": [true,true,true,true,false]}', '{"features": [[[1,2,3,4,5]]]}', "[" * 100_000,
    '{"features": [' + "9" * 5000 + ",1,2,3,4]}", '{"features": [1,2,3,4,5], "more": 1}', "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("body", FEATURES, ids=range(len(FEATURES)))
def test_hostile_features_are_refused_with_a_sentence(features, body):
    sent = body.encode("utf-8", "surrogatepass")
    answer = features.post("/predict", content=sent, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["message"]


def test_what_is_asked_for_wrongly_is_refused(features):
    five = {"features": [0.0] * 5}
    assert told(features.post("/predict?top=0", json=five)) == (422, "request")
    assert told(features.post("/predict?among=some", json=five)) == (422, "request")
    assert told(features.post("/predict", json={"features": [[0.0] * 5] * 5})) == (413, "too-many")
    assert told(features.post("/predict", content=b"x", headers={"content-type": "text/plain"})) == (
        415,
        "content-type",
    )
    assert told(features.post("/predict", content=picture(), headers={"content-type": "image/png"})) == (
        422,
        "features-needed",
    )
    broken = {"content-type": "multipart/form-data; boundary=x"}
    assert features.post("/predict", content=b"--y", headers=broken).status_code in (400, 422)
    assert features.get("/predict").status_code == 405


def test_a_class_is_added(features):
    before = features.get("/classes").json()
    assert told(features.post("/classes", json={"name": before[0]["name"]}))[0] == 400
    assert told(features.post("/classes", json={"name": ""})) == (422, "request")
    assert told(features.post("/classes", content=b"[" * 9000)) == (422, "request")
    assert told(features.post("/classes", json={"name": "new", "attributes": {"a": 1e300}})) == (422, "request")
    # A model without a recipe does not know what its numbers mean.
    assert told(features.post("/classes", json={"name": "new", "descriptions": ["Red."]})) == (400, "recipe-unknown")
    assert features.get("/classes").json() == before


def test_health_and_metrics(features, of_features):
    features.post("/predict", json={"features": [0.0] * 5})
    features.post("/predict", json={"features": [0.0] * 4})
    said = features.get("/metrics").text
    assert 'pren_requests_total{status="200"} 1.0' in said
    assert 'pren_requests_total{status="422"} 1.0' in said
    assert "pren_inputs_total 1.0" in said
    assert "pren_requests_under_way 0.0" in said
    assert features.get("/health").json()["status"] == "ok"
    guarded = TestClient(make_service(of_features, Access()), base_url=HERE)
    assert guarded.get("/health").status_code == 200
    assert guarded.get("/metrics").status_code == guarded.get("/classes").status_code == 401


def test_requests_that_wait_are_predicted_together_and_do_not_hurt_each_other(of_features):
    sizes, values = [], np.random.default_rng(1).normal(size=(6, 5))
    predictor = Predictor.load(of_features)
    expected = list(predictor.label(values, 1).rows())

    async def ask():
        async with Batcher(predictor, sizes.append) as batcher:
            wrong = Wanted(values[:1, :3], 1, None)  # of another shape
            asked = [batcher.predict(Wanted(values[n : n + 1], 1, None)) for n in range(6)]
            return await asyncio.gather(*asked, batcher.predict(wrong), return_exceptions=True)

    *found, failed = asyncio.run(ask())
    assert [rows[0].classes for rows in found] == [row.classes for row in expected]
    assert isinstance(failed, Exception)
    assert sizes[0] == 7  # then one by one


def test_a_flood_is_refused_at_once_and_what_is_accepted_is_answered(of_features):
    app = make_service(of_features, Access(token=None), LIMITS)
    body = json.dumps({"features": [0.0] * 5}).encode()

    async def ask(release):
        """One request whose body waits to be sent."""
        scope = {
            "type": "http", "method": "POST", "path": "/predict", "raw_path": b"/predict", "query_string": b"",
            "http_version": "1.1", "scheme": "http", "root_path": "", "client": None, "server": None,
            "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"),
                        (b"content-length", str(len(body)).encode())],
        }  # fmt: skip
        sent = []

        async def receive():
            await release.wait()
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        await app(scope, receive, send)
        return sent[0]["status"]

    async def flood():
        release = asyncio.Event()
        async with app.router.lifespan_context(app):
            asked = [asyncio.create_task(ask(release)) for _ in range(10 * LIMITS.queue)]
            while sum(one.done() for one in asked) < len(asked) - LIMITS.queue:
                await asyncio.sleep(0)
            release.set()
            return await asyncio.gather(*asked)

    statuses = asyncio.run(flood())
    assert statuses.count(200) == LIMITS.queue
    assert statuses.count(503) == 9 * LIMITS.queue


def test_a_request_that_never_ends_is_given_up():
    from fastapi import Request

    from pren.review.admission import read_body

    async def forever():
        await asyncio.sleep(60)

    async def ask():
        await read_body(Request({"type": "http", "headers": []}, forever), Limits(seconds=0.01))

    with pytest.raises(RefusedError) as caught:
        asyncio.run(ask())
    assert caught.value.status == 408


@pytest.mark.slow
@pytest.mark.skipif(find_spec("schemathesis") is None, reason="schemathesis is not installed")
@pytest.mark.filterwarnings("ignore")
def test_the_interface_is_what_it_says(of_features):
    import schemathesis

    access = Access(token=None, names=frozenset({"testserver"}))
    schema = schemathesis.openapi.from_asgi("/openapi.json", make_service(of_features, access, LIMITS))

    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
        @given(case=operation.as_strategy())
        def check(case):
            assert case.call().status_code < 500

        check()
