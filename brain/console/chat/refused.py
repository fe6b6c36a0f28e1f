"""Why a request of a platform is not taken."""


class Forged(Exception):
    """It is not signed as the platform signs, or too old, or was here before. Nothing in it is believed."""


class Odd(Exception):
    """The platform has signed it, and it has not the form that the platform documents."""


class SameMoment(Exception):
    """It is signed as one that was taken, and is another one: either two came at once, or somebody has read a signature."""
