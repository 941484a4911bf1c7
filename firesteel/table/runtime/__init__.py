"""What SQL jobs run in tasks."""
