"""Backups to files and places in buckets, and stores made from them."""

from pathlib import Path

import pytest

import holdall


def test_backups_come_back(tmp_path: Path) -> None:
    place = f"file://{tmp_path}/place"
    with holdall.open(tmp_path / "s", "a") as store:
        store["a"] = bytes(3_000_000)
        whole = store.backup(tmp_path / "b0")
        assert store.backup(place)["base"] is None
        store["b"] = b"more"
        seen: list[tuple[int, int]] = []
        some = store.backup(tmp_path / "b1", base=tmp_path / "b0", progress=lambda *n: seen.append(n))
        more = store.backup(place, base=place, verify=False)
        assert some["copied_bytes"] < whole["copied_bytes"] and seen[-1][0] == seen[-1][1]
        assert more["written_bytes"] < 1_000_000
    done = holdall.restore(tmp_path / "r0", tmp_path / "b1", tmp_path / "b0")
    assert done["id"] == some["id"] and done["objects"] == 2
    assert holdall.restore(tmp_path / "r1", place)["id"] == more["id"]
    holdall.restore(tmp_path / "r2", place, at=more["base"])
    found = [sorted(holdall.open(tmp_path / name).keys()) for name in ("r0", "r1", "r2")]
    assert found == [["a", "b"], ["a", "b"], ["a"]]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with holdall.open(tmp_path / "s", "a") as store:
        store["a"] = b"1"
        store.backup(tmp_path / "b")
        with pytest.raises(holdall.ExistsError):
            store.backup(tmp_path / "b")
        with pytest.raises(holdall.NotFoundError):
            store.backup(f"file://{tmp_path}/place", base=f"file://{tmp_path}/place")
        with pytest.raises(holdall.InvalidError):
            store.backup(f"file://{tmp_path}/place", base=tmp_path / "b")
        with pytest.raises(TypeError):
            store.backup(tmp_path / "c", keys="x")  # type: ignore[call-arg]

        def stop(done: int, total: int) -> None:
            raise KeyError("enough")

        with pytest.raises(KeyError):
            store.backup(tmp_path / "c", progress=stop)
        assert not (tmp_path / "c").exists()
    with pytest.raises(holdall.InvalidError):
        holdall.restore(tmp_path / "r", tmp_path / "b", at="2026-01-01T00:00:00Z")
    with pytest.raises(holdall.NotAStoreError):
        holdall.restore(tmp_path / "r", tmp_path / "s")
    assert not (tmp_path / "r").exists()


def test_what_is_whole_of_a_damaged_store_comes_back(tmp_path: Path) -> None:
    with holdall.open(tmp_path / "s", "a") as store:
        store["small"] = b"1"
        store["large"] = bytes(range(256)) * 4096
    with open(tmp_path / "s", "r+b") as file:
        data = file.read()
        file.seek(data.index(bytes(range(256)) * 16) + 100)
        file.write(b"no")
        file.seek(0)
        file.write(bytes(4096))
    seen: list[tuple[int, int]] = []
    done = holdall.salvage(tmp_path / "s", tmp_path / "n", progress=lambda *n: seen.append(n))
    assert done["objects"] == 1 and seen[-1][0] == seen[-1][1]
    assert [(lost["name"], lost["lost_ranges"]) for lost in done["lost"]] == [("large", [[0, 4096]])]
    with holdall.open(tmp_path / "n") as new:
        assert dict(new.items()) == {"small": b"1"}
    assert holdall.salvage(tmp_path / "s", tmp_path / "p", partial=True)["objects"] == 2
    with holdall.open(tmp_path / "p") as new:
        assert new["large"][:4096] == bytes(4096) and new["large"][4096:8192] == bytes(range(256)) * 16
    with pytest.raises(holdall.ExistsError):
        holdall.salvage(tmp_path / "s", tmp_path / "n")
