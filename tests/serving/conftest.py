"""What tests over the protocol share: one event loop, and a client of the reader's tools in both eras."""

import pytest
from mcp.client import Client

from tests.serving.reader_client import configure, serve


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(params=["auto", "legacy"])
async def client(request, tmp_path):
    async with Client(serve(configure(tmp_path)), mode=request.param) as opened:
        yield opened
