"""`proofcast topic`: everything that must be refused, then everything that must work, on a real chain."""

import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from eth_account import Account

from proofcast.cli.topic import topic as topic_group
from proofcast.onchain import topics
from proofcast.onchain.io.publishing import find_published
from proofcast.onchain.io.receipts import parse_quantity
from proofcast.onchain.payload import decode_fields, parse_payload_type
from proofcast.onchain.request import Request

if TYPE_CHECKING:
    from conftest import CommandLine, Refused

pytestmark = pytest.mark.needs("anvil")

UNKNOWN = "0x" + "12" * 32
ADDRESS = "0x" + "12" * 20


def count_transactions(cli: "CommandLine", account: int = 0) -> int:
    address = "0x" + cli.playground.chain.accounts[account].address.hex()
    return parse_quantity(cli.playground.rpc.call("eth_getTransactionCount", address, "latest"))


@pytest.fixture
def topic(cli: "CommandLine") -> str:
    return cli("topic", "create", "flights", "--payload-type", "(string flight, uint64 delay)").line


def deploy_insurance(cli: "CommandLine", topic: str) -> str:
    arguments = (cli.playground.topics, bytes.fromhex(topic[2:]))
    return "0x" + cli.playground.create("TravelInsurance", "(address,bytes32)", *arguments).hex()


# --- refusals: where to


def test_dead_node(cli: "CommandLine", assert_refused: "Refused") -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    printed = cli("topic", "list", "--rpc-url", f"http://127.0.0.1:{port}/secret")
    assert_refused(printed, 75, f"the node at `127.0.0.1:{port}` did not answer")
    assert "secret" not in printed.err


def test_address_of_no_node(cli: "CommandLine", assert_refused: "Refused") -> None:
    assert_refused(cli("topic", "list", "--rpc-url", "localhost"), 2, "no `http://` or `https://` address")


def test_other_chain(cli: "CommandLine", assert_refused: "Refused") -> None:
    words = "is on chain `31337` but `1` was asked for"
    assert_refused(cli("topic", "list", "--chain-id", "1"), 2, words)
    assert_refused(cli("topic", "create", "x", "--chain-id", "1"), 2, words)


def test_chain_without_topics(cli: "CommandLine", assert_refused: "Refused") -> None:
    assert_refused(cli("topic", "list", "--contract", ADDRESS), 2, "there is no `Topics` at")
    assert_refused(cli("topic", "create", "x", "--contract", ADDRESS), 2, "on chain `31337`")
    assert count_transactions(cli) == 0


def test_contract_that_is_not_topics(cli: "CommandLine", assert_refused: "Refused") -> None:
    other = "0x" + cli.playground.create("Noop").hex()
    assert_refused(cli("topic", "show", UNKNOWN, "--contract", other), 2, "there is no `TopicsLens` at")


# --- refusals: who


def test_no_key(cli: "CommandLine", assert_refused: "Refused") -> None:
    cli.environment.delenv("PROOFCAST_PRIVATE_KEY")
    assert_refused(cli("topic", "create", "x"), 2, "there is no key to sign with")


def test_bad_key_in_the_environment(cli: "CommandLine", assert_refused: "Refused") -> None:
    cli.environment.setenv("PROOFCAST_PRIVATE_KEY", "5e" * 31)
    printed = cli("topic", "create", "x")
    assert_refused(printed, 2, "`PROOFCAST_PRIVATE_KEY` holds no private key")
    assert "5e5e" not in printed.err


