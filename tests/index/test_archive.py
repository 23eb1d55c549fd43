import io
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchsvc.errors import IndexFault
from searchsvc.index.archive import Archive, write_archive
from searchsvc.index.arrays import Blocks

MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)


def npy(array, header=None, data=None):
    """Return an array as a file, with another header or other data in it."""
    stream = io.BytesIO()
    np.save(stream, array)
    whole = stream.getvalue()
    begin = 10 + int.from_bytes(whole[8:10], "little")
    text = whole[10:begin] if header is None else header.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + (data or whole[begin:])


def header(shape, descr="<f4", order="False"):
    return f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n"


def pack(file, *members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file


def read(file, name="x"):
    with Archive(file) as archive:
        return archive.read(name)


def read_rows(file, name="x"):
    with Archive(file) as archive, archive.rows(name) as (shape, blocks):
        return shape, list(blocks)


def test_what_is_written_is_read_again_and_numpy_reads_it_too(tmp_path):
    file = tmp_path / "a.npz"
    keys = np.array([1, 2**64 - 1], np.uint64)
    write_archive(file, {"keys": keys, "x": Blocks((4, 3), np.dtype(np.float32), [MATRIX[:1], MATRIX[1:]])})
    assert (read(file, "keys") == keys).all()
    shape, blocks = read_rows(file)
    assert shape == (4, 3)
    assert (np.concatenate(blocks) == MATRIX).all()
    with np.load(file) as other:
        assert (other["keys"] == keys).all() and (other["x"] == MATRIX).all()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (1,), (1, 1)])
def test_arrays_of_any_small_shape_come_back(tmp_path, shape):
    write_archive(tmp_path / "a.npz", {"x": np.ones(shape, np.float32)})
    assert read(tmp_path / "a.npz").shape == shape


def test_equal_arrays_make_equal_files(tmp_path):
    for name in ("a", "b"):
        write_archive(tmp_path / f"{name}.npz", {"x": MATRIX})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_large_matrices_are_read_in_blocks_of_a_few_megabytes_however_wide_they_are(tmp_path):
    write_archive(tmp_path / "a.npz", {"x": np.ones((9, 1 << 20), np.float32)})
    with Archive(tmp_path / "a.npz") as archive, archive.rows("x") as (shape, blocks):
        sizes = [block.nbytes for block in blocks]
    assert shape == (9, 1 << 20)
    assert sum(sizes) == 9 << 22
    assert max(sizes) <= 1 << 24


def test_a_limit_is_kept(tmp_path):
    write_archive(tmp_path / "a.npz", {"x": MATRIX})
    with Archive(tmp_path / "a.npz") as archive:
        assert archive.read("x", 48).shape == (4, 3)
        with pytest.raises(ValueError, match="x has 48 bytes, at most 47 are read"):
            archive.read("x", 47)


def test_an_interrupted_write_leaves_the_old_file_and_no_other(tmp_path):
    def pieces():
        yield MATRIX[:2]
        raise KeyboardInterrupt

    file = tmp_path / "a.npz"
    write_archive(file, {"x": MATRIX})
    with pytest.raises(KeyboardInterrupt):
        write_archive(file, {"x": Blocks((4, 3), np.dtype(np.float32), pieces())})
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]
    assert (read(file) == MATRIX).all()


@pytest.mark.parametrize("place", ["missing/a.npz", "file/a.npz", "folder"])
def test_a_place_that_cannot_be_written_is_named_with_the_reason(tmp_path, place):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").touch()
    with pytest.raises(IndexFault, match=r"cannot be written: .*; check the folder"):
        write_archive(tmp_path / place, {"x": MATRIX})
    assert not list(tmp_path.rglob("*.tmp"))


# Files from elsewhere


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"x" * 500, b"PK\x05\x06" + b"\xff" * 18, b"PK\x05\x06" + bytes(18)]
)
def test_what_is_no_archive_is_a_value_error(tmp_path, data):
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(ValueError, match=r"\w"):
        read(tmp_path / "a.npz")


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Archive(tmp_path / "a.npz")


def test_a_compressed_member_is_refused_before_it_can_grow(tmp_path):
    bomb = npy(np.zeros(50_000_000, np.uint8))
    file = pack(tmp_path / "a.npz", ("x.npy", bomb), compression=zipfile.ZIP_DEFLATED)
    assert file.stat().st_size < 100_000
    with pytest.raises(ValueError, match="x is compressed"):
        read(file)


