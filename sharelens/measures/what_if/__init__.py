"""What a recorded history would have been under other settings, as far as its log can know."""