def test_bad_key_file(cli: "CommandLine", assert_refused: "Refused", tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    assert_refused(cli("topic", "create", "x", "--keystore", str(file)), 2, "cannot be read")
    file.write_text("{}")
    assert_refused(cli("topic", "create", "x", "--keystore", str(file)), 2, "is no Ethereum keystore")
    file.write_text(json.dumps(Account.encrypt("5e" * 32, "right", kdf="pbkdf2", iterations=1000)))
    cli.environment.setenv("PROOFCAST_PASSWORD", "wrong")
    printed = cli("topic", "create", "x", "--keystore", str(file))
    assert_refused(printed, 2, "the password does not open the key file")
    assert "wrong" not in printed.err
    missing = str(tmp_path / "none")
    assert_refused(
        cli("topic", "create", "x", "--keystore", str(file), "--password-file", missing), 2, "cannot be read"
    )


def test_no_option_takes_a_key(cli: "CommandLine", assert_refused: "Refused") -> None:
    names = {name for command in topic_group.commands.values() for option in command.params for name in option.opts}
    assert not {name for name in names if "private" in name or name.endswith(("-key-hex", "secret", "mnemonic"))}
    assert {"--keystore", "--password-file"} <= names
    secret = "5e" * 32
    for words in (["--private-key", secret], ["--keystore", secret], ["--keystore", "0x" + secret]):
        printed = cli("topic", "create", "x", *words)
        assert printed.exit_code == 2
        assert secret not in printed.err


def test_no_funds(cli: "CommandLine", assert_refused: "Refused") -> None:
    cli.environment.setenv("PROOFCAST_PRIVATE_KEY", "5e" * 32)
    assert_refused(cli("topic", "create", "x"), 2, "has `0` wei but this call needs up to")


def test_not_the_owner(cli: "CommandLine", assert_refused: "Refused", topic: str) -> None:
    other = cli.use_account(1)
    printed = cli("topic", "policy", topic, "reward_gwei=5")
    assert_refused(printed, 2, "is not the owner")
    assert other in printed.err.lower()
    assert_refused(cli("topic", "publish", topic, "x"), 2, "may not do this")
    assert count_transactions(cli, 1) == 0


# --- refusals: what


@pytest.mark.parametrize(
    "words",
    [
        ["show", UNKNOWN],
        ["publish", UNKNOWN, "x"],
        ["subscribe", UNKNOWN, "--deposit", "1ether"],
        ["policy", UNKNOWN, "reward_gwei=1"],
        ["publisher", UNKNOWN, ADDRESS],
        ["fund", UNKNOWN, "0", "1gwei"],
        ["withdraw", UNKNOWN, "0", "1gwei"],
        ["unsubscribe", UNKNOWN, "0"],
        ["quote", UNKNOWN],
        ["deliver", UNKNOWN],
        ["seal", UNKNOWN],
        ["payload-type", UNKNOWN, "(uint8 x)"],
        ["collect", UNKNOWN],
    ],
)
def test_unknown_topic(cli: "CommandLine", assert_refused: "Refused", words: list[str]) -> None:
    assert_refused(cli("topic", *words), 2, f"there is no topic `{UNKNOWN}`")
    assert count_transactions(cli) == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["show", "flights"], "`flights` names no topic"),
        (["show", "0x12/flights"], "`0x12` is no address"),
        (["publisher", UNKNOWN, "0xF39Fd6e51aad88F6F4ce6aB8827279cffFb92266"], "the checksum of the address"),
        (["subscribe", UNKNOWN, "--deposit", "5"], "`5` is no amount of ether"),
        (["subscribe", UNKNOWN, "--deposit", "0.5wei"], "`0.5wei` is no amount of ether"),
        (["subscribe", UNKNOWN, "--deposit", "1ether", "--max-price", "5wei"], "`5` wei is no whole number of mwei"),
        (["fund", UNKNOWN, "0", "5wei"], "`5` wei is no whole number of gwei"),
        (["create", "x", "--policy", "colour=1"], "`colour` is no field of a policy"),
        (["create", "x", "--policy", "publishing=all"], "`all` is no kind of access"),
        (["create", "x", "--policy", "reward_gwei=-1"], "`-1` is no value for `reward_gwei`"),
        (["create", "x", "--policy", "callback_gas=0"], "`callback_gas` is `0` but must lie between"),
        (["publish", UNKNOWN], "`0` payloads were given"),
        (["publish", UNKNOWN, "x", "--hex", "00"], "`2` payloads were given"),
        (["publish", UNKNOWN, "x", "--field", "y=1"], "a payload and its fields were given"),
        (["publish", UNKNOWN, "--hex", "0g"], "the payload is no hexadecimal text"),
        (["publish", UNKNOWN, "--file", "/nonexistent"], "the file `/nonexistent` cannot be read"),
        (["relay", "/nonexistent"], "the file `/nonexistent` cannot be read"),
        (["list", "--max-fee", "1gwei"], "No such option"),
        (["create", "\udcff"], "is no UTF-8 text"),
        (["show", f"{ADDRESS}/\udcff"], "is no UTF-8 text"),
    ],
)
def test_meaningless_words(cli: "CommandLine", assert_refused: "Refused", words: list[str], sentence: str) -> None:
    assert_refused(cli("topic", *words), 2, sentence)


def test_bad_fields(cli: "CommandLine", assert_refused: "Refused", topic: str) -> None:
    before = count_transactions(cli)
    assert_refused(cli("topic", "publish", topic, "--field", "delay=1"), 2, "the field `flight` has no value")
    words = ["--field", "flight=x", "--field", "delay=-1"]
    assert_refused(cli("topic", "publish", topic, *words), 2, "`-1` is no `uint64`")
    assert_refused(cli("topic", "publish", UNKNOWN, *words), 2, f"there is no topic `{UNKNOWN}`")
    assert count_transactions(cli) == before
    untyped = cli("topic", "create", "untyped").line
    assert_refused(cli("topic", "publish", untyped, *words), 2, "the topic declares no payload type")
    assert cli("topic", "payload-type", untyped, "whatever").exit_code == 0
    assert_refused(cli("topic", "publish", untyped, *words), 1, "`whatever` is no tuple of named ABI types")


