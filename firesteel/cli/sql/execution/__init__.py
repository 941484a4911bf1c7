"""What executes the statements of the shell: this process, a cluster, or a SQL gateway."""
