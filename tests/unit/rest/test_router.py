from __future__ import annotations

import pytest

from firesteel.cluster.rest.request import RestError, Route
from firesteel.cluster.rest.router import MethodNotAllowed, Router
from firesteel.rest.endpoint import Endpoint

JOB = "0123456789abcdef0123456789abcdef"
VERTEX = "f" * 32


def router(*declared: str, prefix: str | None = None) -> Router:
    routes = []
    for text in declared:
        method, path = text.split(" ")
        routes.append(Route(Endpoint(method, path, "", dict), lambda request: {}))
    return Router(routes, prefix)


def found(a_router: Router, method: str, path: str) -> tuple[str, dict[str, str]]:
    route, values = a_router.match(method, path)
    return route.endpoint.path, dict(values)


@pytest.mark.parametrize("place", ["/jobs/overview", "/v1/jobs/overview", "/jobs/overview/", "/v1/jobs/overview/"])
def test_a_path_is_there_with_and_without_the_version(place: str) -> None:
    assert found(router("GET /jobs/overview"), "GET", place) == ("/jobs/overview", {})


@pytest.mark.parametrize("place", ["/proxy/fs/jobs", "/proxy/fs/v1/jobs", "/jobs", "/v1/jobs"])
def test_a_path_is_there_below_the_prefix_too(place: str) -> None:
    assert found(router("GET /jobs", prefix="/proxy/fs/"), "GET", place) == ("/jobs", {})


def test_what_is_written_out_wins_over_a_placeholder() -> None:
    both = router("GET /jobs/:jobid", "GET /jobs/overview", "GET /jobs/:jobid/checkpoints/config")
    assert found(both, "GET", "/jobs/overview")[0] == "/jobs/overview"
    assert found(both, "GET", f"/jobs/{JOB}") == ("/jobs/:jobid", {"jobid": JOB})


def test_the_placeholder_is_tried_if_what_is_written_out_leads_nowhere() -> None:
    both = router("GET /x/details/:checkpointid", "GET /x/:name/size")
    assert found(both, "GET", "/x/details/7") == ("/x/details/:checkpointid", {"checkpointid": "7"})
    assert found(both, "GET", "/x/other/size") == ("/x/:name/size", {"name": "other"})
    deeper = router("GET /a/b/c", "GET /a/:name/d")
    assert found(deeper, "GET", "/a/b/d") == ("/a/:name/d", {"name": "b"})


def test_placeholders_may_have_other_names_for_other_methods() -> None:
    both = router("GET /jobs/:jobid/x/:name", "POST /jobs/:jobid/x/:other")
    assert found(both, "GET", f"/jobs/{JOB}/x/1")[1] == {"jobid": JOB, "name": "1"}
    assert found(both, "POST", f"/jobs/{JOB}/x/1")[1] == {"jobid": JOB, "other": "1"}


def test_a_slash_inside_a_name_does_not_end_it() -> None:
    assert found(router("GET /state/:uid/:name"), "GET", "/state/a%2Fb/%C3%BC%20x")[1] == {"uid": "a/b", "name": "ü x"}


@pytest.mark.parametrize("path", ["/", "/nothing", "/jobs", f"/jobs/{JOB}/x", "/v2/jobs/overview", "/jobs//overview"])
def test_an_unknown_path_is_not_found(path: str) -> None:
    with pytest.raises(RestError) as caught:
        router("GET /jobs/:jobid", "GET /jobs/overview").match("GET", path)
    assert (caught.value.status, caught.value.message) == (404, f"Not found: {path}")


def test_a_known_path_says_what_it_allows() -> None:
    with pytest.raises(MethodNotAllowed) as caught:
        router("GET /jobs/:jobid", "PATCH /jobs/:jobid").match("DELETE", f"/jobs/{JOB}")
    assert caught.value.status == 405
    assert caught.value.allowed == ["GET", "HEAD", "OPTIONS", "PATCH"]


def test_head_is_answered_where_get_is() -> None:
    assert found(router("GET /jobs"), "HEAD", "/jobs")[0] == "/jobs"
    with pytest.raises(MethodNotAllowed):
        router("POST /jobs").match("HEAD", "/jobs")


@pytest.mark.parametrize("name", ["jobid", "vertexid", "triggerid", "savepointtriggerid", "checkpointtriggerid"])
@pytest.mark.parametrize("value", ["x", JOB[:-1], JOB + "0", "g" * 32, "%00" * 32, "٣" * 32])
def test_an_id_that_is_none_is_refused(name: str, value: str) -> None:
    with pytest.raises(RestError) as caught:
        router(f"GET /x/:{name}").match("GET", f"/x/{value}")
    assert caught.value.status == 400
    assert f"Cannot resolve path parameter ({name})" in caught.value.message


def test_ids_are_lower_case() -> None:
    assert found(router("GET /x/:jobid"), "GET", f"/x/{JOB.upper()}")[1] == {"jobid": JOB}


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "٣", "9" * 30, "1%00"])
def test_a_number_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(RestError) as caught:
        router("GET /x/:subtaskindex").match("GET", f"/x/{value}")
    assert caught.value.status == 400


def test_the_same_route_twice_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="Two routes for GET /jobs/:jobid"):
        router("GET /jobs/:jobid", "GET /jobs/:jobid")