def test_topic_that_exists(cli: "CommandLine", assert_refused: "Refused", topic: str) -> None:
    assert_refused(cli("topic", "create", "flights"), 2, f"the topic `{topic}` exists already")


def test_stale_sequence(cli: "CommandLine", assert_refused: "Refused", topic: str) -> None:
    before = count_transactions(cli)
    printed = cli("topic", "publish", topic, "x", "--expect", "5")
    assert_refused(printed, 2, "the next event is number `1` but `5` was expected")
    assert count_transactions(cli) == before


def test_deposit_below_the_floor(cli: "CommandLine", assert_refused: "Refused", topic: str) -> None:
    printed = cli("topic", "subscribe", topic, "--deposit", "9999gwei")
    assert_refused(printed, 2, "the deposit is `9999` gwei but must be at least `10000` gwei")


def test_nothing_to_do(cli: "CommandLine", assert_refused: "Refused", topic: str) -> None:
    assert_refused(cli("topic", "collect"), 2, "nothing is owed to")
    assert_refused(cli("topic", "seal", topic), 2, "has nothing to seal")
    assert_refused(cli("topic", "deliver", topic), 2, "has no page to deliver")
    assert_refused(cli("topic", "unsubscribe", topic, "0"), 2, "nobody holds the index `0`")


def test_fee_too_high(cli: "CommandLine", assert_refused: "Refused") -> None:
    assert_refused(cli("topic", "create", "x", "--max-fee", "1wei"), 75, "at most `1` wei may be paid")


# --- successes


def test_list_grows(cli: "CommandLine", topic: str) -> None:
    (listed,) = cli("topic", "list", "--json").json
    assert listed["topic"] == topic
    assert (listed["name"], listed["subscriptions"], listed["events"]) == ("flights", 0, 0)
    assert topic in cli("topic", "list").line


def test_name_of_a_stranger_cannot_steer_the_terminal(cli: "CommandLine") -> None:
    """Contracts do not check names: this one is no UTF-8 and would clear the screen."""
    data = topics.create("x" * 5).data.replace(b"x" * 5, b"\xff\x1b[2J")
    cli.playground.send(Request(cli.playground.topics, data))
    printed = cli("topic", "list")
    assert printed.exit_code == 0
    assert printed.out.isascii()
    assert "\x1b" not in printed.out
    assert "\\xff\\x1b[2J" in printed.out
    assert cli("topic", "list", "--json").json[0]["name"] == "\\xff\x1b[2J"


def test_topic_by_owner_and_name(cli: "CommandLine", topic: str) -> None:
    owner = "0x" + cli.playground.chain.accounts[0].address.hex()
    assert cli("topic", "show", f"{owner}/flights", "--json").json["topic"] == topic


def test_account_is_warned_and_billed_as_no_code(cli: "CommandLine", topic: str) -> None:
    subscribed = cli("topic", "subscribe", topic, "--deposit", "0.01ether")
    assert subscribed.line == "0"
    assert "has no code" in subscribed.err
    published = cli("topic", "publish", topic, "hello", "--key", "LH454", "--json").json
    assert (published["sequence"], published["outcomes"]) == (1, {"0": "no-code"})
    shown = cli("topic", "show", topic, "--json").json
    assert shown["subscriptions"][0]["last_outcome"] == "no-code"
    assert shown["subscriptions"][0]["deposit_gwei"] == 10_000_000 - published["credited_gwei"]


