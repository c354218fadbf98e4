"""Durable subscriptions, in SQLite or PostgreSQL. `durable.Store` is the whole interface:

    store = Store("broker.sqlite" or "postgresql://...")      opened at its first use; `await store.close()`
    await store.create(name, terms, place)                    409 `already-exists`
    await store.get(name) / find_all(after, limit) / change(name, terms) / delete(name)
    await store.pause(name) / resume(name)

What is delivered goes through `deliveries.Deliveries(hub, store)`, which joins the store to the hub:

    holding = await deliveries.hold(name)                     the right to deliver, with a fencing number
    pending = await deliveries.read(holding, limit)           what is pending (marked `is_repeated`), then what follows
    pending = await deliveries.read(holding, limit, after=pending[-1].ordinal)     further ones, before an answer came
    await deliveries.wait(holding)                            until there may be more
    deliveries.verify_held(holding)                           before sending: FENCED when the lease may have run out
    await store.acknowledge(holding, [ordinal, ...])          durable when it returns; FENCED when somebody took over
    await store.acknowledge_up_to(name, cursor)               the same, by a subscriber that names what it holds
    await store.postpone(holding, ordinal, attempts, due_at)  a failed attempt
    await store.bury(holding, ordinal, reason)                a dead letter
    await store.record(name, [Attempt, ...])                  for people to look at
    await store.redrive(name, ordinals or None)
    await store.release(holding)

A transport that pushes (webhook, kafka) is a coroutine `run(holding)`, registered by its name in `custody.Custody`: it
is started for every active subscription of that transport that this broker holds, cancelled when the subscription is
paused, changed, deleted or lost, and started again as it is then. One that a connection carries (websocket, a stream)
holds when the connection opens and releases when it closes.
"""
