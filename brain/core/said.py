"""A sentence that keeps what it was made of: the log has it in English, and a reader may be told it in another language. Pure."""

import json
from typing import Any


class Sentence(str):
    """The English sentence. `template`: with `{name}` for each of `values`."""

    __slots__ = ("template", "values")
    template: str
    values: dict[str, object]

    def noted(self) -> str:
        """What it was made of, as data of a note: the JSON of its parts."""
        return json.dumps(self.parts(), ensure_ascii=False, sort_keys=True)

    def parts(self) -> dict[str, Any]:
        """What it was made of: `template` and `values`, of which some have parts of their own."""
        values = {
            name: one.parts() if isinstance(one, Sentence) else str(one) for name, one in self.values.items()
        }
        return {"template": self.template, "values": values}


def said(template: str, /, **values: object) -> Sentence:
    """Makes a sentence. A value may be one, too."""
    made = Sentence(template.format(**values))
    made.template, made.values = template, values
    return made
