"""scaml inside other libraries, one package per library."""
