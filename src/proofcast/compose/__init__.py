"""The processes behind `proofcast up`: which there are, when each starts and ends, what is done when one dies."""
