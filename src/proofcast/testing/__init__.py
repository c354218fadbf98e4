"""Simulators and playgrounds, shipped: each room's module imports that room and what lies below it."""
