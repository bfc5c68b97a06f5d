"""The pages people work on: forms in, presenters out. Writes only through `workbench.commands`."""
