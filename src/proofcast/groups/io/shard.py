"""A shard's process: doors on one side, sequencer and attestor on the other."""

import asyncio

from proofcast.groups.io.desk import Desk
from proofcast.groups.io.doors import open_doors
from proofcast.groups.io.processes import Assignment, LinkKind, open_link, run_child


async def run(assignment: Assignment) -> None:
    options, number = assignment.options, assignment.facts["number"]
    desk = Desk(options, number, assignment.facts["last"])
    desk.sequencer = await open_link(assignment.links["sequencer"], desk.receive)
    attestor = await open_link(assignment.links["attestor"], desk.receive)
    port = options.port + number if options.port else 0
    async with open_doors(desk, options.host, port) as port:
        desk.sequencer.send(LinkKind.READY, port)
        await asyncio.wait([desk.sequencer.closed, attestor.closed], return_when=asyncio.FIRST_COMPLETED)


if __name__ == "__main__":
    run_child(run)
