"""What people look at: pictures of samples, and summaries of models and runs."""
