"""Parity with recorded numbers: run the implementation on a folder of fixtures and compare every recorded tensor."""
