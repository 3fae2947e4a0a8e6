"""The audit over Arrow: the rules of the reference form as kernels, and findings as tables."""
