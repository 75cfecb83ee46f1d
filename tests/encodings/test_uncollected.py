"""Cycles are not collected within, and are again afterwards, whatever happens there."""

import gc

import pytest

from nightkeep.encodings.uncollected import uncollected


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_collections_go_on_as_before(enabled: bool, fails: bool) -> None:
    was_enabled = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        if fails:
            with pytest.raises(OSError), uncollected():
                raise OSError("a manifest is gone")
        else:
            with uncollected(), uncollected():
                assert not gc.isenabled()
            assert gc.isenabled() == enabled
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
