"""What the product costs, measured: `manage.py bench WHAT`. Each module with a DOOR is a subcommand."""
