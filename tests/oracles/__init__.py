"""What the simulator is judged by: brute force for batch scheduling, closed forms for queues."""