def test_a_compressed_member_that_claims_the_size_of_what_is_stored_is_refused_too(tmp_path):
    file = pack(tmp_path / "a.npz", ("x.npy", npy(MATRIX)), compression=zipfile.ZIP_DEFLATED)
    data = bytearray(file.read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = data[entry + 20 : entry + 24]
    file.write_bytes(data)
    with pytest.raises(ValueError, match="x is compressed"):
        read(file)


def test_a_member_that_is_there_twice_is_refused(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        file = pack(tmp_path / "a.npz", ("x.npy", npy(MATRIX)), ("x.npy", npy(MATRIX + 1)))
    with pytest.raises(ValueError, match="two members of one name"):
        read(file)


@pytest.mark.parametrize("size", [2**31, 2**32 - 2])
def test_a_member_that_claims_to_be_larger_than_the_file_is_refused(tmp_path, size):
    file = pack(tmp_path / "a.npz", ("x.npy", npy(MATRIX)))
    data = bytearray(file.read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + 20 : entry + 28] = struct.pack("<II", size, size)
    file.write_bytes(data)
    with pytest.raises(ValueError, match="larger than the file"):
        read(file)


@pytest.mark.proves("R-portable-hostile")
@pytest.mark.parametrize(
    "text",
    [
        header("(-4, -3)"),
        header("(-1,)"),
        header("(99999999999, 99999999999)"),
        header("(999999999999999999999999, 3)"),
        header("(4, 4)"),
        header("(4, 2)"),
        header("(4, True)"),
        header("(2, 2, 3)"),
        header("12"),
        header("()"),
        header("(4, 3)", order="True"),
        header("(4, 3)", descr=">f4"),
        header("(4, 3)", descr="|O"),
        header("(4, 3)", descr="|V0"),
        header("(4, 3)", descr="f4,(2"),
        header("(4, 3"),
        "{'descr': '<f4', 'fortran_order': False, 'shape': (",
        "{'descr': '<f4', 'fortran_order': False}\n",
        "[" * 9000,
        "-" * 9000 + "1",
        "{'descr': __import__('os').abort(), 'fortran_order': False, 'shape': (4, 3), }\n",
        "",
        "\x00" * 64,
    ],
)
def test_a_header_that_numpy_would_not_write_is_a_value_error(tmp_path, text):
    file = pack(tmp_path / "a.npz", ("x.npy", npy(MATRIX, text)))
    with pytest.raises(ValueError, match=r"not a plain array|does not have \d+ bytes"):
        read(file)
    with pytest.raises(ValueError, match=r"not a plain array|does not have \d+ bytes"):
        read_rows(file)


def test_a_matrix_without_columns_is_refused_however_many_rows_it_claims(tmp_path):
    file = pack(tmp_path / "a.npz", ("x.npy", npy(MATRIX[:, :0], header("(999999999999999, 0)"))))
    with pytest.raises(ValueError, match="array of shape"):
        read_rows(file)


@pytest.mark.parametrize("array", [MATRIX[0], MATRIX.astype(np.uint8), MATRIX.astype(np.int64)])
def test_rows_are_those_of_a_float_matrix(tmp_path, array):
    with pytest.raises(ValueError, match="array of shape|not have"):
        read_rows(pack(tmp_path / "a.npz", ("x.npy", npy(array))))


def test_another_version_of_the_format_is_refused(tmp_path):
    data = npy(MATRIX)
    with pytest.raises(ValueError, match="version 1.0"):
        read(pack(tmp_path / "a.npz", ("x.npy", data[:6] + b"\x02\x00" + data[8:])))


def test_an_array_that_is_not_there_is_named(tmp_path):
    file = pack(tmp_path / "a.npz", ("y.npy", npy(MATRIX)))
    with pytest.raises(ValueError, match=r"x: .*x\.npy"):
        read(file)
    with Archive(file) as archive:
        assert "y" in archive
        assert "x" not in archive


@given(st.data())
def test_a_file_with_any_bytes_changed_gives_what_was_written_or_a_value_error(tmp_path_factory, data):
    file = tmp_path_factory.getbasetemp() / "changed.npz"
    write_archive(file, {"keys": np.arange(3, dtype=np.uint64), "x": MATRIX})
    whole = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(whole[: data.draw(st.integers(0, 3)) * -7 or None])
    try:
        with Archive(file) as archive:
            archive.read("keys")
            with archive.rows("x") as (shape, blocks):
                found = np.concatenate(list(blocks))
        assert found.shape == shape
    except (ValueError, OSError):
        pass
