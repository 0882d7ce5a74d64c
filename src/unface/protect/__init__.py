"""Protecting faces before they are published or sent, and whether a protection hides anything."""