def test_life_of_a_subscriber_contract(cli: "CommandLine", topic: str) -> None:
    contract = deploy_insurance(cli, topic)
    joined = cli(
        "topic", "subscribe", topic, "--deposit", "0.01ether", "--gas", "90000", "--via", contract, "--json"
    ).json
    assert joined["subscriber"].lower() == contract
    assert joined["terms"]["callback_gas"] == 90_000
    index = str(joined["index"])
    assert cli("topic", "quote", topic, "--length", "96", "--json").json["quote"]["outcomes"] == ["delivered"]
    payload = "0x" + f"{64:064x}{150:064x}{5:064x}" + b"LH454".hex().ljust(64, "0")
    published = cli("topic", "publish", topic, "--hex", payload, "--key", "LH454", "--json").json
    assert published["outcomes"] == {index: "delivered"}
    assert published["credited_gwei"] > 0

    before = cli("topic", "show", topic, "--json").json["subscriptions"][0]["deposit_gwei"]
    funded = cli("topic", "fund", topic, index, "1000gwei", "--json").json
    assert funded["deposit_gwei"] == before + 1_000
    withdrawn = cli("topic", "withdraw", topic, index, "500gwei", "--via", contract, "--json").json
    assert withdrawn["deposit_gwei"] == before + 500
    ended = cli("topic", "unsubscribe", topic, index, "--via", contract, "--json").json
    assert ended["residue_gwei"] == before + 500
    assert cli("topic", "show", topic, "--json").json["subscriptions"] == []
    assert cli("topic", "collect", "--json").json["amount_gwei"] == published["credited_gwei"]


def test_policy_and_publishers(cli: "CommandLine", topic: str) -> None:
    changed = cli("topic", "policy", topic, "reward_gwei=5", "subscribing=listed", "--json").json
    assert (changed["policy"]["reward_gwei"], changed["policy"]["subscribing"]) == (5, "listed")
    assert cli("topic", "show", topic, "--json").json["state"]["policy"] == changed["policy"]
    friend = "0x" + cli.playground.chain.accounts[1].address.hex()
    assert cli("topic", "publisher", topic, friend).line.endswith("may publish")
    cli.use_account(1)
    assert cli("topic", "publish", topic, "x", "--json").json["sequence"] == 1
    cli.use_account(0)
    assert cli("topic", "publisher", topic, friend, "--may", "nothing").exit_code == 0
    cli.use_account(1)
    assert cli("topic", "publish", topic, "x").exit_code == 2


def test_payload_type(cli: "CommandLine", topic: str) -> None:
    assert cli("topic", "show", topic, "--json").json["payload_type"] == "(string flight, uint64 delay)"
    assert cli("topic", "payload-type", topic, "(uint8 x)").line == "the payload is (uint8 x)"
    assert cli("topic", "show", topic, "--json").json["payload_type"] == "(uint8 x)"


def test_publish_by_fields(cli: "CommandLine", topic: str) -> None:
    assert cli("topic", "publish", topic, "--field", "delay=30", "--field", "flight=LH454").exit_code == 0
    event = find_published(cli.playground.rpc, cli.playground.topics, bytes.fromhex(topic[2:]), 1)
    fields = parse_payload_type("(string flight, uint64 delay)")
    assert decode_fields(fields, event.payload) == {"flight": "LH454", "delay": 30}


def test_idempotency_key_publishes_once(cli: "CommandLine", topic: str) -> None:
    words = ["topic", "publish", topic, "x", "--idempotency-key", "event 1", "--json"]
    first, again = cli(*words), cli(*words)
    assert first.out == again.out
    assert "idempotency key `event 1`" in first.err
    assert cli("topic", "show", topic, "--json").json["state"]["sequence"] == 1


def test_repeated_call_is_the_same_though_the_chain_has_changed(cli: "CommandLine", topic: str) -> None:
    """Which place is free, and what the policy was, differ the second time; what was wanted does not."""
    subscribe = ["topic", "subscribe", topic, "--deposit", "0.01ether", "--idempotency-key", "s", "--json"]
    policy = ["topic", "policy", topic, "reward_gwei=5", "--idempotency-key", "p", "--json"]
    first = [cli(*subscribe).json, cli(*policy).json]
    assert cli("topic", "policy", topic, "callback_gas=50000").exit_code == 0
    assert [cli(*subscribe).json, cli(*policy).json] == first
    shown = cli("topic", "show", topic, "--json").json
    assert len(shown["subscriptions"]) == 1
    assert shown["state"]["policy"]["callback_gas"] == 50_000


def test_key_of_another_call(cli: "CommandLine", assert_refused: "Refused", topic: str) -> None:
    assert cli("topic", "publish", topic, "x", "--idempotency-key", "k").exit_code == 0
    printed = cli("topic", "publish", topic, "y", "--idempotency-key", "k")
    assert_refused(printed, 2, "the idempotency key `k` belongs to a different call")


def test_payload_from_a_file(cli: "CommandLine", topic: str, tmp_path: Path) -> None:
    file = tmp_path / "payload"
    file.write_bytes(b"\x00\xff")
    assert cli("topic", "publish", topic, "--file", str(file), "--json").json["sequence"] == 1


