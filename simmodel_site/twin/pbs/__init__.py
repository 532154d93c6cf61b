"""PBS (OpenPBS, PBS Professional) as the scheduler that a twin follows and acts on."""
