"""What all other packages may use: files, nested containers, settings of a thread, and texts of errors."""