def test_seal(cli: "CommandLine", topic: str) -> None:
    animal = cli.playground.create("Noop")
    for _ in range(8):
        cli.playground.join(animal, bytes.fromhex(topic[2:]))
    sealed = cli("topic", "seal", topic, "--json").json
    assert (sealed["first"], sealed["end"]) == (0, 8)
    outcomes = cli("topic", "publish", topic, "x", "--json").json["outcomes"]
    assert outcomes == {str(index): "delivered" for index in range(8)}


def test_owner_collects_what_publications_without_payee_left(cli: "CommandLine", topic: str) -> None:
    cli.playground.join(cli.playground.create("Noop"), bytes.fromhex(topic[2:]))
    nobody = "0x" + "00" * 20
    credited = cli("topic", "publish", topic, "x", "--payee", nobody, "--json").json["credited_gwei"]
    assert cli("topic", "show", topic, "--json").json["state"]["credit_gwei"] == credited
    assert cli("topic", "collect", topic, "--json").json["amount_gwei"] == credited


def test_keystore_signs(cli: "CommandLine", tmp_path: Path) -> None:
    key = cli.playground.chain.accounts[3].private_key
    file, password = tmp_path / "key.json", tmp_path / "password"
    file.write_text(json.dumps(Account.encrypt(key, "right", kdf="pbkdf2", iterations=1000)))
    password.write_text("right\n")
    printed = cli("topic", "create", "x", "--keystore", str(file), "--password-file", str(password), "--json")
    assert printed.json["owner"].lower() == "0x" + cli.playground.chain.accounts[3].address.hex()


# --- signed publications


@pytest.fixture
def publisher(cli: "CommandLine") -> str:
    """A `SignedPublisher` that obeys account 2."""
    signer = "0x" + cli.playground.chain.accounts[2].address.hex()
    owner: str = cli("topic", "create", "signed", "--signed-by", signer, "--json").json["owner"]
    return owner


def sign(cli: "CommandLine", tmp_path: Path, *words: str) -> tuple[Path, dict[str, Any]]:
    cli.use_account(2)
    printed = cli("topic", "sign", *words)
    file = tmp_path / "publication.json"
    file.write_text(printed.line)
    cli.use_account(0)
    return file, json.loads(printed.line)


def test_relay_and_late_copy(cli: "CommandLine", publisher: str, tmp_path: Path) -> None:
    file, publication = sign(cli, tmp_path, publisher, "hello", "--key", "LH454")
    assert (publication["sequence"], publication["payload"]) == (1, "0x" + b"hello".hex())
    first = cli("topic", "relay", str(file), "--json").json
    assert (first["published"], first["sequence"]) == (True, 1)
    late = cli("topic", "relay", str(file), "--json").json
    assert (late["published"], late["sequence"]) == (False, 1)
    assert "notified nobody" in cli("topic", "relay", str(file)).line


def test_signer_needs_no_node(cli: "CommandLine", publisher: str, tmp_path: Path) -> None:
    (signed,) = cli("topic", "list", "--json").json
    cli.environment.setenv("PROOFCAST_RPC_URL", "http://127.0.0.1:1")
    words = ["--chain-id", "31337", "--topic", signed["topic"], "--sequence", "1"]
    file, _ = sign(cli, tmp_path, publisher, "hello", *words)
    cli.environment.setenv("PROOFCAST_RPC_URL", cli.playground.chain.url)
    assert cli("topic", "relay", str(file), "--json").json["published"] is True


@pytest.mark.parametrize(
    ("change", "exit_code", "words"),
    [
        ({"payload": "0x00"}, 2, "the signature is by"),
        ({"chain_id": 1}, 2, "the publication is for chain `1` but the node is on chain `31337`"),
        ({"contract": ADDRESS}, 2, "there is no `SignedPublisher` at"),
        ({"sequence": 7}, 75, "is number `7` but the next event is number `1`"),
        ({"deadline": 1}, 2, "had to be relayed by `1`"),
        ({"signature": "0x"}, 2, "the signature is by"),
        ({"payee": "nobody"}, 1, "the file holds no signed publication"),
        ({"topic": None}, 1, "the file holds no signed publication"),
    ],
)
def test_bad_publication(
    cli: "CommandLine",
    assert_refused: "Refused",
    publisher: str,
    tmp_path: Path,
    change: dict[str, Any],
    exit_code: int,
    words: str,
) -> None:
    file, publication = sign(cli, tmp_path, publisher, "hello")
    file.write_text(json.dumps(publication | change))
    before = count_transactions(cli)
    assert_refused(cli("topic", "relay", str(file)), exit_code, words)
    assert count_transactions(cli) == before


def test_file_without_publication(cli: "CommandLine", assert_refused: "Refused", tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"\xff")
    assert_refused(cli("topic", "relay", str(file)), 1, "the file holds no signed publication")
