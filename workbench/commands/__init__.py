"""What people can do, one verb a file. Doors call `dispatch`, `available` and `make_preview` and decide nothing."""
