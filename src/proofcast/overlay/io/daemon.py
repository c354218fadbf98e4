"""One peer as a process: a libp2p host, its stored state, and a local socket by which commands reach it."""

import json
import logging
import signal
import sys
import time

import trio

from proofcast.errors import ProofcastError
from proofcast.overlay.io.addresses import make_peer_id
from proofcast.overlay.io.host import Host, open_host
from proofcast.overlay.io.options import PeerOptions
from proofcast.overlay.io.service import Service
from proofcast.overlay.io.store import PeerStore
from proofcast.overlay.settings import Settings
from proofcast.routing.predicate import parse_predicate

SAVE_CONTACTS_S = 10.0


async def run_peer(options: PeerOptions) -> None:
    """Run until a signal ends it: bootstrap, stored peers and subscriptions first, then commands."""
    service = Service(PeerStore(options.state), Settings(region=options.region, capacity=options.capacity))
    opened = open_host(
        service.store.seed, options.listen, service.make_peer, service.note, options.announce, options.kad_protocol
    )
    async with opened as host, trio.open_nursery() as nursery:
        service.host = host
        service.kept = {text: parse_predicate(text) for text in service.store.load_kept()}
        await enter_network(host, service.store, options)
        for predicate, since in service.store.load_subscriptions():
            host.carry_out(host.peer.subscribe(parse_predicate(predicate), time.time(), since))
        options.socket_path.unlink(missing_ok=True)
        listener = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
        await listener.bind(str(options.socket_path))
        listener.listen()
        nursery.start_soon(trio.serve_listeners, service.serve, [trio.SocketListener(listener)])
        nursery.start_soon(keep_contacts, host, service.store)
        contact = host.peer.seat.contact
        print(json.dumps({"peer": make_peer_id(contact.public_key), "address": contact.address}), flush=True)
        # Of our own: whoever starts a peer in a shell's background has it ignore Ctrl-C's signal otherwise.
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            await anext(signals)
        nursery.cancel_scope.cancel()


async def enter_network(host: Host, store: PeerStore, options: PeerOptions) -> None:
    """By the peers that were named and those known from the last run; a first peer has neither."""
    contacts = store.load_contacts()
    failures: list[ProofcastError] = []
    for address in options.bootstrap:
        try:
            contacts += await host.find_contacts(address, options.kad_protocol)
        except ProofcastError as error:
            failures.append(error)
    if failures and not contacts:
        raise failures[0]
    host.carry_out(host.peer.join(contacts, time.time()))


async def keep_contacts(host: Host, store: PeerStore) -> None:
    """Now and then, and at the end; a peer that found nobody keeps whom it knew before."""
    table = host.peer.seat.table
    try:
        while True:
            await trio.sleep(SAVE_CONTACTS_S)
            if table.contacts:
                store.save_contacts(table.contacts.values())
    finally:
        if table.contacts:
            store.save_contacts(table.contacts.values())


def main() -> int:
    """`python -m proofcast.overlay.io.daemon OPTIONS`, the options as JSON."""
    logging.disable(logging.CRITICAL)  # libp2p logs each failed dial; the peer counts them
    try:
        trio.run(run_peer, PeerOptions.parse(sys.argv[1]))
    except KeyboardInterrupt:
        return 0
    except BaseExceptionGroup as group:
        return report(group)
    except ProofcastError as error:
        return complain(error)
    return 0


def report(group: BaseExceptionGroup[BaseException]) -> int:
    """One sentence where the reason is one of ours; Ctrl-C is no error; anything else is a bug and shown whole."""
    ours, rest = group.split(ProofcastError)
    if rest is not None and rest.split(KeyboardInterrupt)[1] is not None:
        raise group
    errors = list(iterate_leaves(ours)) if ours is not None else []
    return complain(errors[0]) if errors else 0


def iterate_leaves(group: BaseExceptionGroup[ProofcastError]) -> list[ProofcastError]:
    found: list[ProofcastError] = []
    for error in group.exceptions:
        found += iterate_leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def complain(error: ProofcastError) -> int:
    sys.stderr.write(f"error: {error}\nhint: {error.hint}\n")
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
