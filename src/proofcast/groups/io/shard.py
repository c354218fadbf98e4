"""A shard's process: doors on one side, sequencer and attestor on the other."""

import asyncio

from aiohttp import web

from proofcast.groups.io.desk import Desk
from proofcast.groups.io.doors import make_application
from proofcast.groups.io.processes import Assignment, LinkKind, open_link, run_child


async def run(assignment: Assignment) -> None:
    options, number = assignment.options, assignment.facts["number"]
    desk = Desk(options, number, assignment.facts["last"])
    desk.sequencer = await open_link(assignment.links["sequencer"], desk.receive)
    attestor = await open_link(assignment.links["attestor"], desk.receive)
    runner = web.AppRunner(make_application(desk), access_log=None, handle_signals=False)
    await runner.setup()
    site = web.TCPSite(runner, options.host, options.port + number if options.port else 0, backlog=1024)
    await site.start()
    desk.sequencer.send(LinkKind.READY, runner.addresses[0][1])
    await asyncio.wait([desk.sequencer.closed, attestor.closed], return_when=asyncio.FIRST_COMPLETED)


if __name__ == "__main__":
    run_child(run)
