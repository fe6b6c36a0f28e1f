"""Which rights the brain's user lacks on its NATS servers: it tries each of them in a way that changes nothing.

A server says at once what it does not allow (`Permissions Violation for Publish to "..."`). What is published for it is either
for nobody (a node of this name is in no cell), no request that JetStream could follow, or refused by the stream for which it is,
as it names another one in its header.
"""

from nats.aio.client import Client

from agent.contract import subjects

NOBODY = "gpuward-doctor"
_ELSEWHERE = {"Nats-Expected-Stream": NOBODY}


async def try_all(client: Client, cell: str) -> None:
    """Tries each right; what the server has refused, the connection's `on_error` has heard when this returns. `LOST`: it ends."""
    log = subjects.stream(cell)
    for subject in (client.new_inbox(), subjects.answer(cell, NOBODY)):
        subscription = await client.subscribe(subject)
        await subscription.unsubscribe()
    asked = (
        *("STREAM.NAMES", f"STREAM.INFO.{log}", f"STREAM.CREATE.{log}", f"STREAM.UPDATE.{log}"),
        *(f"STREAM.MSG.GET.{log}", f"CONSUMER.CREATE.{log}.{NOBODY}"),
        *(f"CONSUMER.MSG.NEXT.{log}.{NOBODY}", f"CONSUMER.DELETE.{log}.{NOBODY}"),
    )
    for request in asked:
        await client.publish(f"$JS.API.{request}", b"{}")
    for subject in (subjects.command(cell, NOBODY), subjects.acknowledgement(cell, NOBODY, subjects.EVENT)):
        await client.publish(subject)
    kept = (
        subjects.brain_input(cell, NOBODY),
        f"$KV.{subjects.LEASE_BUCKET}.{NOBODY}",
        subjects.bundle_about(cell, NOBODY, NOBODY),
    )
    for subject in kept:
        await client.publish(subject, headers=_ELSEWHERE)
    # nats-py writes a ping ahead of what still waits to be sent (2.16): the first one only makes sure that all of it is sent, the
    # second one's answer comes behind the server's refusals.
    await client.flush()
    await client.flush()
