"""Tables of experiments, one row an experiment, as past tasks and a new one."""

from scaml.sheets.reading import NewTask, Sheet, read

__all__ = ["NewTask", "Sheet", "read"]
