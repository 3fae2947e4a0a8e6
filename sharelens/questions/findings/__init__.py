"""What is wrong now: signs of an incident, findings made of them, and the overview."""
