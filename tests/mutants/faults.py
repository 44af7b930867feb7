"""The faults: one line of the source each, and what it says instead."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAULTS", "Fault"]


@dataclass(frozen=True)
class Fault:
    """A deliberate fault.

    Args:
        file: Below src/scaml.
        what: In a few words.
        before: Text that stands in the file exactly once.
        after: What takes its place.
    """

    file: str
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"

    def applied(self, source: str) -> str:
        """The source with the fault."""
        times = source.count(self.before)
        if times != 1:
            raise ValueError(
                f"{self}: its text stands {times} times in the file, not once; write it anew."
            )
        return source.replace(self.before, self.after)


FAULTS: tuple[Fault, ...] = ()
