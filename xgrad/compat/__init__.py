"""Other libraries' namespaces over xgrad's functions, for programs that were written for them."""
