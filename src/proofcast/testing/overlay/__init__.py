"""The overlay in one process: a network that loses, delays, splits and lies as told, alike for each seed."""
