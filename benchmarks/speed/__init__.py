"""Questions of speed, memory and size: pursuit beside what people use today."""
