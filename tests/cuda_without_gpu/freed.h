// Memory of the device in whole pages, which cannot be accessed once it was freed.
#pragma once
#include <cstddef>

// What runs, for the message about an access to memory that was freed
extern const char *running;

// Return new pages for a number of bytes, or null. An access to pages that were freed prints a line, and ends the process.
void *allocate(size_t size);
// Free pages. Their addresses are not used again, until many more pages were freed.
void protect(void *address, size_t size);
