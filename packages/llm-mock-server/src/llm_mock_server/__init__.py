"""A model provider in a box: performs action values over HTTP and SSE."""
