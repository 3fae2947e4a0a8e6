"""What all answers share: completeness, warnings, names, and rows of measures at a cut."""
