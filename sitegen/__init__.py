"""Documentation sites for model specifications whose every statement is executed."""

__version__ = "0.1.0"
