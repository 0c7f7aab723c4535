import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # the package of this checkout

import headscope as hs  # noqa: E402


@pytest.fixture(scope="session")
def induction():
    """The bundled example of two layers with four heads, whose heads are known."""
    return hs.run("Mr Fox and Mr Fo", model="induction", sites=["q", "k", "z"])
