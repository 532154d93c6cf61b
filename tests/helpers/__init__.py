"""What tests share: drawn cases, small systems, ways to run them, and where files are."""
