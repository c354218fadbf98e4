"""Who may act for a device: the one that holds its key, at this server, for a while."""

import pytest
from nacl.signing import SigningKey

from proofcast.errors import InvalidRequest, Reason
from proofcast.groups.login import (
    CHALLENGE_S_MAX,
    TOKEN_S_MAX,
    compute_challenge,
    compute_token,
    sign_challenge,
    verify_login,
    verify_token,
)

SECRET, SERVER, NOW = b"s" * 32, b"k" * 32, 1_000.0
ALICE, BOB = SigningKey(b"a" * 32), SigningKey(b"b" * 32)
ALICE_ID, BOB_ID = bytes(ALICE.verify_key), bytes(BOB.verify_key)
CHALLENGE = compute_challenge(SECRET, ALICE_ID, NOW)
SIGNATURE = sign_challenge(ALICE, SERVER, CHALLENGE)
TOKEN = compute_token(SECRET, ALICE_ID, NOW)


@pytest.mark.parametrize(
    ("server", "device", "challenge", "signature", "now"),
    [
        (SERVER, ALICE_ID, CHALLENGE, sign_challenge(BOB, SERVER, CHALLENGE), NOW),
        (SERVER, BOB_ID, CHALLENGE, sign_challenge(BOB, SERVER, CHALLENGE), NOW),
        (SERVER, ALICE_ID, compute_challenge(b"x" * 32, ALICE_ID, NOW), SIGNATURE, NOW),
        (SERVER, ALICE_ID, CHALLENGE, SIGNATURE, NOW + CHALLENGE_S_MAX + 1),
        (b"o" * 32, ALICE_ID, CHALLENGE, SIGNATURE, NOW),
        (SERVER, ALICE_ID, TOKEN[32:], sign_challenge(ALICE, SERVER, TOKEN[32:]), NOW),
        (SERVER, ALICE_ID, b"", SIGNATURE, NOW),
        (SERVER, ALICE_ID, CHALLENGE, b"", NOW),
    ],
    ids=["other key", "other device", "other secret", "too late", "other server", "token", "no challenge", "unsigned"],
)
def test_login_is_refused(server: bytes, device: bytes, challenge: bytes, signature: bytes, now: float) -> None:
    with pytest.raises(InvalidRequest) as refused:
        verify_login(SECRET, server, device, challenge, signature, now)
    assert refused.value.reason is Reason.NOT_ALLOWED


@pytest.mark.parametrize(
    "token", [b"", TOKEN[:-1], bytes([TOKEN[0] ^ 1]) + TOKEN[1:], BOB_ID + TOKEN[32:], ALICE_ID + CHALLENGE]
)
def test_token_is_refused(token: bytes) -> None:
    with pytest.raises(InvalidRequest):
        verify_token(SECRET, token, NOW)


def test_token_expires() -> None:
    assert verify_token(SECRET, TOKEN, NOW + TOKEN_S_MAX - 1) == ALICE_ID
    with pytest.raises(InvalidRequest, match="expired"):
        verify_token(SECRET, TOKEN, NOW + TOKEN_S_MAX + 1)


def test_login_leads_to_a_token() -> None:
    token = verify_login(SECRET, SERVER, ALICE_ID, CHALLENGE, SIGNATURE, NOW)
    assert verify_token(SECRET, token, NOW) == ALICE_ID
