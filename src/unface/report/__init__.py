"""Pages and tables drawn from result files alone."""
