"""Counterfactual figures: a recorded history under other settings, as far as its log determines them."""
