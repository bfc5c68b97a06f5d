"""What `manage.py chaos` can do, a module each with a door named `DOOR` (see `workbench.labs.chaos.door`)."""
