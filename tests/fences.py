"""What a test gives an action in place of a brain's lease (brain/fence.py)."""


class Open:
    """Anything may leave: most tests of actions begin where a step has begun."""

    async def confirm(self) -> bool:
        """As in Fence."""
        return True

    def holds(self) -> bool:
        """As in Fence."""
        return True


async def confirmed(_: int) -> bool:
    """The server says that this brain leads."""
    return True
