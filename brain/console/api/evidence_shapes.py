"""What is in an evidence bundle."""

from pydantic import Field

from brain.console.api.base import Asked, Shape, Time


class PackedFileShape(Shape):
    """A file in a bundle. Its node has packed it: all of this is the node's word."""

    file: int = Field(description="Its number, by which it is asked for.")
    name: str
    size: int = Field(description="Bytes.")
    at: Time | None = Field(description="When it was written.")
    text: bool = Field(description="Does it look like text?")


class EvidenceFilesShape(Shape):
    """The files of a bundle; links, devices and what else is no regular file are left out."""

    bundle: str = Field(description="`<node>/<command>`.")
    size: int = Field(description="Bytes, packed.")
    files: list[PackedFileShape]
    left_out: int = Field(description="How many members are no regular files.")
    cut: str = Field(description="Why there may be more files than these; empty: these are all.")


class EvidenceFileQuery(Asked):
    """Which file, and how much of it."""

    file: int = Field(ge=0, lt=1_000_000, description="Its number.")
    most: int | None = Field(
        default=None, ge=0, le=2**40, description="Only so many bytes, from its beginning."
    )
