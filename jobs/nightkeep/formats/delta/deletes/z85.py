"""Bytes <-> text in Z85 (rfc.zeromq.org/spec/32), as in deletion vector descriptors. Four bytes are five characters."""

from __future__ import annotations

from typing import Final

import numpy as np

_ALPHABET: Final = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_CHARACTERS: Final = np.frombuffer(_ALPHABET, np.uint8)
_PLACES: Final = np.array([85**4, 85**3, 85**2, 85, 1], np.uint64)
_NO_DIGIT: Final = 255
_DIGITS: Final = np.full(256, _NO_DIGIT, np.uint8)
_DIGITS[_CHARACTERS] = np.arange(len(_ALPHABET), dtype=np.uint8)
_WORD: Final = 4
_GROUP: Final = 5


def encode(data: bytes) -> str:
    """The text of the bytes, padded with zero bytes to a multiple of four, as delta-spark's Codec.scala does."""
    padded = data + bytes(-len(data) % _WORD)
    words = np.frombuffer(padded, ">u4").astype(np.uint64)
    digits = words[:, None] // _PLACES % len(_ALPHABET)
    return str(_CHARACTERS[digits].tobytes(), "ascii")


def decode(text: str) -> bytes:
    """The bytes, padding included. Raises ValueError for text that is not Z85."""
    if len(text) % _GROUP or not text.isascii():
        raise ValueError(f"expected a multiple of {_GROUP} ASCII characters, found {len(text)}")
    digits = _DIGITS[np.frombuffer(text.encode("ascii"), np.uint8)]
    if (digits == _NO_DIGIT).any():
        raise ValueError(f"character {text[int(np.argmax(digits == _NO_DIGIT))]!r} is none of Z85's")
    words = digits.reshape(-1, _GROUP).astype(np.uint64) @ _PLACES
    if len(words) and int(words.max()) >> 32:
        raise ValueError("five characters stand for more than four bytes")
    return words.astype(">u4").tobytes()
