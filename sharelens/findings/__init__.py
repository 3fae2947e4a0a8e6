"""Findings: rules over measures and the evidence, and the verdict that they give."""
