"""Runs test files written for JupyterHub against the hub of this checkout, as a process of its own.

What those tests do with Python objects of JupyterHub (its database, its application) is done here over the HTTP API
or the configuration of the hub. What cannot be done that way excludes the test, by name and reason.
"""
