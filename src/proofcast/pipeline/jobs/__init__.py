"""Each job reads, transforms and writes; session and sinks are passed in."""
