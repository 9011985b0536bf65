# SPDX-License-Identifier: MIT
"""Hides the module: a title overwrites the environment of a process, by which the soak finds all workers of a host."""
raise ImportError("hidden by the soak")
