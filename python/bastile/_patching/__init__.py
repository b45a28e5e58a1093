"""What `bastile.patching` is made of: one step of patching models a module."""
