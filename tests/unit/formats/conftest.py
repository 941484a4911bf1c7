import pytest

from firesteel.formats.json import library as json_library


@pytest.fixture(params=["json", "orjson"])
def library(request, monkeypatch):
    """Both JSON libraries: what holds for one must hold for the other."""
    if request.param == "orjson":
        pytest.importorskip("orjson")
    else:
        monkeypatch.setattr(json_library, "_orjson", lambda: None)
    return request.param
