"""What people work with: roles, commands, screens, the REST interface, and the processes around them."""
