"""The ciphertexts of a message, and the lies that AES-GCM alone would let pass."""

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from proofcast.errors import InvalidInput
from proofcast.groups.sealing import (
    COMMON_HEAD,
    HEADER_BYTES,
    NONCE,
    PAYLOAD_BYTES,
    CommonPlaintext,
    Payload,
    Sort,
    compute_commitment,
    open_common,
    parse_payload,
    seal_common,
)

KEY, OTHER_KEY, SALT = b"k" * 32, b"o" * 32, b"s" * 16
PLAIN = CommonPlaintext(Sort.OPERATION, b"a" * 32, 7, 0, 1, b"r" * 32, b"transfer 10")


def test_two_keys_for_one_ciphertext_are_refused() -> None:
    """Key commitment: a ciphertext that opens under two keys says two things to two recipients."""
    common = seal_common(PLAIN, KEY, SALT)
    with pytest.raises(InvalidInput, match="another key"):
        open_common(common, OTHER_KEY)


def test_ciphertext_that_opens_under_an_uncommitted_key_is_refused() -> None:
    """What AES-GCM accepts, and the commitment does not."""
    header = b"\x01" + SALT + compute_commitment(KEY)
    common = header + AESGCM(OTHER_KEY).encrypt(NONCE, bytes(COMMON_HEAD.size), header)
    assert AESGCM(OTHER_KEY).decrypt(NONCE, common[HEADER_BYTES:], header)
    for key in (KEY, OTHER_KEY):
        with pytest.raises(InvalidInput):
            open_common(common, key)


@pytest.mark.parametrize("place", [0, 1, 17, 49, -1])
def test_changed_byte_is_refused(place: int) -> None:
    common = bytearray(seal_common(PLAIN, KEY, SALT))
    common[place] ^= 1
    with pytest.raises(InvalidInput):
        open_common(bytes(common), KEY)


@pytest.mark.parametrize("data", [b"", bytes(78), bytes(80), b"\x02" + bytes(78), bytes(33) + b"\x01" + bytes(45)])
def test_malformed_payload_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        parse_payload(data)


def test_common_ciphertext_opens() -> None:
    assert open_common(seal_common(PLAIN, KEY, SALT), KEY) == PLAIN


@given(
    st.builds(
        Payload,
        st.binary(min_size=32, max_size=32),
        st.binary(min_size=32, max_size=32),
        st.integers(0, 2**48 - 1),
        st.integers(0, 2**32 - 1),
        st.integers(0, 2**32 - 1),
    )
)
def test_payload_is_read_as_written_and_always_as_long(payload: Payload) -> None:
    assert parse_payload(payload.encode()) == payload
    silent = Payload(payload.key, None, 0, payload.generation, payload.peer_generation)
    assert parse_payload(silent.encode()) == silent
    assert len(silent.encode()) == len(payload.encode()) == PAYLOAD_BYTES
