"""Other libraries' names for what is here, for those who ask for them: scripts that are written for PyIceberg run unchanged."""
