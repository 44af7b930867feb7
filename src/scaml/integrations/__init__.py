"""scaml in other libraries, one package per library."""
