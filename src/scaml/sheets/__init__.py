"""Tables of experiments, one row per experiment, as past tasks and a new task."""

from scaml.sheets.reading import NewTask, Sheet, read

__all__ = ["NewTask", "Sheet", "read"]
